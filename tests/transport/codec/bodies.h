/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes bodies whose values are msgpack one after another, in the order of Dubbo's
 * msgpack bodies. For programs that compare codecs value by value.
 */
#ifndef TESTS_TRANSPORT_CODEC_BODIES_H
#define TESTS_TRANSPORT_CODEC_BODIES_H

#include "core/value/shape.h"
#include "transport/codec/codec.h"

#include <string.h>

/* Reads a body. Returns the result of the codec. */
static inline int body_read(const struct spokei_codec *codec,
			    const struct spoke_value_limits *limits, enum spokei_codec_part part,
			    struct spoke_span body, struct spokei_buffer *scratch,
			    struct spoke_span *ret)
{
	struct spokei_codec_values made = { 0 };
	int error = codec->to_values(limits, part, body, scratch, &made);

	if (error == 0)
		*ret = made.values;
	return error;
}

/* Cuts the first values off. */
static inline struct spoke_span body_cut(struct spoke_span *values, unsigned count)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(*values);
	struct spoke_span first = *values;
	struct spoke_value value;

	while (count-- > 0 && spoke_cursor_next(&cursor, &value))
		continue;
	*values = spoke_cursor_rest(&cursor);
	first.len -= values->len;
	return first;
}

/* Cuts the attachments off, if the last of the values in `after` is a map. */
static inline void body_cut_pairs(struct spokei_codec_body *body, struct spoke_span after)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(after);
	struct spoke_value last = { 0 };
	struct spoke_cursor pairs;

	while (spoke_cursor_next(&cursor, &last))
		continue;
	if (last.len == 0 || spokei_shapes[*last.data].type != SPOKE_VALUE_MAP ||
	    cursor.at != cursor.end || spoke_cursor_map(last, &pairs) != 0)
		return;
	body->attached = true;
	body->values.len -= last.len;
	body->pairs[0] = spoke_cursor_rest(&pairs);
}

/* Returns the text of the last of these values; empty: it is none. */
static inline struct spoke_span body_last_text(struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value last = { 0 };
	struct spoke_span text = { 0 };

	while (spoke_cursor_next(&cursor, &last))
		continue;
	if (last.len > 0)
		(void)!spoke_value_str(last, &text);
	return text;
}

/* Returns the parts of a body. VALUES: all values are written as they are; ARGS: the text of the
 * types stands first. */
static inline struct spokei_codec_body body_of_values(enum spokei_codec_part part,
						      struct spoke_span values)
{
	struct spokei_codec_body body = { .values = values };
	struct spoke_span after;
	uint64_t marker = 2;

	if (part == SPOKEI_CODEC_REQUEST) {
		struct spoke_span method = body_last_text(body_cut(&values, 4));

		body.generic = (method.len == 7 && memcmp(method.data, "$invoke", 7) == 0) ||
			       (method.len == 12 && memcmp(method.data, "$invokeAsync", 12) == 0);
	}
	if (part == SPOKEI_CODEC_REQUEST || part == SPOKEI_CODEC_ARGS) {
		body.first = body_cut(&body.values, part == SPOKEI_CODEC_REQUEST ? 5 : 1);
		body.types = body_last_text(body.first);
	} else if (part == SPOKEI_CODEC_REPLY) {
		body.first = body_cut(&body.values, 1);
		if (body.first.len > 0)
			(void)!spoke_value_u64((struct spoke_value){ body.first.data,
								     body.first.len },
					       &marker);
		body.thrown = marker % 3 == 0;
	}
	after = body.values;
	if (part == SPOKEI_CODEC_REPLY)
		(void)body_cut(&after, marker % 3 == 0 ? 2 : marker % 3 == 1 ? 1 : 0);
	if (part != SPOKEI_CODEC_VALUES)
		body_cut_pairs(&body, after);
	return body;
}

/* Writes values as such a part. Returns the result of the codec. */
static inline int body_write(const struct spokei_codec *codec, enum spokei_codec_part part,
			     struct spoke_span values, struct spokei_buffer *out)
{
	struct spokei_codec_body body = body_of_values(part, values);

	return codec->from_values(&body, out);
}

#endif
