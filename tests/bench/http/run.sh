#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares a JSON echo over HTTP of spoke with that of Node, in one run: the server has core 0, the client
# core 1. Called by sh tests/bench/run.sh http. Needs a configured build/release, and node.
#
#   --quick             fewer and shorter rounds
set -eu
cd "$(dirname "$0")/../../.." || exit 2

rounds=5
ms=2000
[ "${1:-}" != --quick ] || { rounds=3; ms=700; }
cmake --build build/release --target bench_http_server bench_http_client >&2
programs=build/release/tests/bench
work=$(mktemp -d)
spoke=
node=
trap 'kill $spoke $node 2>"$work/ended" || true; rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

taskset -c 0 $programs/bench_http_server >"$work/spoke" &
spoke=$!
taskset -c 0 node tests/bench/http/server.js >"$work/node" &
node=$!
for peer in spoke node; do
	for _ in $(seq 100); do
		[ ! -s "$work/$peer" ] || break
		sleep 0.1
	done
	test -s "$work/$peer"
done

# Prints the CPU time of a process in milliseconds.
cpu_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$1/stat"
}

# <peer> <process> <connections> <depth>: notes calls per second, and CPU time of the server per call in us.
load() {
	before=$(cpu_ms "$2")
	figures=$(taskset -c 1 $programs/bench_http_client "$(cat "$work/$1")" "$3" "$4" $ms)
	echo "$figures $before $(cpu_ms "$2")" |
		awk '{ printf "%d %.2f\n", $1, ($4 - $3) * 1000 / $2 }' >>"$work/$1.$3.$4"
}

median() { # <file> <column>
	sort -n -k "$2,$2" "$1" | awk -v at="$2" '{ value[NR] = $at } END { print value[int((NR + 1) / 2)] }'
}

echo "connections	depth	peer	calls_per_s	server_cpu_us_per_call	ratio	cpu_ratio"
for shape in '1 64' '64 1' '1 1'; do
	set -- $shape
	for _ in $(seq $rounds); do
		load spoke $spoke "$1" "$2"
		load node $node "$1" "$2"
	done
	calls=$(median "$work/spoke.$1.$2" 1)
	cpu=$(median "$work/spoke.$1.$2" 2)
	echo "$1	$2	spoke	$calls	$cpu	1	1"
	echo "$1	$2	node	$(median "$work/node.$1.$2" 1)	$(median "$work/node.$1.$2" 2)" |
		awk -v calls="$calls" -v cpu="$cpu" '{ printf "%s\t%.1f\t%.1f\n", $0, calls / $4, $5 / cpu }'
done
