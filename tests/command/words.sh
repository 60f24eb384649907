#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the manual and both completions name exactly the verbs and options of the help:
# sh words.sh <the program>
set -u
spoke=$1
folder=$(cd "$(dirname "$0")/../../examples/spoke" && pwd) || exit 2
work=$(TMPDIR=/tmp mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
bad=0
complain() {
	echo "$*"
	bad=1
}

# compare <file> <verb>: compares the names in $work/has with those of the help.
compare() {
	sort -u "$work/has" >"$work/sorted"
	for name in $(comm -23 "$work/options" "$work/sorted"); do
		complain "$1: --$name of spoke $2 is missing"
	done
	for name in $(comm -13 "$work/options" "$work/sorted"); do
		complain "$1: --$name is not an option of spoke $2"
	done
}

verbs=$("$spoke" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ -n "$verbs" ] || complain "spoke help lists no verbs"
for verb in $verbs; do
	"$spoke" "$verb" --help >"$work/help" || complain "spoke $verb --help exit status $?"
	"$spoke" help "$verb" | cmp -s - "$work/help" || complain "spoke help $verb is not its --help"
	sed -n 's/^  [- ][^ ]* *--\([a-z0-9-]*\).*/\1/p' "$work/help" | sort -u >"$work/options"

	# The manual describes options of several verbs in one place, before the first verb.
	sed -n "/^\.Ss spoke $verb\$/,/^\.El/s/^\.It Fl \(. , \)*-\([a-z0-9-]*\).*/\2/p" \
		"$folder/spoke.1" >"$work/has"
	sed -n '/^\.Sh DESCRIPTION/,/^\.Ss /s/^\.It Fl \(. , \)*-\([a-z0-9-]*\).*/\2/p' "$folder/spoke.1" |
		sort -u | comm -12 - "$work/options" >>"$work/has"
	compare spoke.1 "$verb"
	sed -n "s/^	$verb) options=\"\(.*\)\" ;;/\1/p" "$folder/completion/spoke.bash" |
		tr ' ' '\n' | sed 's/^--//' >"$work/has"
	compare completion/spoke.bash "$verb"
	sed -n "/^	$verb)\$/,/;;/s/^.*'\**--\([a-z0-9-]*\).*/\1/p" "$folder/completion/_spoke" >"$work/has"
	compare completion/_spoke "$verb"
	grep -q "^.Cm $verb\$" "$folder/spoke.1" || complain "spoke.1: no synopsis of $verb"
	grep -q "^		'$verb:" "$folder/completion/_spoke" || complain "completion/_spoke: no $verb"
done

# complete <word>...: prints the completions of bash for the last word.
complete() {
	PATH=$(dirname "$spoke"):$PATH bash -c '. "$1" || exit 1
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	compopt() { :; }
	_spoke && echo "${COMPREPLY[*]}"' bash "$folder/completion/spoke.bash" "$@"
}
if command -v bash >"$work/which"; then
	[ "$(complete spoke ca)" = call ] || complain "bash: ca: $(complete spoke ca)"
	[ "$(complete spoke call --ti)" = --timeout ] || complain "bash: call --ti"
	[ "$(complete spoke call --wire m)" = mprpc ] || complain "bash: call --wire m"
	[ "$(complete spoke ls z)" = zookeeper:// ] || complain "bash: ls z"
	[ "$(complete spoke lock s)" = sentinel:// ] || complain "bash: lock s"
	[ "$(complete spoke lock name -- x --he)" = "" ] || complain "bash: lock name -- x --he"
	[ "$(complete spoke help wa)" = watch ] || complain "bash: help wa"
fi
if command -v zsh >"$work/which"; then
	zsh -n "$folder/completion/_spoke" || complain "completion/_spoke: syntax error"
fi
exit $bad
