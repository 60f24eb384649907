# SPDX-License-Identifier: Apache-2.0
# By includes, and in wings.txt.
echo '#include "core/text/plant.h"' | plant core/base/plant.c
echo | plant core/text/plant.h
echo '#include "core/text/there.h"' | plant core/text/here.h
echo '#include "core/text/here.h"' | plant core/text/there.h
printf '/* #include "core/text/plant.h" */\nconst char *text = "#include \\"core/text/plant.h\\"";\n' | plant core/base/quoted.c
echo '#include "core/base/plant.h"' | plant core/text/allowed.c
echo | plant core/base/plant.h
echo | plant cluster/loose.c
echo | plant core/loose.h
echo | plant core/cellar/plant.c
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	echo | plant core/base/light$i.h
	echo "#include \"core/base/light$i.h\"" | plant core/base/fits.h
done
echo '#include "core/base/fits.h"' | plant core/base/heavy.h
cat <<'TXT' | plant tests/checks/wings.txt
core/base: core/memory
core/attic: core/base
core/value: core/cupboard
a line of another form
TXT
red "wings build/dev" 'core/base/plant.c: includes core/text/plant.h, but core/base may not use core/text' \
	'wings.txt: no line for cluster/loose' \
	'wings.txt: no line for core/loose' \
	'wings.txt: no line for core/cellar' \
	'there is no core/attic' \
	'there is no core/cupboard' \
	': not "<wing>' \
	'a second line for core/base' \
	': core/base does not use core/memory' \
	'wings.txt: a circle of wings:' \
	'core/base/heavy.h: brings in 21 headers'
quiet 'core/base/quoted.c: includes' core/text/there 'core/text/allowed.c: includes' core/base/fits.h 'for timer'

# By calls alone.
fresh
cat <<'C' | plant core/base/plant.c
extern int spokei_plant_text(void), spokei_plant_libc(void);
int spokei_plant_base(void) { return spokei_plant_text() + spokei_plant_libc(); }
C
cat <<'C' | plant core/text/plant.c
extern int spokei_plant_base(void);
int spokei_plant_text(void) { return spokei_plant_base(); }
C
cat <<'C' | plant core/text/straight.c
extern int spokei_plant_text(void);
int spokei_plant_straight(void) { return spokei_plant_text(); }
C
compiled core/base/plant.c core/text/plant.c core/text/straight.c
red "wings build/dev" 'core/base/plant.c: calls core/text/plant.c, but core/base may not use core/text'
grep -v 'build it first' "$work/output" >"$work/rest" || true
mv "$work/rest" "$work/output"
quiet core/text/straight 'core/text/plant.c: calls'
