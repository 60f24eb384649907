#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo echo cluster: three providers and two consumers, each a process, of which some are frozen,
# killed and ended, and what spoke makes of it, told by the processes themselves.
#
#   sh examples/demo.sh [option...]                builds it first, in build/demo; --help names options
#   sh examples/demo.sh <directory> [option...]    with the programs demo_* that lie there
#
# Missing Debian packages are installed, for which alone root is needed. Ends with 0 if everything
# adds up, with 1 if not, and with 2 if it could not be tried.
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

# stage <name> <command...>: its output goes to a log, of which a failure shows the end.
stage() {
	name=$1
	shift
	if ! "$@" >"$logs/$name.log" 2>&1; then
		tail -n 40 "$logs/$name.log"
		echo "$0: \"$name\" failed; all of its output: $logs/$name.log"
		exit 2
	fi
}

if [ -z "$programs" ]; then
	logs=build/demo/log
	mkdir -p $logs || exit 2
	. tests/packages.sh
	ensure_packages stage gcc cmake ninja-build pkg-config libev-dev libmsgpack-dev || exit 2
	[ -x build/demo/examples/demo_driver ] || echo "building in build/demo ..."
	stage configure cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DSPOKE_BUILD_TESTS=OFF -DSPOKE_WERROR=OFF
	stage build cmake --build build/demo --target demo_driver demo_provider demo_consumer
	programs=$(pwd)/build/demo/examples
fi
exec "$programs/demo_driver" "$@"
