/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leases of one engine at one store: the memory of each, the consequences of each event, the
 * calls to users, renewals, timers, the events of the store, and the life of all.
 */
#include "cluster/lease/parts.h"
#include "cluster/lease/script.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/use.h"
#include "cluster/lease/view.h"
#include "core/base/log.h"
#include "core/base/pace.h"
#include "core/engine/desk.h"
#include "core/engine/roll.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define PAUSE_MIN_NS UINT64_C(50000000)
#define PAUSE_SPAN_NS UINT64_C(200000000)
#define ARM_MAX_NS UINT64_C(86400000000000) /* leases that wait for ever look once a day */
#define EVENT_NAME 96u                      /* bytes of an escaped name */
#define EVENT_TEXT 160u
#define AGAIN_GRID_NS UINT64_C(50000000)
#define EVENTS_A_SECOND 10u
#define COMMANDS_MORE 64u
#define SEARCHED 4096u /* cells, at most */

/* Leases with the parts of them that only this file knows. */
struct block {
	struct spoke_leases leases;
	struct spokei_lease_settings settings;
	struct spokei_member member;
	struct spokei_bucket events; /* limits events about single leases */
};

static struct block *block_of(struct spoke_leases *leases)
{
	return spoke_container_of(leases, struct block, leases);
}

/* --- memory, texts and timer of one lease */

_Static_assert(sizeof(struct spokei_lease) <= 176, "a lease needs 192 bytes with its head");

int spokei_lease_cell_take(struct spoke_leases *leases, struct spoke_span name,
			   struct spokei_lease **ret_lease)
{
	const struct spoke_env *env = leases->engine->env;
	char *block = NULL;
	uint64_t handle;
	void *cell;
	int error;

	if (name.len > SPOKEI_LEASE_NAME_SHORT) {
		block = spokei_alloc(env, 1, name.len);
		if (block == NULL)
			return SPOKE_ENOMEM;
		memcpy(block, name.data, name.len);
	}
	error = spokei_slab_take(&leases->cells, &cell, &handle);
	if (error) {
		spokei_free(env, block, 1, name.len);
		return error;
	}
	*ret_lease = cell;
	**ret_lease = (struct spokei_lease){
		.leases = leases,
		.handle = handle,
		.name_len = (uint16_t)name.len,
		.name.block = block,
	};
	if (block == NULL)
		memcpy((*ret_lease)->name.bytes, name.data, name.len);
	return SPOKE_OK;
}

void spokei_lease_cell_give(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	SPOKE_ASSERT(lease->node.next == NULL);
	(void)spoke_wheel_cancel(leases->engine->wheel, &lease->timer);
	if (lease->name_len > SPOKEI_LEASE_NAME_SHORT)
		spokei_free(leases->engine->env, lease->name.block, 1, lease->name_len);
	lease->life.state = SPOKEI_LEASE_NONE;
	spokei_slab_give(&leases->cells, handle);
	if (leases->cells.count == 0 && leases->draining && !leases->ended)
		spokei_engine_soon(leases->engine, &leases->rest);
}

struct spoke_span spokei_lease_holder(const struct spokei_lease *lease,
				      char to[SPOKEI_LEASE_HOLDER])
{
	int len;

	memcpy(to, lease->leases->uuid, SPOKEI_LEASE_UUID);
	len = snprintf(to + SPOKEI_LEASE_UUID, SPOKEI_LEASE_HOLDER - SPOKEI_LEASE_UUID, ":%" PRIu64,
		       lease->handle);
	return (struct spoke_span){ to, SPOKEI_LEASE_UUID + (size_t)len };
}

bool spokei_lease_arm(struct spokei_lease *lease, uint64_t at_ns)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_wheel *wheel = leases->engine->wheel;
	uint64_t engine_ns = leases->clock.env->now(leases->clock.env->ctx);
	uint64_t now_ns = spokei_lease_clock_at(&leases->clock, engine_ns);
	uint64_t due_ns;

	if (at_ns > lease->life.end_ns)
		at_ns = lease->life.end_ns;
	if (at_ns > now_ns + ARM_MAX_NS)
		at_ns = now_ns + ARM_MAX_NS;
	/* The wheel follows the engine's clock, which does not count sleep of the machine. */
	due_ns = at_ns > now_ns ? engine_ns + (at_ns - now_ns) : engine_ns;
	if (spoke_timer_armed(&lease->timer))
		return spoke_wheel_reschedule(wheel, &lease->timer, due_ns) == SPOKE_WHEEL_OK;
	return spoke_wheel_schedule(wheel, &lease->timer, leases->timer_class, due_ns) ==
	       SPOKE_WHEEL_OK;
}

uint64_t spokei_leases_pause(const struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return PAUSE_MIN_NS + dice % PAUSE_SPAN_NS;
}

/* --- events for people */

const struct spokei_lease_words spokei_lease_no_words;

void spokei_lease_event(const struct spokei_lease *lease, int error, const char *format, ...)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	char escaped[EVENT_NAME];
	char text[EVENT_TEXT];
	va_list args;

	if (!spokei_bucket_take(&block_of(leases)->events, 1, leases->engine->begin_ns))
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

/* Releases a lease in the store, or frees it, after its user was told that it has ended. */
static void after_end(struct spokei_lease *lease)
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

static void tell_all(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, tell);
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&leases->news, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spokei_lease *lease = spokei_lease_at(spokei_list_first(&batch));

		spokei_list_remove(&lease->node);
		tell(lease, NULL);
		after_end(lease);
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
		after_end(lease);
}

/* --- beginning and end of a lease */

static void ask_ends(struct spokei_lease *lease)
{
	struct spokei_lease_line *line = lease->line;
	uint64_t retry_ns;

	lease->leases->asks--;
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
	struct spokei_lease_verdict verdict =
		spokei_lease_step(&lease->life, lease->leases->settings->guard_ns, news);

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

static void check_validity(struct spokei_early *early)
{
	struct spoke_leases *leases = spoke_container_of(early, struct spoke_leases, early);
	uint64_t now_ns = spokei_lease_clock_at(&leases->clock, leases->engine->begin_ns);

	if (SPOKEI_UNLIKELY(now_ns >= leases->earliest_ns))
		expire(leases, now_ns);
}

/* --- renewals
 *
 * Those that are due in one turn are renewed by as few scripts as possible. A renewal that is not
 * answered is repeated until the validity of the lease ends. */

static void batch_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);

static void renew_soon(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (lease->under || lease->node.next)
		return;
	spokei_list_append(&leases->due, &lease->node);
	spokei_engine_soon(leases->engine, &leases->work);
}

/* --- sending renewals */

static struct spokei_lease_batch *find_free(struct spoke_leases *leases)
{
	for (unsigned i = 0; i < SPOKEI_LEASE_BATCHES; i++) {
		if (!leases->batches[i].busy)
			return &leases->batches[i];
	}
	return NULL;
}

/* Collects leases that are due. */
static void collect(struct spokei_lease_batch *batch)
{
	struct spoke_list *due = &batch->leases->due;
	struct spoke_list *node = due->next;

	batch->count = 0;
	while (node != due && batch->count < SPOKEI_SCRIPT_RENEW_MAX) {
		batch->handles[batch->count++] = spokei_lease_at(node)->handle;
		node = node->next;
	}
}

static struct spokei_lease *member_of(const struct spokei_lease_batch *batch, uint32_t i)
{
	return spokei_slab_get(&batch->leases->cells, batch->handles[i]);
}

static bool send_batch(struct spokei_lease_batch *batch)
{
	struct spoke_leases *leases = batch->leases;
	char holder[SPOKEI_LEASE_HOLDER];

	batch->sent_ns = spokei_leases_now(leases);
	spokei_redis_begin(leases->redis, SPOKEI_SCRIPT_RENEW, batch->count, 3 * batch->count);
	for (uint32_t i = 0; i < batch->count; i++)
		spokei_redis_text(leases->redis, spokei_lease_name_of(member_of(batch, i)));
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct spokei_lease *lease = member_of(batch, i);

		spokei_redis_text(leases->redis, spokei_lease_holder(lease, holder));
		spokei_redis_number(leases->redis, lease->life.ttl_ms);
	}
	return spokei_redis_send(leases->redis, &batch->ask) == SPOKE_OK;
}

/* Returns when to repeat renewals that failed, a pause after now, rounded up, so that batches that
 * failed at about the same time become one again. */
static uint64_t again_at(const struct spoke_leases *leases)
{
	uint64_t at_ns = spokei_leases_now(leases) + spokei_leases_pause(leases);

	return at_ns + AGAIN_GRID_NS - at_ns % AGAIN_GRID_NS;
}

/* Takes the leases of a batch off the list: they are under way, or wait for a while. */
static void mark(struct spokei_lease_batch *batch, bool sent)
{
	uint64_t again_ns = again_at(batch->leases);

	batch->busy = sent;
	for (uint32_t i = 0; i < batch->count; i++) {
		struct spokei_lease *lease = member_of(batch, i);

		spokei_list_remove(&lease->node);
		lease->under = sent;
		if (sent)
			spokei_lease_renews(&lease->life, batch->sent_ns);
		(void)spokei_lease_arm(lease, sent ? UINT64_MAX : again_ns);
	}
}

static void renew_all(struct spoke_leases *leases)
{
	while (!spokei_list_empty(&leases->due) && spokei_redis_is_ready(leases->redis)) {
		struct spokei_lease_batch *batch = find_free(leases);

		if (batch == NULL)
			return; /* the next answer makes room */
		batch->leases = leases;
		batch->ask.done = batch_done;
		collect(batch);
		mark(batch, send_batch(batch));
	}
}

/* Sends the commands that are due. */
static void work(struct spoke_leases *leases)
{
	renew_all(leases);
	spokei_leases_send(leases);
}

static void work_due(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, work);

	if (!leases->ended)
		work(leases);
}

/* --- answers to renewals */

enum result {
	UNKNOWN, /* not answered, or not confirmed: it is repeated */
	GONE,
	RENEWED,
};

static void take_error(struct spoke_leases *leases, struct spoke_span text)
{
	char escaped[128];

	switch (spokei_refusal_of(text)) {
	case SPOKEI_REFUSAL_ELSEWHERE:
		spokei_redis_restart(leases->redis, "the server is no primary");
		return;
	case SPOKEI_REFUSAL_REFUSED:
		if (!spokei_bucket_take(&block_of(leases)->events, 1, leases->engine->begin_ns))
			return;
		text = spokei_refusal_text(text);
		(void)spokei_log_escape(escaped, sizeof(escaped), text.data, text.len);
		spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, SPOKE_ESTORE,
				"renewals of leases were refused: %s", escaped);
		return;
	case SPOKEI_REFUSAL_AGAIN:
	case SPOKEI_REFUSAL_RELOAD:
	default:
		return;
	}
}

/* Reads the results, as many as the batch has leases; all are UNKNOWN if that is not the answer. */
static void read_results(struct spokei_lease_batch *batch, int error,
			 struct spokei_resp_cursor reply, enum result *results)
{
	struct spoke_leases *leases = batch->leases;
	struct spokei_resp_value value;
	int64_t number;

	memset(results, 0, SPOKEI_SCRIPT_RENEW_MAX * sizeof(*results));
	if (error || !spokei_resp_next(&reply, &value))
		return;
	if (value.kind == SPOKEI_RESP_ERROR) {
		take_error(leases, value.text);
		return;
	}
	for (uint32_t i = 0; i < batch->count && spokei_resp_next_number(&reply, &number); i++) {
		results[i] = number == 0 ? GONE : RENEWED;
	}
}

static void take_result(struct spokei_lease *lease, uint64_t sent_ns, enum result result,
			uint64_t next_ns)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;
	struct spokei_lease_news news = {
		.event = result == GONE ? SPOKEI_LEASE_DISOWN : SPOKEI_LEASE_CONFIRM,
		.now_ns = spokei_leases_now(leases),
		.sent_ns = sent_ns,
	};

	lease->under = false;
	if (result == RENEWED) {
		next_ns = spokei_lease_renewal_due(sent_ns, spokei_lease_ttl_ns(&lease->life));
		spokei_count(leases->engine, SPOKE_STAT_LEASE_RENEWALS);
	}
	if (result != UNKNOWN)
		spokei_lease_happen(lease, &news, &spokei_lease_no_words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_HELD)
		(void)spokei_lease_arm(lease, next_ns);
}

static void batch_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct spokei_lease_batch *batch = spoke_container_of(ask, struct spokei_lease_batch, ask);
	struct spoke_leases *leases = batch->leases;
	uint64_t again_ns = again_at(leases);
	enum result results[SPOKEI_SCRIPT_RENEW_MAX];

	read_results(batch, error, reply, results);
	for (uint32_t i = 0; i < batch->count && !leases->ended; i++) {
		struct spokei_lease *lease = member_of(batch, i);

		if (lease && lease->life.state == SPOKEI_LEASE_HELD)
			take_result(lease, batch->sent_ns, results[i], again_ns);
	}
	batch->busy = false;
	if (!leases->ended)
		spokei_engine_soon(leases->engine, &leases->work);
}

/* --- timers */

/* The time of a lease is over. */
static void end_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	spokei_lease_happen_now(lease, SPOKEI_LEASE_PASS, &spokei_lease_no_words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER && lease->node.next == NULL)
		spokei_lease_finish(lease, SPOKE_EUNAVAILABLE);
}

/* Has a lease do what its state demands: try, renew, release. */
static void go_on(struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_HELD:
		if (!lease->life.fixed)
			renew_soon(lease);
		break;
	case SPOKEI_LEASE_WAITING:
	case SPOKEI_LEASE_RETURNING:
		if (spokei_lease_is_first(lease))
			spokei_lease_line_todo(lease->line);
		break;
	case SPOKEI_LEASE_RELEASING:
		if (!lease->under && lease->node.next == NULL)
			spokei_lease_todo(lease);
		break;
	case SPOKEI_LEASE_NONE:
	case SPOKEI_LEASE_ASKING:
	case SPOKEI_LEASE_OVER:
	case SPOKEI_LEASE_STATES:
	default:
		break;
	}
}

/* The timer is armed again first, while its place on the wheel is free for sure. */
static void lease_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_lease *lease = spoke_container_of(timer, struct spokei_lease, timer);

	(void)arg;
	(void)spokei_lease_arm(lease, UINT64_MAX);
	if (spokei_leases_now(lease->leases) >= lease->life.end_ns)
		end_lease(lease);
	else
		go_on(lease);
}

/* --- events of the store */

static void store_ready(void *arg)
{
	struct spoke_leases *leases = arg;

	leases->reached = true;
	leases->why[0] = '\0';
	leases->hold_ns = 0;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state != SPOKEI_LEASE_HELD)
			go_on(lease);
	}
	work(leases);
}

/* Asks that do not wait end with the second failure in a row: a connection that was lost may be
 * made again at once. */
static void store_down(void *arg, int error, struct spoke_span text)
{
	struct spoke_leases *leases = arg;
	const struct spokei_lease_words words = { .text = text };
	bool reached = leases->reached;

	(void)error;
	(void)snprintf(leases->why, sizeof(leases->why), "%.*s", (int)text.len,
		       (const char *)text.data);
	leases->reached = false;
	for (uint32_t i = 0; i < leases->cells.used && !reached && !leases->ended; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.once && spokei_lease_is_ask(&lease->life))
			spokei_lease_happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	}
}

static struct spokei_lease_line *line_of(struct spokei_redis_channel *channel)
{
	return spoke_container_of(channel, struct spokei_lease_line, channel);
}

/* A message before this moment may have been missed. */
static void store_subscribed(void *arg, struct spokei_redis_channel *channel)
{
	(void)arg;
	spokei_lease_line_wake(line_of(channel));
}

/* Any message on this channel, e.g. about a release, is worth a try. */
static void store_message(void *arg, struct spokei_redis_channel *channel,
			  struct spoke_span payload)
{
	(void)arg;
	(void)payload;
	spokei_lease_line_wake(line_of(channel));
}

static const struct spokei_redis_up redis_up = {
	.ready = store_ready,
	.down = store_down,
	.subscribed = store_subscribed,
	.message = store_message,
};

/* --- the end */

static void free_memory(struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;

	spokei_slab_fini(&leases->cells);
	spokei_slab_fini(&leases->commands);
	spokei_map_fini(&leases->lines);
	spokei_lease_settings_free(env, &block_of(leases)->settings);
	spokei_free(env, block_of(leases), 1, sizeof(struct block));
}

static void finalise(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, end);
	struct spokei_desk *desk = atomic_load_explicit(&leases->desk, memory_order_acquire);

	if (!spokei_list_empty(&leases->news) || leases->cells.count > 0 ||
	    (leases->freed && !spokei_desk_close(desk))) {
		spokei_engine_dead(leases->engine, task);
		return;
	}
	if (!leases->freed) {
		spokei_roll_retire(leases->engine, &block_of(leases)->member);
		return;
	}
	/* It may be queued with nothing to tell. */
	spokei_task_drop(&leases->tell);
	spokei_desk_drop(desk);
	spokei_roll_drop(leases->engine, &block_of(leases)->member);
	free_memory(leases);
}

/* Ends one lease; its user is called by a task. */
static void close_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	bool forked = spokei_engine_forked(leases->engine);

	spokei_lease_happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	if (lease->life.state == SPOKEI_LEASE_RELEASING && !forked &&
	    spokei_redis_is_ready(leases->redis))
		spokei_lease_send_release(lease);
	if (lease->tell == SPOKEI_LEASE_TELL_NOTHING && lease->node.next)
		spokei_list_remove(&lease->node);
	if (lease->node.next == NULL)
		spokei_list_append(&leases->news, &lease->node);
	(void)spoke_wheel_cancel(leases->engine->wheel, &lease->timer);
}

static void forget_commands(struct spoke_leases *leases)
{
	for (uint32_t i = 0; i < leases->commands.used; i++) {
		const struct spokei_lease_command *command = spokei_slab_at(&leases->commands, i);

		if (command->cell)
			spokei_slab_give(&leases->commands, command->cell);
	}
}

/* Ends everything. Commands under way are forgotten by the store, and so is their memory. */
static void end_leases(struct spoke_leases *leases)
{
	if (leases->ended)
		return;
	leases->draining = true;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state != SPOKEI_LEASE_NONE)
			close_lease(lease);
	}
	leases->ended = true;
	spokei_redis_free(leases->redis);
	leases->redis = NULL;
	forget_commands(leases);
	spokei_task_drop(&leases->work);
	spokei_task_drop(&leases->rest);
	spokei_early_drop(&leases->early);
	spokei_engine_soon(leases->engine, &leases->tell);
	spokei_engine_dead(leases->engine, &leases->end);
}

void spoke_leases_free(struct spoke_leases *leases)
{
	if (leases == NULL || leases->freed)
		return;
	spokei_engine_refresh(leases->engine);
	leases->freed = true;
	end_leases(leases);
	spokei_engine_dead(leases->engine, &leases->end);
}

static void leases_close(struct spokei_member *member)
{
	end_leases(spokei_leases_of(member));
}

static void leases_member_free(struct spokei_member *member)
{
	spoke_leases_free(spokei_leases_of(member));
}

static void leases_rest(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, rest);

	if (leases->cells.count == 0)
		end_leases(leases);
}

/* Leases that are held stay until they are released or lost. */
static void leases_drain(struct spokei_member *member)
{
	struct spoke_leases *leases = spokei_leases_of(member);

	leases->draining = true;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (spokei_lease_is_ask(&lease->life))
			spokei_lease_happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	}
	spokei_engine_soon(leases->engine, &leases->rest);
}

/* The store's clock went on while the machine slept: everything is due, and all timers are late.
 * The timers of leases that were ended before, in a callback of this turn, stay off. */
static void leases_woke(struct spokei_member *member)
{
	struct spoke_leases *leases = spokei_leases_of(member);

	if (leases->ended)
		return;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state == SPOKEI_LEASE_NONE ||
		    lease->life.state == SPOKEI_LEASE_OVER)
			continue;
		(void)spokei_lease_arm(lease, UINT64_MAX);
		go_on(lease);
	}
}

/* --- the beginning */

/* Makes a UUID of version 4: no two clients of a store have the same. */
static void make_uuid(const struct spoke_env *env, char to[SPOKEI_LEASE_UUID])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char dice[16];
	size_t at = 0;

	env->dice(env->ctx, dice, sizeof(dice));
	dice[6] = (unsigned char)((dice[6] & 0x0f) | 0x40);
	dice[8] = (unsigned char)((dice[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(dice); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			to[at++] = '-';
		to[at++] = digits[dice[i] >> 4];
		to[at++] = digits[dice[i] & 15];
	}
	SPOKE_ASSERT(at == SPOKEI_LEASE_UUID);
}

static void init_leases(struct spoke_leases *leases)
{
	struct spoke_engine *engine = leases->engine;
	const struct spoke_env *env = engine->env;

	spokei_lease_clock_init(&leases->clock, env);
	make_uuid(env, leases->uuid);
	spokei_slab_init_lasting(&leases->cells, env, sizeof(struct spokei_lease),
				 leases->settings->max);
	spokei_slab_init_lasting(&leases->commands, env, sizeof(struct spokei_lease_command),
				 leases->settings->max + COMMANDS_MORE);
	spokei_map_init(&leases->lines, env);
	spokei_list_init(&leases->todo);
	spokei_list_init(&leases->lines_todo);
	spokei_list_init(&leases->due);
	spokei_list_init(&leases->news);
	leases->work.run = work_due;
	leases->tell.run = tell_all;
	leases->rest.run = leases_rest;
	leases->end.run = finalise;
	leases->early.begin = check_validity;
	leases->patience_ns = spokei_lease_patience(leases->settings->ttl_ns);
	block_of(leases)->events = spokei_bucket_make(EVENTS_A_SECOND, EVENTS_A_SECOND,
						      engine->begin_ns);
	block_of(leases)->member = (struct spokei_member){
		.kind = spokei_leases_kind,
		.close = leases_close,
		.drain = leases_drain,
		.woke = leases_woke,
		.free = leases_member_free,
	};
}

static int leases_new(struct spoke_engine *engine, const struct spoke_leases_options *options,
		      struct spoke_leases **ret_leases)
{
	struct spoke_leases *leases;
	struct block *block;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	block = spokei_alloc(engine->env, 1, sizeof(*block));
	if (block == NULL)
		return SPOKE_ENOMEM;
	leases = &block->leases;
	leases->engine = engine;
	leases->settings = &block->settings;
	error = spokei_lease_settings(engine, options, &block->settings);
	if (error)
		goto err_after_alloc;
	init_leases(leases);
	error = spokei_engine_class(engine, "lease", lease_due, &leases->timer_class);
	if (error == SPOKE_OK)
		error = spokei_redis_new(engine, &block->settings.redis, &redis_up, leases,
					 &leases->redis);
	spokei_lease_settings_fini(&block->settings);
	if (error)
		goto err_after_alloc;
	spokei_redis_patience(leases->redis, leases->patience_ns);
	spokei_roll_add(engine, &block_of(leases)->member);
	*ret_leases = leases;
	return SPOKE_OK;

err_after_alloc:
	spokei_lease_settings_free(engine->env, &block->settings);
	spokei_free(engine->env, block, 1, sizeof(*block));
	return error;
}

int spoke_leases_new(struct spoke_engine *engine, const struct spoke_leases_options *options,
		     struct spoke_leases **ret_leases)
{
	uint64_t begun;

	if (engine == NULL || options == NULL || ret_leases == NULL)
		return SPOKE_EINVAL;
	begun = spokei_why_begin(engine);
	return spokei_why_end(engine, begun, leases_new(engine, options, ret_leases), "new leases");
}

int spoke_leases_look(const struct spoke_leases *leases, struct spoke_leases_look *ret_look)
{
	int error = spokei_engine_check(leases->engine);
	uint64_t now_ns;

	*ret_look = (struct spoke_leases_look){ .left_min_ns = UINT64_MAX };
	if (error)
		return error;
	now_ns = spokei_leases_now(leases);
	ret_look->connected = leases->redis && spokei_redis_is_ready(leases->redis);
	ret_look->asked = leases->asks;
	ret_look->held = leases->held;
	(void)snprintf(ret_look->store, sizeof(ret_look->store), "%s",
		       leases->redis ? spokei_redis_address(leases->redis) : "");
	(void)snprintf(ret_look->why, sizeof(ret_look->why), "%s", leases->why);
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		uint64_t left_ns = spokei_lease_left_at(&lease->life, now_ns);

		if (lease->life.state == SPOKEI_LEASE_HELD && left_ns < ret_look->left_min_ns)
			ret_look->left_min_ns = left_ns;
	}
	return SPOKE_OK;
}

/* --- for the page */

static const char *name_of(const struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_WAITING:
		return "waiting";
	case SPOKEI_LEASE_ASKING:
	case SPOKEI_LEASE_RETURNING:
		return "asking";
	case SPOKEI_LEASE_HELD:
		return "held";
	case SPOKEI_LEASE_RELEASING:
		return "releasing";
	case SPOKEI_LEASE_NONE:
	case SPOKEI_LEASE_OVER:
	case SPOKEI_LEASE_STATES:
		break;
	}
	return NULL;
}

const char spokei_leases_kind[] = "leases";

struct spoke_leases *spokei_leases_of(struct spokei_member *member)
{
	return &spoke_container_of(member, struct block, member)->leases;
}

const struct spokei_lease_settings *spokei_leases_settings(const struct spoke_leases *leases)
{
	return leases->settings;
}

size_t spokei_leases_rows(const struct spoke_leases *leases, struct spokei_lease_row *rows,
			  size_t max)
{
	uint64_t now_ns = spokei_leases_now(leases);
	size_t count = 0;

	for (uint32_t i = 0; i < leases->cells.used && i < SEARCHED && count < max; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		const char *state = name_of(lease);

		if (state == NULL)
			continue;
		rows[count++] = (struct spokei_lease_row){
			.id = lease->handle,
			.name = spokei_lease_name_of(lease),
			.state = state,
			.left_ns = spokei_lease_left_at(&lease->life, now_ns),
			.fence = lease->life.state == SPOKEI_LEASE_HELD ? lease->life.fence : 0,
		};
	}
	return count;
}
