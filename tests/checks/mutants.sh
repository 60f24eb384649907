#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the planted bugs of tests/sim/mutants.sh: every patch applies, changes only the product, names the
# invariant that must catch it, and describes the bug. Every invariant of the simulator has a patch, and
# is checked in the file that tests/sim/invariants.h names. The patches of tests/planted/run.sh name a
# file and one of its tests instead.
set -eu
. "$(dirname "$0")/common.sh"

bad=0
complain() {
	echo "$*"
	bad=1
}

sed -n 's/^\tX(\([SL][0-9]*\), \([a-z_]*\),.*/\1 \2/p' tests/sim/invariants.h >"$work/table"
while read -r invariant file; do
	grep -q "SIM_$invariant[^0-9]" "tests/sim/$file.c" ||
		complain "tests/sim/invariants.h: $invariant is not checked in tests/sim/$file.c"
done <"$work/table"
sed 's/ .*//' "$work/table" | sort >"$work/invariants"
: >"$work/named"
check_invariant() { # <patch>
	invariant=$(sed -n '2s/^# Caught by: //p' "$1")
	grep -qx -e "$invariant" "$work/invariants" ||
		complain "$1:2: names no invariant of tests/sim/invariants.h: $invariant"
	echo "$invariant" >>"$work/named"
}

# A word behind the name of a test is the setting that it runs with.
check_test() { # <patch>
	test=$(sed -n '2s/^# Caught by: [^ ]* //p' "$1")
	source=tests/$(sed -n '2s/^# Caught by: \([^ ]*\) .*/\1/p' "$1").c
	grep -Eqs "^([A-Z_]*TEST|ROW)\(${test%%[: ]*}[,)]" "$source" || complain "$1:2: $source has no test $test"
}

for patch in tests/sim/mutants/*.patch tests/planted/*.patch; do
	case $patch in
	tests/sim/*) check_invariant "$patch" ;;
	*) check_test "$patch" ;;
	esac
	sed -n 3p "$patch" | grep -q '^# ' || complain "$patch:3: does not say what the bug is"
	sed -n 's|^+++ b/||p' "$patch" | while read -r file; do
		case " $floors " in
		*" ${file%%/*} "*) ;;
		*) echo "$patch: $file is not of the product" ;;
		esac
	done >"$work/foreign"
	[ ! -s "$work/foreign" ] || complain "$(cat "$work/foreign")"
	git apply --check "$patch" 2>"$work/said" || complain "$patch: does not apply: $(tail -n 1 "$work/said")"
done
for invariant in $(cat "$work/invariants"); do
	grep -qx "$invariant" "$work/named" || complain "$invariant of tests/sim/invariants.h has no mutant"
done
exit $bad
