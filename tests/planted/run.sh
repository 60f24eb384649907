#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants the bugs of tests/planted one after another in a copy of the tree, and checks that the simulator or a
# unit test notices each.
#
#   sh tests/planted/run.sh                  all of them
#   sh tests/planted/run.sh sim | unit       those that the simulator has to notice, or a unit test
#   sh tests/planted/run.sh <name>...        these
#
# A planted bug is a patch of the product, after a line "=== <name>" in a file of tests/planted. Its next line
# says what notices it; tests/checks/mutants.sh checks that all apply, and that every invariant has one.
#
#   # Caught by: S23, L4         an invariant of the simulator. The first violation over all seeds must be of one
#                                of these, at a seed that is clean without the bug.
#   # Caught by: <file> <test>   the test has to fail, and has to pass without the bug.
#
# Any other crash, assertion or timeout is a failure of this check.
#
# SEEDS (default 3000) limits the number of seeds; SECONDS_EACH (default 240 for the simulator, 120 for tests)
# the time of a program. The copy is build/planted and is deleted before the next run. The table is
# build/log/planted.txt; the output of the programs is build/log/planted/<name>.log.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
copy=$root/build/planted
tree=$copy/tree
built=$tree/build/dev
logs=$root/build/log/planted
table=$root/build/log/planted.txt
seeds=${SEEDS:-3000}

# Outside of a repository git applies patches to the current directory.
GIT_CEILING_DIRECTORIES=$root/build
export GIT_CEILING_DIRECTORIES

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# Prints the names of the bugs: all, or those that the simulator (sim) or a test (unit) has to notice.
names() { # [sim | unit]
	awk -v kind="${1:-}" '/^=== / { name = $2 }
		/^# Caught by: / && (kind == "" || kind == ($4 ~ /^[SL][0-9]/ ? "sim" : "unit")) { print name }' \
		tests/planted/*.patch
}

# Prints the patch of a bug.
patch_of() { # <name>
	awk -v name="$1" '/^=== / { on = $2 == name; next } FNR == 1 { on = 0 } on' "$root"/tests/planted/*.patch
}

# Prints what has to notice the bug: invariants without commas, or a file and its test.
catcher_of() { # <name>
	patch_of "$1" | sed -n '1s/^# Caught by: //p'
}

invariants_of() { # <name>
	catcher_of "$1" | sed -n '/^[SL][0-9]/{s/,//g;p;}'
}

file_of() { # <name>
	catcher_of "$1" | sed -n '/^[SL][0-9]/!s/ .*//p'
}

# Prints the path of the program that has the tests of the files, also before it is built.
program_of() { # <file>...
	for file in "$@"; do
		ctest --test-dir "$built" -N -V -R "^$file\$" |
			sed -n 's/.*Test command: "\{0,1\}\([^" ]\{1,\}\).*/\1/p; s/^Could not find executable //p'
	done | sort -u
}

build() { # <log> <target>...
	log=$1
	shift
	ninja -C "$built" "$@" >"$log" 2>&1
}

# Copies the files that git knows or could know, and builds what runs without a bug: the simulator of the file
# "sim", and the programs of tests.
make_copy() { # <file>...
	rm -rf "$copy" "$logs"
	mkdir -p "$tree" "$logs" || return 1
	git ls-files -z --cached --others --exclude-standard >"$copy/files" || return 1
	tar -cf - --null --ignore-failed-read -T "$copy/files" 2>"$logs/copy.log" | tar -xf - -C "$tree"
	# A bug may be one that the compiler warns of.
	(cd "$tree" && cmake --preset dev -DSPOKE_WERROR=OFF) >"$logs/configure.log" 2>&1 || return 1
	for file in "$@"; do
		if [ "$file" = sim ]; then
			build "$logs/build-sim.log" sim && cp "$built/tests/sim/sim" "$copy/sound" || return 1
		else
			build "$logs/build-$(echo "$file" | tr / _).log" "$(basename "$(program_of "$file")")" ||
				return 1
		fi
	done
}

# Runs all tests of a file. Returns the status.
run() { # <file> <log>
	program=$(program_of "$1")
	(cd "$tree" && timeout "${SECONDS_EACH:-120}" "$program" "$1") >"$2" 2>&1
}

# Returns whether the test has the result. A test that fails in its end, too, has the result ERROR.
has_result() { # <log> <result> <test>
	grep -qx "\[ *$2 *\] $3" "$1"
}

# Returns whether the test is the last one, and has left a process of its world behind, which aborts the
# program.
is_cut_short() { # <log> <test>
	[ "$(sed -n 's/^\[ RUN      \] //p' "$1" | tail -n 1)" = "$2" ] &&
		tail -n 1 "$1" | grep -q 'core/virtual/.*assertion failed'
}

# Sets the verdict on a bug that a test has to notice.
try_test() { # <name> <log>
	file=$(file_of "$1")
	test=$(catcher_of "$1" | sed 's/^[^ ]* //')
	build "$2" "$(basename "$(program_of "$file")")" || return
	run "$file" "$2"
	ended=$?
	if has_result "$2" '\(FAILED\|ERROR\)' "$test" || is_cut_short "$2" "$test"; then
		verdict=caught
	elif [ $ended = 124 ]; then
		verdict="not over in time"
	elif has_result "$2" OK "$test"; then
		verdict="not caught by $test"
	else
		verdict="a crash: status $ended"
	fi
}

# Sets the verdict on a bug that the simulator has to notice, and the seed.
try_sim() { # <name> <log>
	build "$2" sim || return
	timeout "${SECONDS_EACH:-240}" "$built/tests/sim/sim" --seeds "$seeds" >"$2" 2>&1
	ended=$?
	seed=$(sed -n 's/^at .* of seed \([0-9]*\); again: .*/\1/p' "$2")
	seen=$(sed -n 's/^violation of \([SL][0-9]*\): .*/\1/p' "$2")
	if [ $ended = 0 ]; then
		verdict="not caught in $seeds seeds"
	elif [ $ended = 124 ]; then
		verdict="not caught in time"
	elif [ -z "$seen" ]; then
		verdict="a crash: status $ended"
	elif ! "$copy/sound" --seeds 1 --first "$seed" >"$2.sound" 2>&1; then
		verdict="$seen, which is violated without it"
	else
		case " $(invariants_of "$1") " in
		*" $seen "*) verdict=caught ;;
		*) verdict="caught by $seen" ;;
		esac
	fi
}

plant() { # <name>: one line of the table
	begun=$(now_ms)
	log=$logs/$1.log
	seed=-
	patch_of "$1" >"$copy/patch"
	if (cd "$tree" && git apply "$copy/patch") >"$log" 2>&1; then
		verdict="does not build"
		if [ -n "$(invariants_of "$1")" ]; then
			try_sim "$1" "$log"
		else
			try_test "$1" "$log"
		fi
		(cd "$tree" && git apply -R "$copy/patch") || exit 2
	else
		verdict="does not apply"
	fi
	took=$(($(now_ms) - begun))
	printf '%-36s %-8s %5s %5d.%d  %s\n' "$1" "$(invariants_of "$1" | tr ' ' ,)" "${seed:--}" $((took / 1000)) \
		$((took % 1000 / 100)) "$verdict"
}

case $#${1:-} in
0) set -- $(names) ;;
1sim | 1unit) set -- $(names "$1") ;;
esac
for name in "$@"; do
	names | grep -qx -e "$name" || {
		echo "tests/planted has no bug $name" >&2
		exit 2
	}
done

echo "copying and building the tree"
files=$(for name in "$@"; do
	[ -n "$(invariants_of "$name")" ] && echo sim || file_of "$name"
done | sort -u)
# shellcheck disable=SC2086
make_copy $files || {
	tail -n 20 "$logs"/*.log
	exit 2
}
status=0
for file in $files; do
	[ "$file" != sim ] || continue
	sound=$logs/$(echo "$file" | tr / _).sound
	run "$file" "$sound" || {
		echo "$file fails without a bug: $sound"
		status=1
	}
done
begun_all=$(now_ms)
: >"$table"
for name in "$@"; do
	plant "$name" >"$copy/line"
	tee -a "$table" <"$copy/line"
done
caught=$(grep -c ' caught$' "$table")
echo "$caught of $# caught, $((($(now_ms) - begun_all) / 1000)) s" | tee -a "$table"
[ "$caught" = $# ] || status=1
exit $status
