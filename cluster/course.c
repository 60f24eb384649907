/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/course.h"

#include <inttypes.h>
#include <stdio.h>

#define ID_TEXT 20u
#define EXTENSION 64u /* bytes that the two pairs come to, and a map's head */
#define EXTENDED_MAX 8388608u
#define TRIED_MAX 1048576u /* bytes of ids */

static struct spoke_span copy(unsigned char **at, struct spoke_span from)
{
	struct spoke_span span = spokei_span(*at, from.len);

	if (from.len)
		memcpy(*at, from.data, from.len);
	*at += from.len;
	return span;
}

struct spokei_course *spokei_course_new(const struct spoke_env *env,
					const struct spokei_message *request, struct spoke_span key,
					struct spokei_attempt *own)
{
	struct spoke_span attachments = { request->attachments.data, request->attachments.len };
	size_t size = sizeof(struct spokei_course);
	struct spokei_course *course;
	unsigned char *at;

	if (request->args.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    key.len > SIZE_MAX / 8)
		return NULL;
	size += request->args.len + attachments.len + key.len;
	course = spokei_alloc_unset(env, size);
	if (course == NULL)
		return NULL;
	memset(course, 0, sizeof(*course));
	at = course->bytes;
	course->size = size;
	course->call = own->call;
	course->own = own;
	course->own_free = true;
	course->one_way = !request->two_way;
	course->arg_count = request->arg_count;
	course->args = copy(&at, request->args);
	attachments = copy(&at, attachments);
	course->attachments = (struct spoke_value){ attachments.data, attachments.len };
	course->key = copy(&at, key);
	spokei_buffer_init(&course->extended, env, EXTENDED_MAX);
	spokei_buffer_init(&course->tried, env, TRIED_MAX);
	return course;
}

void spokei_course_free(const struct spoke_env *env, struct spokei_course *course)
{
	while (course->forks) {
		struct spokei_fork *fork = course->forks;

		course->forks = fork->next;
		spokei_free(env, fork, 1, sizeof(*fork));
	}
	spokei_buffer_fini(&course->extended);
	spokei_buffer_fini(&course->tried);
	spokei_free(env, course, 1, course->size);
}

void spokei_course_say(const struct spokei_course *course, struct spokei_message *request)
{
	size_t len = spokei_buffer_len(&course->extended);

	request->args = course->args;
	request->arg_count = course->arg_count;
	request->two_way = !course->one_way;
	request->attachments = course->attachments;
	if (len)
		request->attachments = (struct spoke_value){ spokei_buffer_data(&course->extended),
							     len };
}

/* --- attachments */

static unsigned char *put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	*at++ = (unsigned char)(0xa0 | len); /* up to 31 bytes */
	memcpy(at, text, len);
	return at + len;
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

int spokei_course_number(struct spokei_course *course)
{
	struct spoke_span pairs;
	char number[ID_TEXT];
	unsigned char bytes[EXTENSION];
	unsigned char *at = bytes;
	bool has;
	size_t count = count_pairs(course->attachments, &pairs, &has);
	uint32_t all = (uint32_t)count + 2;
	int error;

	if (has)
		return SPOKE_OK;
	spokei_buffer_truncate(&course->extended, 0);
	*at++ = 0xdf; /* a map of so many pairs */
	*at++ = (unsigned char)(all >> 24);
	*at++ = (unsigned char)(all >> 16);
	*at++ = (unsigned char)(all >> 8);
	*at++ = (unsigned char)all;
	at = put_text(at, "spoke.id");
	(void)snprintf(number, sizeof(number), "%016" PRIx64, course->id);
	at = put_text(at, number);
	at = put_text(at, "spoke.attempt");
	(void)snprintf(number, sizeof(number), "%" PRIu32, course->begun + 1);
	at = put_text(at, number);
	error = spokei_buffer_append(&course->extended, bytes, (size_t)(at - bytes));
	if (error == 0 && pairs.len)
		error = spokei_buffer_append(&course->extended, pairs.data, pairs.len);
	if (error)
		spokei_buffer_truncate(&course->extended, 0);
	return error;
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

int spokei_course_try(struct spokei_course *course, uint64_t endpoint)
{
	return spokei_buffer_append(&course->tried, &endpoint, sizeof(endpoint));
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
	ending->written = outcome->written;
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
