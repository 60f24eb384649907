#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the build includes every floor, so that no file is left out. A floor contains only C, because the
# other checks read only C; public headers of C++ contain nothing but inline functions. Each row of
# tests/bench/cost/features.txt matches a line. Each balancer and each registry has tests of its own, and each
# registry a line in the manual.
set -eu
. "$(dirname "$0")/common.sh"

for floor in $(floor_files '*.[ch]' | sed 's|/.*||' | sort -u); do
	grep -qx "add_subdirectory($floor)" CMakeLists.txt || echo "CMakeLists.txt: no add_subdirectory($floor)"
done >"$work/bad"

floor_files '*.*' | grep -v '/include/spoke/[a-z_]*\.hpp$' | sed -n '/\.\([sS]\|asm\|cc\|cpp\|cxx\|C\|hh\|hpp\|inc\|def\|o\|a\)$/s/$/: neither .c nor .h/p' >>"$work/bad"
# The installation takes these folders without those below them.
floor_files '*.[hp]*' | grep '/include/spoke/.*/' | sed 's/$/: a public header below include\/spoke is not installed/' >>"$work/bad" || :

grep -rho '^TEST([a-z0-9_]*' tests/cluster/balancer | tr -d _ >"$work/tests"
balancers=$(cat cluster/balancer/*.c | sed -n 's/.*\.name = "\([a-z]*\)".*/\1/p')
schemes=$(sed -n 's/^	\(FIRST\|ROW\)(\([a-z]*\), .*/\2/p' cluster/include/spoke/registry.h)
[ "$balancers" ] && [ "$schemes" ] || fail "no balancers, or no registries, were found"
for name in $balancers; do
	grep -q "^TEST($name" "$work/tests" ||
		echo "tests/cluster/balancer: no test has a name that begins with $name" >>"$work/bad"
done
for scheme in $schemes; do
	[ -e "tests/cluster/registry/test_$scheme.c" ] || [ -d "tests/cluster/registry/$scheme" ] ||
		echo "tests/cluster/registry: no test_$scheme.c" >>"$work/bad"
	grep -q "^| .$scheme://" cluster/REGISTRIES.md ||
		echo "cluster/REGISTRIES.md: no row for $scheme://" >>"$work/bad"
done

awk -f tests/bench/cost/features.awk tests/bench/cost/features.txt >>"$work/bad" || :

cat "$work/bad"
[ ! -s "$work/bad" ]
