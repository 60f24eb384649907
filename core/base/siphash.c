/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SipHash with one round for each word of 8 bytes, and three rounds at the end. */
#include "core/base/siphash.h"

struct state {
	uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t word, unsigned by)
{
	return word << by | word >> (64 - by);
}

static inline void round_once(struct state *at)
{
	at->a += at->b;
	at->b = rotate(at->b, 13) ^ at->a;
	at->a = rotate(at->a, 32);
	at->c += at->d;
	at->d = rotate(at->d, 16) ^ at->c;
	at->a += at->d;
	at->d = rotate(at->d, 21) ^ at->a;
	at->c += at->b;
	at->b = rotate(at->b, 17) ^ at->c;
	at->c = rotate(at->c, 32);
}

static inline void add_word(struct state *at, uint64_t word)
{
	at->d ^= word;
	round_once(at);
	at->a ^= word;
}

/* Reads 8 bytes, the lowest first; compilers make one load of it. */
static inline uint64_t read_word(const unsigned char *bytes)
{
	return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
	       (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
	       (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

uint64_t spokei_siphash(const uint64_t key[2], const void *bytes, size_t len)
{
	struct state at = {
		.a = key[0] ^ UINT64_C(0x736f6d6570736575),
		.b = key[1] ^ UINT64_C(0x646f72616e646f6d),
		.c = key[0] ^ UINT64_C(0x6c7967656e657261),
		.d = key[1] ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *from = bytes;
	uint64_t last = (uint64_t)len << 56;

	for (; len >= 8; from += 8, len -= 8)
		add_word(&at, read_word(from));
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)from[i] << 8 * i;
	add_word(&at, last);
	at.c ^= 0xff;
	for (unsigned i = 0; i < 3; i++)
		round_once(&at);
	return at.a ^ at.b ^ at.c ^ at.d;
}
