#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists and counts the functions that are entered between the read of a reply and the callback of its
# call, in the build that is given (default: build/dev). Needs gdb. A development aid: no check uses it.
#
#   sh tests/bench/stops/run.sh [build folder] [--counts]
#
# functions: entered, the callback included, inlined ones not. files: that they are in. climbs: calls
# from one file to another. returns: functions left before the callback.
set -eu
cd "$(dirname "$0")/../../.."
build=build/dev
counts=
for option in "$@"; do
	case $option in
	--counts) counts=1 ;;
	*) build=$option ;;
	esac
done
cmake --build "$build" --target bench_stops >"$build/stops.log" || {
	tail -n 30 "$build/stops.log" >&2
	exit 1
}
gdb -batch -ex "python out = '$build/stops.txt'" -x tests/bench/stops/trace.py \
	"$build/tests/bench/bench_stops" >"$build/stops.log" 2>&1
if [ "$counts" ]; then
	grep '^#' "$build/stops.txt"
else
	cat "$build/stops.txt"
fi
