#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the build includes every floor, so that no file is left out. A floor contains only C, because the
# other checks read only C; public headers of C++ contain nothing but inline functions. Each row of
# tests/bench/cost/features.txt matches a line.
set -eu
. "$(dirname "$0")/common.sh"

for floor in $(floor_files '*.[ch]' | sed 's|/.*||' | sort -u); do
	grep -qx "add_subdirectory($floor)" CMakeLists.txt || echo "CMakeLists.txt: no add_subdirectory($floor)"
done >"$work/bad"

floor_files '*.*' | grep -v '/include/spoke/[a-z_]*\.hpp$' | sed -n '/\.\([sS]\|asm\|cc\|cpp\|cxx\|C\|hh\|hpp\|inc\|def\|o\|a\)$/s/$/: neither .c nor .h/p' >>"$work/bad"

awk -f tests/bench/cost/features.awk tests/bench/cost/features.txt >>"$work/bad" || :

cat "$work/bad"
[ ! -s "$work/bad" ]
