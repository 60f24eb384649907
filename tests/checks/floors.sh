#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that includes go down: never to a higher floor, never in a circle of several folders. Public headers
# include only public headers and the C library. Examples include only public headers. The objects show
# calls without an include: a floor may use only symbols of itself or of lower floors.
set -eu
. "$(dirname "$0")/common.sh"

linked >"$work/bad"
c_files >"$work/files"
code strings=1 $(cat "$work/files") | grep -E '^[^:]*:[0-9]+:[ \t]*(#|%:|\?\?=)' >"$work/directives" || true

# Reads the list of files, then the preprocessor lines. Prints errors, and writes the edges between rooms of
# different folders.
awk -F: -v edges="$work/edges" '
function folder(path) {
	return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "."
}
function floor(path) {
	sub(/\/.*/, "", path)
	return path
}
# A room is a pair noun.c and noun.h, with noun_inline.h if present. A public header is a room of its own,
# because several rooms may use its structs.
function room(path,   is_public) {
	is_public = path in public
	sub(/_inline\.h$/, ".h", path)
	if (!is_public)
		sub(/\.[ch]$/, "", path)
	return path
}
function complain(what) {
	print $1 ":" $2 ": " what
}
BEGIN {
	count = split("timer core transport cluster examples tests", order, " ")
	for (i = 1; i <= count; i++)
		rank[order[i]] = i
	count = split("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp " \
		"signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string " \
		"tgmath threads time uchar wchar wctype sys/types sys/uio", order, " ")
	for (i = 1; i <= count; i++)
		libc[order[i] ".h"] = 1
	# Headers of libraries that a user needs only for this public header.
	adapter["core/include/spoke/value_msgpack.h", "msgpack.h"] = 1
}
FILENAME ~ /files$/ {
	exists[$0] = 1
	if ($0 ~ /\/include\/spoke\//) {
		name = $0
		sub(/.*\/include\//, "", name)
		if (name in owner)
			print $0 ": the name is taken by " owner[name]
		owner[name] = $0
		public[$0] = 1
	}
	next
}
$3 !~ /^[ \t]*#[ \t]*(include|define|undef|if|ifdef|ifndef|elif|else|endif|error|pragma)([ \t!("<]|$)/ {
	complain("not a directive of the usual form")
	next
}
$3 !~ /#[ \t]*include/ {
	next
}
$3 !~ /include[ \t]*(<[^>]+>|"[^"]+")[ \t]*$/ {
	complain("an include of neither <...> nor \"...\"")
	next
}
{
	from = $1
	quoted = $3 ~ /include[ \t]*"/
	name = $3
	gsub(/.*include[ \t]*[<"]|[>"].*/, "", name)

	target = name
	if (!quoted && name ~ /^spoke\//) {
		target = owner[name]
		if (target == "") {
			complain("no floor has a public header <" name ">")
			next
		}
	} else if (!quoted) {
		if (name in exists || name ~ /^\/|\.\//)
			complain("a file of the tree, or a path, in <" name ">")
		if (from in public && !(name in libc) && !((from, name) in adapter))
			complain("a public header includes <" name ">, which is not the C library")
		next
	} else if (floor(from) ~ /^(tests|examples)$/ && (folder(from) "/" name) in exists) {
		target = folder(from) "/" name
	} else if (!(name in exists)) {
		complain("no file \"" name "\" seen from the root of the tree")
		next
	}

	if (target in public && quoted)
		complain("a public header is included as <spoke/...>: \"" name "\"")
	if (from in public && quoted)
		complain("a public header includes \"" name "\", which is not installed")
	if (rank[floor(target)] > rank[floor(from)])
		complain("floor " floor(from) " looks up at \"" name "\"")
	if (floor(from) == "examples" && quoted && floor(target) != "examples")
		complain("an example includes \"" name "\", which users do not have")
	if (folder(from) != folder(target))
		print room(from), room(target) >edges
}' "$work/files" "$work/directives" >>"$work/bad"

touch "$work/edges"
if ! tsort "$work/edges" >"$work/order" 2>"$work/loops"; then
	sed -n 's/^tsort: \([^ ]*\/[^ ]*\)$/\1: in a circle of includes/p' "$work/loops" |
		grep -v "^$work" >>"$work/bad" || true
fi

# Reads the symbols twice: first definitions, then references.
awk -v floors="$floors" '
BEGIN {
	count = split(floors, order, " ")
	for (i = 1; i <= count; i++)
		rank[order[i]] = i
}
$3 !~ /^spoke/ {
	next
}
{
	floor = $1
	sub(/\/.*/, "", floor)
	wanted = $2 ~ /^[Uwv]$/
}
NR == FNR && !wanted {
	if ($3 in source)
		print $1 ": defines " $3 ", as does " source[$3]
	source[$3] = $1
	home[$3] = floor
}
NR != FNR && wanted {
	if (!($3 in home))
		print $1 ": wants " $3 ", which no floor defines"
	else if (rank[home[$3]] > rank[floor])
		print $1 ": floor " floor " looks up at " $3 " of " source[$3]
}' "$work/symbols" "$work/symbols" >>"$work/bad"

cat "$work/bad"
[ ! -s "$work/bad" ]
