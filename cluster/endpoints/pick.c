/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the endpoint for a call, and counts the outcome of an attempt there. */
#include "cluster/endpoints/directory.h"

#include "cluster/endpoints/listing.h"
#include "cluster/endpoints/routing.h"
#include "core/base/error.h"
#include "core/base/mix.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

#include <inttypes.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define LOOK_NS UINT64_C(1000000000) /* how often growing weights are updated */
#define LOOK_SLICE 512u              /* places that a choice looks at because of the time */
#define FULL_NS UINT64_C(10000000)   /* how long an endpoint with a full output queue is excluded */
#define ASKED_MAX 3u                 /* attempts of a balancer to choose an untried place */
#define FEW_TRIED 8u                 /* up to here tried places are counted one by one */
#define TOLD_MAX 128u                /* tried places that a balancer sees: the newest */

/* --- outliers */

/* Returns a random number, which may be predictable. */
static uint64_t dice_of(struct spokei_directory *directory)
{
	return spokei_mix_next(&directory->dice);
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

/* Returns whether one more endpoint may be ejected for its errors or its latency. */
static bool has_share_left(const struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	size_t most = spokei_eject_most(candidates->shown.count, directory->settings.eject_share);
	size_t aside = 0;

	for (size_t i = 0; i < candidates->shown.count; i++)
		aside += candidates->endpoints[i]->eject.aside;
	return aside < most;
}

/* Ejects an endpoint for its errors or its latency, unless too few others remain. */
static bool eject_outlier(struct spokei_directory *directory, struct spokei_endpoint *endpoint,
			  const struct spokei_eject_rule *rule)
{
	if (!has_share_left(directory) || is_alone(directory, endpoint))
		return false;
	spokei_eject_start(&endpoint->eject, rule, directory->engine->begin_ns, dice_of(directory));
	return true;
}

/* Returns the number of attempts that have ended with a result that counts. */
static uint64_t count_ended(const struct spokei_endpoint *endpoint)
{
	return endpoint->calls - endpoint->actives - endpoint->eject.ignored;
}

static uint64_t ejected_ms(const struct spokei_endpoint *endpoint)
{
	return (endpoint->eject.until_ns - endpoint->engine->begin_ns) / MS;
}

/* Compares the response time of an endpoint with the mean of the others, as of the last round. */
static void judge_latency(struct spokei_directory *directory, struct spokei_endpoint *endpoint,
			  uint64_t mean_ns)
{
	const struct spokei_eject_rule *rule = &directory->settings.eject;
	const struct spokei_means *last = &directory->means;
	uint64_t others_ns = 0;

	if (endpoint->eject.aside || mean_ns == 0)
		return;
	if (last->count > 1 && last->sum_ns > mean_ns)
		others_ns = (last->sum_ns - mean_ns) / (last->count - 1);
	if (!spokei_eject_slow(&endpoint->eject, rule, count_ended(endpoint), mean_ns, others_ns,
			       directory->engine->begin_ns) ||
	    !eject_outlier(directory, endpoint, rule))
		return;
	spokei_event(endpoint->engine, SPOKE_ELIMIT,
		     "%s: ejected for %" PRIu64 " ms by eject.latency, because its answers take "
		     "%" PRIu64 " us, and those of others %" PRIu64 " us",
		     endpoint->name, ejected_ms(endpoint), mean_ns / US, others_ns / US);
}

/* --- health */

static uint8_t rank_of(const struct spokei_directory *directory,
		       const struct spokei_endpoint *endpoint)
{
	enum spokei_grade grade = spokei_endpoint_grade(endpoint);

	if (grade == SPOKEI_GRADE_NONE)
		return SPOKEI_RANK_NONE;
	if (endpoint->actives >= directory->settings.actives_max ||
	    endpoint->full_ns > directory->engine->begin_ns)
		return SPOKEI_RANK_FULL;
	if (spokei_eject_excludes(&endpoint->eject, directory->engine->begin_ns))
		return (uint8_t)((unsigned)SPOKEI_RANK_ASIDE + grade);
	return (uint8_t)grade;
}

/* Returns when the endpoint is to be looked at again, because its weight grows, its figures become
 * old, or it can take calls again. An endpoint that is not ready may improve without notice. */
static uint64_t next_look(const struct spokei_endpoint *endpoint, bool changes, uint64_t now_ns)
{
	uint64_t next_ns = changes ? now_ns + LOOK_NS : UINT64_MAX;

	if (endpoint->eject.aside && endpoint->eject.until_ns > now_ns &&
	    endpoint->eject.until_ns < next_ns)
		next_ns = endpoint->eject.until_ns;
	if (endpoint->full_ns > now_ns && endpoint->full_ns < next_ns)
		next_ns = endpoint->full_ns;
	return next_ns;
}

/* Updates the arrays for an endpoint, and the time of its next change. */
static void look_at(struct spokei_directory *directory, struct spokei_endpoint *endpoint)
{
	struct spokei_candidates *candidates = &directory->candidates;
	uint64_t now_ns = directory->engine->begin_ns;
	uint64_t mean_ns = spokei_score_mean(&endpoint->score, now_ns);
	size_t place = endpoint->place;
	uint64_t next_ns;
	uint8_t rank;
	bool grows;
	uint32_t weight = spokei_endpoint_weight(endpoint, &grows);

	if (SPOKEI_UNLIKELY(directory->settings.eject.latency > 0))
		judge_latency(directory, endpoint, mean_ns);
	rank = rank_of(directory, endpoint);
	next_ns = next_look(endpoint,
			    grows || mean_ns > 0 || rank != SPOKEI_GRADE_READY ||
				    directory->settings.eject.latency > 0,
			    now_ns);
	directory->look_ns = next_ns < directory->look_ns ? next_ns : directory->look_ns;
	directory->next_ns = next_ns < directory->next_ns ? next_ns : directory->next_ns;
	candidates->differs |= candidates->weights[place] != weight;
	candidates->weights[place] = weight;
	if (candidates->means_ns[place] != mean_ns)
		spokei_candidates_moved(candidates, place);
	candidates->means_ns[place] = mean_ns;
	spokei_candidates_rank(candidates, place, rank);
}

static void look_at_news(struct spokei_directory *directory)
{
	while (!spokei_list_empty(&directory->news)) {
		struct spoke_list *node = spokei_list_first(&directory->news);

		spokei_list_remove(node);
		look_at(directory, spoke_container_of(node, struct spokei_endpoint, news));
	}
}

/* Looks at up to `count` further places, beginning anew after the last. */
static void look_on(struct spokei_directory *directory, size_t count)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	if (directory->look_at == 0) {
		directory->next_ns = UINT64_MAX;
		directory->next_means = (struct spokei_means){ 0 };
	}
	for (; count > 0 && directory->look_at < candidates->shown.count; count--) {
		struct spokei_endpoint *endpoint = candidates->endpoints[directory->look_at];
		uint64_t mean_ns;

		look_at(directory, endpoint);
		mean_ns = candidates->means_ns[directory->look_at++];
		if (mean_ns == 0 || endpoint->eject.aside)
			continue;
		directory->next_means.sum_ns += mean_ns;
		directory->next_means.count++;
	}
	if (directory->look_at < candidates->shown.count)
		return;
	directory->look_at = 0;
	directory->look_ns = directory->next_ns;
	directory->means = directory->next_means;
}

/* Returns whether endpoints of this rank are connected. */
static bool is_connected(uint8_t rank)
{
	return rank < SPOKEI_RANK_FULL && rank % SPOKEI_RANK_ASIDE != SPOKEI_GRADE_CONNECTING;
}

/* Concludes what the ranks mean for choices. */
static void conclude(struct spokei_directory *directory)
{
	struct spokei_candidates *candidates = &directory->candidates;

	spokei_candidates_grade(candidates);
	if (directory->barren && is_connected(candidates->best))
		spokei_run_soon(directory->engine, &directory->check);
	directory->barren = !is_connected(candidates->best);
	candidates->changes.version += candidates->differs;
	candidates->differs = false;
}

static SPOKEI_NOINLINE void look_again(struct spokei_directory *directory)
{
	bool due = directory->candidates.best != SPOKEI_GRADE_READY ||
		   directory->engine->begin_ns >= directory->look_ns;

	if (directory->all) {
		directory->look_at = 0;
		look_on(directory, SIZE_MAX);
	}
	look_at_news(directory);
	if (due && !directory->all)
		look_on(directory, LOOK_SLICE);
	directory->stale = directory->all = false;
	conclude(directory);
}

/* While the best grade is not READY, an endpoint may improve without notice. */
static inline void look(struct spokei_directory *directory)
{
	if (directory->stale || directory->candidates.best != SPOKEI_GRADE_READY ||
	    directory->engine->begin_ns >= directory->look_ns)
		look_again(directory);
}

static int refusal(const struct spokei_directory *directory,
		   const struct spokei_candidates *candidates)
{
	if (candidates->shown.count == 0)
		return SPOKE_ENOPROVIDER;
	if (candidates->best != SPOKEI_RANK_FULL)
		return SPOKE_EUNAVAILABLE;
	return spokei_link_refused(directory->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_ENDPOINTS);
}

/* --- tried endpoints */

/* Ids count up, so few share a home; the newer endpoint owns it. */
static size_t find_id(const struct spokei_candidates *candidates, uint64_t id)
{
	size_t count = candidates->shown.count;
	size_t home;

	if (count == 0)
		return SPOKE_NO_ENDPOINT;
	home = candidates->homes[id & (candidates->home_room - 1)];
	if (SPOKEI_LIKELY(home < count && candidates->ids[home] == id))
		return home;
	for (size_t place = 0; place < count; place++)
		if (candidates->ids[place] == id)
			return place;
	return SPOKE_NO_ENDPOINT;
}

struct spokei_endpoint *spokei_directory_find(const struct spokei_directory *directory, uint64_t id)
{
	size_t place = find_id(&directory->candidates, id);

	return place == SPOKE_NO_ENDPOINT ? NULL : directory->candidates.endpoints[place];
}

/* `hint` is kept between calls, because places are usually tested in the order in which they
 * were tried. */
static bool was_tried(const uint64_t *tried, size_t tried_count, uint64_t id, size_t *hint)
{
	if (*hint < tried_count && tried[*hint] == id) {
		(*hint)++;
		return true;
	}
	for (size_t i = 0; i < tried_count; i++)
		if (tried[i] == id)
			return true;
	return false;
}

/* Returns the candidates for a call. */
static inline const struct spokei_candidates *field_of(const struct spokei_directory *directory,
						       const struct spokei_ask *ask)
{
	return SPOKEI_UNLIKELY(ask->view) ? &ask->view->candidates : &directory->candidates;
}

/* Returns the best rank of untried places. */
static uint8_t best_fresh(const struct spokei_directory *directory, const struct spokei_ask *ask)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	uint8_t best = SPOKEI_RANK_NONE;
	size_t hint = 0;

	if (ask->tried_count == 0)
		return candidates->best;
	for (size_t i = 0; i < candidates->shown.count; i++)
		if (!was_tried(ask->tried, ask->tried_count, candidates->ids[i], &hint) &&
		    candidates->ranks[i] < best)
			best = candidates->ranks[i];
	return best;
}

/* Returns the first untried place of this rank, from `from` on, wrapping around. */
static size_t find(const struct spokei_directory *directory, const struct spokei_ask *ask,
		   size_t from, uint8_t rank)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	size_t at = from < candidates->shown.count ? from : 0;
	size_t hint = 0;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		if (candidates->ranks[at] == rank &&
		    !was_tried(ask->tried, ask->tried_count, candidates->ids[at], &hint))
			return at;
		at = at + 1 < candidates->shown.count ? at + 1 : 0;
	}
	return SPOKE_NO_ENDPOINT;
}

/* Returns the first untried place of this rank in the order of the list. */
static size_t find_listed(const struct spokei_directory *directory, const struct spokei_ask *ask,
			  uint8_t rank)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	const struct spokei_listing *listing = directory->listing;
	size_t hint = 0;

	for (size_t i = 0; listing && i < listing->now.count; i++) {
		const struct spokei_endpoint *endpoint = listing->now.entries[i].endpoint;

		if (endpoint && candidates->ranks[endpoint->place] == rank &&
		    !was_tried(ask->tried, ask->tried_count, endpoint->id, &hint))
			return endpoint->place;
	}
	return find(directory, ask, 0, rank);
}

/* --- choice */

static size_t tell_tried(const struct spokei_directory *directory, const struct spokei_ask *ask,
			 size_t places[TOLD_MAX])
{
	size_t skipped = ask->tried_count > TOLD_MAX ? ask->tried_count - TOLD_MAX : 0;
	size_t count = 0;

	for (size_t i = skipped; i < ask->tried_count; i++) {
		size_t place = find_id(&directory->candidates, ask->tried[i]);

		if (place != SPOKE_NO_ENDPOINT)
			places[count++] = place;
	}
	return count;
}

/* Asks the balancer. Returns an able place or SPOKE_NO_ENDPOINT. */
static inline size_t ask_once(struct spokei_directory *directory, const struct spokei_ask *ask,
			      struct spoke_balancer_choice *choice)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	struct spokei_balancer_state *state = ask->balancer_state;
	size_t place;

	choice->dice = dice_of(directory);
	if (SPOKEI_UNLIKELY(ask->view))
		state = spokei_view_state(ask->view, directory->engine->env, state->balancer);
	place = spokei_balancer_state_pick(state, directory->engine->env, &candidates->shown,
					   &candidates->changes, choice);
	return SPOKEI_LIKELY(place < candidates->shown.count && candidates->able[place])
		       ? place
		       : SPOKE_NO_ENDPOINT;
}

/* Asks the balancer. Returns an able, untried place or SPOKE_NO_ENDPOINT. */
static size_t ask_balancer(struct spokei_directory *directory, const struct spokei_ask *ask)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	size_t places[TOLD_MAX];
	struct spoke_balancer_choice choice = {
		.now_ns = directory->engine->begin_ns,
		.timeout_ns = ask->timeout_ns,
		.key = ask->key,
		.tried = places,
	};

	choice.tried_count = tell_tried(directory, ask, places);
	for (unsigned i = 0; i < ASKED_MAX; i++) {
		size_t place = ask_once(directory, ask, &choice);
		size_t hint = 0;

		if (place == SPOKE_NO_ENDPOINT ||
		    !was_tried(ask->tried, ask->tried_count, candidates->ids[place], &hint))
			return place;
	}
	return SPOKE_NO_ENDPOINT;
}

static size_t stick(const struct spokei_directory *directory, const struct spokei_ask *ask)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	size_t hint = 0;
	size_t place;

	if (*ask->sticky == 0 || was_tried(ask->tried, ask->tried_count, *ask->sticky, &hint))
		return SPOKE_NO_ENDPOINT;
	place = find_id(candidates, *ask->sticky);
	if (place == SPOKE_NO_ENDPOINT || !candidates->able[place])
		return SPOKE_NO_ENDPOINT;
	return place;
}

/* Chooses in turn, without a balancer. */
static size_t take_turn(struct spokei_directory *directory, const struct spokei_ask *ask,
			uint8_t rank)
{
	size_t place = find(directory, ask, directory->turn, rank);

	directory->turn = place + 1;
	return place;
}

/* Prefers untried places and the sticky endpoint. */
static SPOKEI_NOINLINE size_t prefer(struct spokei_directory *directory,
				     const struct spokei_ask *ask)
{
	const struct spokei_candidates *candidates = field_of(directory, ask);
	struct spokei_ask anew = *ask;
	uint8_t rank = best_fresh(directory, ask);
	size_t place = SPOKE_NO_ENDPOINT;

	if (rank >= SPOKEI_RANK_FULL) {
		rank = candidates->best;
		anew.tried_count = 0;
	}
	if (ask->sticky && rank == candidates->best)
		place = stick(directory, &anew);
	if (place != SPOKE_NO_ENDPOINT)
		return place;
	if (ask->balancer_state == NULL)
		return find_listed(directory, &anew, rank);
	if (ask->balancer_state->balancer && rank == candidates->best)
		place = ask_balancer(directory, &anew);
	return place != SPOKE_NO_ENDPOINT ? place : take_turn(directory, &anew, rank);
}

/* Chooses a place; at least one can take the call. */
static inline size_t choose(struct spokei_directory *directory, const struct spokei_ask *ask)
{
	size_t place = SPOKE_NO_ENDPOINT;

	if (SPOKEI_UNLIKELY(ask->tried_count > 0 || ask->sticky))
		return prefer(directory, ask);
	if (SPOKEI_UNLIKELY(ask->balancer_state == NULL))
		return find_listed(directory, ask, field_of(directory, ask)->best);
	if (SPOKEI_LIKELY(ask->balancer_state->balancer)) {
		struct spoke_balancer_choice choice = {
			.now_ns = directory->engine->begin_ns,
			.timeout_ns = ask->timeout_ns,
			.key = ask->key,
		};

		place = ask_once(directory, ask, &choice);
	}
	return SPOKEI_LIKELY(place != SPOKE_NO_ENDPOINT)
		       ? place
		       : take_turn(directory, ask, field_of(directory, ask)->best);
}

/* --- result */

/* Returns the connection of the chosen place; NULL if its grade has dropped since the refresh. */
static inline int reach(struct spokei_directory *directory, size_t place,
			struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *endpoint = directory->candidates.endpoints[place];
	enum spokei_grade noted = directory->candidates.ranks[place] % SPOKEI_RANK_ASIDE;
	enum spokei_grade grade;
	struct spokei_conn *conn;

	if (SPOKEI_UNLIKELY(endpoint->asleep)) {
		int error = spokei_endpoint_wake(endpoint);

		if (error)
			return spokei_link_refused(directory->link, error,
						   SPOKEI_REFUSED_BY_TIMERS);
		/* This call woke it. */
		noted = SPOKEI_GRADE_CONNECTING;
	}
	conn = spokei_endpoint_conn(endpoint, &grade);
	*ret_conn = grade <= noted ? conn : NULL;
	return SPOKE_OK;
}

/* Returns 0 without a connection if the arrays were outdated. */
static inline int pick_once(struct spokei_directory *directory, const struct spokei_ask *ask,
			    struct spokei_endpoint **ret_endpoint, struct spokei_conn **ret_conn)
{
	size_t place;
	int error;

	*ret_conn = NULL;
	look(directory);
	if (SPOKEI_UNLIKELY(ask->view))
		spokei_view_follow(ask->view, directory);
	if (SPOKEI_UNLIKELY(field_of(directory, ask)->usable == 0))
		return refusal(directory, field_of(directory, ask));
	place = choose(directory, ask);
	/* Otherwise a user's balancer has changed the list. */
	if (SPOKEI_LIKELY(place != SPOKE_NO_ENDPOINT)) {
		error = reach(directory, place, ret_conn);
		if (SPOKEI_UNLIKELY(error))
			return error;
	}
	if (SPOKEI_UNLIKELY(*ret_conn == NULL)) {
		if (place != SPOKE_NO_ENDPOINT)
			spokei_directory_note(directory->candidates.endpoints[place]);
		else
			spokei_directory_refresh_later(directory);
		return SPOKE_OK;
	}
	*ret_endpoint = directory->candidates.endpoints[place];
	if (SPOKEI_UNLIKELY(ask->sticky))
		*ask->sticky = (*ret_endpoint)->id;
	return SPOKE_OK;
}

static SPOKEI_NOINLINE int pick_again(struct spokei_directory *directory,
				      const struct spokei_ask *ask,
				      struct spokei_endpoint **ret_endpoint,
				      struct spokei_conn **ret_conn)
{
	/* Each iteration but the last wakes a sleeping endpoint. */
	for (size_t looks = directory->candidates.shown.count + 1; looks > 0; looks--) {
		int error = pick_once(directory, ask, ret_endpoint, ret_conn);

		if (error || *ret_conn)
			return error;
	}
	return SPOKE_EUNAVAILABLE;
}

int spokei_directory_pick(struct spokei_directory *directory, const struct spokei_ask *ask,
			  struct spokei_endpoint **ret_endpoint, struct spokei_conn **ret_conn)
{
	int error = pick_once(directory, ask, ret_endpoint, ret_conn);

	if (SPOKEI_LIKELY(error || *ret_conn))
		return error;
	return pick_again(directory, ask, ret_endpoint, ret_conn);
}

bool spokei_directory_full(struct spokei_endpoint *endpoint)
{
	struct spokei_directory *directory = endpoint->directory;

	/* A single endpoint is used anyway. */
	if (directory->candidates.shown.count < 2)
		return false;
	endpoint->full_ns = directory->engine->begin_ns + FULL_NS;
	spokei_directory_note(endpoint);
	look(directory);
	return directory->candidates.usable > 0;
}

/* Counts the tried endpoints that can take a call. An id may occur several times. */
static uint32_t count_tried(const struct spokei_candidates *candidates, const uint64_t *tried,
			    size_t tried_count)
{
	uint32_t able = 0;

	for (size_t i = 0; i < tried_count; i++) {
		size_t hint = 0;
		size_t place = find_id(candidates, tried[i]);

		able += place != SPOKE_NO_ENDPOINT && candidates->ranks[place] < SPOKEI_RANK_FULL &&
			!was_tried(tried, i, tried[i], &hint);
	}
	return able;
}

void spokei_directory_count(struct spokei_directory *directory, struct spokei_view *view,
			    const uint64_t *tried, size_t tried_count, uint32_t *ret_able,
			    uint32_t *ret_fresh)
{
	const struct spokei_candidates *candidates = view ? &view->candidates
							  : &directory->candidates;
	uint32_t fresh = 0;
	size_t hint = 0;

	look(directory);
	if (view)
		spokei_view_follow(view, directory);
	*ret_able = (uint32_t)candidates->usable;
	*ret_fresh = *ret_able;
	/* This runs for every call with several attempts, so it avoids a loop over all
	 * endpoints. */
	if (SPOKEI_LIKELY(tried_count <= FEW_TRIED)) {
		*ret_fresh -= count_tried(candidates, tried, tried_count);
		return;
	}
	for (size_t i = 0; i < candidates->shown.count; i++)
		fresh += candidates->ranks[i] < SPOKEI_RANK_FULL &&
			 !was_tried(tried, tried_count, candidates->ids[i], &hint);
	*ret_fresh = fresh;
}

/* --- outcomes: health, ejection, load */

/* A lost connection ends all its attempts in one turn; they count as one failure. */
static bool is_another_loss(struct spokei_endpoint *endpoint)
{
	uint64_t now_ns = endpoint->engine->begin_ns;

	if (endpoint->lost_ns == now_ns)
		return true;
	endpoint->lost_ns = now_ns;
	return false;
}

static void count_failure(struct spokei_endpoint *endpoint, int error, uint64_t begun_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	const struct spokei_eject_rule *rule = &directory->settings.eject;
	struct spokei_eject *eject = &endpoint->eject;
	uint64_t now_ns = endpoint->engine->begin_ns;
	uint64_t ended = count_ended(endpoint);
	bool alone = spokei_eject_near(eject, rule) && is_alone(directory, endpoint);
	bool rated = spokei_eject_rate(eject, rule, ended, now_ns);

	if (spokei_eject_failed(eject, rule, begun_ns, now_ns, alone, dice_of(directory))) {
		spokei_event(endpoint->engine, error,
			     "%s: ejected after failures for %" PRIu64 " ms", endpoint->name,
			     ejected_ms(endpoint));
	} else if (rated && eject_outlier(directory, endpoint, rule)) {
		spokei_event(endpoint->engine, error,
			     "%s: ejected for %" PRIu64 " ms after %" PRIu32 " failures of %" PRIu64
			     " attempts",
			     endpoint->name, ejected_ms(endpoint), eject->errors.failed,
			     ended - eject->errors.ended);
	} else {
		return;
	}
	spokei_directory_note(endpoint);
}

/* Counts a success of an endpoint that is ejected, or was. */
static SPOKEI_NOINLINE void readmit(struct spokei_endpoint *endpoint, uint64_t begun_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	const struct spokei_eject_rule *rule = &directory->settings.eject;

	if (!spokei_eject_answered(&endpoint->eject, rule, begun_ns, endpoint->engine->begin_ns))
		return;
	spokei_event(endpoint->engine, SPOKE_OK, "%s: answers again, no longer ejected",
		     endpoint->name);
	spokei_directory_note(endpoint);
}

/* Returns when an attempt began that has ended now. */
static uint64_t begin_of(const struct spokei_endpoint *endpoint, uint64_t took_ns)
{
	uint64_t now_ns = endpoint->engine->begin_ns;

	return took_ns < now_ns ? now_ns - took_ns : 0;
}

static inline void count_success(struct spokei_endpoint *endpoint, uint64_t took_ns)
{
	spokei_score_ended(&endpoint->score, false);
	spokei_score_answered(&endpoint->score, took_ns, endpoint->engine->begin_ns);
	if (SPOKEI_UNLIKELY(spokei_eject_remembers(&endpoint->eject)))
		readmit(endpoint, begin_of(endpoint, took_ns));
	else
		endpoint->eject.row = 0;
}

/* Counts an attempt that was not answered with a value. */
static SPOKEI_NOINLINE void count_error(struct spokei_endpoint *endpoint, int error,
					uint64_t took_ns)
{
	enum spokei_error_blame blame = (enum spokei_error_blame)spokei_error_of(error)->blame;

	if (blame == SPOKEI_BLAME_ANSWER) {
		count_success(endpoint, took_ns);
		return;
	}
	if (blame == SPOKEI_BLAME_NONE) {
		spokei_eject_over(&endpoint->eject);
		return;
	}
	spokei_score_ended(&endpoint->score, true);
	endpoint->failures++;
	if (blame == SPOKEI_BLAME_REFUSAL ||
	    (blame == SPOKEI_BLAME_LOSS && is_another_loss(endpoint)))
		spokei_eject_over(&endpoint->eject);
	else
		count_failure(endpoint, error, begin_of(endpoint, took_ns));
}

void spokei_directory_ended(struct spokei_endpoint *endpoint, int error, uint64_t took_ns)
{
	struct spokei_directory *directory = endpoint->directory;
	struct spokei_candidates *candidates = &directory->candidates;

	SPOKE_ASSERT(endpoint->actives > 0);
	endpoint->actives--;
	if (SPOKEI_UNLIKELY(endpoint->place == SPOKEI_NOWHERE)) {
		spokei_endpoint_free_if_over(endpoint);
		return;
	}
	if (SPOKEI_LIKELY(error == SPOKE_OK))
		count_success(endpoint, took_ns);
	else
		count_error(endpoint, error, took_ns);
	candidates->actives[endpoint->place] = endpoint->actives;
	candidates->means_ns[endpoint->place] = endpoint->score.mean_ns;
	candidates->successes[endpoint->place] = endpoint->score.successes;
	spokei_candidates_moved(candidates, endpoint->place);
	if (SPOKEI_UNLIKELY(endpoint->actives + 1 == directory->settings.actives_max ||
			    endpoint->eject.aside))
		spokei_directory_note(endpoint);
}
