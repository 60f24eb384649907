/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/signals.h"

#include "core/engine/engine.h"

#include <errno.h>
#include <signal.h>

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
	int error;

	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
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

/* The first one drains, those that follow end what is left of it. */
static void ender_came(struct spoke_signal *signal)
{
	struct spoke_engine *engine = signal->engine;
	uint64_t timeout_ns = engine->ender_came ? 0 : engine->enders_ns;

	engine->ender_came = true;
	spokei_event(engine, SPOKE_OK, "a signal asks the engine to end%s",
		     timeout_ns == 0 ? " at once" : "");
	if (spoke_engine_drain(engine, timeout_ns) != SPOKE_OK)
		spoke_engine_stop(engine);
}

int spoke_engine_drain_on_signals(struct spoke_engine *engine, uint64_t timeout_ns)
{
	static const int numbers[SPOKEI_ENGINE_ENDERS] = { SIGTERM, SIGINT };
	bool again = engine->enders[0].engine != NULL;
	int error = SPOKE_OK;

	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	for (int i = 0; !again && !error && i < SPOKEI_ENGINE_ENDERS; i++)
		error = spoke_signal_watch(engine, &engine->enders[i], numbers[i], ender_came);
	if (error) {
		for (int i = 0; i < SPOKEI_ENGINE_ENDERS; i++)
			(void)spoke_signal_cancel(&engine->enders[i]);
		return error;
	}
	engine->enders_ns = timeout_ns;
	return SPOKE_OK;
}
