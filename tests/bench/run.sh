#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures spoke against its peers, in one run on one core.
#
#   sh tests/bench/run.sh timers [--quick]    the wheel against libev, libuv, libevent and a heap
#
# Prints TSV on stdout: workload, n, peer, value (median of 5 repetitions), unit, and the ratio to
# spoke as its engine uses it (above 1: spoke is better). What goes on, and which targets were
# reached, goes to stderr. --quick takes less than 30 s and leaves out the large sizes. More
# options, for looking closer, are those of the program itself: bench_timers --help.
#
# Missing Debian packages are installed, for which alone root is needed.
set -u
cd "$(dirname "$0")/../.." || exit 2

usage() {
	echo "usage: sh tests/bench/run.sh timers [--quick] [option...]" >&2
	exit 2
}

suite=${1:-}
case $suite in
timers) peers='libev-dev libuv1-dev libevent-dev' ;;
*) usage ;;
esac
shift

logs=build/log
mkdir -p $logs

say() {
	echo "$*" >&2
}

# quietly <what> <command...>: its output goes to a log, of which a failure shows the end.
quietly() {
	log=$logs/bench-$1.log
	shift
	if ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		say "tests/bench/run.sh: $* failed; all of its output: $log"
		exit 1
	fi
}

# The whole tree is configured, hence also what its tests need.
packages="gcc cmake ninja-build pkg-config libmsgpack-dev libcmocka-dev $peers"

. tests/packages.sh
# shellcheck disable=SC2086
ensure_packages quietly $packages

quietly configure cmake --preset release
quietly build cmake --build --preset release --target "bench_$suite"
exec "build/release/tests/bench/bench_$suite" "$@"
