/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/registry/zookeeper_farewell.h"

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

/*
 * Without a thread: the library shall not reach the server, for whose answer it would wait. Another
 * descriptor takes the place of its own at once, so that no other thread's can get there; what it
 * writes to is no socket. A forked child so leaves its parent's connection alone. Only while it is
 * connected is the descriptor the one that was seen last, and does the library write.
 */
static void cut(struct spokei_zoo_farewell *farewell)
{
	const struct spoke_env *env = farewell->engine->env;
	int spare = -1;

	if (farewell->fd >= 0 && zoo_state(farewell->zh) == ZOO_CONNECTED_STATE &&
	    env->net->spare(env->ctx, &spare) == 0) {
		(void)dup2(spare, farewell->fd);
		env->net->close(env->ctx, spare);
	}
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
