# SPDX-License-Identifier: Apache-2.0
# Computes the cost of a feature from the output of sum.awk for the library with and without the feature,
# with 64 calls in flight ("64 deep") and with one:
#
#   awk -v feature=<name> -v max=<percent> -f features.awk features.txt \
#           <with, 64> <without, 64> <with, 1> <without, 1>
#
# Prints a row of TSV for each depth: feature, depth, instructions per call that its stand-ins save,
# instructions of its remaining lines (features.txt), the share of both in percent, and whether the share
# is at most `max` (0: no limit). Without these files it only checks features.txt, and fails after it has printed
# the rows that match no line of the tree, e.g. after a renaming: their instructions would count as nothing.
# Run it at the root of the tree.

# Reads a source: the text of its lines and their functions. It relies on the format: the name of a function
# is on a line without indentation, and the last line of a function is a single brace.
function read_source(path,   n, line, name) {
	name = ""
	for (n = 1; (getline line <path) > 0; n++) {
		if (line ~ /^[A-Za-z].*[ *][A-Za-z_0-9]+\(/) {
			name = line
			sub(/\(.*/, "", name)
			sub(/.*[ *]/, "", name)
		}
		text[path, n] = line
		home[path, n] = name
		if (line ~ /^}/ || (line ~ /;$/ && line !~ /^\t/))
			name = ""
	}
	close(path)
	lines[path] = n - 1
}

function matches(i, path, n) {
	return path == file[i] && (within[i] == "." || home[path, n] == within[i]) && text[path, n] ~ says[i]
}

function is_of_it(path, n,   i) {
	for (i = 1; i <= rules; i++)
		if (whose[i] == feature && matches(i, path, n))
			return 1
	return 0
}

# Returns whether the row matches a line that is more than a comment.
function is_alive(i,   n) {
	for (n = 1; n <= lines[file[i]]; n++)
		if (text[file[i], n] !~ /^\t*(\/\*| \*)/ && matches(i, file[i], n))
			return 1
	return 0
}

function add_row() {
	whose[++rules] = $1
	file[rules] = $2
	within[rules] = $3
	says[rules] = $4
	if (!($2 in lines))
		read_source($2)
	if (NF == 4 && $4 !~ /\|/ && is_alive(rules))
		return
	bad = 1
	print FILENAME ":" FNR ": " (NF != 4 ? "has no four columns" : $4 ~ /\|/ ? "alternatives need rows of their own" : "matches no line of the tree")
}

BEGIN {
	FS = OFS = "\t"
}
FNR == 1 {
	input++
	if (bad)
		exit
}
input == 1 {
	if (!/^#/)
		add_row()
	next
}
$1 == "self" && $2 !~ /^(tests|core\/virtual)\// {
	sum[input] += $5
	if (input % 2 == 1 && is_of_it($2, $3))
		rest[input] += $5
}
function put(depth, with, without,   saved, share, verdict) {
	saved = sum[with] - sum[without]
	share = 100 * (saved + rest[without]) / sum[with]
	verdict = max == 0 ? "-" : share <= max ? "reached" : "SHORT"
	printf "%s\t%d\t%.1f\t%.1f\t%.2f\t%s\n", feature, depth, saved, rest[without], share, verdict
}
END {
	if (bad || input == 1)
		exit bad
	put(64, 2, 3)
	put(1, 4, 5)
}
