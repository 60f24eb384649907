/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks cannot be read at one time, and the process may be held up between two readings. So
 * the other clock is read between two readings of the first, which say by how much it is ahead at
 * least and at most; only what lies between the most of one look and the least of the next is sure.
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
