#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Follows GUIDE.md: installs spoke, writes the programs of the guide into an empty directory, and runs its
# commands in order.
#
#   sh tests/packaging/guide.sh [build directory]        default: build/release
set -eu
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build/release}
guide=$(pwd)/GUIDE.md

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cmake --install "$build" --prefix "$work/usr" >"$work/install.log"
PATH=$work/usr/bin:$PATH
LD_LIBRARY_PATH=$(dirname "$(find "$work/usr" -name libspoke.so)")
PKG_CONFIG_PATH=$LD_LIBRARY_PATH/pkgconfig
export PATH LD_LIBRARY_PATH PKG_CONFIG_PATH

mkdir "$work/empty"
cd "$work/empty"
# A block of C is the program named by the comment before it; the blocks of sh are the commands.
awk '
/^<!-- from / { file = $3; sub(/.*\//, "", file) }
/^```$/ { out = "" }
out { print >out }
/^```c$/ { out = file }
/^```sh$/ { out = "../commands" }
' "$guide"
test -s provider.c
test -s consumer.c

# Kills the processes that the commands leave running. A busy machine needs more than the 5 s in which
# a reader sees the tickets settled after the restart.
cat >../run <<'END'
set -eu
sleep() {
	[ "$1" != 5 ] || set -- 20
	command sleep "$1"
}
trap 'kill -KILL ${provider:-} ${consumer:-} 2>../ended || true' EXIT
. ../commands
END
if ! sh ../run >../output 2>&1; then
	cat ../output
	tail -n 20 ./*.log
	echo "GUIDE.md: a command has failed"
	exit 1
fi

# due <error> <pattern> <file>: fails with the error unless the file contains the pattern.
due() {
	grep -q "$2" "$3" && return
	cat ../output consumer.log
	echo "GUIDE.md: $1"
	exit 1
}
due 'spoke config reports errors in the file' 'no errors' ../output
due 'spoke ls does not show the service' 'demo.Greeter' ../output
[ "$(grep -c '^demo.Greeter ' ../output)" = 1 ] || {
	cat ../output
	echo 'GUIDE.md: a killed provider stays listed'
	exit 1
}
due 'spoke call got no answer' 'hello, you' ../output
due 'curl got no answer' 'hello, everybody' ../output
due 'the frozen provider was not suspected' 'heartbeat unanswered, 1 of 3' consumer.log
due 'the connection was not closed' 'three heartbeats unanswered' consumer.log
due 'there was no probation' 'has to answer first' consumer.log
due 'the provider did not recover' 'answers again' consumer.log
due 'no call became a ticket' 'retried in the background' consumer.log
due 'no ticket was settled by an answer' 'success' consumer.log
if grep 'ticket settled' consumer.log | grep -v success; then
	echo "GUIDE.md: some tickets were settled without success"
	exit 1
fi
echo "GUIDE.md works"
