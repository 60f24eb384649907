#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Dubbo libraries for Node that package.json names, in build/node/node_modules.
#
# The exit status is 77 if Node or npm is missing, after a sentence that says so. Several tests may run
# this script at the same time.
set -eu
cd "$(dirname "$0")/../../.."
for program in node npm; do
	if ! command -v $program >/dev/null; then
		echo "skipped: the Node peers need $program; apt-get install nodejs npm"
		exit 77
	fi
done
here=tests/interop/node
out=build/node
mkdir -p $out
exec 9>$out/lock
flock 9
if ! cmp -s $here/package-lock.json $out/installed.json; then
	cp $here/package.json $here/package-lock.json $out/
	(cd $out && npm ci --ignore-scripts --no-audit --no-fund)
	cp $here/package-lock.json $out/installed.json
fi
