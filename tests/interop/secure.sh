#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests TLS with other libraries: Node's, openssl and curl: sh secure.sh <spoke>
set -eu
for program in node openssl curl; do
	if ! command -v $program >/dev/null; then
		echo "skipped: this needs $program"
		exit 77
	fi
done
exec node "$(dirname "$0")/node/secure.js" "$1"
