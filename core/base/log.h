/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front of the log hook: nothing happens without a hook, and no class of lines comes more often
 * than ten times a second, so that a peer cannot fill a disk by misbehaving. One log per engine, on
 * its thread. Failures are logged once, by whoever handles them.
 */
#ifndef SPOKEI_CORE_BASE_LOG_H
#define SPOKEI_CORE_BASE_LOG_H

#include "core/base/env.h"
#include "core/base/pace.h"

#include <stdbool.h>

#define SPOKEI_LOG_TEXT_MAX 512u /* bytes of a line, with the NUL; longer ones are cut */
#define SPOKEI_LOG_RATE 10u      /* lines a second and class, and as many at once */

#if defined(__GNUC__)
#define SPOKEI_PRINTF(at, args) __attribute__((format(printf, at, args)))
#else
#define SPOKEI_PRINTF(at, args)
#endif

/* Lines of one class share a limit. A room that logs in a storm of its own adds a class. */
enum spokei_log_class {
	SPOKEI_LOG_LIFE,    /* something began or ended as it was told to */
	SPOKEI_LOG_SYSTEM,  /* the operating system reported an error */
	SPOKEI_LOG_CONNECT, /* connections made, lost, tried again */
	SPOKEI_LOG_ACCEPT,  /* connections taken and turned away */
	SPOKEI_LOG_PEER,    /* what a peer sent was wrong */
	SPOKEI_LOG_LIMIT,   /* a limit was reached */
	SPOKEI_LOG_CALL,    /* calls and requests that ended badly */
	SPOKEI_LOG_CLASSES,
};

struct spokei_log {
	const struct spoke_env *env;    /* borrowed for the log's life */
	enum spoke_log_level level_max; /* lines above are not written; SPOKE_LOG_INFO at first */
	bool busy;                      /* inside the hook, whose own doings are not logged */
	struct spokei_bucket buckets[SPOKEI_LOG_CLASSES];
	uint64_t suppressed[SPOKEI_LOG_CLASSES]; /* left out since the last line of the class */
};

void spokei_log_init(struct spokei_log *log, const struct spoke_env *env, uint64_t now_ns);

/*
 * Writes a line, or counts it as suppressed. `module` is the room, as "conn". What comes from a
 * peer goes through spokei_log_escape() first.
 */
SPOKEI_PRINTF(6, 7)
void spokei_log(struct spokei_log *log, enum spoke_log_level level, const char *module,
		enum spokei_log_class log_class, uint64_t now_ns, const char *format, ...);

/* Writes a line that somebody has asked for, as INFO; such lines have no limit. */
void spokei_log_wanted(struct spokei_log *log, const char *module, const char *text);

/*
 * Writes bytes of any kind to `out` (of `size` bytes) as printable ASCII: others as \xNN, quotation
 * marks and backslashes behind a backslash. What does not fit is cut between two such characters
 * and ends in "..." if there is room for that. Always ends with a NUL, unless size is 0. Returns
 * the length of the text.
 */
size_t spokei_log_escape(char *out, size_t size, const void *bytes, size_t len);

#endif
