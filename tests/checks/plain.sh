#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plain words: a sentence names its actor with a noun. Counted in all that a person reads of the product are
# nobody, somebody and their kin; who and whom, but for "the caller who" (directly after a noun for
# people); whose without a noun before it; and what as a subject ("what is due", "What the file says"), but
# for an indirect question ("decides what happens to a call"). Questions are not counted. plain.txt has what is left, by file; it may only shrink.
#
#   sh tests/checks/plain.sh --update            lowers the list
#   sh tests/checks/plain.sh --show <path>...    prints the places in files and folders
set -eu
show=
[ "${1:-}" != --show ] || { show=1; shift; paths=$*; set --; }
. "$(dirname "$0")/common.sh"

# The list has nothing but names in it.
find . -path ./build -prune -o -path './tests/[!c]*' -prune -o -path './tests/c[!h]*' -prune -o \
	\( -name '*.[ch1-9]' -o -name '*.cc' -o -name '*.md' -o -name '*.sh' -o -name '*.awk' -o -name '*.html' \
	-o -name '*.txt' -o -name '*.cmake' -o -path './examples/spoke/completion/*' -o -path './.ci/*' \) \
	-type f -print | sed 's|^\./||' | grep -vE '^tests/checks/(plain\.(txt|sh|awk)|selftest/plain\.sh)$|^tests/CM' | sort >"$work/files"

xargs awk -f $checks/plain.awk <"$work/files" >"$work/words"
awk '
BEGIN {
	count = split("caller user peer client consumer provider server reader operator person programmer " \
		"developer author administrator visitor viewer owner attacker", list, " ")
	for (i = 1; i <= count; i++)
		people[list[i]] = people[list[i] "s"] = 1
	people["people"] = 1
	count = split("of to for with by from at in on and or but that than as if when where is are was were " \
		"say says tell tells told know knows ask asks see those somebody nobody it all one two", list, " ")
	for (i = 1; i <= count; i++)
		no_noun[list[i]] = 1
	count = split("decide decides determine determines see check checks describe describes explain " \
		"explains show shows define defines", list, " ")
	for (i = 1; i <= count; i++)
		asks[list[i]] = 1
	count = split("is are was were be has have had can cannot could may might must will would shall should " \
		"does do did comes came goes went stands stays takes waits needs lies says said belongs " \
		"follows happens happened remains became becomes counts begins ends lives makes gives", list, " ")
	for (i = 1; i <= count; i++)
		verb[list[i]] = 1
}
# A sentence is over: what was found in it counts, unless it is a question.
function over(question,   i) {
	for (i = 1; i <= found && !question; i++)
		print class[i], place[i], excerpt[i]
	found = words = 0
}
function add(kind, where, text) {
	class[++found] = kind
	place[found] = where
	excerpt[found] = text
}
function look(before, at, after,   word, previous) {
	word = tolower(said[at])
	sub(/\047.*/, "", word)
	previous = tolower(said[at - 1])
	if (previous == ",")
		previous = tolower(said[at - 2])
	if (word ~ /^(no|some|any|every)(body|one)$/)
		return "body"
	if (word ~ /^(whoever|whomever|whosoever)$/)
		return "who"
	if (word ~ /^(who|whom)$/ && !(previous in people))
		return "who"
	if (word == "whose" && (previous == "" || previous !~ /^[a-z`]/ || previous in no_noun))
		return "who"
	if (word == "whatever" ||
	    (word == "what" && !(previous in asks) && (at == 1 || tolower(said[at + 1]) in verb)))
		return "what"
}
function sentence(question,   i, j, kind, text) {
	said[0] = said[-1] = said[words + 1] = ""
	for (i = 1; i <= words; i++)
		if ((kind = look(said[i - 1], i, said[i + 1])) != "") {
			text = ""
			for (j = i - 3; j <= i + 5; j++)
				if (j >= 1 && j <= words)
					text = text " " said[j]
			add(kind, where[i], text)
		}
	over(question)
}
NF < 2 || $2 ~ /^[.:;!?]$/ {
	sentence($2 == "?")
	next
}
{
	said[++words] = $2
	where[words] = $1
}
END {
	sentence(0)
}' "$work/words" >"$work/found"

if [ "$show" ]; then
	for path in $paths; do
		awk -v path="${path%/}" 'index($2, path ":") == 1 || index($2, path "/") == 1 {
			print $2 ": " $1 ":" substr($0, length($1 $2) + 2)
		}' "$work/found"
	done
	exit 0
fi
awk '{ sub(/:.*/, "", $2); n[$2]++ } END { for (name in n) print name, n[name] }' "$work/found" >"$work/counted"
bad=0
shrinking $checks/plain.txt "$work/counted" "free relatives and indefinite persons" || bad=1
awk '{ n[$1]++ } END { print n["who"] + 0, "free who, whom, whose;", n["body"] + 0, "nobody, somebody;", n["what"] + 0, "what as a subject;", NR, "in all" }' "$work/found"
exit $bad
