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
tree=$copy/tree
logs=$root/build/log/mutants
table=$root/build/log/mutants.txt
seeds=${SEEDS:-3000}
limit=${SECONDS_EACH:-240}

. "$root/tests/planted/plant.sh"

build_sim() { # <log>
	ninja -C "$copy/build" sim >"$1" 2>&1
}

make_copy() {
	copy_tree || return 1
	# Quick to build, and quick enough to run.
	cmake -G Ninja -S "$tree" -B "$copy/build" -DCMAKE_BUILD_TYPE=Debug \
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

print_line() { # <name>
	[ "$verdict" != "does not apply" ] || seed=-
	printf '%-30s %-4s %5s %5d.%d  %s\n' "$1" "$(invariant_of "$1")" "$seed" $((took / 1000)) \
		$((took % 1000 / 100)) "$verdict"
}

# shellcheck disable=SC2046
[ $# != 0 ] || set -- $(all_patches)
must_exist "$@"

echo "copying and building the tree"
make_copy || {
	tail -n 20 "$logs"/*.log
	exit 2
}
plant_all "$@"

status=0
sum_up "$@" >"$copy/sum" || status=1
sort -k2b,2bV -k1,1 "$table" >"$copy/sorted"
{
	printf '%-30s %-4s %5s %7s\n' mutant by seed seconds
	cat "$copy/sorted" "$copy/sum"
} >"$table"
echo
cat "$table"
exit $status
