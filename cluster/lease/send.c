/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the commands that acquire and release leases, and reads their answers. */
#include "cluster/lease/names.h"
#include "cluster/lease/parts.h"
#include "cluster/lease/refusal.h"
#include "core/base/log.h"
#include "core/base/pace.h"

#define COMMANDS_MAX 512u /* most commands under way */
#define HOLD_FIRST_NS UINT64_C(100000000)
#define HOLD_CAP_NS UINT64_C(2000000000)
#define PTTL_MORE_NS UINT64_C(1000000) /* the store rounds to ms */
#define PTTL_MAX_MS INT64_C(86400000)  /* a longer time to live is looked at once a day */

/* An answer of the store to one command. */
struct answer {
	struct spokei_lease_command *command; /* its copy */
	int error;
	struct spokei_resp_cursor reply;
};

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);

/* --- commands */

/* Returns a command, before its texts are written: texts without a command would have an answer
 * that nothing waits for. NULL: there is no room, or no memory. */
static struct spokei_lease_command *new_command(const struct spokei_lease *lease, bool releases,
						uint64_t sent_ns)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_lease_command *command;
	void *cell;
	uint64_t handle;

	if (spokei_slab_take(&leases->commands, &cell, &handle))
		return NULL;
	command = cell;
	*command = (struct spokei_lease_command){
		.ask.done = command_done,
		.leases = leases,
		.cell = handle,
		.handle = lease->handle,
		.sent_ns = sent_ns,
		.releases = releases,
	};
	return command;
}

/* Sends a command whose texts are written. Returns whether it was sent. */
static bool send_command(struct spokei_lease *lease, struct spokei_lease_command *command)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t cell = command->cell;

	if (spokei_redis_send(leases->redis, &command->ask)) {
		command->cell = 0;
		spokei_slab_give(&leases->commands, cell);
		return false;
	}
	lease->under = true;
	return true;
}

static void write_key(struct spokei_lease *lease, enum spokei_lease_name which)
{
	struct spokei_redis *redis = lease->leases->redis;
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE];
	struct spoke_span name = spokei_lease_name_of(lease);

	spokei_redis_text(redis, name);
	spokei_redis_text(redis, (struct spoke_span){ key, spokei_lease_name(key, which, name) });
}

static bool put_acquire(struct spokei_lease *lease, uint64_t sent_ns)
{
	struct spokei_redis *redis = lease->leases->redis;
	struct spokei_lease_command *command = new_command(lease, false, sent_ns);
	char holder[SPOKEI_LEASE_HOLDER];

	if (command == NULL)
		return false;
	spokei_redis_begin(redis, SPOKEI_SCRIPT_ACQUIRE, 2, 4);
	write_key(lease, SPOKEI_LEASE_TOKEN);
	spokei_redis_number(redis, lease->life.ttl_ms);
	spokei_redis_text(redis, spokei_lease_holder(lease, holder));
	return send_command(lease, command);
}

static bool put_release(struct spokei_lease *lease)
{
	struct spokei_redis *redis = lease->leases->redis;
	struct spokei_lease_command *command = new_command(lease, true, 0);
	char holder[SPOKEI_LEASE_HOLDER];

	if (command == NULL)
		return false;
	spokei_redis_begin(redis, SPOKEI_SCRIPT_RELEASE, 2, 3);
	write_key(lease, SPOKEI_LEASE_CHANNEL);
	spokei_redis_text(redis, spokei_lease_holder(lease, holder));
	return send_command(lease, command);
}

/* Sends the ACQUIRE of a lease that is WAITING. Its validity counts from here. */
static void send_acquire(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t sent_ns = spokei_leases_now(leases);

	if (lease->life.end_ns <= sent_ns)
		return; /* the timer is about to end it */
	if (!put_acquire(lease, sent_ns)) {
		(void)spokei_lease_arm(lease, sent_ns + spokei_leases_pause(leases));
		return;
	}
	spokei_lease_asks(&lease->life, sent_ns);
	(void)spokei_lease_arm(lease, lease->life.end_ns);
}

void spokei_lease_send_release(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (!lease->under && !put_release(lease))
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
		spokei_lease_send_release(lease);
}

/* Returns whether a lease may leave the lists: to send, or to be sent again once the store is
 * reached. At the limit the lists wait for an answer. */
static bool may_send(const struct spoke_leases *leases)
{
	return leases->commands.count < COMMANDS_MAX || !spokei_redis_is_ready(leases->redis);
}

void spokei_leases_send(struct spoke_leases *leases)
{
	while (!spokei_list_empty(&leases->todo) && may_send(leases)) {
		struct spokei_lease *lease = spokei_lease_at(spokei_list_first(&leases->todo));

		spokei_list_remove(&lease->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(lease);
	}
	while (!spokei_list_empty(&leases->lines_todo) && may_send(leases)) {
		struct spokei_lease_line *line = spoke_container_of(spokei_list_first(
									    &leases->lines_todo),
								    struct spokei_lease_line, node);

		spokei_list_remove(&line->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(spokei_lease_at(spokei_list_first(&line->waiters)));
	}
}

void spokei_leases_send_task(struct spokei_task *task)
{
	spokei_leases_send(spoke_container_of(task, struct spoke_leases, send));
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
	struct spokei_lease_line *line = spokei_lease_line_of(lease);

	if (line)
		spokei_lease_line_wait(line, at_ns);
	else
		(void)spokei_lease_arm(lease, at_ns);
}

/* --- answers */

/* The command was not answered, or is to be repeated at this time. */
static void repeat(struct spokei_lease *lease, uint64_t at_ns)
{
	spokei_lease_happen_now(lease, SPOKEI_LEASE_MISS, &spokei_lease_no_words);
	again_at(lease, at_ns);
}

static void refuse_for_good(struct spokei_lease *lease, struct spoke_span text)
{
	struct spokei_lease_words words = { .text = spokei_refusal_text(text) };
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;
	char escaped[96];

	(void)spokei_log_escape(escaped, sizeof(escaped), words.text.data, words.text.len);
	spokei_lease_event(lease, SPOKE_ESTORE, "was refused: %s", escaped);
	spokei_lease_happen_now(lease, SPOKEI_LEASE_DENY, &words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER)
		spokei_lease_finish(lease, SPOKE_ESTORE);
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
		spokei_lease_happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	else
		repeat(lease, hold(leases));
	if (refusal == SPOKEI_REFUSAL_ELSEWHERE && !leases->ended)
		spokei_redis_restart(leases->redis, "the server is no primary");
}

static void take_grant(struct spokei_lease *lease, const struct answer *answer, uint64_t fence)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_lease_news news = {
		.event = SPOKEI_LEASE_GRANT,
		.now_ns = spokei_leases_now(leases),
		.sent_ns = answer->command->sent_ns,
		.fence = fence,
	};

	spokei_lease_happen(lease, &news, &spokei_lease_no_words);
}

static void take_refusal(struct spokei_lease *lease, int64_t pttl_ms)
{
	uint64_t now_ns = spokei_leases_now(lease->leases);
	uint64_t left_ns = UINT64_MAX;
	uint64_t retry_ns = now_ns + spokei_lease_ttl_ns(&lease->life);
	struct spokei_lease_line *line = spokei_lease_line_of(lease);

	if (pttl_ms >= 0) {
		left_ns = (uint64_t)(pttl_ms < PTTL_MAX_MS ? pttl_ms : PTTL_MAX_MS) *
			  UINT64_C(1000000);
		retry_ns = now_ns + left_ns + PTTL_MORE_NS;
	}
	spokei_lease_happen_now(lease, SPOKEI_LEASE_REFUSE,
				&(struct spokei_lease_words){ .left_ns = left_ns });
	if (line)
		spokei_lease_line_refused(line, now_ns, retry_ns);
}

static void take_acquired(struct spokei_lease *lease, struct answer *answer)
{
	int64_t refused = 1;
	int64_t number = 0;

	(void)spokei_resp_next_number(&answer->reply, &refused);
	(void)spokei_resp_next_number(&answer->reply, &number);
	lease->leases->holds = 0;
	if (!refused)
		take_grant(lease, answer, (uint64_t)number);
	else
		take_refusal(lease, number);
}

static void take_released(struct spokei_lease *lease, int64_t count)
{
	struct spoke_leases *leases = lease->leases;
	bool returned = lease->life.state == SPOKEI_LEASE_RETURNING;
	bool unheld = count == 0 && lease->granted && !lease->repeats;

	leases->holds = 0;
	spokei_lease_happen_now(lease, SPOKEI_LEASE_RELEASED, &spokei_lease_no_words);
	if (returned)
		again_at(lease, spokei_leases_now(leases) + spokei_leases_pause(leases));
	else
		spokei_lease_finish(lease, unheld ? SPOKE_ENOENT : SPOKE_OK);
}

static void take_answer(struct spokei_lease *lease, struct answer *answer)
{
	struct spokei_resp_value first;

	if (answer->error || !spokei_resp_next(&answer->reply, &first)) {
		lease->repeats = answer->command->releases;
		repeat(lease,
		       spokei_leases_now(lease->leases) + spokei_leases_pause(lease->leases));
	} else if (first.kind == SPOKEI_RESP_ERROR) {
		take_error(lease, first.text);
	} else if (answer->command->releases) {
		take_released(lease, first.integer);
	} else {
		take_acquired(lease, answer);
	}
}

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct spokei_lease_command *command = spoke_container_of(ask, struct spokei_lease_command,
								  ask);
	struct spoke_leases *leases = command->leases;
	struct spokei_lease_command copy = *command;
	struct answer answer = { &copy, error, reply };
	struct spokei_lease *lease = spokei_slab_get(&leases->cells, copy.handle);
	bool releasing;

	command->cell = 0;
	spokei_slab_give(&leases->commands, copy.cell);
	spokei_engine_soon(leases->engine, &leases->send);
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
	take_answer(lease, &answer);
}
