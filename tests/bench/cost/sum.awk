# SPDX-License-Identifier: Apache-2.0
# Sums what callgrind counted, by where its lines stand in the source:
#
#   awk -v calls=<calls that were counted> -v made=<calls in all> -f tests/bench/cost/sum.awk <callgrind's file>
#
# Prints TSV, each value for one call: kind, file, line, function, value. Kinds: self (instructions of
# that line, wherever it was inlined to: the function is the one it ended up in), libc (instructions
# that the line has the C library do), uses (how often it asks the C library; callgrind counts that from
# the program's begin on, and a little more comes in than the calls do). To be run at the root of the
# tree, from which files are named: whatever folders a compiler's cache says before a name, the end of it
# is there. What is from elsewhere is left out.

# A name comes with a number in parentheses, and later by that number alone.
function name_of(text, names,   id, at) {
	at = index(text, ")")
	id = substr(text, 1, at)
	if (length(text) > at)
		names[id] = substr(text, at + 2)
	return names[id]
}

# Does the file exist? One that is empty does not.
function is_there(path,   text, found) {
	found = (getline text <path) > 0
	close(path)
	return found
}

# A file's name from the root of the tree on; "" for files from elsewhere.
function path_of(file,   rest) {
	if (file in paths)
		return paths[file]
	rest = file
	while (rest != "" && !(rest ~ /^(timer|core|transport|cluster|tests)\// && is_there(rest)))
		if (!sub(/^[^\/]*\//, "", rest))
			rest = ""
	return paths[file] = rest
}

# Numbers of lines are mostly said by how far they are from the one before.
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
	if (own)
		add("self", $2)
}
END {
	for (key in sum)
		printf "%s\t%.4f\n", key, sum[key] / (key ~ /^uses/ ? made : calls)
}
