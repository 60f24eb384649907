/* SPDX-License-Identifier: Apache-2.0 */
/* Ends ZooKeeper sessions without blocking the engine. */
#include "cluster/registry/zookeeper/farewell.h"

#include "core/engine/engine.h"

#include <unistd.h>

/* Runs on a pool thread. */
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

/* Replaces the descriptor atomically, so that no other thread's can get its number; writes to
 * the new one fail. A forked child thus leaves its parent's connection alone. */
void spokei_zoo_unplug(const struct spoke_env *env, int fd)
{
	int spare = -1;

	if (env->net->spare(env->ctx, &spare))
		return; /* the library waits for the server then */
	(void)dup2(spare, fd);
	env->net->close(env->ctx, spare);
}

/* Without a thread the library must not reach the server, because it would wait for an answer.
 * It writes only while it is connected, when the descriptor is the last known one. */
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

	/* In a forked child the state of the parent's thread is unknown: the memory is leaked. */
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
