/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a call that may take several attempts: its memory, the copy of the arguments, and
 * our attachments, if they are asked for. */
#include "cluster/call/retry.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/filter/dedupe_table.h"
#include "cluster/filter/fence_table.h"
#include "core/base/env.h"
#include "core/base/siphash.h"
#include "core/base/span.h"
#include "core/engine/engine.h"
#include "core/text/encoding.h"
#include "transport/conn/conn.h"

#include <string.h>

/* --- memory: a free list of equal blocks; larger ones are allocated one by one */

#define BLOCK 1280u    /* bytes */
#define BLOCKS_MAX 64u /* that are kept */
#define LEASED 64u     /* bytes of the pairs of a lease, without its name */
#define MARKED 112u    /* ... of the id, the attempt and the repeat, and of the head of a map */

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

void spokei_retry_blocks_free(struct spokei_retry_blocks *blocks, const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, take_block(blocks, env, BLOCK), 1, BLOCK);
}

static struct spoke_span copy(unsigned char **at, struct spoke_span from)
{
	struct spoke_span span = spokei_span(*at, from.len);

	if (from.len)
		memcpy(*at, from.data, from.len);
	*at += from.len;
	return span;
}

/* Returns how many bytes our attachments need at most, and the head of the map; 0: there are none.
 */
static size_t room_for_ours(const struct spokei_call_args *args, bool identified)
{
	size_t room = identified ? MARKED : 0;

	if (SPOKEI_UNLIKELY(args->lease))
		room += MARKED + LEASED + spoke_lease_name(*args->lease).len;
	return room;
}

/* May attempts of this call bear an id: does its policy repeat, or a repeat may be recognised? */
static bool is_identified(const struct spoke_method *method, const struct spoke_policy *policy)
{
	return policy && (policy->repeats ||
			  (method->settings.marked && (policy->attempts == SPOKE_ATTEMPTS_IN_TURN ||
						       policy->attempts == SPOKE_ATTEMPTS_ANY)));
}

static uint64_t next_id(struct spokei_caller *caller)
{
	const struct spoke_env *env = caller->engine->env;

	if (!caller->has_id_key)
		env->dice(env->ctx, caller->id_key, sizeof(caller->id_key));
	caller->has_id_key = true;
	return caller->next_id++;
}

int spokei_retry_state_new(struct spokei_call *call, const struct spokei_call_args *args)
{
	struct spokei_caller *caller = call->method->caller;
	struct spoke_span attachments = { args->attachments.data, args->attachments.len };
	size_t size = sizeof(struct spokei_retry_state);
	bool identified = is_identified(call->method, args->policy);
	size_t ours = room_for_ours(args, identified);
	struct spokei_retry_state *retry;
	unsigned char *at;

	if (args->values.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    args->key.len > SIZE_MAX / 8)
		return SPOKE_ENOMEM;
	size += args->values.len + attachments.len + args->key.len;
	if (ours)
		size += attachments.len + ours;
	retry = take_block(&caller->blocks, caller->engine->env, size);
	if (retry == NULL)
		return SPOKE_ENOMEM;
	at = retry->bytes;
	retry->state = SPOKEI_CALL_FIRST;
	retry->ticket = SPOKEI_TICKET_NONE;
	retry->first_answer = false;
	retry->size = size;
	retry->call = call;
	retry->timeout_ns = args->timeout_ns;
	retry->args = *args;
	retry->args.values = copy(&at, args->values);
	attachments = copy(&at, attachments);
	retry->args.attachments = (struct spoke_value){ attachments.data, attachments.len };
	retry->args.key = copy(&at, args->key);
	retry->args.lease = NULL; /* the user's */
	retry->extended = ours ? at : NULL;
	retry->extended_len = 0;
	retry->id = 0;
	if (identified)
		retry->id = next_id(caller);
	retry->instance = 0;
	retry->bound = false;
	caller->kept += size;
	call->retry = retry;
	return SPOKE_OK;
}

static void free_history(struct spokei_retry_state *retry, const struct spoke_env *env)
{
	if (spokei_retry_state_is_leased(retry)) {
		spokei_use_end(&retry->lease.use);
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

void spokei_retry_state_free(struct spokei_caller *caller, struct spokei_retry_state *retry)
{
	const struct spoke_env *env = caller->engine->env;

	if (retry == NULL)
		return;
	if (retry->state != SPOKEI_CALL_FIRST)
		free_history(retry, env);
	caller->kept -= retry->size;
	give_block(&caller->blocks, env, retry, retry->size);
}

/* --- its end */

struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry)
{
	const struct spokei_ending *ending = &retry->ending;
	struct spoke_result result = {
		.error = ending->error,
		.attempts = retry->begun,
		.error_code = ending->error_code,
		.error_text = { ending->text, ending->text_len },
		.error_class = { ending->class_name, ending->class_len },
		.written = retry->written,
		.queued_ns = ending->queued_ns,
		.waited_ns = ending->waited_ns,
	};

	/* All attempts were answered. */
	if (retry->ok > 0 && retry->failed == 0)
		result.error = SPOKE_OK;
	if (result.error == SPOKE_OK)
		result.value = spokei_call_nil;
	return result;
}

/* --- endpoints */

int spokei_retry_state_tried(struct spokei_retry_state *retry, const struct spoke_env *env,
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

/* --- our attachments */

#define ATTEMPT "spoke.attempt"
#define ID_TEXT 24u   /* bytes of a printed number, with the NUL */
#define ID_DIGITS 32u /* 128 bits */
#define MS_MAX ((UINT64_C(1) << 48) - 1)
#define NS_PER_MS UINT64_C(1000000)

static inline unsigned char *put_bytes(unsigned char *at, struct spoke_span bytes)
{
	if (bytes.len)
		memcpy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

/* Writes a text of up to 31 bytes. Inline, because most are constant. */
static inline unsigned char *put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	*at = (unsigned char)(0xa0 | len);
	return put_bytes(at + 1, spokei_span(text, len));
}

/* Prints a number. snprintf() would take longer than the rest of a call. */
static const char *print_number(char text[ID_TEXT], uint64_t number)
{
	char *at = text + ID_TEXT - 1;

	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
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
	return put_text(at, print_number(number, spoke_lease_fence(lease)));
}

uint64_t spokei_retry_state_id_half(const struct spokei_retry_state *retry)
{
	const uint64_t *key = retry->call->method->caller->id_key;

	if (retry->state != SPOKEI_CALL_FIRST && SPOKEI_UNLIKELY(retry->id_half))
		return retry->id_half;
	return spokei_siphash(key, &retry->id, sizeof(retry->id));
}

static unsigned char *put_id(unsigned char *at, const struct spokei_retry_state *retry)
{
	at = put_text(at, SPOKEI_DEDUPE_ID);
	*at++ = 0xd9; /* str, with its length in a byte */
	*at++ = ID_DIGITS;
	spokei_hex_write(at, spokei_retry_state_id_half(retry));
	spokei_hex_write(at + ID_DIGITS / 2, retry->id);
	return at + ID_DIGITS;
}

static unsigned char *put_attempt(unsigned char *at, const struct spokei_retry_state *retry)
{
	char number[ID_TEXT];

	at = put_text(at, ATTEMPT);
	return put_text(at, print_number(number, retry->begun + UINT64_C(1)));
}

size_t spokei_repeat_print(const struct spokei_retry_state *retry, char mark[SPOKEI_REPEAT_MARK])
{
	const size_t instance = 8;
	const size_t since = 12;
	unsigned char digits[16];

	*mark = '\0';
	if (retry->instance == 0)
		return 0;
	spokei_hex_write(digits, retry->instance);
	memcpy(mark, digits + sizeof(digits) - instance, instance);
	mark[instance] = '.';
	spokei_hex_write(digits, retry->since_ms & MS_MAX);
	memcpy(mark + instance + 1, digits + sizeof(digits) - since, since);
	mark[instance + 1 + since] = '\0';
	return instance + 1 + since;
}

static unsigned char *put_repeat(unsigned char *at, const struct spokei_retry_state *retry)
{
	char mark[SPOKEI_REPEAT_MARK];

	(void)spokei_repeat_print(retry, mark);
	return put_text(put_text(at, SPOKEI_DEDUPE_REPEAT), mark);
}

static bool is_key(struct spoke_value key, const char *text)
{
	struct spoke_span span;

	return spoke_value_str(key, &span) == 0 && span.len == strlen(text) &&
	       memcmp(span.data, text, span.len) == 0;
}

/* The attachments of the user. */
struct pairs {
	struct spoke_span bytes;
	uint32_t count;
	bool id;
	bool attempt;
	bool repeat;
};

/* Reads the user's pairs, which were checked. */
static void read_pairs(struct spoke_value map, struct pairs *ret)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;

	*ret = (struct pairs){ .count = 0 };
	if (map.len == 0 || spoke_cursor_map(map, &pairs) != 0)
		return;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (ret->count++ == 0)
			ret->bytes = spokei_span(key.data, map.len - (size_t)(key.data - map.data));
		ret->id |= is_key(key, SPOKEI_DEDUPE_ID);
		ret->attempt |= is_key(key, ATTEMPT);
		ret->repeat |= is_key(key, SPOKEI_DEDUPE_REPEAT);
	}
}

/* Returns a time of the clock of the peer's instance, which has not passed now for sure: clocks may
 * differ by a thousandth. */
static uint64_t peer_ms(const struct spokei_conn *conn, uint64_t now_ns)
{
	uint64_t since_ns = now_ns > conn->instance_told_ns ? now_ns - conn->instance_told_ns : 0;

	return (conn->instance_ns + since_ns - since_ns / 1000 - (since_ns > 0)) / NS_PER_MS;
}

/* Notes which instance can recognise a repeat of this attempt; or none, if the user marks
 * repeats. */
static void note_instance(struct spokei_retry_state *retry, const struct spokei_conn *conn,
			  bool marks)
{
	if (retry->bound)
		return;
	retry->instance = marks ? conn->instance : 0;
	if (retry->instance)
		retry->since_ms = peer_ms(conn, retry->call->method->caller->engine->begin_ns);
}

/* Writes the head of a map. */
static unsigned char *put_head(unsigned char *at, uint32_t count)
{
	if (SPOKEI_LIKELY(count < 16)) {
		*at++ = (unsigned char)(0x80 | count);
		return at;
	}
	*at++ = 0xdf; /* with the number of pairs in four bytes */
	*at++ = (unsigned char)(count >> 24);
	*at++ = (unsigned char)(count >> 16);
	*at++ = (unsigned char)(count >> 8);
	*at++ = (unsigned char)count;
	return at;
}

void spokei_retry_state_attach(struct spokei_retry_state *retry, const struct spokei_conn *conn,
			       bool identified)
{
	const bool leased = retry->state != SPOKEI_CALL_FIRST &&
			    spokei_retry_state_is_leased(retry);
	unsigned char *at = retry->extended;
	struct pairs pairs;
	uint32_t ours;
	bool has_id;
	bool counts; /* the attempts */

	SPOKE_ASSERT(at != NULL);
	identified &= retry->id != 0;
	read_pairs(retry->args.attachments, &pairs);
	has_id = identified && !pairs.id && !pairs.attempt;
	note_instance(retry, conn, identified && (has_id || pairs.id) && !pairs.repeat);
	counts = has_id && retry->args.policy->repeats;
	ours = 2u * leased + (uint32_t)has_id + (uint32_t)counts + (uint32_t)retry->bound;
	retry->extended_len = 0;
	if (ours == 0)
		return;
	at = put_head(at, ours + pairs.count);
	if (leased)
		at = put_lease(at, retry->lease.lease);
	if (has_id)
		at = put_id(at, retry);
	if (counts)
		at = put_attempt(at, retry);
	if (retry->bound)
		at = put_repeat(at, retry);
	at = put_bytes(at, pairs.bytes);
	retry->extended_len = (size_t)(at - retry->extended);
}
