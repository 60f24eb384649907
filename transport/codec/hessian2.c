/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec 2, Hessian 2: answers heartbeats and refuses requests with a text. Bodies cannot be
 * translated. Stateless; any thread.
 */
#include "transport/codec/codec.h"

#define TEXT_MAX 1023u /* code units of a text with a head of two bytes */
#define SHORT_MAX 31u  /* ... and with a head of one byte */

/* Hessian 2 does not use UTF-8, so each byte that is not ASCII becomes a question mark. */
static int hessian2_from_text(struct spoke_span text, struct spokei_buffer *out)
{
	size_t len = text.len < TEXT_MAX ? text.len : TEXT_MAX;
	const unsigned char *from = text.data;
	unsigned char *at;

	if (2 + len > out->max - spokei_buffer_len(out))
		return SPOKE_ETOOLARGE;
	at = spokei_buffer_reserve(out, 2 + len);
	if (at == NULL)
		return SPOKE_ENOMEM;
	if (len > SHORT_MAX)
		*at++ = (unsigned char)(0x30 | len >> 8);
	*at++ = (unsigned char)len;
	for (size_t i = 0; i < len; i++)
		at[i] = from[i] < 0x80 ? from[i] : '?';
	spokei_buffer_commit(out, (len > SHORT_MAX ? 2 : 1) + len);
	return 0;
}

const struct spokei_codec spokei_codec_hessian2 = {
	.id = SPOKEI_CODEC_HESSIAN2,
	.name = "hessian2",
	.null = { "\x4e", 1 },
	.readonly = { "\x01R", 2 },
	.writable = { "\x01W", 2 },
	.from_text = hessian2_from_text,
};
