/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/call/retry_state.h"

#define ID_TEXT 24u
#define EXTENSION 64u /* bytes that the two pairs come to, and a map's head */

static struct spoke_span copy(unsigned char **at, struct spoke_span from)
{
	struct spoke_span span = spokei_span(*at, from.len);

	if (from.len)
		memcpy(*at, from.data, from.len);
	*at += from.len;
	return span;
}

/* --- memory */

static void *take_block(struct spokei_retry_state_blocks *blocks, const struct spoke_env *env,
			size_t size)
{
	void *block = blocks->first;

	if (size > SPOKEI_RETRY_STATE_BLOCK)
		return spokei_alloc_unset(env, size);
	if (block == NULL)
		return spokei_alloc_unset(env, SPOKEI_RETRY_STATE_BLOCK);
	memcpy(&blocks->first, block, sizeof(blocks->first));
	blocks->count--;
	return block;
}

static void give_block(struct spokei_retry_state_blocks *blocks, const struct spoke_env *env,
		       void *block, size_t size)
{
	if (size > SPOKEI_RETRY_STATE_BLOCK) {
		spokei_free(env, block, 1, size);
	} else if (blocks->count == SPOKEI_RETRY_STATE_BLOCKS) {
		spokei_free(env, block, 1, SPOKEI_RETRY_STATE_BLOCK);
	} else {
		memcpy(block, &blocks->first, sizeof(blocks->first));
		blocks->first = block;
		blocks->count++;
	}
}

void spokei_retry_state_blocks_fini(struct spokei_retry_state_blocks *blocks,
				    const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, take_block(blocks, env, SPOKEI_RETRY_STATE_BLOCK), 1,
			    SPOKEI_RETRY_STATE_BLOCK);
}

struct spokei_retry_state *spokei_retry_state_keep(struct spokei_retry_state_blocks *blocks,
						   const struct spoke_env *env,
						   const struct spokei_message *request,
						   struct spoke_span key, bool numbered)
{
	struct spoke_span attachments = { request->attachments.data, request->attachments.len };
	size_t size = sizeof(struct spokei_retry_state);
	struct spokei_retry_state *retry;
	unsigned char *at;

	if (request->args.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    key.len > SIZE_MAX / 8)
		return NULL;
	size += request->args.len + attachments.len + key.len;
	if (numbered)
		size += attachments.len + EXTENSION;
	retry = take_block(blocks, env, size);
	if (retry == NULL)
		return NULL;
	at = retry->bytes;
	retry->stage = SPOKEI_RETRY_STATE_KEPT;
	retry->told = false;
	retry->policy = NULL;
	retry->timeout_ns = 0;
	retry->size = size;
	retry->one_way = !request->two_way;
	retry->arg_count = request->arg_count;
	retry->args = copy(&at, request->args);
	attachments = copy(&at, attachments);
	retry->attachments = (struct spoke_value){ attachments.data, attachments.len };
	retry->key = copy(&at, key);
	retry->extended = numbered ? at : NULL;
	return retry;
}

void spokei_retry_state_open(struct spokei_retry_state *retry, struct spokei_attempt *own)
{
	const size_t from = offsetof(struct spokei_retry_state, call);

	memset((unsigned char *)retry + from, 0,
	       offsetof(struct spokei_retry_state, ending.text) - from);
	retry->stage = SPOKEI_RETRY_STATE_SENDING;
	retry->call = own->call;
	retry->own = own;
	retry->own_free = true;
	retry->tried = retry->few;
	retry->tried_room = SPOKEI_RETRY_STATE_FEW;
}

static void free_history(struct spokei_retry_state *retry, const struct spoke_env *env)
{
	while (retry->forks) {
		struct spokei_fork *fork = retry->forks;

		retry->forks = fork->next;
		spokei_free(env, fork, 1, sizeof(*fork));
	}
	if (retry->tried != retry->few)
		spokei_free(env, retry->tried, retry->tried_room, sizeof(*retry->tried));
}

void spokei_retry_state_free(struct spokei_retry_state_blocks *blocks, const struct spoke_env *env,
			     struct spokei_retry_state *retry)
{
	if (!spokei_retry_state_is_kept(retry))
		free_history(retry, env);
	give_block(blocks, env, retry, retry->size);
}

/* --- what it says */

void spokei_retry_state_say(const struct spokei_retry_state *retry, struct spokei_message *request)
{
	request->args = retry->args;
	request->arg_count = retry->arg_count;
	request->two_way = !retry->one_way;
	request->attachments = retry->attachments;
	if (retry->extended_len)
		request->attachments = (struct spoke_value){ retry->extended, retry->extended_len };
}

/* --- attachments */

static unsigned char *put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	*at++ = (unsigned char)(0xa0 | len); /* up to 31 bytes */
	for (; *text; text++)
		*at++ = (unsigned char)*text;
	return at;
}

/* In digits of a base, `least` of them or more. snprintf() takes longer than the rest of a call. */
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

static bool is_key(struct spoke_value key, const char *text)
{
	struct spoke_span span;

	return spoke_value_str(key, &span) == 0 && span.len == strlen(text) &&
	       memcmp(span.data, text, span.len) == 0;
}

/* How many pairs the user says, and whether they leave ours out. They were checked. */
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

void spokei_retry_state_number(struct spokei_retry_state *retry)
{
	struct spoke_span pairs;
	char number[ID_TEXT];
	unsigned char *at = retry->extended;
	bool has;
	size_t count = count_pairs(retry->attachments, &pairs, &has);
	uint32_t all = (uint32_t)count + 2;

	SPOKE_ASSERT(at != NULL);
	if (has)
		return;
	*at++ = 0xdf; /* a map of so many pairs */
	*at++ = (unsigned char)(all >> 24);
	*at++ = (unsigned char)(all >> 16);
	*at++ = (unsigned char)(all >> 8);
	*at++ = (unsigned char)all;
	at = put_text(at, "spoke.id");
	at = put_text(at, print_number(number, retry->id, 16, 16));
	at = put_text(at, "spoke.attempt");
	at = put_text(at, print_number(number, retry->begun + UINT64_C(1), 10, 1));
	if (pairs.len)
		memcpy(at, pairs.data, pairs.len);
	retry->extended_len = (size_t)(at - retry->extended) + pairs.len;
}

/* --- attempts */

struct spokei_attempt *spokei_retry_state_attempt(struct spokei_retry_state *retry,
						  const struct spoke_env *env)
{
	struct spokei_fork *fork;

	if (retry->own_free)
		return retry->own;
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
	if (outcome->reply == NULL)
		return;
	ending->error_code = outcome->reply->error_code;
	ending->text_len = keep(ending->text, outcome->reply->error_text);
	ending->class_len = keep(ending->class_name, outcome->reply->error_class);
}
