#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures TLS beside plain connections, with certificates of its own. Called by sh tests/bench/run.sh tls. Needs a
# configured build/release.
set -eu
cd "$(dirname "$0")/../../.." || exit 2

cmake --build build/release --target bench_tls spoke_command >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
build/release/examples/spoke/spoke certs "$work/certs" >"$work/said"
build/release/tests/bench/bench_tls "$work/certs"
for which in 0 1 2 3 4 5; do
	build/release/tests/bench/bench_tls "$work/certs" $which
done
