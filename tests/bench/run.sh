#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Benchmarks spoke against its peers, or against itself, in one run. Full runs and their discussion are in
# tests/bench/RESULTS.md.
#
#   sh tests/bench/run.sh race [--quick] [--unix] [--results <file>]
#       Calls of spoke, gRPC, ZeroMQ, nng, Cap'n Proto and redis (those that can be installed), and of
#       a thin RPC, which does what a call needs and nothing else: the limit. The server has core 0, the
#       client core 1: libraries with threads of their own are held to one core a side. --unix adds
#       rows over a unix socket; --results writes the tables as a chapter in Markdown, even after a
#       failure. At a real-time priority (chrt -f 5 sh ...) other processes disturb little, and only the
#       hypervisor's share counts as a disturbance.
#   sh tests/bench/run.sh rpc [--quick] [--unix] [--spin]
#       The same, with spoke, the thin RPC and a raw echo only. --spin measures those with a busy poll
#       of 50 us, compared with each other only.
#   sh tests/bench/run.sh waits [--quick] [--only <word>]
#       Adaptive waiting against spin = off where it could harm: both sides on one core, pauses between
#       calls, a busy machine, idle engines. Early writes as shipped against early in each turn and in
#       none.
#   sh tests/bench/run.sh growth [--quick] [--only <curve>]
#       Instructions of a call, counted by callgrind, with a growing number of connections, waiting calls,
#       endpoints or tickets.
#   sh tests/bench/run.sh fleet [--quick] [--no-lists]
#       A consumer of 10,000 providers: the longest turn while a list arrives, and while an entry changes;
#       the choice of each balancer among 3 to 10,000.
#   sh tests/bench/run.sh cost [--quick | --functions | --lines] [--plain | --hessian2]
#   sh tests/bench/run.sh cost --check | --update
#       Instructions of a call on both sides by place and by feature, compared with
#       tests/bench/cost/ratchet.txt.
#   sh tests/bench/run.sh codec [--quick]
#       Reading and writing the recorded bodies of Dubbo: Hessian 2, msgpack, and hessian.js on Node; then
#       calls with a text, three arguments, objects and so on, in Hessian 2 next to msgpack.
#   sh tests/bench/run.sh http [--quick]
#       A JSON echo over HTTP, next to Node's http module.
#   sh tests/bench/run.sh tls
#       Calls over TLS next to plain ones on one core, handshakes next to those of the library alone, and
#       the memory of connections.
#   sh tests/bench/run.sh timers [--quick]
#       The wheel against libev, libuv, libevent, and a wheel with plain lists, on one core.
#   sh tests/bench/run.sh memory [--quick]
#       Bytes per idle connection and per waiting call, and the cost of a million of them.
#   sh tests/bench/run.sh idle [--quick]
#       CPU time of a provider with 10,000 consumers that only send a heartbeat every 10 s, and the waits of
#       an idle pair in ten minutes that ended for no heartbeat.
#   sh tests/bench/run.sh lease [--quick]
#       Leases at a Redis server at a unix socket, next to its bare PING: acquired, handed over, taken
#       over from a killed process, 10,000 held. Skipped if Redis cannot be installed.
#   sh tests/bench/run.sh journal [--quick] [--folder FOLDER]
#       Tickets in a journal on the disk: CPU time of a deferred call, tickets a second beside a bare loop of
#       writes and syncs, the start with 100,000, the longest turn, the bytes of the files.
#   sh tests/bench/run.sh comet [--quick | N] [--no-idle] [--part storm|fanout|mute] [--only floor|spoke]
#       Gateways with N (100,000) long connections of browsers, next to a bare epoll server that sends
#       the same bytes: all connect, idle, broadcasts, pushes to one user meanwhile, clients that do not
#       read. Servers share core 0, the load core 1. A full run takes 5 minutes.
#   sh tests/bench/run.sh overload [--quick]
#       A provider whose pool gets half, once, twice and five times what it can answer: without a limit, with a
#       fixed one, and with executes = auto. 55 s.
#   sh tests/bench/run.sh hostile [--search <seconds>] [--seed <number>] [--save <file>]
#       CPU time that frames cost a provider for each of their bytes, beside an echo of 32 characters:
#       frames made of what is dear, those of tests/bench/hostile/worst.hex, and with --search frames
#       that changes at random have made dearer. The provider has no token, or its peers lack it.
#
# Prints TSV on stdout: medians of 5 repetitions. Progress, tables and
# missed targets go to stderr.
#
#   race, rpc  pattern (payload-connections x calls in flight on each), peer, calls_per_s, p50_us,
#              p99_us, cpu_us_per_call (both sides), and the ratio of the peer's calls/s to spoke's
#              (below 1: spoke is faster). A line that begins with # marks a row that was disturbed
#              or does not count. They fail if a call failed or a process died.
#   waits      case, peer, calls_per_s, cpu_us_per_call; the ratios and their bars go to stderr.
#   growth     curve, size, balancer, instructions of a call, both sides. Fails if a call failed.
#   cost       floor, room, instructions of a call with 64 in flight and with one, share; then
#              feature, depth, instructions saved by its stand-ins, instructions of its remaining
#              lines, share, target. Fails if calls have become more expensive, or cheaper without
#              an update of ratchet.txt.
#   codec      set of bodies, row, number of bodies, their bytes, MB/s (the best of five parts of the
#              time), instructions per byte and per body.
#   http       connections, requests in flight on each, peer, responses per second, CPU time of the
#              server per call, and the ratios of both to Node's (above 1: spoke is better).
#   tls        figure, its value for plain connections and for TLS, and the ratio (of CPU: above 1 TLS is
#              cheaper).
#   timers     workload, n, peer, value, unit, and the ratio to spoke as its engine uses it (above
#              1: spoke is faster).
#   fleet, memory, idle   figure, value, unit, target. They fail if a target was missed or a connection
#              was lost.
#   lease, journal  figure, value, unit, first bar, goal. They fail if a first bar was missed.
#   comet      figure, value of the floor and of spoke (medians of 2 or 3), their ratio, unit, first bar,
#              goal. Fails if a first bar was missed, or if an event was lost or out of order.
#   overload   load by the capacity, and calls answered in time by the capacity, with each limit. Fails if that
#              of the deadlines leaves less than 0.9 beyond the capacity.
#   hostile    frame (of which it was made), provider, its bytes, ns for each byte (the least of 15),
#              the ratio to the echo, answers for each frame, connections, requests that the handler got,
#              target (8 times the echo). Fails if one was missed.
#
# --quick measures less: at most 30 s, race 120 s, rpc 60 s. For more options see --help of
# the programs, and tests/bench/cost/run.sh for cost.
#
# Installs missing Debian packages, which is the only step that needs root. race leaves out peers that
# cannot be installed.
set -u
cd "$(dirname "$0")/../.." || exit 2

suites='race|rpc|waits|growth|fleet|cost|codec|http|tls|timers|memory|idle|comet|lease|journal|overload|hostile'

usage() {
	echo "usage: sh tests/bench/run.sh $suites [--quick] [option...]" >&2
	exit 2
}

suite=${1:-}
wanted=
case $suite in
rpc | waits | fleet | memory | idle | comet | journal | overload | hostile) peers='libev-dev' ;;
race)
	peers='libev-dev'
	# The server of redis is in its tools: the package named after it would start one as a service.
	wanted='g++ libgrpc++-dev libzmq3-dev libnng-dev libcapnp-dev redis-tools'
	;;
lease)
	peers='libev-dev'
	wanted=redis-tools
	;;
timers) peers='libev-dev libuv1-dev libevent-dev' ;;
cost | codec | growth) peers='libev-dev valgrind' ;;
http) peers='libev-dev nodejs' ;;
tls)
	peers='libev-dev libssl-dev'
	wanted='g++ libgrpc++-dev redis-tools'
	;;
*) usage ;;
esac
shift
case $suite-${1:-} in
comet-[0-9]*)
	conns=$1
	shift
	set -- --connections "$conns" "$@"
	;;
esac

logs=build/log
mkdir -p $logs

say() {
	echo "$*" >&2
}

# quietly <what> <command...>: logs the output, and prints the end of the log on failure.
quietly() {
	log=$logs/bench-$1.log
	shift
	if ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		say "tests/bench/run.sh: $* failed; full output: $log"
		exit 1
	fi
}

# The whole tree is configured, which also needs the packages of the tests.
packages="gcc cmake ninja-build pkg-config libmsgpack-dev libcmocka-dev $peers"

. tests/packages.sh
# shellcheck disable=SC2086
ensure_packages quietly $packages || exit 1
# shellcheck disable=SC2086
want_packages $wanted

quietly configure cmake --preset release
case $suite in
cost | codec | http | tls) exec sh "tests/bench/$suite/run.sh" "$@" ;;
esac
quietly build cmake --build --preset release --target "bench_$suite"
[ "$suite" != hostile ] || set -- --frames tests/bench/hostile/worst.hex "$@"
exec "build/release/tests/bench/bench_$suite" "$@"
