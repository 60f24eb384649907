# SPDX-License-Identifier: Apache-2.0
# Sourced by every check: goes to the root of the tree, whose files are then named relative to it,
# and takes the build directory from the command line.
LC_ALL=C
export LC_ALL
checks=tests/checks
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build/dev}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	exit 1
}

# The C files of the tree, headers included.
c_files() {
	find timer core transport cluster examples tests -name '*.[ch]' -type f 2>"$work/absent" | sort
}

public_headers() {
	find timer core transport cluster -path '*/include/spoke/*.h' 2>"$work/absent" | sort
}

# What a compiler sees of the files given: see code.awk.
code() {
	awk -f $checks/code.awk "$@"
}
