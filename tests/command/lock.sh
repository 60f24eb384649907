#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# spoke lock as users run it, with a real Redis on a unix socket: sh lock.sh <the program> <what>
#
#   usage  wrong usage, and stores that are not there; needs no Redis
#   run    environment, statuses, signals, descriptors and secrets of the command
#   wait   busy, wait, timeout, several waiters
#   lost   leases that are lost, and processes that are killed or stopped
#   admin  list and break
#
# Exit status 77: there is no Redis.
set -u
spoke=$1
server=/usr/bin/redis-check-rdb # the server has several names, and this one is in redis-tools
work=$(TMPDIR=/tmp mktemp -d) || exit 2
url=redis+unix://$work/redis.sock
started=
stop() {
	for process in $started; do
		kill -CONT "$process" 2>"$work/gone"
		kill -KILL "$process" 2>"$work/gone"
	done
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	for output in "$work"/*.err; do
		[ -f "$output" ] && sed "s|^|${output##*/}: |" "$output"
	done
	exit 1
}

# await <command>...: repeats the command until it succeeds.
await() {
	tries=0
	until "$@" >"$work/tried" 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 2000 ] || fail "in vain: $*: $(cat "$work/tried")"
		sleep 0.01
	done
}
is_gone() {
	# A zombie has no command line any more. Files of /proc have no size, so the line is read.
	! grep -q . "/proc/$1/cmdline" 2>"$work/gone"
}

cli() {
	redis-cli -s "$work/redis.sock" "$@"
}

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# redis: starts a server; sets $redis to its process, and $ttl to a time to live within which this machine, as busy
# as it is now, renews a lease: at least 1 s, and ten times what the server needed to start.
redis() {
	[ -x "$server" ] && command -v redis-cli >"$work/which" || {
		echo "there is no Redis: apt-get install redis-tools"
		exit 77
	}
	ln -sf "$server" "$work/redis-server"
	rm -f "$work/redis.sock" "$work/redis.log"
	"$work/redis-server" --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no \
		--dir "$work" >"$work/redis.log" 2>&1 &
	redis=$!
	started="$started $redis"
	begun=$(now_ms)
	await cli ping
	ttl=$((10 * ($(now_ms) - begun)))
	[ $ttl -gt 1000 ] || ttl=1000
	ttl=${ttl}ms
}

# run <exit code> <pattern of stdout> <pattern of stderr> <argument...>: runs spoke lock.
run() {
	code=$1
	out=$2
	err=$3
	shift 3
	"$spoke" lock "$@" >"$work/out" 2>"$work/run.err" </dev/null
	got=$?
	output=$(cat "$work/out")
	wrong=$(cat "$work/run.err")
	[ "$got" = "$code" ] || fail "spoke lock $*: exit code $got, not $code: $output $wrong"
	case $output in
	$out) ;;
	*) fail "spoke lock $*: stdout is: $output, not: $out" ;;
	esac
	case $wrong in
	$err) ;;
	*) fail "spoke lock $*: stderr is: $wrong, not: $err" ;;
	esac
}

# hold <name> <option...>: holds a lease in the background until let_go. Sets $holder to the process of
# spoke lock and $command to that of the command, which records its signals.
hold() {
	name=$1
	shift
	rm -f "$work/$name.pid" "$work/$name.fifo" "$work/$name.err" "$work/$name.signals"
	mkfifo "$work/$name.fifo"
	"$spoke" lock "$url" "$name" "$@" -- sh -c 'trap "echo TERM >>$1.signals" TERM
		trap "echo HUP >>$1.signals" HUP
		echo $$ >$1.new && mv $1.new $1.pid
		until read -r status <$1.fifo; do :; done
		exit $status' sh "$work/$name" 2>"$work/$name.err" &
	holder=$!
	started="$started $holder"
	await test -f "$work/$name.pid"
	command=$(cat "$work/$name.pid")
}

# let_go <name> <status>: ends the command of hold().
let_go() {
	echo "$2" >"$work/$1.fifo"
}

# ends <status> <process> <what>
ends() {
	wait "$2"
	got=$?
	[ $got = "$1" ] || fail "$3: exit status $got, not $1"
}

# waits <command...>: runs a command in the background as soon as it gets the lease "name". Sets $waiter to the
# process of spoke lock. Its messages are in waiter.err, which is removed first: the background process is the
# one that would truncate it, possibly after the messages of an earlier waiter were taken for its own.
waits() {
	rm -f "$work/waiter.err"
	"$spoke" lock -v --wait "$url" name -- "$@" >"$work/out" 2>"$work/waiter.err" &
	waiter=$!
	started="$started $waiter"
	await test -s "$work/waiter.err"
}

usage() {
	run 2 '' '*COMMAND missing; write -- before it*usage: spoke lock *' redis://h name
	run 2 '' '*COMMAND missing after --*' redis://h name --
	run 2 '' '*NAME missing*' -- true
	run 2 '' '*NAME missing after the URL*' redis://h -- true
	run 2 '' '*three: one operand too many*-- COMMAND' redis://h two three -- true
	run 2 '' '*name: one operand too many*--wait=10s)' --wait 10s redis://h name -- true
	run 2 '' '*10s: not the URL of a store*--wait=10s)' --wait 10s name -- true
	run 2 '' '*10s: not the URL of a store*--wait=10s*' --wait 10s name -- true
	run 2 '' '*the store is not known;*' name -- true
	run 2 '' '*--wait=0: must be positive*' redis://h name --wait=0 -- true
	run 2 '' '*--ttl=10ms: must be at least 100ms' redis://h name --ttl=10ms -- true
	run 2 '' '*--grace=x: not a duration*' redis://h name --grace=x -- true
	run 2 '' '*--break: takes no value' --break= redis://h name
	run 2 '' '*--list and --break exclude each other' --break --list redis://h name
	run 2 '' '*true: --list runs no command' --list redis://h -- true
	run 2 '' '*--wait, --ttl and --grace are for a command*' --list redis://h --wait
	run 2 '' '*--json is for --list and --break*' --json redis://h name -- true
	run 2 '' '*--yes is for --break*' --yes redis://h name -- true
	run 2 '' '*--quiet and --verbose exclude each other' -q -v redis://h name -- true
	run 2 '' '*add --yes' --break redis://h name
	run 2 '' '*ldap*' ldap://h name -- true
	long=$(printf '%04096d' 0)
	run 2 '' '*not a name; write 1 to *' "redis://h" "$long" -- true
	run 2 '' '*not a name; write 1 to *' --break -y "redis://h" "$long"
	run 2 '' '*not a pattern; write 1 to *' --list "redis://h" "$long"
	printf '[lease]\nttl = 5x\n' >"$work/wrong"
	run 2 '' '*wrong:2: ttl = 5x:*' --config "$work/wrong" redis://h name -- true
	run 122 '' '*cannot be reached*' "$url" name -- true
	run 122 '' '*cannot be reached*' "$url" --wait=100ms name -- true
	run 4 '' '*cannot be reached*' --list "$url"
	run 4 '' '*cannot be reached*' --break -y "$url" name
}

run_() {
	redis
	# shellcheck disable=SC2016
	run 0 'a name 1' '' "$url" 'a name' -- sh -c 'echo $SPOKE_LEASE $SPOKE_FENCE'
	[ "$(cli exists 'a name')" = 0 ] || fail "the lease was not given back"
	# shellcheck disable=SC2016
	run 7 'a name 2' '*"a name" is held; fence 2*is given back' -v "$url" 'a name' -- \
		sh -c 'echo $SPOKE_LEASE $SPOKE_FENCE; exit 7'
	run 0 '-v --help' '' "$url" name -- echo -v --help
	run 127 '' '*/none: No such file*' "$url" name -- "$work/none"
	run 126 '' '*redis.log: Permission denied*' "$url" name -- "$work/redis.log"
	[ "$(cli exists name)" = 0 ] || fail "the lease of a command that failed was not given back"
	# shellcheck disable=SC2016
	run 137 '' '' "$url" name -- sh -c 'kill -KILL $$'
	echo input | "$spoke" lock "$url" name -- cat >"$work/out" || fail "cat: $?"
	[ "$(cat "$work/out")" = input ] || fail "stdin: $(cat "$work/out")"

	# Nothing but what the caller has itself: descriptors, signals.
	ls /proc/self/fd >"$work/own"
	grep -E '^Sig(Blk|Ign)' /proc/self/status >>"$work/own"
	"$spoke" lock "$url" name -- sh -c 'ls /proc/self/fd
		exec grep -E "^Sig(Blk|Ign)" /proc/self/status' >"$work/out"
	cmp -s "$work/own" "$work/out" || fail "the command has: $(cat "$work/out"), not: $(cat "$work/own")"

	# Signals to spoke lock are the command's; the lease stays until it ends.
	hold name
	kill -HUP "$holder"
	await grep -q HUP "$work/name.signals"
	kill -TERM "$holder"
	await grep -q TERM "$work/name.signals"
	[ "$(cli exists name)" = 1 ] || fail "a signal gave the lease back"
	let_go name 9
	ends 9 "$holder" "a command that handles its signals"
	[ "$(cli exists name)" = 0 ] || fail "the lease was not given back"
	"$spoke" lock "$url" name -- sh -c 'echo >"$0"; exec sleep 600' "$work/began" 2>"$work/sleep.err" &
	holder=$!
	started="$started $holder"
	await test -f "$work/began"
	kill -TERM "$holder"
	ends 143 "$holder" "a command that does not"
	await is_gone "$holder"

	# The store from environment and file; secrets.
	SPOKE_LEASE_STORE=$url run 0 '' '' name -- true
	printf '[lease]\nstore = %s\nttl = 20s\n' "$url" >"$work/settings"
	run 0 '' '' --config "$work/settings" name -- true
	cli config set requirepass secret >"$work/set"
	run 122 '' '*cannot be reached*' "$url" name -- true
	SPOKE_LEASE_PASSWORD=secret run 0 '' '' "$url" name -- true
	echo 'password = secret' >>"$work/settings"
	run 0 '' '' --config "$work/settings" name -- true
}

wait_() {
	redis
	hold name
	run 120 '' '*"name" is held by another one, for * s at most' "$url" name -- true
	run 120 '' '' -q "$url" name -- true
	run 121 '' '*"name" was not granted in time' --wait=$ttl "$url" name -- true
	run 0 other '' "$url" another -- echo other

	# A waiter that gives up leaves everything as it was.
	waits true
	await grep -q 'is held by .*:[0-9]' "$work/waiter.err"
	kill -TERM "$waiter"
	ends 143 "$waiter" "a waiter that was ended"
	[ "$(cli exists name)" = 1 ] || fail "a waiter took the lease away"

	# Its supervisor is killed: the command will not be run.
	waits true
	await grep -q 'is held by .*:[0-9]' "$work/waiter.err"
	kill -KILL "$(cat "/proc/$waiter/task/$waiter/children")"
	ends 123 "$waiter" "a waiter without supervisor"
	grep -q 'that was to supervise the command was killed; the command was not run' "$work/waiter.err" ||
		fail "no reason"

	# Several waiters get it one after the other, with growing fences.
	waiters=
	for i in 1 2 3; do
		# shellcheck disable=SC2016
		"$spoke" lock -v --wait "$url" name -- sh -c 'mkdir "$0/inside" || exit 9
			echo $SPOKE_FENCE >>"$0/fences" && rmdir "$0/inside"' "$work" 2>"$work/waiter$i.err" &
		waiters="$waiters $!"
		started="$started $!"
		await grep -q 'is held by .*:[0-9]' "$work/waiter$i.err"
	done
	[ ! -f "$work/fences" ] || fail "a waiter has not waited"
	let_go name 0
	ends 0 "$holder" "the holder"
	for waiter in $waiters; do
		ends 0 "$waiter" "a waiter"
	done
	sort -n "$work/fences" | cmp -s - "$work/fences" || fail "fences: $(cat "$work/fences")"
	[ "$(sort -u "$work/fences" | wc -l)" = 3 ] || fail "fences: $(cat "$work/fences")"

	# The holder dies without giving back; the waiter gets it when its time to live is over.
	hold name --ttl $ttl
	waits echo mine
	kill -KILL "$holder"
	ends 0 "$waiter" "a waiter whose holder died"
	[ "$(cat "$work/out")" = mine ] || fail "the waiter's command did not run"

	# A store that comes back while spoke lock waits.
	kill -KILL "$redis"
	await is_gone "$redis"
	rm -f "$work/redis.sock"
	waits echo back
	redis
	ends 0 "$waiter" "a waiter whose store came back"
	[ "$(cat "$work/out")" = back ] || fail "the waiter's command did not run"
}

lost() {
	redis
	# Broken by another program: SIGTERM, and SIGKILL after the grace.
	hold name --ttl $ttl --grace 200ms
	cli del name >"$work/deleted"
	ends 123 "$holder" "a lease that was deleted"
	grep -q '"name" is lost: it was broken or taken by another holder; ending the command' \
		"$work/name.err" || fail "no reason"
	grep -q TERM "$work/name.signals" || fail "no SIGTERM before the SIGKILL"
	is_gone "$command" || fail "the command lives"

	# A command that ends by SIGTERM leaves children, which must end with it.
	rm -f "$work/child"
	"$spoke" lock --ttl $ttl "$url" name -- sh -c 'sleep 600 & echo $! >"$0.new"; mv "$0.new" "$0"
		wait' "$work/child" 2>"$work/name.err" &
	holder=$!
	started="$started $holder"
	await test -f "$work/child"
	cli del name >"$work/deleted"
	ends 123 "$holder" "a lease that was deleted"
	is_gone "$(cat "$work/child")" || fail "a child of the command lives"

	# Given up by somebody else just before the end.
	hold name --ttl 60s
	cli del name >"$work/deleted"
	let_go name 0
	ends 123 "$holder" "a lease that was not held at the end"
	grep -q 'was not held any more when the command ended' "$work/name.err" || fail "no reason"

	# The store dies. The command has ended before the time to live is over.
	hold name --ttl $ttl --grace 400ms
	kill -KILL "$redis"
	await is_gone "$redis"
	ends 123 "$holder" "a lease whose store died"
	grep -q '"name" is lost: it could not be renewed in time; ending' "$work/name.err" || fail "no reason"
	is_gone "$command" || fail "the command lives"
	redis

	# spoke lock is killed: the command and its children, too.
	rm -f "$work/child"
	"$spoke" lock "$url" name -- sh -c 'sleep 600 & echo $! >"$0.new"; mv "$0.new" "$0"; wait' \
		"$work/child" 2>"$work/name.err" &
	holder=$!
	started="$started $holder"
	await test -f "$work/child"
	kill -KILL "$holder"
	await is_gone "$(cat "$work/child")"
	cli del name >"$work/deleted"

	# spoke lock is stopped: its supervisor ends the command when the lease is over.
	hold name --ttl $ttl --grace 100ms
	kill -STOP "$holder"
	await is_gone "$command"
	kill -CONT "$holder"
	ends 123 "$holder" "a spoke lock that was stopped"
	grep -q 'the lease is over and spoke lock does not react' "$work/name.err" || fail "no reason"

	# ... for a short time: nothing happens.
	hold name
	kill -STOP "$holder"
	kill -CONT "$holder"
	let_go name 3
	ends 3 "$holder" "a spoke lock that was stopped for a moment"

	# The supervisor is killed: the kernel kills the command, and the lease is left to itself.
	hold name
	kill -KILL "$(cat "/proc/$holder/task/$holder/children")"
	ends 125 "$holder" "a spoke lock without supervisor"
	await is_gone "$command"
	[ "$(cli exists name)" = 1 ] || fail "the lease was given back, though processes may live"
}

admin() {
	redis
	run 0 '' '' --list "$url"
	run 5 '' '*"name" has no holder' --break -y "$url" name
	hold one
	first=$holder
	hold two
	run 0 'LEFT *FENCE *HOLDER *NAME*1 *:* one*' '' --list "$url" # a store has no order
	run 0 'LEFT *FENCE *HOLDER *NAME*1 *:* two*' '' --list "$url"
	run 0 'LEFT *NAME*:* two' '' --list "$url" 'tw*'
	run 0 '{"name":"two","holder":"*:*","left_ns":[0-9]*,"count":1,"fence":1}' '' --list --json "$url" two
	SPOKE_LEASE_STORE=$url run 0 '*one*' '' --list
	SPOKE_LEASE_STORE=$url run 0 'LEFT *:* two' '' --list 't*'
	run 0 '' '' --break --yes "$url" two
	[ "$(cli exists two)" = 0 ] || fail "the lease was not broken"
	run 0 '{"name":"one","broken":true}' '' --break -y --json "$url" one
	run 5 '{"name":"one","broken":false}' '' --break -y --json "$url" one
	let_go one 0
	let_go two 0
	wait "$first" "$holder"
	cli set text value >"$work/set"
	run 1 '' '*WRONGTYPE*' --break -y "$url" text
	run 125 '' '*"text" is refused: *WRONGTYPE*' "$url" text -- true
	java=0b8c2f4e-6f0e-4a8c-9a45-1f0c5d2c7e11:1
	cli hset 'a*' $java 1 >"$work/set"
	cli hset ab $java 1 >"$work/set"
	cli hset 'a* of others' key value >"$work/set"
	run 0 "LEFT *no end *$java *a[*]" '' --list "$url" 'a\**'
	run 120 '' '*"a[*]" is held by another one, without end' "$url" 'a*' -- true
	"$spoke" lock --list "$url" | : || fail "--list fails if its reader closes the pipe"
	# ... in the middle, too: what the store still answers is for nobody.
	cli eval "for i = 1, 2000 do redis.call('hset', 'many' .. i, ARGV[1], 1) end" 0 $java >"$work/set"
	"$spoke" lock --list "$url" 2>"$work/many.err" | head -n 1 >"$work/out"
	[ ! -s "$work/many.err" ] || fail "--list complains if its reader closes the pipe"
	[ "$("$spoke" lock --list "$url" 'many*' | sort -u | wc -l)" = 2001 ] || fail "--list lacks rows"
}

case $2 in
usage | lost | admin) "$2" ;;
run | wait) "${2}_" ;;
*) fail "usage: sh lock.sh <program> usage|run|wait|lost|admin" ;;
esac
