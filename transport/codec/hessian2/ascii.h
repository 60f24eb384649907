/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies texts of ASCII. Such a text has the same bytes in msgpack and in Hessian 2, after its
 * head. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_ASCII_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_ASCII_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* More bytes than a number, a date or a head has, in msgpack or in Hessian 2. */
#define SPOKEI_HESSIAN_NUMBER_MAX 16u

/* The next byte to read, and the next one to write, which are held in registers. */
struct spokei_hessian_step {
	const unsigned char *at; /* NULL: the value is of another kind, or there is no room */
	unsigned char *out;
};

#define SPOKEI_HESSIAN_HIGH UINT64_C(0x8080808080808080) /* the bits that ASCII does not have */

/* Copies `width` bytes, 4 or 8, and returns them. */
static inline uint64_t spokei_hessian_copy_word(unsigned char *to, const unsigned char *from,
						size_t width)
{
	uint64_t word = 0;

	memcpy(&word, from, width);
	memcpy(to, &word, width);
	return word;
}

/* Copies 16 bytes, and returns both halves as one. */
static inline uint64_t spokei_hessian_copy_words(unsigned char *to, const unsigned char *from)
{
	uint64_t words[2];

	memcpy(words, from, sizeof(words));
	memcpy(to, words, sizeof(words));
	return words[0] | words[1];
}

/* Copies a text. Returns false if it is not ASCII. The last words of a text overlap, so that no
 * byte is copied by itself. */
static inline bool spokei_hessian_copy_ascii(unsigned char *to, const unsigned char *from,
					     size_t len)
{
	uint64_t all = 0;

	if (len >= 16) {
		for (size_t i = 0; i < len - 16; i += 16)
			all |= spokei_hessian_copy_words(to + i, from + i);
		all |= spokei_hessian_copy_words(to + len - 16, from + len - 16);
	} else if (len >= 8) {
		all = spokei_hessian_copy_word(to, from, 8) |
		      spokei_hessian_copy_word(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		all = spokei_hessian_copy_word(to, from, 4) |
		      spokei_hessian_copy_word(to + len - 4, from + len - 4, 4);
	} else {
		for (size_t i = 0; i < len; i++)
			all |= to[i] = from[i];
	}
	return (all & SPOKEI_HESSIAN_HIGH) == 0;
}

/* Compares texts of less than 32 bytes. The last words overlap, too. */
static inline bool spokei_hessian_same(const unsigned char *a, const unsigned char *b, size_t len)
{
	if (len >= 16)
		return memcmp(a, b, 16) == 0 && memcmp(a + len - 16, b + len - 16, 16) == 0;
	if (len >= 8)
		return memcmp(a, b, 8) == 0 && memcmp(a + len - 8, b + len - 8, 8) == 0;
	if (len >= 4)
		return memcmp(a, b, 4) == 0 && memcmp(a + len - 4, b + len - 4, 4) == 0;
	while (len > 0 && a[len - 1] == b[len - 1])
		len--;
	return len == 0;
}

/* Returns whether a text is ASCII. */
static inline bool spokei_hessian_is_ascii(const unsigned char *text, size_t len)
{
	uint64_t all = 0;
	uint64_t word;

	for (; len >= 8; text += 8, len -= 8) {
		memcpy(&word, text, 8);
		all |= word;
	}
	for (; len > 0; len--)
		all |= *text++;
	return (all & SPOKEI_HESSIAN_HIGH) == 0;
}

#endif
