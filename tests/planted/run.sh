#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants the bugs of tests/planted one after another in a copy of the tree, and checks that a unit test
# notices each. Many concern security: who may connect and call, and what TLS promises.
#
#   sh tests/planted/run.sh                  all of them
#   sh tests/planted/run.sh <name>...        these
#
# A planted bug is a patch of the product. Its second line names the file of a test and the test, which
# has to fail. It has to pass without the patch. Any other crash, or a timeout, is a failure of this check. tests/checks/mutants.sh checks that all patches apply.
#
# SECONDS_EACH (default 120) limits the time of a program. The copy is build/planted and is deleted before
# the next run. The table is build/log/planted.txt; the output of the programs is build/log/planted/<name>.log.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
patches=$root/tests/planted
copy=$root/build/planted
tree=$copy/tree
logs=$root/build/log/planted
table=$root/build/log/planted.txt
limit=${SECONDS_EACH:-120}

. "$root/tests/planted/plant.sh"

# Prints the file of tests, or the test, that has to notice the bug.
file_of() { # <name>
	sed -n '2s/^# Caught by: \([^ ]*\) .*/\1/p' "$patches/$1.patch"
}

test_of() { # <name>
	sed -n '2s/^# Caught by: [^ ]* //p' "$patches/$1.patch"
}

# Prints the path of the program that has the tests of the files.
program_of() { # <file>...
	for file in "$@"; do
		ctest --test-dir "$tree/build/dev" -N -V -R "^$file\$" |
			sed -n 's/.*Test command: "\{0,1\}\([^" ]*\).*/\1/p'
	done | sort -u
}

build() { # <log> <target>...
	log=$1
	shift
	ninja -C "$tree/build/dev" "$@" >"$log" 2>&1
}

# Runs all tests of a file. Returns the status.
run() { # <file> <log>
	program=$(program_of "$1")
	(cd "$tree" && timeout "$limit" "$program" "$1") >"$2" 2>&1
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

make_copy() { # <file>...
	copy_tree || return 1
	(cd "$tree" && cmake --preset dev) >"$logs/configure.log" 2>&1 || return 1
	# shellcheck disable=SC2046
	build "$logs/build.log" $(program_of "$@" | sed 's|.*/||')
}

# Prints the result for the bug, "caught" if the test fails.
try() { # <name>
	file=$(file_of "$1")
	test=$(test_of "$1")
	verdict="does not build"
	build "$logs/$1.log" "$(basename "$(program_of "$file")")" || return
	run "$file" "$logs/$1.log"
	ended=$?
	if has_result "$logs/$1.log" '\(FAILED\|ERROR\)' "$test" ||
		is_cut_short "$logs/$1.log" "$test"; then
		verdict=caught
	elif [ $ended = 124 ]; then
		verdict="not over in $limit s"
	elif has_result "$logs/$1.log" OK "$test"; then
		verdict="not caught by $test"
	else
		verdict="a crash: status $ended"
	fi
}

print_line() { # <name>
	printf '%-36s %5d.%d  %s\n' "$1" $((took / 1000)) $((took % 1000 / 100)) "$verdict"
}

# shellcheck disable=SC2046
[ $# != 0 ] || set -- $(all_patches)
must_exist "$@"

echo "copying and building the tree"
files=$(for name in "$@"; do file_of "$name"; done | sort -u)
# shellcheck disable=SC2086
make_copy $files || {
	tail -n 20 "$logs"/*.log
	exit 2
}
status=0
for file in $files; do
	sound=$logs/$(echo "$file" | tr / _).sound
	run "$file" "$sound" || {
		echo "$file fails without a bug: $sound"
		status=1
	}
done
plant_all "$@"
sum_up "$@" >"$copy/sum" || status=1
tee -a "$table" <"$copy/sum"
exit $status
