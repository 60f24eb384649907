# SPDX-License-Identifier: Apache-2.0
# awk -v name=<header, as consumer.h> -v version=<of spoke> [-v links=<directory>] -f HeaderManual.awk <header>
# Writes the manual page spoke_<header>(3) from the comments of a public header. For each function of the
# library, writes a page to `links` that refers to it.

function escaped(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text ~ /^[.']/ ? "\\&" text : text
}

# Prints a comment: paragraphs, and lines as they are where they are indented by four or in a list.
function print_comment(count, i, line, literal, started) {
	for (i = 1; i <= count; i++) {
		line = comment[i]
		if (line ~ /^ ? ? ?[^ ]/ && literal) {
			print ".fi\n.RE"
			literal = 0
		}
		if (line == "") {
			if (!literal)
				print ".PP"
			else if (comment[i + 1] ~ /^    /)
				print ".sp"
		} else if (line ~ /^    / && !literal && (i == 1 || comment[i - 1] == "")) {
			print ".RS 4\n.nf"
			literal = 1
			print escaped(substr(line, 5))
		} else if (literal) {
			print escaped(substr(line, 5))
		} else {
			sub(/^ +/, "", line)
			if (line ~ /^- /)
				print ".br"
			print escaped(line)
		}
	}
	if (literal)
		print ".fi\n.RE"
}

function flush_block(i) {
	if (lines == 0 && comments == 0)
		return
	if (!begun) {
		begin_page()
		if (lines == 0) {
			comments = 0
			return
		}
	}
	if (lines > 0) {
		print ".PP\n.nf"
		for (i = 1; i <= lines; i++)
			print escaped(code[i])
		print ".fi"
	}
	if (comments > 0) {
		print (lines > 0 ? ".RS 4" : ".PP")
		print_comment(comments)
		if (lines > 0)
			print ".RE"
	}
	lines = comments = 0
}

# The first comment describes the header.
function begin_page(i, first) {
	begun = 1
	for (i = 1; i <= comments && comment[i] != "" && comment[i] !~ /^    /; i++)
		first = first (i > 1 ? " " : "") comment[i]
	sub(/[.:](  *.*)?$/, "", first)
	print ".\\\" Made from the comments of <spoke/" name ">."
	printf ".TH SPOKE_%s 3 \"\" \"spoke %s\" \"Library functions\"\n", toupper(name), version
	print ".SH NAME\nspoke_" name " \\- " escaped(first == "" ? "a header of spoke" : first)
	print ".SH SYNOPSIS\n.nf\n#include <spoke/" name ">\n.fi"
	print ".SH DESCRIPTION"
	if (lines == 0)
		print_comment(comments)
	print ".SH DECLARATIONS"
}

function link_page(line) {
	if (links == "" || line !~ /^SPOKE_API /)
		return
	if (match(line, /spoke_[a-z0-9_]+\(/)) {
		line = substr(line, RSTART, RLENGTH - 1)
		print ".so man3/spoke_" name ".3" >(links "/" line ".3")
		close(links "/" line ".3")
	}
}

NR == 1 { next }

# Code of C++ does not repeat what the code of C says.
/^#if.*__cplusplus/ { cplusplus = 1; depth = 0; next }
cplusplus && /^#if/ { depth++ }
cplusplus && /^#endif/ && depth-- == 0 { cplusplus = 0; next }
cplusplus && /^#else/ && depth == 0 { cplusplus = 0; next }
cplusplus { next }

/^#(ifndef|if|endif|else|elif|include|undef)|^SPOKE_(BEGIN|END)_DECLS|^#define SPOKE_[A-Z0-9_]*_H$/ { flush_block(); next }

# Bodies and the rest of macros are not part of the contract.
body { if (/^}/) body = 0; next }
continued { continued = /\\$/; next }

in_comment || /^\/\*/ {
	text = $0
	gsub(/\t/, "    ", text)
	was_comment = in_comment
	in_comment = !sub(/ *\*\/ *$/, "", text)
	if (!was_comment) {
		flush_block()
		sub(/^\/\*+ ?/, "", text)
	} else {
		sub(/^ \* ?/, "", text)
	}
	if (text != "" || (comments > 0 && in_comment))
		comment[++comments] = text
	next
}

/^$/ { flush_block(); next }
/^{/ { body = 1; next }
{
	continued = /\\$/
	text = $0
	sub(/[ \t]*\\$/, "", text)
	gsub(/\t/, "    ", text)
	sub(/^SPOKE_API /, "", text)
	gsub(/SPOKE_MUST_USE /, "", text)
	code[++lines] = text
	link_page($0)
}

END { flush_block() }
