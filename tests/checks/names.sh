#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The name of a test states the rule under test: at most 60 characters, and its subject is a noun, so that
# it begins with neither `what_` nor `who_`. names.txt has how many are otherwise, by file; it may only shrink
# ("--update" lowers it).
set -eu
. "$(dirname "$0")/common.sh"

grep -roE --include='*.c' '^(ROW|[A-Z_]*TEST)\([a-z_0-9]+' tests | sed 's/:.*(/:/' >"$work/tests"
[ -s "$work/tests" ] || fail "no tests were found"
awk -F: 'length($2) > 60 || $2 ~ /^wh(at|o)_/' "$work/tests" >"$work/found"
cut -d: -f1 "$work/found" | sort | uniq -c | awk '{ print $2, $1 }' >"$work/counted"
bad=0
shrinking $checks/names.txt "$work/counted" "names of tests that are too long or begin with what_ or who_" || {
	bad=1
	sed 's/^/    /' "$work/found"
}
echo "$(wc -l <"$work/tests") tests, $(wc -l <"$work/found") of them with such a name"
exit $bad
