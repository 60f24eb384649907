#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the script of the live page uses no element that the page lacks: each property ._name that it
# reads is set, and each literal id exists. Otherwise an error stops the page, maybe only with certain data.
# The browser tests need a browser and real time; this check needs neither. Also checks that status.h describes
# each member of the status that a row of facts has.
set -eu
. "$(dirname "$0")/common.sh"
page=cluster/admin/page.html

# all <expression>: its matches in the page, each once.
all() {
	grep -oE "$1" $page | sort -u
}

all '\._[a-z]+' >"$work/read"
all '\._[a-z]+ =[^=]' | sed 's/ =.$//' >"$work/set"
comm -23 "$work/read" "$work/set" | sed "s|^|$page: is read, but never set: |" >"$work/bad"
all '[$]\("[a-z0-9-]+"\)' | sed 's/^[$]("//; s/")$//' | sort >"$work/asked"
all ' id="[a-z0-9-]+"' | sed 's/^ id="//; s/"$//' | sort >"$work/ids"
comm -23 "$work/asked" "$work/ids" | sed "s|^|$page: no element has the id |" >>"$work/bad"
grep -hoE '\b(NAME|MS)\("[a-z0-9_]+"\)' cluster/admin/*.c | sed 's/^[A-Z]*(//; s/)$//' | sort -u >"$work/members"
while read -r member; do
	grep -qF "$member" cluster/admin/status.h ||
		echo "cluster/admin/status.h: does not describe $member, a row of facts" >>"$work/bad"
done <"$work/members"
[ -s "$work/members" ] || fail "cluster/admin: no row of facts was found"
[ -s "$work/read" ] && [ -s "$work/asked" ] || fail "$page: no properties or ids were found"
[ ! -s "$work/bad" ] || fail "$(cat "$work/bad")"
