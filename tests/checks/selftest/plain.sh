# SPDX-License-Identifier: Apache-2.0
cat <<'C' | plant timer/plant.c
/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes first is told by
 * nobody. A caller who waits, a connection whose peer
 * is gone. What is that? What is that, is said. `what is`.
 * A policy decides what happens. */
int who(void) { return what.is + who->is; } /* see who[i] */
const char *plant = "to whoever "
		    "asks", *is = "nobody", *say = "somebody's turn";
C
printf 'Who is asked?\n\n    Whatever.\n\n```\nwho is\n```\n' | plant PLANT.md
red plain 'timer/plant.c: 5 free' 'PLANT.md: 1 free'
rm "$copy/timer/plant.c" "$copy/PLANT.md"

# The list is lowered, never raised; a name that is gone leaves its number to others.
printf 'timer/plant.c 3\nPLANT.md 2\n' | plant tests/checks/plain.txt
printf '/* Who? Who, who and\n * everyone. */\n' | plant timer/plant.c
red plain 'PLANT.md has 0 free' 'lower the list with --update'
quiet timer/plant.c
green 'plain --update'
green plain
echo '/* Nobody. */' | plant timer/other.c
red 'plain --update' 'timer/other.c: 1 free'
