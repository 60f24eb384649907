#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the planted bugs of tests/planted/run.sh: every patch applies, changes only the product, names the
# invariants of the simulator or the test that must catch it, and describes the bug. No name stands twice.
# Every invariant has a patch, and is checked in the file that tests/sim/invariants.h names.
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

# One file for each patch, and a list of their names and places.
mkdir "$work/patches"
awk -v to="$work/patches" '/^=== / { out = to "/" $2; print $2, FILENAME; next }
	FNR == 1 { out = "" }
	out { print >out }' tests/planted/*.patch >"$work/list"
[ -s "$work/list" ] || fail "no planted bug was found"
cut -d ' ' -f 1 "$work/list" | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || complain "tests/planted: twice: $(cat "$work/twice")"

check_invariants() { # <place> <invariants with commas>
	for invariant in $(echo "$2" | tr -d ,); do
		grep -qx -e "$invariant" "$work/invariants" ||
			complain "$1: names no invariant of tests/sim/invariants.h: $invariant"
		echo "$invariant" >>"$work/named"
	done
}

# A word behind the name of a test is the setting that it runs with.
check_test() { # <place> <file and test>
	test=${2#* }
	source=tests/${2%% *}.c
	grep -Eqs "^([A-Z_]*TEST|ROW)\(${test%%[: ]*}[,)]" "$source" || complain "$1: $source has no test $test"
}

while read -r name file; do
	place="$file: $name"
	patch=$work/patches/$name
	catcher=$(sed -n '1s/^# Caught by: //p' "$patch")
	case $catcher in
	[SL][0-9]*) check_invariants "$place" "$catcher" ;;
	*) check_test "$place" "$catcher" ;;
	esac
	sed -n 2p "$patch" | grep -q '^# ' || complain "$place: does not say what the bug is"
	for changed in $(sed -n 's|^+++ b/||p' "$patch"); do
		case " $floors " in
		*" ${changed%%/*} "*) ;;
		*) complain "$place: $changed is not of the product" ;;
		esac
	done
	git apply --check "$patch" 2>"$work/said" || complain "$place: does not apply: $(tail -n 1 "$work/said")"
done <"$work/list"
for invariant in $(cat "$work/invariants"); do
	grep -qx "$invariant" "$work/named" || complain "$invariant of tests/sim/invariants.h has no planted bug"
done
exit $bad
