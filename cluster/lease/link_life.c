/* SPDX-License-Identifier: Apache-2.0 */
/* Connects: resolves the name, tries one address after the other, waits and begins again. */
#include "cluster/lease/link.h"

#include <errno.h>
#include <inttypes.h>

#define KEEPALIVE_NS UINT64_C(60000000000)
#define MS UINT64_C(1000000)

/* --- one attempt */

static void try_next(struct spokei_redis_link *link, int status);

static void open_stream(struct spokei_redis_link *link)
{
	int status = link->stream.kind->open(&link->stream);

	if (status == SPOKEI_STREAM_MORE || status == -EAGAIN || status == -EINTR) {
		spokei_stream_watch(&link->stream, link->stream.kind->wants(&link->stream, 0));
		return;
	}
	if (status < 0) {
		try_next(link, status);
		return;
	}
	link->state = SPOKEI_REDIS_GREETING;
	link->answered = false;
	link->heard_ns = link->engine->begin_ns;
	link->stream.watch.ready = spokei_redis_link_ready_io;
	(void)link->stream.kind->guard(&link->stream, link->connect_ns, KEEPALIVE_NS);
	spokei_redis_link_timer(link, link->connect_ns);
	spokei_redis_link_watch(link);
	link->up->opened(link);
}

static void opening_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_redis_link *link = spoke_container_of(ready, struct spokei_redis_link,
							    stream.watch);
	const struct spoke_env *env = link->engine->env;
	int status;

	(void)io;
	if (link->state == SPOKEI_REDIS_CONNECTING) {
		status = env->net->finish(env->ctx, link->stream.watch.fd);
		if (status == -EINPROGRESS || status == -EAGAIN || status == -EINTR)
			return;
		if (status < 0) {
			try_next(link, status);
			return;
		}
		link->state = SPOKEI_REDIS_OPENING;
	}
	open_stream(link);
}

/* Tries the next address. `status` is why the last one failed. */
static void try_next(struct spokei_redis_link *link, int status)
{
	const struct spoke_env *env = link->engine->env;
	const struct spoke_address *to;

	spokei_stream_close(&link->stream);
	while ((to = spokei_resolve_next(&link->resolve)) != NULL) {
		int fd = -1;

		spokei_count(link->engine, SPOKE_STAT_CONNECTS);
		status = env->net->connect(env->ctx, to, &fd);
		if (status != 0 && status != -EINPROGRESS)
			continue;
		link->state = SPOKEI_REDIS_CONNECTING;
		spokei_stream_init(&link->stream, link->engine, &spokei_stream_socket, fd,
				   opening_ready);
		spokei_stream_watch(&link->stream, SPOKE_IO_WRITE);
		spokei_redis_link_timer(link, link->connect_ns);
		return;
	}
	spokei_count(link->engine, SPOKE_STAT_CONNECTS_FAILED);
	spokei_redis_link_broken(link, status);
}

static void resolved(struct spokei_resolve *resolve, int status)
{
	struct spokei_redis_link *link = spoke_container_of(resolve, struct spokei_redis_link,
							    resolve);

	if (link->left) {
		link->idle(link);
	} else if (link->state == SPOKEI_REDIS_WAITING) {
		spokei_redis_link_timer(link, 0); /* it was stopped and started meanwhile */
	} else if (link->state != SPOKEI_REDIS_RESOLVING) {
		return;
	} else if (status) {
		spokei_count(link->engine, SPOKE_STAT_RESOLVES_FAILED);
		spokei_redis_link_broken(link, status);
	} else {
		try_next(link, 0);
	}
}

static void begin_round(struct spokei_redis_link *link)
{
	int status;

	if (link->resolve.resolving) {
		spokei_redis_link_timer(link, SPOKEI_REDIS_REST_NS);
		return;
	}
	link->place = link->goal;
	link->state = SPOKEI_REDIS_RESOLVING;
	spokei_redis_link_timer(link, SPOKEI_REDIS_REST_NS);
	status = spokei_resolve_begin(&link->resolve);
	if (status == 0)
		try_next(link, 0);
	else if (status != SPOKEI_RESOLVE_MORE)
		spokei_redis_link_broken(link, status);
}

/* --- tasks and times */

static void report(struct spokei_task *task)
{
	struct spokei_redis_link *link = spoke_container_of(task, struct spokei_redis_link, news);

	if (link->state == SPOKEI_REDIS_WAITING) {
		link->up->ended(link);
	} else if (link->unwritable) {
		uint32_t round = link->round;
		int status = link->error;

		spokei_redis_link_read(link);
		if (link->round == round)
			spokei_redis_link_broken(link, status);
	}
}

static void link_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_redis_link *link = spoke_container_of(timer, struct spokei_redis_link, timer);

	(void)arg;
	spokei_redis_link_timer(link, SPOKEI_REDIS_REST_NS);
	switch (link->state) {
	case SPOKEI_REDIS_WAITING:
		begin_round(link);
		break;
	case SPOKEI_REDIS_CONNECTING:
	case SPOKEI_REDIS_OPENING:
		try_next(link, -ETIMEDOUT);
		break;
	case SPOKEI_REDIS_GREETING:
		spokei_redis_link_end(link, SPOKE_ESILENT,
				      "the server did not answer the first commands in %" PRIu64
				      " ms",
				      link->connect_ns / MS);
		break;
	case SPOKEI_REDIS_READY:
		link->up->due(link);
		break;
	case SPOKEI_REDIS_STOPPED:
	case SPOKEI_REDIS_RESOLVING:
		break;
	}
}

void spokei_redis_link_ready(struct spokei_redis_link *link)
{
	SPOKE_ASSERT(link->state == SPOKEI_REDIS_GREETING);
	link->state = SPOKEI_REDIS_READY;
	link->ready_ns = link->engine->begin_ns;
	spokei_redis_link_timer(link, SPOKEI_REDIS_REST_NS);
}

/* --- life */

int spokei_redis_link_init(struct spokei_redis_link *link, struct spoke_engine *engine,
			   const struct spokei_redis_link_up *up, uint64_t connect_ns)
{
	int error;

	*link = (struct spokei_redis_link){
		.engine = engine,
		.up = up,
		.connect_ns = connect_ns,
		.write = { .run = spokei_redis_link_write_task },
		.news = { .run = report },
	};
	spokei_stream_init(&link->stream, engine, &spokei_stream_socket, -1,
			   spokei_redis_link_ready_io);
	spokei_resolve_init(&link->resolve, engine, &link->place, resolved);
	spokei_buffer_init(&link->in, engine->env, (size_t)2 * SPOKEI_RESP_BYTES);
	spokei_buffer_init(&link->out, engine->env, SPOKEI_REDIS_OUT_MAX);
	error = spokei_engine_class(engine, "store", link_due, &link->timer_class);
	return error ? error
		     : spokei_redis_link_arm(link, spokei_later(engine->env->now(engine->env->ctx),
								SPOKEI_REDIS_REST_NS));
}

void spokei_redis_link_fini(struct spokei_redis_link *link)
{
	spokei_buffer_fini(&link->in);
	spokei_buffer_fini(&link->out);
}

int spokei_redis_link_aim(struct spokei_redis_link *link, const char *host, uint16_t port,
			  const char *path)
{
	SPOKE_ASSERT(link->state == SPOKEI_REDIS_STOPPED);
	link->goal = (struct spokei_place){ .fixed = false };
	return spokei_place_set(&link->goal, link->engine->env, host, port, path);
}

void spokei_redis_link_start(struct spokei_redis_link *link, uint64_t pause_ns)
{
	SPOKE_ASSERT(link->state == SPOKEI_REDIS_STOPPED);
	link->state = SPOKEI_REDIS_WAITING;
	spokei_redis_link_timer(link, pause_ns);
}

void spokei_redis_link_leave(struct spokei_redis_link *link)
{
	spokei_redis_link_stop(link);
	link->left = true;
	(void)spoke_wheel_cancel(link->engine->wheel, &link->timer);
}

bool spokei_redis_link_busy(const struct spokei_redis_link *link)
{
	return link->resolve.resolving;
}
