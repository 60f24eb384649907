/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the parts of messages in Hessian 2. Arguments are steered by the text of their types.
 * Attachments are always an untyped map.
 */
#include "transport/codec/hessian2/write.h"

#include "transport/codec/hessian2/steer.h"
#include "transport/codec/hessian2/throwable.h"
#include "transport/codec/hessian2/writer.h"

#define NAMES 4u /* texts before the types: two versions, service and method around them */

/* Returns whether the next value is a map, and the last value. */
static bool is_last_map(const struct spokei_hessian2_writer *writer)
{
	struct spoke_cursor cursor = { writer->at, writer->end, UINT64_MAX };
	struct spoke_value value;

	return spokei_hessian2_type(writer) == SPOKE_VALUE_MAP &&
	       spoke_cursor_next(&cursor, &value) && cursor.at == writer->end;
}

/* Writes the text of the types, the arguments and the attachments. */
static void write_args(struct spokei_hessian2_writer *writer)
{
	struct spoke_value value = spokei_hessian2_peek(writer);
	struct spoke_span types = { 0 };
	struct spokei_hessian2_type type;

	if (spokei_hessian2_type(writer) == SPOKE_VALUE_STR)
		(void)!spoke_value_str(value, &types);
	spokei_hessian2_write_value(writer);
	while (spokei_hessian2_more(writer)) {
		if (is_last_map(writer))
			spokei_hessian2_write_container(writer, writer->at, NULL);
		else if (spokei_hessian2_next_type(&types, &type))
			spokei_hessian2_write_as(writer, &type);
		else
			spokei_hessian2_write_value(writer);
	}
}

/* Returns whether the next value is the name of a generic call. */
static bool is_generic(const struct spokei_hessian2_writer *writer)
{
	struct spoke_value value = spokei_hessian2_peek(writer);
	struct spoke_span name = { 0 };

	if (spokei_hessian2_type(writer) != SPOKE_VALUE_STR || spoke_value_str(value, &name) != 0)
		return false;
	return (name.len == 7 && memcmp(name.data, "$invoke", 7) == 0) ||
	       (name.len == 12 && memcmp(name.data, "$invokeAsync", 12) == 0);
}

static void write_request(struct spokei_hessian2_writer *writer)
{
	for (unsigned i = 0; i < NAMES && spokei_hessian2_more(writer); i++) {
		writer->generic = is_generic(writer);
		spokei_hessian2_write_value(writer);
	}
	if (spokei_hessian2_more(writer))
		write_args(writer);
}

/* Writes the marker, the value or exception, and the attachments. */
static void write_reply(struct spokei_hessian2_writer *writer)
{
	struct spoke_value value = spokei_hessian2_peek(writer);
	uint64_t marker = 2;

	if (spokei_hessian2_type(writer) == SPOKE_VALUE_INT)
		(void)!spoke_value_u64(value, &marker);
	spokei_hessian2_write_value(writer);
	if (marker % 3 == 0)
		spokei_hessian2_write_throwable(writer);
	else if (marker % 3 == 1)
		spokei_hessian2_write_value(writer);
	if (is_last_map(writer))
		spokei_hessian2_write_container(writer, writer->at, NULL);
}

int spokei_hessian2_from_values(enum spokei_codec_part part, struct spoke_span values,
				struct spokei_buffer *out)
{
	struct spokei_hessian2_writer writer;
	int error;

	spokei_hessian2_writer_start(&writer, values, out);
	writer.generic = part == SPOKEI_CODEC_GENERIC_REPLY;
	if (part == SPOKEI_CODEC_REQUEST)
		write_request(&writer);
	else if (part == SPOKEI_CODEC_ARGS)
		write_args(&writer);
	else if (part == SPOKEI_CODEC_REPLY || part == SPOKEI_CODEC_GENERIC_REPLY)
		write_reply(&writer);
	while (spokei_hessian2_more(&writer))
		spokei_hessian2_write_value(&writer);
	error = spokei_hessian2_put_finish(&writer.put);
	return error;
}
