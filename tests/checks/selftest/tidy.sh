# SPDX-License-Identifier: Apache-2.0
unset TIDY
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

TIDY=quick
export TIDY
red tidy readability-identifier-naming
quiet clang-analyzer-unix.Malloc
unset TIDY
