/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs frequent values of documents without a call, while an array or map of unknown length is
 * open and there is ample room. The functions of <spoke/value.h> do the rest.
 */
#ifndef SPOKEI_CORE_JSON_BUILD_H
#define SPOKEI_CORE_JSON_BUILD_H

#include "core/value/builder.h"
#include "core/value/encode.h"

#define SPOKEI_BUILD_TEXT 64u /* bytes of a text that is copied without a call */

static inline void spokei_build_natural(struct spoke_builder *builder, uint64_t number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_u64(at, number));
	else
		spoke_pack_u64(builder, number);
}

static inline void spokei_build_negative(struct spoke_builder *builder, int64_t number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_i64(at, number));
	else
		spoke_pack_i64(builder, number);
}

static inline void spokei_build_double(struct spoke_builder *builder, double number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_double(at, number));
	else
		spoke_pack_double(builder, number);
}

/* Packs a text; `end` is the end of the readable bytes after it. */
static inline void spokei_build_text(struct spoke_builder *builder, const char *text, size_t len,
				     const char *end)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX + SPOKEI_BUILD_TEXT);

	if (SPOKEI_UNLIKELY(at == NULL || len > SPOKEI_BUILD_TEXT ||
			    (size_t)(end - text) < SPOKEI_BUILD_TEXT)) {
		spoke_pack_str(builder, text, len);
		return;
	}
	*at = (unsigned char)(0xa0 | len);
	if (len >= 32) {
		*at++ = 0xd9;
		*at = (unsigned char)len;
	}
	at++;
	/* Copies more than the text, in few steps of a constant size. */
	memcpy(at, text, 16);
	if (len > 16) {
		memcpy(at + 16, text + 16, 16);
		if (len > 32)
			memcpy(at + 32, text + 32, 32);
	}
	spokei_builder_take(builder, at + len);
}

#endif
