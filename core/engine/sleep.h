/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did the machine sleep? One clock of the environment stands still meanwhile and the other goes on:
 * it did if that one has got ahead. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SLEEP_H
#define SPOKEI_CORE_ENGINE_SLEEP_H

#include "core/base/env.h"

#define SPOKEI_SLEEP_LOOK_NS UINT64_C(100000000) /* from one look to the next, at least */
#define SPOKEI_SLEEP_MIN_NS UINT64_C(1000000000) /* what is not longer is none */

struct spokei_sleep {
	uint64_t looked_ns; /* when, of env->now() */
	uint64_t ahead_ns;  /* by at most so much the other clock was ahead then; it may wrap */
};

void spokei_sleep_init(struct spokei_sleep *sleep, const struct spoke_env *env, uint64_t now_ns);

/* How long the machine slept since the last look, ns; 0: it did not, or that look was just now.
 * `now_ns` has been read before. */
uint64_t spokei_sleep_look(struct spokei_sleep *sleep, const struct spoke_env *env,
			   uint64_t now_ns);

#endif
