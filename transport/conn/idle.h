/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of silence. Silent is who sends no byte for one interval; then he is asked, and each
 * interval in which he does not answer is a miss. Suspect after the first, dead after the third.
 * Only this side's own heartbeats count, so that the other side's interval does not matter. What
 * passed while this side did not listen counts for nothing. A decider: time comes in.
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

#define SPOKEI_IDLE_MISSES 3u /* in a row: dead */
#define SPOKEI_IDLE_OFF 0u    /* of an interval: nobody is ever judged */

struct spokei_idle {
	uint64_t since_ns; /* the present interval of silence began then */
	uint64_t heard_ns; /* when a byte came last; 0: none has */
	uint8_t misses;    /* in a row, up to now */
	bool asked;        /* a heartbeat of this side waits for its answer */
	/* ... and the system has taken it; until then an interval begins with each byte it takes,
	 * for who reads slowly is judged elsewhere. */
	bool handed;
};

enum spokei_idle_verdict {
	SPOKEI_IDLE_KEEP,    /* look again at spokei_idle_due() */
	SPOKEI_IDLE_PROBE,   /* send a heartbeat, then spokei_idle_asked() */
	SPOKEI_IDLE_SUSPECT, /* a miss; the same, unless one still waits to be written */
	SPOKEI_IDLE_DEAD,    /* a miss, and the last one */
};

/* What the judge is told of the moment. */
struct spokei_idle_moment {
	uint64_t now_ns;
	uint64_t interval_ns;
	bool late; /* this side was held up, and may not have read what came */
	bool deaf; /* ... or does not read at all now */
};

/* A connection that begins, or was not judged for a while. */
void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns);

/* A heartbeat was put on its way; the system has taken bytes that wait before it; has taken it. */
void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns);
void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns);
void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns);

/* A byte has come. Returns whether it was suspect. */
static inline bool spokei_idle_heard(struct spokei_idle *idle, uint64_t now_ns)
{
	bool was_suspect = idle->misses > 0;

	idle->since_ns = now_ns;
	idle->heard_ns = now_ns;
	idle->misses = 0;
	idle->asked = false;
	return was_suspect;
}

/* When it is to be judged next; UINT64_MAX: never. */
uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns);

/* Is an interval over that counts? Then the socket is read once more before it is judged. */
bool spokei_idle_ripe(const struct spokei_idle *idle, const struct spokei_idle_moment *moment);

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment);

#endif
