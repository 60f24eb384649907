#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits the size of files to 1000 and of functions to 60 code lines, or to the maximum in sizes.txt. Each
# larger maximum there has a reason.
set -eu
. "$(dirname "$0")/common.sh"

code $(c_files) >"$work/code"
ctags -x --language-force=C --kinds-C=f --fields=+e --_xformat='%F:%n:%{end}:%N' \
	$(c_files) >"$work/functions"

awk -F: -v file_max=1000 -v function_max=60 '
function judge(what, size, max) {
	seen[what] = 1
	if (what in allowed) {
		if (size <= max)
			print "tests/checks/sizes.txt: " what " has " size " code lines and needs no entry"
		max = allowed[what]
	}
	if (size > max)
		print what ": " size " code lines, at most " max "; divide it, or decide otherwise in" \
			" tests/checks/sizes.txt: \"" what " " size "  # why\""
}
FILENAME ~ /sizes.txt$/ {
	if ($0 !~ /^#/ && $0 != "") {
		if ($0 !~ /^[^ ]+ [0-9]+  # ./)
			print FILENAME ":" FNR ": not \"<file>[:<function>] <maximum>  # why\""
		split($0, entry, " ")
		allowed[entry[1]] = entry[2] + 0
	}
	next
}
FILENAME ~ /code$/ {
	is_code[$1, $2] = 1
	size_of[$1]++
	next
}
{
	size = 0
	for (line = $2; line <= $3; line++)
		size += (($1, line) in is_code)
	judge($1 ":" $4, size, function_max)
}
END {
	for (path in size_of)
		judge(path, size_of[path], file_max)
	for (what in allowed)
		if (!(what in seen))
			print "tests/checks/sizes.txt: there is no " what
}' $checks/sizes.txt "$work/code" "$work/functions" >"$work/bad"

sort "$work/bad"
[ ! -s "$work/bad" ]
