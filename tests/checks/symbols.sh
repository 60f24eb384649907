#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the shared library exports exactly the symbols of symbols.txt, and that no global symbol of
# the static library can collide with the names of a user. "--update" rewrites the list.
set -eu
. "$(dirname "$0")/common.sh"

list=$checks/symbols.txt
[ -f "$build/libspoke.so" ] || fail "no $build/libspoke.so: build it first"
nm -D --defined-only "$build/libspoke.so" | awk '{ print $NF }' | sort >"$work/now"

if [ -n "$update" ]; then
	cp "$work/now" $list
	echo "$list: $(wc -l <$list) symbols"
	exit 0
fi

bad=0
if ! diff -u $list "$work/now" >"$work/diff"; then
	sed 1,2d "$work/diff"
	echo "libspoke.so exports other symbols than $list lists (- listed, + exported); if that is" \
		"meant: sh tests/checks/symbols.sh --update"
	bad=1
fi
if grep -v '^spoke_' "$work/now" >"$work/foreign"; then
	sed 's/$/: exported, but public names begin with spoke_/' "$work/foreign"
	bad=1
fi
if [ -f "$build/libspoke.a" ] && nm -g --defined-only "$build/libspoke.a" |
	awk 'NF == 3 && $3 !~ /^spokei?_/ { print $3 }' | grep . >"$work/foreign"; then
	sed 's/$/: a global of libspoke.a, but these begin with spoke_ or spokei_/' "$work/foreign"
	bad=1
fi
exit $bad
