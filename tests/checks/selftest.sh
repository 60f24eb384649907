#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that every check can fail: selftest/<check>.sh plants violations in a copy of the tree. The check
# must fail and name the place. It must not report code that only looks like a violation.
set -eu
. "$(dirname "$0")/common.sh"

status=0
copy=$work/copy

# Prints the files of the copy.
files() {
	find . -path ./.git -prune -o -path ./build -prune -o -path ./tests/fuzz/corpus -prune -o -type f -print | sort
}
files >"$work/tree"

# Makes a fresh copy of the tree: repairs the last one, because to copy all files takes longer than most checks.
fresh() {
	mkdir -p "$copy"
	rm -rf "$copy/build"
	if [ -e "$work/touched" ]; then
		find "$copy" -type f -newer "$work/touched" -exec rm {} +
		(cd "$copy" && files) >"$work/copied"
		comm -13 "$work/tree" "$work/copied" | sed "s|^|$copy/|" | tr '\n' '\0' | xargs -0 rm -f
		find "$copy" -type d -empty -delete
		mkdir -p "$copy"
	else
		: >"$work/copied"
	fi
	comm -23 "$work/tree" "$work/copied" >"$work/absent"
	tar -cf - -T "$work/absent" | tar -xf - -C "$copy"
	# The files keep their old times, so that only what a plant writes is newer. Clocks of file systems tick slowly.
	touch -d '1 second ago' "$work/touched"
}

# plant <file>: appends stdin.
plant() {
	mkdir -p "$copy/$(dirname "$1")"
	cat >>"$copy/$1"
}

# compiled <file>...: compiles planted files to objects with the names of the build.
compiled() {
	for source; do
		object=$copy/build/dev/${source%%/*}/CMakeFiles/spoke_${source%%/*}.dir/${source#*/}.o
		mkdir -p "$(dirname "$object")"
		(cd "$copy" && gcc -std=c11 -w -O1 -I. -Itimer/include -c "$source" -o "$object")
	done
}

# red <"check [argument...]"> <expected message>...
red() {
	check=${1%% *}
	arguments=${1#"$check"}
	shift
	if sh "$copy/tests/checks/$check.sh" $arguments >"$work/output" 2>&1; then
		echo "$check.sh: does not fail; expected: $1"
		status=1
	fi
	for sentence; do
		if ! grep -qF -e "$sentence" "$work/output"; then
			echo "$check.sh: does not report: $sentence; but:"
			sed 's/^/    /' "$work/output"
			status=1
		fi
	done
}

# green <"check [argument...]">
green() {
	if ! sh "$copy/tests/checks/${1%% *}.sh" ${1#"${1%% *}"} >"$work/output" 2>&1; then
		echo "$1: fails:"
		sed 's/^/    /' "$work/output"
		status=1
	fi
}

# quiet <message that the last check must not contain>...
quiet() {
	for sentence; do
		if grep -F -e "$sentence" "$work/output"; then
			echo "$check.sh: must not report this"
			status=1
		fi
	done
}

for script in $checks/*.sh; do
	check=$(basename "$script" .sh)
	case $check in
	common | run | selftest) continue ;;
	esac
	if ! grep -q "^for check in.* $check[ ;]" $checks/run.sh; then
		echo "$script: run.sh does not run it"
		status=1
	fi
	if [ ! -f "$checks/selftest/$check.sh" ]; then
		echo "$script: no selftest: $checks/selftest/$check.sh"
		status=1
		continue
	fi
	fresh
	. $checks/selftest/$check.sh
done
exit $status
