/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: the examples of FIPS 180, every way in which the last block can be padded, every cut.
 * HMAC: the examples of RFC 4231, and a signature of Dubbo. */
#include "core/text/base64.h"
#include "core/text/sha256.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS (2 * SPOKEI_SHA256 + 1)

static void print_bytes(const unsigned char digest[SPOKEI_SHA256], char digits[DIGITS])
{
	for (size_t i = 0; i < SPOKEI_SHA256; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
}

static void print_digest(const void *bytes, size_t len, char digits[DIGITS])
{
	unsigned char digest[SPOKEI_SHA256];

	spokei_sha256(bytes, len, digest);
	print_bytes(digest, digits);
}

TEST(examples_of_fips_have_their_digests)
{
	static const char *const rows[][2] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
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
	assert_string_equal(digits,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The digest of the digests of "", "a", "aa" ... up to 200 letters, computed with Python's hashlib.
 */
TEST(every_length_is_padded_as_the_standard_says)
{
	unsigned char digests[201 * SPOKEI_SHA256];
	char text[200];
	char digits[DIGITS];

	memset(text, 'a', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++)
		spokei_sha256(text, len, digests + len * SPOKEI_SHA256);
	print_digest(digests, sizeof(digests), digits);
	assert_string_equal(digits,
			    "1be2d7d291484baf4c78d463a65b40a26c255b1946e5205eac8edad606a76fdd");
}

TEST(digest_does_not_depend_on_the_pieces)
{
	unsigned char text[200];
	unsigned char whole[SPOKEI_SHA256];
	unsigned char digest[SPOKEI_SHA256];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)i;
	spokei_sha256(text, sizeof(text), whole);
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		for (size_t next = cut; next <= sizeof(text); next += 7) {
			struct spokei_sha256 sha;

			spokei_sha256_begin(&sha);
			spokei_sha256_add(&sha, text, cut);
			spokei_sha256_add(&sha, text + cut, next - cut);
			spokei_sha256_add(&sha, text + next, sizeof(text) - next);
			spokei_sha256_end(&sha, digest);
			assert_memory_equal(digest, whole, sizeof(whole));
		}
	}
}

TEST(end_leaves_nothing_of_the_text)
{
	static const unsigned char zeros[sizeof(struct spokei_hmac)];
	unsigned char digest[SPOKEI_SHA256];
	struct spokei_sha256 sha;
	struct spokei_hmac hmac;

	memset(&sha, 0, sizeof(sha));
	spokei_sha256_begin(&sha);
	spokei_sha256_add(&sha, "secret", 6);
	spokei_sha256_end(&sha, digest);
	assert_memory_equal(&sha, zeros, sizeof(sha));
	memset(&hmac, 0, sizeof(hmac));
	spokei_hmac_begin(&hmac, "secret", 6);
	spokei_hmac_add(&hmac, "text", 4);
	spokei_hmac_end(&hmac, digest);
	assert_memory_equal(&hmac, zeros, sizeof(hmac));
}

/* --- HMAC */

static void sign(const void *key, size_t key_len, const void *text, size_t len,
		 unsigned char code[SPOKEI_SHA256])
{
	struct spokei_hmac hmac;

	spokei_hmac_begin(&hmac, key, key_len);
	spokei_hmac_add(&hmac, text, len / 2);
	spokei_hmac_add(&hmac, (const char *)text + len / 2, len - len / 2);
	spokei_hmac_end(&hmac, code);
}

TEST(examples_of_rfc_4231_have_their_codes)
{
	static const char large[] =
		"This is a test using a larger than block-size key and a larger "
		"than block-size data. The key needs to be hashed before being "
		"used by the HMAC algorithm.";
	char key[131];
	char text[50];
	const struct {
		const char *key;
		size_t key_len;
		const char *text;
		size_t len;
		int key_byte; /* of which the whole key consists; 0: `key` is used */
		const char *code;
	} rows[] = {
		{ key, 20, "Hi There", 8, 0x0b,
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", 4, "what do ya want for nothing?", 28, 0,
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ key, 20, text, 50, 0xaa,
		  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
		{ key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54, 0xaa,
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ key, 131, large, sizeof(large) - 1, 0xaa,
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};
	unsigned char code[SPOKEI_SHA256];
	char digits[DIGITS];

	memset(text, 0xdd, sizeof(text));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(key, rows[i].key_byte, sizeof(key));
		sign(rows[i].key, rows[i].key_len, rows[i].text, rows[i].len, code);
		print_bytes(code, digits);
		assert_string_equal(digits, rows[i].code);
	}
}

TEST(signature_of_dubbo_is_the_one_of_java)
{
	unsigned char code[SPOKEI_SHA256];
	char text[SPOKEI_SHA256 / 3 * 4 + 5] = "";

	sign("TOKEN", 5, "TestMethod#hello", 16, code);
	for (size_t i = 0; i < sizeof(code); i += 3)
		spokei_base64_write(code + i, sizeof(code) - i, text + i / 3 * 4);
	assert_string_equal(text, "2DGkTcyXg4plU24rY8MZkEJwOMRW3o+wUP3HssRc3EE=");
}
