# SPDX-License-Identifier: Apache-2.0
# Part of readme.sh: compares the quotations of a page, given with its tabs expanded, with the quoted files.
# Set `page` to its name.

function complain(line, text) {
	printf "%s:%d: %s\n", page, line, text
	bad = 1
}

# Reads the file into source[1..], expanded.
function open_source(name,   command, line) {
	split("", source)
	sources = 0
	command = "expand '" name "'"
	while ((command | getline line) > 0)
		source[++sources] = line
	close(command)
	at = 1
	return sources > 0
}

# Returns the number of lines of the piece that match the source from line `from` on.
function same(from,   n) {
	while (n < pieces && source[from + n] == piece[n + 1] && from + n <= sources)
		n++
	return n
}

# The piece must occur in the source, after the previous quotation.
function end_piece(   from, best, n) {
	while (pieces > 0 && piece[pieces] == "")
		pieces--
	if (pieces == 0)
		return
	best = 0
	for (from = at; from <= sources; from++) {
		n = same(from)
		if (n == pieces) {
			at = from + n
			pieces = 0
			quoted++
			return
		}
		if (n > best)
			best = n
	}
	complain(first + best, "this line does not follow there in " name)
	pieces = 0
	quoted++
}

/^<!-- from .* -->$/ {
	name = $0
	sub(/^<!-- from /, "", name)
	sub(/ -->$/, "", name)
	announced = NR
	if (name ~ /[^A-Za-z0-9_.\/-]/ || !open_source(name)) {
		complain(NR, "no such file to quote: " name)
		announced = 0
	}
	next
}

!inside && /^```/ {
	inside = 1
	quoting = announced != 0
	announced = 0
	pieces = quoted = 0
	next
}

inside && /^```/ {
	if (quoting) {
		end_piece()
		if (quoted == 0)
			complain(NR, "empty quotation")
	}
	inside = quoting = 0
	next
}

quoting && /^ *(\/\* \.\.\. \*\/|# \.\.\.)$/ {
	end_piece()
	next
}

quoting {
	if (pieces == 0 && $0 == "")
		next
	if (pieces == 0)
		first = NR
	piece[++pieces] = $0
	next
}

announced && $0 != "" {
	complain(announced, "no block follows this comment")
	announced = 0
}

END {
	if (announced)
		complain(announced, "no block follows this comment")
	exit bad
}
