#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks access to the machine: only the files in doors.txt may use the clock, random numbers, memory,
# descriptors, threads, libev and msgpack-c. Some functions are banned everywhere. kinds.txt lists the
# names. The check reads the text of all C files. It also reads the objects of the library, because the
# text does not show everything: symbols, and instructions that access the machine.
set -eu
. "$(dirname "$0")/common.sh"

linked >"$work/bad"
{
	awk '$2 ~ /^[Uwv]$/ && $3 !~ /^spoke/ { print $1, $3 }' "$work/symbols"
	xargs -r objdump -d --no-show-raw-insn <"$work/objects" | awk '
	/^[^ ].*file format/ {
		sub(/.*CMakeFiles\/spoke_virtual.dir/, "core")
		sub(/.*CMakeFiles\/spoke_/, "")
		sub(/\.dir\//, "/")
		sub(/\.o: .*/, "")
		source = $0
	}
	$2 ~ /^(rdtscp?|rdpmc|rdrand|rdseed|syscall|sysenter|svc)$/ { print source, $2 }'
} >"$work/wants"

code strings=1 $(c_files) >"$work/strings"
code $(c_files) >"$work/code"
grep -E '^[^:]*:[0-9]+:[ \t]*#[ \t]*include' "$work/strings" >"$work/includes" || true
# Reads kinds, doors, then code; prints errors.
awk '
function judge(path, where, name, what) {
	if (what == "pure" || allowed(path, what))
		return
	said[path, name] = 1
	print where ": " name " is " (what == "never" ? "banned" : \
		"needs the permission \"" what "\": use the env, or list the file in tests/checks/doors.txt")
}
# Returns the kind of a name in the code; a called name has its parenthesis.
function kind_of(name, called,   len) {
	if (name in kind)
		return kind[name]
	if (called && (name "(") in kind)
		return kind[name "("]
	for (len = length(name); len > 1; len--) {
		if ((substr(name, 1, len) "*") in kind)
			return kind[substr(name, 1, len) "*"]
		if (called && (substr(name, 1, len) "*(") in kind)
			return kind[substr(name, 1, len) "*("]
	}
	return sub(/^__builtin_/, "", name) ? kind_of(name, called) : ""
}
# Returns the kind of a symbol, which may be the fortified, versioned or wide form of a name.
function kind_of_symbol(name,   what) {
	sub(/@.*/, "", name)
	if ((what = kind_of(name, 1)) != "")
		return what
	sub(/^__isoc[0-9]*_/, "", name)
	if (name ~ /^__.*_chk$/)
		name = substr(name, 3, length(name) - 6)
	sub(/64(_.*)?$/, "", name)
	return kind_of(name, 1)
}
# Marks doors as used, so that unused permissions are reported.
function allowed(path, what,   ok, door) {
	for (door in doors)
		if (door == path || (door ~ /\/$/ && index(path, door) == 1))
			if (index("," doors[door] ",", "," what ",")) {
				used[door, what] = 1
				ok = 1
			}
	return ok
}
FILENAME ~ /kinds.txt$/ {
	for (i = 2; i <= NF && !/^#/; i++)
		kind[$i] = $1
	next
}
FILENAME ~ /doors.txt$/ {
	if ($1 !~ /^#/ && NF) {
		doors[$1] = $2
		if ($0 !~ /  # ./)
			print FILENAME ":" FNR ": has no reason after \"  # \""
	}
	next
}
FILENAME ~ /wants$/ {
	if ((what = kind_of_symbol($2)) == "")
		print $1 ": " $2 " is called, but has no kind in tests/checks/kinds.txt"
	else if (!(($1, $2) in said))
		judge($1, $1, $2, what)
	next
}
{
	path = $0
	sub(/:.*/, "", path)
	where = $0
	match(where, /^[^:]*:[0-9]*/)
	where = substr(where, 1, RLENGTH)
	rest = substr($0, RLENGTH + 2)
}
FILENAME ~ /includes$/ {
	if (match(rest, /<[^>]*>|"[^"]*"/)) {
		name = substr(rest, RSTART, RLENGTH)
		sub(/^"/, "<", name)
		sub(/"$/, ">", name)
		if ((what = kind_of(name, 0)) != "")
			judge(path, where, name, what)
	}
	next
}
rest !~ /^[ \t]*#[ \t]*include/ {
	before = ""
	while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
		name = substr(rest, RSTART, RLENGTH)
		before = before substr(rest, 1, RSTART - 1)
		rest = substr(rest, RSTART + RLENGTH)
		# Members (after . or ->) are allowed, e.g. env->net->read.
		if (before !~ /(\.|->)[ \t]*$/) {
			called = rest ~ /^[ \t]*\(/ || (before ~ /\([ \t]*$/ && rest ~ /^[ \t]*\)[ \t)]*\(/)
			if ((what = kind_of(name, called)) != "")
				judge(path, where, name, what)
		}
		before = "x"
	}
}
END {
	for (door in doors) {
		count = split(doors[door], list, ",")
		for (i = 1; i <= count; i++)
			if (door !~ /\/$/ && !((door, list[i]) in used))
				print "tests/checks/doors.txt: " door " no longer needs " list[i]
	}
}' $checks/kinds.txt $checks/doors.txt "$work/includes" "$work/code" "$work/wants" >>"$work/bad"

sed -n "/^[^#]/s/ .*//p" $checks/doors.txt | while read -r door; do
	[ -e "$door" ] || echo "$checks/doors.txt: there is no $door"
done >>"$work/bad"

sort -u "$work/bad"
[ ! -s "$work/bad" ]
