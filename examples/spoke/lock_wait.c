/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a `spoke lock` that waits. */
#include "examples/spoke/lock_wait.h"

#include "examples/spoke/escape.h"
#include "examples/spoke/terminal.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* The engine stands still meanwhile, but no lease is held yet. */
#define LOOK_NS UINT64_C(250000000)

static void show(const struct lock_wait *wait)
{
	const struct locker *locker = wait->locker;
	uint64_t now = spoke_engine_now(locker->engine);
	struct spoke_leases_look look;
	char waited[32];
	char left[32] = "";
	char holder[160] = "";

	spoke_leases_look(locker->leases, &look);
	if (wait->until_ns != UINT64_MAX)
		(void)lock_time(wait->until_ns > now ? wait->until_ns - now : 0, left,
				sizeof(left));
	if (!look.connected)
		(void)snprintf(holder, sizeof(holder), ": %.100s cannot be reached", look.store);
	else if (*wait->holder)
		(void)snprintf(holder, sizeof(holder), ": held for %s%s by %s", left,
			       wait->until_ns == UINT64_MAX ? "ever" : " at most", wait->holder);
	terminal_progress("waiting for %s, %s so far%s", locker->shown,
			  lock_time(now - wait->since_ns, waited, sizeof(waited)), holder);
}

static bool seen(void *arg, const struct lock_info *info)
{
	struct lock_wait *wait = arg;

	(void)escape_text(info->holder, wait->holder, sizeof(wait->holder));
	wait->until_ns = info->left_ns == UINT64_MAX
				 ? UINT64_MAX
				 : spoke_engine_now(wait->locker->engine) + info->left_ns;
	return true;
}

/* Asks for the holder. Without an answer none is known. */
static void look(struct lock_wait *wait)
{
	char pattern[2 * SPOKE_LEASE_NAME_MAX + 1];

	lock_pattern(wait->locker->name, pattern, sizeof(pattern));
	wait->holder[0] = '\0';
	(void)lock_redis_list(&wait->redis, pattern, seen, wait);
	if (wait->locker->verbose && *wait->holder && strcmp(wait->holder, wait->said) != 0) {
		terminal_progress_end();
		(void)ending_say(VERB_OK, LOCK_VERB, "%s is held by %s", wait->locker->shown,
				 wait->holder);
		(void)snprintf(wait->said, sizeof(wait->said), "%s", wait->holder);
	}
}

static void second_due(struct spoke_alarm *alarm)
{
	struct lock_wait *wait = spoke_container_of(alarm, struct lock_wait, alarm);
	struct spoke_leases_look now;

	spoke_leases_look(wait->locker->leases, &now);
	if (now.connected)
		look(wait);
	show(wait);
}

void lock_wait_begin(struct lock_wait *wait, const struct locker *locker)
{
	wait->locker = locker;
	wait->redis = (struct lock_redis){ .locker = locker, .limit_ns = LOOK_NS };
	wait->since_ns = spoke_engine_now(locker->engine);
	if (locker->quiet || (!terminal_err() && !locker->verbose))
		return;
	/* Without a timer there is no progress. */
	wait->on = !spoke_alarm_every(locker->engine, &wait->alarm, SECOND_NS, second_due);
}

void lock_wait_end(struct lock_wait *wait)
{
	if (wait->on) {
		(void)spoke_alarm_cancel(&wait->alarm);
		lock_redis_close(&wait->redis);
	}
	wait->on = false;
	terminal_progress_end();
}
