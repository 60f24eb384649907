#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# spoke bench, tap and top as users run them, on loopback:
#
#   sh tools.sh <spoke> <directory of pick and page> bench|tap|top
set -u
spoke=$1
tools=$2
here=$(dirname "$0")
work=$(TMPDIR=/tmp mktemp -d) || exit 2
processes=
stop() {
	for process in $processes; do
		kill "$process" 2>/dev/null
	done
	wait
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	for output in "$work"/*; do
		[ -f "$output" ] && cut -c1-500 "$output" | sed "s|^|${output##*/}: |"
	done
	exit 1
}

# begin <name> <program> <argument...>: starts a program and waits for its first line. Sets $address to
# the first address in it, and $process to the process id. Further lines go to a file of that name.
begin() {
	output=$work/$1
	shift
	mkfifo "$output.all" "$output.first"
	"$@" >"$output.all" 2>"$output.errors" &
	process=$!
	{
		read -r line
		echo "$line" >"$output.first"
		cat
	} <"$output.all" >"$output" &
	eval "reader_$process=$!"
	processes="$processes $process"
	read -r line <"$output.first"
	address=$(echo "$line" | grep -o '127\.0\.0\.1:[0-9]*' | head -n 1)
	[ -n "$address" ] || fail "$*: prints no address: $line"
}

# end <id>: ends the process, which must exit with 0.
end() {
	kill -TERM "$1"
	wait "$1" || fail "process $1 ended with $?"
	eval "wait \$reader_$1"
	processes=$(echo "$processes " | sed "s/ $1 / /; s/ *$//")
}

# ends <status> <command...>: runs a command to this exit status; its output is in $work/output.
ends() {
	wanted=$1
	shift
	"$@" >"$work/output" 2>"$work/errors" </dev/null
	[ $? = "$wanted" ] || fail "$*: exit status is not $wanted"
}

# has_values <keys> <wanted>: checks that the last line of output is JSON with these values.
has_values() {
	got=$(tail -n 1 "$work/output" | "$tools/command_pick" $1) || fail "no JSON"
	[ "$got" = "$2" ] || fail "$1: $got, not $2"
}

case $3 in
bench)
	begin serve "$spoke" serve --port 0
	ends 0 "$spoke" bench "$address" demo.EchoService.echo '"hi"' -n 500 -c 8 \
		--warm-up 0 -t 20s --json
	has_values 'loop calls ok failed times_ns.count' '"closed" 500 500 0 500'
	ends 0 "$spoke" bench "$address" demo.EchoService.echo --size 1KiB -d 200ms -c 4 \
		--warm-up 20ms -t 20s
	grep -q '^calls/s  *[1-9]' "$work/output" || fail "no calls"
	ends 0 "$spoke" bench "tcp://$address" demo.EchoService.echo 1 --rate 500 -d 200ms \
		--warm-up 0 -t 20s --wire mprpc --json
	has_values 'loop calls ok not_begun' '"open" 100 100 0'
	ends 1 "$spoke" bench "$address" demo.EchoService.fail -n 3 --warm-up 0 -t 20s --json
	has_values 'ok failed errors.EREMOTE' '0 3 3'
	ends 3 "$spoke" bench "$address" demo.EchoService.drop -n 2 --warm-up 0 -t 20ms --json
	has_values 'ok failed' '0 2'
	end "$process"
	ends 4 "$spoke" bench "$address" demo.EchoService.echo -n 1
	ends 2 "$spoke" bench "$address" demo.EchoService.echo --rate nothing
	ends 2 "$spoke" bench "$address"
	;;
tap)
	begin serve "$spoke" serve --port 0
	server=$process
	target=$address
	begin lines "$spoke" tap 127.0.0.1:0 "$target"
	tap=$process
	ends 0 "$spoke" call "$address" demo.EchoService.echo '"two words"'
	[ "$(cat "$work/output")" = '"two words"' ] || fail "wrong answer"
	ends 1 "$spoke" call "$address" demo.EchoService.fail 7 '"why not"'
	for serialization in hessian2 msgpack; do
		ends 0 "$spoke" call "$address" --serialization $serialization demo.EchoService.echo \
			'{"at":{"$date":"2024-05-01"},"class":"it.Order"}'
	done
	end "$tap"
	grep -q ' -> request [0-9]* demo.EchoService.echo("two words") timeout [0-9]* ms, ' \
		"$work/lines" || fail "no request"
	grep -q ' <- reply [0-9]* of demo.EchoService.echo: "two words" after [0-9.]* ms, ' \
		"$work/lines" || fail "no reply"
	grep -q ' <- reply [0-9]* of demo.EchoService.fail: EREMOTE 7 .*"why not"' "$work/lines" ||
		fail "no error"
	order='{"at": date(2024-05-01T00:00:00Z), "class": "it.Order"}'
	[ "$(grep -c " -> request [0-9]* demo.EchoService.echo($order) " "$work/lines")" = 2 ] ||
		fail "serializations differ"
	[ "$(grep -c " <- reply [0-9]* of demo.EchoService.echo: $order after " "$work/lines")" = 2 ] ||
		fail "serializations differ in replies"
	grep -q ' -> heartbeat ' "$work/lines" || fail "no heartbeat"
	grep -q '^4 connections, .* 4 request, 4 reply, .* 1 with an error, 0 streams undecoded' \
		"$work/lines" || fail "no sums"
	begin json "$spoke" tap :0 "$target" --json --raw
	tap=$process
	ends 0 "$spoke" call "msgpack-rpc://$address" demo.EchoService.echo '{"a":[1,null]}'
	ends 0 "$spoke" bench "$address" demo.EchoService.echo --size 100KiB -n 20 -c 20 \
		--warm-up 0 -t 20s
	ends 0 "$spoke" call "$address" -a token=s3cret -a k=v demo.EchoService.echo 1
	ends 4 "$spoke" top --once "$address"
	"$spoke" lock --list "redis://$address" >"$work/output" 2>&1
	end "$tap"
	grep -q '"token":"\*\*\*"' "$work/json" || fail "no attachments"
	grep -q '"k":"v"' "$work/json" || fail "an attachment is missing"
	! grep -q -e s3cret -e 733363726574 "$work/json" || fail "the token was printed"
	grep -q '"kind":"undecoded from here"' "$work/json" || fail "an unknown protocol was not reported"
	grep -q '"kind":"request","wire":"http",.*"service":"status"' "$work/json" ||
		fail "no request over HTTP"
	grep -q '"kind":"reply","wire":"http","id":1,.*"error":"ENOSERVICE",.*"status":404' "$work/json" ||
		fail "no reply over HTTP"
	grep -q '"kind":"reply","wire":"http",.*"of":"status.$methods"' "$work/json" ||
		fail "a reply over HTTP has no request"
	grep -q '"kind":"bytes","raw":"2a' "$work/json" || fail "no bytes of an unknown protocol"
	"$tools/command_pick" kind wire method args value <"$work/json" >"$work/picked" ||
		fail "no JSON"
	grep -qx '"request" "msgpack-rpc" "echo" \[{"a":\[1,null\]}\] -' "$work/picked" ||
		fail "no request"
	grep -qx '"reply" "msgpack-rpc" - - {"a":\[1,null\]}' "$work/picked" || fail "no reply"
	[ "$(grep -c '^"reply" "dubbo"' "$work/picked")" = 21 ] || fail "not all replies"
	end "$server"
	begin guarded "$spoke" serve --port 0 --token geheim12
	server=$process
	target=$address
	for style in "" --json "--raw --full" "--json --raw --full"; do
		begin secrets "$spoke" tap $style :0 "$target"
		tap=$process
		for wire in dubbo://$address msgpack-rpc://$address "dubbo://$address?serialization=msgpack"; do
			ends 0 "$spoke" call "$wire" demo.EchoService.echo 1 --token geheim12
		done
		ends 0 "$spoke" call "$address" demo.EchoService.echo 1 --token geheim12 \
			-a signature=geheim12 -a authorization=geheim12 -a my.secret=geheim12
		ends 1 "$spoke" call "$address" demo.EchoService.echo 1 --token geheim1234
		end "$tap"
		grep -q '[$]token' "$work/secrets" || fail "tap $style: no request with the token"
		grep -q '[*][*][*]' "$work/secrets" || fail "tap $style: no asterisks"
		! grep -q -e geheim12 -e 67656865696d3132 "$work/secrets" || fail "tap $style: prints a token"
		sed -n 's/^    [0-9a-f]\{6\}  \(.\{47\}\).*/\1/p' "$work/secrets" | tr -d ' \n' >"$work/digits"
		! grep -q 67656865696d3132 "$work/digits" || fail "tap $style: prints the bytes of a token"
		case $style in
		"--raw --full") grep -q 2a2a2a2a2a2a2a2a "$work/digits" || fail "tap $style: no bytes" ;;
		esac
		rm "$work/secrets.all" "$work/secrets.first"
	done
	end "$server"
	target=127.0.0.1:1
	begin refused "$spoke" tap :0 "$target" --quiet
	ends 4 "$spoke" call "$address" demo.EchoService.echo --retries 0 --timeout 20s
	end "$process"
	grep -q 'closed: ' "$work/refused" || fail "the missing target was not reported"
	ends 2 "$spoke" tap nowhere "$target"
	ends 2 "$spoke" tap :0
	;;
top)
	begin page "$tools/command_page" "$here/status.json"
	ends 0 "$spoke" top --once "$address"
	sed "s/at $address/at 127.0.0.1:9090/; \$d" "$work/output" | cmp - "$here/status.txt" ||
		fail "wrong text"
	ends 0 "$spoke" top "http://$address/" -i 100ms -n 2
	[ "$(grep -c '^consumer 1 4711 at ' "$work/output")" = 2 ] || fail "not two updates"
	end "$process"
	ends 4 "$spoke" top --once "$address"
	ends 2 "$spoke" top
	;;
*) fail "usage: sh tools.sh <spoke> <directory> bench|tap|top" ;;
esac
