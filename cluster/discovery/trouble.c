/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of a registry: retries after a pause, gives up, recovers, and logs each change once. */
#include "cluster/discovery/parts.h"

#include "core/base/log.h"
#include "core/base/pace.h"
#include "core/engine/engine.h"

#include <inttypes.h>

#define MS UINT64_C(1000000)

void spokei_keeper_act_soon(struct spokei_keeper *keeper)
{
	spokei_engine_soon(keeper->engine, &keeper->act);
}

uint64_t spokei_keeper_now(const struct spokei_keeper *keeper)
{
	return keeper->engine->env->now(keeper->engine->env->ctx);
}

void spokei_keeper_worry(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	if (!wish->troubled)
		keeper->troubled++;
	wish->troubled = true;
}

/* Logs the begin and the end of a series of failures. */
void spokei_keeper_calm(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	if (!wish->troubled)
		return;
	wish->troubled = false;
	if (--keeper->troubled > 0)
		return;
	keeper->complained = false;
	keeper->gave_up = false;
	spokei_event(keeper->engine, SPOKE_OK, "registry %s: recovered", keeper->name);
}

uint64_t spokei_keeper_after_pause(const struct spokei_keeper *keeper)
{
	const struct spoke_env *env = keeper->engine->env;
	const struct spokei_backoff backoff = { keeper->retry_ns, keeper->retry_ns };
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return spokei_later(spokei_keeper_now(keeper), spokei_backoff_pause(&backoff, 0, dice));
}

static void complain(struct spokei_keeper *keeper, const struct spokei_wish *wish, const char *verb,
		     int error)
{
	char service[SPOKEI_KEEPER_SHOWN];

	if (keeper->complained)
		return;
	keeper->complained = true;
	(void)spokei_log_escape_end(service, sizeof(service), wish->service, strlen(wish->service));
	/* The sentence of EUNAVAILABLE is about calls. */
	spokei_event(keeper->engine, error,
		     "registry %s: cannot %s %s: %s; retrying every %" PRIu64 " ms", keeper->name,
		     verb, service,
		     error == SPOKE_EUNAVAILABLE ? "the registry does not answer"
						 : spoke_strerror(error),
		     keeper->retry_ns / MS);
}

void spokei_keeper_fail(struct spokei_keeper *keeper, struct spokei_wish *wish, const char *verb,
			int error)
{
	complain(keeper, wish, verb, error);
	spokei_keeper_worry(keeper, wish);
	wish->failures++;
	wish->due_ns = spokei_keeper_after_pause(keeper);
	if (keeper->retries_max == 0 || wish->failures <= keeper->retries_max)
		return;
	wish->due_ns = SPOKEI_WISH_GIVEN_UP;
	if (keeper->gave_up)
		return;
	keeper->gave_up = true;
	spokei_event(keeper->engine, error,
		     "registry %s: given up after %" PRIu32
		     " retries; retrying when the registry answers",
		     keeper->name, keeper->retries_max);
}

void spokei_keeper_heard(struct spokei_keeper *keeper)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->due_ns != SPOKEI_WISH_GIVEN_UP)
			continue;
		wish->due_ns = 0;
		wish->failures = 0;
	}
	spokei_keeper_act_soon(keeper);
}

void spokei_keeper_drop_wish(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	if (wish->troubled && --keeper->troubled == 0) {
		keeper->complained = false;
		keeper->gave_up = false;
	}
	keeper->wish_count--;
	spokei_list_remove(&wish->node);
	spokei_wish_free(keeper->engine->env, wish);
}
