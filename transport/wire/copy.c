/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a message and everything it points to into one block. */
#include "transport/wire/copy.h"
#include "core/base/env.h"

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
	copy->message.event = spokei_span(NULL, 0);
	copy->message.prefix = spokei_span(NULL, 0);
	copy->size = size;
	return copy;
}

void spokei_copy_free(const struct spoke_env *env, struct spokei_copy *copy)
{
	if (copy)
		spokei_free(env, copy, 1, copy->size);
}
