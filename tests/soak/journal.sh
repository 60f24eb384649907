#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Journals of real consumers on real disks, for longer than a test may take: no ticket that was told is lost.
#
#   sh tests/soak/journal.sh <build directory> kills MINUTES   kills consumer and provider by dice
#   sh tests/soak/journal.sh <build directory> power COPIES    copies a mounted disk at random moments, and reads each
#                                                              copy as after a loss of power; needs root and a loop device
#   sh tests/soak/journal.sh <build directory> full            fills a disk of 256 KB, and one of 10 MB; needs root
#
# The last two end with status 77 where they cannot run. The books are the lines of the consumer: `deferred` for each
# ticket that was told, `settled` for each that has ended.
set -u
LC_ALL=C
export LC_ALL

build=${1:-}
act=${2:-}
live=$build/tests/integration
spoke=$build/examples/spoke/spoke
work=$(mktemp -d) || exit 2
journal=$work/journal
consumer=
provider=
address=
life=0
mounted=

clean_up() {
	[ -z "$consumer" ] || kill -KILL "$consumer"
	[ -z "$provider" ] || kill -KILL "$provider"
	for folder in $mounted; do
		umount -l "$folder"
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 2' HUP INT TERM

fail() {
	echo "$*"
	[ -z "${log:-}" ] || tail -n 5 "$log"
	exit 1
}

dice() { # <sides>: prints a number from 0 on
	number=$(od -An -N4 -tu4 /dev/urandom)
	echo $((number % $1))
}

nap() { # <milliseconds>
	sleep $(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))
}

await() { # <log> <words> <process>: waits for a line
	for try in $(seq 1200); do
		! grep -q "$2" "$1" || return 0
		kill -0 "$3" || fail "a process has ended before: $2"
		sleep 0.1
	done
	fail "not after two minutes: $2"
}

# --- the processes

begin_provider() {
	: >"$work/provider"
	"$live/live_provider" listen="dubbo://${address:-127.0.0.1:0}" <"$work/to-provider" >"$work/provider" 2>&1 3>&- 4>&- &
	provider=$!
	await "$work/provider" ' listens ' "$provider"
	address=$(sed -n 's/^[0-9]* listens //p' "$work/provider")
}

end_provider() {
	kill -KILL "$provider"
	wait "$provider" 2>>"$work/ended"
	provider=
}

begin_consumer() { # <parameters of the URL> <argument>...
	url="dubbo://$address/demo.EchoService?cluster=failback&retries=100&retry.deadline=5h&failback.tasks=100000&failback.bytes=64MiB&$1"
	shift
	life=$((life + 1))
	log=$work/life-$life
	: >"$log"
	"$live/live_consumer" url="$url" journal="$journal" "$@" <"$work/to-consumer" >"$log" 2>&1 3>&- 4>&- &
	consumer=$!
}

end_consumer() {
	kill -KILL "$consumer"
	wait "$consumer" 2>>"$work/ended"
	consumer=
	note_books
	mv "$work/open-now" "$work/open"
}

ask_consumer() { # <word>: prints the last answer
	before=$(grep -c "^[0-9]* $1 " "$log")
	echo "$1" >&3
	for try in $(seq 1200); do
		[ "$(grep -c "^[0-9]* $1 " "$log")" = "$before" ] || break
		sleep 0.1
	done
	sed -n "s/^[0-9]* $1 //p" "$log" | tail -n 1
}

# --- the books

told() { # <log>...: prints the tickets that were told
	cat "$@" | awk '$2 == "deferred" { print $4 }' | sort
}

settled() { # <log>...
	cat "$@" | awk '$2 == "settled" && $4 != "kept" { print $3 }' | sort
}

# The tickets that are open now, by the book of all lives before and the log of this one.
note_books() {
	told "$log" >"$work/told"
	settled "$log" >"$work/settled"
	[ -z "$(uniq -d "$work/settled")" ] || fail "a ticket was settled twice by one process: $(uniq -d "$work/settled")"
	sort -m "$work/open" "$work/told" | comm -23 - "$work/settled" >"$work/open-now"
}

# Each open ticket is in the journal of this folder.
check_journal() { # <folder> <file with the open tickets>
	"$spoke" journal "$1" check >"$work/check" 2>&1 || fail "$(cat "$work/check")"
	"$spoke" journal "$1" export >"$work/export" || fail "the journal cannot be exported"
	sed 's/^{"ticket":"\([0-9a-f]*\)".*/\1/' "$work/export" | sort >"$work/there"
	lost=$(comm -23 "$2" "$work/there" | head -n 3)
	[ -z "$lost" ] || fail "tickets are lost after life $life, e.g.: $lost"
}

# All tickets are settled in the end.
settle_all() {
	[ -n "$provider" ] || begin_provider
	begin_consumer 'retry.period=200ms' every=2
	await "$log" ' recovered OK ' "$consumer"
	for try in $(seq 3000); do
		[ "$(ask_consumer tickets)" != 0 ] || break
		sleep 0.2
	done
	end_consumer
	[ ! -s "$work/open" ] || fail "$(wc -l <"$work/open") tickets are not settled, e.g.: $(head -n 1 "$work/open")"
	check_journal "$journal" "$work/open"
	settled "$work"/life-* >"$work/settled"
	echo "$life lives, $(told "$work"/life-* | wc -l) tickets told, $(uniq "$work/settled" | wc -l) settled," \
		"$(uniq -d "$work/settled" | wc -l) of them by several lives; none is lost"
}

# --- the acts

kills() { # <minutes>
	end=$(($(date +%s) + $1 * 60))
	begin_provider
	durability=power
	while [ "$(date +%s)" -lt $end ]; do
		[ "$durability" = power ] && durability=process || durability=power
		begin_consumer 'retry.period=5s' every=50 durability=$durability
		if [ "$(dice 4)" = 0 ]; then
			nap "$(dice 60)" # maybe while it reads its journal
		else
			await "$log" ' recovered OK ' "$consumer"
			for step in $(seq $(($(dice 4) + 1))); do
				nap "$(dice 1500)"
				if [ "$(dice 2)" = 0 ]; then
					[ -z "$provider" ] && begin_provider || end_provider
				else
					"$spoke" journal "$journal" check >"$work/check" 2>&1 || fail "$(cat "$work/check")"
				fi
			done
		fi
		! grep -q ' recovered E' "$log" || fail "$(grep ' recovered E' "$log")"
		end_consumer
		check_journal "$journal" "$work/open"
	done
	settle_all
}

# Tells a place where this cannot run from a fault.
need_disk() {
	[ "$(id -u)" = 0 ] || { echo "skipped: mounting needs root" && exit 77; }
	command -v mkfs.ext4 >"$work/found" || { echo "skipped: there is no mkfs.ext4" && exit 77; }
}

mount_at() { # <folder> <argument of mount>...
	folder=$1
	shift
	mkdir -p "$folder"
	mount "$@" "$folder" || { echo "skipped: nothing can be mounted here" && exit 77; }
	mounted="$folder $mounted"
}

# The consumer stands still while the disk is copied, so that the copy is of one moment. Writes that the system
# has not brought to the disk are missing in it.
copy_disk() {
	kill -STOP "$consumer"
	note_books
	cp "$work/image" "$work/copy"
	kill -CONT "$consumer"
}

power() { # <copies>
	need_disk
	truncate -s 48M "$work/image"
	mkfs.ext4 -q "$work/image" || fail "no file system can be made"
	mount_at "$work/disk" -o loop "$work/image"
	journal=$work/disk/journal
	mkdir "$journal"
	sync
	begin_provider
	torn=0
	for copy in $(seq "$1"); do
		if [ -z "$consumer" ]; then
			begin_consumer 'retry.period=100ms' every=10 durability=power
			await "$log" ' recovered OK ' "$consumer"
		fi
		[ "$(dice 8)" != 0 ] || { [ -z "$provider" ] && begin_provider || end_provider; }
		nap "$(dice 250)"
		copy_disk
		mkdir -p "$work/lost"
		mount -o loop "$work/copy" "$work/lost" || fail "copy $copy cannot be mounted"
		check_journal "$work/lost/journal" "$work/open-now"
		torn=$((torn + $(grep -c 'the last write was cut' "$work/check")))
		umount "$work/lost" || fail "copy $copy cannot be unmounted"
		[ "$(dice 10)" != 0 ] || end_consumer
	done
	[ -z "$consumer" ] || end_consumer
	check_journal "$journal" "$work/open"
	echo "$1 copies, $torn with a torn end; $life lives, $(told "$work"/life-* | wc -l) tickets told; none is lost"
}

# The number of a counter of the consumer.
count_of() { # <name>
	echo stats >&3
	await "$log" ' stat end' "$consumer"
	sed -n "s/^[0-9]* stat $1 //p" "$log" | tail -n 1
}

full() {
	need_disk
	mount_at "$work/disk" -t tmpfs -o size=256k tmpfs
	journal=$work/disk/journal
	mkdir "$journal"
	begin_provider
	end_provider
	begin_consumer 'retry.period=200ms' every=10
	await "$log" ' recovered OK ' "$consumer"
	for number in 1 2 3; do
		sleep 0.3
		echo "echo $number" >&3
	done
	await "$log" 'not deferred: the journal cannot be written: No space left on device' "$consumer"
	! grep -q ' deferred ' "$log" || fail "a ticket was told without room for it"
	mount -o remount,size=10m "$work/disk" || fail "the disk cannot be made larger"
	await "$log" ' deferred ' "$consumer"
	end_consumer
	# Two segments have room, so that all tickets begin and end although there is no more.
	begin_consumer 'retry.period=500ms' every=20
	await "$log" ' recovered OK ' "$consumer"
	for number in $(seq 12); do
		head -c 1M /dev/zero >>"$work/disk/others" 2>>"$work/out"
	done
	sleep 3
	echo rest >&3
	begin_provider
	for try in $(seq 3000); do
		[ "$(ask_consumer tickets)" != 0 ] || break
		sleep 0.2
	done
	failures=$(count_of journal_failures)
	[ "${failures:-0}" = 0 ] || fail "$failures writes have failed although each ticket has its room"
	rm "$work/disk/others"
	end_consumer
	settle_all
}

case $act-$# in
kills-3 | power-3 | full-2) ;;
*)
	sed -n '3,12s/^#//p' "$0" >&2
	exit 2
	;;
esac
for program in "$live/live_provider" "$live/live_consumer" "$spoke"; do
	[ -x "$program" ] || { echo "$program: not built" && exit 2; }
done
mkdir "$journal"
mkfifo "$work/to-consumer" "$work/to-provider"
exec 3<>"$work/to-consumer" 4<>"$work/to-provider"
: >"$work/open"
shift 2
$act "$@"
