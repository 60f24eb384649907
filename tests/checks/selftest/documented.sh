# SPDX-License-Identifier: Apache-2.0
{
	echo '#ifndef SPOKE_PLANT_H'
	echo '#define SPOKE_PLANT_H'
	cat <<'C'
struct spoke_plant_opaque;
struct spoke_plant_bare {
	int of_no_options;
	void (*slot_bare)(void);
};

/* Has one. */
struct spoke_plant_options {
	int field_bare;

	int first_of_two; /* has one */
	int second_of_two;
	void (*slot_fine)(void); /* has one */
	/* has one */
	void (*slot_also)(void,
			  void);
	void (*slot_behind)(void);
};

/* Has one. */
int spoke_plant_first(void);
int spoke_plant_second(int a,
		       int b);

int spoke_plant_gone(void);

enum spoke_plant_enum { SPOKE_PLANT_ONE };
/* Its helper is no part of it. */

#define SPOKE_PLANT_HELPER(x) x
#undef SPOKE_PLANT_HELPER
#define SPOKE_PLANT_MACRO \
	(1)
/* Has one. */
inline int spoke_plant_inline(void)
{
	int local_bare;
	return 0;
}
typedef int (*spoke_plant_fn)(void);
C
	echo '#endif'
} | plant timer/include/spoke/plant.h
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <spoke/wheel.h>\n' | plant timer/plant.c
red documented 'plant.h:4: has no comment: struct spoke_plant_bare' 'plant.h:6: has no comment: void (*slot_bare)' \
	'plant.h:11: has no comment: int field_bare' 'plant.h:19: has no comment: void (*slot_behind)' \
	'plant.h:27: has no comment: int spoke_plant_gone' 'has no comment: enum spoke_plant_enum' \
	'has no comment: #define SPOKE_PLANT_MACRO' 'timer/plant.c: does not begin with a comment'
quiet of_no_options _of_two slot_fine slot_also spoke_plant_first spoke_plant_second PLANT_HELPER local_bare \
	spoke_plant_inline opaque PLANT_H: plant_fn

# The list has the first sentence, and not the second.
printf '/* SPDX-License-Identifier: Apache-2.0 */\n/*\n * A plant: of two\n * lines. More of it.\n */\n' |
	plant timer/leaf.c
(cd "$copy" && sh tests/checks/documented.sh --list timer) >"$work/leaves"
grep -qx 'timer/leaf.c: A plant: of two lines.' "$work/leaves" || {
	echo "documented.sh --list: does not print the first sentence of a file"
	status=1
}

# Less than 95 %.
fresh
i=0
while [ $((i += 1)) -lt 60 ]; do
	printf '\nint spoke_plant_many_%s(void);\n' $i
done | plant timer/include/spoke/plant.h
red documented 'has no comment: int spoke_plant_many_59'
rm "$copy/timer/include/spoke/plant.h"
green documented
