#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bugs that tests/sim/mutants.sh plants: every patch still applies, is of the product alone, names
# the invariant that has to catch it and says what it is; every invariant of the simulator has one.
set -eu
. "$(dirname "$0")/common.sh"

bad=0
complain() {
	echo "$*"
	bad=1
}

sed -n '/^ \*   [a-z]/p; /^ \*\//q' tests/sim/oracle.h | grep -ow '[SL][0-9]*' | sort -u >"$work/invariants"
: >"$work/named"
for patch in tests/sim/mutants/*.patch; do
	invariant=$(sed -n '2s/^# Caught by: //p' "$patch")
	grep -qx -e "$invariant" "$work/invariants" ||
		complain "$patch:2: names no invariant of tests/sim/oracle.h: $invariant"
	echo "$invariant" >>"$work/named"
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
	grep -qx "$invariant" "$work/named" || complain "$invariant of tests/sim/oracle.h has no mutant"
done
exit $bad
