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

# One process for all files, and for each file only after an error.
if tr '\n' '\0' <"$work/files" | xargs -0 tail -q -c 1 | tr -d '\n' | grep -q .; then
	while read -r file; do
		[ -z "$(tail -c 1 "$file")" ] || echo "$file: no newline at the end"
	done <"$work/files"
	bad=1
fi

tr '\n' '\0' <"$work/files" | xargs -0 awk '
function licence(file) {
	if (file ~ /\.(c|h|cc)$/)
		return "/* SPDX-License-Identifier: Apache-2.0 */"
	if (file ~ /(\.(sh|cmake|awk)|(^|\/)CMakeLists\.txt|(^|\/)\.clang-[^\/]*)$/ || file ~ /^\.ci\//)
		return "# SPDX-License-Identifier: Apache-2.0"
	return ""
}
function judge(file, line) {
	if (line != licence(file) && licence(file) != "")
		print file ":1: does not begin with: " licence(file)
}
# Below the line that names the interpreter, which may be the only one.
FNR == 1 && waiting {
	judge(waiting, "")
	waiting = ""
}
FNR == 1 && /^#!/ {
	waiting = FILENAME
	next
}
FNR == 1 || waiting {
	judge(FILENAME, $0)
	waiting = ""
}
END {
	if (waiting)
		judge(waiting, "")
}' >"$work/bare"
if [ -s "$work/bare" ]; then
	cat "$work/bare"
	bad=1
fi
exit $bad
