# SPDX-License-Identifier: Apache-2.0
# Written so that this file has no such word itself.
{
	echo '/* SPDX-License-Identifier: Apache-2.0 */'
	printf '/* /%s/me/x */\n/* %s%s: later */\nint a; \n' home TO DO
	printf '"/%s/x.sock"\n"see ../../%sed/x"\n' tmp shar
	printf '"unix:///%s/x", "/%s/x-XX%s", $work/%s/x, /%sx/a\n' tmp tmp XXXX home tmp
	printf 'int b;'
} | plant timer/plant.c
echo 'int a;' | plant timer/bare.h
printf '#!/bin/sh\necho\n' | plant tests/bare.sh
red words 'timer/plant.c:2: path of a machine' \
	'timer/plant.c:3: work put off' \
	'timer/plant.c:4: white space' \
	'timer/plant.c:5: fixed path' \
	'timer/plant.c:6: path out of the tree' \
	'timer/plant.c: no newline' \
	'timer/bare.h:1: does not begin with' \
	'tests/bare.sh:1: does not begin with'
quiet 'timer/plant.c:1:' 'timer/plant.c:7:'
