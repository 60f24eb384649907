# SPDX-License-Identifier: Apache-2.0
echo | plant timer/plant.S
echo | plant timer/plant.pc.in
echo | plant core/include/spoke/deep/plant.h
echo '#define PLANT .name = "unbalanced"' | plant cluster/balancer/plant.c
printf '\tROW(nowhere, "nowhere://HOST:PORT")\n' | plant cluster/include/spoke/registry.h
grep -v '^add_subdirectory(cluster)$' CMakeLists.txt >"$copy/CMakeLists.txt"
{
	printf 'filters\tcluster/call_begin.c\t.\tfilters\n'
	printf 'filters\tcluster/call/call.c\tgone\tfilters\n'
	printf 'filters\tcluster/call/call.c\t.\tfilters|gone\n'
} | plant tests/bench/cost/features.txt
rows=$(grep -c '' tests/bench/cost/features.txt)
red lists 'timer/plant.S: neither .c nor .h' \
	'core/include/spoke/deep/plant.h: a public header below include/spoke is not installed' \
	'no test has a name that begins with unbalanced' \
	'tests/cluster/registry: no test_nowhere.c' \
	'REGISTRIES.md: no row for nowhere://' \
	'CMakeLists.txt: no add_subdirectory(cluster)' \
	"features.txt:$((rows + 1)): matches no line" \
	"features.txt:$((rows + 2)): matches no line" \
	"features.txt:$((rows + 3)): alternatives need rows"
quiet plant.pc.in 'add_subdirectory(timer)'
