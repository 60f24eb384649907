/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec 27, msgpack. A body already consists of values, so reading is a check and writing is a
 * copy. The Dubbo wire has shorter paths and calls none of these functions. Stateless; any thread.
 */
#include "transport/codec/codec.h"

#include "core/value/builder.h"

static int identity_to_values(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			      struct spoke_span body, struct spokei_buffer *scratch,
			      struct spoke_span *ret_values)
{
	struct spoke_cursor values;
	int result = spoke_values_check(body.data, body.len, limits, &values, NULL);

	(void)part;
	(void)scratch;
	if (result == 0)
		*ret_values = body;
	return result;
}

static int identity_from_values(enum spokei_codec_part part, struct spoke_span values,
				struct spokei_buffer *out)
{
	(void)part;
	return spokei_buffer_append(out, values.data, values.len);
}

static int identity_from_text(struct spoke_span text, struct spokei_buffer *out)
{
	struct spoke_builder builder;
	struct spoke_value value;

	spokei_builder_init_buffer(&builder, out, NULL);
	spoke_pack_str(&builder, text.data, text.len);
	return spoke_builder_finish_value(&builder, &value);
}

const struct spokei_codec spokei_codec_msgpack = {
	.id = SPOKEI_CODEC_MSGPACK,
	.name = "msgpack",
	.null = { "\xc0", 1 },
	.readonly = { "\xa1R", 2 },
	.writable = { "\xa1W", 2 },
	.to_values = identity_to_values,
	.from_values = identity_from_values,
	.from_text = identity_from_text,
};
