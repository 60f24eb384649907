#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the page of <spoke/admin.h>, and the gateway of <spoke/comet.h> with its script, in a real browser:
# Debian's chromium, driven by playwright-core.
#
#   sh tests/browser/run.sh [<build folder>]     build/dev, with its targets page_host and product
#
# Screenshots are kept in build/browser/. To renew the pictures of README, copy page-light.webp and
# page-dark.webp from there to examples/demo/. On Debian 12 as root a missing browser is a failure, because
# it could be installed; on other systems the tests are skipped.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/dev}
out=build/browser

must_run() {
	[ "$(id -u)" = 0 ] && [ -r /etc/os-release ] && (
		. /etc/os-release
		[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ]
	)
}

missing=
[ -x /usr/bin/chromium ] || missing="$missing chromium"
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
if [ -n "$missing" ]; then
	if must_run; then
		echo "tests/browser: missing:$missing; apt-get install$missing" >&2
		exit 1
	fi
	echo "tests/browser: skipped, missing:$missing"
	exit 0
fi
for program in tests/browser/page_host examples/demo_driver examples/spoke/spoke examples/comet_shop; do
	if [ ! -x "$build/$program" ]; then
		echo "tests/browser: no $build/$program: cmake --build $build" >&2
		exit 1
	fi
done

mkdir -p $out
if ! cmp -s tests/browser/package-lock.json $out/installed.json; then
	cp tests/browser/package.json tests/browser/package-lock.json $out/
	(cd $out && npm ci --ignore-scripts --no-audit --no-fund)
	cp tests/browser/package-lock.json $out/installed.json
fi
cp tests/browser/*.mjs $out/
rm -f $out/*.png $out/*.webp
node $out/comet.mjs "$build/examples/spoke/spoke" "$build/examples/comet_shop"
node $out/demo.mjs "$build/examples/demo_driver" $out
exec node $out/look.mjs "$build/tests/browser/page_host" $out
