#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every public header compiles alone, and when included twice, as C11 and as C++14, with every
# installed compiler. Every other header of a floor must compile alone.
set -eu
. "$(dirname "$0")/common.sh"

bad=0
flags='-fsyntax-only -Wall -Wextra -Wpedantic -Werror'
include=
for dir in $floors; do
	include="$include -I$dir/include"
done

# compile <includes> <command>: the command contains -x c or -x c++.
compile() {
	lines=$1
	shift
	if ! printf '%b' "$lines" | "$@" $flags $include - >"$work/log" 2>&1; then
		echo "$header: does not compile alone, with $1"
		sed 's/^/    /' "$work/log"
		bad=1
	fi
}

for header in $(public_headers); do
	name=${header#*/include/}
	twice="#include <$name>\n#include <$name>\n"
	for cc in gcc clang; do
		command -v $cc >"$work/which" || continue
		compile "$twice" $cc -std=c11 -x c
	done
	for cxx in g++ clang++; do
		command -v $cxx >"$work/which" || continue
		compile "$twice" $cxx -std=c++14 -x c++
	done
done

# The header of C++, which uses all others.
header=cluster/include/spoke/spoke.hpp
for cxx in g++ clang++; do
	command -v $cxx >"$work/which" || continue
	for version in 14 17 20; do
		compile '#include <spoke/spoke.hpp>\n#include <spoke/spoke.hpp>\n' \
			$cxx -std=c++$version -x c++
	done
done

for header in $(c_files | grep '\.h$' | grep -v -e /include/spoke/ -e ^tests/); do
	compile "#include \"$header\"\n#include \"$header\"\n" gcc -std=c11 -I. -x c
done
exit $bad
