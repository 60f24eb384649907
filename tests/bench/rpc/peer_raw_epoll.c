/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw echoes on bare epoll, which shows the kernel's share of a call, and over bare rings of shared
 * memory.
 */
#include "echo.h"
#include "meter.h"
#include "peer.h"
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- the raw echo on bare epoll, which never polls */

#define EVENTS_MAX 256

static int open_epoll(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0)
		host_die("no epoll");
	return epoll;
}

static void control(int epoll, int op, struct echo_link *link)
{
	struct epoll_event event = {
		.events = link->is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN,
		.data = { .ptr = link },
	};

	if (epoll_ctl(epoll, op, link->fd, &event) != 0)
		host_die("epoll_ctl failed");
}

static void serve_link(int epoll, const struct epoll_event *event)
{
	struct echo_link *link = event->data.ptr;
	bool was_blocked = link->is_blocked;

	/* An error appears on the next read. */
	if (!echo_turn(link, (event->events & ~(uint32_t)EPOLLOUT) != 0)) {
		if (link->meter != NULL)
			host_die("the server has closed a connection");
		echo_close(link);
	} else if (link->is_blocked != was_blocked) {
		control(epoll, EPOLL_CTL_MOD, link);
	}
}

static void serve(const struct rpc_plan *plan)
{
	struct epoll_event events[EVENTS_MAX];
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = open_epoll();
	uint16_t port;
	int listener = echo_listen(plan, &port);

	/* The listening socket has no link. */
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
		host_die("epoll_ctl failed");
	stage_ready(port);
	do {
		int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			struct echo_link *link = NULL;

			if (events[i].data.ptr != NULL)
				serve_link(epoll, &events[i]);
			else
				link = echo_accept(listener, plan);
			if (link != NULL)
				control(epoll, EPOLL_CTL_ADD, link);
		}
	} while (true);
}

/* Implements rpc_peer.drive; `request` as for echo_connect(). */
void raw_epoll_drive(const struct rpc_plan *plan, struct meter *meter, const uint8_t *request)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll = open_epoll();

	for (uint32_t i = 0; i < plan->connections; i++)
		control(epoll, EPOLL_CTL_ADD, echo_connect(plan, meter, request));
	while (!meter_is_over(meter)) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count && !meter_is_over(meter); i++)
			serve_link(epoll, &events[i]);
	}
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	raw_epoll_drive(plan, meter, NULL);
}

const struct rpc_peer rpc_raw_epoll = {
	.name = "raw-epoll",
	.serve = serve,
	.drive = drive,
};

/*
 * --- the limit of calls over shared memory: frames of fixed size through a bare pair of rings,
 * which both sides look at without a pause. Nothing is parsed, checked or timed. Needs
 * _GNU_SOURCE (memfd_create)
 */

#define RING (1u << 18)
#define FRAME_MAX 65536u
#define BATCH 65536u /* bytes */

struct lane {
	_Alignas(128) _Atomic(uint32_t) put;
	_Alignas(128) _Atomic(uint32_t) taken;
	_Alignas(128) unsigned char bytes[RING];
};

struct memory {
	struct lane requests;
	struct lane replies;
};

/* One end; counts are private copies. */
struct end {
	struct lane *in;
	struct lane *out;
	uint32_t put;
	uint32_t taken;
};

static struct memory *open_memory(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	void *memory;

	if (fd < 0 || ftruncate(fd, sizeof(struct memory)) != 0)
		host_die("no shared memory at %s", path);
	memory = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		host_die("no shared memory");
	(void)close(fd);
	return memory;
}

/* Copies whole frames out, at most those of a batch. Returns the bytes. */
static uint32_t take(struct end *end, unsigned char *bytes, uint32_t frame)
{
	uint32_t len = atomic_load_explicit(&end->in->put, memory_order_acquire) - end->taken;
	uint32_t at = end->taken % RING;
	uint32_t first;

	len = len < BATCH ? len : BATCH;
	len -= len % frame;
	if (len == 0)
		return 0;
	first = len < RING - at ? len : RING - at;
	memcpy(bytes, end->in->bytes + at, first);
	memcpy(bytes + first, end->in->bytes, len - first);
	end->taken += len;
	atomic_store_explicit(&end->in->taken, end->taken, memory_order_release);
	return len;
}

/* Waits for room. */
static void put(struct end *end, const unsigned char *bytes, uint32_t len)
{
	uint32_t at = end->put % RING;
	uint32_t first = len < RING - at ? len : RING - at;

	while (end->put + len - atomic_load_explicit(&end->out->taken, memory_order_acquire) > RING)
		continue;
	memcpy(end->out->bytes + at, bytes, first);
	memcpy(end->out->bytes, bytes + first, len - first);
	end->put += len;
	atomic_store_explicit(&end->out->put, end->put, memory_order_release);
}

static unsigned char frames[2 * BATCH];

static void shm_serve(const struct rpc_plan *plan)
{
	struct memory *memory = open_memory(plan->address, O_CREAT);
	struct end end = { .in = &memory->requests, .out = &memory->replies };

	memset(frames, 'x', sizeof(frames));
	stage_ready(0);
	do {
		uint32_t len = take(&end, frames, plan->request_len);

		if (len > 0)
			put(&end, frames, len / plan->request_len * plan->reply_len);
	} while (true);
}

static void shm_drive(const struct rpc_plan *plan, struct meter *meter)
{
	struct memory *memory = open_memory(plan->address, 0);
	struct end end = { .in = &memory->replies, .out = &memory->requests };
	uint64_t begun_ns = meter->now_ns;

	if (plan->request_len > FRAME_MAX || plan->reply_len > FRAME_MAX ||
	    plan->request_len * plan->outstanding > RING / 2)
		host_die("frames of %u bytes are too long", plan->request_len);
	for (uint32_t i = 0; i < plan->outstanding; i++)
		put(&end, frames, plan->request_len);
	while (!meter_is_over(meter)) {
		uint32_t count = take(&end, frames, plan->reply_len) / plan->reply_len;

		for (uint32_t i = 0; i < count && !meter_is_over(meter); i++) {
			(void)meter_is_new_batch(meter);
			meter_call(meter, begun_ns);
			begun_ns = meter->now_ns;
		}
		if (count > 0)
			put(&end, frames, count * plan->request_len);
	}
}

const struct rpc_peer rpc_raw_shm_spin = {
	.name = "raw-shm-spin",
	.serve = shm_serve,
	.drive = shm_drive,
	.spin_ns = RPC_SPIN_NS,
	.has_shm = true,
	.is_shm_only = true,
	.is_spun_only = true,
};
