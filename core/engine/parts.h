/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of an engine, for the files of this folder. */
#ifndef SPOKEI_CORE_ENGINE_PARTS_H
#define SPOKEI_CORE_ENGINE_PARTS_H

#include "core/base/log.h"
#include "core/engine/engine.h"

#include <spoke/engine.h>
#include <spoke/notify.h>
#include <spoke/signals.h>

#include <stdatomic.h>
#include <stdbool.h>

#define SPOKEI_ENGINE_ENDERS 2 /* SIGTERM and SIGINT */

/* A class of the wheel, found again by its callback. */
struct spokei_engine_class {
	struct spoke_engine *engine;
	void (*due)(struct spoke_timer *timer, void *arg);
	unsigned wheel_class;
};

/* The two clocks at the last look for a sleep of the machine. */
struct spokei_sleep {
	uint64_t looked_ns; /* of env->now() */
	uint64_t ahead_ns;  /* upper bound of the boot-time clock's lead then; it may wrap */
};

enum spokei_notify_state {
	SPOKEI_NOTIFY_OFF, /* spoke_engine_notify() was not called */
	SPOKEI_NOTIFY_READY,
	SPOKEI_NOTIFY_RELOADING,
	SPOKEI_NOTIFY_STOPPING, /* for ever */
};

/* The messages to the service manager, see core/engine/notify.h. */
struct spokei_notify {
	struct spoke_alarm alarm; /* armed if a sign of life is due, or a message was not sent */
	enum spokei_notify_state state;
	bool unsent;          /* the service manager had no room for the state */
	bool refused;         /* an error was logged */
	bool stale;           /* the settings file has errors, the settings are the former ones */
	uint64_t watchdog_ns; /* 0: none */
	uint64_t alive_ns;    /* when the next sign of life is due */
	char status[SPOKE_NOTIFY_STATUS_MAX + 1];
};

/* A call on a wrong thread that is to be logged. */
struct spokei_misuse {
	struct spoke_post post;
	atomic_bool posted;
	const char *function; /* once `posted` is set, of the thread that has set it */
};

struct spokei_engine_parts {
	struct spoke_engine engine; /* first: the pointer that others have */
	struct spokei_misuse misuse;
	struct spokei_log log;
	struct spokei_sleep sleep;
	unsigned classes_count;
	struct spokei_engine_class classes[SPOKE_WHEEL_CLASSES_MAX];
	struct spoke_alarm drain_end;                     /* when the rest is closed */
	struct spoke_signal enders[SPOKEI_ENGINE_ENDERS]; /* the signals that drain the engine */
	uint64_t enders_ns;                               /* the timeout of that drain */
	bool ender_came;                                  /* one of these signals did */
	struct spokei_notify notify;
	struct spoke_engine_options options; /* as given; without texts */
};

static inline struct spokei_engine_parts *spokei_engine_parts(struct spoke_engine *engine)
{
	return (struct spokei_engine_parts *)engine;
}

/* Makes the wheel at begin_ns, with the class of alarms. */
int spokei_engine_make_wheel(struct spoke_engine *engine,
			     const struct spoke_engine_options *options);

/* The functions that the loop calls: the turn. */
extern const struct spoke_loop_up spokei_engine_up;

#endif
