/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for leases, holds and releases them: the consequences of each event, the calls to users, the
 * queues of asks that wait for one name, the commands to the store and their answers, timers.
 */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/view.h"
#include "core/base/log.h"
#include "core/base/pace.h"
#include "core/engine/members.h"
#include "core/engine/use.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define ARM_MAX_NS UINT64_C(86400000000000) /* leases that wait for ever look once a day */
#define EVENT_NAME 96u                      /* bytes of an escaped name */
#define EVENT_TEXT 160u
#define RUSHES_MAX 16u
#define PAUSE_NS UINT64_C(20000000)
#define REST_NS (5 * PAUSE_NS)
#define QUEUES_KEPT 1024u /* room of the map that is kept when no lease waits */
#define COMMANDS_MAX 512u /* most commands under way */
#define COMMANDS_MORE 64u
#define HOLD_FIRST_NS UINT64_C(100000000)
#define HOLD_CAP_NS UINT64_C(2000000000)
#define PTTL_MORE_NS UINT64_C(1000000) /* the store rounds to ms */
#define PTTL_MAX_MS INT64_C(86400000)  /* a longer time to live is looked at once a day */
#define ONCE_NS UINT64_C(10000000000)  /* longest time for an ask that does not wait */
#define NS_PER_MS UINT64_C(1000000)

const struct spokei_lease_words spokei_lease_no_words;

/* --- memory, texts and timer of one lease */

_Static_assert(sizeof(struct spokei_lease) <= 176, "a lease needs 192 bytes with its head");

/* Takes a cell for an ask of this name. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
static int cell_take(struct spoke_leases *leases, struct spoke_span name,
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

/* Frees the cell, which is in no list. Its handle is invalid from now on. */
static void cell_give(struct spokei_lease *lease)
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
		spokei_run_soon(leases->engine, &leases->rest);
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

/* --- events for people */

/* Records an event about a lease, unless there were too many of late. */
SPOKEI_PRINTF(3, 4)
static void lease_event(const struct spokei_lease *lease, int error, const char *format, ...)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	char escaped[EVENT_NAME];
	char text[EVENT_TEXT];
	va_list args;

	if (!spokei_leases_may_log(leases))
		return;
	(void)spokei_log_escape(escaped, sizeof(escaped), name.data, name.len);
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, error, "lease \"%s\" %s", escaped,
			text);
}

/* --- queues
 *
 * The asks that wait for one name stand in its queue, and only the first one tries. When it has to
 * wait, the queue subscribes to the channel on which releases of that name are published. A message
 * wakes the first ask, and no other. A holder that dies publishes nothing, so the time to live of
 * its lock wakes the first ask, too. An ask that does not wait is a queue of its own.
 */

/* Has the RELEASE of a lease sent when the tasks of this turn run. The lease is in no list. */
static void release_soon(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (leases->ended)
		return;
	spokei_list_append(&leases->todo, &lease->node);
	spokei_run_soon(leases->engine, &leases->work);
}

/* Has the first lease of a queue send its next command then. */
static void send_soon(struct spokei_lease_queue *queue)
{
	struct spoke_leases *leases = queue->leases;

	if (queue->node.next == NULL)
		spokei_list_append(&leases->queues_todo, &queue->node);
	spokei_run_soon(leases->engine, &leases->work);
}

static struct spokei_lease_queue *make_queue(struct spoke_leases *leases, struct spoke_span name,
					     bool alone)
{
	const struct spoke_env *env = leases->engine->env;
	size_t size = sizeof(struct spokei_lease_queue) + 2 * name.len + SPOKEI_LEASE_NAME_MORE;
	struct spokei_lease_queue *queue = spokei_alloc(env, 1, size);
	size_t len;

	if (queue == NULL)
		return NULL;
	len = spokei_lease_name(queue->text, SPOKEI_LEASE_CHANNEL, name);
	memcpy(queue->text + len, name.data, name.len);
	queue->channel.name = (struct spoke_span){ queue->text, len };
	queue->name = (struct spoke_span){ queue->text + len, name.len };
	queue->leases = leases;
	queue->alone = alone;
	queue->size = size;
	spokei_list_init(&queue->waiters);
	if (!alone && spokei_map_add(&leases->queues, queue->name.data, name.len, queue)) {
		spokei_free(env, queue, 1, size);
		return NULL;
	}
	return queue;
}

static void free_queue(struct spokei_lease_queue *queue)
{
	struct spoke_leases *leases = queue->leases;

	if (queue->node.next)
		spokei_list_remove(&queue->node);
	if (queue->listens)
		spokei_redis_unsubscribe(leases->redis, &queue->channel);
	if (!queue->alone)
		(void)spokei_map_remove(&leases->queues, queue->name.data, queue->name.len);
	if (leases->queues.count == 0 && leases->queues.room > QUEUES_KEPT)
		spokei_map_fini(&leases->queues);
	spokei_free(leases->engine->env, queue, 1, queue->size);
}

/* Adds an ask to the queue of its name, or to one of its own. Returns 0 or SPOKE_ENOMEM. */
static int join_queue(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	bool alone = lease->life.once;
	struct spokei_lease_queue *queue = NULL;

	if (!alone)
		queue = spokei_map_get(&leases->queues, name.data, name.len);
	if (queue == NULL)
		queue = make_queue(leases, name, alone);
	if (queue == NULL)
		return SPOKE_ENOMEM;
	lease->queue = queue;
	spokei_list_append(&queue->waiters, &lease->node);
	return SPOKE_OK;
}

static struct spokei_lease *first_of(const struct spokei_lease_queue *queue)
{
	return spokei_lease_at(spokei_list_first(&queue->waiters));
}

static bool is_hushed(const struct spokei_lease_queue *queue)
{
	return queue->hush_ns > spokei_leases_now(queue->leases);
}

/* Has the first lease of the queue try again at this time, or sooner when it is woken. */
static void wait_in_queue(struct spokei_lease_queue *queue, uint64_t retry_ns)
{
	if (queue->woken && is_hushed(queue)) {
		queue->woken = false;
		retry_ns = queue->hush_ns;
	}
	queue->retry_ns = retry_ns;
	if (queue->woken || retry_ns == 0) {
		queue->woken = false;
		send_soon(queue);
		return;
	}
	/* Also when a lease of this process has just got it, and no try was refused yet. */
	if (!queue->listens && !queue->alone) {
		queue->listens = true;
		spokei_redis_subscribe(queue->leases->redis, &queue->channel);
	}
	(void)spokei_lease_arm(first_of(queue), retry_ns);
}

/* Takes an ask out of its queue; the next one goes on. */
static void leave_queue(struct spokei_lease *lease)
{
	struct spokei_lease_queue *queue = lease->queue;
	bool first = first_of(queue) == lease;

	spokei_list_remove(&lease->node);
	lease->queue = NULL;
	if (spokei_list_empty(&queue->waiters))
		free_queue(queue);
	else if (first)
		wait_in_queue(queue, queue->retry_ns);
}

/* A lock that is always about to expire, and a flood of messages, must not make a loop without a
 * pause. */
static void queue_refused(struct spokei_lease_queue *queue, uint64_t now_ns, uint64_t retry_ns)
{
	queue->rushes = now_ns - queue->refused_ns < REST_NS ? queue->rushes + 1 : 0;
	queue->refused_ns = now_ns;
	if (queue->rushes >= RUSHES_MAX) {
		queue->hush_ns = now_ns + PAUSE_NS;
		retry_ns = retry_ns > queue->hush_ns ? retry_ns : queue->hush_ns;
	}
	wait_in_queue(queue, retry_ns);
}

/* Has the first ask of the queue try now, or as soon as its present try has failed. */
static void wake_queue(struct spokei_lease_queue *queue)
{
	if (first_of(queue)->life.state == SPOKEI_LEASE_WAITING && is_hushed(queue))
		wait_in_queue(queue, queue->hush_ns);
	else if (first_of(queue)->life.state == SPOKEI_LEASE_WAITING)
		send_soon(queue);
	else
		queue->woken = true;
}

/* Returns whether an ask may try: it is the first of its queue. */
static bool is_first(const struct spokei_lease *lease)
{
	return first_of(lease->queue) == lease;
}

/* --- calls to the user */

static void tell_ask(struct spokei_lease *lease, const struct spokei_lease_words *words)
{
	struct spoke_engine *engine = lease->leases->engine;
	struct spoke_lease_answer answer = { .error = lease->error };

	if (answer.error == SPOKE_OK) {
		answer.fence = lease->life.fence;
		spokei_count(engine, SPOKE_STAT_LEASES_HELD);
		lease_event(lease, SPOKE_OK, "is held, fence %" PRIu64, answer.fence);
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
	lease_event(lease, why == SPOKE_LEASE_CLOSED ? SPOKE_OK : SPOKE_ELEASE, "was lost: %s",
		    spoke_lease_loss_name(why));
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

/* Frees a lease that is OVER. Calls its `done` with this error, if there is one. */
static void finish(struct spokei_lease *lease, int error)
{
	spoke_lease_released_fn done = lease->done;
	void *arg = lease->done_arg;

	spokei_lease_unlist(lease);
	cell_give(lease);
	if (done)
		done(arg, error);
}

/* Releases a lease in the store, or frees it, after its user was told that it has ended. */
static void after_end(struct spokei_lease *lease)
{
	if (lease->node.next)
		return; /* the callback has ended all leases: see spoke_leases_free() */
	if (lease->leases->ended)
		finish(lease, SPOKE_ECLOSED);
	else if (lease->life.state == SPOKEI_LEASE_OVER)
		finish(lease, SPOKE_OK);
	else
		release_soon(lease);
}

static void tell_all(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, tell);
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&leases->untold, &batch);
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
		spokei_list_append(&leases->untold, &lease->node);
		spokei_run_soon(leases->engine, &leases->tell);
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
	struct spokei_lease_queue *queue = lease->queue;
	uint64_t retry_ns;

	lease->leases->asks--;
	/* The next one need not ask while this process holds the lease. */
	if (lease->life.state == SPOKEI_LEASE_HELD) {
		retry_ns = spokei_leases_now(lease->leases);
		queue->retry_ns = retry_ns + spokei_lease_ttl_ns(&lease->life);
		queue->woken = false;
	}
	leave_queue(lease);
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
	spokei_run_first(leases->engine, &leases->early);
	(void)spokei_lease_arm(lease,
			       life->fixed ? life->end_ns
					   : spokei_lease_renewal_due(life->sent_ns,
								      spokei_lease_ttl_ns(life)));
}

static void holding_ends(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	leases->held--;
	spokei_uses_end(&lease->uses);
	lease->done = NULL;
	spokei_lease_unlist(lease);
	if (leases->held == 0)
		spokei_run_first_end(&leases->early);
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
		send_soon(lease->queue);
	else if (lease->life.state == SPOKEI_LEASE_RELEASING)
		release_soon(lease);
}

/* The same for an event of this moment that comes with nothing else. */
static void happen_now(struct spokei_lease *lease, enum spokei_lease_event event,
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

/* --- commands */

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);

/* Sends the RELEASE or the ACQUIRE of a lease. Returns whether there was room, and memory. The cell
 * of the command comes first: texts without it would have an answer that nothing waits for. */
static bool send_command(struct spokei_lease *lease, bool releases, uint64_t sent_ns)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_redis *redis = leases->redis;
	struct spoke_span name = spokei_lease_name_of(lease);
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE];
	char holder[SPOKEI_LEASE_HOLDER];
	struct spokei_lease_command *command;
	struct spoke_span second = { key, 0 };
	uint64_t handle;
	void *cell;

	if (spokei_slab_take(&leases->commands, &cell, &handle))
		return false;
	command = cell;
	*command = (struct spokei_lease_command){
		.ask.done = command_done,
		.leases = leases,
		.cell = handle,
		.handle = lease->handle,
		.sent_ns = sent_ns,
		.releases = releases,
	};
	second.len = spokei_lease_name(key, releases ? SPOKEI_LEASE_CHANNEL : SPOKEI_LEASE_TOKEN,
				       name);
	spokei_redis_begin(redis, releases ? SPOKEI_SCRIPT_RELEASE : SPOKEI_SCRIPT_ACQUIRE, 2,
			   releases ? 3 : 4);
	spokei_redis_text(redis, name);
	spokei_redis_text(redis, second);
	if (!releases)
		spokei_redis_number(redis, lease->life.ttl_ms);
	spokei_redis_text(redis, spokei_lease_holder(lease, holder));
	if (spokei_redis_send(redis, &command->ask)) {
		command->cell = 0;
		spokei_slab_give(&leases->commands, handle);
		return false;
	}
	lease->under = true;
	return true;
}

/* Sends the ACQUIRE of a lease that is WAITING. Its validity counts from here. */
static void send_acquire(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t sent_ns = spokei_leases_now(leases);

	if (lease->life.end_ns <= sent_ns)
		return; /* the timer is about to end it */
	if (!send_command(lease, false, sent_ns)) {
		(void)spokei_lease_arm(lease, sent_ns + spokei_leases_pause(leases));
		return;
	}
	spokei_lease_sent(&lease->life, sent_ns);
	(void)spokei_lease_arm(lease, lease->life.end_ns);
}

/* Sends the RELEASE of a lease that is RETURNING or RELEASING. */
static void send_release(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (!lease->under && !send_command(lease, true, 0))
		(void)spokei_lease_arm(lease,
				       spokei_leases_now(leases) + spokei_leases_pause(leases));
}

/* Sends what this lease has to send. While the store asks for a pause, its timer is set instead. */
static void send_next(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (leases->hold_ns > 0 && spokei_leases_now(leases) < leases->hold_ns)
		(void)spokei_lease_arm(lease, leases->hold_ns);
	else if (lease->life.state == SPOKEI_LEASE_WAITING)
		send_acquire(lease);
	else if (lease->life.state == SPOKEI_LEASE_RETURNING ||
		 lease->life.state == SPOKEI_LEASE_RELEASING)
		send_release(lease);
}

/* Returns whether a lease may leave the lists: to send, or to be sent again once the store is
 * reached. At the limit the lists wait for an answer. */
static bool may_send(const struct spoke_leases *leases)
{
	return leases->commands.count < COMMANDS_MAX || !spokei_redis_is_ready(leases->redis);
}

/* Sends what the leases on leases->todo and the queues on leases->queues_todo have to send, as far
 * as the store takes it. */
static void send_todo(struct spoke_leases *leases)
{
	while (!spokei_list_empty(&leases->todo) && may_send(leases)) {
		struct spokei_lease *lease = spokei_lease_at(spokei_list_first(&leases->todo));

		spokei_list_remove(&lease->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(lease);
	}
	while (!spokei_list_empty(&leases->queues_todo) && may_send(leases)) {
		struct spokei_lease_queue *queue =
			spoke_container_of(spokei_list_first(&leases->queues_todo),
					   struct spokei_lease_queue, node);

		spokei_list_remove(&queue->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(spokei_lease_at(spokei_list_first(&queue->waiters)));
	}
}

/* --- after a failure */

/* The store is busy: nothing is acquired or released for a while, by any lease. */
static uint64_t hold(struct spoke_leases *leases)
{
	const struct spokei_backoff backoff = { HOLD_FIRST_NS, HOLD_CAP_NS };
	const struct spoke_env *env = leases->engine->env;
	uint64_t now_ns = spokei_leases_now(leases);
	uint64_t dice;

	if (now_ns >= leases->hold_ns) {
		env->dice(env->ctx, &dice, sizeof(dice));
		leases->hold_ns = now_ns + spokei_backoff_pause(&backoff, leases->holds, dice);
		leases->holds++;
	}
	return leases->hold_ns;
}

/* Has the lease repeat its command at this time, unless the store is reached again before. */
static void again_at(struct spokei_lease *lease, uint64_t at_ns)
{
	if (spokei_lease_is_ask(&lease->life))
		wait_in_queue(lease->queue, at_ns);
	else
		(void)spokei_lease_arm(lease, at_ns);
}

/* --- answers */

/* The command was not answered, or is to be repeated at this time. */
static void repeat(struct spokei_lease *lease, uint64_t at_ns)
{
	happen_now(lease, SPOKEI_LEASE_MISS, &spokei_lease_no_words);
	again_at(lease, at_ns);
}

static void refuse_for_good(struct spokei_lease *lease, struct spoke_span text)
{
	struct spokei_lease_words words = { .text = spokei_refusal_text(text) };
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;
	char escaped[96];

	(void)spokei_log_escape(escaped, sizeof(escaped), words.text.data, words.text.len);
	lease_event(lease, SPOKE_ESTORE, "was refused: %s", escaped);
	happen_now(lease, SPOKEI_LEASE_DENY, &words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER)
		finish(lease, SPOKE_ESTORE);
}

/* The store has answered with an error. The connection is ended last, because that calls others. */
static void take_error(struct spokei_lease *lease, struct spoke_span text)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_lease_words words = { .text = spokei_refusal_text(text) };
	enum spokei_refusal refusal = spokei_refusal_of(text);

	if (refusal == SPOKEI_REFUSAL_REFUSED) {
		refuse_for_good(lease, text);
		return;
	}
	if (lease->life.once && lease->life.state == SPOKEI_LEASE_ASKING)
		happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	else
		repeat(lease, hold(leases));
	if (refusal == SPOKEI_REFUSAL_ELSEWHERE && !leases->ended)
		spokei_redis_restart(leases->redis, "the server is no primary");
}

static void take_grant(struct spokei_lease *lease, uint64_t sent_ns, uint64_t fence)
{
	const struct spokei_lease_news news = {
		.event = SPOKEI_LEASE_GRANT,
		.now_ns = spokei_leases_now(lease->leases),
		.sent_ns = sent_ns,
		.fence = fence,
	};

	spokei_lease_happen(lease, &news, &spokei_lease_no_words);
}

static void take_refusal(struct spokei_lease *lease, int64_t pttl_ms)
{
	uint64_t now_ns = spokei_leases_now(lease->leases);
	uint64_t left_ns = UINT64_MAX;
	uint64_t retry_ns = now_ns + spokei_lease_ttl_ns(&lease->life);
	struct spokei_lease_queue *queue = lease->queue;
	bool once = lease->life.once; /* then the refusal ends the ask, and its queue */

	if (pttl_ms >= 0) {
		left_ns = (uint64_t)(pttl_ms < PTTL_MAX_MS ? pttl_ms : PTTL_MAX_MS) *
			  UINT64_C(1000000);
		retry_ns = now_ns + left_ns + PTTL_MORE_NS;
	}
	happen_now(lease, SPOKEI_LEASE_REFUSE, &(struct spokei_lease_words){ .left_ns = left_ns });
	if (!once)
		queue_refused(queue, now_ns, retry_ns);
}

static void take_acquired(struct spokei_lease *lease, uint64_t sent_ns,
			  struct spokei_resp_cursor rest)
{
	int64_t refused = 1;
	int64_t number = 0;

	(void)spokei_resp_next_number(&rest, &refused);
	(void)spokei_resp_next_number(&rest, &number);
	lease->leases->holds = 0;
	if (!refused)
		take_grant(lease, sent_ns, (uint64_t)number);
	else
		take_refusal(lease, number);
}

static void take_released(struct spokei_lease *lease, int64_t count)
{
	struct spoke_leases *leases = lease->leases;
	bool returned = lease->life.state == SPOKEI_LEASE_RETURNING;
	bool unheld = count == 0 && lease->granted && !lease->repeats;

	leases->holds = 0;
	happen_now(lease, SPOKEI_LEASE_RELEASED, &spokei_lease_no_words);
	if (returned)
		again_at(lease, spokei_leases_now(leases) + spokei_leases_pause(leases));
	else
		finish(lease, unheld ? SPOKE_ENOENT : SPOKE_OK);
}

/* Takes the answer to this command, of which it gets a copy. */
static void take_answer(struct spokei_lease *lease, const struct spokei_lease_command *command,
			int error, struct spokei_resp_cursor reply)
{
	struct spokei_resp_value first;

	if (error || !spokei_resp_next(&reply, &first)) {
		lease->repeats = command->releases;
		repeat(lease,
		       spokei_leases_now(lease->leases) + spokei_leases_pause(lease->leases));
	} else if (first.kind == SPOKEI_RESP_ERROR) {
		take_error(lease, first.text);
	} else if (command->releases) {
		take_released(lease, first.integer);
	} else {
		take_acquired(lease, command->sent_ns, reply);
	}
}

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct spokei_lease_command *command = spoke_container_of(ask, struct spokei_lease_command,
								  ask);
	struct spoke_leases *leases = command->leases;
	struct spokei_lease_command copy = *command;
	struct spokei_lease *lease = spokei_slab_get(&leases->cells, copy.handle);
	bool releasing;

	command->cell = 0;
	spokei_slab_give(&leases->commands, copy.cell);
	spokei_run_soon(leases->engine, &leases->work);
	if (lease == NULL)
		return;
	releasing = lease->life.state == SPOKEI_LEASE_RETURNING ||
		    lease->life.state == SPOKEI_LEASE_RELEASING;
	/* The answer to an ACQUIRE that was cancelled is of no use: the RELEASE follows it. */
	if (copy.releases != releasing)
		return;
	lease->under = false;
	/* The user is about to be called. The RELEASE is repeated after that. */
	if (lease->tell != SPOKEI_LEASE_TELL_NOTHING)
		return;
	take_answer(lease, &copy, error, reply);
}

/* --- sending */

/* Sends the commands that are due. */
static void work(struct spoke_leases *leases)
{
	spokei_leases_renew(leases);
	send_todo(leases);
}

static void work_due(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, work);

	if (!leases->ended)
		work(leases);
}

/* --- timers */

/* The time of a lease is over. */
static void end_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	happen_now(lease, SPOKEI_LEASE_PASS, &spokei_lease_no_words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER && lease->node.next == NULL)
		finish(lease, SPOKE_EUNAVAILABLE);
}

/* Has a lease do what its state demands: try, renew, release. */
static void go_on(struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_HELD:
		if (!lease->life.fixed)
			spokei_lease_renew_soon(lease);
		break;
	case SPOKEI_LEASE_WAITING:
	case SPOKEI_LEASE_RETURNING:
		if (is_first(lease))
			send_soon(lease->queue);
		break;
	case SPOKEI_LEASE_RELEASING:
		if (!lease->under && lease->node.next == NULL)
			release_soon(lease);
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
			happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	}
}

static struct spokei_lease_queue *queue_of(struct spokei_redis_channel *channel)
{
	return spoke_container_of(channel, struct spokei_lease_queue, channel);
}

/* A message before this moment may have been missed. */
static void store_subscribed(void *arg, struct spokei_redis_channel *channel)
{
	(void)arg;
	wake_queue(queue_of(channel));
}

/* Any message on this channel, e.g. about a release, is worth a try. */
static void store_message(void *arg, struct spokei_redis_channel *channel,
			  struct spoke_span payload)
{
	(void)arg;
	(void)payload;
	wake_queue(queue_of(channel));
}

static const struct spokei_redis_up redis_up = {
	.ready = store_ready,
	.down = store_down,
	.subscribed = store_subscribed,
	.message = store_message,
};

/* --- the functions for users */

/* A command that is unanswered for longer than the lease with the shortest time to live allows is
 * repeated on a new connection. When there is no other lease, the times of earlier ones are
 * forgotten. */
static void be_patient(struct spoke_leases *leases, uint64_t ttl_ns)
{
	uint64_t patience_ns = spokei_lease_patience(ttl_ns);

	if (leases->cells.count > 1 && patience_ns >= leases->patience_ns)
		return;
	leases->patience_ns = patience_ns;
	spokei_redis_patience(leases->redis, patience_ns);
}

/* Begins the ask of a cell. Returns 0, ELIMIT or ENOMEM. */
static int begin(struct spokei_lease *lease, const struct spokei_lease_terms *terms)
{
	struct spoke_leases *leases = lease->leases;
	bool once = terms->wait_ns == 0;
	uint64_t now_ns = spokei_leases_now(leases);
	int error;

	spokei_lease_begin(&lease->life, (uint32_t)(terms->ttl_ns / NS_PER_MS), once,
			   spokei_later(now_ns, once ? ONCE_NS : terms->wait_ns));
	if (!spokei_lease_arm(lease, UINT64_MAX))
		return SPOKE_ELIMIT;
	error = join_queue(lease);
	if (error == SPOKE_OK && is_first(lease))
		send_soon(lease->queue);
	return error;
}

int spokei_lease_take(struct spoke_leases *leases, const char *name,
		      const struct spokei_lease_terms *terms, struct spokei_lease **ret_lease)
{
	struct spokei_lease *lease;
	int error = cell_take(leases, (struct spoke_span){ name, strlen(name) }, &lease);

	if (error)
		return error;
	error = begin(lease, terms);
	if (error) {
		cell_give(lease);
		return error;
	}
	leases->asks++;
	spokei_count(leases->engine, SPOKE_STAT_LEASES_ASKED);
	be_patient(leases, terms->ttl_ns);
	send_todo(leases);
	*ret_lease = lease;
	return SPOKE_OK;
}

void spokei_lease_give(struct spokei_lease *lease, spoke_lease_released_fn done, void *arg)
{
	bool held = lease->life.state == SPOKEI_LEASE_HELD;

	happen_now(lease, SPOKEI_LEASE_RELEASE, NULL);
	lease->done = done;
	lease->done_arg = arg;
	if (held) {
		spokei_count(lease->leases->engine, SPOKE_STAT_LEASES_RELEASED);
		lease_event(lease, SPOKE_OK, "was released");
		send_todo(lease->leases);
	}
}

/* --- all leases */

/* Ends one lease; its user is called by a task. */
static void close_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	bool forked = spokei_engine_forked(leases->engine);

	happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	if (lease->life.state == SPOKEI_LEASE_RELEASING && !forked &&
	    spokei_redis_is_ready(leases->redis))
		send_release(lease);
	if (lease->tell == SPOKEI_LEASE_TELL_NOTHING && lease->node.next)
		spokei_list_remove(&lease->node);
	if (lease->node.next == NULL)
		spokei_list_append(&leases->untold, &lease->node);
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
void spokei_leases_end(struct spoke_leases *leases)
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
	spokei_run_first_end(&leases->early);
	spokei_run_soon(leases->engine, &leases->tell);
	spokei_run_freeing(leases->engine, &leases->end);
}

static void leases_rest(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, rest);

	if (leases->cells.count == 0)
		spokei_leases_end(leases);
}

/* Leases that are held stay until they are released or lost. */
static void leases_drain(struct spokei_member *member)
{
	struct spoke_leases *leases = spokei_leases_of(member);

	leases->draining = true;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (spokei_lease_is_ask(&lease->life))
			happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	}
	spokei_run_soon(leases->engine, &leases->rest);
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

int spokei_leases_begin(struct spoke_leases *leases, struct spokei_member *member)
{
	const struct spoke_env *env = leases->engine->env;
	uint32_t max = leases->settings->max;
	int error;

	spokei_slab_init_lasting(&leases->cells, env, sizeof(struct spokei_lease), max);
	spokei_slab_init_lasting(&leases->commands, env, sizeof(struct spokei_lease_command),
				 max + COMMANDS_MORE);
	spokei_map_init(&leases->queues, env);
	spokei_list_init(&leases->todo);
	spokei_list_init(&leases->queues_todo);
	spokei_list_init(&leases->due);
	spokei_list_init(&leases->untold);
	leases->work.run = work_due;
	leases->tell.run = tell_all;
	leases->rest.run = leases_rest;
	leases->early.begin = check_validity;
	member->drain = leases_drain;
	member->woke = leases_woke;
	leases->patience_ns = spokei_lease_patience(leases->settings->ttl_ns);
	error = spokei_engine_class(leases->engine, "lease", lease_due, &leases->timer_class);
	if (error == SPOKE_OK)
		error = spokei_redis_new(leases->engine, &leases->settings->redis, &redis_up,
					 leases, &leases->redis);
	if (error == SPOKE_OK)
		spokei_redis_patience(leases->redis, leases->patience_ns);
	return error;
}
