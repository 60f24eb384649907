/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager the state of an engine, and that it is alive. */
#include "core/engine/notify.h"

#include "core/engine/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGAIN_NS UINT64_C(100000000)
#define US UINT64_C(1000) /* ns */
#define MESSAGE (SPOKE_NOTIFY_STATUS_MAX + 128u)

static int send_text(struct spoke_engine *engine, const char *text)
{
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;
	const struct spoke_env *env = engine->env;
	int error = env->manager->notify(env->ctx, text);

	if (error == 0 || error == -EAGAIN || error == -ENOENT || notify->refused)
		return error;
	notify->refused = true;
	spokei_event(engine, SPOKE_ESYSTEM,
		     "the service manager at NOTIFY_SOCKET cannot be notified: error %d", -error);
	return error;
}

/* Sends the present state. */
static void send_state(struct spoke_engine *engine)
{
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;
	const struct spoke_env *env = engine->env;
	const char *status = notify->status;
	char text[MESSAGE];

	switch (notify->state) {
	case SPOKEI_NOTIFY_RELOADING:
		(void)snprintf(text, sizeof(text),
			       "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reads its settings",
			       env->now(env->ctx) / US);
		break;
	case SPOKEI_NOTIFY_STOPPING:
		(void)snprintf(text, sizeof(text),
			       "STOPPING=1\nSTATUS=finishes running requests and calls");
		break;
	case SPOKEI_NOTIFY_OFF:
	case SPOKEI_NOTIFY_READY:
	default:
		(void)snprintf(text, sizeof(text), "READY=1%s%s%s", *status ? "\nSTATUS=" : "",
			       status, notify->stale ? " (errors in the settings file)" : "");
		break;
	}
	notify->unsent = send_text(engine, text) == -EAGAIN;
}

static void notify_due(struct spoke_alarm *alarm);

/* Arms the alarm for the next due message. */
static int arm(struct spoke_engine *engine)
{
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;
	uint64_t now_ns = engine->env->now(engine->env->ctx);
	uint64_t wait_ns = UINT64_MAX;

	if (notify->watchdog_ns > 0)
		wait_ns = notify->alive_ns > now_ns ? notify->alive_ns - now_ns : 0;
	if (notify->unsent && wait_ns > AGAIN_NS)
		wait_ns = AGAIN_NS;
	if (wait_ns == UINT64_MAX) {
		(void)spoke_alarm_cancel(&notify->alarm);
		return SPOKE_OK;
	}
	return spoke_alarm_after(engine, &notify->alarm, wait_ns, notify_due);
}

static void notify_due(struct spoke_alarm *alarm)
{
	struct spoke_engine *engine = alarm->engine;
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;
	uint64_t now_ns = engine->env->now(engine->env->ctx);

	if (notify->unsent)
		send_state(engine);
	if (notify->watchdog_ns > 0 && now_ns >= notify->alive_ns) {
		bool full = send_text(engine, "WATCHDOG=1") == -EAGAIN;

		notify->alive_ns = now_ns + (full && notify->watchdog_ns / 2 > AGAIN_NS
						     ? AGAIN_NS
						     : notify->watchdog_ns / 2);
	}
	/* Cannot fail: the wheel's place is free. */
	(void)!arm(engine);
}

/* Enters a state and sends it. */
static void enter(struct spoke_engine *engine, enum spokei_notify_state state)
{
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;

	if (notify->state == SPOKEI_NOTIFY_OFF || notify->state == SPOKEI_NOTIFY_STOPPING)
		return;
	notify->state = state;
	send_state(engine);
	/* Without a timer the message is not repeated. */
	(void)!arm(engine);
}

void spokei_notify_stopping(struct spoke_engine *engine)
{
	enter(engine, SPOKEI_NOTIFY_STOPPING);
}

void spokei_notify_reloading(struct spoke_engine *engine)
{
	enter(engine, SPOKEI_NOTIFY_RELOADING);
}

void spokei_notify_reloaded(struct spoke_engine *engine, bool stale)
{
	spokei_engine_parts(engine)->notify.stale = stale;
	enter(engine, SPOKEI_NOTIFY_READY);
}

/* A message has one line for each variable, so the status has no line ends. */
static void keep_status(struct spokei_notify *notify, const char *status)
{
	size_t len = status ? strlen(status) : 0;

	if (len > SPOKE_NOTIFY_STATUS_MAX)
		len = SPOKE_NOTIFY_STATUS_MAX;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)status[i];

		notify->status[i] = (char)(byte < ' ' || byte == 0x7f ? ' ' : byte);
	}
	notify->status[len] = '\0';
}

int spoke_engine_notify(struct spoke_engine *engine, const char *status)
{
	struct spokei_notify *notify = &spokei_engine_parts(engine)->notify;
	const struct spoke_env *env = engine->env;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (env->manager == NULL)
		return SPOKE_OK;
	keep_status(notify, status);
	if (notify->state == SPOKEI_NOTIFY_OFF) {
		notify->state = engine->ending ? SPOKEI_NOTIFY_STOPPING : SPOKEI_NOTIFY_READY;
		notify->watchdog_ns = env->manager->watchdog(env->ctx);
		notify->alive_ns = env->now(env->ctx) + notify->watchdog_ns / 2;
	}
	send_state(engine);
	return arm(engine);
}
