# SPDX-License-Identifier: Apache-2.0
sed -i 's/^\tX(S1, .*/\tX(S99, oracle_turns, "planted") \\\n&/' "$copy/tests/sim/invariants.h"
cat <<'PATCH' | plant tests/planted/plant.patch
# SPDX-License-Identifier: Apache-2.0

=== nowhere
# Caught by: S1, S98
--- a/timer/wheel.c
+++ b/timer/wheel.c
@@ -1,1 +1,1 @@
-what is not there
+what is there

=== foreign
# Caught by: S1
# It changes the simulator.
--- a/tests/sim/plant.c
+++ b/tests/sim/plant.c
@@ -1,1 +1,1 @@
-int plant;
+int planted;

=== unseen
# Caught by: core/text/test_secret no_such_test
# It is caught by nothing.
--- a/timer/wheel.c
+++ b/timer/wheel.c
@@ -1,1 +1,1 @@
-what is not there
+what is there

=== two-misses
# Caught by: S1
PATCH
echo 'int plant;' | plant tests/sim/plant.c
red mutants 'S99 of tests/sim/invariants.h has no planted bug' \
	'S99 is not checked in tests/sim/oracle_turns.c' \
	'plant.patch: nowhere: names no invariant of tests/sim/invariants.h: S98' \
	'plant.patch: nowhere: does not say what the bug is' \
	'plant.patch: nowhere: does not apply: error:' \
	'plant.patch: unseen: tests/core/text/test_secret.c has no test no_such_test' \
	'plant.patch: foreign: tests/sim/plant.c is not of the product' \
	'tests/planted: twice: two-misses'
quiet 'foreign: does not apply' 'cluster.patch'
