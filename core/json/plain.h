/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of plain text, 8 or 16 bytes at a time. Pure. */
#ifndef SPOKEI_CORE_JSON_PLAIN_H
#define SPOKEI_CORE_JSON_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SPOKEI_EIGHT_OF(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Loads eight bytes; the first one is the lowest. */
static inline uint64_t spokei_eight(const char *text)
{
	uint64_t eight;

	memcpy(&eight, text, sizeof(eight));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	eight = __builtin_bswap64(eight);
#endif
	return eight;
}

static inline bool spokei_json_is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Marks the bytes that are not plain by their highest bits. A carry or a borrow may mark bytes
 * above a marked one, too, so that only the lowest mark counts. */
static inline uint64_t spokei_json_marks(uint64_t eight)
{
	const uint64_t ones = SPOKEI_EIGHT_OF(1);
	uint64_t quotes = eight ^ SPOKEI_EIGHT_OF('"');
	uint64_t slashes = eight ^ SPOKEI_EIGHT_OF('\\');

	return ((eight + ones) | (eight - SPOKEI_EIGHT_OF(0x20)) | (quotes - ones) |
		(slashes - ones) | eight) &
	       SPOKEI_EIGHT_OF(0x80);
}

#ifdef __SSE2__
/* Returns a bit for each of 16 bytes, set if it is not plain. */
static inline unsigned spokei_json_marks_16(const char *text)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
	__m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
	__m128i slashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
	/* Signed: bytes from 0x80 on are below the space, too. */
	__m128i controls = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));
	__m128i deletes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(
		_mm_or_si128(_mm_or_si128(quotes, slashes), _mm_or_si128(controls, deletes)));
}

/* Skips 16 plain bytes at a time. Returns whether the end of the plain bytes has been found. */
static inline bool spokei_json_pass_plain(const char *text, size_t len, size_t *at)
{
	for (; len - *at >= 16; *at += 16) {
		unsigned marks = spokei_json_marks_16(text + *at);

		if (marks) {
			*at += (unsigned)__builtin_ctz(marks);
			return true;
		}
	}
	return false;
}
#else
static inline bool spokei_json_pass_plain(const char *text, size_t len, size_t *at)
{
	(void)text;
	(void)len;
	(void)at;
	return false;
}
#endif

/* Returns the length of the longest beginning that a JSON string may contain as it is: printable
 * ASCII without quotes and backslashes. */
static inline size_t spokei_json_plain(const char *text, size_t len)
{
	size_t at = 0;

	if (spokei_json_pass_plain(text, len, &at))
		return at;
	for (; len - at >= 8; at += 8) {
		uint64_t marks = spokei_json_marks(spokei_eight(text + at));

		if (marks)
			return at + (size_t)__builtin_ctzll(marks) / 8;
	}
	while (at < len && spokei_json_is_plain(text[at]))
		at++;
	return at;
}

/* Does the same for a text before `end`: bytes behind the text may be read, so that a short text
 * takes one step. */
static inline size_t spokei_json_plain_before(const char *text, size_t len, const char *end)
{
	uint64_t marks;

	if (len >= 8 || end - text < 8)
		return spokei_json_plain(text, len);
	marks = spokei_json_marks(spokei_eight(text)) | UINT64_C(0x80) << (8 * len);
	return (size_t)__builtin_ctzll(marks) / 8;
}

#endif
