/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a call that may take several attempts: its memory, the copy of the arguments, and
 * our attachments, if they are asked for. */
#include "cluster/call/retry.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/filter/fence_table.h"
#include "core/base/env.h"
#include "core/base/span.h"
#include "core/engine/engine.h"

#include <string.h>

/* --- memory: a free list of equal blocks; larger ones are allocated one by one */

#define BLOCK 1024u    /* bytes */
#define BLOCKS_MAX 64u /* that are kept */
#define EXTENSION 64u  /* bytes of two of our pairs, and of the head of a map; without a name */

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
static size_t room_for_ours(const struct spokei_call_args *args)
{
	size_t room = args->policy && args->policy->repeats ? EXTENSION : 0;

	if (SPOKEI_UNLIKELY(args->lease))
		room += EXTENSION + spoke_lease_name(*args->lease).len;
	return room;
}

int spokei_retry_state_new(struct spokei_call *call, const struct spokei_call_args *args)
{
	struct spokei_caller *caller = call->method->caller;
	struct spoke_span attachments = { args->attachments.data, args->attachments.len };
	size_t size = sizeof(struct spokei_retry_state);
	size_t ours = room_for_ours(args);
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

/* --- our attachments */

#define ID_TEXT 24u /* bytes of a printed number, with the NUL */

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
