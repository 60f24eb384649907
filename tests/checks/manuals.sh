#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the manual. Its pages beside the code have at most 8 KB each, and MANUAL.md links to all of them.
# Files that ARCHITECTURE.md names, e.g. `call/begin`, exist. The manual pages format without warnings.
# HTTP.md describes each field of an error. spoke(3) names exactly the public headers, and its example
# compiles.
set -eu
. "$(dirname "$0")/common.sh"

bad=0
complain() {
	echo "$*"
	bad=1
}
pages=examples/spoke
overview=$pages/spoke.3

floor_files '*.md' >"$work/pages"
[ -s "$work/pages" ] || fail "no page of the manual was found"
while read -r page; do
	size=$(wc -c <"$page")
	[ "$size" -le 8192 ] || complain "$page: has $size bytes, at most 8192: make it two pages"
	grep -qF "]($page)" MANUAL.md || complain "MANUAL.md: has no link to $page"
done <"$work/pages"

for file in $(grep -o '`[a-z]*/[a-z/_]*`' ARCHITECTURE.md | tr -d '`' | sort -u); do
	found=
	for floor in . $floors; do
		[ ! -e "$floor/$file" ] && [ ! -e "$floor/$file.c" ] && [ ! -e "$floor/$file.h" ] || found=1
	done
	[ "$found" ] || complain "ARCHITECTURE.md: no floor has $file"
done

fields=$(sed -n 's/^\tX("\([a-z_]*\)", .*/\1/p' transport/wire/http/http.h)
[ "$fields" ] || fail "transport/wire/http/http.h: no fields of an error were found"
for field in $fields; do
	grep -q "[\`\"]$field[\`\"]" transport/HTTP.md ||
		complain "transport/HTTP.md: does not describe \"$field\", a field of an error"
done

for page in $pages/*.[1-9]; do
	if command -v mandoc >"$work/which"; then
		mandoc -Tlint -Wwarning "$page" >"$work/output" 2>&1 || true
	elif command -v groff >"$work/which"; then
		groff -mandoc -ww -z -Tutf8 "$page" >"$work/output" 2>&1 || true
	else
		fail "this needs mandoc or groff: apt-get install mandoc"
	fi
	if [ -s "$work/output" ]; then
		complain "$page: does not format cleanly"
		sed 's/^/    /' "$work/output"
	fi
done

public_headers | sed 's|.*/include/||; /_inline\.h$/d' | sort -u >"$work/headers"
sed -n 's/^\.It In //p; s/^\.In //p' $overview | tr ',' '\n' | sed 's/ *In //g; s/ *\.*$//' | tr -d ' ' |
	sort -u >"$work/named"
for header in $(comm -23 "$work/headers" "$work/named"); do
	complain "$overview: does not name <$header>"
done
for header in $(comm -13 "$work/headers" "$work/named"); do
	complain "$overview: names <$header>, which is not there"
done

# Functions, and constants, by a word that a header has.
cat $(public_headers) >"$work/public"
sed -n 's/^\.\(Fn\|Dv\|Vt\|Pq Dv\) \(struct \)*\([a-zA-Z_]*\)\( .*\)*$/\3/p' $overview | sort -u |
	grep -iE '^spokei?_' >"$work/words"
for word in $(cat "$work/words"); do
	grep -qw "$word" "$work/public" && continue
	# The errors are made from a table.
	grep -qE "^	X\(${word#SPOKE_}," "$work/public" || complain "$overview: no header has $word"
done

# The C code in displays.
awk '/^\.Bd/ { on = 1; next } /^\.Ed/ { on = 0 } on' $overview | sed 's/\\e/\\/g' >"$work/example.c"
if ! ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Itimer/include -Icore/include \
	-Itransport/include -Icluster/include "$work/example.c" >"$work/output" 2>&1; then
	complain "$overview: the example does not compile"
	sed 's/^/    /' "$work/output"
fi

exit $bad
