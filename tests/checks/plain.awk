# SPDX-License-Identifier: Apache-2.0
# Prints the words of what a person reads in the files given, as "file:line word": of C its comments and
# the strings that have a space, of scripts the same, of Markdown all but code, of the rest each line. An
# empty word ends a sentence, "?" one that is a question. Identifiers, in backquotes or with code around
# them, are printed as "`".
function emit(word) {
	print FILENAME ":" FNR, word
}
function words(text,   token, before, after) {
	gsub(/`[^`]*`/, " ` ", text)
	gsub(/\\[nt]/, "  ", text)
	while (match(text, /[A-Za-z_][A-Za-z_0-9\x27]*|[.:;!?]|`|,|[()]/)) {
		token = substr(text, RSTART, RLENGTH)
		before = RSTART > 1 ? substr(text, RSTART - 1, 1) : ""
		text = substr(text, RSTART + RLENGTH)
		after = substr(text, 1, 2)
		if (token ~ /^[.:;!?]$/ && after !~ /^[^ \t"')]/)
			emit(token == "?" ? "?" : token)
		else if (token ~ /^[A-Za-z_]/)
			emit(before ~ /[$.>\/&{_%\\-]/ || after ~ /^(->|[\[(=_\/.][a-z0-9_]|-[a-z])/ ? "`" : token)
		else if (token ~ /[`,()]/)
			emit(token)
	}
}
FNR == 1 {
	inside = fenced = markup = 0
	is_c = FILENAME ~ /\.(c|h|cc)$/
	is_html = FILENAME ~ /\.html$/
	is_markdown = FILENAME ~ /\.md$/
	is_script = FILENAME ~ /\.(sh|awk)$|^\.ci\/|\/completion\//
	emit("")
}
is_markdown && /^```/ {
	fenced = !fenced
	emit("")
	next
}
fenced {
	next
}
is_html {
	if (/<(script|style)/)
		is_code = 1
	if (/<\/(script|style)/)
		is_code = 0
	if (!is_code)
		gsub(/<[^>]*>|[a-z-]+="[^"]*"/, " ")
}
is_script && !/^[ \t]*#/ {
	emit("")
	while (match($0, /"([^"\\]|\\.)*"/)) {
		text = substr($0, RSTART + 1, RLENGTH - 2)
		$0 = substr($0, RSTART + RLENGTH)
		if (text ~ /[^ ] [^ ]/)
			words(text)
		emit("")
	}
	next
}
!is_c && !(is_html && is_code) {
	if (/^[ \t]*(#[ \t]*)?$/)
		emit("")
	if (!/^\.(\\"|[A-Z][a-z]? )/ || /^\.(It|Sh|Ss|Nd|Ql)/)
		sub(/^[ \t]*(#+|\*|-|>|\||[0-9]+\.) /, " . ")
	words($0)
	next
}
{
	rest = $0
	while (rest != "") {
		if (inside) {
			end = index(rest, "*/")
			text = end ? substr(rest, 1, end - 1) : rest
			rest = end ? substr(rest, end + 2) : ""
			sub(/^[ \t]*\*/, "", text)
			if (text ~ /^[ \t]*$/ && !end)
				emit("")
			words(text)
			inside = !end
			if (end)
				emit("")
			continue
		}
		if (!match(rest, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
			if (rest ~ /[^ \t\\]/ && joined) {
				emit("")
				joined = 0
			}
			break
		}
		token = substr(rest, RSTART, RLENGTH)
		if (substr(rest, 1, RSTART - 1) ~ /[^ \t]/ || token ~ /^\//) {
			if (joined)
				emit("")
			joined = 0
		}
		rest = substr(rest, RSTART + RLENGTH)
		if (token == "/*") {
			inside = 1
			emit("")
		} else if (token == "//") {
			words(rest)
			rest = ""
			emit("")
		} else if (token ~ /^".* .*"$/) {
			if (!joined)
				emit("")
			joined = 1
			words(substr(token, 2, length(token) - 2))
		}
	}
}
