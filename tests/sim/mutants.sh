#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants the bugs of tests/sim/mutants one after another in a copy of the tree, and checks that the
# simulator reports each as the violation that its patch names.
#
#   sh tests/sim/mutants.sh                  all of them
#   sh tests/sim/mutants.sh <name>...        these
#
# A mutant is a patch of the product. Its second line names an invariant. The first violation over all
# seeds must be of that invariant, at a seed that is clean without the mutant. A crash, an assertion, a
# timeout or another invariant is a failure. tests/checks/mutants.sh checks that every invariant has a
# mutant.
#
# SEEDS (default 3000) limits the number of seeds, SECONDS_EACH (default 240) the time. The copy is
# build/mutants and is deleted before the next run. The table is build/log/mutants.txt; the output of the
# simulator for each mutant is build/log/mutants/<name>.log.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
patches=$root/tests/sim/mutants
copy=$root/build/mutants
logs=$root/build/log/mutants
table=$root/build/log/mutants.txt
seeds=${SEEDS:-3000}
limit=${SECONDS_EACH:-240}

# Outside of a repository git applies patches to the current directory.
GIT_CEILING_DIRECTORIES=$root/build
export GIT_CEILING_DIRECTORIES

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

build_sim() { # <log>
	ninja -C "$copy/build" sim >"$1" 2>&1
}

make_copy() {
	rm -rf "$copy" "$logs"
	mkdir -p "$copy/tree" "$logs" || return 1
	git ls-files -z --cached --others --exclude-standard >"$copy/files" || return 1
	tar -cf - --null --ignore-failed-read -T "$copy/files" 2>"$logs/copy.log" |
		tar -xf - -C "$copy/tree" || return 1
	# Quick to build, and quick enough to run.
	cmake -G Ninja -S "$copy/tree" -B "$copy/build" -DCMAKE_BUILD_TYPE=Debug \
		-DCMAKE_C_FLAGS_DEBUG=-O1 -DSPOKE_BUILD_EXAMPLES=OFF \
		>"$logs/configure.log" 2>&1 || return 1
	build_sim "$logs/build.log" && cp "$copy/build/tests/sim/sim" "$copy/sound"
}

invariant_of() { # <name>
	sed -n 's/^# Caught by: //p' "$patches/$1.patch"
}

# Prints the result for the mutant, "caught" if the test succeeds. Sets `seed`.
try() { # <name>
	log=$logs/$1.log
	invariant=$(invariant_of "$1")
	seed=-
	verdict="does not build"
	build_sim "$log" || return
	timeout "$limit" "$copy/build/tests/sim/sim" --seeds "$seeds" >"$log" 2>&1
	status=$?
	seed=$(sed -n 's/^at .* of seed \([0-9]*\); again: .*/\1/p' "$log")
	seen=$(sed -n 's/^violation of \([SL][0-9]*\): .*/\1/p' "$log")
	if [ $status = 0 ]; then
		verdict="not caught in $seeds seeds"
	elif [ $status = 124 ]; then
		verdict="not caught in $limit s"
	elif [ -z "$seen" ]; then
		verdict="a crash: status $status"
	elif ! "$copy/sound" --seeds 1 --first "$seed" >"$log.sound" 2>&1; then
		verdict="$seen, which is violated without it"
	elif [ "$seen" != "$invariant" ]; then
		verdict="caught by $seen"
	else
		verdict=caught
		rm -f "$log.sound"
	fi
	seed=${seed:--}
}

plant() { # <name>: one line of the table
	begun=$(now_ms)
	if (cd "$copy/tree" && git apply "$patches/$1.patch") >"$logs/$1.log" 2>&1; then
		try "$1"
		(cd "$copy/tree" && git apply -R "$patches/$1.patch") || exit 2
	else
		seed=-
		verdict="does not apply"
	fi
	took=$(($(now_ms) - begun))
	printf '%-30s %-4s %5s %5d.%d  %s\n' "$1" "$(invariant_of "$1")" "$seed" $((took / 1000)) \
		$((took % 1000 / 100)) "$verdict"
}

if [ $# = 0 ]; then
	# shellcheck disable=SC2046
	set -- $(cd "$patches" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')
fi
for name in "$@"; do
	[ -f "$patches/$name.patch" ] || {
		echo "no such file: $patches/$name.patch" >&2
		exit 2
	}
done

echo "copying and building the tree"
make_copy || {
	tail -n 20 "$logs"/*.log
	exit 2
}
begun_all=$(now_ms)
: >"$table"
for name in "$@"; do
	plant "$name" >"$copy/line"
	tee -a "$table" <"$copy/line"
done

status=0
sort -k2b,2bV -k1,1 "$table" >"$copy/sorted"
{
	printf '%-30s %-4s %5s %7s\n' mutant by seed seconds
	cat "$copy/sorted"
	caught=$(grep -c ' caught$' "$copy/sorted")
	echo "$caught of $# caught, $((($(now_ms) - begun_all) / 1000)) s"
} >"$table"
[ "$(grep -c ' caught$' "$copy/sorted")" = $# ] || status=1
echo
cat "$table"
exit $status
