/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes lines to the log hook, or to the standard error output. A rate limit of ten lines per
 * second and class keeps a misbehaving peer from filling a disk. One log per engine, on its thread.
 * The code that handles a failure logs it, once.
 */
#ifndef SPOKEI_CORE_BASE_LOG_H
#define SPOKEI_CORE_BASE_LOG_H

#include "core/base/env.h"
#include "core/base/pace.h"

#include <stdbool.h>

#define SPOKEI_LOG_TEXT_MAX 512u /* bytes of a line with the NUL; longer lines are cut */
#define SPOKEI_LOG_RATE 10u      /* lines per second and class, and the size of a burst */

/* Lines of one class share a rate limit. A room with bursts of its own adds a class. */
enum spokei_log_class {
	SPOKEI_LOG_LIFE,    /* a requested start or end */
	SPOKEI_LOG_SYSTEM,  /* the operating system reported an error */
	SPOKEI_LOG_CONNECT, /* connections made, lost, retried */
	SPOKEI_LOG_ACCEPT,  /* connections that were accepted, and their ends */
	SPOKEI_LOG_PEER,    /* invalid data from a peer */
	SPOKEI_LOG_LIMIT,   /* a limit was reached */
	SPOKEI_LOG_CALL,    /* failed calls and requests */
	SPOKEI_LOG_AUTH,    /* callers that are not let in */
	SPOKEI_LOG_CLASSES,
};

struct spokei_log {
	const struct spoke_env *env;    /* borrowed for the log's life */
	bool off;                       /* no line is written */
	enum spoke_log_level level_max; /* the highest level that is written */
	bool busy; /* inside the hook; lines of the hook itself are not logged */
	struct spokei_bucket buckets[SPOKEI_LOG_CLASSES];
	uint64_t suppressed[SPOKEI_LOG_CLASSES]; /* since the last line of the class */
};

/* The log begins with env->log at level INFO; without it, with env->print at level WARN. */
void spokei_log_init(struct spokei_log *log, const struct spoke_env *env, uint64_t now_ns);

/* Returns the level with which the log begins. */
enum spoke_log_level spokei_log_preset(const struct spokei_log *log);

/* Goes back to it, or to that of the variable SPOKE_LOG. */
void spokei_log_reset(struct spokei_log *log);

/*
 * Chooses the level: "error", "warn", "info", "debug" or "off". NULL: the level in the variable
 * SPOKE_LOG, which counts only without env->log, else nothing changes. Returns 0 or EINVAL (another
 * text).
 */
SPOKE_MUST_USE int spokei_log_choose(struct spokei_log *log, const char *level);

/* Returns the name of a level, e.g. "warn". */
const char *spokei_log_level_name(enum spoke_log_level level);

/*
 * Writes a line, or counts it as suppressed. `module` is the room, e.g. "conn". Pass data from a
 * peer through spokei_log_escape() first; control bytes that are left become question marks.
 */
SPOKEI_PRINTF(6, 7)
void spokei_log(struct spokei_log *log, enum spoke_log_level level, const char *module,
		enum spokei_log_class log_class, uint64_t now_ns, const char *format, ...);

/* Writes a requested line at level INFO, without a rate limit. */
void spokei_log_wanted(struct spokei_log *log, const char *module, const char *text);

/*
 * Writes bytes to `out` (of `size` bytes) as printable ASCII: other bytes as \xNN, quotation marks
 * and backslashes with a backslash. A text that does not fit is cut between two such characters and
 * ends in "..." if there is room. Always ends with a NUL unless size is 0. Returns the length of
 * the text.
 */
size_t spokei_log_escape(char *out, size_t size, const void *bytes, size_t len);

/* Same for names that differ at their end, like those of services and files: one that does not fit
 * loses its beginning, and "..." stands there. */
size_t spokei_log_escape_end(char *out, size_t size, const void *bytes, size_t len);

#endif
