#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the C code of each page compiles alone, without a warning, except quotations. A block after a
# line "<!-- from examples/x.c -->" is a quotation: whole lines of that file, in order. A line "/* ... */"
# or "# ..." marks an omission. The quoted file must be built. The width of tabs does not matter.
# The programs of the guide have a greatest length. No command of a page stands twice, one below the other.
set -eu
. "$(dirname "$0")/common.sh"

bad=0
find . -name '*.md' -not -path './build/*' | sed 's|^\./||' | sort >"$work/pages"
while read -r page; do
	expand "$page" | awk -v page="$page" -f $checks/quoted.awk >"$work/output" || bad=1
	cat "$work/output"
done <"$work/pages"

sed -n 's/^<!-- from \(.*\) -->$/\1/p' $(cat "$work/pages") | sort -u >"$work/quoted"
while read -r file; do
	[ -f "$file" ] || continue
	folder=$(dirname "$file")
	while [ ! -f "$folder/CMakeLists.txt" ] && [ "$folder" != . ]; do
		folder=$(dirname "$folder")
	done
	case $file in
	*.c | *.cc) grep -qwF "${file#"$folder/"}" "$folder/CMakeLists.txt" ||
		{ echo "$file: is quoted, but not built: $folder/CMakeLists.txt does not list it" && bad=1; } ;;
	esac
done <"$work/quoted"

while read -r page; do
	awk -v page="$page" '/^    +[^ ]/ && $0 == last { print page ":" NR ": the same line again"; bad = 1 }
		{ last = $0 }
		END { exit bad }' "$page" || bad=1
done <"$work/pages"

# The programs of the guide stay short.
for limit in provider:25 consumer:40; do
	lines=$(wc -l <"examples/guide/${limit%:*}.c")
	[ "$lines" -le "${limit#*:}" ] ||
		{ echo "examples/guide/${limit%:*}.c: $lines lines, at most ${limit#*:}" && bad=1; }
done

while read -r page; do
	awk '/^<!-- from .* -->$/ { quoted = 1; next }
		/^```c$/ && !quoted { on = 1; next }
		/^```/ { on = quoted = 0 } on' "$page" >"$work/code.c"
	[ -s "$work/code.c" ] || continue
	echo "$page" >>"$work/with_code"
	${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-unused-function -fsyntax-only \
		-Itimer/include -Icore/include -Itransport/include -Icluster/include "$work/code.c" || {
		echo "$page: its C does not compile"
		bad=1
	}
done <"$work/pages"
grep -qx timer/WHEEL.md "$work/with_code" && grep -qx examples/guide/provider.c "$work/quoted" || {
	echo "no C was found in timer/WHEEL.md, or no quotation of examples/guide/provider.c"
	bad=1
}
exit $bad
