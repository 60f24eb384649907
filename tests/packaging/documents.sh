#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the files that installed documents name. A link leads to an installed file. A document that names
# another file of the source tree says that it is there, unless it is about the tree itself.
#
#   sh tests/packaging/documents.sh <folder with the installed README.md>
set -eu
cd "$(dirname "$0")/../.."
docs=$1
words='in the source tree'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

bad=0
complain() {
	echo "$*"
	bad=1
}

(cd "$docs" && find . -name '*.md' | sed 's|^\./||' | sort) >"$work/documents"
grep -qx README.md "$work/documents" || complain "$docs: no README.md"
while read -r document; do
	folder=$(dirname "$docs/$document")
	{
		grep -oE '\]\([^)# ]+' "$docs/$document" | sed 's/^](//'
		grep -oE 'src(set)?="[^"]+"' "$docs/$document" | sed 's/.*="//; s/"$//'
	} | grep -v '^[a-z]*:\|^/' | grep '[./]' >"$work/links" || true
	while read -r link; do
		[ -e "$folder/$link" ] || complain "$document: the link to $link leads nowhere once installed"
	done <"$work/links"
	case $document in
	ARCHITECTURE.md | CONTRIBUTING.md | tests/*) continue ;;
	esac
	grep -oE '[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+' "$docs/$document" | sed 's/\.$//; s|^\./||' | sort -u >"$work/paths"
	while read -r path; do
		if [ -e "$path" ] && [ ! -e "$docs/$path" ] && ! tr '\n' ' ' <"$docs/$document" | grep -q "$words"; then
			complain "$document: $path is not installed; install it, or say that it is $words"
		fi
	done <"$work/paths"
done <"$work/documents"
exit $bad
