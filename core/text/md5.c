/* SPDX-License-Identifier: Apache-2.0 */
/* Computes MD5 (RFC 1321). */
/*
 * Names follow the RFC. Each round is 16 steps; after four steps a, b, c and d are in their
 * places again.
 */
#include "core/text/md5.h"

#include <string.h>

#define BLOCK ((size_t)64)
#define LENGTH ((size_t)8) /* bytes of the message length, which ends the last block */

/* Absolute values of the sines of 1 .. 64 radians, in 2^-32. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static inline uint32_t turned(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

static inline uint32_t read_word(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint32_t f(uint32_t x, uint32_t y, uint32_t z)
{
	return z ^ (x & (y ^ z));
}

static inline uint32_t g(uint32_t x, uint32_t y, uint32_t z)
{
	return (x & z) + (y & ~z);
}

static inline uint32_t h(uint32_t x, uint32_t y, uint32_t z)
{
	return x ^ y ^ z;
}

static inline uint32_t i(uint32_t x, uint32_t y, uint32_t z)
{
	return y ^ (x | ~z);
}

/* Does four steps `mix` of a round from step `at`; words from `from`, `by` apart. */
#define STEPS(mix, at, from, by, s0, s1, s2, s3)                                                   \
	do {                                                                                       \
		a = b + turned(a + mix(b, c, d) + x[(from) % 16] + sines[at], s0);                 \
		d = a + turned(d + mix(a, b, c) + x[((from) + (by)) % 16] + sines[(at) + 1], s1);  \
		c = d +                                                                            \
		    turned(c + mix(d, a, b) + x[((from) + 2 * (by)) % 16] + sines[(at) + 2], s2);  \
		b = c +                                                                            \
		    turned(b + mix(c, d, a) + x[((from) + 3 * (by)) % 16] + sines[(at) + 3], s3);  \
	} while (0)

static void eat(struct spokei_md5 *md5, const unsigned char *block)
{
	uint32_t a = md5->words[0];
	uint32_t b = md5->words[1];
	uint32_t c = md5->words[2];
	uint32_t d = md5->words[3];
	uint32_t x[16];

	for (unsigned n = 0; n < 16; n++)
		x[n] = read_word(block + (size_t)4 * n);
	for (unsigned n = 0; n < 16; n += 4)
		STEPS(f, n, n, 1, 7, 12, 17, 22);
	for (unsigned n = 0; n < 16; n += 4)
		STEPS(g, 16 + n, 1 + 5 * n, 5, 5, 9, 14, 20);
	for (unsigned n = 0; n < 16; n += 4)
		STEPS(h, 32 + n, 5 + 3 * n, 3, 4, 11, 16, 23);
	for (unsigned n = 0; n < 16; n += 4)
		STEPS(i, 48 + n, 7 * n, 7, 6, 10, 15, 21);
	md5->words[0] += a;
	md5->words[1] += b;
	md5->words[2] += c;
	md5->words[3] += d;
}

struct spokei_md5 spokei_md5(const void *bytes, size_t len)
{
	struct spokei_md5 md5 = { { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 } };
	const unsigned char *at = bytes;
	unsigned char last[2 * BLOCK] = { 0 };
	size_t rest = len % BLOCK;
	size_t end = rest + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;

	for (size_t whole = len / BLOCK; whole > 0; whole--, at += BLOCK)
		eat(&md5, at);
	if (rest > 0)
		memcpy(last, at, rest);
	last[rest] = 0x80;
	for (unsigned n = 0; n < LENGTH; n++)
		last[end - LENGTH + n] = (unsigned char)((uint64_t)len << 3 >> (8 * n));
	for (size_t from = 0; from < end; from += BLOCK)
		eat(&md5, last + from);
	return md5;
}
