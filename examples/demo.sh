#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo echo cluster: three providers, two consumers, and two workers with a lease in Redis, each a
# process. The demo freezes, kills and drains some of them, has one step aside, loses an answer, kills
# a consumer with tickets in its journal, and prints the events that they report.
#
#   sh examples/demo.sh [option...]                builds in build/demo and runs; --help lists the options
#   sh examples/demo.sh --dubbo [option...]        with a provider and a consumer made with Node
#   sh examples/demo.sh --tls [option...]          with mutual TLS between all processes
#   sh examples/demo.sh --comet [option...]        a shop with a page, and users in browsers
#   sh examples/demo.sh <directory> [option...]    runs the programs demo_* in that directory
#
# Installs missing Debian packages, which is the only step that needs root. Without Redis the act of the
# lease is left out. Exit status: 0 if the counts add up, 1 if not, 2 if the demo could not run, 77 if npm
# or ZooKeeper is missing for --dubbo.
set -u
programs=
case ${1:-} in
"" | -*) ;;
*)
	programs=$(cd "$1" && pwd) || exit 2
	shift
	;;
esac
cd "$(dirname "$0")/.." || exit 2
dubbo=
driver=demo_driver
tls=
for option in "$@"; do
	[ "$option" != --dubbo ] || dubbo=yes
	[ "$option" != --tls ] || tls=libssl-dev
	[ "$option" != --comet ] || driver=demo_comet
done
. examples/demo/dubbo.sh

# stage <name> <command...>: logs the output, and prints the end of the log on failure.
stage() {
	name=$1
	shift
	if ! "$@" >"$logs/$name.log" 2>&1; then
		tail -n 40 "$logs/$name.log"
		echo "$0: \"$name\" failed; full output: $logs/$name.log"
		exit 2
	fi
}

if [ -z "$programs" ]; then
	logs=build/demo/log
	mkdir -p $logs || exit 2
	. tests/packages.sh
	# shellcheck disable=SC2086
	ensure_packages stage gcc cmake ninja-build pkg-config libev-dev libmsgpack-dev $tls || exit 2
	if [ -n "$dubbo" ]; then
		dubbo_packages
	elif [ $driver = demo_driver ] && ! { command -v redis-server || command -v redis-check-rdb; } >"$logs/redis"; then
		# The tools contain the server. The package redis-server would start one as a service.
		want_packages redis-tools
	fi
	[ -x build/demo/examples/$driver ] || echo "building in build/demo ..."
	stage configure cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DSPOKE_BUILD_TESTS=OFF
	stage build cmake --build build/demo --target demo_driver demo_provider demo_consumer demo_worker \
		demo_buyer demo_comet comet_shop spoke_command
	programs=$(pwd)/build/demo/examples
fi
# The driver tells of each failure that it causes.
: "${SPOKE_LOG:=off}"
export SPOKE_LOG
[ -n "$dubbo" ] || exec "$programs/$driver" "$@"
dubbo_begin
"$programs/demo_driver" "$@"
