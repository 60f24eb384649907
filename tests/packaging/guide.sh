#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what GUIDE.md says, as it stands there: installs spoke, writes the guide's programs into an empty
# directory, and runs its commands one after the other.
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
# A block of C is the program that the comment before it names; the blocks of sh are the commands.
awk '
/^<!-- from / { file = $3; sub(/.*\//, "", file) }
/^```$/ { out = "" }
out { print >out }
/^```c$/ { out = file }
/^```sh$/ { out = "../commands" }
' "$guide"
test -s provider.c
test -s consumer.c

# Whatever the commands leave behind is ended with them.
cat >../run <<'END'
set -eu
trap 'kill -KILL ${provider:-} ${consumer:-} 2>../ended || true' EXIT
. ../commands
END
if ! sh ../run >../said 2>&1; then
	cat ../said
	tail -n 20 ./*.log
	echo "GUIDE.md: one of its commands has failed"
	exit 1
fi

# due <what is due> <pattern> <file>
due() {
	grep -q "$2" "$3" && return
	cat ../said consumer.log
	echo "GUIDE.md: $1"
	exit 1
}
due 'spoke config does not find the file right' 'no errors' ../said
due 'spoke ls does not show the service' 'demo.Greeter' ../said
due 'spoke call is not answered' 'hello, you' ../said
due 'the frozen provider was not suspected' suspect consumer.log
due 'there was no probation' probation consumer.log
due 'the provider did not recover' recovered consumer.log
due 'no call became a ticket' 'deferred as a ticket' consumer.log
due 'no ticket was settled by an answer' 'success' consumer.log
if grep 'ticket settled' consumer.log | grep -v success; then
	echo "GUIDE.md: some tickets were settled otherwise"
	exit 1
fi
echo "GUIDE.md works as it stands"
