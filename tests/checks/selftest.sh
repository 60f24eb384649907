#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A check that cannot fail checks nothing. For each check, selftest/<check>.sh plants violations in a copy
# of the tree; the check must turn red and name the place. Code that only looks like a violation must not
# be named.
set -eu
. "$(dirname "$0")/common.sh"

status=0
copy=$work/copy

# A fresh copy of the tree, to plant something in.
fresh() {
	rm -rf "$copy"
	mkdir "$copy"
	tar -cf - --exclude=./.git --exclude=./build --exclude=./tests/fuzz/corpus . | tar -xf - -C "$copy"
}

# plant <file>: appends stdin to it.
plant() {
	mkdir -p "$copy/$(dirname "$1")"
	cat >>"$copy/$1"
}

# compiled <file>...: makes the objects of planted files, under the names that the build uses.
compiled() {
	for source; do
		object=$copy/build/dev/${source%%/*}/CMakeFiles/spoke_${source%%/*}.dir/${source#*/}.o
		mkdir -p "$(dirname "$object")"
		(cd "$copy" && gcc -std=c11 -w -O1 -I. -Itimer/include -c "$source" -o "$object")
	done
}

# red <"check [argument...]"> <what it must say>...
red() {
	check=${1%% *}
	arguments=${1#"$check"}
	shift
	if sh "$copy/tests/checks/$check.sh" $arguments >"$work/said" 2>&1; then
		echo "$check.sh: stays green where it should say: $1"
		status=1
	fi
	for sentence; do
		if ! grep -qF -e "$sentence" "$work/said"; then
			echo "$check.sh: does not say: $sentence; but:"
			sed 's/^/    /' "$work/said"
			status=1
		fi
	done
}

# green <"check [argument...]">
green() {
	if ! sh "$copy/tests/checks/${1%% *}.sh" ${1#"${1%% *}"} >"$work/said" 2>&1; then
		echo "$1: turns red:"
		sed 's/^/    /' "$work/said"
		status=1
	fi
}

# quiet <what the last check must not have said>...
quiet() {
	for sentence; do
		if grep -F -e "$sentence" "$work/said"; then
			echo "$check.sh: should not say this"
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
		echo "$script: nothing shows that it can fail: no $checks/selftest/$check.sh"
		status=1
		continue
	fi
	fresh
	. $checks/selftest/$check.sh
done
exit $status
