#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the command as users do: sh command.sh <the program> <what>
#
#   call      call against serve, over both wires: values, errors, exit codes
#   faults    unanswered calls, frozen providers, ping, signals
#   registry  ls, watch and call by a registry in a file
#   paths     a unix socket that is found by the registry
#   secure    certificates, and TLS with them
#   secrets   URLs with tokens and passwords, which no output shows
#   comet     the gateway for browsers: errors in its file, pushes, tickets
#   journal   tickets in a journal, shown and changed
#   verbs     help, wrong usage; completeness of completions and manual
set -u
spoke=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 2
work=$(TMPDIR=/tmp mktemp -d) || exit 2
started=
stop() {
	for pid in $started; do
		kill -CONT "$pid" 2>"$work/gone"
		kill -KILL "$pid" 2>"$work/gone"
	done
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	exit 1
}

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# serve <option...>: starts a provider; sets $pid to its process, $at to its first address, and $soon to a time
# within which a call to it is written: twice what a process of this machine, as busy as it is now, needs to start.
serve() {
	begun=$(now_ms)
	rm -f "$work/output"
	mkfifo "$work/output"
	"$spoke" serve --quiet "$@" >"$work/output" &
	pid=$!
	started="$started $pid"
	read -r line <"$work/output" || fail "serve $*: no output"
	at=${line#* listens at }
	[ "$at" != "$line" ] || fail "serve $*: printed: $line"
	soon=$((2 * ($(now_ms) - begun)))ms
}

# finish <signal>: ends the provider, which must exit with 0.
finish() {
	kill "-$1" "$pid"
	wait "$pid" || fail "serve ended with $? by SIG$1"
}

# run <exit code> <pattern of stdout> <pattern of stderr> <argument...>: a call that is to be answered, and that
# does not name a time, gets a minute in place of 1 s, because the machine may be busy.
run() {
	code=$1
	out=$2
	err=$3
	shift 3
	case "$code $* " in
	[014]' call '*' -t '* | [014]' call '*timeout*) ;;
	[014]' call '*) shift && set -- call -t 60s "$@" ;;
	[014]' bench '* | [014]' ping '*) verb=$1 && shift && set -- "$verb" -t 60s "$@" ;;
	esac
	"$spoke" "$@" >"$work/out" 2>"$work/err"
	got=$?
	output=$(cat "$work/out")
	wrong=$(cat "$work/err")
	[ "$got" = "$code" ] || fail "spoke $*: exit code $got, not $code: $output $wrong"
	case $output in
	$out) ;;
	*) fail "spoke $*: stdout is: $output, not: $out" ;;
	esac
	case $wrong in
	$err) ;;
	*) fail "spoke $*: stderr is: $wrong, not: $err" ;;
	esac
	# A user of the command does not know the library's names.
	case $output$wrong in
	*spoke_[a-z]* | *SPOKE_E* | *SPOKE_OFF* | *SPOKE_NONE* | *"struct "* | *NULL*)
		fail "spoke $*: names of C: $output $wrong"
		;;
	esac
}

# await <text> <file>: waits until the file contains the text.
await() {
	tries=0
	until grep -q -e "$1" "$2"; do
		tries=$((tries + 1))
		[ $tries -lt 6000 ] || fail "no $1 in: $(cat "$2")"
		sleep 0.01
	done
}

call() {
	serve --port 0 "unix:$work/sock"
	for url in "tcp://$at" "$at" "dubbo://$at" "dubbo://$at/demo.EchoService" \
		"msgpack-rpc://$at" "DUBBO://$at" "unix:$work/sock" "Unix:$work/sock"; do
		run 0 '"hello"' '' call "$url" demo.EchoService.echo '"hello"'
	done
	run 0 '"hello"' '' call "$at" --wire=mprpc demo.EchoService.echo '"hello"'
	run 0 '"hello"' '' call "msgpack-rpc://$at" echo '"hello"'
	run 0 '"hello"' '' call "dubbo://$at/demo.EchoService" echo '"hello"'

	run 0 'null' '' call "$at" demo.EchoService.echo
	run 0 '1' '' call "$at" demo.EchoService.echo '[1]'
	run 0 '[[]1,2[]]' '' call "$at" demo.EchoService.echo 1 2
	run 0 '[[]1,2[]]' '' call "$at" demo.EchoService.echo '[[1, 2]]'
	run 0 '-5' '' call "$at" demo.EchoService.echo -5
	all='{"i":[18446744073709551615,-9223372036854775808],"d":[0.1,-0.0,1e+300],'
	all=$all'"b":{"$bin":"AAH/"},"e":{"$ext":[5,"AA=="]},"m":{"$map":[[1,null]]},"t":"ä\n"}'
	printf '%s' "$all" >"$work/value"
	for wire in dubbo mprpc; do
		# An extension, and an integer above 2^63 - 1, need msgpack.
		"$spoke" call -t 60s -w $wire "$at?serialization=msgpack" demo.EchoService.echo -d "@$work/value" >"$work/out" ||
			fail "call -d @file ended with $?"
		[ "$(cat "$work/out")" = "$all" ] || fail "call -d @file: $(cat "$work/out")"
	done
	"$spoke" call -t 60s "$at?serialization=msgpack" demo.EchoService.echo -d @- <"$work/value" >"$work/out" ||
		fail "call -d @- ended with $?"
	[ "$(cat "$work/out")" = "$all" ] || fail "call -d @-: $(cat "$work/out")"

	run 0 '[[]"*","echo","sleep","fail","drop"[]]' '' call "$at" 'demo.EchoService.$methods'
	run 2 '' '*byte 11: the object has this key already' call "$at" demo.EchoService.echo '{"a":1,"a":2}'
	run 1 '' '*cannot listen at*Address already in use' tap "$at" "$at"
	run 1 '' '*Address already in use*' serve --port "${at##*:}"
	run 0 '*100 connections*failed     0*' '' bench "$at" demo.EchoService.echo 1 -c 100 --connections 100 \
		-n 1000 --warm-up 0s --plain
	run 1 '' '*"error requested by the caller" (code 1)*' call "$at" demo.EchoService.fail
	run 1 '' '*"no" (code 7)*' call "$at" demo.EchoService.fail 7 '"no"'
	run 1 '{"ok":false,"error":"EREMOTE","text":"no",*"code":7,*"exit":1}' '' \
		call --json "$at" demo.EchoService.fail 7 '"no"'
	run 0 '{"ok":true,"error":"OK","value":5,*"attempts":1,*"exit":0}' '' \
		call --json "$at" demo.EchoService.echo 5
	run 1 '' '*no such service*' call "$at" demo.Missing.echo
	run 0 '' '' call "$at" --notify demo.EchoService.echo 1
	run 0 '1' "*$at: connected*1 attempts*" call "$at" -v demo.EchoService.echo 1
	run 0 '1' '' call "$at" -a key=value -a other= demo.EchoService.echo 1
	run 0 '[[]1[]]' '' call "$at" --types '[Lx/Y;' demo.EchoService.echo '[[1]]'
	run 0 '5' '' call "$at" --generic demo.EchoService.echo 5
	run 0 '[[]"a",{"x":1,"class":"it.Point"}[]]' '' call "$at" --generic \
		--types 'Ljava/lang/String;Lit/Point;' demo.EchoService.echo '"a"' '{"x":1,"class":"it.Point"}'
	new='[{"$date":"2024-05-01T12:00:00.123Z"},{"x":1,"class":"it.Point"},{"name":"RED","class":"it.Color"}]'
	for serialization in msgpack hessian2; do
		"$spoke" call -t 60s "$at" --serialization $serialization demo.EchoService.echo "[$new]" >"$work/out" ||
			fail "call --serialization $serialization ended with $?"
		[ "$(cat "$work/out")" = "$new" ] || fail "call --serialization: $(cat "$work/out")"
	done
	run 0 '[[][[]1[]],5[]]' '' call "$at" demo.EchoService.echo '{"$typed":["[int",[1]]}' '{"$long":5}'
	finish TERM

	run 4 '' "*$at cannot be reached: Connection refused (ECONNREFUSED)" call "$at" demo.EchoService.echo
	SPOKE_LOG=info run 4 '' "*cannot connect to*(ECONNREFUSED)*" call "$at" demo.EchoService.echo
	case $wrong in
	*'tries on'*) fail "a call that has ended tries on: $wrong" ;;
	esac
	run 4 '' "*cannot be reached*" call "$at" --wait -t 50ms demo.EchoService.echo
	run 4 '' "*$at cannot be reached: Connection refused (ECONNREFUSED)" bench "$at" demo.EchoService.echo
	run 4 '{"ok":false,"error":"ECONNECT",*"exit":4}' '' call "$at" --json demo.EchoService.echo
	run 4 '' '*deferred*cannot be reached*' call "$at?retry.period=20ms" -v --cluster failback \
		-r 1 demo.EchoService.echo 1

	# The key decides how large arguments may be, not the reader of JSON.
	printf '[provider]\nframe.max = 64MiB\n' >"$work/large"
	serve --port 0 --config "$work/large"
	{ printf '"' && head -c 9437184 /dev/zero | tr '\0' x && printf '"'; } >"$work/text"
	run 2 '' '*frame.max allows 8388608 bytes*' call "$at" demo.EchoService.echo -d "@$work/text"
	"$spoke" call "$at?frame.max=64MiB" -t 60s demo.EchoService.echo -d "@$work/text" >"$work/out" ||
		fail "9 MiB: exit code $?"
	[ "$(wc -c <"$work/out")" = 9437187 ] || fail "9 MiB: $(wc -c <"$work/out") bytes came"
	finish TERM

	# Most systems begin with 1024 files, and allow more.
	many=$(ulimit -Hn)
	if [ "$many" != unlimited ] && [ "$many" -lt 20000 ]; then
		echo "the limit of open files is $many: 10,000 connections are not tried"
	else
		printf '[provider]\nconnections.max = 20000\nconnections.per.peer.max = 20000\n' >"$work/many"
		ulimit -Sn 1024
		serve --port 0 --config "$work/many"
		run 0 '*10000 connections*failed     0*' '' bench "$at" demo.EchoService.echo 1 -c 1 \
			--connections 10000 -n 10 --warm-up 0s --plain
		finish TERM
	fi
	(ulimit -n 100 && run 1 '' '*1000 connections need 1064 open files, and the limit is 100; see ulimit -n' \
		bench 127.0.0.1:1 demo.EchoService.echo --connections 1000) || exit 1
}

faults() {
	serve --port 0 --heartbeat 0 "unix:$work/sock"
	run 3 '' '*deadline passed while waiting*' call "$at" -t "$soon" demo.EchoService.drop
	run 0 '20' '' call "$at" demo.EchoService.sleep 20
	run 1 '' '*expected a number of ms*' call "$at" demo.EchoService.sleep '"x"'
	run 0 '*1: * ms*3 sent, 3 answered, 0 timed out; min *' '*connected' ping "$at" -c 3 -i 5ms
	run 0 '1 sent, 1 answered*' '' ping "msgpack-rpc://$at/demo.EchoService" -c 1 -q
	run 0 '{"number":1,"ok":true,*{"sent":1,"answered":1,*}' '*' ping "$at" -c 1 --json
	"$spoke" ping "$at" -i 1ms | read -r line || fail "ping prints nothing for a reader of one line"
	# No provider listens on one of two endpoints: calls use the other one, but are not repeated after a write.
	both="static://127.0.0.1:1?backup=$at"
	for i in 1 2 3 4 5; do
		run 0 '1' '' call "$both" demo.EchoService.echo 1
	done
	printf 'dubbo://%s/demo.EchoService\ndubbo+unix:%s?interface=demo.EchoService\n' "$at" \
		"$work/sock" >"$work/two"
	run 3 '{*"error":"ETIMEOUT"*"attempts":1,*"exit":3}' '' \
		call "file://$work/two" -t "$soon" --json demo.EchoService.drop
	run 3 '{*"error":"ETIMEOUT"*"attempts":2,*"exit":3}' '' \
		call "file://$work/two" -t "$soon" --idempotent --json demo.EchoService.drop
	finish INT
	run 4 '1: the connection could not be established: *ECONNREFUSED*' '*' ping "$at" -c 1
	run 4 '1 sent, 0 answered*' '' ping "$at" -c 1 -q
	# A provider that asks for a token answers other pings, too: they are forbidden.
	serve --port 0 --token a-long-secret-token 2>"$work/refusals"
	run 0 '1: * ms
2: * ms
2 sent, 2 answered, 0 timed out, 2 forbidden; min *' '*' ping "$at" -c 2 -i 1ms --plain
	run 0 '{"number":1,"ok":true,*}
{"sent":1,"answered":1,*,"forbidden":1}' '*' ping "$at" -c 1 --json
	await 'no or bad credentials for spoke.Ping' "$work/refusals"
	# MessagePack-RPC shows it, too.
	run 0 '1' '' call "$at" -w mprpc echo 1 --token a-long-secret-token
	run 1 '' '*no or bad credentials*' call "$at" -w mprpc echo 1 --token another-long-token
	finish TERM
	# A refused ping is the last one, too, and tells the cause.
	run 4 '1: call of $echo refused: no provider*unix:*none: No such file*1 sent, 0 answered*' '' \
		ping "unix:$work/none" -c 1
	run 4 '1: *2: *ECONNREFUSED*2 sent, 0 answered*' '*' ping "$at" -c 2 -i 1ms

	printf '[provider]\nheartbeat = 5s\nlisten = dubbo://127.0.0.1:0, unix:%s/listed\n' "$work" \
		>"$work/settings"
	printf '[engine]\nadmin = 127.0.0.1:0\n' >>"$work/settings"
	printf '[provider]\nheartbeat = 5x\nhartbeat = 5s\n' >"$work/wrong"
	run 2 '' '*wrong:2: heartbeat = 5x:*wrong:3: hartbeat = 5s:*' \
		serve --port 0 --config "$work/wrong"
	"$spoke" serve --quiet --config "$work/settings" >"$work/log" 2>"$work/errors" &
	pid=$!
	started="$started $pid"
	await '^admin page at' "$work/log"
	at=$(sed -n '1s/.* listens at //p' "$work/log")
	run 0 '1' '' call "$at" --config "$work/settings" demo.EchoService.echo 1
	run 0 '1' '' call "unix:$work/listed" demo.EchoService.echo 1
	# Another server is named; it may get no time to answer on a busy machine.
	page=$(sed -n 's|^admin page at http://\(.*\)/|\1|p' "$work/log")
	for verb in "call $page demo.EchoService.echo 1" "ping $page -c 1" \
		"bench $page demo.EchoService.echo 1 -n 1 --warm-up 0"; do
		tries=0
		until ! "$spoke" $verb -t "$soon" 2>"$work/err" >"$work/out" &&
			grep -q "spoke ${verb%% *}: $page: .* an HTTP server answers there" "$work/err"; do
			tries=$((tries + 1))
			[ $tries -lt 10 ] || fail "$verb does not name the page: $(cat "$work/err")"
		done
	done
	printf '[method.demo.EchoService.drop]\ntimeout = %s\n' "$soon" >"$work/impatient"
	run 3 '' '*deadline passed*' call "$at" --config "$work/impatient" demo.EchoService.drop
	run 3 '' '*deadline passed*' call "dubbo://$at?timeout=$soon" demo.EchoService.drop
	# Options of the call override file and URL.
	printf '[method.sleep]\ntimeout = 10ms\ncluster = failback\n' >"$work/impatient"
	run 0 '30' '' call "$at" --config "$work/impatient" -t 60s demo.EchoService.sleep 30
	run 0 '30' '' call "dubbo://$at?sleep.timeout=10" -t 60s demo.EchoService.sleep 30
	printf '[method.drop]\ntimeout = %s\ncluster = failback\n' "$soon" >"$work/impatient"
	run 3 '{*"error":"ETIMEOUT"*"attempts":1,*' '' call --json "$at" \
		--config "$work/impatient" --cluster failfast demo.EchoService.drop
	run 0 '*methods*requests demo.EchoService/sleep *' '' \
		top -1 "$(sed -n 's|^admin page at http://\(.*\)/|\1|p' "$work/log")"
	run 0 "*heartbeat *$work/settings:*weight *100 *default*" '' \
		top --settings "$(sed -n 's|^admin page at http://\(.*\)/|\1|p' "$work/log")"
	printf '[provider]\nheartbeat = 5\n' >"$work/settings"
	# Ten lines a second are printed, and the calls before had some: the signal is repeated.
	tries=0
	until grep -q 'serve: .*settings:2: heartbeat = 5: a duration needs a unit' "$work/errors"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || fail "no line about the settings: $(cat "$work/errors")"
		kill -HUP "$pid"
		sleep 0.1
	done
	await 'serve: config: nothing changed' "$work/errors"
	finish TERM

	rm "$work/log"
	(umask 077 && echo correct-horse >"$work/token" && echo battery-staple >"$work/other")
	"$spoke" serve -q --port 0 --admin "unix:$work/page" --admin-token-file "$work/token" >"$work/log" &
	pid=$!
	started="$started $pid"
	await "^admin page at unix:$work/page" "$work/log"
	run 1 '' '*requires its token; write --token-file FILE, *' offline "unix:$work/page"
	run 1 '' '*has another token: *admin.token.file' offline --token-file "$work/other" "unix:$work/page"
	run 0 '' '' offline --token-file "$work/token" "unix:$work/page"
	run 0 '' '' online --token correct-horse "unix:$work/page"
	finish TERM

	rm "$work/log"
	"$spoke" serve tcp://127.0.0.1:0 >"$work/log" 2>"$work/errors" &
	pid=$!
	started="$started $pid"
	await ' listens at ' "$work/log"
	run 0 '1' '' call "$(sed -n '1s/.* listens at //p' "$work/log")" demo.EchoService.echo 1
	await ' closed: the peer is gone' "$work/log"
	finish TERM
	grep -q ' connected$' "$work/errors" && fail "serve prints connections twice: $(cat "$work/errors")"
	grep -q 'drain begins' "$work/errors" || fail "serve without -q: $(cat "$work/errors")"

	# Machines without IPv6 cannot listen there.
	case $("$spoke" help serve) in
	*'[::]:PORT over IPv6 only'*) ;;
	*) fail "the help of serve does not explain [::]" ;;
	esac
	serve --port 0 2>"$work/errors"
	run 0 '1' '' call "$at" demo.EchoService.echo 1
	run 1 '' "*cannot listen at $at*" serve "tcp://$at"
	finish TERM
	[ ! -s "$work/errors" ] || fail "serve --quiet is not: $(cat "$work/errors")"

	serve --port 0 --drop-rate 100%
	run 3 '' '*deadline passed*' call "$at" -t "$soon" demo.EchoService.echo 1
	finish TERM

	early=$soon
	serve --port 0 --delay $((4 * ${soon%ms}))ms
	run 3 '' '*deadline passed*' call "$at" -t "$early" demo.EchoService.echo 1
	run 0 '1' '' call "$at" demo.EchoService.echo 1
	finish TERM

	serve --port 0 --freeze-after 2 2>"$work/frozen"
	run 0 '1' '' call "$at" demo.EchoService.echo 1
	run 3 '' '*deadline passed*' call "$at" -t "$soon" demo.EchoService.echo 1
	run 3 '1 sent, 0 answered, 1 timed out' '' ping "$at" -c 1 -t "$soon" -q
	kill -CONT "$pid"
	run 0 '1' '' call "$at" demo.EchoService.echo 1
	finish TERM
	grep -q 'freezing now' "$work/frozen" || fail "serve did not report the freeze"
}

registry() {
	list=file://$work/providers
	run 2 '' '*there is no such file*' ls "$list"
	run 2 '' '*there is no such file*' watch "$list"
	: >"${list#file://}"
	run 0 '' '' ls "$list"
	"$spoke" watch "$list" >"$work/watched" &
	watcher=$!
	started="$started $watcher"
	serve --port 0 --registry "$list" -s demo.One -s demo.Two --version 1.0 --group blue
	await '^+ demo.Two' "$work/watched"
	run 0 "demo.One dubbo://$at version=1.0 group=blue weight=100 enabled
demo.Two dubbo://$at version=1.0 group=blue weight=100 enabled" '' ls "$list"
	run 0 '{"service":"demo.One","place":"dubbo://'"$at"'","version":"1.0",*}' '' \
		ls "$list" demo.One --json
	run 0 '1' '' call "$list" --version 1.0 --group blue demo.Two.echo 1
	printf '[registry]\nurl = %s\n[service.demo.Two]\nversion = 1.0\ngroup = blue\n' "$list" \
		>"$work/listed"
	run 0 '1' '' call --config "$work/listed" consumer://any/demo.Two echo 1
	run 0 '1' '' call --config "$work/listed" "$at" demo.Two.echo 1
	run 1 '' '*no such service*' call "$at" demo.Two.echo 1
	run 4 '' '*no provider of demo.None*' call "$list" -t 50ms demo.None.echo 1
	printf 'dubbo://127.0.0.1:1/demo.Dead\n' >"$work/dead"
	run 4 '' "*no provider listed in file://$work/dead can be reached: *" \
		call "file://$work/dead" --wait -t $((10 * ${soon%ms}))ms demo.Dead.echo 1
	finish TERM
	await '^- demo.Two' "$work/watched"
	run 0 '' '' ls "$list"
	serve localhost:0 --registry "$list" --advertise 192.0.2.7
	case $at in
	127.0.0.1:*) ;;
	*) fail "localhost means $at" ;;
	esac
	await '192[.]0[.]2[.]7' "$work/providers"
	run 0 "demo.EchoService dubbo://192.0.2.7:${at##*:} *" '' ls "$list"
	finish TERM
	printf 'dubbo://127.0.0.1:1/demo.One?disabled=true\n' >"$work/providers"
	run 0 'demo.One dubbo://127.0.0.1:1 version=- group=- weight=- disabled' '' ls "$list" demo.One
	printf '[registry]\nurl = %s\n' "$list" >"$work/one"
	run 4 '' '*lists no provider of consumer://any/demo.Two*' \
		call --config "$work/one" -t "$soon" consumer://any/demo.Two echo 1
	run 2 '' '*no address; name a file with a registry by --config' call consumer://any/demo.Two echo 1
	printf 'tri://127.0.0.1:1/demo.One\n' >"$work/providers"
	run 0 'demo.One tri://127.0.0.1:1 version=- group=- weight=- passed over: protocol tri' '' \
		ls "$list" demo.One
	run 4 '' '*lists no provider of demo.One
*provider ignored because spoke does not have its protocol: tri://127.0.0.1:1/demo.One' \
		call "$list" -t "$soon" demo.One.echo 1
	run 4 '' '*provider ignored because spoke does not have its protocol: tri://127.0.0.1:1/demo.One' \
		bench "$list" demo.One.echo 1
	# What ls passes over, call does, and says so.
	while read -r entry state; do
		printf '%s\n' "$entry" >"$work/providers"
		run 0 "demo.One * $state" '' ls "$list" demo.One
		case $state in
		enabled) said='*127.0.0.1:1*Connection refused*' time=$((10 * ${soon%ms}))ms ;;
		*) said="*provider ignored because *$entry" time=$soon ;;
		esac
		run 4 '' "$said" call "$list" -t "$time" demo.One.echo 1
	done <<-END
		tcp://127.0.0.1:1/demo.One enabled
		dubbo://127.0.0.1:1/demo.One?disabled=true disabled
		dubbo://127.0.0.1:1/demo.One?enabled=false disabled
		dubbo://127.0.0.1:1/demo.One?disabled=false&enabled=false enabled
		dubbo://127.0.0.1:1/demo.One?category=routers passed over: category routers
		rest://127.0.0.1:1/demo.One passed over: protocol rest
	END
	printf 'dubbo://127.0.0.1:1/demo.One?version=2.0&group=blue\n' >"$work/providers"
	run 4 '' '*list of demo.One: 1 providers ignored because their version or group is another one, e.g. version=2.0 group=blue' \
		call "$list" -t "$soon" demo.One.echo 1
	kill "$watcher"
	wait "$watcher" || fail "watch ended with $?"

	run 0 'demo.X dubbo://127.0.0.1:1 version=- *' '' ls static://127.0.0.1:1 demo.X
	run 2 '' '*name a service' ls static://127.0.0.1:1
	run 2 '' '*not a registry*' ls tcp://127.0.0.1:1
	run 2 '' '*a registry*' ping "$list" -c 1
	"$spoke" ls "$list" | : || fail "ls fails if its reader closes the pipe"
}

# The provider refuses all callers over TCP, so only its unix socket can have carried a call.
paths() {
	list=file://$work/providers
	: >"$work/providers"
	printf '[provider]\ndeny.from = 127.0.0.1\n' >"$work/closed"
	printf '[consumer]\nlocal.path = off\n' >"$work/off"
	"$spoke" serve --quiet 127.0.0.1:0 "unix:$work/rpc.sock" --registry "$list" \
		--config "$work/closed" >"$work/served" &
	pid=$!
	started="$started $pid"
	await 'spoke[.]local=unix:' "$work/providers"
	run 0 'demo.EchoService dubbo://127.0.0.1:*' '' ls "$list"
	case $output in
	*unix*) fail "the path has an entry of its own: $output" ;;
	esac
	run 0 '7' '' call "$list" demo.EchoService.echo 7
	run 4 '' '*' call --config "$work/off" "$list" -t 300ms -r 0 demo.EchoService.echo 7
	finish TERM
	"$spoke" serve --quiet 127.0.0.1:0 "unix:$work/rpc.sock" --registry "$list" \
		>"$work/served" &
	pid=$!
	started="$started $pid"
	await 'spoke[.]local=unix:' "$work/providers"
	rm "$work/rpc.sock"
	run 0 '8' '' call "$list" demo.EchoService.echo 8
	run 0 '9' '' call --config "$work/off" "$list" demo.EchoService.echo 9
	finish TERM
	# Shared memory, and sentences for those that expected it elsewhere.
	serve "unix:$work/plain" "shm:$work/shared"
	run 0 '10' '' call "shm:$work/shared" demo.EchoService.echo 10
	printf '[consumer]\ntls.ca = /ca.pem\n' >"$work/plain.conf"
	SPOKE_LOG=warn run 0 '10' '*tls.ca is set, but TLS is off; set tls = on*' \
		call --config "$work/plain.conf" "unix:$work/plain" demo.EchoService.echo 10
	run 4 '' '*plain cannot be reached: the peer did not answer the hello; *' \
		call "shm:$work/plain" demo.EchoService.echo 1
	run 2 '' '*or the path of a socket, of at most 107' \
		call "shm:$work/$(printf '%0107d' 0)" demo.EchoService.echo 1
	for place in unix:sock shm:sock; do
		run 2 '' '*a unix socket is named by its whole path, *' call $place demo.EchoService.echo 1
	done
	run 2 '' '*a unix socket is named by its whole path, *' serve shm:sock
	run 2 '' '*--advertise=: not a host*' serve --port 0 --advertise ''
	run 2 '' '*advertise=1.2.3.4:: not a host*' serve --port 0 --advertise 1.2.3.4:
	run 2 '' '*shared memory carries no HTTP; use unix:/PATH*' serve "shm:$work/s?http=on"
	run 2 '' "*token is not allowed here; set it in the provider*" serve "dubbo://127.0.0.1:0?token=abcdefgh"
	run 2 '' '*write shm:/PATH?tls=off, or use unix:/PATH*' serve "shm:$work/s?tls=on"
	run 4 "*unix:$work/none: No such file or directory*" '' top --once "unix:$work/none"
	finish TERM
}

# hides <argument...>: runs a command whose arguments hold the secret geheim12; no output may show it.
hides() {
	timeout 600 "$spoke" "$@" >"$work/out" 2>"$work/err" </dev/null
	[ $? -lt 124 ] || fail "spoke $*: did not end"
	grep -q . "$work/out" "$work/err" || fail "spoke $*: printed nothing"
	! grep geheim12 "$work/out" "$work/err" || fail "spoke $*: shows a secret"
}

secrets() {
	for url in "dubbo://127.0.0.1:1/x?token=geheim12" "127.0.0.1:1?token=geheim12" \
		"dubbo://127.0.0.1:99999/x?token=geheim12" "dubbo://127.0.0.1:x?token=geheim12" \
		"dubo://127.0.0.1:1/x?token=geheim12" "dubbo:/127.0.0.1:1/x?token=geheim12" \
		"dubbo://127.0.0.1:1/x?%74oken=geheim12" "dubbo://127.0.0.1:1/x?a=%zz&token=geheim12" \
		"dubbo://127.0.0.1:1/x?token=a&token=geheim12" "dubbo://127.0.0.1:1/x#token=geheim12" \
		"dubbo://127.0.0.1:1/x&token=geheim12" "dubbo://127.0.0.1:1/x?password=geheim12" \
		"dubbo://me:geheim12@127.0.0.1:1/x" "me:geheim12@127.0.0.1:1" \
		"dubbo://me:geheim12@127.0.0.1:x" "dubbo://me:a@geheim12@127.0.0.1:1?c" \
		"unix:$work/none?token=geheim12" "unix:none?token=geheim12" \
		"tcp://bad url?token=a@geheim12" "dubbo://127.0.0.1:1/x&token=a@geheim12" \
		"dubbo://127.0.0.1:1x?token=a@geheim12" "bad url?token=x://a@geheim12" \
		"dubbo://127.0.0.1:x?token=aaaaaaaa,geheim12" \
		"consumer://any/x?token=geheim12" "https://127.0.0.1:1/?token=geheim12"; do
		hides call -v "$url" demo.S.m 1 -t 100ms --json
		hides ping "$url" -c 1 -t 100ms
		hides ls "$url" -t 100ms
		hides serve --port 0 --registry "$url"
		hides "$url"
	done
	for url in "dubbo://127.0.0.1:1/demo.A?token=geheim12" "127.0.0.1:1?token=geheim12" \
		"http://me:geheim12@127.0.0.1:x"; do
		hides call "$url" demo.S.m 1 --wire mprpc -t 100ms
		hides call "$url" demo.S.m 1 --wire dubbo -t 100ms
		hides call demo.S.m "$url"
		hides ping "$url" -c 1 -t 100ms --json -w mprpc
		hides bench "$url" demo.S.m 1 -n 1 --warm-up 0s
		hides bench "$url" demo.S.m 1 -n 1 --warm-up 0s --json
		hides watch "$url" demo.S -t 100ms
		hides tap "$url" nowhere
		hides tap nowhere "$url"
		hides top --once "$url"
		hides lock "$url" name -- true
		hides lock name "$url" x -- true
		hides serve --port 0 --advertise "$url"
		hides serve --port "$url"
		hides config --explain "$url"
	done
	for url in "file://$work/none?token=geheim12" "file://me:geheim12@h$work/none" \
		"static://me:geheim12@127.0.0.1:1" "static://127.0.0.1:1?password=geheim12" \
		"static://127.0.0.1:99999?token=geheim12" "nacos://me:geheim12@127.0.0.1:1"; do
		hides call "$url" demo.S.m 1 -t 100ms
		hides call "$url" m 1
		hides call -v --json "$url" demo.S.m 1 -t 100ms
		hides ping "$url"
		hides ls "$url" demo.S -t 100ms
		hides ls "$url" -t 100ms
	done
	for url in "dubbo://127.0.0.1:x?token=geheim12" "dubbo://127.0.0.1:0/x#token=geheim12" \
		"dubbo://127.0.0.1:0?token=geheim12" "dubbo://me:geheim12@127.0.0.1:x"; do
		hides serve "$url"
		hides serve --config "$url"
		hides comet "$url"
		hides config --check "$url"
		hides certs "$url"
	done
	printf 'dubbo://127.0.0.1:1/demo.One?token=geheim12&say.token=geheim12&password=geheim12\n' >"$work/providers"
	hides ls "file://$work/providers"
	hides ls "file://$work/providers" --json
	hides call "$work/none" demo.S.m -a token=geheim12 -a token=geheim12
	hides call 127.0.0.1:1 demo.S.m -a token:geheim12
	hides call 127.0.0.1:1 demo.S.m --token-plain=geheim12

	# Lines of a file.
	for line in 'listen = dubbo://127.0.0.1:0?token=geheim12' 'listen = dubbo://127.0.0.1:x?token=geheim12' \
		'listen = unix:a?%74oken=geheim12' 'listen = dubbo://me:geheim12@127.0.0.1:x' \
		'listen dubbo://127.0.0.1?token=geheim12' 'listenn = 127.0.0.1?token=geheim12' \
		'allow.callers = token:geheim12' 'advertise = "a?token=geheim12' 'tokn = geheim12' \
		'listen = dubbo://127.0.0.1:20880?token=aaaa1111,geheim12' 'Tokens = geheim12' \
		'allow.from = //me:pa,geheim12@h'; do
		printf '[provider]\n%s\n' "$line" >"$work/wrong.conf"
		hides config --check "$work/wrong.conf"
		hides serve --config "$work/wrong.conf"
		hides call --config "$work/wrong.conf" 127.0.0.1:1 a.b
	done
	printf '[provider]\nlisten = dubbo://127.0.0.1?token=geheim12\n' >"$work/listen.conf"
	run 1 '' '*:2: listen = dubbo://127.0.0.1?token=[*][*][*]: an address may only have *' \
		config --check "$work/listen.conf"

	for verb in call ping bench serve; do
		run 0 '*seen by other users in the list of processes*' '' $verb --help
	done

	# Where a page or a tap listens. The output of the run before must not be taken for this one's.
	rm "$work/out"
	"$spoke" serve --port 0 --admin "unix:$work/page?token=geheim12" >"$work/out" 2>"$work/err" &
	pid=$!
	started="$started $pid"
	await "admin page at unix:$work/page" "$work/out"
	! grep geheim12 "$work/out" "$work/err" || fail "serve --admin shows a secret"
	finish TERM
	for json in --plain --json; do
		rm "$work/out"
		"$spoke" tap $json "unix:$work/tap?token=geheim12" "127.0.0.1:1" >"$work/out" 2>"$work/err" &
		pid=$!
		started="$started $pid"
		await "$work/tap" "$work/out"
		! grep geheim12 "$work/out" "$work/err" || fail "tap shows a secret"
		finish TERM
	done

	# A host is shown if no parameter can stand in its place.
	run 2 '' '*: tcp://[*][*][*]: *' ping 'tcp://bad url?token=se@cret'
	run 2 '' '*: tcp://[*][*][*]@bad host: *' ping 'tcp://me:geheim12@bad host?token=a'
	# Other texts of the user are shown as they are.
	run 2 '' '*: Dubo://127.0.0.1:1/a%20b: unknown; *' call 'Dubo://127.0.0.1:1/a%20b' demo.S.m
	run 4 '' '*call: dubbo://me:[*][*][*]@127.0.0.1:1/x cannot be reached: *' \
		call 'dubbo://me:geheim12@127.0.0.1:1/x?token=geheim12' demo.S.m
}

# A ticket that outlives its process, seen beside it and changed afterwards.
journal() {
	mkdir -m 700 "$work/journal"
	run 2 '' '*: no journal: *' journal "$work/journal"
	run 2 '' '*: No such file or directory' journal "$work/none" check
	run 2 '' '*DIR missing*' journal
	run 2 '' '*: no such action; use list, *' journal "$work/journal" lost
	run 2 '' '*ID missing*' journal "$work/journal" show
	printf '[consumer]\njournal = %s\njournal.wait = 60s\nretry.period = 1h\nretry.deadline = 10h\n' \
		"$work/journal" >"$work/journal.conf"
	"$spoke" call --config "$work/journal.conf" --cluster failback -v dubbo://127.0.0.1:1 demo.Orders.buy '"shoes"' 2 \
		>"$work/out" 2>"$work/errors" &
	pid=$!
	started="$started $pid"
	await deferred "$work/errors"
	run 0 '*demo.Orders.buy' '' journal "$work/journal"
	run 0 '1 tickets of * bytes; a process has the journal open; no damage' '' journal "$work/journal" check
	number=$("$spoke" journal "$work/journal" --json | sed 's/^{"ticket":"\([0-9a-f]*\)",.*/\1/')
	run 1 '' '*: a process has the journal open; end it first' journal "$work/journal" drop "$number"
	kill -KILL "$pid"
	wait "$pid"
	run 0 '*arguments    "shoes", 2*attempts     1 of *' '' journal "$work/journal" show "$number"
	run 0 '{"ticket":"'"$number"'",*"arguments":\["shoes",2\],*"attempts":1,*' '' journal "$work/journal" export
	run 2 '' '*: no ticket 7777, or it is settled' journal "$work/journal" show 7777
	run 0 "ticket $number: all attempts *" '' journal "$work/journal" retry "$number"
	run 0 '*"attempts":0,*' '' journal "$work/journal" export
	run 0 '1 tickets written anew; 0 damaged places, *' '' journal "$work/journal" repair
	run 0 "ticket $number: dropped" '' journal "$work/journal" drop "$number"
	run 0 'no tickets' '' journal "$work/journal"
}

comet() {
	conf=$work/comet.conf
	printf '[provider]\nlisten = tcp://127.0.0.1:0\n' >"$conf"
	run 2 '' '*\[comet\] has no listen; write *' comet "$conf"
	printf '[comet]\nlisten = 127.0.0.1:0\n' >"$conf"
	run 2 '' '*\[provider\] has no listen, *' comet --check "$conf"
	printf 'retry.min = 1m\n[provider]\nlisten = tcp://127.0.0.1:0\n' >>"$conf"
	run 2 '' '*comet.conf:3: retry.min = 1m: greater than retry.max, which is 15s*' comet --check "$conf"
	run 2 '' '*comet.conf:3: retry.min = 1m: greater than retry.max, which is 15s*' comet "$conf"
	printf '[comet]\nlisten = 127.0.0.1:0\n[provider]\nlisten = tcp://127.0.0.1:0\ntls = on\n' >"$conf"
	run 2 '' '*tls: *' comet --check "$conf"
	printf '[comet]\nlisten = 127.0.0.1:0\npage = %s/none\n[provider]\nlisten = tcp://127.0.0.1:0\n' "$work" >"$conf"
	run 2 '' '*page = *none: the file cannot be read' comet --check "$conf"
	printf '[comet]\nlisten = 127.0.0.1:0\nlife = 5\n' >"$conf"
	run 2 '' '*:3: life = 5: a duration needs a unit*' comet --check "$conf"
	printf '[comet]\nlisten = 127.0.0.1:0\nbackend = tcp://127.0.0.1:1\n[provider]\nlisten = tcp://127.0.0.1:0\n' >"$conf"
	run 2 '' '*comet.conf:3: backend = tcp://127.0.0.1:1: the URL must name the service, *' comet --check "$conf"
	run 2 '' '*comet.conf:3: backend = tcp://127.0.0.1:1: the URL must name the service, *' comet "$conf"
	run 2 '' '*FILE missing*' comet
	run 0 '*spoke.Tickets, which answers*{"ticket":TICKET,"ms":MS}*' '' comet --help
	printf '[comet]\nlisten = 127.0.0.1:0\norigins = https://a.example, https://b.example\nticket.life = 2s\n[provider]\nlisten = tcp://127.0.0.1:0\n' >"$conf"
	run 0 '*comet.conf: no errors' '' comet --check "$conf"
	rm -f "$work/output"
	mkfifo "$work/output"
	"$spoke" comet --quiet "$conf" >"$work/output" 2>"$work/log" &
	pid=$!
	started="$started $pid"
	{
		read -r pages
		read -r line
	} <"$work/output" || fail "comet: no output"
	[ "${pages#pages connect to 127.0.0.1:}" != "$pages" ] || fail "comet printed: $pages"
	at=${line#spoke.Comet listens at }
	run 0 '{"online":0,"users":\[\]}' '' call "$at" spoke.Comet.who
	run 0 '{"id":"*.1","users":0,"connections":0}' '' call "$at" spoke.Comet.push '"ann"' '"offer"' '"tea"'
	run 0 '{"ticket":"????????????????????????????????????????","ms":2000}' '' \
		call "$at" spoke.Tickets.issue '"ann"'
	run 1 '' '*' call "$at" spoke.Tickets.issue '""'
	run 1 '' '*the events hello, lost, *' call "$at" spoke.Comet.push '"ann"' '"hello"' '"tea"'
	# Live keys change the gateway; a file with errors changes nothing.
	run 0 '{"id":"*"*' '' call "$at" spoke.Comet.push '"ann"' '"offer"' '"0123456789"'
	head=$(printf '[comet]\nlisten = 127.0.0.1:0\nticket.life = 2s\n')
	printf '%s\nmessage.max = 9\n[provider]\nlisten = tcp://127.0.0.1:0\n' "$head" >"$conf"
	reload 'config: reloaded'
	run 1 '' '*' call "$at" spoke.Comet.push '"ann"' '"offer"' '"0123456789"'
	run 0 '{"id":"*"*' '' call "$at" spoke.Comet.push '"ann"' '"offer"' '"012345678"'
	printf '%s\nmessage.max = 90\nlife = 5\n[provider]\nlisten = tcp://127.0.0.1:0\n' "$head" >"$conf"
	reload 'config: nothing changed'
	reload 'comet.conf:5: life = 5: a duration needs a unit'
	run 1 '' '*' call "$at" spoke.Comet.push '"ann"' '"offer"' '"0123456789"'
	finish TERM
}

# Sends SIGHUP until a line of the log says this. Ten lines a second are printed, and the calls before had some.
reload() {
	tries=0
	until grep -q "$1" "$work/log"; do
		[ $((tries += 1)) -lt 300 ] || fail "no \"$1\" after SIGHUP: $(cat "$work/log")"
		kill -HUP "$pid"
		sleep 0.1
	done
}

# mode <file>: prints its permission bits.
mode() {
	stat -c %a "$1"
}

secure() {
	certs=$work/certs
	"$spoke" certs "$certs" >"$work/conf" 2>"$work/err"
	got=$?
	if grep -q 'not built in' "$work/err"; then
		[ $got = 1 ] || fail "certs without TLS: exit code $got"
		run 2 '' '*not built in; build spoke with OpenSSL*' serve --port 0 --cert a --key b
		run 2 '' '*not built in; build spoke with OpenSSL*' call 127.0.0.1:1 a.b --tls
		exit 0
	fi
	[ $got = 0 ] || fail "certs: exit code $got: $(cat "$work/err")"
	for file in ca provider consumer; do
		[ "$(mode "$certs/$file.key")" = 600 ] || fail "$file.key: mode $(mode "$certs/$file.key")"
		openssl verify -x509_strict -CAfile "$certs/ca.pem" "$certs/$file.pem" >"$work/out" 2>&1 ||
			fail "openssl verify $file.pem: $(cat "$work/out")"
	done
	run 0 '*: no errors' '' config --check "$work/conf"

	# Nothing is overwritten, and nothing of a run that fails stays.
	cp "$certs/ca.key" "$work/ca.key"
	run 1 '' '*provider.key exists and is not overwritten*' certs "$certs"
	touch "$certs/orders.pem"
	run 1 '' '*orders.pem exists*' certs "$certs" --for orders
	[ ! -e "$certs/orders.key" ] || fail "certs leaves a key behind"
	rm "$certs/orders.pem"
	run 0 '*' '*dns:orders.test,uri:spiffe://test/orders*' certs "$certs" --for orders --ed25519 \
		--name dns:orders.test --name uri:spiffe://test/orders --days 3
	cmp -s "$work/ca.key" "$certs/ca.key" || fail "certs overwrites the authority"
	chmod 644 "$certs/ca.key"
	run 1 '' '*ca.key: its group or others may read it; chmod 600*' certs "$certs" --for x
	chmod 600 "$certs/ca.key"
	openssl verify -CAfile "$certs/ca.pem" -verify_hostname orders.test "$certs/orders.pem" \
		>"$work/out" 2>&1 || fail "openssl verify orders.pem: $(cat "$work/out")"
	openssl x509 -in "$certs/orders.pem" -noout -checkend 172800 >"$work/out" || fail "--days 3: ends too early"
	openssl x509 -in "$certs/orders.pem" -noout -checkend 345600 >"$work/out" && fail "--days 3: ends too late"
	run 2 '' '*"dns:a b" is not a name*' certs "$certs" --for x --name 'dns:a b'
	run 2 '' '*"ip:1.2.3" is not a name*' certs "$certs" --for x --name ip:1.2.3
	run 2 '' '*--for=../x: not a name of a file*' certs "$certs" --for ../x
	run 2 '' '*--days=0: must be from 1 to 36500*' certs "$certs" --days 0
	run 2 '' '*expected one DIR*' certs
	run 1 '' '*: No such file or directory' certs "$work/none/certs"
	run 1 '' '*: Not a directory' certs "$work/conf/certs"
	[ ! -e "$work/none" ] || fail "certs makes parents"
	mv "$certs/ca.key" "$work/moved"
	run 1 '' '*ca.key is missing, and *' certs "$certs" --for x
	cp "$certs/provider.key" "$certs/ca.key"
	run 2 '' "*the authority's key belongs to another certificate" certs "$certs" --for x
	mv -f "$work/moved" "$certs/ca.key"

	# A call with them; without them there is none.
	own="--cert $certs/provider.pem --key $certs/provider.key"
	# shellcheck disable=SC2086
	serve --port 0 $own --ca "$certs/ca.pem"
	run 0 '1' '' call "$at" demo.EchoService.echo 1 --ca "$certs/ca.pem" \
		--cert "$certs/consumer.pem" --key "$certs/consumer.key"
	run 0 '1' '' call "$at" demo.EchoService.echo 1 --ca "$certs/ca.pem" --peer dns:localhost \
		--peer uri:other:x --cert "$certs/orders.pem" --key "$certs/orders.key"
	run 0 '1' '' call "$at" demo.EchoService.echo 1 --config "$work/conf"
	run 0 '*failed     0*' '' bench "$at" demo.EchoService.echo 1 -n 100 --warm-up 0s --plain \
		--ca "$certs/ca.pem" --cert "$certs/consumer.pem" --key "$certs/consumer.key"
	run 0 'TLSv1.3, TLS_AES_*; the provider is dns:localhost,ip:127.0.0.1*; its certificate ends in 36[45] days
1: *' '*: connected*' ping "$at" -c 1 --plain --ca "$certs/ca.pem" --cert "$certs/consumer.pem" --key "$certs/consumer.key"
	run 0 '{"tls":"TLSv1.3",*,"days":36[45]}*' '*: connected*' ping "$at" -c 1 --json --ca "$certs/ca.pem" \
		--cert "$certs/consumer.pem" --key "$certs/consumer.key"
	run 4 '' '*set tls.cert and tls.key*' call "$at" demo.EchoService.echo 1 --ca "$certs/ca.pem"
	run 4 '' '*unable to get local issuer certificate*' call "$at" demo.EchoService.echo 1 --tls
	run 4 '' '*' call "$at" demo.EchoService.echo 1
	run 4 '' '*it bears none of the expected names*' call "$at" demo.EchoService.echo 1 \
		--ca "$certs/ca.pem" --peer dns:other --cert "$certs/consumer.pem" --key "$certs/consumer.key"
	run 2 '' '*tls.cert and tls.key: set both or none*' call "$at" a.b --cert "$certs/consumer.pem"
	run 2 '' '*tls.peers: "localhost" is no name*' call "$at" a.b --peer localhost
	run 2 '' '*--ca=: must not be empty*' call "$at" a.b --ca ''
	run 2 '' '*tls: set tls.cert and tls.key*' serve --port 0 --tls
	run 2 '' '*pages over TLS cannot be read*' top --once https://127.0.0.1:1
	# The names of a service are those of its section, although the URL does not name it.
	{
		cat "$work/conf"
		printf 'tls.peers = dns:localhost\n[service.demo.EchoService]\ntls.peers = dns:other\n'
	} >"$work/named"
	run 4 '' '*it bears none of the expected names*' call "$at" demo.EchoService.echo 1 --config "$work/named"
	finish TERM
}

verbs() {
	run 2 '' 'usage: spoke VERB*'
	run 0 'usage: spoke VERB*' '' help
	run 0 'usage: spoke VERB*' '' help --help
	run 0 'spoke [0-9]*' '' --version
	"$spoke" --version 2>"$work/err" >/dev/full && fail "a full stdout is no error"
	grep -q 'cannot write the output: No space' "$work/err" || fail "full stdout: $(cat "$work/err")"
	"$spoke" help serve 2>"$work/err" >&- && fail "a closed stdout is no error"
	"$spoke" config --explain 2>"$work/err" >/dev/full && fail "a full stdout is no error"
	# What is printed does not go into the first file or socket that is opened.
	printf 'dubbo://127.0.0.1:1/demo.X\n' >"$work/list"
	for what in "watch file://$work/list" "tap 127.0.0.1:0 127.0.0.1:1" "serve --port 0" \
		"top -1 127.0.0.1:1" "ping 127.0.0.1:1 -c 1 -i 1ms" "ls static://127.0.0.1:1 demo.X" "help top"; do
		for to in full closed; do
			# shellcheck disable=SC2086
			case $to in
			full) "$spoke" $what >/dev/full 2>"$work/err" ;;
			closed) "$spoke" $what >&- 2>"$work/err" ;;
			esac
			got=$?
			[ $got = 1 ] || fail "spoke $what, $to stdout: exit code $got: $(cat "$work/err")"
			case $to in
			full) reason='No space left on device' ;;
			closed) reason='Bad file descriptor' ;;
			esac
			grep -q "cannot write the output: $reason" "$work/err" || fail "spoke $what, $to stdout: $(cat "$work/err")"
		done
	done
	run 2 '' '*no such verb; did you mean call[?]' cal
	run 2 '' '*no such verb; spoke help lists them' somewhere
	run 2 '' '*--timout: no such option; did you mean --timeout[?]' call --timout=1s
	run 2 '' '*-x: no such option*' call -x
	run 2 '' '*--timeout=5x: not a duration; write a number and a unit, e.g. 250ms*' \
		call a:1 b.c --timeout=5x
	run 2 '' '*--timeout: TIME missing*' call --timeout
	run 2 '' '*URL: token: a token has 8 to 256 visible*' call 'tcp://127.0.0.1:1/x?token=abc' a.b
	run 2 '' '*--connections=10001: must be from 1 to 10000*' bench h:1 a.b --connections 10001
	printf '[registry]\nurl = foo://x\n[engine]\nadmin = nowhere\n' >"$work/wrong"
	run 1 '' '*wrong:2: url = foo://x: not a registry; *wrong:4: admin = nowhere: not a numeric*' \
		config --check "$work/wrong"
	printf '[registry]\nurl = file://relative\n' >"$work/wrong"
	run 1 '' '*wrong:2: url = file://relative: the path must be absolute*' config --check "$work/wrong"
	printf '[method.a.B.c]\ncluster = failback\n[provider]\nonline = no\nregister.delay = 3s\n' >"$work/noted"
	run 0 '*: \[method.a.B.c\] cluster = failback: only in a program that takes tickets *: \[provider\] register.delay: not followed, *: no errors' \
		'' config --check "$work/noted"
	printf '[service.a.B]\ntoken.file = %s/none\n' "$work" >"$work/wrong"
	run 1 '' '*token.file = *none: *' config --check "$work/wrong"
	printf '[engine]\nadmin = 127.0.0.1:1\nadmin.token.file = %s/none\n' "$work" >"$work/wrong"
	run 1 '' '*admin.token.file = *none: *' config --check "$work/wrong"
	printf '[engine]\nadmin = https://127.0.0.1:1\n' >"$work/wrong"
	run 1 '' '*tls.cert*' config --check "$work/wrong"
	printf '[provider]\naccess.log = %s/none/log\n' "$work" >"$work/wrong"
	run 1 '' '*wrong:2: access.log = *none/log: cannot be written: *' config --check "$work/wrong"
	run 2 '' '*--heartbeat=1ms: must be at least 10ms, or 0*' serve --heartbeat 1ms
	run 2 '' '*--heartbeat=1ms: must be at least 10ms, or 0*' ping h:1 --heartbeat 1ms
	run 2 '' '*--notify: takes no value' call --notify=1
	run 2 '' '*--retries=1000: must be from 0 to 100' call --retries 1000
	run 2 '' '*METHOD missing*usage: spoke call*' call tcp://127.0.0.1:1
	run 2 '' '*--cluster=failovr: unknown; use *' call h:1 a.b --cluster=failovr
	run 2 '' '*--timeout=0: must be positive*' call h:1 a.b -t 0
	run 2 '' '*--attachment=k=...: duplicate key' call h:1 a.b -a k=v -a k=w
	run 2 '' '*MessagePack-RPC has no *attachments*' call h:1 a.b -w mprpc -a k=v
	run 2 '' '*--types=Lx: not type descriptors*' call h:1 a.b 1 --types Lx
	run 2 '' '*--serialization=java: unknown; use hessian2*' call h:1 a.b 1 --serialization java
	run 2 '' '*MessagePack-RPC has no*generic*' call msgpack-rpc://h:1 a.b 1 --generic
	run 2 '' '*--types=II: 2 types for 1 arguments' call h:1 a.b 1 --types II
	run 2 '' '*an argument is empty*' call h:1 a.b ''
	run 2 '' '*tpc://h:1: unknown; write *' call tpc://h:1 a.b
	run 2 '' '*the arguments, byte 4: *' call h:1 a.b '[1 2]'
	run 2 '' '*: a port is a number*' call tcp://h:x a.b
	run 2 '' '*no service*' call tcp://127.0.0.1:1 b
	run 2 '' '*--drop-rate=2: not a share*' serve --drop-rate 2
	run 2 '' '*--port=65536: must be from*' serve --port 65536
	run 2 '' '*--rate=1e12: must be from 0.001 to 1e+07' bench h:1 a.b --rate 1e12
	run 2 '' '*--service=: must not be empty*' serve --service ''
	sh "$here/words.sh" "$spoke" || exit 1
}

case $2 in
call | faults | registry | paths | secure | secrets | comet | journal | verbs) "$2" ;;
*) fail "usage: sh command.sh <program> call|faults|registry|paths|secure|secrets|comet|journal|verbs" ;;
esac
