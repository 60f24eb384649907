#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and tests everything, starting from a fresh clone.
#
#   sh tests/run.sh         the tests of every change
#   sh tests/run.sh long    also the long tests: clang, other processors, musl, valgrind, fuzzing, large models
#   sh tests/run.sh soak [minutes]
#                           only the soak test: a cluster with 1,000 connections whose processes are killed,
#                           frozen and restarted for 30 minutes, with every call accounted for
#
# Installs missing Debian packages, which is the only step that needs root. Everything else stays in
# build/, and is built incrementally. FUZZ_SECONDS (default 60) is the time per fuzzer.
set -u
cd "$(dirname "$0")/.." || exit 2

mode=${1:-short}
case $mode-$# in
short-0 | long-1 | soak-1 | soak-2) ;;
*)
	echo "usage: sh tests/run.sh [long | soak [minutes]]" >&2
	exit 2
	;;
esac

logs=build/log
mkdir -p $logs
: >$logs/seconds
: >$logs/summary
jobs=$(nproc)

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}
begun_ms=$(now_ms)

# seconds <name> <milliseconds> [<CPU milliseconds>]: prints one line of the summary.
seconds() {
	printf '%-24s %5d.%d s' "$1" $(($2 / 1000)) $(($2 % 1000 / 100))
	[ -z "${3:-}" ] || printf ', CPU %5d.%d s' $(($3 / 1000)) $(($3 % 1000 / 100))
	echo
}

# Reads what times(1) of the shell has printed: prints the CPU milliseconds of ended processes.
cpu_ms() {
	awk -F '[ms ]+' 'NR == 2 { printf "%d", ($1 + $3) * 60000 + ($2 + $4) * 1000 }' "$1"
}

# Stages that run beside others: their process ids.
beside_processes=

give_up() { # <name of the stage> <its log>
	tail -n 60 "$2"
	echo "tests/run.sh: stage \"$1\" failed; full output: $2"
	exit 1
}

end() { # <pid...>: ends processes, and those that they have started
	for pid in "$@"; do
		! [ -r "/proc/$1/task/$1/children" ] || end $(cat "/proc/$1/task/$1/children")
		kill "$1" 2>>$logs/ended
		shift
	done
}
trap 'end $beside_processes' EXIT
trap 'exit 2' HUP INT TERM

log_of() { # <name of a stage>
	echo "$logs/$(echo "$1" | tr ' ' -).log"
}

# stage <name> <command...>: logs the output, and prints the end of the log on failure.
stage() {
	name=$1
	shift
	log=$(log_of "$name")
	echo "== $name"
	stage_ms=$(now_ms)
	times >$logs/times-before
	"$@" >"$log" 2>&1 || give_up "$name" "$log"
	times >$logs/times
	seconds "$name" $(($(now_ms) - stage_ms)) $(($(cpu_ms $logs/times) - $(cpu_ms $logs/times-before))) >>$logs/seconds
}

# beside <name> <command...>: begins a stage in the background. It ends when meet() has waited for it. Builds
# and the simulator run at a lower priority.
beside() {
	name=$1
	shift
	log=$(log_of "$name")
	{
		begun_beside=$(now_ms)
		"$@"
		ended=$?
		times >"$log.times"
		seconds "$name, beside others" $(($(now_ms) - begun_beside)) $(cpu_ms "$log.times") >"$log.seconds"
		exit $ended
	} >"$log" 2>&1 &
	beside_processes="$beside_processes $!"
	eval "process_$(echo "$name" | tr ' ' _)=$!"
}

# meet <name>: waits for a stage in the background.
meet() {
	name=$1
	log=$(log_of "$name")
	echo "== $name"
	eval "process=\$process_$(echo "$name" | tr ' ' _)"
	wait "$process"
	ended=$?
	left=
	for pid in $beside_processes; do
		[ "$pid" = "$process" ] || left="$left $pid"
	done
	beside_processes=$left
	[ $ended = 0 ] || give_up "$name" "$log"
	cat "$log.seconds" >>$logs/seconds
}

configure() { # <build preset>: unless it stands as the presets say
	stamp=build/$1/configured
	if [ ! -f "$stamp" ] || [ CMakePresets.json -nt "$stamp" ]; then
		# For users of release, warnings are no errors.
		like=$1
		[ "$like" != release ] || like=ci
		cmake --preset "$like" && touch "$stamp"
	fi
}

build() { # <preset> [target...]
	preset=$1
	shift
	configure "$preset" && nice cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}

run_tests() { # <preset> [ctest option...]
	preset=$1
	shift
	ctest --preset "$preset" -j "$jobs" "$@"
}

# build_and_test <preset> [ctest option...]: two stages; prints the result of the tests for the summary.
build_and_test() {
	stage "build $1" build "$1"
	stage "test $1" run_tests "$@"
	verdict "$1"
}

verdict() { # <what was tested>: reads the last stage's log; names also tests whose peer is not installed
	verdict=$(grep -e 'tests passed' -e '(Skipped)$' "$log")
	echo "$verdict"
	printf '%s:\n%s\n' "$1" "$verdict" >>$logs/summary
}

# simulate <seeds>: runs two halves in parallel.
simulate() {
	half=$(($1 / 2))
	nice build/release/tests/sim/sim --seeds $half >$logs/seeds-1 2>&1 &
	first=$!
	nice build/release/tests/sim/sim --seeds $half --first $((half + 1)) >$logs/seeds-2 2>&1 &
	second=$!
	failed=0
	wait $first || { failed=1 && cat $logs/seeds-1; }
	wait $second || { failed=1 && cat $logs/seeds-2; }
	[ $failed = 0 ] || return 1
	tail -n 1 $logs/seeds-1
	tail -n 1 $logs/seeds-2
}

# outside <build directory>: tests the installation and GUIDE.md.
outside() {
	sh tests/packaging/run.sh "$1" && sh tests/packaging/guide.sh "$1"
}

# --- packages

packages='curl gcc g++ cmake ninja-build pkg-config libev-dev libmsgpack-dev libcmocka-dev libuv1-dev libwslay-dev
	clang clang-format clang-tidy lld universal-ctags neovim iproute2 nftables
	libzookeeper-st-dev zookeeper libssl-dev openssl redis-tools chromium doxygen dpkg-dev file mandoc valgrind'
command -v npm >$logs/npm || packages="$packages nodejs npm"
case $mode in
long) packages="$packages qemu-user-static musl-tools
	g++-i686-linux-gnu g++-aarch64-linux-gnu g++-s390x-linux-gnu
	clang-19 libclang-rt-dev libevent-dev" ;;
soak) packages='gcc g++ cmake ninja-build pkg-config libev-dev libmsgpack-dev libcmocka-dev' ;;
esac

. tests/packages.sh
# shellcheck disable=SC2086
ensure_packages stage $packages || exit 1
[ -z "$installed_packages" ] || rm -f build/*/configured

if [ $mode = soak ]; then
	stage "build soak" build release soak
	trap - HUP INT TERM
	exec build/release/tests/soak/soak --table build/soak.md "${2:-30}"
fi

# --- the tests of every change

# Builds come first, also of programs that are run only by hand. The tests with real processes wait most of
# the time, so they run beside the builds.
[ $mode = short ] || build_and_test dev -LE live
stage "build asan" build asan all benchmarks soak
beside "test live" run_tests asan -L live -j $((4 * jobs))
if [ $mode = long ]; then
	stage "build release" build release
else
	stage "build release" build release product shipped
fi
stage "build tsan" build tsan threads
stage instructions sh tests/bench/cost/run.sh --check
cat "$log"
[ $mode = long ] || TIDY=quick
export TIDY
beside checks nice sh tests/checks/run.sh build/asan build/release
stage simulator simulate 2000
cat "$log"
stage outage nice build/release/tests/sim/sim --outage
tail -n 2 "$log"
meet "test live"
verdict "asan, where processes are real"

# Every rule is tested by the build that detects most, and the programs that users get by the release. The
# long tests repeat all rules in the release.
beside packaging outside build/release
beside browser sh tests/browser/run.sh build/release
stage "test asan" run_tests asan -LE live
verdict asan
SPOKE_MODEL_OPS=1000000
export SPOKE_MODEL_OPS
if [ $mode = long ]; then
	SPOKE_TORTURE=all
	export SPOKE_TORTURE
	stage "test release" run_tests release -LE live
else
	stage "test release" run_tests release -L shipped
fi
verdict release
unset SPOKE_MODEL_OPS
stage "test tsan" run_tests tsan -L threads
verdict "tsan, where there are threads"
meet checks
cat "$log"
meet packaging
tail -n 1 "$log"
meet browser
tail -n 1 "$log"

# --- the long tests

fuzz() { # <program>: new inputs and findings stay in build/
	target=${1##*/fuzz_}
	mkdir -p "build/fuzz/corpus/$target" "build/fuzz/seeds/$target" build/fuzz/found
	"${1%/*}/fuzz_replay" "$target" "tests/fuzz/corpus/$target.hex" "build/fuzz/seeds/$target" || return 1
	"$1" -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1 \
		-artifact_prefix=build/fuzz/found/ "build/fuzz/corpus/$target" "build/fuzz/seeds/$target"
}

long_model() {
	SPOKE_MODEL_OPS=10000000 ctest --preset release -R model --timeout 3600
}

# Where nothing can be mounted, there is no disk to lose.
journals() { # <act and its argument>
	sh tests/soak/journal.sh build/release "$@" || [ $? = 77 ]
}

# Advisory: the analyzer has too many false positives to fail the run.
analyze() {
	configure analyze && cmake --build --preset analyze --clean-first -j "$jobs" || return 1
	echo "$(grep -c '\[-Wanalyzer' $logs/analyze.log) findings of gcc -fanalyzer"
}

if [ $mode = long ]; then
	build_and_test clang
	build_and_test clang-19 -L unit
	for target in i686 aarch64 s390x musl; do
		stage "cross $target" sh tests/cross/run.sh $target
		verdict "$target"
	done
	build_and_test valgrind
	stage "model at 1e7" long_model
	verdict "model at 1e7"
	stage "simulator at 1e5" build/release/tests/sim/sim --seeds 100000
	tail -n 1 "$log"
	stage "simulator's speed" build/release/tests/sim/sim --steady 300
	tail -n 1 "$log"
	for act in 'kills 2' 'power 200' full; do
		# shellcheck disable=SC2086
		stage "journals, $act" journals $act
		tail -n 1 "$log"
	done
	stage "planted bugs" sh tests/planted/run.sh
	cat $logs/planted.txt
	stage "build benchmarks" cmake --build --preset release -j "$jobs" --target benchmarks soak
	stage "cost of a call" sh tests/bench/run.sh cost
	grep '^bench_cost' "$log"
	stage "idle connections" sh tests/bench/run.sh idle
	tail -n 3 "$log"
	stage "build fuzz" build fuzz
	for fuzzer in build/fuzz/tests/fuzz/fuzz_*; do
		case $fuzzer in
		*_replay) ;;
		*)
			stage "fuzz ${fuzzer##*/fuzz_}" fuzz "$fuzzer"
			grep '^stat::number_of_executed_units' "$log"
			;;
		esac
	done
	stage analyze analyze
	tail -n 1 "$log"
fi

echo "== summary"
cat $logs/summary $logs/seconds
times >$logs/times
seconds total $(($(now_ms) - begun_ms)) "$(cpu_ms $logs/times)"
