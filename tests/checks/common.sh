# SPDX-License-Identifier: Apache-2.0
# Sourced by every check: changes to the root of the tree and reads the build directory from the command
# line. File names are relative to the root.
LC_ALL=C
export LC_ALL
checks=tests/checks
cd "$(dirname "$0")/../.." || exit 2
update=
[ "${1:-}" != --update ] || { update=1; shift; }
build=${1:-build/dev}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	exit 1
}

# The C files of the tree, headers included.
c_files() {
	find $floors examples tests -name '*.[ch]' -type f 2>"$work/absent" | sort
}

public_headers() {
	floor_files '*.h' | grep /include/spoke/
}

# The floors from bottom to top, and the files of the library.
floors='timer core transport cluster'
floor_files() { # <pattern of names>
	find $floors -name "$1" -type f 2>"$work/absent" | sort
}

# Reads the objects of the library: writes the list "objects", and "symbols" with a line "source.c type
# name" for every global symbol, with the types of nm. Reports objects that are missing or outdated.
linked() {
	: >"$work/objects"
	: >"$work/symbols"
	for source in $(floor_files '*.c'); do
		floor=${source%%/*}
		library=$floor
		case $source in core/virtual/*) library=virtual ;; esac
		object=$build/$floor/CMakeFiles/spoke_$library.dir/${source#*/}.o
		if [ ! -e "$object" ] || [ "$source" -nt "$object" ]; then
			echo "$source: the object in $build is missing or outdated: build it first"
		else
			echo "$object" >>"$work/objects"
		fi
	done
	# Objects made from files that are not C: see spoke_embed().
	find $(printf "$build/%s " $floors) -path '*/CMakeFiles/spoke_*.dir/*' -name 'embedded_*.o' \
		2>"$work/absent" | sort >>"$work/objects"
	xargs -r nm -A -g <"$work/objects" |
		sed 's|^.*/CMakeFiles/spoke_virtual\.dir/\(.*\)\.o:|core/\1 |
			s|^.*/CMakeFiles/spoke_\([a-z]*\)\.dir/\(.*\)\.o:|\1/\2 |' |
		awk '{ print $1, $(NF - 1), $NF }' >"$work/symbols"
}

# Prints the code of the given files: see code.awk.
code() {
	awk -f $checks/code.awk "$@"
}

# Compares the numbers that a check has counted with a list that may only shrink; both have lines
# "<name> <number>". A number above its entry is an error, and also one below: then the list must be
# lowered. With "--update" as the first argument of the check the list is rewritten, unless the sum would
# grow.
shrinking() { # <list> <counted> <unit>
	awk -v list="$1" -v unit="$3" -v update="$update" '
	/^#/ || !NF { next }
	FILENAME == list {
		if (NF != 2 || $2 !~ /^[1-9][0-9]*$/)
			print list ":" FNR ": not \"<name> <number>\""
		allowed[$1] = $2
		before += $2
		next
	}
	$2 > 0 {
		now[$1] = $2
		after += $2
	}
	END {
		for (name in now)
			if (now[name] > allowed[name] && (!update || after > before))
				print name ": " now[name] " " unit ", at most " allowed[name] + 0
		for (name in allowed)
			if (now[name] < allowed[name] && !update)
				print list ": " name " has " now[name] + 0 " " unit ", not " allowed[name] \
					"; lower the list with --update"
	}' "$1" "$2" | sort >"$work/grown"
	cat "$work/grown"
	[ ! -s "$work/grown" ] || return 1
	[ -z "$update" ] || {
		sed -n '/^#/!q; p' "$1" >"$work/list"
		awk '$2 > 0 { print $1, $2 }' "$2" | sort >>"$work/list"
		cp "$work/list" "$1"
	}
}
