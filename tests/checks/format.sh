#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every C file is formatted by clang-format.
set -eu
. "$(dirname "$0")/common.sh"

if ! c_files | xargs clang-format --dry-run -Werror 2>"$work/output"; then
	awk -F: '/: error: / {
		if (!($1 in first))
			first[$1] = $2
		places[$1]++
	}
	END {
		for (file in first)
			print file ":" first[file] ": not as clang-format writes it, in " places[file] " places"
	}' "$work/output" | sort >"$work/bad"
	[ -s "$work/bad" ] || cat "$work/output"
	cat "$work/bad"
	fail "to repair: clang-format -i <file>"
fi
