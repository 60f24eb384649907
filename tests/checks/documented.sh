#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Public declarations are documented: functions, structs, enums, typedefs, macros, variables, function
# pointers in structs, and the fields of options. Each has a comment before it or at its end, or follows
# a documented one without a blank line; a function pointer needs a comment of its own. At least 95 of 100
# have to be. Every C file of the product begins with a comment after its licence, which says what it is for.
#
#   sh tests/checks/documented.sh --list [folder]    prints the first sentence of each such comment instead
set -eu
list=
[ "${1:-}" != --list ] || { list=${2:-all}; set --; }
. "$(dirname "$0")/common.sh"

if [ "$list" ]; then
	[ "$list" != all ] || list="$floors examples"
	find $list -name '*.[ch]' | sort | xargs -r awk '
		FNR == 1 {
			text = ""
			over = 0
			next
		}
		over { next }
		{
			over = /\*\//
			gsub(/\/\*|\*\/|^[ \t]*\*/, "")
			gsub(/^[ \t]+|[ \t]+$/, "")
			over = over || $0 == "" && text != ""
			text = text (text == "" ? "" : " ") $0
			if (match(text, /[.] /) || over && match(text, /$/)) {
				print FILENAME ": " substr(text, 1, RSTART)
				over = 1
			}
		}'
	exit
fi

bad=0
awk -v missing="$work/missing" '
function begin(of_its_own) {
	kind = of_its_own
	first = FNR
	before = FNR - 1
	documented = commented[before] || (!of_its_own && ended[before] && group)
	in_group = !commented[before] && ended[before]
}
function finish() {
	if (has_comment)
		documented = 1
	if (!in_group || documented)
		group = documented
	ended[FNR] = 1
	if (counts) {
		all++
		name = text
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		if (documented)
			declared[name] = 1
		else if (!body_of || !(name in declared))
			bare[FILENAME ":" first ": has no comment: " text]
	}
	text = ""
}
# A line without its comments; has_comment, whether it had one or the end of one.
function code_of(line,   out, end) {
	out = ""
	has_comment = 0
	while (line != "") {
		if (inside) {
			has_comment = 1
			end = index(line, "*/")
			line = end ? substr(line, end + 2) : ""
			inside = !end
		} else if (match(line, /\/\*/)) {
			out = out substr(line, 1, RSTART - 1)
			line = substr(line, RSTART + 2)
			inside = has_comment = 1
			if (line == "")
				return out
		} else {
			return out line
		}
	}
	return out
}
FNR == 1 {
	inside = depth = body = 0
	text = ""
	delete commented
	delete ended
}
{
	line = code_of($0)
	gsub(/^[ \t]+|[ \t]+$/, "", line)
	gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
	if (line == "") {
		commented[FNR] = has_comment
		next
	}
}
# Names that are taken back are not public.
/^#[ \t]*undef/ {
	for (line in bare)
		if (index(line, FILENAME ":") == 1 && index(line, "define " $2 "(")) {
			delete bare[line]
			all--
		}
}
/^#/ && text == "" && !/^#[ \t]*define/ || /^SPOKE_(BEGIN|END)_DECLS/ {
	next
}
text == "" && !body && line !~ /^[{}]/ {
	begin(line ~ /\(\*/ && depth)
}
body {
	body += gsub(/\{/, "{", line) - gsub(/\}/, "}", line)
	next
}
line ~ /^#[ \t]*define/ || directive {
	if (!directive) {
		text = line
		counts = line !~ /define [A-Z_]+_H$/
	}
	directive = line ~ /\\$/
	if (!directive)
		finish()
	next
}
{
	text = text (text == "" ? "" : " ") line
	if (has_comment)
		documented = 1
	if (line ~ /\{$/ && text !~ /\)[^)]*\{$/ || text ~ /^enum[^;]*\{/) {
		# A struct, union or enum begins.
		counts = depth == 0
		if (depth == 0)
			options = text ~ /options|settings|limits/
		is_enum = text ~ /^(typedef )?enum/
		finish()
		depth++
		ended[FNR] = 0
		next
	}
	if (line ~ /\{$/) {
		# The body of a function, which may have been declared and documented before.
		counts = body_of = 1
		finish()
		body_of = 0
		body = 1
		next
	}
	if (text ~ /^\}/) {
		if (line ~ /;$/) {
			depth--
			ended[FNR] = depth
			text = ""
		}
		next
	}
	if (is_enum && depth) {
		text = ""
		next
	}
	if (line ~ /;$/) {
		counts = depth ? options || text ~ /\(\*/ : text !~ /^(struct|enum|union) [a-z_]+;$/
		finish()
	}
}
END {
	for (line in bare)
		print line >missing
	print all
}' $(public_headers) >"$work/all"
touch "$work/missing"

all=$(cat "$work/all")
without=$(wc -l <"$work/missing")
sort "$work/missing"
[ $((20 * without)) -le "$all" ] || bad=1
echo "$((all - without)) of $all public declarations are documented: $((100 * (all - without) / all)) %"

for source in $(floor_files '*.[ch]') $(find examples -name '*.[ch]' | sort); do
	sed -n 2p "$source" | grep -q '^/\*' || { echo "$source: does not begin with a comment that says what it is for" && bad=1; }
done
exit $bad
