#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the codecs on the recorded bodies of Dubbo (tests/golden): Hessian 2 and msgpack by time and by
# instructions, and hessian.js, the codec of Node's Dubbo libraries, on the same bodies. Then calls with several
# arguments in both serializations, 64 at a time. Called by sh tests/bench/run.sh codec. Needs a configured build/release; valgrind and npm are optional.
#
#   --quick             0.5 s for each row instead of 3 s
set -u
cd "$(dirname "$0")/../../.." || exit 2

seconds=3
[ "${1:-}" != --quick ] || seconds=0.5
here=tests/bench/codec
work=build/codec
program=build/release/tests/bench/bench_codec
version=2.11.0 # of hessian.js
mkdir -p $work

cmake --build build/release --target bench_codec bench_codec_calls >$work/log 2>&1 || {
	tail -n 60 $work/log >&2
	exit 1
}
awk -f $here/bodies.awk tests/golden/dubbo-frames.tsv tests/golden/dubbo-2.7.23-hessian2.frames >$work/all
awk 'length($2) <= 2048' $work/all >$work/short # of at most 1 KiB

# Prints the instructions of one row for each byte of the bodies, as a row like those of the program.
instructions() { # <bodies> <number of the row> <name>
	env -i LD_BIND_NOW=1 "$valgrind" --tool=callgrind --toggle-collect=codec_measured \
		--callgrind-out-file=$work/callgrind $program "$1" 0 "$2" >$work/log 2>&1 || return 1
	bytes=$(awk '{ sum += length($2) / 2 } END { print sum }' "$1")
	awk -v name="$3" -v bytes="$bytes" -v bodies="$(wc -l <"$1")" '
	/^(totals|summary):/ { count = $2 }
	END { printf "%s\t%d\t%d\t\t%.2f\t%.0f\n", name, bodies, bytes, count / bytes, count / bodies }' \
		$work/callgrind
}

node=
if ! command -v npm >$work/npm; then
	echo "$here/run.sh: npm is not installed: hessian.js is left out" >&2
elif (mkdir -p $work/node && cd $work/node && npm install --ignore-scripts --no-save "hessian.js@$version") \
	>$work/log 2>&1; then
	node=$work/node
else
	echo "$here/run.sh: npm cannot install hessian.js: it is left out" >&2
fi
valgrind=$(command -v valgrind) || echo "$here/run.sh: valgrind is not installed: no instructions" >&2

printf 'set\trow\tbodies\tbytes\tMB_per_s\tinstructions_per_byte\tinstructions_per_body\n'
for set in all short; do
	{
		$program $work/$set $seconds || exit 1
		if [ -n "$node" ]; then
			node $here/peer.js "$PWD/$node" $work/$set $work/$set.readable $seconds || exit 1
			cmp -s $work/$set $work/$set.readable ||
				echo "$here/run.sh: hessian.js leaves bodies of \"$set\" out" >&2
		fi
		if [ -n "$valgrind" ]; then
			instructions $work/$set 0 'hessian2 decode' &&
				instructions $work/$set 1 'hessian2 encode' &&
				instructions $work/$set 2 'msgpack decode' &&
				instructions $work/$set 3 'msgpack encode' || exit 1
		fi
	} >$work/rows || exit 1
	sed "s/^/$set\t/" $work/rows
done | tee $work/table
awk -F '\t' '
$5 != "" { speed[$1, $2] = $5 }
END {
	decode = speed["all", "hessian2 decode"]
	printf "decoding all bodies: %s MB/s, target 300: %s\n", decode, (decode >= 300 ? "reached" : "SHORT")
	for (i = split("all short", sets, " "); i > 0; i--)
		if ((sets[i], "hessian.js decode") in speed) {
			ratio = speed[sets[i], "hessian2 decode"] / speed[sets[i], "hessian.js decode"]
			printf "decoding %s bodies: %.1f times as fast as hessian.js, target 10: %s\n",
				sets[i], ratio, (ratio >= 10 ? "reached" : "SHORT")
		}
}' $work/table >&2

# --- calls

# Prints the instructions of a call, both sides, with the C library.
call_cost() { # <shape> <serialization>
	calls=2048
	env -i LD_BIND_NOW=1 "$valgrind" --tool=callgrind --toggle-collect=codec_calls_measured \
		--callgrind-out-file=$work/callgrind ${program}_calls 0 "$1" "$2" $calls >$work/log 2>&1 || return 1
	awk -v calls=$calls '/^(totals|summary):/ { count = $2 } END { printf "%.0f", count / calls }' $work/callgrind
}

printf 'call\tmsgpack_per_s\thessian2_per_s\tratio\tmsgpack_instructions\thessian2_instructions\n'
${program}_calls $seconds >$work/calls || exit 1
while read -r shape row; do
	printf '%s\t%s' "$shape" "$row"
	if [ -n "$valgrind" ]; then
		printf '\t%s\t%s' "$(call_cost "$shape" msgpack)" "$(call_cost "$shape" hessian2)"
	fi
	echo
done <$work/calls
