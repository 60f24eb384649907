/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SHA-1 and SHA-256 block by block, and HMAC with SHA-256. */
#include "core/text/digest.h"

#include "core/text/secret.h"

#include <string.h>

#define BLOCK SPOKEI_SHA256_BLOCK /* bytes; of SHA-1, too */
#define ROUNDS_1 80u              /* of SHA-1 */
#define LENGTH 8u                 /* bytes of the length, at the end of the last block */
#define ROUNDS 64u
#define WINDOW 16u /* words of the schedule that later ones depend on */

static inline uint32_t rotate(uint32_t bits, unsigned by)
{
	return bits >> by | bits << (32 - by);
}

static inline uint32_t read_word(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static inline uint32_t rotate_left(uint32_t bits, unsigned by)
{
	return rotate(bits, 32 - by);
}

static void write_word(uint32_t word, unsigned char *bytes)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

/* --- SHA-1: the last one or two blocks are padded in a copy */

/* The function and the constant of a round: FIPS 180-4, sections 4.1.1 and 4.2.1. */
static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	if (round < 20)
		return ((b & c) | (~b & d)) + 0x5a827999u;
	if (round < 40)
		return (b ^ c ^ d) + 0x6ed9eba1u;
	if (round < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
	return (b ^ c ^ d) + 0xca62c1d6u;
}

static void add_block_1(uint32_t hash[5], const unsigned char *block)
{
	uint32_t words[ROUNDS_1];
	uint32_t at[5];

	for (unsigned i = 0; i < 16; i++)
		words[i] = read_word(block + 4 * (size_t)i);
	for (unsigned i = 16; i < ROUNDS_1; i++)
		words[i] = rotate_left(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16],
				       1);
	memcpy(at, hash, sizeof(at));
	for (unsigned i = 0; i < ROUNDS_1; i++) {
		uint32_t next = rotate_left(at[0], 5) + mix(i, at[1], at[2], at[3]) + at[4] +
				words[i];

		at[4] = at[3];
		at[3] = at[2];
		at[2] = rotate_left(at[1], 30);
		at[1] = at[0];
		at[0] = next;
	}
	for (unsigned i = 0; i < 5; i++)
		hash[i] += at[i];
}

void spokei_sha1(const void *bytes, size_t len, unsigned char digest[SPOKEI_SHA1])
{
	uint32_t hash[5] = { 0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u };
	unsigned char last[2 * BLOCK] = { 0 };
	const unsigned char *from = bytes;
	uint64_t bits = (uint64_t)len * 8;
	size_t padded;

	for (; len >= BLOCK; from += BLOCK, len -= BLOCK)
		add_block_1(hash, from);
	if (len > 0)
		memcpy(last, from, len);
	last[len] = 0x80;
	padded = len + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;
	write_word((uint32_t)(bits >> 32), last + padded - LENGTH);
	write_word((uint32_t)bits, last + padded - LENGTH / 2);
	for (size_t i = 0; i < padded; i += BLOCK)
		add_block_1(hash, last + i);
	for (unsigned i = 0; i < 5; i++)
		write_word(hash[i], digest + 4 * (size_t)i);
}

/* --- SHA-256 */

/* FIPS 180-4, section 4.2.2. */
static const uint32_t constants[ROUNDS] = {
	0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
	0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
	0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
	0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
	0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
	0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
	0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
	0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
	0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
	0xc67178f2u,
};

/* Replaces word number `at` of the 16 of the rounds before by that of this round. */
static inline uint32_t next_word(uint32_t words[WINDOW], unsigned at)
{
	uint32_t w15 = words[(at + 1) % WINDOW];
	uint32_t w2 = words[(at + 14) % WINDOW];

	words[at] += words[(at + 9) % WINDOW] + (rotate(w15, 7) ^ rotate(w15, 18) ^ w15 >> 3) +
		     (rotate(w2, 17) ^ rotate(w2, 19) ^ w2 >> 10);
	return words[at];
}

/* One round. Only D and H change; the caller of the next round moves the variables by one, which
 * costs nothing, as eight rounds bring them back to their places. `sum`: constant and word. */
#define ROUND(a, b, c, d, e, f, g, h, sum)                                                         \
	do {                                                                                       \
		(h) += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                            \
		       ((g) ^ ((e) & ((f) ^ (g)))) + (sum);                                        \
		(d) += (h);                                                                        \
		(h) += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                            \
		       (((a) & (b)) | ((c) & ((a) | (b))));                                        \
	} while (0)

#define EIGHT_ROUNDS(at, word)                                                                     \
	do {                                                                                       \
		ROUND(a, b, c, d, e, f, g, h, now[(at) + 0] + word((at) + 0));                     \
		ROUND(h, a, b, c, d, e, f, g, now[(at) + 1] + word((at) + 1));                     \
		ROUND(g, h, a, b, c, d, e, f, now[(at) + 2] + word((at) + 2));                     \
		ROUND(f, g, h, a, b, c, d, e, now[(at) + 3] + word((at) + 3));                     \
		ROUND(e, f, g, h, a, b, c, d, now[(at) + 4] + word((at) + 4));                     \
		ROUND(d, e, f, g, h, a, b, c, now[(at) + 5] + word((at) + 5));                     \
		ROUND(c, d, e, f, g, h, a, b, now[(at) + 6] + word((at) + 6));                     \
		ROUND(b, c, d, e, f, g, h, a, now[(at) + 7] + word((at) + 7));                     \
	} while (0)

#define FIRST_WORD(at) words[at]
#define NEXT_WORD(at) next_word(words, at)

/* NOLINTNEXTLINE(readability-function-size): the rounds are macros */
static void add_block(uint32_t hash[8], const unsigned char *block)
{
	const uint32_t *now = constants;
	uint32_t words[WINDOW];
	uint32_t a = hash[0];
	uint32_t b = hash[1];
	uint32_t c = hash[2];
	uint32_t d = hash[3];
	uint32_t e = hash[4];
	uint32_t f = hash[5];
	uint32_t g = hash[6];
	uint32_t h = hash[7];

	for (unsigned i = 0; i < WINDOW; i++)
		words[i] = read_word(block + 4 * (size_t)i);
	EIGHT_ROUNDS(0, FIRST_WORD);
	EIGHT_ROUNDS(8, FIRST_WORD);
	for (unsigned i = WINDOW; i < ROUNDS; i += WINDOW) {
		now += WINDOW;
		EIGHT_ROUNDS(0, NEXT_WORD);
		EIGHT_ROUNDS(8, NEXT_WORD);
	}
	hash[0] += a;
	hash[1] += b;
	hash[2] += c;
	hash[3] += d;
	hash[4] += e;
	hash[5] += f;
	hash[6] += g;
	hash[7] += h;
}

void spokei_sha256_begin(struct spokei_sha256 *state)
{
	*state = (struct spokei_sha256){
		.hash = { 0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu,
			  0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u },
	};
}

void spokei_sha256_add(struct spokei_sha256 *state, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	size_t had = (size_t)(state->len % BLOCK);

	if (len == 0)
		return;
	state->len += len;
	if (had > 0) {
		size_t part = len < BLOCK - had ? len : BLOCK - had;

		memcpy(state->rest + had, from, part);
		from += part;
		len -= part;
		if (had + part < BLOCK)
			return;
		add_block(state->hash, state->rest);
	}
	for (; len >= BLOCK; from += BLOCK, len -= BLOCK)
		add_block(state->hash, from);
	if (len > 0)
		memcpy(state->rest, from, len);
}

void spokei_sha256_end(struct spokei_sha256 *state, unsigned char digest[SPOKEI_SHA256])
{
	size_t had = (size_t)(state->len % BLOCK);
	uint64_t bits = state->len * 8;

	state->rest[had++] = 0x80;
	memset(state->rest + had, 0, BLOCK - had);
	if (had > BLOCK - LENGTH) {
		add_block(state->hash, state->rest);
		memset(state->rest, 0, BLOCK);
	}
	write_word((uint32_t)(bits >> 32), state->rest + BLOCK - LENGTH);
	write_word((uint32_t)bits, state->rest + BLOCK - LENGTH / 2);
	add_block(state->hash, state->rest);
	for (unsigned i = 0; i < 8; i++)
		write_word(state->hash[i], digest + 4 * (size_t)i);
	spokei_secret_wipe(state, sizeof(*state));
}

void spokei_sha256(const void *bytes, size_t len, unsigned char digest[SPOKEI_SHA256])
{
	struct spokei_sha256 state;

	spokei_sha256_begin(&state);
	spokei_sha256_add(&state, bytes, len);
	spokei_sha256_end(&state, digest);
}

/* --- HMAC */

#define INNER 0x36u
#define OUTER 0x5cu

void spokei_hmac_begin(struct spokei_hmac *state, const void *key, size_t len)
{
	unsigned char block[BLOCK] = { 0 };

	if (len > BLOCK)
		spokei_sha256(key, len, block);
	else if (len > 0)
		memcpy(block, key, len);
	for (unsigned i = 0; i < BLOCK; i++) {
		state->outer[i] = block[i] ^ OUTER;
		block[i] ^= INNER;
	}
	spokei_sha256_begin(&state->inner);
	spokei_sha256_add(&state->inner, block, sizeof(block));
	spokei_secret_wipe(block, sizeof(block));
}

void spokei_hmac_add(struct spokei_hmac *state, const void *bytes, size_t len)
{
	spokei_sha256_add(&state->inner, bytes, len);
}

void spokei_hmac_end(struct spokei_hmac *state, unsigned char code[SPOKEI_SHA256])
{
	unsigned char digest[SPOKEI_SHA256];
	struct spokei_sha256 outer;

	spokei_sha256_end(&state->inner, digest);
	spokei_sha256_begin(&outer);
	spokei_sha256_add(&outer, state->outer, sizeof(state->outer));
	spokei_sha256_add(&outer, digest, sizeof(digest));
	spokei_sha256_end(&outer, code);
	spokei_secret_wipe(state, sizeof(*state));
}
