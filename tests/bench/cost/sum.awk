# SPDX-License-Identifier: Apache-2.0
# Sums the counts of callgrind by source line:
#
#   awk -v calls=<calls that were counted> -v made=<calls in all> -f tests/bench/cost/sum.awk <callgrind's file>
#
# Prints TSV with values per call: kind, file, line, function, value. Kinds: self (instructions of the line;
# function is the one that it was inlined into), libc (instructions of the C library called by the line),
# uses (calls of the C library; callgrind counts them from the start of the program, so they include a
# little more than the calls), misses (of the second-level cache that callgrind models, if it did). Run it at the root of the tree. File names are relative to the root,
# without directories that a compiler cache puts before them. Other files are left out.

# callgrind writes a name once with a number in parentheses, and later only the number.
function name_of(text, names,   id, at) {
	at = index(text, ")")
	id = substr(text, 1, at)
	if (length(text) > at)
		names[id] = substr(text, at + 2)
	return names[id]
}

# Does the file exist and is it not empty?
function is_there(path,   text, found) {
	found = (getline text <path) > 0
	close(path)
	return found
}

# Returns the file name relative to the root of the tree; "" for other files.
function path_of(file,   rest) {
	if (file in paths)
		return paths[file]
	rest = file
	while (rest != "" && !(rest ~ /^(timer|core|transport|cluster|tests)\// && is_there(rest)))
		if (!sub(/^[^\/]*\//, "", rest))
			rest = ""
	return paths[file] = rest
}

# Line numbers are mostly relative to the previous one.
function move_to(where) {
	if (where ~ /^[+-]/)
		at += where
	else if (where != "*")
		at = where
}

function add(kind, value) {
	if (path != "")
		sum[kind "\t" path "\t" at "\t" what] += value
}

function is_ours(object) {
	return object ~ /\/bench_cost[^\/]*$/
}

/^ob=/ {
	called = own = is_ours(name_of(substr($0, 4), objects))
	next
}
/^(fl|fi|fe)=/ {
	path = path_of(name_of(substr($0, 4), files))
	next
}
/^fn=/ {
	what = name_of(substr($0, 4), functions)
	sub(/[.\047].*/, "", what)
	next
}
/^cob=/ {
	called = is_ours(name_of(substr($0, 5), objects))
	next
}
/^(cfi|cfl)=/ {
	name_of(substr($0, 5), files)
	next
}
/^cfn=/ {
	name_of(substr($0, 5), functions)
	next
}
/^calls=/ {
	times = substr($1, 7)
	getline
	move_to($1)
	if (own && !called) {
		add("libc", $2)
		add("uses", times)
	}
	called = own
	next
}
/^[+*0-9-]/ {
	move_to($1)
	if (own) {
		add("self", $2)
		if ($9 + $10) # reads and writes of data; zeros at the end of a line are left out
			add("misses", $9 + $10)
	}
}
END {
	for (key in sum)
		printf "%s\t%.4f\n", key, sum[key] / (key ~ /^uses/ ? made : calls)
}
