#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests Dubbo's wire over the TLS of Java: sh java.sh <spoke> <javaprovider>
# The Java development kit is large, so tests/run.sh does not install it: without one this test is skipped.
set -eu
if ! javac --release 17 -version >/dev/null 2>&1; then
	echo "skipped: this needs a Java development kit, 17 or later; apt-get install default-jdk-headless"
	exit 77
fi
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
# The sources have texts beyond ASCII, which Java reads by the locale otherwise.
javac -encoding UTF-8 -Xlint:all -Werror -d "$classes" "$(dirname "$0")"/java/*.java
# The time is less than that of the test, so that Java still ends what it has started.
timeout -k 5 220 java -Dfile.encoding=UTF-8 -cp "$classes" Peer "$1" "$2"
