#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A provider and a consumer talk to each other over real sockets, and the script says what happens.
#
#   sh examples/demo.sh                builds them first, in build/demo
#   sh examples/demo.sh <directory>    with the demo_provider and demo_consumer that lie there
#
# Missing Debian packages are installed, for which alone root is needed. Ends with 0 if everything
# went as it should.
set -u
if [ $# -gt 0 ]; then
	programs=$(cd "$1" && pwd) || exit 2
fi
cd "$(dirname "$0")/.." || exit 2

# stage <name> <command...>: its output goes to a log, of which a failure shows the end.
stage() {
	name=$1
	shift
	if ! "$@" >"$logs/$name.log" 2>&1; then
		tail -n 40 "$logs/$name.log"
		echo "$0: \"$name\" failed; all of its output: $logs/$name.log"
		exit 1
	fi
}

if [ $# = 0 ]; then
	logs=build/demo/log
	mkdir -p $logs || exit 2
	. tests/packages.sh
	ensure_packages stage gcc cmake ninja-build pkg-config libev-dev libmsgpack-dev
	echo "building in build/demo ..."
	stage configure cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DSPOKE_BUILD_TESTS=OFF
	stage build cmake --build build/demo --target demo_provider demo_consumer
	programs=$(pwd)/build/demo/examples
fi

# Its path becomes part of a URL, which a space would break.
work=$(TMPDIR=/tmp mktemp -d) || exit 2
provider=
stop_provider() {
	[ -n "$provider" ] || return 0
	{
		kill "$provider"
		wait "$provider"
	} 2>"$work/ended"
	provider=
}
trap 'stop_provider; rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

status=0
# call <0: an answer is due, 1: a failure> <a pattern of what is said> <url> <method> <text>
call() {
	wanted=$1
	pattern=$2
	shift 2
	said=$(timeout 10 "$programs/demo_consumer" "$@" 2>&1)
	got=$?
	echo "    $2(\"$3\") at $1"
	echo "    -> $said"
	case $said in
	$pattern) [ $got = "$wanted" ] && return ;;
	esac
	echo "    That is not as it should be: status $got, expected $wanted and $pattern"
	status=1
}

# --- the story

mkfifo "$work/said" || exit 2
"$programs/demo_provider" dubbo://127.0.0.1:0 "unix:$work/sock" >"$work/said" &
provider=$!
{
	read -r tcp
	read -r unix
} <"$work/said"
tcp=${tcp##* }
unix=${unix##* }
if [ -z "$tcp" ] || [ -z "$unix" ]; then
	echo "$0: the provider did not start"
	exit 1
fi

echo "A provider serves demo.EchoService at $tcp and at $unix."
echo
echo "1. A consumer calls it over TCP, with Dubbo's frames:"
call 0 '"hello"' "dubbo://$tcp/demo.EchoService" echo hello
echo
echo "2. The same port understands MessagePack-RPC; the first byte tells:"
call 0 '"hello"' "msgpack-rpc://$tcp/demo.EchoService" echo hello
echo
echo "3. And a unix socket carries the same:"
call 0 '"hello"' "$unix?interface=demo.EchoService" echo hello
echo
echo "4. A service that is not there is an answer, not a silence:"
call 1 '*no such service*' "dubbo://$tcp/demo.NoSuchService" echo hello
echo
echo "5. A handler that takes 1 s, and a caller who waits 200 ms. The wheel ends the call, and the
   result says that the request had been written, so it may have been run:"
call 1 'the deadline passed while waiting for the reply*written after * ms, waited * ms' \
	"dubbo://$tcp/demo.EchoService?timeout=200ms" slow hello
echo
echo "   With 5 s the same call is answered:"
call 0 '"hello"' "dubbo://$tcp/demo.EchoService?timeout=5s" slow hello
echo
echo "6. The provider is ended, and nobody listens there. Nothing was written, so nothing was run:"
stop_provider
call 1 '*; not written for * ms' "dubbo://$tcp/demo.EchoService" echo hello
echo
if [ $status = 0 ]; then
	echo "Everything went as it should."
else
	echo "Something did not go as it should; see above."
fi
exit $status
