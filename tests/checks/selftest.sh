#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A check that cannot fail checks nothing. For each, a violation is planted in a copy of the tree; the
# check must turn red and name the place. What only looks like a violation must not be named.
set -eu
. "$(dirname "$0")/common.sh"

status=0
copy=$work/copy

# A fresh copy of the tree, to plant something in.
fresh() {
	rm -rf "$copy"
	mkdir "$copy"
	tar -cf - --exclude=./.git --exclude=./build . | tar -xf - -C "$copy"
}

# plant <file>: adds what stands on stdin.
plant() {
	mkdir -p "$copy/$(dirname "$1")"
	cat >>"$copy/$1"
}

# red <check> <what it must say>...
red() {
	check=$1
	shift
	if sh "$copy/tests/checks/$check.sh" >"$work/said" 2>&1; then
		echo "$check.sh: stays green where it should say: $1"
		status=1
	fi
	for sentence; do
		if ! grep -qF -e "$sentence" "$work/said"; then
			echo "$check.sh: does not say: $sentence; but:"
			sed 's/^/    /' "$work/said"
			status=1
		fi
	done
}

# quiet <what the last check must not have said>...
quiet() {
	for sentence; do
		if grep -F -e "$sentence" "$work/said"; then
			echo "$check.sh: should not say this"
			status=1
		fi
	done
}

# function_of <code lines> <name>
function_of() {
	printf 'int %s(void)\n{\n\t/*\n\t * No code.\n\n\t */\n' "$2"
	yes '	f();' | head -n $(($1 - 3))
	printf '}\n'
}

fresh
echo '#include "core/plant.h"' | plant timer/plant.c
echo | plant core/plant.h
echo '#include "timer/nowhere.h"' | plant timer/lost.c
printf '#include "timer/base.h"\n#include <unistd.h>\n' | plant timer/include/spoke/plant.h
echo '#include "timer/there.h"' | plant timer/here.c
echo '#include "timer/here.h"' | plant timer/there.h
echo | plant timer/here.h
echo '#include "timer/base.h"' | plant examples/plant.c
red floors 'timer/plant.c:1: floor timer looks up' \
	'timer/lost.c:1: no file' \
	'timer/include/spoke/plant.h:1: a public header includes "timer/base.h"' \
	'timer/include/spoke/plant.h:2: a public header includes <unistd.h>' \
	'timer/here: in a circle' \
	'examples/plant.c:1: an example includes'

fresh
cat <<'C' | plant timer/plant.c
#include <ev.h>
int now = time(NULL);
void *block = malloc(1);
char *copy = strcpy(a, b);
void *(*grow)(void *, size_t) = realloc;
int n = env->net->read(1) + env.time(2) + timeout(3); /* malloc(4) "strcpy(" */
const char *s = "malloc(1) // \" strcpy(x)";
C
red doors 'timer/plant.c:1: <ev.h>' \
	'timer/plant.c:2: time ' \
	'timer/plant.c:3: malloc ' \
	'timer/plant.c:4: strcpy is banned' \
	'timer/plant.c:5: realloc '
quiet 'timer/plant.c:6:' 'timer/plant.c:7:'
echo 'timer/wheel.c memory  # plant' | plant tests/checks/doors.txt
red doors 'timer/wheel.c no longer needs memory'

fresh
mkdir -p "$copy/build/dev"
echo 'int spokei_plant; int plant;' | gcc -shared -fPIC -x c -o "$copy/build/dev/libspoke.so" -
red symbols '+spokei_plant' \
	'plant: exported, but'

fresh
echo 'static inline size_t spoke_plant(void) { return 0; }' | plant timer/include/spoke/plant.h
red headers 'timer/include/spoke/plant.h: does not compile alone, by gcc' \
	'timer/include/spoke/plant.h: does not compile alone, by g++' \
	'timer/include/spoke/plant.h: not among'

fresh
printf 'int plant( void );\n' | plant timer/plant.h
red format 'timer/plant.h:1: not as clang-format writes it'

fresh
cat <<'C' | plant timer/plant.c
#include <stdlib.h>
int plantBadly(int a);
int plantBadly(int a)
{
	int *p = malloc(sizeof(*p));

	*p = a;
	return a;
}
C
printf '[\n{\n  "directory": "%s",\n  "command": "cc -c timer/plant.c",\n  "file": "%s/timer/plant.c"\n}]\n' \
	"$copy" "$copy" | plant build/dev/compile_commands.json
red tidy readability-identifier-naming \
	clang-analyzer-unix.Malloc

fresh
{
	function_of 60 fits
	function_of 61 large
} | plant timer/plant.c
yes 'int a;' | head -n 401 | plant timer/large.c
red sizes 'timer/plant.c:large: 61 code lines, at most 60' \
	'timer/large.c: 401 code lines, at most 400'
quiet 'timer/plant.c:fits'
printf '%s\n' 'timer/large.c 401  # why' 'timer/base.c 9  # why' | plant tests/checks/sizes.txt
red sizes 'timer/base.c has'
quiet 'timer/large.c'

fresh
{
	echo '/* SPDX-License-Identifier: Apache-2.0 */'
	printf '/* /%s/me/x */\n/* %s%s: later */\n/* %s%s */\n' home TO DO Cla ude
	printf '/* see issue #%d */\nint a; \nint b;' 1
} | plant timer/plant.c
echo 'int a;' | plant timer/bare.h
printf '#!/bin/sh\necho\n' | plant tests/bare.sh
red words 'timer/plant.c:2: path of a machine' \
	'timer/plant.c:3: work put off' \
	'timer/plant.c:4: word of the workshop' \
	'timer/plant.c:5: word of the workshop' \
	'timer/plant.c:6: white space' \
	'timer/plant.c: no newline' \
	'timer/bare.h:1: does not begin with' \
	'tests/bare.sh:1: does not begin with'

fresh
sed 's/PATH_SUFFIXES libev//' core/cmake/FindLibev.cmake >"$copy/core/cmake/FindLibev.cmake"
red dependencies 'form ev-folder: was not found'

exit $status
