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

static void *take_block(struct spokei_course_blocks *blocks, const struct spoke_env *env,
			size_t size)
{
	void *block = blocks->first;

	if (size > SPOKEI_COURSE_BLOCK)
		return spokei_alloc_unset(env, size);
	if (block == NULL)
		return spokei_alloc_unset(env, SPOKEI_COURSE_BLOCK);
	memcpy(&blocks->first, block, sizeof(blocks->first));
	blocks->count--;
	return block;
}

static void give_block(struct spokei_course_blocks *blocks, const struct spoke_env *env,
		       void *block, size_t size)
{
	if (size > SPOKEI_COURSE_BLOCK) {
		spokei_free(env, block, 1, size);
	} else if (blocks->count == SPOKEI_COURSE_BLOCKS) {
		spokei_free(env, block, 1, SPOKEI_COURSE_BLOCK);
	} else {
		memcpy(block, &blocks->first, sizeof(blocks->first));
		blocks->first = block;
		blocks->count++;
	}
}

void spokei_course_blocks_fini(struct spokei_course_blocks *blocks, const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, take_block(blocks, env, SPOKEI_COURSE_BLOCK), 1,
			    SPOKEI_COURSE_BLOCK);
}

struct spokei_course *spokei_course_keep(struct spokei_course_blocks *blocks,
					 const struct spoke_env *env,
					 const struct spokei_message *request,
					 struct spoke_span key, bool numbered)
{
	struct spoke_span attachments = { request->attachments.data, request->attachments.len };
	size_t size = sizeof(struct spokei_course);
	struct spokei_course *course;
	unsigned char *at;

	if (request->args.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    key.len > SIZE_MAX / 8)
		return NULL;
	size += request->args.len + attachments.len + key.len;
	if (numbered)
		size += attachments.len + EXTENSION;
	course = take_block(blocks, env, size);
	if (course == NULL)
		return NULL;
	at = course->bytes;
	course->stage = SPOKEI_COURSE_KEPT;
	course->told = false;
	course->policy = NULL;
	course->timeout_ns = 0;
	course->size = size;
	course->one_way = !request->two_way;
	course->arg_count = request->arg_count;
	course->args = copy(&at, request->args);
	attachments = copy(&at, attachments);
	course->attachments = (struct spoke_value){ attachments.data, attachments.len };
	course->key = copy(&at, key);
	course->extended = numbered ? at : NULL;
	return course;
}

void spokei_course_open(struct spokei_course *course, struct spokei_attempt *own)
{
	const size_t from = offsetof(struct spokei_course, call);

	memset((unsigned char *)course + from, 0,
	       offsetof(struct spokei_course, ending.text) - from);
	course->stage = SPOKEI_COURSE_SENDING;
	course->call = own->call;
	course->own = own;
	course->own_free = true;
	course->tried = course->few;
	course->tried_room = SPOKEI_COURSE_FEW;
}

static void free_history(struct spokei_course *course, const struct spoke_env *env)
{
	while (course->forks) {
		struct spokei_fork *fork = course->forks;

		course->forks = fork->next;
		spokei_free(env, fork, 1, sizeof(*fork));
	}
	if (course->tried != course->few)
		spokei_free(env, course->tried, course->tried_room, sizeof(*course->tried));
}

void spokei_course_free(struct spokei_course_blocks *blocks, const struct spoke_env *env,
			struct spokei_course *course)
{
	if (!spokei_course_is_kept(course))
		free_history(course, env);
	give_block(blocks, env, course, course->size);
}

/* --- what it says */

void spokei_course_say(const struct spokei_course *course, struct spokei_message *request)
{
	request->args = course->args;
	request->arg_count = course->arg_count;
	request->two_way = !course->one_way;
	request->attachments = course->attachments;
	if (course->extended_len)
		request->attachments = (struct spoke_value){ course->extended,
							     course->extended_len };
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

void spokei_course_number(struct spokei_course *course)
{
	struct spoke_span pairs;
	char number[ID_TEXT];
	unsigned char *at = course->extended;
	bool has;
	size_t count = count_pairs(course->attachments, &pairs, &has);
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
	at = put_text(at, print_number(number, course->id, 16, 16));
	at = put_text(at, "spoke.attempt");
	at = put_text(at, print_number(number, course->begun + UINT64_C(1), 10, 1));
	if (pairs.len)
		memcpy(at, pairs.data, pairs.len);
	course->extended_len = (size_t)(at - course->extended) + pairs.len;
}

/* --- attempts */

struct spokei_attempt *spokei_course_attempt(struct spokei_course *course,
					     const struct spoke_env *env)
{
	struct spokei_fork *fork;

	if (course->own_free)
		return course->own;
	for (fork = course->forks; fork; fork = fork->next)
		if (fork->attempt.pending.conn == NULL)
			return &fork->attempt;
	fork = spokei_alloc(env, 1, sizeof(*fork));
	if (fork == NULL)
		return NULL;
	fork->next = course->forks;
	course->forks = fork;
	fork->attempt.call = course->call;
	return &fork->attempt;
}

int spokei_course_try(struct spokei_course *course, const struct spoke_env *env, uint64_t endpoint)
{
	size_t room = course->tried_room;
	uint64_t *more;

	if (course->tried_count == room) {
		more = spokei_alloc(env, room * 2, sizeof(*more));
		if (more == NULL)
			return SPOKE_ENOMEM;
		memcpy(more, course->tried, room * sizeof(*more));
		if (course->tried != course->few)
			spokei_free(env, course->tried, room, sizeof(*course->tried));
		course->tried = more;
		course->tried_room = (uint32_t)room * 2;
	}
	course->tried[course->tried_count++] = endpoint;
	return SPOKE_OK;
}

static uint8_t keep(unsigned char *to, struct spoke_span text)
{
	size_t len = text.len < SPOKEI_COURSE_TEXT ? text.len : SPOKEI_COURSE_TEXT;

	if (len)
		memcpy(to, text.data, len);
	return (uint8_t)len;
}

void spokei_course_note(struct spokei_course *course, const struct spokei_outcome *outcome,
			enum spoke_fate fate)
{
	struct spokei_ending *ending = &course->ending;

	course->last = fate;
	if (fate == SPOKE_FATE_OK) {
		course->ok++;
		return;
	}
	course->failed++;
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
