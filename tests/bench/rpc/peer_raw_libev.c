/* SPDX-License-Identifier: Apache-2.0 */
/* The raw echo in a loop of libev: the limit for spoke, which uses the same loop. */
#include "echo.h"
#include "stage.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

struct watch {
	struct ev_io io;
	int interest; /* the events that io waits for */
	struct echo_link *link;
};

static const struct rpc_plan *serve_plan;

static struct ev_loop *open_loop(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

	if (loop == NULL)
		host_die("ev_loop_new failed");
	return loop;
}

static void adapt(struct ev_loop *loop, struct watch *watch)
{
	int interest = watch->link->is_blocked ? EV_READ | EV_WRITE : EV_READ;

	if (interest == watch->interest)
		return;
	ev_io_stop(loop, &watch->io);
	ev_io_set(&watch->io, watch->link->fd, interest);
	ev_io_start(loop, &watch->io);
	watch->interest = interest;
}

static void link_ready(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct watch *watch = io->data;
	struct echo_link *link = watch->link;

	if (!echo_turn(link, (events & EV_READ) != 0)) {
		if (link->meter != NULL)
			host_die("the server has closed a connection");
		ev_io_stop(loop, io);
		echo_close(link);
		free(watch);
		return;
	}
	adapt(loop, watch);
	if (link->meter != NULL && meter_is_over(link->meter))
		ev_break(loop, EVBREAK_ALL);
}

static void watch_link(struct ev_loop *loop, struct echo_link *link)
{
	struct watch *watch = host_memory(1, sizeof(*watch));

	watch->link = link;
	ev_io_init(&watch->io, link_ready, link->fd, EV_NONE);
	watch->io.data = watch;
	adapt(loop, watch);
}

static void listener_ready(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct echo_link *link = echo_accept(io->fd, serve_plan);

	(void)events;
	if (link != NULL)
		watch_link(loop, link);
}

static void serve(const struct rpc_plan *plan)
{
	struct ev_loop *loop = open_loop();
	struct ev_io listener;
	uint16_t port;
	int fd = echo_listen(plan, &port);

	serve_plan = plan;
	ev_io_init(&listener, listener_ready, fd, EV_READ);
	ev_io_start(loop, &listener);
	stage_ready(port);
	(void)ev_run(loop, 0);
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	struct ev_loop *loop = open_loop();

	for (uint32_t i = 0; i < plan->connections; i++)
		watch_link(loop, echo_connect(plan, meter, NULL));
	meter_restart(meter);
	(void)ev_run(loop, 0);
}

static const char *version(void)
{
	static char text[32];

	(void)snprintf(text, sizeof(text), "libev %d.%d", ev_version_major(), ev_version_minor());
	return text;
}

const struct rpc_peer rpc_raw_libev = {
	.name = "raw-libev",
	.serve = serve,
	.drive = drive,
	.version = version,
	.is_limit = true,
};
