# SPDX-License-Identifier: Apache-2.0
# Plants bugs, patches of the product, one after another in a copy of the tree. tests/planted/run.sh and
# tests/sim/mutants.sh include this file, after setting $root, the root of the tree; $patches, the folder
# of the patches; $tree, the copy of the tree, and $copy around it; $logs; $table. They define:
#
#   try <name>        builds the copy with the bug in it; sets $verdict to "caught" or the reason
#   print_line <name> prints the line of the table for $verdict, which took $took ms

# Outside of a repository git applies patches to the current directory.
GIT_CEILING_DIRECTORIES=$root/build
export GIT_CEILING_DIRECTORIES

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# Copies the files that git knows or could know.
copy_tree() {
	rm -rf "$copy" "$logs"
	mkdir -p "$tree" "$logs" || return 1
	git ls-files -z --cached --others --exclude-standard >"$copy/files" || return 1
	tar -cf - --null --ignore-failed-read -T "$copy/files" 2>"$logs/copy.log" | tar -xf - -C "$tree"
}

# Prints the names of all patches.
all_patches() {
	(cd "$patches" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')
}

# Ends the script if a patch is missing.
must_exist() { # <name>...
	for name in "$@"; do
		[ -f "$patches/$name.patch" ] || {
			echo "no such file: $patches/$name.patch" >&2
			exit 2
		}
	done
}

plant() { # <name>: one line of the table
	begun=$(now_ms)
	if (cd "$tree" && git apply "$patches/$1.patch") >"$logs/$1.log" 2>&1; then
		try "$1"
		(cd "$tree" && git apply -R "$patches/$1.patch") || exit 2
	else
		verdict="does not apply"
	fi
	took=$(($(now_ms) - begun))
	print_line "$1"
}

# Plants all of them, and writes a line of each to $table.
plant_all() { # <name>...
	begun_all=$(now_ms)
	: >"$table"
	for name in "$@"; do
		plant "$name" >"$copy/line"
		tee -a "$table" <"$copy/line"
	done
}

# Prints how many of them the table has as caught.
sum_up() { # <name>...
	caught=$(grep -c ' caught$' "$table")
	echo "$caught of $# caught, $((($(now_ms) - begun_all) / 1000)) s"
	[ "$caught" = $# ]
}
