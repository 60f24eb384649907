/* SPDX-License-Identifier: Apache-2.0 */
/* Codec 2, Hessian 2: its table of functions, and the text of an error. Stateless; any thread. */
#include "core/text/encoding.h"
#include "transport/codec/codec.h"
#include "transport/codec/hessian2/put.h"
#include "transport/codec/hessian2/read.h"
#include "transport/codec/hessian2/write.h"

#define TEXT_MAX 1023u /* units of the text of an error: one chunk, with a head of two bytes */

/* Returns the start of a text, at most TEXT_MAX units of UTF-16. */
static struct spoke_span cut(struct spoke_span text)
{
	const unsigned char *from = text.data;
	size_t units = 0;
	size_t i = 0;

	while (i < text.len) {
		size_t len = spokei_utf8_len(from + i, text.len - i);

		units += len == 4 ? 2 : 1;
		if (units > TEXT_MAX)
			break;
		i += len > 0 ? len : 1;
	}
	return (struct spoke_span){ from, i };
}

static int hessian2_from_text(struct spoke_span text, struct spokei_buffer *out)
{
	struct spoke_span start = cut(text);
	struct spokei_hessian2_put put;

	spokei_hessian2_put_start(&put, out, start.len + 2);
	spokei_hessian2_put_string(&put, start.data, start.len);
	return spokei_hessian2_put_finish(&put);
}

const struct spokei_codec spokei_codec_hessian2 = {
	.id = SPOKEI_CODEC_HESSIAN2,
	.name = "hessian2",
	.null = { "\x4e", 1 },
	.readonly = { "\x01R", 2 },
	.writable = { "\x01W", 2 },
	.to_values = spokei_hessian2_to_values,
	.from_values = spokei_hessian2_from_values,
	.from_text = hessian2_from_text,
};
