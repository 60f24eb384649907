/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real environment: its clocks, random numbers, log and identity, and the table of all its
 * parts. Memory is the C library's.
 */
#define _GNU_SOURCE
#include <spoke/host.h>

#include "core/base/log.h"
#include "core/base/mix.h"
#include "core/host/host.h"
#include "timer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- clocks
 *
 * Reads the clocks of the machine, without a system call where the kernel maps them into the
 * process. All of them exist on every kernel that spoke supports, so a failure is a bug. */

#define NS_PER_S UINT64_C(1000000000)

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time = { 0 };
	int result = clock_gettime(clock, &time);

	SPOKE_ASSERT(result == 0);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

uint64_t spokei_clock_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_MONOTONIC);
}

/* The same clock as of the kernel's last tick, which comes at least every 10 ms. */
static uint64_t coarse_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

/* The boot-time clock; it goes on while the machine sleeps. */
static uint64_t boot_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_BOOTTIME);
}

/* The wall clock, since 1970. */
static uint64_t wall_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_REALTIME);
}

/* --- forks
 *
 * Counts forks by a handler that runs in each child. */

unsigned spokei_forks = 1;

static void count_fork(void)
{
	spokei_forks++;
}

static void watch_forks(void)
{
	/* Fails only without memory; then a child is taken for its parent. */
	(void)pthread_atfork(NULL, NULL, count_fork);
}

/* --- random bytes
 *
 * Random bytes of the system, fetched in advance, so that taking some is a copy. Every thread has
 * its own store, and a forked child does not repeat its parent's bytes (a child of a bare clone()
 * or vfork() is not noticed). The context is not used; any thread.
 *
 * Random bytes: each thread has a store that getrandom() fills when it is used up, and that a fork
 * empties. If the system refuses (an old kernel, a sandbox), a small generator seeded by the clock
 * takes over. Peers may guess its numbers, and with them the keys of hash tables, nonces and
 * tokens. */

enum {
	STORE_SIZE = 512
};

struct store {
	unsigned forks; /* forks counted when it was filled; 0: never filled */
	size_t left;
	unsigned char bytes[STORE_SIZE];
};

static _Thread_local struct store store;

static void fill_without_system(struct store *full)
{
	uint64_t state = spokei_clock_now(NULL) ^ (uint64_t)(uintptr_t)full ^
			 ((uint64_t)getpid() << 32);

	for (size_t at = 0; at < STORE_SIZE; at += sizeof(uint64_t)) {
		uint64_t word = spokei_mix_next(&state);

		memcpy(full->bytes + at, &word, sizeof(word));
	}
}

static void fill_store(struct store *full)
{
	ssize_t got;

	full->forks = spokei_forks;
	do
		got = getrandom(full->bytes, STORE_SIZE, 0);
	while (got < 0 && errno == EINTR);
	if (got != STORE_SIZE)
		fill_without_system(full);
	full->left = STORE_SIZE;
}

static void take_random(void *ctx, void *bytes, size_t len)
{
	struct store *mine = &store;
	unsigned char *to = bytes;

	(void)ctx;
	while (len > 0) {
		size_t part;

		if (mine->left == 0 || mine->forks != spokei_forks)
			fill_store(mine);
		part = len < mine->left ? len : mine->left;
		memcpy(to, mine->bytes + STORE_SIZE - mine->left, part);
		mine->left -= part;
		to += part;
		len -= part;
	}
}

/* --- the identity of the host
 *
 * The identity of this host and of this process's view of its files: a number made of the kernel's
 * boot id, the mount namespace and the root folder. Two processes with equal numbers see the same
 * file at the same absolute path. It is read each time, because a process can enter another
 * namespace or root. */

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define MOUNTS "/proc/self/ns/mnt"
#define BOOT_ID_LEN 36u /* letters of a UUID */

/* Reads the boot id, which differs on each machine and after each boot. */
static int read_boot_id(char id[BOOT_ID_LEN])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int error;

	if (fd < 0)
		return -errno;
	got = read(fd, id, BOOT_ID_LEN);
	error = got < 0 ? -errno : 0;
	(void)close(fd);
	if (error)
		return error;
	return got == (ssize_t)BOOT_ID_LEN ? 0 : -EIO;
}

/* Mixes a word into a hash, so that each bit of either changes about half of the result. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash ^= word + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
	return spokei_mix(hash);
}

static uint64_t mix_text(uint64_t hash, const char *text, size_t len)
{
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		size_t left = len - at;
		uint64_t word = 0;

		memcpy(&word, text + at, left < sizeof(word) ? left : sizeof(word));
		hash = mix(hash, word);
	}
	return hash;
}

/* Implements env->host_id. */
static int host_id(void *ctx, uint64_t *ret_id)
{
	char boot_id[BOOT_ID_LEN];
	struct stat mounts;
	struct stat root;
	int error = read_boot_id(boot_id);
	uint64_t id;

	(void)ctx;
	if (error)
		return error;
	if (stat(MOUNTS, &mounts) != 0 || stat("/", &root) != 0)
		return -errno;
	id = mix_text(0, boot_id, sizeof(boot_id));
	id = mix(mix(id, mounts.st_dev), mounts.st_ino);
	id = mix(mix(id, root.st_dev), root.st_ino);
	*ret_id = id ? id : 1;
	return 0;
}

/* --- the log
 *
 * The log of programs that have none: lines on the standard error output. The reader may be a pipe
 * that is full or closed, which must neither stop nor end the program. */

#define LINE_MAX_LEN                                                                               \
	(SPOKEI_LOG_TEXT_MAX + 128u) /* with time, level and the number of dropped lines */

/* Returns whether a line can be written without waiting for the reader. */
static bool is_writable(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLOUT | POLLERR | POLLNVAL)) == POLLOUT;
}

/* Writes without raising SIGPIPE: the signal of this write is taken back before it is delivered,
 * unless one was pending before. */
static void write_quietly(const char *line, size_t len)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pending;
	sigset_t before;
	sigset_t pipe;

	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	if (sigpending(&pending) || pthread_sigmask(SIG_BLOCK, &pipe, &before))
		return;
	if (write(STDERR_FILENO, line, len) < 0 && errno == EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Prints the time as ISO 8601, UTC, with milliseconds. */
static void print_time(char *text, size_t size)
{
	uint64_t wall_ns = wall_now(NULL);
	time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
	struct tm utc;
	size_t len = 0;

	if (gmtime_r(&seconds, &utc))
		len = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text + len, size - len, ".%03uZ", (unsigned)(wall_ns / 1000000 % 1000));
}

/* Writes a line with time and level by one system call. Never blocks and never raises SIGPIPE: a
 * line that the reader does not take at once is dropped. */
static void print_line(void *ctx, const struct spoke_log_line *line)
{
	int saved = errno;
	char text[LINE_MAX_LEN];
	char dropped[48] = "";
	char at[48];
	int len;

	(void)ctx;
	print_time(at, sizeof(at));
	if (line->suppressed)
		(void)snprintf(dropped, sizeof(dropped), " (%llu similar lines dropped)",
			       (unsigned long long)line->suppressed);
	len = snprintf(text, sizeof(text), "%s %s %s%s\n", at, spokei_log_level_name(line->level),
		       line->text, dropped);
	if (len > 0 && (size_t)len < sizeof(text) && is_writable())
		write_quietly(text, (size_t)len);
	errno = saved;
}

/* Returns a variable of the process's environment. */
static const char *variable(void *ctx, const char *name)
{
	(void)ctx;
	/* Safe unless another thread changes the environment meanwhile. */
	return getenv(name); /* NOLINT(concurrency-mt-unsafe) */
}

/* --- the table */

static void *resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	(void)ctx;
	(void)old_len;
	if (len == 0) {
		free(memory);
		return NULL;
	}
	return realloc(memory, len);
}

static struct spoke_env host_env;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void assemble(void)
{
	watch_forks();
	host_env = (struct spoke_env){
		.now = spokei_clock_now,
		.coarse = coarse_now,
		.boot_now = boot_now,
		.wall = wall_now,
		.dice = take_random,
		.resize = resize,
		.net = &spokei_host_net,
		.loop = &spokei_host_loop,
		.files = &spokei_host_files,
		.threads = &spokei_host_threads,
		.forks = &spokei_forks,
		.signals = &spokei_host_signals,
		.print = print_line,
		.variable = variable,
		.manager = &spokei_host_manager,
		.host_id = host_id,
	};
}

const struct spoke_env *spoke_host_env(void)
{
	(void)pthread_once(&once, assemble);
	return &host_env;
}
