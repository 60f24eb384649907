#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the dashboard for Grafana: it is made of panels.txt, and a Prometheus that scrapes the demo has a
# result for each of its expressions.
#
#   sh tests/examples/dashboard.sh <build folder>
#
# Uses the installed Prometheus, else unpacks Debian's package below build/, because installing it would
# start a service. On Debian 12 as root a missing program is a failure; elsewhere the test is
# skipped, with status 77.
set -eu
cd "$(dirname "$0")/../.."
build=$1
out=build/dashboard
mkdir -p $out

made=$out/spoke.json
sh examples/grafana/dashboard.sh >$made
if ! cmp -s $made examples/grafana/spoke.json; then
	echo "tests/examples/dashboard.sh: run: sh examples/grafana/dashboard.sh >examples/grafana/spoke.json" >&2
	exit 1
fi

find_prometheus() {
	command -v prometheus && return 0
	command -v apt-get >$out/apt && command -v dpkg-deb >>$out/apt || return 1
	if [ ! -x $out/usr/bin/prometheus ]; then
		(cd $out && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .) >$out/download 2>&1 || return 1
	fi
	echo $out/usr/bin/prometheus
}

missing=
prometheus=$(find_prometheus) || missing="$missing prometheus"
command -v node >$out/node || missing="$missing nodejs"
if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ] && grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
		echo "tests/examples/dashboard.sh: missing:$missing" >&2
		exit 1
	fi
	echo "tests/examples/dashboard.sh: skipped, missing:$missing"
	exit 77
fi
if [ ! -x "$build/examples/demo_driver" ]; then
	echo "tests/examples/dashboard.sh: no $build/examples/demo_driver: cmake --build $build" >&2
	exit 1
fi
exec node tests/examples/dashboard.mjs "$build/examples/demo_driver" "$prometheus" examples/grafana/spoke.json
