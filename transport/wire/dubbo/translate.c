/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates bodies between msgpack and other serializations. A body to write is first made in a
 * buffer of its own, which is bounded by the maximum of a frame and freed before the function
 * returns.
 */
#include "transport/wire/dubbo/translate.h"

#include "transport/codec/hessian2/read.h"
#include "transport/wire/codecs.h"
#include "transport/wire/dubbo/direct.h"
#include "transport/wire/dubbo/read.h"
#include "transport/wire/dubbo/write.h"
#include "transport/wire/hop.h"

#define NAMES 4u /* number of texts in a prefix */

#define SWOLLEN                                                                                    \
	"the body repeats too much: its values may have 32 times its bytes, and references may "   \
	"repeat 4 values for each byte"

_Static_assert(SPOKEI_CODEC_GROWTH == 32 && SPOKEI_CODEC_VALUE == 8, "see the text");

/* --- reading */

static enum spokei_codec_part part_of(const struct spokei_message *message)
{
	if (message->kind == SPOKEI_REQUEST)
		return SPOKEI_CODEC_REQUEST;
	return message->status == SPOKEI_DUBBO_OK ? SPOKEI_CODEC_REPLY : SPOKEI_CODEC_TEXT;
}

/* Adds the bytes that a body earns to those that earlier ones have left. */
static void earn(const struct spokei_wire_limits *limits, size_t len, struct spokei_buffer *scratch)
{
	size_t most = limits->value.bytes_max ? limits->value.bytes_max : SPOKE_VALUE_BYTES_MAX;
	size_t spare = scratch->max < limits->spare_max ? scratch->max : limits->spare_max;

	scratch->max = most;
	if (spare < most && len < (most - spare) / SPOKEI_CODEC_GROWTH)
		scratch->max = spare + len * SPOKEI_CODEC_GROWTH;
}

static void begin(const struct spokei_wire_limits *limits, size_t len,
		  struct spokei_buffer *scratch)
{
	spokei_buffer_truncate(scratch, 0); /* the last message is no longer used */
	earn(limits, len, scratch);
}

/* Explains an error of the codec to the peer if its body stands for too much. */
static int end(int error, const struct spokei_buffer *scratch, struct spokei_message *message)
{
	if (error == SPOKE_ETOOLARGE && scratch->max == 0)
		message->swollen = SWOLLEN;
	return error;
}

/* Returns the values of a body. */
static int translate(const struct spokei_wire_limits *limits, const struct spokei_codec *codec,
		     struct spokei_message *message, struct spoke_span body,
		     struct spokei_buffer *scratch, struct spoke_span *ret_values)
{
	if (codec == NULL || codec->to_values == NULL)
		return SPOKE_EUNSUPPORTED;
	begin(limits, body.len, scratch);
	return end(codec->to_values(&limits->value, part_of(message), body, scratch, ret_values),
		   scratch, message);
}

/* Reads a request in Hessian 2; the memo has names in that serialization. */
static int read_hessian2(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			 struct spoke_span body, struct spokei_buffer *scratch,
			 struct spokei_message *message)
{
	struct spokei_codec_places places;
	struct spoke_span values;
	bool known;
	int result;

	begin(limits, body.len, scratch);
	result = end(spokei_hessian2_read_request(&limits->value, body, scratch, &values, &places),
		     scratch, message);
	if (result)
		return result;
	known = spokei_dubbo_direct_begin(memo, body);
	result = spokei_dubbo_read_named(limits, memo, known, &places, values, message);
	spokei_dubbo_direct_end(memo, known, body, result == 0 ? message : NULL);
	return result;
}

int spokei_dubbo_translate_body(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
				struct spoke_span body, struct spokei_buffer *scratch,
				struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	struct spoke_span values;
	int result;

	if (message->kind == SPOKEI_REQUEST && codec == &spokei_codec_hessian2)
		return read_hessian2(limits, memo, body, scratch, message);
	result = translate(limits, codec, message, body, scratch, &values);
	if (result)
		return result;
	if (message->kind == SPOKEI_REQUEST)
		return spokei_dubbo_read_request(limits, memo, values, message);
	return spokei_dubbo_read_reply(limits, codec == &spokei_codec_hessian2, values, message);
}

/* --- writing */

/* Returns the message without the prefix and without lent bytes, to be written in msgpack. */
static struct spokei_message plain_of(const struct spokei_message *message)
{
	struct spokei_message plain = *message;

	plain.prefix = spokei_span(NULL, 0);
	plain.lent = NULL;
	return plain;
}

/* Returns the values of a request after its names. */
static struct spoke_span after_names(struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value name;

	for (unsigned i = 0; i < NAMES && spokei_hop_next(&cursor, &name); i++)
		continue;
	return spoke_cursor_rest(&cursor);
}

/* Writes the head of the frame that begins after `before` bytes and returns 0. After an error,
 * removes the frame and returns the error. */
static int end_frame(const struct spokei_wire_limits *limits, struct spokei_dubbo_head head,
		     int error, size_t before, struct spokei_buffer *out)
{
	size_t len = spokei_buffer_len(out) - before;

	if (error == 0 && len > limits->frame_max)
		error = SPOKE_ETOOLARGE;
	if (error) {
		spokei_buffer_truncate(out, before);
		return error;
	}
	SPOKE_ASSERT(out->bytes != NULL);
	head.body_len = len - SPOKEI_DUBBO_HEAD_LEN;
	spokei_dubbo_head_write(head, spokei_buffer_data(out) + before);
	return 0;
}

static int begin_frame(struct spokei_buffer *out)
{
	static const unsigned char head[SPOKEI_DUBBO_HEAD_LEN];

	return spokei_buffer_append(out, head, sizeof(head));
}

/* Returns the content of a buffer, which is not empty. */
static struct spoke_span content_of(const struct spokei_buffer *buffer)
{
	SPOKE_ASSERT(buffer->bytes != NULL);
	return spokei_span(buffer->bytes + buffer->start, spokei_buffer_len(buffer));
}

/* Appends the msgpack frame `made` in another codec; `prefix`, if not empty, replaces the names. */
static int append_frame(const struct spokei_wire_limits *limits, const struct spokei_codec *codec,
			const struct spokei_buffer *made, enum spokei_codec_part part,
			struct spoke_span prefix, struct spokei_buffer *out)
{
	struct spoke_span frame = content_of(made);
	struct spokei_dubbo_head head = spokei_dubbo_head_take(frame.data);
	struct spoke_span values = spokei_span_after(frame, SPOKEI_DUBBO_HEAD_LEN);
	size_t before = spokei_buffer_len(out);
	int error = begin_frame(out);

	if (error == 0 && prefix.len > 0) {
		part = SPOKEI_CODEC_ARGS;
		values = after_names(values);
		error = spokei_buffer_append(out, prefix.data, prefix.len);
	}
	if (error == 0)
		error = codec->from_values(part, values, out);
	head.flags = (uint8_t)((head.flags & ~SPOKEI_DUBBO_CODEC) | codec->id);
	return end_frame(limits, head, error, before, out);
}

/* Returns the codec for the bodies of a message, or NULL. */
static const struct spokei_codec *writer_of(const struct spokei_wire_limits *limits,
					    const struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);

	return codec && codec->from_values ? codec : NULL;
}

int spokei_dubbo_translate_request(const struct spokei_wire_limits *limits,
				   const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	struct spokei_buffer made;
	int error;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_request(limits, &plain, &made);
	if (error == 0)
		error = append_frame(limits, codec, &made, SPOKEI_CODEC_REQUEST,
				     message->generic ? plain.prefix : message->prefix, out);
	spokei_buffer_fini(&made);
	return error;
}

int spokei_dubbo_translate_prefix(const struct spokei_wire_limits *limits,
				  const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	size_t before = spokei_buffer_len(out);
	struct spokei_buffer made;
	int error;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	/* The codec looks for the name of the generic call among the values of a whole body. */
	if (message->generic || spokei_dubbo_is_generic(message->method))
		return 0;
	plain.types = spokei_span(NULL, 0);
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_prefix(limits, &plain, &made);
	if (error == 0)
		error = codec->from_values(SPOKEI_CODEC_NAMES, content_of(&made), out);
	if (error)
		spokei_buffer_truncate(out, before);
	spokei_buffer_fini(&made);
	return error;
}

/* Appends a reply with an error status. Its body is empty in an unknown codec: the peer cannot read
 * the error, but its call fails at once. */
static int write_text(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      uint8_t status, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	const struct spokei_dubbo_head head = {
		.flags = message->codec,
		.status = status,
		.id = message->id,
	};
	size_t before = spokei_buffer_len(out);
	int error = begin_frame(out);

	if (error == 0 && codec)
		error = codec->from_text(message->error_text, out);
	return end_frame(limits, head, error, before, out);
}

int spokei_dubbo_translate_reply(const struct spokei_wire_limits *limits,
				 const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	enum spokei_codec_part part = message->generic ? SPOKEI_CODEC_GENERIC_REPLY
						       : SPOKEI_CODEC_REPLY;
	uint8_t status = spokei_dubbo_reply_status(message);
	struct spokei_buffer made;
	int error;

	if (!spokei_dubbo_status_known(status))
		return SPOKE_EUNSUPPORTED;
	if (status != SPOKEI_DUBBO_OK)
		return write_text(limits, message, status, out);
	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_reply(limits, &plain, &made);
	if (error == 0)
		error = append_frame(limits, codec, &made, part, plain.prefix, out);
	spokei_buffer_fini(&made);
	return error;
}
