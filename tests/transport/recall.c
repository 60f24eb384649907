/* SPDX-License-Identifier: Apache-2.0 */
/* Reading with and without a memo: see recall.h. */
#include "tests/transport/recall.h"

#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "timer/base.h"
#include "transport/codec/codec.h"

#include <stdlib.h>
#include <string.h>

void recall_init(struct recall *recall, const struct spokei_wire *wire,
		 const struct spokei_wire_limits *limits)
{
	memset(recall, 0, sizeof(*recall));
	recall->wire = wire;
	recall->limits = limits;
	memory_init(&recall->memory);
	for (unsigned i = 0; i < 2; i++)
		spokei_buffer_init(&recall->scratch[i], &recall->memory.env, SPOKE_VALUE_BYTES_MAX);
}

void recall_fini(struct recall *recall)
{
	for (unsigned i = 0; i < 2; i++)
		spokei_buffer_fini(&recall->scratch[i]);
	for (unsigned i = 0; i < RECALL_NAMES; i++) {
		free(recall->names[i]);
		recall->names[i] = NULL;
	}
}

static void list_names(const struct spokei_message *message, struct spoke_span names[RECALL_NAMES])
{
	names[0] = message->service;
	names[1] = message->version;
	names[2] = message->group;
	names[3] = message->method;
	names[4] = message->types;
}

static bool is_last(const struct recall *recall, const struct spokei_message *message)
{
	struct spoke_span names[RECALL_NAMES];

	list_names(message, names);
	for (unsigned i = 0; recall->any && i < RECALL_NAMES; i++) {
		if (names[i].len != recall->lens[i] ||
		    (names[i].len > 0 &&
		     memcmp(names[i].data, recall->names[i], names[i].len) != 0))
			return false;
	}
	return recall->any;
}

static void keep_names(struct recall *recall, const struct spokei_message *message)
{
	struct spoke_span names[RECALL_NAMES];

	list_names(message, names);
	for (unsigned i = 0; i < RECALL_NAMES; i++) {
		free(recall->names[i]);
		recall->names[i] = malloc(names[i].len + 1);
		SPOKE_ASSERT(recall->names[i]);
		recall->lens[i] = names[i].len;
		if (names[i].len > 0)
			memcpy(recall->names[i], names[i].data, names[i].len);
	}
	recall->any = true;
}

static bool same_places(const struct spokei_message *a, const struct spokei_message *b)
{
	struct spoke_span left[RECALL_NAMES];
	struct spoke_span right[RECALL_NAMES];

	list_names(a, left);
	list_names(b, right);
	for (unsigned i = 0; i < RECALL_NAMES; i++)
		if (left[i].data != right[i].data)
			return false;
	return a->args.data == b->args.data;
}

static const char *compare(struct recall *recall, const struct spokei_message *plain,
			   const struct spokei_message *recalled)
{
	const char *difference = messages_differ(recalled, plain);

	if (difference)
		return difference;
	/* Other bodies are translated, each to another place. */
	if (plain->codec == SPOKEI_CODEC_MSGPACK && !same_places(recalled, plain))
		return "where a name stands";
	if (plain->repeat)
		return "a repeat without a memo";
	recall->repeat = recalled->repeat;
	if (recall->repeat && (recall->result != 0 || plain->kind != SPOKEI_REQUEST))
		return "a repeat that is no request";
	if (recall->repeat && !is_last(recall, plain))
		return "a repeat that says something else";
	if (recall->result == 0 && plain->kind == SPOKEI_REQUEST)
		keep_names(recall, plain);
	return NULL;
}

const char *recall_read(struct recall *recall, struct spoke_span frame)
{
	unsigned char *copy = malloc(frame.len > 0 ? frame.len : 1);
	struct spokei_message plain;
	struct spokei_message recalled;
	const char *difference = NULL;
	int result;

	SPOKE_ASSERT(copy);
	memcpy(copy, frame.data, frame.len);
	recall->repeat = false;
	result = wire_read(recall->wire, recall->limits, NULL, spokei_span(copy, frame.len),
			   &recall->scratch[0], &plain);
	recall->result = wire_read(recall->wire, recall->limits, &recall->memo,
				   spokei_span(copy, frame.len), &recall->scratch[1], &recalled);
	if (recall->result != result)
		difference = "the verdict";
	else if (result != SPOKE_EPROTOCOL)
		difference = compare(recall, &plain, &recalled);
	free(copy);
	return difference;
}
