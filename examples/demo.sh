#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A provider and a consumer talk to each other over real sockets, and the script says what happens.
#
#   sh examples/demo.sh                builds them first, in build/demo
#   sh examples/demo.sh <directory>    with the programs demo_* that lie there
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
	stage build cmake --build build/demo --target demo_provider demo_consumer demo_steady \
		demo_tickets
	programs=$(pwd)/build/demo/examples
fi

# Its path becomes part of a URL, which a space would break.
work=$(TMPDIR=/tmp mktemp -d) || exit 2
provider=
staying=
consumer=
stop_provider() {
	[ -n "$provider" ] || return 0
	{
		kill "$provider"
		wait "$provider"
	} 2>"$work/ended"
	provider=
}
kill_provider() {
	{
		kill -KILL "$provider"
		wait "$provider"
	} 2>"$work/ended"
	provider=
}
# start_provider <number> <argument>...: $tcp is where it listens.
start_provider() {
	heard=$work/provider$1
	shift
	: >"$heard"
	"$programs/demo_provider" "$@" >"$heard" &
	provider=$!
	waits=0
	while ! grep -q ' listens at ' "$heard"; do
		waits=$((waits + 1))
		[ $waits -le 200 ] || {
			echo "$0: the provider did not start"
			exit 1
		}
		sleep 0.05
	done
	tcp=$(sed -n 's/.* listens at //p' "$heard")
}
# listed: says who is in the registry's file.
listed() {
	sed -n 's|^\(dubbo://[^?]*\).*|                           the list: \1|p' "$work/providers"
}
end_all() {
	for process in $provider $staying $consumer; do
		kill -KILL "$process" 2>"$work/ended"
	done
	rm -rf "$work"
}
trap end_all EXIT
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

# tell_until <file> <pattern>: says the lines that come into the file, until one fits; what was said is
# not said again.
tell_until() {
	waits=0
	while :; do
		lines=$(wc -l <"$1")
		said=$(cat "$1.said" 2>"$work/none" || echo 0)
		if [ "$lines" -gt "$said" ]; then
			new=$(sed -n "$((said + 1)),${lines}p" "$1")
			# No further than the line that is waited for.
			upto=$(printf '%s\n' "$new" | grep -n -m 1 -e "$2" | cut -d: -f1)
			[ -z "$upto" ] || lines=$((said + upto))
			sed -n "$((said + 1)),${lines}p" "$1"
			echo "$lines" >"$1.said"
			[ -z "$upto" ] || return 0
		fi
		waits=$((waits + 1))
		if [ $waits -gt 600 ]; then
			echo "    This did not come in 30 s: $2"
			status=1
			return 1
		fi
		sleep 0.05
	done
}

# tell_all <file> <pattern> <pattern>: the same, until both have come, whichever is first.
tell_all() {
	tell_until "$1" "$2\\|$3" || return
	tell_until "$1" "$2\\|$3"
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

: >"$work/provider"
"$programs/demo_provider" --heartbeat-ms 300 dubbo://127.0.0.1:0 >"$work/provider" &
provider=$!
echo "7. A provider and a consumer that calls it every 50 ms. Who hears nothing for 300 ms asks by a
   heartbeat. Each says what happens in it, and when, by the clock of the machine; the driver only
   stops and wakes them:"
tell_until "$work/provider" ' listens at ' || exit 1
tcp=$(sed -n 's/.* listens at //p' "$work/provider")
: >"$work/consumer"
"$programs/demo_steady" "dubbo://$tcp/demo.EchoService?heartbeat=300ms&timeout=200ms" \
	>"$work/consumer" &
consumer=$!
tell_until "$work/consumer" 'calls are answered'
tell_until "$work/provider" 'connected'
echo
echo "   The driver freezes the provider, process $provider (SIGSTOP). Its system still takes what it is
   sent, and even accepts connections; only its silence tells:"
kill -STOP "$provider"
for what in 'missed 1' 'missed 2' 'missed 3' 'closed' 'reconnecting' 'probation'; do
	tell_until "$work/consumer" "$what"
done
echo "   The driver wakes the provider (SIGCONT), which answers the heartbeat that waits for it:"
kill -CONT "$provider"
tell_until "$work/consumer" 'recovered'
tell_until "$work/consumer" 'calls are answered'
tell_all "$work/provider" 'closed' 'connected'
echo
echo "8. Now the driver freezes the consumer, process $consumer. Its provider notices the same way, and
   closes:"
kill -STOP "$consumer"
for what in 'missed 1' 'missed 2' 'missed 3' 'closed'; do
	tell_until "$work/provider" "$what"
done
echo "   The driver wakes the consumer, which finds its connection closed, and makes another:"
kill -CONT "$consumer"
tell_until "$work/consumer" 'closed'
tell_until "$work/consumer" 'connected'
tell_until "$work/consumer" 'calls are answered'
echo
echo "9. The driver asks the provider to end (SIGTERM). It says so to its consumer, answers what it has
   begun, and goes; then the driver ends the consumer. Every call it made has ended, once:"
kill -TERM "$provider"
tell_until "$work/consumer" 'readonly'
tell_until "$work/consumer" 'closed'
wait "$provider" || status=1
provider=
kill -TERM "$consumer"
tell_until "$work/consumer" ' 0 lost'
wait "$consumer" || status=1
consumer=
echo

start_provider 1 dubbo://127.0.0.1:0
echo "10. A single provider at $tcp, and a consumer that calls it by failback, 20 times a second:"
: >"$work/tickets"
"$programs/demo_tickets" \
	"dubbo://$tcp/demo.EchoService?retries=50&retry.period=500ms&retry.deadline=1m" \
	>"$work/tickets" &
consumer=$!
tell_until "$work/tickets" 'calls are answered'
echo
echo "   The driver kills the provider (SIGKILL). Calls are not lost: what fails becomes a ticket, which
   is tried again every 500 ms, by a timer on the wheel:"
kill_provider
tell_until "$work/tickets" '10 tickets wait'
echo "   The driver starts the provider again, at the same address:"
start_provider 2 "dubbo://$tcp"
tell_until "$work/tickets" 'calls are answered'
tell_until "$work/tickets" 'tickets are settled'
echo
echo "   Then it ends the consumer. Every ticket was settled, by an answer:"
kill -TERM "$consumer"
tell_until "$work/tickets" ' 0 otherwise, 0 lost'
tell_until "$work/tickets" ' retries;'
wait "$consumer" || status=1
consumer=
stop_provider
echo

registry=file://$work/providers
start_provider 3 --registry "$registry" dubbo://127.0.0.1:0
staying=$provider
provider=
start_provider 4 --registry "$registry" dubbo://127.0.0.1:0
echo "11. Two providers list themselves in a file, where a consumer finds them:"
: >"$work/finder"
"$programs/demo_steady" consumer://any/demo.EchoService "$registry" >"$work/finder" &
consumer=$!
tell_until "$work/finder" 'connected'
tell_until "$work/finder" 'connected'
listed
tell_until "$work/finder" 'calls are answered'
echo "   The driver ends the second one (SIGTERM), which takes itself off the list, and starts it again:"
stop_provider
tell_until "$work/finder" 'closed'
listed
if grep -q "$tcp" "$work/providers"; then
	echo "    That is not as it should be: $tcp is listed"
	status=1
fi
start_provider 5 --registry "$registry" "dubbo://$tcp"
tell_until "$work/finder" "$tcp: connected"
echo "   No call has failed meanwhile:"
kill -TERM "$consumer"
tell_until "$work/finder" ' 0 failed, 0 lost; 0 not taken'
wait "$consumer" || status=1
consumer=
stop_provider
provider=$staying
staying=
stop_provider
echo
if [ $status = 0 ]; then
	echo "Everything went as it should."
else
	echo "Something did not go as it should; see above."
fi
exit $status
