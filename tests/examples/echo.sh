#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the examples against each other: sh echo.sh <directory of the programs> <what>
#
#   echo      echo_consumer over Dubbo and MessagePack-RPC on one port, and over a unix socket
#   blocking  blocking_consumer
#   cc        echo.cc, which needs no other
set -u
programs=$1
work=$(TMPDIR=/tmp mktemp -d) || exit 2
provider=
stop() {
	[ -z "$provider" ] || kill "$provider"
	provider=
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	exit 1
}

# Starts a provider at a URL; $address is where it listens.
start() {
	rm -f "$work/said"
	mkfifo "$work/said"
	"$programs/echo_provider" "$1" >"$work/said" &
	provider=$!
	read -r line <"$work/said" || fail "echo_provider said nothing"
	address=${line#demo.EchoService listens at }
	[ "$address" != "$line" ] || fail "echo_provider said: $line"
}

# end [signal]: the provider ends well.
end() {
	kill "-${1:-TERM}" "$provider"
	wait "$provider" || fail "echo_provider ended with $?"
	provider=
}

# expect <what it says> <program> <argument...>
expect() {
	wanted=$1
	shift
	said=$("$programs/$@") || fail "$*: ended with $?, said: $said"
	[ "$said" = "$wanted" ] || fail "$*: said: $said, and not: $wanted"
}

case $2 in
echo)
	start dubbo://127.0.0.1:0
	expect '"hello"' echo_consumer "dubbo://$address/demo.EchoService"
	expect '"two words"' echo_consumer "dubbo://$address/demo.EchoService?timeout=9s" 'two words'
	expect '"hello"' echo_consumer "msgpack-rpc://$address/demo.EchoService"
	if said=$("$programs/echo_consumer" "dubbo://$address/demo.Nobody"); then
		fail "echo_consumer ended with 0 where there is no service: $said"
	fi
	end
	start "unix:$work/sock"
	expect '"hello"' echo_consumer "$address?interface=demo.EchoService"
	end INT
	;;
blocking)
	start dubbo://127.0.0.1:0
	expect 'one: "one"
two: "two"
three: "three"' blocking_consumer "dubbo://$address/demo.EchoService"
	end
	;;
cc) expect hello echo_cc ;;
*) fail "usage: sh echo.sh <directory> echo|blocking|cc" ;;
esac
