#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong uses of <spoke/args.h>, <spoke/read.h> and formats do not compile, neither as C11 nor as C++14; the right ones beside them do.
#
#   sh args_refused.sh <source folder> <C compiler> [<C++ compiler>]
set -u
root=$1 cc=$2 cxx=${3:-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

include=
for floor in timer core transport cluster; do
	include="$include -I$root/$floor/include"
done

# compiles <statement>: sets $who to the compilers that accept it.
compiles() {
	cat >"$work/case.c" <<-END
		#include <spoke/spoke.h>
		enum color { RED };
		struct other { int x; };
		void use(struct spoke_method *m, struct spoke_request *r, struct spoke_builder *b, void *p,
			struct other o, const char *t, int n, struct spoke_reader *from);
		void use(struct spoke_method *m, struct spoke_request *r, struct spoke_builder *b, void *p,
			struct other o, const char *t, int n, struct spoke_reader *from)
		{
			(void)m, (void)r, (void)b, (void)p, (void)o, (void)t, (void)n, (void)from;
			char text[8] = "";
			(void)text;
			$1;
		}
	END
	who=
	# shellcheck disable=SC2086
	$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $include -x c "$work/case.c" 2>"$work/c" && who="c"
	[ -z "$cxx" ] && return
	# shellcheck disable=SC2086
	$cxx -std=c++14 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $include -x c++ "$work/case.c" 2>"$work/cc" && who="$who c++"
}

accepted() {
	compiles "$1"
	[ "$who" = "c${cxx:+ c++}" ] && return
	echo "this must compile, but only does as: ${who:-none}: $1"
	cat "$work/c" "$work/cc" 2>/dev/null
	bad=1
}

refused() {
	compiles "$1"
	[ -z "$who" ] && return
	echo "this must not compile, but does as $who: $1"
	bad=1
}

accepted 'spoke_pack_args(b, SPOKE_ARGS(t))'
accepted 'spoke_pack_args(b, SPOKE_ARGS("x", n, true, 1.5, 2.5f, SPOKE_NIL, SPOKE_BIN(p, 3)))'
accepted 'spoke_pack_args(b, SPOKE_ARGS(SPOKE_MAP("a", SPOKE_LIST(1, 2), "b", SPOKE_NIL)))'
accepted 'spoke_pack_args(b, SPOKE_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))'
accepted 'SPOKE_REPLY(r, "hello")'
accepted '(void)!spoke_call_with(m, SPOKE_ARGS("world", 42, true), NULL, NULL)'

# Types without a value.
refused 'spoke_pack_args(b, SPOKE_ARGS(p))'
refused 'spoke_pack_args(b, SPOKE_ARGS(&n))'
refused 'spoke_pack_args(b, SPOKE_ARGS((const int *)&n))'
refused 'spoke_pack_args(b, SPOKE_ARGS(o))'
refused 'spoke_pack_args(b, SPOKE_ARGS((long double)1))'
refused 'spoke_pack_args(b, SPOKE_ARGS(L"wide"))'
refused 'spoke_pack_args(b, SPOKE_ARGS(m))'
refused 'spoke_pack_args(b, SPOKE_ARGS("x", 1, p))'
refused 'SPOKE_REPLY(r, m)'
refused 'spoke_pack_args(b, SPOKE_ARGS(SPOKE_LIST(1, p)))'

# Numbers of arguments. The last one is a number that the count could be taken for.
refused 'spoke_pack_args(b, SPOKE_ARGS())'
refused 'spoke_pack_args(b, SPOKE_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))'
refused 'spoke_pack_args(b, SPOKE_ARGS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))'
refused 'spoke_pack_args(b, SPOKE_ARGS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 16))'
refused 'spoke_pack_args(b, SPOKE_ARGS(SPOKE_MAP("a", 1, "b")))'

accepted '(void)!SPOKE_READ(from, &n)'
accepted '(void)!SPOKE_READ(from, SPOKE_TEXT(text), SPOKE_SKIP, SPOKE_OPTIONAL(&n))'
accepted '(void)!SPOKE_READ_MAP(from, "n", &n, "text", SPOKE_OPTIONAL(SPOKE_TEXT(text)))'
accepted 'if (SPOKE_READ_REQUEST(r, &n, SPOKE_TEXT(text))) return'
accepted 'spoke_reply_error(r, 1, "%s %d", t, n)'

# Targets without a type, or that are not writable.
refused '(void)!SPOKE_READ(from, n)'
refused '(void)!SPOKE_READ(from, p)'
refused '(void)!SPOKE_READ(from, t)'
refused '(void)!SPOKE_READ(from, text)'
refused '(void)!SPOKE_READ(from, &o)'
refused '(void)!SPOKE_READ(from, (const int *)&n)'
refused '(void)!SPOKE_READ(from, SPOKE_TEXT(t))'
refused '(void)!SPOKE_READ(from)'
refused '(void)!SPOKE_READ(from, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n)'
refused '(void)!SPOKE_READ_MAP(from, "n")'
refused '(void)!SPOKE_READ_MAP(from, "n", &n, "m")'
refused '(void)!SPOKE_READ_MAP(from, &n, "n")'

# Formats.
refused 'spoke_reply_error(r, 1, "%s", n)'
refused 'spoke_reply_error(r, 1, "%d")'
exit $bad
