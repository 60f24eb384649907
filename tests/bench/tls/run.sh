#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures TLS beside plain connections, with certificates of its own. Called by sh tests/bench/run.sh tls. Needs a
# configured build/release.
set -eu
cd "$(dirname "$0")/../../.." || exit 2

cmake --build build/release --target bench_tls bench_race spoke_command >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
build/release/examples/spoke/spoke certs "$work/certs" >"$work/said"
printf 'figure\tplain\ttls\tratio\n'
for part in ${*:-1x1 1x64 64KiB handshakes floods live redis judge 0 1 2 3 4 5}; do
	build/release/tests/bench/bench_tls "$work/certs" "$part"
done
[ $# -eq 0 ] || exit 0
build/release/tests/bench/bench_race --tls "$work/certs" --only 32B-1x64 >"$work/race"
awk -F '\t' '
	$1 == "32B-1x64" { rate[$2] = $3; cpu[$2] = $6 }
	END {
		if (!("grpc" in rate))
			exit
		name = "32B-1x64, two cores: gRPC over TLS, spoke"
		printf "calls/s %s\t%.0f\t%.0f\t%.2f\n", name, rate["grpc"], rate["spoke"], rate["spoke"] / rate["grpc"]
		printf "us of CPU a call %s\t%.2f\t%.2f\t%.2f\n", name, cpu["grpc"], cpu["spoke"], cpu["grpc"] / cpu["spoke"]
	}' "$work/race"
