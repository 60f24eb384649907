#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The C in README.md compiles by itself, without a warning.
set -u
cd "$(dirname "$0")/../.." || exit 2

code=$(mktemp) || exit 2
trap 'rm -f "$code"' EXIT
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$code"
if ! grep -q '#include <spoke/' "$code"; then
	echo "README.md: no C was found that includes a header of spoke"
	exit 1
fi
exec ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-unused-function -fsyntax-only \
	-Itimer/include -Icore/include -Itransport/include -Icluster/include -x c "$code"
