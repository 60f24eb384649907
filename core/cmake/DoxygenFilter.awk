# SPDX-License-Identifier: Apache-2.0
# awk -f DoxygenFilter.awk <file>: writes a public header or a page in the form that Doxygen reads; the number of
# lines stays. The first comment describes the header. Headings get the names that links use.
FILENAME ~ /\.md$/ {
	if (/^```/)
		fenced = !fenced
	if (!fenced && /^#+ /) {
		slug = tolower($0)
		sub(/^#+ /, "", slug)
		gsub(/[^a-z0-9 -]/, "", slug)
		gsub(/ /, "-", slug)
		$0 = $0 " {#" slug "}"
	}
	print
	next
}

NR == 1 { print ""; next }
/^[ \t]*\/\*/ && !in_comment {
	is_first = !begun
	begun = 1
	sub(/\/\*/, is_first ? "/** @file" : "/**")
}
/[;,] *\/\* / { sub(/\/\* /, "/**< ") }
{ in_comment = (in_comment || /\/\*/) && !/\*\// }
{ print }
