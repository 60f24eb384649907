/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/registry/zookeeper/farewell.h"

#include "core/engine/engine.h"

#include <unistd.h>

/* A thread of the pool. */
static void say(struct spoke_work *work)
{
	struct spokei_zoo_farewell *farewell = spoke_container_of(work, struct spokei_zoo_farewell,
								  work);

	(void)zookeeper_close(farewell->zh);
}

static void bury(struct spokei_task *task)
{
	struct spokei_zoo_farewell *farewell = spoke_container_of(task, struct spokei_zoo_farewell,
								  bury);

	farewell->said(farewell);
}

/* Another descriptor takes its place at once, so that no other thread's can get there; what is
 * written to it is no socket. A forked child so leaves its parent's connection alone. */
void spokei_zoo_unplug(const struct spoke_env *env, int fd)
{
	int spare = -1;

	if (env->net->spare(env->ctx, &spare))
		return; /* the library waits for the server then */
	(void)dup2(spare, fd);
	env->net->close(env->ctx, spare);
}

/* Without a thread: the library shall not reach the server, for whose answer it would wait. Only
 * while it is connected does it write, and is the descriptor the one that was seen last. */
static void cut(struct spokei_zoo_farewell *farewell)
{
	if (farewell->fd >= 0 && zoo_state(farewell->zh) == ZOO_CONNECTED_STATE)
		spokei_zoo_unplug(farewell->engine->env, farewell->fd);
	(void)zookeeper_close(farewell->zh);
	spokei_engine_dead(farewell->engine, &farewell->bury);
}

static void close_done(struct spoke_work *work)
{
	struct spokei_zoo_farewell *farewell = spoke_container_of(work, struct spokei_zoo_farewell,
								  work);

	/* In a forked child nobody knows how far the parent's thread was: what is left stays. */
	if (work->status && !spokei_engine_forked(farewell->engine))
		cut(farewell);
	else
		spokei_engine_dead(farewell->engine, &farewell->bury);
}

void spokei_zoo_farewell_say(struct spokei_zoo_farewell *farewell, struct spoke_engine *engine,
			     zhandle_t *zh, int fd,
			     void (*said)(struct spokei_zoo_farewell *farewell))
{
	*farewell = (struct spokei_zoo_farewell){
		.engine = engine,
		.zh = zh,
		.fd = fd,
		.work = { .run = say, .done = close_done },
		.bury = { .run = bury },
		.said = said,
	};
	if (engine->env->loop->offload(engine->loop, &farewell->work))
		cut(farewell);
}
