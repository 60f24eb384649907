/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that `spoke lock` waits: on a terminal a line of progress, with --verbose a line each time
 * that the holder changes, else nothing. */
#ifndef COMMAND_LOCK_WAIT_H
#define COMMAND_LOCK_WAIT_H

#include "examples/spoke/lock_redis.h"

struct lock_wait {
	const struct locker *locker;
	struct spoke_alarm alarm; /* each second */
	bool on;                  /* the alarm is set */
	uint64_t since_ns;        /* of the engine's clock */
	struct lock_redis redis;  /* asks for the holder */
	char holder[80];          /* escaped; "": not known, or none */
	char said[80];            /* the holder that was printed last */
	uint64_t until_ns;        /* the holder's lease ends then at most; UINT64_MAX: never */
};

/* Begins to show. `wait` is zero-initialised and stays until the end. */
void lock_wait_begin(struct lock_wait *wait, const struct locker *locker);

/* Stops, and erases the line. */
void lock_wait_end(struct lock_wait *wait);

#endif
