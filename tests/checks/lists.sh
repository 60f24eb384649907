#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the CMakeLists.txt of a floor lists all files of its folder: .c under SOURCES, public headers
# under PUBLIC (otherwise they are not installed), other headers under HEADERS. The build must include
# every floor. A floor contains only C, because the other checks read only C; public headers of C++ contain
# nothing but inline functions. Each row of tests/bench/cost/features.txt matches a line.
set -eu
. "$(dirname "$0")/common.sh"

: >"$work/bad"
{
	floor_files '*.c' | sed 's/$/ SOURCES/'
	public_headers | sed 's/$/ PUBLIC/'
	floor_files '*.h' | grep -v /include/spoke/ | sed 's/$/ HEADERS/'
} | sort >"$work/there"

for floor in $(sed 's|/.*||' "$work/there" | sort -u); do
	grep -qx "add_subdirectory($floor)" CMakeLists.txt ||
		echo "CMakeLists.txt: no add_subdirectory($floor)" >>"$work/bad"
	[ -e "$floor/CMakeLists.txt" ] || continue
	sed 's/#.*//; s/[()]/ & /g' "$floor/CMakeLists.txt" | awk -v floor="$floor" '
	{
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^(SOURCES|HEADERS|PUBLIC|ON|USES|\)|\()$/)
				list = $i
			else if (list ~ /^(SOURCES|HEADERS|PUBLIC)$/ && $i ~ /\.[ch]$/)
				print floor "/" $i, list
		}
	}'
done | sort >"$work/listed"

comm -23 "$work/there" "$work/listed" | while read -r file list; do
	echo "$file: not under $list in ${file%%/*}/CMakeLists.txt"
done >>"$work/bad"
comm -13 "$work/there" "$work/listed" | while read -r file list; do
	echo "${file%%/*}/CMakeLists.txt: $file does not belong under $list, or does not exist"
done >>"$work/bad"
uniq -d "$work/listed" | sed 's|^\([^/]*\)\(.*\)|\1/CMakeLists.txt: \1\2 twice|' >>"$work/bad"

floor_files '*.*' | grep -v '/include/spoke/[a-z_]*\.hpp$' | sed -n '/\.\([sS]\|asm\|cc\|cpp\|cxx\|C\|hh\|hpp\|inc\|def\|o\|a\)$/s/$/: neither .c nor .h/p' >>"$work/bad"

awk -f tests/bench/cost/features.awk tests/bench/cost/features.txt >>"$work/bad" || :

cat "$work/bad"
[ ! -s "$work/bad" ]
