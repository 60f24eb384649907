/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what calls need that may take several attempts: their arguments and history, those that
 * wait for their next attempt, and the retry budget.
 */
#include "cluster/call/retry.h"

#include "cluster/call/call.h"
#include "cluster/call/retry_queue.h"
#include "cluster/config/keys.h"
#include "cluster/filter/fence.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/wire/message.h"

#include <string.h>

#define TO(state) (1u << SPOKEI_CALL_##state)

const unsigned spokei_call_moves[] = {
	[SPOKEI_CALL_FIRST] = TO(DECIDING),
	[SPOKEI_CALL_DECIDING] = TO(SENDING) | TO(PAUSING) | TO(UNREADY) | TO(OVER),
	[SPOKEI_CALL_SENDING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_PAUSING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_UNREADY] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_OVER] = 0,
};

/* --- the retry budget, as counters for each second. Any 10 s begin within one slot: the retries of
 * that slot count, and its calls do not, so that the budget errs on the safe side. */

#define CALLS_PER_RETRY UINT64_C(5)
#define FREE_RETRIES UINT64_C(100)

static unsigned slot_after(unsigned slot)
{
	return (slot + 1) % SPOKEI_BUDGET_SLOTS;
}

/* Reuses the oldest slot for the next second. Its calls have not counted any more. */
static void step(struct spokei_budget *budget)
{
	unsigned oldest = slot_after(budget->slot);

	budget->second++;
	budget->slot = oldest;
	budget->retries_sum -= budget->retries[oldest];
	budget->retries[oldest] = 0;
	budget->calls[oldest] = 0;
	budget->calls_sum -= budget->calls[slot_after(oldest)];
}

void spokei_budget_roll(struct spokei_budget *budget, uint64_t now_ns)
{
	uint64_t second = now_ns / SPOKEI_BUDGET_SLOT_NS;

	if (now_ns < budget->end_ns)
		return;
	if (second - budget->second >= SPOKEI_BUDGET_SLOTS)
		*budget = (struct spokei_budget){ .second = second };
	while (budget->second < second)
		step(budget);
	budget->end_ns = (second + 1) * SPOKEI_BUDGET_SLOT_NS;
}

bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns)
{
	spokei_budget_roll(budget, now_ns);
	if ((budget->retries_sum + 1) * CALLS_PER_RETRY >
	    budget->calls_sum + FREE_RETRIES * CALLS_PER_RETRY)
		return false;
	budget->retries[budget->slot]++;
	budget->retries_sum++;
	return true;
}

/* --- a free list of equal blocks; larger retry states are allocated one by one */

#define BLOCK 1024u    /* bytes */
#define BLOCKS_MAX 64u /* that are kept */

/* Returns memory for `size` bytes that is not initialised, or NULL. */
static void *take_block(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			size_t size)
{
	void *block = blocks->first;

	if (size > BLOCK)
		return spokei_alloc_unset(env, size);
	if (block == NULL)
		return spokei_alloc_unset(env, BLOCK);
	memcpy(&blocks->first, block, sizeof(blocks->first));
	blocks->count--;
	return block;
}

/* Gives memory back that was taken with the same size. */
static void give_block(struct spokei_retry_blocks *blocks, const struct spoke_env *env, void *block,
		       size_t size)
{
	if (size > BLOCK) {
		spokei_free(env, block, 1, size);
	} else if (blocks->count == BLOCKS_MAX) {
		spokei_free(env, block, 1, BLOCK);
	} else {
		memcpy(block, &blocks->first, sizeof(blocks->first));
		blocks->first = block;
		blocks->count++;
	}
}

void spokei_retry_blocks_fini(struct spokei_retry_blocks *blocks, const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, take_block(blocks, env, BLOCK), 1, BLOCK);
}

/* --- arguments and history */

#define ID_TEXT 24u   /* bytes of a printed number, with the NUL */
#define EXTENSION 64u /* bytes of two of our pairs, and of the head of a map; without a name */

static struct spoke_span copy(unsigned char **at, struct spoke_span from)
{
	struct spoke_span span = spokei_span(*at, from.len);

	if (from.len)
		memcpy(*at, from.data, from.len);
	*at += from.len;
	return span;
}

/* --- life */

/* Returns how many bytes our attachments need at most, and the head of the map; 0: there are none.
 */
static size_t room_for_ours(const struct spokei_call_args *args)
{
	size_t room = args->policy && args->policy->repeats ? EXTENSION : 0;

	if (SPOKEI_UNLIKELY(args->lease))
		room += EXTENSION + spoke_lease_name(*args->lease).len;
	return room;
}

struct spokei_retry_state *spokei_retry_state_keep(struct spokei_retry_blocks *blocks,
						   const struct spoke_env *env,
						   const struct spokei_call_args *args)
{
	struct spoke_span attachments = { args->attachments.data, args->attachments.len };
	size_t size = sizeof(struct spokei_retry_state);
	size_t ours = room_for_ours(args);
	struct spokei_retry_state *retry;
	unsigned char *at;

	if (args->values.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    args->key.len > SIZE_MAX / 8)
		return NULL;
	size += args->values.len + attachments.len + args->key.len;
	if (ours)
		size += attachments.len + ours;
	retry = take_block(blocks, env, size);
	if (retry == NULL)
		return NULL;
	at = retry->bytes;
	retry->state = SPOKEI_CALL_FIRST;
	retry->ticket = SPOKEI_TICKET_NONE;
	retry->first_answer = false;
	retry->size = size;
	retry->args = *args;
	retry->args.values = copy(&at, args->values);
	attachments = copy(&at, attachments);
	retry->args.attachments = (struct spoke_value){ attachments.data, attachments.len };
	retry->args.key = copy(&at, args->key);
	retry->args.lease = NULL; /* the user's */
	retry->extended = ours ? at : NULL;
	return retry;
}

void spokei_retry_state_open(struct spokei_retry_state *retry, struct spokei_call *call)
{
	const size_t from = offsetof(struct spokei_retry_state, call);

	spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
	memset((unsigned char *)retry + from, 0,
	       offsetof(struct spokei_retry_state, ending.text) - from);
	retry->call = call;
	retry->tried = retry->few;
	retry->tried_room = SPOKEI_RETRY_STATE_FEW;
}

static void free_history(struct spokei_retry_state *retry, const struct spoke_env *env)
{
	if (spokei_retry_state_is_leased(retry)) {
		spokei_lease_use_end(&retry->lease);
		spokei_task_drop(&retry->lease_end);
	}
	while (retry->forks) {
		struct spokei_fork *fork = retry->forks;

		retry->forks = fork->next;
		spokei_free(env, fork, 1, sizeof(*fork));
	}
	if (retry->tried != retry->few)
		spokei_free(env, retry->tried, retry->tried_room, sizeof(*retry->tried));
}

void spokei_retry_state_free(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			     struct spokei_retry_state *retry)
{
	if (retry->state != SPOKEI_CALL_FIRST)
		free_history(retry, env);
	give_block(blocks, env, retry, retry->size);
}

struct spokei_call_args spokei_retry_state_args(const struct spokei_retry_state *retry,
						uint64_t timeout_ns)
{
	struct spokei_call_args args = retry->args;

	args.timeout_ns = timeout_ns;
	if (retry->extended_len)
		args.attachments = (struct spoke_value){ retry->extended, retry->extended_len };
	return args;
}

/* --- attachments */

static unsigned char *put_bytes(unsigned char *at, struct spoke_span bytes)
{
	if (bytes.len)
		memcpy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

static unsigned char *put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	*at++ = (unsigned char)(0xa0 | len); /* up to 31 bytes */
	for (; *text; text++)
		*at++ = (unsigned char)*text;
	return at;
}

/* Prints a number in a base, with at least `least` digits. snprintf() would take longer than the
 * rest of a call. */
static const char *print_number(char text[ID_TEXT], uint64_t number, unsigned base, unsigned least)
{
	char *at = text + ID_TEXT - 1;

	*at = '\0';
	for (; number > 0 || least > 0; number /= base) {
		*--at = "0123456789abcdef"[number % base];
		least -= least > 0;
	}
	return at;
}

/* Writes a name of at most 64 KiB. */
static unsigned char *put_name(unsigned char *at, struct spoke_span name)
{
	*at++ = 0xda; /* str, with its length in two bytes */
	*at++ = (unsigned char)(name.len >> 8);
	*at++ = (unsigned char)name.len;
	return put_bytes(at, name);
}

static unsigned char *put_lease(unsigned char *at, struct spoke_lease lease)
{
	char number[ID_TEXT];

	at = put_name(put_text(at, SPOKEI_FENCE_NAME), spoke_lease_name(lease));
	at = put_text(at, SPOKEI_FENCE_NUMBER);
	return put_text(at, print_number(number, spoke_lease_fence(lease), 10, 1));
}

static unsigned char *put_number(unsigned char *at, const struct spokei_retry_state *retry)
{
	char number[ID_TEXT];

	at = put_text(at, "spoke.id");
	at = put_text(at, print_number(number, retry->id, 16, 16));
	at = put_text(at, "spoke.attempt");
	return put_text(at, print_number(number, retry->begun + UINT64_C(1), 10, 1));
}

static bool is_key(struct spoke_value key, const char *text)
{
	struct spoke_span span;

	return spoke_value_str(key, &span) == 0 && span.len == strlen(text) &&
	       memcmp(span.data, text, span.len) == 0;
}

/* Counts the user's pairs, which were checked, and looks for keys of a number among them. */
static size_t count_pairs(struct spoke_value map, struct spoke_span *ret_pairs, bool *ret_has)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;

	*ret_has = false;
	*ret_pairs = spokei_span(NULL, 0);
	if (map.len == 0 || spoke_cursor_map(map, &pairs) != 0)
		return 0;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (count++ == 0)
			*ret_pairs = spokei_span(key.data, map.len - (size_t)(key.data - map.data));
		*ret_has |= is_key(key, "spoke.id") || is_key(key, "spoke.attempt");
	}
	return count;
}

void spokei_retry_state_attach(struct spokei_retry_state *retry)
{
	bool leased = spokei_retry_state_is_leased(retry);
	struct spoke_span pairs;
	unsigned char *at = retry->extended;
	bool has;
	size_t count = count_pairs(retry->args.attachments, &pairs, &has);
	bool numbered = retry->args.policy->repeats && !has;
	uint32_t all = (uint32_t)count + (leased ? 2 : 0) + (numbered ? 2 : 0);

	SPOKE_ASSERT(at != NULL);
	if (!leased && !numbered)
		return;
	*at++ = 0xdf; /* map, with the number of pairs in four bytes */
	*at++ = (unsigned char)(all >> 24);
	*at++ = (unsigned char)(all >> 16);
	*at++ = (unsigned char)(all >> 8);
	*at++ = (unsigned char)all;
	if (leased)
		at = put_lease(at, retry->lease.lease);
	if (numbered)
		at = put_number(at, retry);
	at = put_bytes(at, pairs);
	retry->extended_len = (size_t)(at - retry->extended);
}

/* --- attempts */

struct spokei_attempt *spokei_retry_state_attempt(struct spokei_retry_state *retry,
						  const struct spoke_env *env)
{
	struct spokei_fork *fork;

	if (retry->call->attempt.pending.conn == NULL)
		return &retry->call->attempt;
	for (fork = retry->forks; fork; fork = fork->next)
		if (fork->attempt.pending.conn == NULL)
			return &fork->attempt;
	fork = spokei_alloc(env, 1, sizeof(*fork));
	if (fork == NULL)
		return NULL;
	fork->next = retry->forks;
	retry->forks = fork;
	fork->attempt.call = retry->call;
	return &fork->attempt;
}

int spokei_retry_state_try(struct spokei_retry_state *retry, const struct spoke_env *env,
			   uint64_t endpoint)
{
	size_t room = retry->tried_room;
	uint64_t *more;

	if (retry->tried_count == room) {
		more = spokei_alloc(env, room * 2, sizeof(*more));
		if (more == NULL)
			return SPOKE_ENOMEM;
		memcpy(more, retry->tried, room * sizeof(*more));
		if (retry->tried != retry->few)
			spokei_free(env, retry->tried, room, sizeof(*retry->tried));
		retry->tried = more;
		retry->tried_room = (uint32_t)room * 2;
	}
	retry->tried[retry->tried_count++] = endpoint;
	return SPOKE_OK;
}

static uint8_t keep(unsigned char *to, struct spoke_span text)
{
	size_t len = text.len < SPOKEI_RETRY_STATE_TEXT ? text.len : SPOKEI_RETRY_STATE_TEXT;

	if (len)
		memcpy(to, text.data, len);
	return (uint8_t)len;
}

void spokei_retry_state_note(struct spokei_retry_state *retry, const struct spokei_outcome *outcome,
			     enum spoke_policy_fate fate)
{
	struct spokei_ending *ending = &retry->ending;

	retry->last = fate;
	if (fate == SPOKE_FATE_OK) {
		retry->ok++;
		return;
	}
	retry->failed++;
	ending->error = outcome->error;
	ending->queued_ns = outcome->queued_ns;
	ending->waited_ns = outcome->waited_ns;
	ending->error_code = 0;
	ending->text_len = 0;
	ending->class_len = 0;
	if (outcome->reply == NULL && outcome->reason)
		ending->text_len = keep(ending->text,
					spokei_span(outcome->reason, strlen(outcome->reason)));
	if (outcome->reply == NULL)
		return;
	ending->error_code = outcome->reply->error_code;
	ending->text_len = keep(ending->text, outcome->reply->error_text);
	ending->class_len = keep(ending->class_name, outcome->reply->error_class);
}

/* --- as a ticket */

void spokei_ticket_look(const struct spokei_retry_state *retry, uint64_t now_ns,
			struct spoke_ticket_state *ret_state)
{
	*ret_state = (struct spoke_ticket_state){
		.id = retry->id,
		.attempts = retry->begun,
		.sending = retry->open > 0,
		.last_error = retry->ending.error,
		.left_ns = spokei_retry_state_left(retry, now_ns),
	};
	if (retry->state == SPOKEI_CALL_PAUSING)
		ret_state->next_ns = spokei_retry_state_pause(retry, now_ns);
}

/* --- calls that wait, in lists and on the engine's wheel */

#define UNKNOWN UINT32_MAX /* the class of watched attempts, before the first one */

static void retry_due(struct spoke_timer *timer, void *arg);

int spokei_retry_queue_init(struct spokei_retry_queue *queue, struct spoke_engine *engine,
			    spokei_retry_due_fn due)
{
	*queue = (struct spokei_retry_queue){
		.engine = engine,
		.due = due,
	};
	spokei_list_init(&queue->tickets);
	spokei_list_init(&queue->unready);
	spokei_list_init(&queue->pausing);
	queue->watch_class = UNKNOWN;
	return spokei_engine_class(engine, "retry", retry_due, &queue->timer_class);
}

/* --- tickets */

void spokei_retry_queue_limit(struct spokei_retry_queue *queue,
			      const struct spokei_key_values *values)
{
	queue->tasks_max = spokei_keys_u32(values, SPOKEI_KEY_FAILBACK_TASKS);
	queue->bytes_max = (size_t)values->of[SPOKEI_KEY_FAILBACK_BYTES];
	queue->drops_oldest = values->of[SPOKEI_KEY_FAILBACK_OVERFLOW] != 0;
}

static struct spokei_retry_state *of_tickets(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_retry_state, of_tickets);
}

struct spokei_retry_state *spokei_retry_queue_oldest(const struct spokei_retry_queue *queue)
{
	return spokei_list_empty(&queue->tickets) ? NULL : of_tickets(queue->tickets.next);
}

void spokei_retry_queue_admit(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	SPOKE_ASSERT(spokei_retry_queue_has_room(queue, retry->size));
	queue->tasks++;
	queue->bytes += retry->size;
	spokei_list_append(&queue->tickets, &retry->of_tickets);
}

/* --- waiting */

static void end_wait(struct spokei_retry_state *retry, int error)
{
	struct spokei_retry_queue *queue = retry->queue;

	spokei_retry_queue_leave(queue, retry, false);
	queue->due(retry, error);
}

static void retry_due(struct spoke_timer *timer, void *arg)
{
	(void)arg;
	end_wait(spoke_container_of(timer, struct spokei_retry_state, timer), SPOKE_OK);
}

/* When the call is due; the turn in which its wait began ends now. */
static uint64_t due_of(const struct spokei_retry_state *retry, uint64_t now_ns)
{
	uint64_t due_ns = spokei_later(now_ns, retry->pause_ns);
	uint64_t end_ns = spokei_later(retry->begun_ns, retry->lasts_ns);

	if (retry->state == SPOKEI_CALL_UNREADY)
		return spokei_later(retry->begun_ns, retry->args.timeout_ns);
	return due_ns < end_ns ? due_ns : end_ns;
}

static void retry_arm(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_retry_queue *queue = retry->queue;
	uint64_t now_ns = spokei_engine_settled(queue->engine);

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	retry->due_ns = due_of(retry, now_ns);
	if (spoke_wheel_schedule(queue->engine->wheel, &retry->timer, queue->timer_class,
				 retry->due_ns) != SPOKE_WHEEL_OK)
		end_wait(retry, SPOKE_ELIMIT);
}

static void wait_on(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
		    enum spokei_call_state state, struct spoke_list *list)
{
	spokei_call_move(&retry->state, state);
	retry->queue = queue;
	spokei_list_append(list, &retry->of_retry);
	retry->arm.run = retry_arm;
	spokei_engine_last(queue->engine, &retry->arm);
}

void spokei_retry_queue_pause(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t pause_ns)
{
	retry->pause_ns = pause_ns;
	wait_on(queue, retry, SPOKEI_CALL_PAUSING, &queue->pausing);
}

void spokei_retry_queue_unready(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	wait_on(queue, retry, SPOKEI_CALL_UNREADY, &queue->unready);
}

static void watch_due(struct spoke_timer *timer, void *arg)
{
	retry_due(timer, arg);
}

/* Attempts that may get a backup have a class of their own, which only programs with such methods
 * need. */
static unsigned watch_class(struct spokei_retry_queue *queue)
{
	if (queue->watch_class == UNKNOWN &&
	    spokei_engine_class(queue->engine, "hedge", watch_due, &queue->watch_class))
		queue->watch_class = queue->timer_class; /* there is no other */
	return queue->watch_class;
}

static void watch_arm(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_retry_queue *queue = retry->queue;
	uint64_t now_ns = spokei_engine_settled(queue->engine);

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	retry->due_ns = spokei_later(now_ns, retry->pause_ns);
	/* If the wheel has no room, the call goes on as if it were not watched. */
	(void)!spoke_wheel_schedule(queue->engine->wheel, &retry->timer, watch_class(queue),
				    retry->due_ns);
}

void spokei_retry_queue_watch(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t after_ns)
{
	retry->pause_ns = after_ns;
	retry->watched = true;
	retry->queue = queue;
	retry->arm.run = watch_arm;
	spokei_engine_last(queue->engine, &retry->arm);
}

void spokei_retry_queue_leave(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      bool over)
{
	retry->watched = false;
	spokei_task_drop(&retry->arm);
	if (retry->of_retry.next)
		spokei_list_remove(&retry->of_retry);
	(void)spoke_wheel_cancel(queue->engine->wheel, &retry->timer);
	if (!over || retry->of_tickets.next == NULL)
		return;
	spokei_list_remove(&retry->of_tickets);
	queue->tasks--;
	queue->bytes -= retry->size;
}

/* Calls that begin to wait again meanwhile are not due. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue)
{
	struct spoke_list ready;

	spokei_list_init(&ready);
	spokei_list_move(&queue->unready, &ready);
	while (!spokei_list_empty(&ready)) {
		end_wait(spoke_container_of(spokei_list_first(&ready), struct spokei_retry_state,
					    of_retry),
			 SPOKE_OK);
	}
}

struct spokei_retry_state *spokei_retry_queue_any(const struct spokei_retry_queue *queue)
{
	const struct spoke_list *list = &queue->pausing;

	if (spokei_list_empty(list))
		list = &queue->unready;
	if (spokei_list_empty(list))
		return NULL;
	return spoke_container_of(list->next, struct spokei_retry_state, of_retry);
}
