#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the examples against each other: sh echo.sh <directory of the programs> <what>
#
#   echo      echo_consumer over Dubbo and MessagePack-RPC on one port, and over a unix socket
#   ask       ask
#   blocking  blocking_consumer
#   many      many_engines, at a port and at a path
#   orders    order_provider and order_consumer, which find each other in a file
#   epoll     loops/epoll_consumer
#   uv        loops/uv_consumer
#   cc        echo.cc, a provider and a consumer in one process
set -u
programs=$1
work=$(TMPDIR=/tmp mktemp -d) || exit 2
provider=
server=echo_provider
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

# Starts a provider with arguments, the last of which is a URL; sets $address to its address.
start() {
	rm -f "$work/output"
	mkfifo "$work/output"
	"$programs/$server" "$@" >"$work/output" &
	provider=$!
	read -r line <"$work/output" || fail "$server: no output"
	address=${line#demo.*Service listens at }
	[ "$address" != "$line" ] || fail "$server printed: $line"
}

# end [signal]: ends the provider, which must exit with 0.
end() {
	kill "-${1:-TERM}" "$provider"
	wait "$provider" || fail "$server: exit status $?"
	provider=
}

# expect <output> <program> <argument...>
expect() {
	wanted=$1
	shift
	output=$("$programs/$@") || fail "$*: exit status $?, output: $output"
	[ "$output" = "$wanted" ] || fail "$*: output: $output, not: $wanted"
}

case $2 in
echo)
	start dubbo://127.0.0.1:0
	expect '"hello"' echo_consumer "dubbo://$address/demo.EchoService"
	expect '"two words"' echo_consumer "dubbo://$address/demo.EchoService?timeout=9s" 'two words'
	expect '"hello"' echo_consumer "msgpack-rpc://$address/demo.EchoService"
	if output=$("$programs/echo_consumer" "dubbo://$address/demo.Missing"); then
		fail "echo_consumer exits with 0 without a service: $output"
	fi
	end
	start "unix:$work/sock"
	expect '"hello"' echo_consumer "$address?interface=demo.EchoService"
	end INT
	;;
ask)
	start dubbo://127.0.0.1:0
	expect 'hi' ask "dubbo://$address/demo.EchoService"
	if output=$("$programs/ask" "dubbo://$address/demo.Missing"); then
		fail "ask exits with 0 without a service: $output"
	fi
	case $output in
	*"no such service"*) ;;
	*) fail "ask prints no cause: $output" ;;
	esac
	end
	case $("$programs/ask" "dubbo://$address/demo.EchoService") in
	*"$address: Connection refused (ECONNREFUSED)"*) ;;
	*) fail "ask prints no cause without a provider" ;;
	esac
	;;
blocking)
	start dubbo://127.0.0.1:0
	expect 'one: "one"
two: "two"
three: "three"' blocking_consumer "dubbo://$address/demo.EchoService"
	end
	;;
many)
	server=many_engines
	start "dubbo://127.0.0.1:0?shared=true"
	for text in one two three four; do
		expect "\"$text\"" echo_consumer "dubbo://$address/demo.EchoService" "$text"
	done
	end
	start "dubbo://127.0.0.1:0?shared=turns"
	for text in one two three four; do
		expect "\"$text\"" echo_consumer "dubbo://$address/demo.EchoService" "$text"
	done
	end
	start "unix:$work/sock?shared=true"
	for text in one two three four; do
		expect "\"$text\"" echo_consumer "$address?interface=demo.EchoService" "$text"
	done
	end INT
	;;
orders)
	server=order_provider
	start "file://$work/providers" dubbo://127.0.0.1:0
	expect '{"id": 1, "item": "tea", "amount": 3, "price": {"value": "4.50", "class": "java.math.BigDecimal"}, '"\
"'"placed": date(2023-11-14T22:13:20Z), "class": "demo.Order"}
demo.NoSuchOrder: no order -1' order_consumer "file://$work/providers"
	# The command names the methods there are.
	if output=$("$programs/spoke/spoke" call "$address" demo.OrderService.nothing 2>&1); then
		fail "an unknown method is no error: $output"
	fi
	case $output in
	*'methods of demo.OrderService: ["'*'place'*) ;;
	*) fail "spoke call prints: $output" ;;
	esac
	end
	;;
epoll)
	start dubbo://127.0.0.1:0
	# A name is resolved on another thread; the second line comes later.
	output=$({ echo one && "$programs/ask" "dubbo://$address/demo.EchoService" >"$work/asked" && echo two; } |
		"$programs/epoll_consumer" "dubbo://localhost:${address##*:}/demo.EchoService?timeout=9s") ||
		fail "epoll_consumer: exit status $?, output: $output"
	[ "$output" = '"one"
"two"' ] || fail "epoll_consumer prints: $output"
	end
	if output=$(echo one | "$programs/epoll_consumer" "dubbo://$address/demo.EchoService?timeout=50ms" 2>&1); then
		fail "epoll_consumer exits with 0 without a provider: $output"
	fi
	;;
uv)
	start dubbo://127.0.0.1:0
	expect '0
1
2' uv_consumer "dubbo://$address/demo.EchoService"
	end
	;;
cc) expect hello echo_cc ;;
*) fail "usage: sh echo.sh <directory> echo|ask|blocking|many|orders|epoll|uv|cc" ;;
esac
