/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec 27: bodies are msgpack already, so that reading one is a check and writing one a copy.
 * Stateless; any thread.
 */
#include "transport/codec/codec.h"

static int identity_to_values(const struct spokei_wire_limits *limits, struct spoke_span body,
			      struct spokei_buffer *scratch, struct spoke_span *ret_values)
{
	struct spoke_cursor values;
	int result = spoke_values_check(body.data, body.len, &limits->value, &values, NULL);

	(void)scratch;
	if (result == 0)
		*ret_values = body;
	return result;
}

static int identity_from_values(struct spoke_span values, struct spoke_span types,
				struct spokei_buffer *out)
{
	(void)types;
	return spokei_buffer_append(out, values.data, values.len);
}

const struct spokei_codec spokei_codec_msgpack = {
	.id = SPOKEI_CODEC_MSGPACK,
	.name = "msgpack",
	.null = { "\xc0", 1 },
	.to_values = identity_to_values,
	.from_values = identity_from_values,
};
