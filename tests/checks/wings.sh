#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A floor consists of wings: its folders, and each file that stands beside them, unless wings.txt has a
# line for the whole floor. A wing includes and calls only the wings that its line in wings.txt allows, and
# these lines form no circle. Inside a wing, files may use one another as they like. A call is a symbol that
# one object takes from another, as nm shows it. No internal header brings in more than 20 of the project's
# headers.
#
#   sh tests/checks/wings.sh build/dev --show   prints the arrows and the largest headers
set -eu
. "$(dirname "$0")/common.sh"

headers_max=20
linked >"$work/bad"
floor_files '*.[ch]' >"$work/files"
code strings=1 $(cat "$work/files") | grep -E '^[^:]*:[0-9]+:[ \t]*#[ \t]*include' >"$work/includes"

# A node is a path; an edge leads from one path to another.
awk '
FILENAME ~ /files$/ {
	exists[$0] = 1
	if ($0 ~ /\/include\/spoke\//) {
		name = $0
		sub(/.*\/include\//, "", name)
		public[name] = $0
	}
	next
}
{
	split($0, part, ":")
	name = $0
	gsub(/.*include[ \t]*[<"]|[>"].*/, "", name)
	if (name in public)
		print part[1], public[name]
	else if (name in exists)
		print part[1], name
}' "$work/files" "$work/includes" | sort -u >"$work/edges_include"

# An object made from another file (an embedded page) belongs to no wing.
awk '
FILENAME ~ /files$/ {
	exists[$0] = 1
	next
}
!($1 in exists) {
	next
}
!second && $2 !~ /^[Uwv]$/ {
	source[$3] = $1
}
second && $2 ~ /^[Uwv]$/ && $3 in source && source[$3] != $1 {
	print $1, source[$3]
}' "$work/files" "$work/symbols" second=1 "$work/symbols" | sort -u >"$work/edges_call"

awk -v max=$headers_max -v show="${2:-}" -v biggest="$work/biggest" -v arrows="$work/arrows" '
# A folder inside a wing belongs to it.
function wing(path,   part) {
	split(path, part, "/")
	if (part[1] in known)
		return part[1]
	sub(/\.[ch]$/, "", part[2])
	return part[1] "/" part[2]
}
function floor(path) {
	sub(/\/.*/, "", path)
	return path
}
function is_public(path) {
	return path ~ /\/include\/spoke\//
}
# May the first wing use the second? A line of wings.txt may name a whole floor.
function allowed(from, to,   whole) {
	whole = floor(to)
	if ((from, to) in listed) {
		used[from, to] = 1
		return 1
	}
	if ((from, whole) in listed && whole != floor(from)) {
		used[from, whole] = 1
		return 1
	}
	return 0
}
function collect(header, into,   i, count, list) {
	count = split(stands_on[header], list, " ")
	for (i = 1; i <= count; i++)
		if (!(list[i] in into)) {
			into[list[i]] = 1
			collect(list[i], into)
		}
}
FILENAME ~ /wings.txt$/ {
	sub(/#.*/, "")
	if (!NF)
		next
	if ($1 !~ /:$/) {
		print FILENAME ":" FNR ": not \"<wing>: <wing or floor>...\""
		next
	}
	from = substr($1, 1, length($1) - 1)
	if (from in known)
		print FILENAME ":" FNR ": a second line for " from
	known[from] = FNR
	for (i = 2; i <= NF; i++) {
		listed[from, $i] = FNR
		if (floor($i) == floor(from) && $i != from)
			print from, $i >arrows
	}
	next
}
FILENAME ~ /files$/ {
	is_floor[floor($0)] = 1
	if (!is_public($0))
		there[wing($0)] = 1
	next
}
{
	is_call = FILENAME ~ /call$/
	if (!is_call && $1 ~ /\.h$/)
		stands_on[$1] = stands_on[$1] " " $2
	# Every wing may use public headers, of its own floor too; they use one another.
	if (is_public($1) || is_public($2))
		next
	from = wing($1)
	to = wing($2)
	if (from == to)
		next
	if (show)
		arrow[from " -> " to] = arrow[from " -> " to] " " $1 (is_call ? " calls " : " includes ") $2 ";"
	if (!allowed(from, to))
		print $1 ": " (is_call ? "calls " : "includes ") $2 ", but " from " may not use " to
}
END {
	for (name in there)
		if (!(name in known))
			print "tests/checks/wings.txt: no line for " name
	for (name in known)
		if (!(name in there))
			print "tests/checks/wings.txt:" known[name] ": there is no " name
	for (pair in listed) {
		split(pair, part, SUBSEP)
		if (!(part[2] in there) && !(part[2] in is_floor))
			print "tests/checks/wings.txt:" listed[pair] ": there is no " part[2]
		if (!(pair in used) && part[1] in there && floor(part[1]) == floor(part[2]))
			print "tests/checks/wings.txt:" listed[pair] ": " part[1] " does not use " part[2]
	}
	for (header in stands_on) {
		if (is_public(header))
			continue
		delete set
		collect(header, set)
		count = 0
		for (other in set)
			count += other != header
		print count, header >biggest
		if (count > max)
			print header ": brings in " count " headers of the project, at most " max
	}
	if (show)
		for (name in arrow)
			print "show: " name ":" arrow[name]
}' $checks/wings.txt "$work/files" "$work/edges_include" "$work/edges_call" >"$work/found"

if [ "${2:-}" = --show ]; then
	sed -n 's/^show: //p' "$work/found" | sort
	sort -rn "$work/biggest" | head -n 20
fi
sed '/^show: /d' "$work/found" | sort >>"$work/bad"

# A line for each group of wings that reach one another.
touch "$work/arrows"
awk '
{
	follows[$1] = follows[$1] " " $2
	name[$1] = name[$2] = 1
}
function visit(at, from,   count, list, i) {
	count = split(follows[at], list, " ")
	for (i = 1; i <= count; i++)
		if (!((from, list[i]) in reaches)) {
			reaches[from, list[i]] = 1
			visit(list[i], from)
		}
}
END {
	for (at in name)
		visit(at, at)
	for (at in name) {
		if (at in told || !((at, at) in reaches))
			continue
		line = ""
		for (other in name)
			if ((at, other) in reaches && (other, at) in reaches) {
				told[other] = 1
				line = line " " other
			}
		print "tests/checks/wings.txt: a circle of wings:" line
	}
}' "$work/arrows" | sort >>"$work/bad"

cat "$work/bad"
[ ! -s "$work/bad" ]
