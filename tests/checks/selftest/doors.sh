# SPDX-License-Identifier: Apache-2.0
cat <<'C' | plant timer/plant.c
#include <ev.h>
int now = time(NULL);
void *block = malloc(1);
char *copy = strcpy(a, b);
void *(*grow)(void *, size_t) = realloc;
int n = env->net->read(1) + env.time(2) + timeout(3); /* malloc(4) "strcpy(" */
const char *s = "malloc(1) // \" strcpy(x)";
int m = (time)(0) + ((read))(0, 0, 0);
void *b = __builtin_malloc(3);
long k = syscall(1);
long t = __rdtsc();
#include <sys/random.h>
#include "sys/random.h"
void g(void) { __asm__("rdtsc"); }
int read, time = f(read, (time), __builtin_clz(1)) + (read);
C
red doors 'timer/plant.c:1: <ev.h>' \
	'timer/plant.c:2: time ' \
	'timer/plant.c:3: malloc ' \
	'timer/plant.c:4: strcpy is banned' \
	'timer/plant.c:5: realloc ' \
	'timer/plant.c:8: time ' \
	'timer/plant.c:8: read ' \
	'timer/plant.c:9: __builtin_malloc ' \
	'timer/plant.c:10: syscall ' \
	'timer/plant.c:11: __rdtsc ' \
	'timer/plant.c:12: <sys/random.h>' \
	'timer/plant.c:13: <sys/random.h>' \
	'timer/plant.c:14: __asm__ '
quiet 'timer/plant.c:6:' 'timer/plant.c:7:' 'timer/plant.c:15:'

# Uses that the text does not show.
fresh
cat <<'C' | plant timer/plant.c
#include <stdlib.h>
#include <string.h>
#define P(a, b) a##b
void (*p)(void *) = free;
void *spokei_q(void) { return P(mal, loc)(3); }
int spokei_r(int n, char *text, const char *from)
{
	return P(re, ad)(0, text, 3) + frobnicate() + (int)P(__builtin_i, a32_rdtsc)() +
	       spokei_elsewhere() + (int)strlen(from) + snprintf(text, 4, "%d", n) + memcmp(text, from, n) +
	       P(__builtin___mem, cpy_chk)(text, from, n, 8);
}
C
compiled timer/plant.c
red doors 'timer/plant.c: free ' \
	'timer/plant.c: malloc ' \
	'timer/plant.c: read ' \
	'timer/plant.c: frobnicate is called, but has no kind' \
	'timer/plant.c: rdtsc '
quiet 'timer/plant.c: spokei' 'timer/plant.c: strlen' 'timer/plant.c: snprintf' 'timer/plant.c: mem' \
	'timer/plant.c: __mem' 'timer/plant.c:5:' 'timer/plant.c:8:'
printf '%s  # plant\n' 'timer/wheel.c memory' 'timer/plant.c memory,fd' | plant tests/checks/doors.txt
red doors 'timer/wheel.c no longer needs memory' \
	'timer/plant.c: rdtsc '
quiet 'timer/plant.c: free' 'timer/plant.c: malloc' 'timer/plant.c: read' 'timer/plant.c no longer'
