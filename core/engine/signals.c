/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that an engine watches. */
#include "core/engine/signals.h"

#include "core/engine/engine.h"

#include <errno.h>

void spokei_signals_cancel_all(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->signals))
		(void)spoke_signal_cancel(spoke_container_of(spokei_list_first(&engine->signals),
							     struct spoke_signal, node));
}

static void signal_ready(struct spoke_watch *watch, unsigned io)
{
	struct spoke_signal *signal = spoke_container_of(watch, struct spoke_signal, watch);
	const struct spoke_env *env = signal->engine->env;

	(void)io;
	if (env->signals->take(env->ctx, watch->fd))
		signal->came(signal);
}

static int fold_errno(int error)
{
	switch (error) {
	case -EINVAL:
		return SPOKE_EINVAL;
	case -ENOMEM:
		return SPOKE_ENOMEM;
	default:
		return SPOKE_ESYSTEM;
	}
}

int spoke_signal_watch(struct spoke_engine *engine, struct spoke_signal *signal, int number,
		       void (*came)(struct spoke_signal *signal))
{
	const struct spoke_env *env = engine->env;
	int fd;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (env->signals == NULL)
		return SPOKE_EUNSUPPORTED;
	if (signal->engine)
		return SPOKE_EEXIST;
	error = env->signals->open(env->ctx, number, &fd);
	if (error)
		return fold_errno(error);
	*signal = (struct spoke_signal){
		.watch = { .ready = signal_ready, .fd = fd },
		.engine = engine,
		.came = came,
	};
	spokei_list_append(&engine->signals, &signal->node);
	env->loop->watch(engine->loop, &signal->watch, SPOKE_IO_READ);
	return SPOKE_OK;
}

bool spoke_signal_cancel(struct spoke_signal *signal)
{
	struct spoke_engine *engine = signal->engine;
	const struct spoke_env *env;

	if (engine == NULL)
		return false;
	env = engine->env;
	env->loop->watch(engine->loop, &signal->watch, 0);
	env->signals->close(env->ctx, signal->watch.fd);
	spokei_list_remove(&signal->node);
	signal->engine = NULL;
	return true;
}
