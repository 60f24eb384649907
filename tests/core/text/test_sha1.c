/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1: the examples of FIPS 180, and every way in which the last block can be padded. */
#include "core/text/sha1.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS (2 * SPOKEI_SHA1 + 1)

static void print_digest(const void *bytes, size_t len, char digits[DIGITS])
{
	unsigned char digest[SPOKEI_SHA1];

	spokei_sha1(bytes, len, digest);
	for (size_t i = 0; i < SPOKEI_SHA1; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
}

TEST(examples_of_fips_have_their_digests)
{
	static const char *const rows[][2] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "a49b2446a02c645bf419f995b67091253a04a259" },
	};
	char digits[DIGITS];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_digest(rows[i][0], strlen(rows[i][0]), digits);
		assert_string_equal(digits, rows[i][1]);
	}
}

TEST(million_letters_have_their_digest)
{
	const size_t len = 1000000;
	char *text = malloc(len);
	char digits[DIGITS];

	assert_non_null(text);
	memset(text, 'a', len);
	print_digest(text, len, digits);
	free(text);
	assert_string_equal(digits, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* The digest of the digests of "", "a", "aa" ... up to 200 letters, computed with Python's hashlib.
 */
TEST(every_length_is_padded_as_the_standard_says)
{
	unsigned char digests[201 * SPOKEI_SHA1];
	char text[200];
	char digits[DIGITS];

	memset(text, 'a', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++)
		spokei_sha1(text, len, digests + len * SPOKEI_SHA1);
	print_digest(digests, sizeof(digests), digits);
	assert_string_equal(digits, "f6f332e8f89c35ee3df74d34ef8fda777d9647b9");
}
