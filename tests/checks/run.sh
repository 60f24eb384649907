#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every check, even after a failure. Prints a line with the duration for each, and the output of
# failing checks. Usage: sh tests/checks/run.sh [build directory [one without sanitizers, with LTO or not]]
set -u
cd "$(dirname "$0")/../.." || exit 2
output=$(mktemp) || exit 2
trap 'rm -f "$output"' EXIT
trap 'exit 2' HUP INT TERM

status=0
for check in floors page wings doors lists symbols headers readme manuals format tidy sizes words plain names documented mutants dependencies selftest; do
	begun=$(date +%s%N)
	build=${1:-build/dev}
	# Sanitizers add symbols; and LTO hides uses of the C library from all other checks.
	[ $check != symbols ] || build=${2:-$build}
	if sh tests/checks/$check.sh "$build" >"$output" 2>&1; then
		verdict=ok
	else
		verdict=FAIL
		status=1
	fi
	took_ms=$((($(date +%s%N) - begun) / 1000000))
	printf '%-4s  %-12s %3d.%d s\n' $verdict $check $((took_ms / 1000)) $((took_ms % 1000 / 100))
	[ $verdict = ok ] || sed 's/^/      /' "$output"
done
exit $status
