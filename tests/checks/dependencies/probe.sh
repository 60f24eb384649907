#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks one form of ../dependencies.sh, given as its prefix: configures, builds and runs the program, and
# compares the result. Runs from the root of the tree.
set -u
in=$1
log=$in/log
module=$(cat "$in/module")
expected=$(cat "$in/expected")

complain() {
	echo "core/cmake/Find$module.cmake: form $(basename "$in"): $*"
	sed 's/^/    /' "$log"
	exit 1
}

set -- -G Ninja -S tests/checks/dependencies -B "$in/build" -Dmodule="$module"
case $in in
*/system-*) ;;
*)
	set -- "$@" -Dhide_system=ON -DCMAKE_PREFIX_PATH="$in" $(cat "$in/options")
	PKG_CONFIG_LIBDIR=$in/lib/pkgconfig
	export PKG_CONFIG_LIBDIR
	;;
esac

if cmake "$@" >"$log" 2>&1; then
	[ "$expected" != missing ] || complain "is not complete, but was found"
	cmake --build "$in/build" >"$log" 2>&1 || complain "was found, but does not build"
	output=$("$in/build/probe" 2>"$log") || complain "was found, but does not run"
	case $output in
	$expected) exit 0 ;;
	esac
	complain "prints \"$output\" instead of \"$expected\""
fi

[ "$expected" = missing ] || complain "was not found"
sentences=$(tr -s ' \n' '  ' <"$log" | grep -c 'needs* .*: install it with "apt-get install lib.*-dev"')
errors=$(grep -c '^CMake Error' "$log")
[ "$sentences/$errors" = 1/1 ] || complain "is missing, but the error is not one clear message"
