# SPDX-License-Identifier: Apache-2.0
sed -i 's/^\tX(S1, .*/\tX(S99, oracle_turns, "planted") \\\n&/' "$copy/tests/sim/invariants.h"
cat <<'PATCH' | plant tests/sim/mutants/plant.patch
# SPDX-License-Identifier: Apache-2.0
# Caught by: S98
--- a/timer/wheel.c
+++ b/timer/wheel.c
@@ -1,1 +1,1 @@
-what is not there
+what is there
PATCH
cat <<'PATCH' | plant tests/sim/mutants/foreign.patch
# SPDX-License-Identifier: Apache-2.0
# Caught by: S1
# It changes the simulator.
--- a/tests/sim/plant.c
+++ b/tests/sim/plant.c
@@ -1,1 +1,1 @@
-int plant;
+int planted;
PATCH
echo 'int plant;' | plant tests/sim/plant.c
cat <<'PATCH' | plant tests/planted/plant.patch
# SPDX-License-Identifier: Apache-2.0
# Caught by: core/text/test_tokens no_such_test
# It is caught by nothing.
--- a/timer/wheel.c
+++ b/timer/wheel.c
@@ -1,1 +1,1 @@
-what is not there
+what is there
PATCH
red mutants 'S99 of tests/sim/invariants.h has no mutant' \
	'S99 is not checked in tests/sim/oracle_turns.c' \
	'plant.patch:2: names no invariant of tests/sim/invariants.h: S98' \
	'plant.patch:3: does not say what the bug is' \
	'plant.patch: does not apply: error:' \
	'planted/plant.patch:2: tests/core/text/test_tokens.c has no test no_such_test' \
	'foreign.patch: tests/sim/plant.c is not of the product'
quiet 'foreign.patch: does not apply' two-misses
