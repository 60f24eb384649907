/* SPDX-License-Identifier: Apache-2.0 */
/* The idle check: keep, probe, suspect or dead. */
#include "transport/conn/idle.h"

void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns)
{
	*idle = (struct spokei_idle){ .since_ns = now_ns };
}

void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns)
{
	idle->asked = true;
	idle->handed = false;
	idle->since_ns = now_ns;
}

void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns)
{
	if (idle->asked && !idle->handed)
		idle->since_ns = now_ns;
}

void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns)
{
	if (!idle->asked || idle->handed)
		return;
	idle->handed = true;
	idle->since_ns = now_ns;
}

uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns)
{
	if (interval_ns == SPOKEI_IDLE_OFF || interval_ns >= UINT64_MAX - idle->since_ns)
		return UINT64_MAX;
	return idle->since_ns + interval_ns;
}

bool spokei_idle_ripe(const struct spokei_idle *idle, const struct spokei_idle_moment *moment)
{
	return !moment->late && !moment->deaf &&
	       moment->now_ns >= spokei_idle_due(idle, moment->interval_ns);
}

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment)
{
	if (moment->now_ns < spokei_idle_due(idle, moment->interval_ns))
		return SPOKEI_IDLE_KEEP;
	if (moment->late || moment->deaf) {
		idle->since_ns = moment->now_ns;
		return SPOKEI_IDLE_KEEP;
	}
	if (!idle->asked)
		return SPOKEI_IDLE_PROBE;
	idle->since_ns = moment->now_ns;
	idle->misses++;
	return idle->misses < SPOKEI_IDLE_MISSES ? SPOKEI_IDLE_SUSPECT : SPOKEI_IDLE_DEAD;
}
