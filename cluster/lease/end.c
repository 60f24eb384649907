/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the decider's verdict after each event of a lease, and calls the user. */
#include "cluster/lease/parts.h"
#include "cluster/lease/use.h"
#include "core/base/log.h"
#include "core/base/pace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define EVENT_NAME 96u /* bytes of an escaped name */
#define EVENT_TEXT 160u

const struct spokei_lease_words spokei_lease_no_words;

void spokei_lease_event(const struct spokei_lease *lease, int error, const char *format, ...)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	char escaped[EVENT_NAME];
	char text[EVENT_TEXT];
	va_list args;

	if (!spokei_bucket_take(leases->events, 1, leases->engine->begin_ns))
		return;
	(void)spokei_log_escape(escaped, sizeof(escaped), name.data, name.len);
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, error, "lease \"%s\" %s", escaped,
			text);
}

/* --- calls to the user */

static void tell_ask(struct spokei_lease *lease, const struct spokei_lease_words *words)
{
	struct spoke_engine *engine = lease->leases->engine;
	struct spoke_lease_answer answer = { .error = lease->error };

	if (answer.error == SPOKE_OK) {
		answer.fence = lease->life.fence;
		spokei_count(engine, SPOKE_STAT_LEASES_HELD);
		spokei_lease_event(lease, SPOKE_OK, "is held, fence %" PRIu64, answer.fence);
	} else {
		spokei_count(engine, SPOKE_STAT_LEASES_FAILED);
	}
	if (words) {
		answer.text = words->text;
		answer.left_ns = words->left_ns;
	}
	lease->told(lease->arg, spokei_lease_public(lease), &answer);
}

static void tell_lost(struct spokei_lease *lease)
{
	enum spoke_lease_loss why = (enum spoke_lease_loss)lease->error;

	spokei_count(lease->leases->engine, SPOKE_STAT_LEASES_LOST);
	spokei_lease_event(lease, why == SPOKE_LEASE_CLOSED ? SPOKE_OK : SPOKE_ELEASE,
			   "was lost: %s", spoke_lease_loss_name(why));
	if (lease->lost)
		lease->lost(lease->arg, spokei_lease_public(lease), why);
}

/* The one place where users are called with the answer to an ask, or a loss. */
static void tell(struct spokei_lease *lease, const struct spokei_lease_words *words)
{
	enum spokei_lease_tell what = (enum spokei_lease_tell)lease->tell;

	lease->tell = SPOKEI_LEASE_TELL_NOTHING;
	if (what == SPOKEI_LEASE_TELL_LOST)
		tell_lost(lease);
	else if (what != SPOKEI_LEASE_TELL_NOTHING)
		tell_ask(lease, words);
}

void spokei_lease_finish(struct spokei_lease *lease, int error)
{
	spoke_lease_released_fn done = lease->done;
	void *arg = lease->done_arg;

	spokei_lease_unlist(lease);
	spokei_lease_cell_give(lease);
	if (done)
		done(arg, error);
}

/* Goes on with a lease that has ended for its user: it is released in the store, or freed. */
static void go_on(struct spokei_lease *lease)
{
	if (lease->node.next)
		return; /* the callback has ended all leases: see spoke_leases_free() */
	if (lease->leases->ended)
		spokei_lease_finish(lease, SPOKE_ECLOSED);
	else if (lease->life.state == SPOKEI_LEASE_OVER)
		spokei_lease_finish(lease, SPOKE_OK);
	else
		spokei_lease_todo(lease);
}

void spokei_leases_tell(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, tell);
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&leases->news, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spokei_lease *lease = spokei_lease_at(spokei_list_first(&batch));

		spokei_list_remove(&lease->node);
		tell(lease, NULL);
		go_on(lease);
	}
}

/* Calls the user now, or by a task. The lease has ended, or is held. */
static void announce(struct spokei_lease *lease, const struct spokei_lease_words *words)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	if (words == NULL) {
		spokei_list_append(&leases->news, &lease->node);
		spokei_engine_soon(leases->engine, &leases->tell);
		return;
	}
	tell(lease, words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state > SPOKEI_LEASE_HELD)
		go_on(lease);
}

/* --- beginning and end of a lease */

static void ask_ends(struct spokei_lease *lease)
{
	struct spokei_lease_line *line = lease->line;
	uint64_t retry_ns;

	lease->leases->asks--;
	if (line == NULL) {
		spokei_lease_unlist(lease);
		return;
	}
	/* The next one need not ask while this process holds the lease. */
	if (lease->life.state == SPOKEI_LEASE_HELD) {
		retry_ns = spokei_leases_now(lease->leases);
		line->retry_ns = retry_ns + spokei_lease_ttl_ns(&lease->life);
		line->woken = false;
	}
	spokei_lease_line_leave(lease);
}

static void holding_begins(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	const struct spokei_lease_life *life = &lease->life;

	leases->held++;
	lease->granted = true;
	lease->uses = NULL;
	if (leases->held == 1 || life->end_ns < leases->earliest_ns)
		leases->earliest_ns = life->end_ns;
	spokei_early_add(leases->engine, &leases->early);
	(void)spokei_lease_arm(lease,
			       life->fixed ? life->end_ns
					   : spokei_lease_renewal_due(life->sent_ns,
								      spokei_lease_ttl_ns(life)));
}

static void holding_ends(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	leases->held--;
	spokei_lease_uses_end(&lease->uses);
	lease->done = NULL;
	spokei_lease_unlist(lease);
	if (leases->held == 0)
		spokei_early_drop(&leases->early);
}

/* Adapts lists, counters and the timer to the new state. */
static void change(struct spokei_lease *lease, enum spokei_lease_state from, bool was_ask)
{
	if (was_ask && !spokei_lease_is_ask(&lease->life))
		ask_ends(lease);
	if (from == SPOKEI_LEASE_HELD && lease->life.state != SPOKEI_LEASE_HELD)
		holding_ends(lease);
	if (lease->life.state == SPOKEI_LEASE_HELD && from != SPOKEI_LEASE_HELD)
		holding_begins(lease);
	/* A RELEASE that is under way still counts when the user cancels meanwhile. */
	if (lease->life.state != from && from != SPOKEI_LEASE_RETURNING)
		lease->under = false;
	if (lease->life.state == SPOKEI_LEASE_RELEASING)
		(void)spokei_lease_arm(lease, lease->life.end_ns);
}

/* Writes the end of validity for other threads. A lease that is over has no mirror any more: its
 * owner may be gone while a RELEASE is under way. */
static void write_mirror(struct spokei_lease *lease)
{
	struct spokei_lease_mirror *mirror = lease->arg;
	bool held = lease->life.state == SPOKEI_LEASE_HELD;

	atomic_store_explicit(&mirror->end_ns, held ? lease->life.end_ns : 0, memory_order_release);
	lease->mirrored = held || spokei_lease_is_ask(&lease->life);
}

void spokei_lease_happen(struct spokei_lease *lease, const struct spokei_lease_news *news,
			 const struct spokei_lease_words *words)
{
	enum spokei_lease_state from = (enum spokei_lease_state)lease->life.state;
	bool was_ask = spokei_lease_is_ask(&lease->life);
	struct spokei_lease_verdict verdict = spokei_lease_step(&lease->life,
								spokei_lease_guard(lease), news);

	if (lease->mirrored)
		write_mirror(lease);
	if (lease->life.state == from)
		return;
	change(lease, from, was_ask);
	lease->tell = (uint8_t)verdict.tell;
	lease->error = (int16_t)(verdict.tell == SPOKEI_LEASE_TELL_LOST ? (int)verdict.why
									: verdict.error);
	if (verdict.tell != SPOKEI_LEASE_TELL_NOTHING)
		announce(lease, words);
	else if (lease->life.state == SPOKEI_LEASE_RETURNING)
		spokei_lease_line_todo(lease->line);
	else if (lease->life.state == SPOKEI_LEASE_RELEASING)
		spokei_lease_todo(lease);
}

void spokei_lease_happen_now(struct spokei_lease *lease, enum spokei_lease_event event,
			     const struct spokei_lease_words *words)
{
	const struct spokei_lease_news news = {
		.event = event,
		.now_ns = spokei_leases_now(lease->leases),
	};

	spokei_lease_happen(lease, &news, words);
}

/* --- the check of validity */

/* A lease ends here, before anything is read in this turn, even if the process was frozen. */
static void expire(struct spoke_leases *leases, uint64_t now_ns)
{
	const struct spokei_lease_news news = { .event = SPOKEI_LEASE_PASS, .now_ns = now_ns };
	uint64_t earliest_ns = UINT64_MAX;

	for (uint32_t i = 0; i < leases->cells.used && !leases->ended; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		uint64_t end_ns = lease->life.end_ns;

		if (lease->life.state != SPOKEI_LEASE_HELD)
			continue;
		if (now_ns < end_ns)
			earliest_ns = end_ns < earliest_ns ? end_ns : earliest_ns;
		else
			spokei_lease_happen(lease, &news, &spokei_lease_no_words);
	}
	leases->earliest_ns = earliest_ns;
}

void spokei_leases_early(struct spokei_early *early)
{
	struct spoke_leases *leases = spoke_container_of(early, struct spoke_leases, early);
	uint64_t now_ns = spokei_lease_clock_at(&leases->clock, leases->engine->begin_ns);

	if (SPOKEI_UNLIKELY(now_ns >= leases->earliest_ns))
		expire(leases, now_ns);
}
