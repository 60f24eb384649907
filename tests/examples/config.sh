#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests spoke config: spoke.conf(5) is up to date, the sample spoke.conf has no errors, and the exit
# statuses. Arguments: the command, the folder of its sources.
set -eu
spoke=$1
sources=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

fail() {
	echo "$*"
	bad=1
}

# ends STATUS ARGUMENT...: runs spoke config and checks its exit status.
ends() {
	wanted=$1
	shift
	status=0
	"$spoke" config "$@" >"$work/out" 2>"$work/err" || status=$?
	[ $status = "$wanted" ] || fail "spoke config $*: exit status $status, not $wanted"
}

ends 0 --man
cmp "$work/out" "$sources/spoke.conf.5" ||
	fail "spoke.conf.5 is out of date: write the output of spoke config --man to it"

ends 0 --check "$sources/spoke.conf"
[ ! -s "$work/err" ] || fail "spoke.conf: errors: $(cat "$work/err")"
for key in retry.period heartbeat; do
	grep -q "^$key *= " "$sources/spoke.conf" || fail "spoke.conf: does not set $key"
done

printf '[consumer]\nretry.perid = 5s\nheartbeat = 5\n' >"$work/wrong.conf"
ends 1 --check "$work/wrong.conf"
cat >"$work/wanted" <<END
$work/wrong.conf:2: retry.perid = 5s: no such key; did you mean retry.period?
$work/wrong.conf:3: heartbeat = 5: a duration needs a unit; write 5ms or 5s
END
cmp "$work/err" "$work/wanted" || fail "a wrong file: $(cat "$work/err")"
ends 1 --check "$work/none.conf"
grep -q 'none.conf: no such file' "$work/err" || fail "no file: $(cat "$work/err")"
ends 1 --check "$work"

# refuses TEXT PATTERN: a file whose lines are right, but whose values a start would refuse.
refuses() {
	printf '%b' "$1" >"$work/start.conf"
	ends 1 --check "$work/start.conf"
	grep -q "start.conf.*$2" "$work/err" || fail "$1: $(cat "$work/err")"
}
refuses '[provider]\ntls = on\n' 'tls'
refuses '[provider]\nauth = accesskey\n' 'access'
refuses '[consumer]\nauth = accesskey\n' 'access'
refuses '[lease]\nttl = 1s\nguard = 900ms\n' :3: guard = 900ms: not less than half'
refuses '[lease]\nuser = x\n' 'a user without a password'
refuses '[provider]\nauth = accesskey\n[lease]\nuser = x\n' 'a user without a password'
refuses '[comet]\nretry.min = 10s\nretry.max = 1s\n' :3: retry.max = 1s: less than retry.min, which is 10s'
refuses '[comet]\nretry.max = 777ms\n' ':2: retry.max = 777ms: less than retry.min, which is 1s'
refuses '[comet]\nretry.min = 16s\n' ':2: retry.min = 16s: greater than retry.max, which is 15s'
refuses "[comet]\npage = $work/none\n" "page = $work/none: the file cannot be read"
refuses "[provider]\ntls.key = $work/none.pem\n" 'tls.cert and tls.key: set both or none'
refuses "[provider]\ntoken.file = $work/none\n" "$work/none"
refuses "[consumer]\ntls = on\ntls.ca = $work/none.pem\n" 'none.pem'
printf '[registry]\nurl = zookeeper://127.0.0.1:1\n[lease]\nstore = redis://127.0.0.1:1\n[provider]\naccess.log = %s\n' \
	"$work/access.log" >"$work/start.conf"
ends 0 --check "$work/start.conf"
[ ! -e "$work/access.log" ] || fail "--check makes an access log"

ends 0 --explain
for key in retry.period heartbeat listen tick; do
	grep -q "^  $key" "$work/out" || fail "--explain: does not list $key"
done
[ "$(grep -cE '^.{101}' "$work/out")" = 0 ] || fail "--explain: lines are too long"
ends 0 --explain retry.period
[ "$(grep -c '^  retry.period = 5s$' "$work/out")" = 2 ] || fail "--explain retry.period: $(cat "$work/out")"
ends 0 --explain lease.wait
grep -q '^  wait = 0s$' "$work/out" || fail "--explain lease.wait: $(cat "$work/out")"
ends 2 --explain retry.perid
grep -q 'did you mean retry.period?' "$work/err" || fail "--explain: $(cat "$work/err")"
ends 0 retry.period
grep -q '^  retry.period = 5s$' "$work/out" || fail "a key alone: $(cat "$work/out")"
ends 2 --explain a b
grep -q 'only one KEY is allowed' "$work/err" || fail "two keys: $(cat "$work/err")"
ends 2 --check "$sources/spoke.conf" "$sources/spoke.conf"
ends 2 --explain --man
grep -q -e '--man: --check, --explain and --man exclude' "$work/err" || fail "two things: $(cat "$work/err")"
mkfifo "$work/pipe"
ends 1 --check "$work/pipe"
grep -q 'not a regular file' "$work/err" || fail "a pipe: $(cat "$work/err")"
ends 2
ends 2 --check
ends 2 --check "$sources/spoke.conf" --man
ends 2 --frobnicate
ends 0 --help
exit $bad
