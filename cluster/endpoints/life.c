/* SPDX-License-Identifier: Apache-2.0 */
/* Initialises and ends directories, and counts attempts and their results. */
#include "cluster/endpoints/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

#include <inttypes.h>

#define MS UINT64_C(1000000)

void spokei_directory_change(struct spokei_directory *directory,
			     const struct spokei_directory_settings *settings)
{
	directory->settings.actives_max = settings->actives_max ? settings->actives_max
								: UINT32_MAX;
	directory->settings.eject_failures = settings->eject_failures;
	directory->settings.eject_ns = settings->eject_ns;
	spokei_directory_refresh_later(directory);
}

/* --- the end */

void spokei_directory_end(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	if (directory->ended)
		return;
	directory->ended = true;
	(void)spoke_wheel_cancel(directory->engine->wheel, &directory->wake);
	directory->sole = NULL;
	directory->stale = true;
	spokei_task_drop(&directory->news);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_end(candidates->endpoints[i]);
	for (struct spoke_list *node = directory->gone.next; node != &directory->gone;
	     node = node->next)
		spokei_endpoint_end(spoke_container_of(node, struct spokei_endpoint, node));
}

void spokei_directory_rest(struct spokei_directory *directory, bool calls)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->resting = true;
	spokei_directory_refresh_later(directory);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_rest(candidates->endpoints[i], calls);
}

/* --- life */

static void tell_able(struct spokei_task *task)
{
	struct spokei_directory *directory = spoke_container_of(task, struct spokei_directory,
								news);
	uint32_t able;
	uint32_t fresh;

	spokei_directory_count(directory, NULL, 0, &able, &fresh);
	if (!directory->barren && directory->up->able)
		directory->up->able(directory->up_arg);
}

void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg)
{
	const struct spoke_env *env = link->engine->env;

	*directory = (struct spokei_directory){
		.engine = link->engine,
		.link = link,
		.settings = *settings,
		.up = up,
		.up_arg = up_arg,
		.listing = 1,
		.version = 1,
		.best = SPOKEI_RANK_NONE,
		.stale = true,
		.news = { .run = tell_able },
	};
	if (directory->settings.connections == 0)
		directory->settings.connections = 1;
	if (directory->settings.actives_max == 0)
		directory->settings.actives_max = UINT32_MAX;
	env->dice(env->ctx, &directory->dice, sizeof(directory->dice));
	spokei_candidates_init(&directory->candidates, env);
	spokei_list_init(&directory->gone);
}

void spokei_directory_fini(struct spokei_directory *directory)
{
	spokei_directory_forget(directory);
	while (!spokei_list_empty(&directory->gone)) {
		struct spoke_list *node = spokei_list_first(&directory->gone);

		spokei_list_remove(node);
		spokei_endpoint_free(spoke_container_of(node, struct spokei_endpoint, node));
	}
	if (directory->round > 0)
		spokei_map_fini(&directory->keys);
	spokei_candidates_fini(&directory->candidates);
}

/* --- attempts */

/* A lost connection ends all its attempts in one turn; they count as one failure. */
static bool is_another_loss(struct spokei_endpoint *endpoint, int error)
{
	uint64_t now_ns = endpoint->engine->begin_ns;

	if (error == SPOKE_ETIMEOUT || error == SPOKE_ETIMEOUT_UNSENT ||
	    !spoke_error_is_transport(error))
		return false;
	if (endpoint->lost_ns == now_ns)
		return true;
	endpoint->lost_ns = now_ns;
	return false;
}

static bool is_alone(const struct spokei_directory *directory,
		     const struct spokei_endpoint *endpoint)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		const struct spokei_endpoint *other = candidates->endpoints[i];

		if (other != endpoint && !other->eject.aside &&
		    spokei_endpoint_grade(other) != SPOKEI_GRADE_NONE)
			return false;
	}
	return true;
}

static void hold_against(struct spokei_endpoint *endpoint, int error, uint64_t begun_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	const struct spokei_eject_rule rule = { directory->settings.eject_failures,
						directory->settings.eject_ns };
	uint64_t now_ns = endpoint->engine->begin_ns;
	bool alone = spokei_eject_near(&endpoint->eject, &rule) && is_alone(directory, endpoint);

	if (!spokei_eject_failed(&endpoint->eject, &rule, begun_ns, now_ns, alone,
				 spokei_directory_dice(directory)))
		return;
	spokei_event(endpoint->engine, error, "%s: ejected after failures for %" PRIu64 " ms",
		     endpoint->name, (endpoint->eject.until_ns - now_ns) / MS);
	spokei_directory_refresh_later(directory);
}

static void hold_for(struct spokei_endpoint *endpoint, uint64_t begun_ns, uint64_t took_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	const struct spokei_eject_rule rule = { directory->settings.eject_failures,
						directory->settings.eject_ns };
	uint64_t now_ns = endpoint->engine->begin_ns;

	spokei_score_answered(&endpoint->score, took_ns, now_ns);
	if (!spokei_eject_answered(&endpoint->eject, &rule, begun_ns, now_ns))
		return;
	spokei_event(endpoint->engine, SPOKE_OK, "%s: answers again, no longer ejected",
		     endpoint->name);
	spokei_directory_refresh_later(directory);
}

/* Local errors, and calls that the provider refused, are not counted as failures. */
static void judge(struct spokei_endpoint *endpoint, enum spoke_policy_fate fate, int error,
		  uint64_t took_ns)
{
	uint64_t now_ns = endpoint->engine->begin_ns;
	uint64_t begun_ns = took_ns < now_ns ? now_ns - took_ns : 0;
	bool answered = fate == SPOKE_FATE_OK || fate == SPOKE_FATE_ANSWERED;

	if (!answered && spoke_error_is_local(error)) {
		spokei_eject_over(&endpoint->eject);
		return;
	}
	spokei_score_ended(&endpoint->score, !answered);
	endpoint->failures += !answered;
	if (answered)
		hold_for(endpoint, begun_ns, took_ns);
	else if (error == SPOKE_EREFUSED || is_another_loss(endpoint, error))
		spokei_eject_over(&endpoint->eject);
	else
		hold_against(endpoint, error, begun_ns);
}

void spokei_directory_ended(struct spokei_endpoint *endpoint, enum spoke_policy_fate fate,
			    int error, uint64_t took_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	struct spokei_candidates *candidates = &directory->candidates;

	SPOKE_ASSERT(endpoint->actives > 0);
	endpoint->actives--;
	if (SPOKEI_UNLIKELY(endpoint->place == SPOKEI_NOWHERE)) {
		spokei_directory_bury_if_over(endpoint);
		return;
	}
	judge(endpoint, fate, error, took_ns);
	candidates->actives[endpoint->place] = endpoint->actives;
	candidates->means_ns[endpoint->place] = endpoint->score.mean_ns;
	candidates->successes[endpoint->place] = endpoint->score.successes;
	if (SPOKEI_UNLIKELY(endpoint->actives + 1 == directory->settings.actives_max ||
			    endpoint->eject.aside))
		spokei_directory_refresh_later(directory);
}
