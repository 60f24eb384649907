/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU affinity, clocks, memory, and counted system calls; see host.h. Needs _GNU_SOURCE (CPU sets,
 * syscall).
 */
#include "host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define KERNEL_SIGSET_BYTES 8

/* Returns the kernel's id of the CPU clock of a process. */
#define CPU_CLOCK(pid) ((int)(~(unsigned)(pid) << 3 | 2))

/* Overrides the C library's function, for shared libraries as well. */
#define EXPORTED __attribute__((visibility("default")))

static struct host_calls own_calls;

struct host_calls *host_calls = &own_calls;

const char *host_congestion;

static bool set_congestion(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

EXPORTED int socket(int domain, int type, int protocol)
{
	int fd = (int)syscall(SYS_socket, domain, type, protocol);
	bool is_tcp = (domain == AF_INET || domain == AF_INET6) &&
		      (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;

	if (fd >= 0 && is_tcp && host_congestion != NULL && !set_congestion(fd, host_congestion))
		host_die("this process may not use the congestion control %s", host_congestion);
	return fd;
}

bool host_find_congestion(const char *wanted, char *ret_name, size_t size)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = (socklen_t)size - 1;
	bool good = fd >= 0 && (wanted == NULL || set_congestion(fd, wanted)) &&
		    getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, ret_name, &len) == 0;

	ret_name[good ? len : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return good;
}

static ssize_t count_read(long got)
{
	host_count(&host_calls->reads, 1);
	host_count(&host_calls->bytes_read, got > 0 ? (uint64_t)got : 0);
	return got;
}

static ssize_t count_write(long put)
{
	host_count(&host_calls->writes, 1);
	host_count(&host_calls->bytes_written, put > 0 ? (uint64_t)put : 0);
	return put;
}

EXPORTED ssize_t read(int fd, void *data, size_t len)
{
	return count_read(syscall(SYS_read, fd, data, len));
}

EXPORTED ssize_t readv(int fd, const struct iovec *parts, int count)
{
	return count_read(syscall(SYS_readv, fd, parts, count));
}

EXPORTED ssize_t recv(int fd, void *data, size_t len, int flags)
{
	return count_read(syscall(SYS_recvfrom, fd, data, len, flags, NULL, NULL));
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return count_read(syscall(SYS_recvmsg, fd, message, flags));
}

EXPORTED ssize_t write(int fd, const void *data, size_t len)
{
	return count_write(syscall(SYS_write, fd, data, len));
}

EXPORTED ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return count_write(syscall(SYS_writev, fd, parts, count));
}

EXPORTED ssize_t send(int fd, const void *data, size_t len, int flags)
{
	return count_write(syscall(SYS_sendto, fd, data, len, flags, NULL, 0));
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return count_write(syscall(SYS_sendmsg, fd, message, flags));
}

EXPORTED int eventfd_read(int fd, eventfd_t *ret_value)
{
	return read(fd, ret_value, sizeof(*ret_value)) == sizeof(*ret_value) ? 0 : -1;
}

EXPORTED int eventfd_write(int fd, eventfd_t value)
{
	return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

EXPORTED int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	/* Not every processor has a call for milliseconds. */
	struct timespec limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	host_count(&host_calls->waits, 1);
	return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &limit, NULL, 0);
}

EXPORTED int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout_ms,
			 const sigset_t *mask)
{
	host_count(&host_calls->waits, 1);
	return (int)syscall(SYS_epoll_pwait, epoll, events, max, timeout_ms, mask,
			    KERNEL_SIGSET_BYTES);
}

EXPORTED int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_pwait(epoll, events, max, timeout_ms, NULL);
}

EXPORTED int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	host_count(&host_calls->others, 1);
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

EXPORTED int timerfd_settime(int fd, int flags, const struct itimerspec *time,
			     struct itimerspec *ret_old)
{
	host_count(&host_calls->others, 1);
	return (int)syscall(SYS_timerfd_settime, fd, flags, time, ret_old);
}

struct host_calls host_peek(const struct host_calls *calls)
{
	return (struct host_calls){
		.reads = __atomic_load_n(&calls->reads, __ATOMIC_RELAXED),
		.writes = __atomic_load_n(&calls->writes, __ATOMIC_RELAXED),
		.waits = __atomic_load_n(&calls->waits, __ATOMIC_RELAXED),
		.others = __atomic_load_n(&calls->others, __ATOMIC_RELAXED),
		.bytes_read = __atomic_load_n(&calls->bytes_read, __ATOMIC_RELAXED),
		.bytes_written = __atomic_load_n(&calls->bytes_written, __ATOMIC_RELAXED),
	};
}

/* Returns the time of a clock in ns. */
static uint64_t host_ns(int clock)
{
	struct timespec time = { 0 };

	if (clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

uint64_t host_now_ns(void)
{
	return host_ns(CLOCK_MONOTONIC);
}

uint64_t host_cpu_ns(int pid)
{
	return host_ns(CPU_CLOCK(pid));
}

void host_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		host_die("cannot bind to CPU %d", cpu);
}

void *host_memory(uint64_t count, uint64_t size)
{
	size_t len = (size_t)(count * size + 63) / 64 * 64;
	void *memory = aligned_alloc(64, len);

	if (memory == NULL) {
		host_die("no memory for %llu times %llu bytes", (unsigned long long)count,
			 (unsigned long long)size);
	}
	memset(memory, 0, len);
	return memory;
}

void host_die(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)fprintf(stderr, "bench: %s\n", text);
	exit(1);
}
