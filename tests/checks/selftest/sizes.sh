# SPDX-License-Identifier: Apache-2.0
# function_of <code lines> <name>
function_of() {
	printf 'int %s(void)\n{\n\t/*\n\t * No code.\n\n\t */\n' "$2"
	yes '	f();' | head -n $(($1 - 3))
	printf '}\n'
}

{
	function_of 60 fits
	function_of 61 large
} | plant timer/plant.c
yes 'int a;' | head -n 1001 | plant timer/large.c
red sizes 'timer/plant.c:large: 61 code lines, at most 60' \
	'timer/large.c: 1001 code lines, at most 1000'
quiet 'timer/plant.c:fits'
printf '%s\n' 'timer/large.c 1001  # why' 'timer/base.c 9  # why' | plant tests/checks/sizes.txt
red sizes 'timer/base.c has'
quiet 'timer/large.c'
