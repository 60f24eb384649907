# SPDX-License-Identifier: Apache-2.0
echo | plant timer/plant.S
echo | plant timer/plant.pc.in
grep -v '^add_subdirectory(cluster)$' CMakeLists.txt >"$copy/CMakeLists.txt"
{
	printf 'filters\tcluster/call_begin.c\t.\tfilters\n'
	printf 'filters\tcluster/call/call.c\tgone\tfilters\n'
	printf 'filters\tcluster/call/call.c\t.\tfilters|gone\n'
} | plant tests/bench/cost/features.txt
rows=$(grep -c '' tests/bench/cost/features.txt)
red lists 'timer/plant.S: neither .c nor .h' \
	'CMakeLists.txt: no add_subdirectory(cluster)' \
	"features.txt:$((rows + 1)): matches no line" \
	"features.txt:$((rows + 2)): matches no line" \
	"features.txt:$((rows + 3)): alternatives need rows"
quiet plant.pc.in 'add_subdirectory(timer)'
