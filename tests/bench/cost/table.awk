# SPDX-License-Identifier: Apache-2.0
# Prints the instructions of a call by place, as TSV, from the output of sum.awk for two depths:
#
#   awk -v by=<room|function|line> -f tests/bench/cost/table.awk <of 64 deep> <of 1 deep>
#
# Columns: floor, room (or "room: function", or "room: file:line"), instructions per call 64 deep and 1 deep,
# and the share in percent of spoke's instructions 64 deep. Rows of floors have the room "*", the total has
# the floor "spoke"; both come first. "libc" and "calls of libc" count the C library, depend on the
# processor, and are in no sum. "tests" is the simulated environment.

# A room is a source with its header.
function name_of(path, line, what,   floor, room) {
	floor = room = path
	sub(/^core\/virtual\/.*/, "tests", floor)
	sub(/\/.*/, "", floor)
	sub(/^[^\/]*\//, "", room)
	sub(/include\/spoke\//, "", room)
	sub(/(_inline)?\.[ch]$/, "", room)
	if (by == "function")
		room = room ": " what
	if (by == "line")
		room = room ": " path ":" line
	return floor OFS room
}

function put(name, deep, single, share) {
	printf "%s\t%.1f\t%.1f\t%s\n", name, deep, single, share
}

function share_of(value) {
	return sprintf("%.2f", 100 * value / total["spoke", 1])
}

BEGIN {
	FS = OFS = "\t"
}
FNR == 1 {
	depth++
}
{
	floor = $2
	sub(/^core\/virtual\/.*/, "tests", floor)
	sub(/\/.*/, "", floor)
}
$1 == "self" && floor != "tests" {
	name = name_of($2, $3, $4)
	names[name]
	value[name, depth] += $5
	total["spoke", depth] += $5
}
$1 == "self" {
	total[floor, depth] += $5
}
$1 == "libc" && floor != "tests" {
	total["libc", depth] += $5
}
$1 == "uses" && floor != "tests" {
	total["calls of libc", depth] += $5
}
END {
	print "floor", by, "64_deep", "1_deep", "share_pct"
	count = split("spoke timer core transport cluster", floors, " ")
	for (i = 1; i <= count; i++)
		put(floors[i] OFS "*", total[floors[i], 1], total[floors[i], 2], share_of(total[floors[i], 1]))
	put("tests" OFS "*", total["tests", 1], total["tests", 2], "-")
	put("libc" OFS "*", total["libc", 1], total["libc", 2], "-")
	put("calls of libc" OFS "*", total["calls of libc", 1], total["calls of libc", 2], "-")
	sorted = "sort -t \047" OFS "\047 -k 3,3nr -k 4,4nr -k 2,2"
	for (name in names)
		printf "%s\t%.1f\t%.1f\t%s\n", name, value[name, 1], value[name, 2], share_of(value[name, 1]) | sorted
	close(sorted)
}
