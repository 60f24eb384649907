# SPDX-License-Identifier: Apache-2.0
# Prints the code of C files as "file:line:code": without comments, blank lines, and the contents of
# strings and character constants (unless strings=1).
FNR == 1 { inside = 0 }
{
	rest = $0
	seen = ""
	while (rest != "") {
		if (inside) {
			end = index(rest, "*/")
			rest = end ? substr(rest, end + 2) : ""
			inside = !end
			continue
		}
		if (!match(rest, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
			seen = seen rest
			break
		}
		token = substr(rest, RSTART, RLENGTH)
		seen = seen substr(rest, 1, RSTART - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if (token == "/*") {
			seen = seen " "
			inside = 1
		} else if (token == "//") {
			rest = ""
		} else {
			quote = substr(token, 1, 1)
			seen = seen (strings ? token : quote quote)
		}
	}
	if (seen ~ /[^ \t\r]/)
		print FILENAME ":" FNR ":" seen
}
