/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of an attempt, as counted at its endpoint: health, ejection, load. */
#include "cluster/endpoints/parts.h"
#include "core/base/error.h"
#include "core/engine/engine.h"

#include <inttypes.h>

#define MS UINT64_C(1000000)

/* A lost connection ends all its attempts in one turn; they count as one failure. */
static bool is_another_loss(struct spokei_endpoint *endpoint)
{
	uint64_t now_ns = endpoint->engine->begin_ns;

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

static void count_failure(struct spokei_endpoint *endpoint, int error, uint64_t begun_ns)
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

static void count_success(struct spokei_endpoint *endpoint, uint64_t begun_ns, uint64_t took_ns)
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

static void count_outcome(struct spokei_endpoint *endpoint, int error, uint64_t took_ns)
{
	enum spokei_error_blame blame = (enum spokei_error_blame)spokei_error_of(error)->blame;
	uint64_t now_ns = endpoint->engine->begin_ns;
	uint64_t begun_ns = took_ns < now_ns ? now_ns - took_ns : 0;
	bool answered = blame == SPOKEI_BLAME_ANSWER;

	if (blame == SPOKEI_BLAME_NONE) {
		spokei_eject_over(&endpoint->eject);
		return;
	}
	spokei_score_ended(&endpoint->score, !answered);
	endpoint->failures += !answered;
	if (answered)
		count_success(endpoint, begun_ns, took_ns);
	else if (blame == SPOKEI_BLAME_REFUSAL ||
		 (blame == SPOKEI_BLAME_LOSS && is_another_loss(endpoint)))
		spokei_eject_over(&endpoint->eject);
	else
		count_failure(endpoint, error, begun_ns);
}

void spokei_directory_ended(struct spokei_endpoint *endpoint, int error, uint64_t took_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	struct spokei_candidates *candidates = &directory->candidates;

	SPOKE_ASSERT(endpoint->actives > 0);
	endpoint->actives--;
	if (SPOKEI_UNLIKELY(endpoint->place == SPOKEI_NOWHERE)) {
		spokei_directory_bury_if_over(endpoint);
		return;
	}
	count_outcome(endpoint, error, took_ns);
	candidates->actives[endpoint->place] = endpoint->actives;
	candidates->means_ns[endpoint->place] = endpoint->score.mean_ns;
	candidates->successes[endpoint->place] = endpoint->score.successes;
	if (SPOKEI_UNLIKELY(endpoint->actives + 1 == directory->settings.actives_max ||
			    endpoint->eject.aside))
		spokei_directory_refresh_later(directory);
}
