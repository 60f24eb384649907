/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SHA-1 block by block; the last one or two blocks are padded in a copy. */
#include "core/text/sha1.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64u /* bytes */
#define LENGTH 8u /* bytes of the length, at the end of the last block */
#define ROUNDS 80u

static uint32_t rotate(uint32_t bits, unsigned by)
{
	return bits << by | bits >> (32 - by);
}

static uint32_t read_word(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static void write_word(uint32_t word, unsigned char *bytes)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

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

static void add_block(uint32_t hash[5], const unsigned char *block)
{
	uint32_t words[ROUNDS];
	uint32_t at[5];

	for (unsigned i = 0; i < 16; i++)
		words[i] = read_word(block + 4 * (size_t)i);
	for (unsigned i = 16; i < ROUNDS; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	memcpy(at, hash, sizeof(at));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t next = rotate(at[0], 5) + mix(i, at[1], at[2], at[3]) + at[4] + words[i];

		at[4] = at[3];
		at[3] = at[2];
		at[2] = rotate(at[1], 30);
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
		add_block(hash, from);
	if (len > 0)
		memcpy(last, from, len);
	last[len] = 0x80;
	padded = len + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;
	write_word((uint32_t)(bits >> 32), last + padded - LENGTH);
	write_word((uint32_t)bits, last + padded - LENGTH / 2);
	for (size_t i = 0; i < padded; i += BLOCK)
		add_block(hash, last + i);
	for (unsigned i = 0; i < 5; i++)
		write_word(hash[i], digest + 4 * (size_t)i);
}
