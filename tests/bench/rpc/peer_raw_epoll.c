/* SPDX-License-Identifier: Apache-2.0 */
/* The raw echo on bare epoll. It shows that the echo on libev is as fast as such an echo can be. */
#include "peer_raw_epoll.h"

#include "echo.h"
#include "stage.h"

#include <sys/epoll.h>

#define EVENTS_MAX 256
#define EARLY 4096u /* bytes; the best of 128 to 4,096 for 64 calls and for 256 */

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

/* Polls without waiting for as long as the plan specifies before it sleeps. */
static int wait_for(int epoll, struct epoll_event *events, const struct rpc_plan *plan)
{
	uint64_t until_ns = 0;

	while (plan->spin_ns > 0) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, 0);
		uint64_t now_ns;

		if (count != 0)
			return count;
		now_ns = host_now_ns();
		if (until_ns == 0)
			until_ns = now_ns + plan->spin_ns;
		else if (now_ns >= until_ns)
			break;
	}
	return epoll_wait(epoll, events, EVENTS_MAX, -1);
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
		int count = wait_for(epoll, events, plan);

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

void raw_epoll_drive(const struct rpc_plan *plan, struct meter *meter, const uint8_t *request)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll = open_epoll();

	for (uint32_t i = 0; i < plan->connections; i++)
		control(epoll, EPOLL_CTL_ADD, echo_connect(plan, meter, request));
	while (!meter_is_over(meter)) {
		int count = wait_for(epoll, events, plan);

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
	.is_limit = true,
};

const struct rpc_peer rpc_raw_epoll_spin = {
	.name = "raw-epoll-spin",
	.serve = serve,
	.drive = drive,
	.spin_ns = RPC_SPIN_NS,
	.is_limit = true,
	.is_spun_only = true,
};

/* The server begins while the client still reads, and the other way round. */
const struct rpc_peer rpc_raw_epoll_early = {
	.name = "raw-epoll-early",
	.serve = serve,
	.drive = drive,
	.is_limit = true,
	.early = EARLY,
};
