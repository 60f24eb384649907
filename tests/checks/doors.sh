#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One door to the machine: clock, dice, memory, descriptors, threads, libev and msgpack-c are used in
# the files that doors.txt lists and nowhere else; some functions are used nowhere at all.
set -eu
. "$(dirname "$0")/common.sh"

# Kind and names. "name(" is meant where it is called, "name" wherever it stands, "name*" stands for
# all that begin so, <name> for a header. What is reached by . or -> is a door already, so the
# wheel of an env is free to have a slot called read.
cat >"$work/kinds" <<'KINDS'
clock clock_gettime clock_getres gettimeofday timespec_get time( clock( localtime* gmtime* mktime nanosleep clock_nanosleep
dice rand( srand( rand_r random( srandom drand48 lrand48 mrand48 getrandom getentropy arc4random*
memory malloc calloc realloc reallocarray free( strdup strndup aligned_alloc posix_memalign memalign valloc asprintf vasprintf open_memstream getline mmap munmap sbrk
stdio printf( fprintf vprintf vfprintf dprintf puts( fputs fputc putchar( putc( fwrite fread fopen fdopen freopen fclose fflush fgets fgetc getc( getchar scanf( fscanf perror stdin stdout stderr
exit abort( exit( _exit _Exit quick_exit atexit
environ getenv secure_getenv setenv unsetenv putenv
fd open( openat creat( close( read( write( readv( writev( pread pwrite lseek ioctl fcntl pipe( pipe2 dup( dup2 dup3 poll( ppoll select( pselect epoll_* eventfd timerfd_* signalfd inotify_* unlink( rename( mkdir( rmdir( stat( fstat( lstat( fsync fdatasync truncate( ftruncate opendir scandir <fcntl.h> <poll.h> <unistd.h> <sys/epoll.h> <sys/eventfd.h> <sys/timerfd.h> <sys/inotify.h>
socket socket( socketpair( connect( bind( listen( accept( accept4 recv( recvfrom recvmsg send( sendto sendmsg setsockopt getsockopt shutdown( getaddrinfo freeaddrinfo getnameinfo getsockname getpeername gethostby* <sys/socket.h> <sys/un.h> <netdb.h> <netinet/in.h> <netinet/tcp.h> <arpa/inet.h>
thread pthread_* thrd_* mtx_* cnd_* tss_* sem_* <pthread.h> <threads.h> <semaphore.h>
process fork( vfork( execv* execl* posix_spawn* kill( raise( system( popen( waitpid sigaction sigprocmask sched_* prctl( <signal.h> <sched.h> <sys/wait.h>
libev ev_*( <ev.h> <libev/ev.h>
msgpack msgpack_* <msgpack.h> <msgpack/*
assert assert( <assert.h>
never strcpy strcat sprintf vsprintf strtok( strtok_r atoi atol( atoll atof gets( alloca signal( sleep( usleep <alloca.h> <event.h>
KINDS

# Reads kinds, doors, then code; complains on stdout.
code strings=1 $(c_files) >"$work/strings"
code $(c_files) >"$work/code"
grep -E '^[^:]*:[0-9]+:[ \t]*#[ \t]*include' "$work/strings" >"$work/includes" || true
awk '
function complain(where, name, kind) {
	print where ": " name " is " (kind == "never" ? "banned" : \
		"behind the door \"" kind "\": use the env, or list the file in tests/checks/doors.txt")
}
# The kind of a name in the code; with its parenthesis when it is called.
function kind_of(name, called,   len) {
	if (name in kind)
		return kind[name]
	if (called && (name "(") in kind)
		return kind[name "("]
	for (len = length(name); len > 1; len--) {
		if ((substr(name, 1, len) "*") in kind)
			return kind[substr(name, 1, len) "*"]
		if (called && (substr(name, 1, len) "*(") in kind)
			return kind[substr(name, 1, len) "*("]
	}
	return ""
}
# Marks doors as used, so that a permission which a file no longer needs shows up.
function allowed(path, what,   ok, door) {
	for (door in doors)
		if (door == path || (door ~ /\/$/ && index(path, door) == 1))
			if (index("," doors[door] ",", "," what ",")) {
				used[door, what] = 1
				ok = 1
			}
	return ok
}
FILENAME ~ /kinds$/ {
	for (i = 2; i <= NF; i++)
		kind[$i] = $1
	next
}
FILENAME ~ /doors.txt$/ {
	if ($1 !~ /^#/ && NF) {
		doors[$1] = $2
		if ($0 !~ /  # ./)
			print FILENAME ":" FNR ": says no reason after \"  # \""
	}
	next
}
{
	path = $0
	sub(/:.*/, "", path)
	where = $0
	match(where, /^[^:]*:[0-9]*/)
	where = substr(where, 1, RLENGTH)
	rest = substr($0, RLENGTH + 2)
}
FILENAME ~ /includes$/ {
	if (match(rest, /<[^>]*>|"[^"]*"/)) {
		name = substr(rest, RSTART, RLENGTH)
		what = kind_of(name, 0)
		if (what != "" && !allowed(path, what))
			complain(where, name, what)
	}
	next
}
rest !~ /^[ \t]*#[ \t]*include/ {
	before = ""
	while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
		name = substr(rest, RSTART, RLENGTH)
		before = before substr(rest, 1, RSTART - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if (before !~ /(\.|->)[ \t]*$/) {
			what = kind_of(name, rest ~ /^[ \t]*\(/)
			if (what != "" && !allowed(path, what))
				complain(where, name, what)
		}
		before = "x"
	}
}
END {
	for (door in doors) {
		count = split(doors[door], list, ",")
		for (i = 1; i <= count; i++)
			if (door !~ /\/$/ && !((door, list[i]) in used))
				print "tests/checks/doors.txt: " door " no longer needs " list[i]
	}
}' "$work/kinds" $checks/doors.txt "$work/includes" "$work/code" >"$work/bad"

sed -n "/^[^#]/s/ .*//p" $checks/doors.txt | while read -r door; do
	[ -e "$door" ] || echo "$checks/doors.txt: there is no $door"
done >>"$work/bad"

sort -u "$work/bad"
[ ! -s "$work/bad" ]
