/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects suspend from two clocks. They cannot be read at the same instant, and the process may be
 * held up between two readings. So the boot-time clock is read between two readings of the
 * monotonic one, which give a lower and an upper bound of its lead. Only the part between the upper
 * bound of one look and the lower bound of the next is certain.
 */
#include "core/engine/sleep.h"

void spokei_sleep_init(struct spokei_sleep *sleep, const struct spoke_env *env, uint64_t now_ns)
{
	sleep->looked_ns = now_ns;
	sleep->ahead_ns = env->boot_now(env->ctx) - now_ns;
}

uint64_t spokei_sleep_look(struct spokei_sleep *sleep, const struct spoke_env *env, uint64_t now_ns)
{
	uint64_t boot_ns;
	int64_t slept_ns;

	if (now_ns - sleep->looked_ns < SPOKEI_SLEEP_LOOK_NS)
		return 0;
	boot_ns = env->boot_now(env->ctx);
	slept_ns = (int64_t)(boot_ns - env->now(env->ctx) - sleep->ahead_ns);
	sleep->looked_ns = now_ns;
	sleep->ahead_ns = boot_ns - now_ns;
	return slept_ns > (int64_t)SPOKEI_SLEEP_MIN_NS ? (uint64_t)slept_ns : 0;
}
