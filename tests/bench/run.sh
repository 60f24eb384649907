#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures spoke against its peers, or against itself, all in one run. Full runs and what they say
# are in tests/bench/RESULTS.md.
#
#   sh tests/bench/run.sh race [--quick] [--unix] [--results <file>]
#       Calls beside gRPC, ZeroMQ, nng, Cap'n Proto and redis, those of them that can be installed,
#       and beside a raw echo on libev and one on bare epoll, which are the limit; the server on
#       core 0, the client on core 1. --unix adds rows over a unix socket, --results writes the
#       tables as a chapter in Markdown, also when something failed.
#   sh tests/bench/run.sh rpc [--quick] [--unix] [--spin]
#       The same beside the raw echoes alone. --spin measures those that look for 50 us before they
#       sleep, spoke and bare epoll, which are compared with nobody else.
#   sh tests/bench/run.sh engines [--quick]
#       Two engines in each process against one, the same of threads that echo without spoke, and
#       calls that 8 threads wait for against those of an engine.
#   sh tests/bench/run.sh growth [--quick] [--plots <folder>] [--instructions]
#       Calls while connections, calls that wait, endpoints or tickets become more, beside a raw
#       echo; plots go to the folder, else to build/bench. --instructions counts them by callgrind.
#   sh tests/bench/run.sh cost [--quick | --functions | --lines] [--plain]
#   sh tests/bench/run.sh cost --check | --update
#       Instructions of a call, both sides, where they go, what features cost, and whether they
#       are still as many as tests/bench/cost/ratchet.txt says.
#   sh tests/bench/run.sh timers [--quick]
#       The wheel against libev, libuv, libevent and a heap, on one core.
#   sh tests/bench/run.sh memory [--quick]
#       Bytes of idle connections and waiting calls, and what a million of these cost the others.
#   sh tests/bench/run.sh idle [--quick]
#       CPU time of a provider whose 10,000 consumers say nothing but heartbeats, one each in 10 s.
#   sh tests/bench/run.sh balance [--quick] [--check]
#       CPU time of choosing one of 3 to 1,000 providers, for each balancer.
#
# Prints TSV on stdout, medians of 5 repetitions, for engines and balance of 9; what goes on, tables
# and which targets were reached go to stderr.
#
#   race, rpc  pattern (payload-connections x outstanding calls on each), peer, calls_per_s, p50_us,
#              p99_us, cpu_us_per_call (both sides), and the ratio of the peer's calls/s to spoke's
#              (below 1: spoke is better); a line that begins with # says that a row was disturbed
#              or does not count. They fail when a call failed or a process died.
#   engines    case, calls_per_s, cpu_us_per_call (both sides), the ratios of both to the first case
#              of its pair, of which the second may have a target, and how often threads were
#              switched for 1,000 calls; fails when a call failed.
#   growth     curve, size, peer, figures as those of rpc, and the ratios of calls/s and of CPU per
#              call to those of the raw echo; fails as rpc does.
#   cost       floor, room, instructions of a call while 64 wait at a time and while it is alone,
#              share; then feature, depth, what its stand-ins save, what its lines elsewhere have,
#              share, target. Fails when calls have become dearer, or cheaper and
#              ratchet.txt does not say so yet.
#   timers     workload, n, peer, value, unit, and the ratio to spoke as its engine uses it (above
#              1: spoke is better).
#   memory, idle   figure, value, unit, target; they fail when a target was missed or a connection
#              was lost.
#   balance    balancer, what was measured, ns for each number of providers, target for 100 of
#              them; fails when that was missed and --check was said.
#
# --quick measures less, in less than 30 s, race in 120, rpc and growth in 60. More options, for
# looking closer, are those of the programs themselves: --help; of cost tests/bench/cost/run.sh has
# them.
#
# Missing Debian packages are installed, for which alone root is needed; a peer of race that cannot
# be is left out.
set -u
cd "$(dirname "$0")/../.." || exit 2

suites='race|rpc|engines|growth|cost|timers|memory|idle|balance'

usage() {
	echo "usage: sh tests/bench/run.sh $suites [--quick] [option...]" >&2
	exit 2
}

suite=${1:-}
wanted=
case $suite in
rpc | engines | growth | memory | idle | balance) peers='libev-dev' ;;
race)
	peers='libev-dev'
	# The server of redis is in its tools: the package named after it would start one as a service.
	wanted='g++ libgrpc++-dev libzmq3-dev libnng-dev libcapnp-dev redis-tools'
	;;
timers) peers='libev-dev libuv1-dev libevent-dev' ;;
cost) peers='libev-dev valgrind' ;;
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
# shellcheck disable=SC2086
want_packages $wanted

quietly configure cmake --preset release
[ "$suite" != cost ] || exec sh tests/bench/cost/run.sh "$@"
quietly build cmake --build --preset release --target "bench_$suite"
exec "build/release/tests/bench/bench_$suite" "$@"
