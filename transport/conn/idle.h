/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle check. A peer that sends nothing for one interval is probed; every further interval
 * without data counts as a miss. Suspect after the first miss, dead after the third. Only this
 * side's own probes count, so the other side's interval does not matter. Intervals in which this
 * side did not read do not count. Pure: time is a parameter.
 *
 *     heard                +1 interval   +2            +3            +4
 *       |---------------------|-------------|-------------|-------------|
 *                           probe        miss 1        miss 2        miss 3
 *                                       suspect, probe    probe         dead
 */
#ifndef SPOKEI_TRANSPORT_CONN_IDLE_H
#define SPOKEI_TRANSPORT_CONN_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_IDLE_MISSES 3u /* misses in a row: dead */
#define SPOKEI_IDLE_OFF 0u    /* of an interval: no idle check */

struct spokei_idle {
	uint64_t since_ns; /* when the present interval of silence began */
	uint64_t heard_ns; /* when the last byte arrived; 0: none has */
	uint8_t misses;    /* in a row, so far */
	bool asked;        /* a probe of this side is unanswered */
	/* ... and the kernel has taken it. Until then each byte that the kernel takes starts a new
	 * interval: slow readers have a deadline of their own. */
	bool handed;
};

enum spokei_idle_verdict {
	SPOKEI_IDLE_KEEP,    /* check again at spokei_idle_due() */
	SPOKEI_IDLE_PROBE,   /* send a probe, then call spokei_idle_asked() */
	SPOKEI_IDLE_SUSPECT, /* a miss: send another probe, unless one is still queued */
	SPOKEI_IDLE_DEAD,    /* the last miss */
};

/* The circumstances of a check. */
struct spokei_idle_moment {
	uint64_t now_ns;
	uint64_t interval_ns;
	bool late; /* this side was delayed, and may have unread bytes */
	bool deaf; /* ... or does not read at all now */
};

/* Starts the check, for a new connection or after a break. */
void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns);

/* A probe was queued; the kernel has taken bytes queued before it; the kernel has taken it. */
void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns);
void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns);
void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns);

/* A byte has arrived. Returns whether the peer was suspect. */
static inline bool spokei_idle_heard(struct spokei_idle *idle, uint64_t now_ns)
{
	bool was_suspect = idle->misses > 0;

	idle->since_ns = now_ns;
	idle->heard_ns = now_ns;
	idle->misses = 0;
	idle->asked = false;
	return was_suspect;
}

/* Returns when to check next; UINT64_MAX: never. */
uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns);

/* Returns whether an interval that counts is over. The socket is then read once more before the
 * check. */
bool spokei_idle_ripe(const struct spokei_idle *idle, const struct spokei_idle_moment *moment);

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment);

#endif
