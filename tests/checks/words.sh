#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the text of the tree: a licence line in every source, no absolute path of a machine, no deferred
# work, and clean line ends. Lists of recorded calls stay as they were recorded.
set -eu
. "$(dirname "$0")/common.sh"

find . -path ./.git -prune -o -path ./build -prune -o -path ./tests/fuzz/corpus -prune -o \
	-type f -not -name LICENSE -not -path './tests/golden/*.calls' -exec grep -lI . {} + | sed 's|^\./||' | sort >"$work/files"

# look <error> <extended pattern>. The patterns must not match themselves.
bad=0
look() {
	if tr '\n' '\0' <"$work/files" | xargs -0 grep -nE -e "$2" /dev/null >"$work/found"; then
		sed "s|^\([^:]*:[0-9]*\):.*|\1: $1|" "$work/found"
		bad=1
	fi
}

look 'path of a machine' '(^|[^A-Za-z0-9_.}])/(home|root|work|Users)/'
look 'fixed path, ask mkdtemp or mktemp for one' '(^|[^A-Za-z0-9_.}/])/[t]mp/[^"[:blank:]]*[^X"[:blank:]]("|[[:blank:]]|$)'
look 'path out of the tree' '\.\./(\.\./)*[s]hared'
look 'work put off: do it or drop it' '(^|[^A-Za-z0-9_])(TO[D]O|FIX[M]E|X[X]X)([^A-Za-z0-9_]|$)'
look 'white space at the end of the line' '[[:blank:]]$'
look 'carriage return' "$(printf '\r')"

while read -r file; do
	if [ -n "$(tail -c 1 "$file")" ]; then
		echo "$file: no newline at the end"
		bad=1
	fi
	first=$(sed -n '1{/^#!/!p;q;}' "$file")
	[ -n "$first" ] || first=$(sed -n 2p "$file")
	case $file in
	*.c | *.h | *.cc) licence='/* SPDX-License-Identifier: Apache-2.0 */' ;;
	*.sh | *.cmake | *.awk | */CMakeLists.txt | CMakeLists.txt | .clang-* | */.clang-* | .ci/*)
		licence='# SPDX-License-Identifier: Apache-2.0' ;;
	*) continue ;;
	esac
	if [ "$first" != "$licence" ]; then
		echo "$file:1: does not begin with: $licence"
		bad=1
	fi
done <"$work/files"
exit $bad
