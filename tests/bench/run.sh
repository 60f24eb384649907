#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures spoke against its peers, all in one run.
#
#   sh tests/bench/run.sh timers [--quick]          the wheel against libev, libuv, libevent and a
#                                                   heap, on one core
#   sh tests/bench/run.sh memory [--quick]          bytes of idle connections and waiting calls, and
#                                                   what a million of these cost the others
#   sh tests/bench/run.sh idle [--quick]            CPU time of a provider whose 10,000 consumers say
#                                                   nothing but heartbeats, one each in 10 s
#   sh tests/bench/run.sh balance [--quick] [--check]
#                                                   CPU time of choosing one of 3 to 1,000 providers,
#                                                   for each balancer
#   sh tests/bench/run.sh engines [--quick]         two engines in each process against one, and calls
#                                                   that 8 threads wait for against those of an engine
#   sh tests/bench/run.sh rpc [--quick] [--unix]    calls against a raw echo on libev, and that one
#                                                   against its twin on bare epoll; the server on
#                                                   core 0, the client on core 1
#
# Prints TSV on stdout, medians of 5 repetitions, for balance of 9. timers: workload, n, peer, value,
# unit, and the ratio to spoke as its engine uses it (above 1: spoke is better). rpc: pattern
# (payload-connections x outstanding calls on each), peer, calls_per_s, p50_us, p99_us,
# cpu_us_per_call (both sides), and the ratio of the peer's calls/s to spoke's (below 1: spoke is
# better); a line that begins with # says that a row was disturbed or does not count. memory, idle:
# figure, value, unit, target. balance: balancer, what was measured, ns for each number of
# providers, target for 100 of them. What goes on, and which targets were reached, goes to stderr.
# --quick takes less than 30 s (timers; leaves out the large sizes; memory, idle: a tenth of the
# connections and calls; balance: of the picks) or 60 s (rpc; 2 repetitions of 3 patterns). --unix
# adds rows over a unix socket. rpc fails when a call failed or a process died, memory and idle
# when a target was missed, idle also when a connection was lost, balance when a target was missed
# and --check was said. More options, for looking closer, are those of the programs themselves:
# --help.
#
# Missing Debian packages are installed, for which alone root is needed.
set -u
cd "$(dirname "$0")/../.." || exit 2

usage() {
	echo "usage: sh tests/bench/run.sh timers|rpc|memory|idle|balance|engines [--quick] [option...]" >&2
	exit 2
}

suite=${1:-}
case $suite in
timers) peers='libev-dev libuv1-dev libevent-dev' ;;
rpc | memory | idle | balance | engines) peers='libev-dev' ;;
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
ensure_packages quietly $packages || exit 1

quietly configure cmake --preset release
quietly build cmake --build --preset release --target "bench_$suite"
exec "build/release/tests/bench/bench_$suite" "$@"
