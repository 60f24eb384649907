/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the decoder of Dubbo frames. A header must be decoded the same for any number of bytes
 * after it. A body must be accepted exactly if the validator accepts it, with and without a memo. A
 * decoded message must encode to the same message, and then to the same bytes. In Hessian 2,
 * decoding and encoding must agree with a translation by the codec.
 */
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/transport/recall.h"
#include "tests/transport/translated.h"
#include "tests/transport/wires.h"
#include "transport/codec/codec.h"
#include "transport/wire/dubbo/dubbo.h"

#include <stdlib.h>
#include <string.h>

#define HEAD 16
#define OK 20 /* a status */
#define BYTES_MAX ((size_t)1 << 22)
#define ATTACHMENTS_MAX 256
#define ATTACHMENTS_ADDED 3

static const struct spokei_wire_limits limits = {
	.frame_max = BYTES_MAX,
	.name_max = BYTES_MAX,
	.event_max = 64,
	.free_len = 4096,
};

static void agrees(const char *difference)
{
	demand(difference == NULL, difference ? difference : "");
}

static int cut(const void *bytes, size_t len, size_t *ret_len)
{
	struct spokei_cut state = { 0 };

	*ret_len = 0;
	return wire_cut(&spokei_wire_dubbo, &limits, &state, spokei_span(bytes, len), ret_len);
}

/* Checks that a prefix gets MORE or the result of the whole input. */
static void prefixes_agree(const uint8_t *data, size_t size)
{
	size_t whole_len;
	int whole = cut(data, size, &whole_len);

	for (size_t len = 0; len < size && len <= HEAD; len++) {
		size_t prefix_len;
		int prefix = cut(data, len, &prefix_len);

		if (prefix == SPOKEI_NEXT_MORE)
			demand(prefix_len > len, "an incomplete frame needs more bytes");
		else
			demand(prefix == whole && prefix_len == whole_len, "a prefix agrees");
	}
}

static bool same_span(struct spoke_span a, struct spoke_span b)
{
	return a.len == b.len &&
	       (a.len == 0 || (a.data && b.data && memcmp(a.data, b.data, a.len) == 0));
}

static bool same_value(struct spoke_value a, struct spoke_value b)
{
	bool a_null = a.len == 0 || spoke_value_is_nil(a);
	bool b_null = b.len == 0 || spoke_value_is_nil(b);

	return a_null == b_null && (a_null || spoke_value_equal(a, b));
}

static bool same_request(const struct spokei_message *a, const struct spokei_message *b)
{
	return same_span(a->service, b->service) && same_span(a->version, b->version) &&
	       same_span(a->group, b->group) && same_span(a->method, b->method) &&
	       same_span(a->args, b->args) && a->arg_count == b->arg_count &&
	       (a->types.len == 0 || same_span(a->types, b->types)) && a->generic == b->generic &&
	       same_value(a->type_names, b->type_names) && a->timeout_ms == b->timeout_ms;
}

static bool same_reply(const struct spokei_message *a, const struct spokei_message *b)
{
	return a->status == b->status && a->error == b->error && same_value(a->value, b->value) &&
	       same_span(a->error_text, b->error_text) &&
	       same_span(a->error_class, b->error_class) && a->error_code == b->error_code &&
	       a->bare == b->bare;
}

/* Returns whether all attachments of the first set are in the second; the encoder may add others.
 */
static bool attachments_kept(struct spoke_value a, struct spoke_value b)
{
	struct spoke_cursor before;
	struct spoke_cursor after;
	struct spoke_value left;
	struct spoke_value right;

	if (a.len == 0)
		return true;
	if (spoke_cursor_map(a, &before) != 0 || spoke_cursor_map(b, &after) != 0)
		return false;
	while (spoke_cursor_next(&before, &left))
		if (!spoke_cursor_next(&after, &right) || !spoke_value_equal(left, right))
			return false;
	return after.left <= (uint64_t)2 * ATTACHMENTS_ADDED;
}

static void messages_agree(const struct spokei_message *a, const struct spokei_message *b)
{
	demand(a->kind == b->kind && a->id == b->id && a->two_way == b->two_way &&
		       a->codec == b->codec,
	       "the header is the same");
	demand(same_request(a, b), "the request is the same");
	demand(a->kind != SPOKEI_REPLY || same_reply(a, b), "the reply is the same");
	demand(same_span(a->event, b->event), "the event is the same");
	demand(attachments_kept(a->attachments, b->attachments), "the attachments are kept");
}

/* Appends the message to a buffer; false: it has more attachments than can be encoded. */
static bool write_message(const struct spokei_message *message, struct spokei_buffer *buffer)
{
	size_t pairs = 0;
	int result = spokei_wire_dubbo.write(&limits, message, buffer);

	if (result == SPOKE_ETOOLARGE && spoke_value_map_len(message->attachments, &pairs) == 0 &&
	    pairs + ATTACHMENTS_ADDED > ATTACHMENTS_MAX)
		return false;
	demand(result == 0, "a decoded message can be encoded");
	return true;
}

/* Writes a message that was read from Hessian 2. Its arguments may change, because they are written
 * as declared types that need not suit them; so only the codec's translation must agree. */
static void is_written_like_by_codec(const struct spokei_message *message)
{
	struct memory memory;
	struct spokei_buffer out;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, BYTES_MAX);
	if (spokei_wire_dubbo.write(&limits, message, &out) == 0)
		agrees(translated_write(&limits, message,
					spokei_span(spokei_buffer_data(&out),
						    spokei_buffer_len(&out))));
	spokei_buffer_fini(&out);
}

static void survives_the_way(const struct spokei_message *message)
{
	struct memory memory;
	struct spokei_buffer once;
	struct spokei_buffer twice;
	struct spokei_message back;
	struct spoke_span frame;
	size_t len;

	memory_init(&memory);
	spokei_buffer_init(&once, &memory.env, BYTES_MAX);
	spokei_buffer_init(&twice, &memory.env, BYTES_MAX);
	if (write_message(message, &once)) {
		frame = spokei_span(spokei_buffer_data(&once), spokei_buffer_len(&once));
		demand(cut(frame.data, frame.len, &len) == 0 && len == frame.len,
		       "an encoded message is a frame");
		demand(wire_read(&spokei_wire_dubbo, &limits, NULL, frame, NULL, &back) == 0,
		       "an encoded message can be decoded");
		messages_agree(message, &back);
		if (write_message(&back, &twice))
			demand(same_span(frame, spokei_span(spokei_buffer_data(&twice),
							    spokei_buffer_len(&twice))),
			       "encoding is a fixed point");
	}
	spokei_buffer_fini(&once);
	spokei_buffer_fini(&twice);
}

/* Checks that the decoder rejects what the validator rejects, with the same error. */
static void verdicts_agree(struct spoke_span frame, const struct spokei_message *message,
			   int result)
{
	const unsigned char *bytes = frame.data;
	struct spoke_span body = spokei_span(bytes + HEAD, frame.len - HEAD);
	struct spoke_cursor values;
	int verdict;

	if (message->codec != SPOKEI_CODEC_MSGPACK ||
	    (message->kind != SPOKEI_REQUEST && message->kind != SPOKEI_REPLY))
		return;
	if (message->kind == SPOKEI_REPLY && message->status != OK)
		return; /* the status counts, whatever the body contains */
	verdict = spoke_values_check(body.data, body.len, &limits.value, &values, NULL);
	demand(verdict == 0 || verdict == result, "the validator agrees");
}

/* Decodes each frame at the beginning of the bytes twice. */
static void recall_all(const uint8_t *data, size_t size)
{
	struct recall recall;
	size_t len;

	recall_init(&recall, &spokei_wire_dubbo, &limits);
	for (; cut(data, size, &len) == 0; data += len, size -= len) {
		for (int i = 0; i < 2; i++)
			agrees(recall_read(&recall, spokei_span(data, len)));
	}
	recall_fini(&recall);
}

FUZZ(dubbo)
{
	struct spokei_message message;
	struct spokei_buffer scratch;
	struct memory memory;
	unsigned char *frame;
	size_t len;
	int result;

	prefixes_agree(data, size);
	if (cut(data, size, &len) != 0)
		return 0;
	frame = malloc(len);
	if (frame == NULL)
		return 0;
	memcpy(frame, data, len);
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, BYTES_MAX);
	result = wire_read(&spokei_wire_dubbo, &limits, NULL, spokei_span(frame, len), &scratch,
			   &message);
	demand(result != SPOKE_EPROTOCOL, "a frame is read");
	verdicts_agree(spokei_span(frame, len), &message, result);
	recall_all(data, size);
	if (result == 0) {
		agrees(translated_read(&limits, spokei_span(frame, len), &message));
		if (message.codec == SPOKEI_CODEC_HESSIAN2)
			is_written_like_by_codec(&message);
		else
			survives_the_way(&message);
	}
	spokei_buffer_fini(&scratch);
	free(frame);
	return 0;
}
