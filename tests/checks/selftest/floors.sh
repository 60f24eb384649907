# SPDX-License-Identifier: Apache-2.0
echo '#include "core/plant.h"' | plant timer/plant.c
echo | plant core/plant.h
echo '#include "timer/nowhere.h"' | plant timer/lost.c
printf '#include "timer/base.h"\n#include <unistd.h>\n' | plant timer/include/spoke/plant.h
echo '#include "core/text/there.h"' | plant core/base/here.h
echo '#include "core/base/here.h"' | plant core/text/there.h
echo '#include "timer/beside.h"' | plant timer/near.h
echo '#include "timer/near.h"' | plant timer/beside.h
echo '#include "timer/base.h"' | plant examples/plant.c
cat <<'C' | plant timer/forms.c
#define HEADER <ev.h>
#include HEADER
#inc\
lude <ev.h>
%:include <ev.h>
#include <core/plant.h>
#include <./core/plant.h>
#include_next <ev.h>
# include	<stddef.h> /* fine */
#if(HEADER)
#endif
#pragma once
C
red floors 'timer/plant.c:1: floor timer looks up' \
	'timer/lost.c:1: no file' \
	'timer/include/spoke/plant.h:1: a public header includes "timer/base.h"' \
	'timer/include/spoke/plant.h:2: a public header includes <unistd.h>' \
	'core/base/here: in a circle' \
	'examples/plant.c:1: an example includes' \
	'timer/forms.c:2: an include of neither' \
	'timer/forms.c:3: not a directive of the usual form' \
	'timer/forms.c:5: not a directive of the usual form' \
	'timer/forms.c:6: a file of the tree' \
	'timer/forms.c:7: a file of the tree' \
	'timer/forms.c:8: not a directive of the usual form'
quiet timer/near timer/beside 'timer/forms.c:1:' 'timer/forms.c:9:' 'timer/forms.c:10:' 'timer/forms.c:11:' 'timer/forms.c:12:'

# Called without an include.
fresh
cat <<'C' | plant timer/plant.c
extern int spokei_plant_up(void), spokei_plant_lost(void), spokei_plant_weak(void) __attribute__((weak));
int spokei_plant_down(void) { return spokei_plant_up() + spokei_plant_lost() + spokei_plant_weak(); }
int spokei_plant_twice;
C
cat <<'C' | plant core/plant.c
extern int spokei_plant_down(void);
int spokei_plant_up(void) { return spokei_plant_down(); }
int spokei_plant_weak(void) { return 1; }
int spokei_plant_twice;
C
echo 'int spokei_plant_unbuilt;' | plant timer/unbuilt.c
compiled timer/plant.c core/plant.c
red floors 'timer/plant.c: floor timer looks up at spokei_plant_up of core/plant.c' \
	'timer/plant.c: floor timer looks up at spokei_plant_weak of core/plant.c' \
	'timer/plant.c: wants spokei_plant_lost, which no floor defines' \
	'spokei_plant_twice, as does' \
	'timer/unbuilt.c: the object in build/dev is missing'
quiet spokei_plant_down 'timer/plant.c: build/dev' 'core/plant.c: build/dev'
