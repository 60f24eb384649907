# SPDX-License-Identifier: Apache-2.0
echo 'int spokei_plant;' | plant timer/plant.c
echo | plant timer/deep/plant.h
echo | plant timer/include/spoke/plant.h
echo | plant cluster/plant.c
echo | plant timer/plant.S
echo | plant timer/plant.pc.in
sed -e 's/ wheel\.h$/ # wheel.h/' -e 's/ include.spoke.wheel.h / /' -e 's/\(SOURCES.*\)slots.c/\1gone.c/' \
	timer/CMakeLists.txt >"$copy/timer/CMakeLists.txt"
grep -v '^add_subdirectory(cluster)$' CMakeLists.txt >"$copy/CMakeLists.txt"
{
	printf 'filters\tcluster/call_begin.c\t.\tfilters\n'
	printf 'filters\tcluster/call/call.c\tgone\tfilters\n'
	printf 'filters\tcluster/call/call.c\t.\tfilters|gone\n'
} | plant tests/bench/cost/features.txt
rows=$(grep -c '' tests/bench/cost/features.txt)
red lists 'timer/plant.c: not under SOURCES in timer/CMakeLists.txt' \
	'timer/deep/plant.h: not under HEADERS' \
	'timer/include/spoke/plant.h: not under PUBLIC' \
	'timer/wheel.h: not under HEADERS' \
	'timer/include/spoke/wheel.h: not under PUBLIC' \
	'timer/CMakeLists.txt: timer/gone.c does not belong' \
	'timer/plant.S: neither .c nor .h' \
	'cluster/plant.c: not under SOURCES' \
	'CMakeLists.txt: no add_subdirectory(cluster)' \
	"features.txt:$((rows + 1)): matches no line" \
	"features.txt:$((rows + 2)): matches no line" \
	"features.txt:$((rows + 3)): alternatives need rows"
quiet plant.pc.in 'timer/base' 'wheel_inline' 'add_subdirectory(timer)'
