#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiles the instructions of a call, and compares their number with the recorded one. Called by
# sh tests/bench/run.sh cost. Needs a configured build/release, and valgrind.
#
#   --quick             the table by floors and rooms only
#   --functions         one row per function instead of one per room
#   --lines             one row per line
#   --plain             the table of the library's ordinary code, which the ratchet uses
#   --hessian2          the same for calls in Hessian 2
#   --check             prints whether the ratchet holds, and whether SPOKE_ARGS() costs at most a builder
#   --update            rewrites ratchet.txt
#
# The output of callgrind stays in build/cost; callgrind_annotate --auto=yes shows it with the sources.
set -u
cd "$(dirname "$0")/../../.." || exit 2

by=room
program=bench_cost
with=
part=all
for option in "$@"; do
	case $option in
	--quick) part=table ;;
	--functions) by=function part=table ;;
	--lines) by=line part=table ;;
	--plain) program=bench_cost_plain part=table ;;
	--hessian2) program=bench_cost_plain with='--with hessian2' part=table ;;
	--check) part=check ;;
	--update) part=update ;;
	*)
		echo "usage: sh tests/bench/run.sh cost [--quick | --functions | --lines] [--plain | --hessian2]" >&2
		echo "       sh tests/bench/run.sh cost --check | --update" >&2
		exit 2
		;;
	esac
done

here=tests/bench/cost
work=build/cost
ratchet=$here/ratchet.txt
calls=4096      # that are counted
warm_calls=1024 # before them
share_max=3     # percent of a call that a feature may cost
mkdir -p $work
command -v valgrind >$work/valgrind || {
	echo "$here/run.sh: valgrind is not installed" >&2
	exit 2
}

quietly() {
	"$@" >$work/said 2>&1 && return
	tail -n 60 $work/said >&2
	echo "$here/run.sh: $* failed" >&2
	exit 1
}

build() { # <target...>
	quietly cmake --build build/release --target "$@"
}

# count <program> <calls in flight> [option...]: writes the output of sum.awk to $work/<program>.<deep>,
# or to $work/<program>-<what>.<deep> if that is used. The environment is empty and symbols are bound at
# load time.
count() {
	name=$1${4:+-$4}.$2
	raw=$work/callgrind.$name
	quietly env -i LD_BIND_NOW=1 "$(cat $work/valgrind)" --tool=callgrind \
		--toggle-collect=cost_measured --callgrind-out-file="$raw" \
		"build/release/tests/bench/$1" --deep "$2" --warm $warm_calls --calls $calls ${3:+"$3" "$4"}
	awk -v calls=$calls -v made=$((calls + warm_calls)) -f $here/sum.awk "$raw" >"$work/$name"
}

# Counts data that a call finds neither in the first nor in the second cache, with 1,000 connections of one call
# each: more than these caches hold. The model is a second cache of 1 MiB.
count_cold() { # <program>
	raw=$work/callgrind.$1-cold
	quietly env -i LD_BIND_NOW=1 "$(cat $work/valgrind)" --tool=callgrind --cache-sim=yes --LL=1048576,16,64 \
		--toggle-collect=cost_measured --callgrind-out-file="$raw" \
		"build/release/tests/bench/$1" --connections 1000 --deep 1 --warm 4000 --calls $calls
	awk -v calls=$calls -v made=$((calls + 4000)) -f $here/sum.awk "$raw" >"$work/$1-cold"
}

count_both() { # <program> [option...]
	each=$1
	shift
	count "$each" 64 "$@"
	count "$each" 1 "$@"
}

# The ordinary code, with calls in msgpack, with the same calls in Hessian 2, with calls whose repeats a provider
# recognises, and with cold caches.
count_plain() {
	count_both bench_cost_plain
	count_cold bench_cost_plain
	count_both bench_cost_plain --with hessian2
	count_both bench_cost_plain --with dedupe
}

# Compares calls whose arguments are made in place with calls whose arguments a builder packs: the former may
# not take more instructions.
check_line() {
	count_both bench_cost_plain --with hand
	count_both bench_cost_plain --with line
	numbers bench_cost_plain-hand bench_cost_plain-line >$work/line
	awk -F '\t' '
	$1 ~ /hand$/ { hand[$2] = $3 }
	$1 ~ /line$/ {
		printf "SPOKE_ARGS(), %d deep: a call takes %.1f instructions, by hand %.1f\n", $2, $3, hand[$2]
		if ($3 > hand[$2])
			dearer = 1
	}
	END {
		if (dearer)
			print "SPOKE_ARGS() is more expensive than a builder."
		exit dearer
	}' $work/line >&2
}

# Aligns columns for a reader.
show() { # <format> <file>
	awk -F '\t' -v format="$1" '!/^#/ { printf format "\n", $1, $2, $3, $4, $5, $6 }' "$2" >&2
}

show_table() {
	counted=$work/$program${with:+-hessian2}
	awk -v by=$by -f $here/table.awk "$counted.64" "$counted.1" >$work/table
	cat $work/table
	show '%-14s %-46s %9s %9s %9s' $work/table
}

# --- the cost of features

compare() { # <feature> <program with it> <program without it>
	awk -v feature="$1" -v max=$max -f $here/features.awk $here/features.txt \
		"$work/$2.64" "$work/$3.64" "$work/$2.1" "$work/$3.1" >>$work/features
}

show_features() {
	awk -f $here/features.awk $here/features.txt >&2 || exit 1
	build bench_cost_without
	printf 'feature\tdepth\tsaved\tlines_left\tshare_pct\ttarget\n' >$work/features
	for feature in validator limits heartbeats filters deadlines; do
		count_both bench_cost_without_$feature
		max=$share_max
		[ $feature != deadlines ] || max=0
		compare $feature bench_cost bench_cost_without_$feature
	done
	max=0
	for feature in limits filters; do
		count_both bench_cost --with $feature
		compare "$feature, used" bench_cost-$feature bench_cost
	done
	cat $work/features
	show '%-14s %7s %9s %11s %9s  %s' $work/features
}

# --- the ratchet

# The compiler and the machine, e.g. "gcc 12 x86_64-linux-gnu".
made_by() {
	compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' build/release/CMakeCache.txt)
	case $("$compiler" --version) in
	*'Free Software Foundation'*) name=gcc ;;
	*) name=$(basename "$compiler") ;;
	esac
	echo "$name $("$compiler" -dumpversion) $("$compiler" -dumpmachine)"
}

numbers() { # <program...>: program, depth, instructions, calls of the C library
	for each in "$@"; do
		for deep in 64 1; do
			awk -F '\t' -v name="$each" -v deep=$deep '
			$2 !~ /^(tests|core\/virtual)\// { sum[$1] += $5 }
			END { printf "%s\t%d\t%.1f\t%.2f\n", name, deep, sum["self"], sum["uses"] }' \
				$work/"$each".$deep
		done
	done
}

misses() { # <program>: the same for cold caches, with misses in place of instructions
	awk -F '\t' -v name="$1-cold" '
		$1 == "misses" && $2 !~ /^(tests|core\/virtual)\// { sum += $5 }
		END { printf "%s\t%d\t%.1f\t%.2f\n", name, 1, sum, 0 }' "$work/$1-cold"
}

update_ratchet() {
	{
		sed -n '/^#/p' $ratchet
		printf 'made by\t%s\n' "$(made_by)"
		numbers bench_cost_plain bench_cost bench_cost_plain-hessian2 bench_cost_plain-dedupe
		misses bench_cost_plain
	} >$work/ratchet && cp $work/ratchet $ratchet
	show '%-18s %4s %10s %8s' $ratchet
}

check_ratchet() { # <program...>
	{
		numbers "$@"
		misses bench_cost_plain
	} >$work/numbers
	awk -F '\t' -v made_by="$(made_by)" -v ratchet=$ratchet -f $here/ratchet.awk $ratchet $work/numbers >&2
}

case $part in
table)
	build $program
	# shellcheck disable=SC2086
	count_both $program $with
	show_table
	;;
check)
	build bench_cost_plain
	count_plain
	check_line && check_ratchet bench_cost_plain bench_cost_plain-hessian2 bench_cost_plain-dedupe
	;;
update)
	build bench_cost bench_cost_plain
	count_both bench_cost
	count_plain
	update_ratchet
	;;
all)
	build bench_cost bench_cost_plain
	count_both bench_cost
	count_plain
	show_table
	show_features
	check_line
	check_ratchet bench_cost bench_cost_plain bench_cost_plain-hessian2 bench_cost_plain-dedupe
	;;
esac
