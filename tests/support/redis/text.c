/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the Redis in memory: comparing, numbers, patterns, SHA-1. */
#include "tests/support/redis/parts.h"

#include <stdio.h>
#include <stdlib.h>

struct fakeredis_text *fakeredis_text_new(struct spoke_span span)
{
	struct fakeredis_text *text = malloc(sizeof(*text) + span.len + 1);

	SPOKE_ASSERT(text != NULL);
	text->len = span.len;
	if (span.len > 0)
		memcpy(text->bytes, span.data, span.len);
	text->bytes[span.len] = '\0';
	return text;
}

struct fakeredis_text *fakeredis_text_copy(const struct fakeredis_text *text)
{
	return text ? fakeredis_text_new(fakeredis_span(text)) : NULL;
}

static unsigned char upper_of(unsigned char byte)
{
	return byte >= 'a' && byte <= 'z' ? (unsigned char)(byte - 'a' + 'A') : byte;
}

bool fakeredis_is(struct spoke_span span, const char *upper)
{
	if (span.len != strlen(upper))
		return false;
	for (size_t i = 0; i < span.len; i++)
		if (upper_of(fakeredis_byte(span, i)) != (unsigned char)upper[i])
			return false;
	return true;
}

bool fakeredis_number(struct spoke_span span, int64_t *ret)
{
	bool minus = span.len > 0 && fakeredis_byte(span, 0) == '-';
	size_t at = minus;
	int64_t number = 0;

	if (span.len == at || span.len > at + 18 ||
	    (fakeredis_byte(span, at) == '0' && span.len > 1)) /* also "-0" */
		return false;
	for (; at < span.len; at++) {
		if (fakeredis_byte(span, at) < '0' || fakeredis_byte(span, at) > '9')
			return false;
		number = 10 * number + (fakeredis_byte(span, at) - '0');
	}
	*ret = minus ? -number : number;
	return true;
}

/* --- patterns */

/* Matches a set after its "[". Moves *at behind its "]". */
static bool match_set(struct spoke_span pattern, size_t *at, unsigned char byte)
{
	bool negative = *at < pattern.len && fakeredis_byte(pattern, *at) == '^';
	bool found = false;

	*at += negative;
	while (*at < pattern.len && fakeredis_byte(pattern, *at) != ']') {
		unsigned char low = fakeredis_byte(pattern, *at);
		unsigned char high = low;

		if (low == '\\' && *at + 1 < pattern.len)
			low = high = fakeredis_byte(pattern, ++*at);
		if (*at + 2 < pattern.len && fakeredis_byte(pattern, *at + 1) == '-') {
			high = fakeredis_byte(pattern, *at + 2);
			*at += 2;
		}
		++*at;
		found |= byte >= low && byte <= high;
	}
	*at += *at < pattern.len;
	return found != negative;
}

/* Matches one byte of the text with what stands at *at, which is no star; moves *at behind it. */
static bool match_one(struct spoke_span pattern, size_t *at, unsigned char byte)
{
	unsigned char what = fakeredis_byte(pattern, *at);

	++*at;
	if (what == '?')
		return true;
	if (what == '[')
		return match_set(pattern, at, byte);
	if (what == '\\' && *at < pattern.len)
		what = fakeredis_byte(pattern, (*at)++);
	return what == byte;
}

bool fakeredis_match(struct spoke_span pattern, struct spoke_span text)
{
	size_t at = 0;
	size_t in = 0;
	size_t star = SIZE_MAX; /* the last star */
	size_t from = 0;        /* ... takes the text up to here */

	while (in < text.len) {
		size_t next = at;

		if (at < pattern.len && fakeredis_byte(pattern, at) == '*') {
			star = at++;
			from = in;
		} else if (at < pattern.len &&
			   match_one(pattern, &next, fakeredis_byte(text, in))) {
			at = next;
			in++;
		} else if (star != SIZE_MAX) {
			at = star + 1;
			in = ++from;
		} else {
			return false;
		}
	}
	while (at < pattern.len && fakeredis_byte(pattern, at) == '*')
		at++;
	return at == pattern.len;
}

/* --- SHA-1 */

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

static void sha1_block(uint32_t state[5], const unsigned char block[64])
{
	uint32_t w[80];
	uint32_t s[5];

	memcpy(s, state, sizeof(s));
	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		static const uint32_t add[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
		uint32_t f = s[1] ^ s[2] ^ s[3];

		if (i < 20)
			f = (s[1] & s[2]) | (~s[1] & s[3]);
		else if (i >= 40 && i < 60)
			f = (s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3]);
		f += rotate(s[0], 5) + s[4] + add[i / 20] + w[i];
		s[4] = s[3];
		s[3] = s[2];
		s[2] = rotate(s[1], 30);
		s[1] = s[0];
		s[0] = f;
	}
	for (unsigned i = 0; i < 5; i++)
		state[i] += s[i];
}

void fakeredis_sha1(const void *bytes, size_t len, char ret_hex[41])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	unsigned char last[128] = { 0 };
	size_t whole = len / 64 * 64;
	size_t rest = len - whole;
	size_t end = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < whole; i += 64)
		sha1_block(state, (const unsigned char *)bytes + i);
	if (rest > 0)
		memcpy(last, (const unsigned char *)bytes + whole, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
	for (size_t i = 0; i < end; i += 64)
		sha1_block(state, last + i);
	for (unsigned i = 0; i < 5; i++)
		(void)snprintf(ret_hex + 8 * (size_t)i, 9, "%08x", (unsigned)state[i]);
}
