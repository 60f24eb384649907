/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects that the machine slept: the boot-time clock goes on meanwhile and the monotonic clock
 * stops, so the first one gets ahead. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SLEEP_H
#define SPOKEI_CORE_ENGINE_SLEEP_H

#include "core/base/env.h"

#define SPOKEI_SLEEP_LOOK_NS UINT64_C(100000000) /* shortest time between two looks */
#define SPOKEI_SLEEP_MIN_NS UINT64_C(1000000000) /* anything shorter is ignored */

struct spokei_sleep {
	uint64_t looked_ns; /* of env->now() */
	uint64_t ahead_ns;  /* upper bound of the lead then; it may wrap */
};

void spokei_sleep_init(struct spokei_sleep *sleep, const struct spoke_env *env, uint64_t now_ns);

/* Returns how long the machine slept since the last look, in ns; 0: not at all, or the last look
 * was just now. `now_ns` has been read before. */
uint64_t spokei_sleep_look(struct spokei_sleep *sleep, const struct spoke_env *env,
			   uint64_t now_ns);

#endif
