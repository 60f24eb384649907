#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on all files that the build compiles. A clean file is checked again only after a change of
# the file, an included header, its command, the configuration or clang-tidy. TIDY=quick skips the tests
# and the static analyzer, which takes 50 times as long as everything else.
set -eu
. "$(dirname "$0")/common.sh"

commands=$build/compile_commands.json
[ -f "$commands" ] || fail "no $commands: configure the build first"
cache=$build/tidy
mkdir -p "$cache"

checks_but=
[ "${TIDY:-all}" != quick ] || checks_but=--checks=-clang-analyzer-*

{
	clang-tidy --version
	echo "$checks_but"
	find . -name .clang-tidy -not -path './build/*' -exec cat {} +
} >"$work/common"
include=-I.
for dir in $floors; do
	include="$include -I$dir/include"
done

# A checksum of all inputs of the check of a file.
key_of() {
	{
		cat "$work/common"
		grep -F -B 1 "/$1\"" "$commands"
		cat $(gcc -MM -MG $include "$1" | sed 's/^.*:\( \|$\)//; s/\\$//')
	} 2>"$work/absent" | cksum
}

root=$(pwd)
sed -n "s|^ *\"file\": \"$root/\(.*\)\",*\$|\1|p" "$commands" | sort -u >"$work/files"
if [ "${TIDY:-all}" = quick ]; then
	sed '/^tests\//d' "$work/files" >"$work/product"
	mv "$work/product" "$work/files"
fi
[ -s "$work/files" ] || fail "$commands names no file of $root"
while read -r file; do
	key=$(key_of "$file")
	stamp=$cache/$(echo "$file" | tr / -)
	if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$key" ]; then
		printf '%s\0%s\0%s\0' "$file" "$stamp" "$key"
	fi
done <"$work/files" >"$work/jobs"

# One job: reports findings, or writes the stamp.
cat >"$work/job" <<'JOB'
if clang-tidy --quiet $6 --extra-arg=-Wno-unknown-warning-option -p "$1" "$3" >"$2" 2>&1 </dev/null; then
	echo "$5" >"$4"
	exit 0
fi
grep -v -e 'warnings\{0,1\} .*generated' -e 'warnings\{0,1\} treated as error' -e '^Suppressed ' \
	-e '^Use -header-filter' "$2"
exit 1
JOB
[ ! -s "$work/jobs" ] || xargs -0 -n 3 -P "$(nproc)" sh -c \
	'exec sh "$0/job" "$1" "$0/log.$$" "$3" "$4" "$5" "$2"' "$work" "$build" "$checks_but" <"$work/jobs"
