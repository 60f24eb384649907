/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drains an engine: its members finish work in progress; members that are left at the end of the
 * drain timeout are closed. Signals can start a drain.
 */
#include "core/engine/notify.h"
#include "core/engine/parts.h"
#include "core/engine/roll.h"

#include <signal.h>

/* How long peers may go on to send requests in a drain without a limit. */
#define SERVES_MAX_NS UINT64_C(60000000000)

/* The drain timeout is over: the remaining members are closed. */
static void drain_ended(struct spoke_alarm *alarm)
{
	alarm->engine->closing = true;
	spokei_roll_close_all(alarm->engine);
}

uint64_t spokei_drain_serves_until(const struct spoke_engine *engine)
{
	return ((const struct spokei_engine_parts *)engine)->drain_serves_ns;
}

int spoke_engine_drain(struct spoke_engine *engine, uint64_t timeout_ns)
{
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (timeout_ns == UINT64_MAX)
		(void)spoke_alarm_cancel(&spokei_engine_parts(engine)->drain_end);
	else
		error = spoke_alarm_after(engine, &spokei_engine_parts(engine)->drain_end,
					  timeout_ns, drain_ended);
	if (error)
		return error;
	spokei_engine_parts(engine)->drain_serves_ns =
		spokei_later(engine->env->now(engine->env->ctx),
			     timeout_ns == UINT64_MAX ? SERVES_MAX_NS : timeout_ns);
	engine->ending = true;
	engine->drained = false;
	spokei_notify_stopping(engine);
	spokei_engine_soon(engine, &engine->drain);
	return SPOKE_OK;
}

/* The first signal drains the engine, the next one ends the drain. */
static void ender_came(struct spoke_signal *signal)
{
	struct spoke_engine *engine = signal->engine;
	uint64_t timeout_ns = spokei_engine_parts(engine)->ender_came
				      ? 0
				      : spokei_engine_parts(engine)->enders_ns;

	spokei_engine_parts(engine)->ender_came = true;
	spokei_event(engine, SPOKE_OK, "a signal asks the engine to end%s",
		     timeout_ns == 0 ? " at once" : "");
	if (spoke_engine_drain(engine, timeout_ns) != SPOKE_OK)
		spoke_engine_stop(engine);
}

int spoke_engine_drain_on_signals(struct spoke_engine *engine, uint64_t timeout_ns)
{
	static const int numbers[SPOKEI_ENGINE_ENDERS] = { SIGTERM, SIGINT };
	int error = spokei_engine_check(engine);
	bool again;

	if (error)
		return error;
	again = spokei_engine_parts(engine)->enders[0].engine != NULL;
	for (int i = 0; !again && !error && i < SPOKEI_ENGINE_ENDERS; i++)
		error = spoke_signal_watch(engine, &spokei_engine_parts(engine)->enders[i],
					   numbers[i], ender_came);
	if (error) {
		for (int i = 0; i < SPOKEI_ENGINE_ENDERS; i++)
			(void)spoke_signal_cancel(&spokei_engine_parts(engine)->enders[i]);
		return error;
	}
	spokei_engine_parts(engine)->enders_ns = timeout_ns;
	return SPOKE_OK;
}
