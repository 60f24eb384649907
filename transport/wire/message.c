/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the attachments of messages, copies messages, and finds their codecs. */
#include "transport/wire/message.h"

#include "core/base/env.h"
#include "transport/wire/codecs.h"

#include <string.h>

/* --- attachments */

static bool is_ours(struct spoke_value key)
{
	struct spoke_span text;

	return spoke_value_str(key, &text) == 0 &&
	       ((text.len == 7 && memcmp(text.data, "timeout", 7) == 0) ||
		(text.len == 3 && memcmp(text.data, "_TO", 3) == 0));
}

/* Returns true if the key is among the first `count`. */
static bool is_among(struct spoke_value key, struct spoke_cursor keys, size_t count)
{
	struct spoke_value other;
	struct spoke_value value;

	while (count-- > 0 && spoke_cursor_next_pair(&keys, &other, &value))
		if (spoke_value_equal(other, key))
			return true;
	return false;
}

int spokei_attachments_check(struct spoke_value attachments, bool of_reply)
{
	struct spoke_value checked;
	struct spoke_cursor pairs;
	struct spoke_cursor all;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;
	int error;

	if (attachments.len == 0)
		return SPOKE_OK;
	error = spoke_value_check(attachments.data, attachments.len, NULL, &checked);
	if (error == 0)
		error = spoke_cursor_map(checked, &pairs);
	if (error)
		return error;
	for (all = pairs; spoke_cursor_next_pair(&pairs, &key, &value); count++) {
		if (spoke_value_type(key) != SPOKE_VALUE_STR)
			return SPOKE_ETYPE;
		if (!of_reply && is_ours(key))
			return SPOKE_EINVAL;
		if (is_among(key, all, count))
			return SPOKE_EEXIST;
		if (count == SPOKEI_ATTACHMENTS_MAX)
			return SPOKE_ELIMIT;
	}
	return SPOKE_OK;
}

/* --- copies */

#define SPANS 8u
#define VALUES 3u

static void parts_of(struct spokei_message *message, struct spoke_span *spans[SPANS],
		     struct spoke_value *values[VALUES])
{
	spans[0] = &message->service;
	spans[1] = &message->version;
	spans[2] = &message->group;
	spans[3] = &message->method;
	spans[4] = &message->types;
	spans[5] = &message->args;
	spans[6] = &message->error_text;
	spans[7] = &message->error_class;
	values[0] = &message->type_names;
	values[1] = &message->value;
	values[2] = &message->attachments;
}

struct spokei_copy *spokei_copy_new(const struct spoke_env *env,
				    const struct spokei_message *message)
{
	struct spokei_message of = *message;
	struct spoke_span *spans[SPANS];
	struct spoke_value *values[VALUES];
	size_t size = sizeof(struct spokei_copy);
	struct spokei_copy *copy;
	unsigned char *at;

	parts_of(&of, spans, values);
	for (size_t i = 0; i < SPANS; i++)
		size += spans[i]->len;
	for (size_t i = 0; i < VALUES; i++)
		size += values[i]->len;
	copy = spokei_alloc_unset(env, size);
	if (copy == NULL)
		return NULL;
	at = copy->bytes;
	for (size_t i = 0; i < SPANS; i++) {
		if (spans[i]->data == NULL)
			continue;
		memcpy(at, spans[i]->data, spans[i]->len);
		spans[i]->data = at;
		at += spans[i]->len;
	}
	for (size_t i = 0; i < VALUES; i++) {
		if (values[i]->len == 0)
			continue;
		memcpy(at, values[i]->data, values[i]->len);
		values[i]->data = at;
		at += values[i]->len;
	}
	copy->message = of;
	copy->message.prefix = spokei_span(NULL, 0);
	copy->size = size;
	return copy;
}

void spokei_copy_free(const struct spoke_env *env, struct spokei_copy *copy)
{
	if (copy)
		spokei_free(env, copy, 1, copy->size);
}

/* --- codecs */

const struct spokei_codec *spokei_wire_codec(const struct spokei_wire_limits *limits, uint8_t id)
{
	if (limits->codec && limits->codec->id == id)
		return limits->codec;
	return id < SPOKEI_CODEC_IDS ? spokei_codecs[id] : NULL;
}
