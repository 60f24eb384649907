/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets and tokens: comparison, sets, hiding; the digests. */
#define _GNU_SOURCE
#include "core/text/digest.h"
#include "core/text/encoding.h"
#include "core/text/secret.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- comparison of secrets */

static bool is(const char *given, const char *secret)
{
	return spokei_secret_is((struct spoke_span){ given, strlen(given) }, secret);
}

TEST(only_the_whole_secret_is_equal)
{
	static const char *const wrong[] = { "",         "a",       "s3cre",
					     "s3crets",  "s3creT",  "S3cret",
					     "3cret",    "s3cret ", "s3crets3cret",
					     "s3cre\xf4" };

	assert_true(is("s3cret", "s3cret"));
	assert_true(is("x", "x"));
	assert_true(is("\xff\x80", "\xff\x80"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(is(wrong[i], "s3cret"));
}

TEST(empty_secret_equals_nothing)
{
	assert_false(is("", ""));
	assert_false(is("x", ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, "x"));
}

TEST(bytes_after_a_nul_are_compared)
{
	assert_false(spokei_secret_is((struct spoke_span){ "x\0", 2 }, "x"));
	assert_false(spokei_secret_is((struct spoke_span){ "x\0y", 3 }, "x"));
}

TEST(every_byte_of_two_runs_is_compared)
{
	unsigned char a[37];
	unsigned char b[37];

	memset(a, 7, sizeof(a));
	memset(b, 7, sizeof(b));
	for (size_t len = 0; len <= sizeof(a); len++) {
		assert_true(spokei_secret_same(a, b, len));
		for (size_t i = 0; i < sizeof(a); i++) {
			b[i] ^= 0x10;
			assert_int_equal(spokei_secret_same(a, b, len), i >= len);
			b[i] ^= 0x10;
		}
	}
}

TEST(wiped_bytes_are_zero_and_no_others)
{
	char text[] = "xxsecretxx";

	spokei_secret_wipe(text + 2, 6);
	assert_memory_equal(text, "xx\0\0\0\0\0\0xx", sizeof(text));
	spokei_secret_wipe(text, 0);
	assert_int_equal(*text, 'x');
}

/* --- hiding of secrets in texts for people */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* Each case is a text, and the same one without its secrets. */
static void hide(const char *const (*cases)[2], size_t count)
{
	char text[128];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		spokei_hide_secrets(text);
		assert_string_equal(text, cases[i][1]);
	}
}

TEST(secret_names_ignore_case_and_what_stands_before)
{
	static const char *const secrets[] = {
		"token",        "Token",           "say.token",
		"PASSWORD",     "lease.password",  "secret",
		"passwd",       "secretAccessKey", ".secretAccessKey",
		"access_token", "X-Signature",     "Proxy-Authorization",
	};
	static const char *const others[] = { "",       "tokens",        "token.file", "oken",
					      "token.", "token.publish", "key",        "accessKey",
					      "passw",  "secret.file",   "author" };

	for (size_t i = 0; i < COUNT(secrets); i++)
		assert_true(spokei_hide_is_secret(
			(struct spoke_span){ secrets[i], strlen(secrets[i]) }));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(
			spokei_hide_is_secret((struct spoke_span){ others[i], strlen(others[i]) }));
}

TEST(unknown_name_may_be_secret_if_it_contains_one)
{
	assert_true(spokei_hide_may_be_secret("tokens"));
	assert_true(spokei_hide_may_be_secret("lease.Passphrase"));
	assert_true(spokei_hide_may_be_secret("secretkey"));
	assert_false(spokei_hide_may_be_secret("timeout"));
	assert_false(spokei_hide_may_be_secret("pas"));
	assert_false(spokei_hide_may_be_secret(""));
}

TEST(secrets_of_texts_become_asterisks)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "token=", "token=" },
		{ "token=a", "token=*" },
		{ "dubbo://h?token=abcd", "dubbo://h?token=***" },
		{ "dubbo://h?a=1&token=abcd&b=2: wrong", "dubbo://h?a=1&token=***&b=2: wrong" },
		{ "x?Say.Token=abcd, y?password=abcd", "x?Say.Token=***, y?password=***" },
		{ "x?access_token=abcd&passwd=abcd", "x?access_token=***&passwd=***" },
		{ "\"h#token=abcd\"; write", "\"h#token=***\"; write" },
		{ "entry 1, token:abcd: unknown", "entry 1, token:***: unknown" },
		{ "h?tokens=abcd&token.file=/a", "h?tokens=abcd&token.file=/a" },
		{ "my.token: 1 to 256", "my.token: 1 to 256" },
	};

	hide(cases, COUNT(cases));
}

TEST(commas_belong_to_secrets)
{
	static const char *const cases[][2] = {
		{ "listen = dubbo://1.2.3.4:20880?token=aaaa1111,bbbb2222",
		  "listen = dubbo://1.2.3.4:20880?token=***" },
		{ "h?token=aaaa,bbbb&c=d,e", "h?token=***&c=d,e" },
		{ "redis://u:pa,ss@h", "redis://***@h" },
		{ "token=aaaa,\tb", "token=***,\tb" },
	};

	hide(cases, COUNT(cases));
}

TEST(keys_are_decoded_before_they_count_as_secret)
{
	static const char *const cases[][2] = {
		{ "h?%74oken=abcd b", "h?%74oken=*** b" },
		{ "h?%74%6f%6B%65%6e=abcd", "h?%74%6f%6B%65%6e=***" },
		{ "h?%74oken:abcd", "h?%74oken:***" },
		{ "h?%zztoken=abcd&%7=b&%=c", "h?%zztoken=***&%7=b&%=c" },
		{ "my%20dir:8080 is in use", "my%20dir:8080 is in use" },
		{ "h?a%20b=c", "h?a%20b=c" },
		{ "%73%65%63%72%65%74%61%63%63%65%73%73%6b%65%79%73%65%63%72%65%74=abcd",
		  "%73%65%63%72%65%74%61%63%63%65%73%73%6b%65%79%73%65%63%72%65%74=***" },
	};

	hide(cases, COUNT(cases));
}

TEST(user_and_password_become_asterisks_after_slashes_only)
{
	static const char *const cases[][2] = {
		{ "redis://me:pass@h:1, z://:pass@h, z://:pass@h",
		  "redis://***@h:1, z://***@h, z://***@h" },
		{ "on z://me:p@s@h", "on z://***@h" },
		{ "dubbo:/me:pass@h", "dubbo:/***@h" },
		{ "//me:pass@h", "//***@h" },
		{ "a://me@h unix:@name b@c", "a://me@h unix:@name b@c" },
		{ "a://h/x?y@z:1", "a://h/x?y@z:1" },
		{ "demo.A:1.0@host is down", "demo.A:1.0@host is down" },
		{ "a:b@c://d", "a:b@c://d" },
	};

	hide(cases, COUNT(cases));
}

/* --- sets of tokens: which texts they contain, and how they are read */

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

static bool has(const struct spokei_tokens *tokens, const char *text)
{
	return spokei_tokens_has(tokens, span(text));
}

TEST(only_the_whole_token_is_in_the_set)
{
	static const char *const wrong[] = { "",
					     "correct-horse",
					     "correct-horsf",
					     "Correct-horse1",
					     "correct-horse12",
					     "orrect-horse1",
					     "correct-horse1 " };
	struct spokei_tokens tokens = { .count = 0 };

	assert_null(spokei_tokens_read_list(&tokens, "correct-horse1", NULL));
	assert_true(has(&tokens, "correct-horse1"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(has(&tokens, wrong[i]));
	assert_false(spokei_tokens_has(&tokens, (struct spoke_span){ NULL, 0 }));
}

TEST(set_without_tokens_has_none)
{
	static const unsigned char zeros[SPOKEI_SHA256];
	const struct spokei_tokens tokens = { .count = 0 };

	assert_false(has(&tokens, ""));
	assert_false(has(&tokens, "anything"));
	assert_false(spokei_tokens_has_digest(&tokens, zeros));
}

TEST(four_tokens_are_valid_at_once)
{
	static const char *const all[] = { "token-one", "token-two", "token-three", "token-four" };
	struct spokei_tokens tokens = { .count = 0 };
	struct spoke_span first;

	assert_null(spokei_tokens_read_list(&tokens, "token-one, token-two,token-three ,token-four",
					    &first));
	assert_int_equal(tokens.count, 4);
	assert_memory_equal(first.data, "token-one", first.len);
	for (size_t i = 0; i < 4; i++)
		assert_true(has(&tokens, all[i]));
	assert_false(has(&tokens, "token-five"));
	assert_false(spokei_tokens_add(&tokens, span("token-five")));
	assert_true(spokei_tokens_add(&tokens, span("token-two")));
	assert_int_equal(tokens.count, 4);
}

TEST(set_contains_no_text_of_a_token)
{
	struct spokei_tokens tokens = { .count = 0 };

	assert_null(spokei_tokens_read_list(&tokens, "aaaaaaaaaaaa,bbbbbbbbbbbb", NULL));
	assert_null(memmem(&tokens, sizeof(tokens), "aaaa", 4));
	assert_null(memmem(&tokens, sizeof(tokens), "bbbb", 4));
}

TEST(bad_lists_are_explained_without_their_texts)
{
	static const char *const bad[] = {
		"",
		"short12",
		"good-token,",
		"good-token,,good-other",
		"with blank inside",
		"t\xc3\xb6ken-token",
		"token-1111,token-2222,token-3333,token-4444,token-5555"
	};
	char longest[SPOKEI_TOKEN_MAX + 2];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct spokei_tokens tokens = { .count = 0 };
		const char *why = spokei_tokens_read_list(&tokens, bad[i], NULL);

		assert_non_null(why);
		assert_true(*bad[i] == '\0' || strstr(why, bad[i]) == NULL);
	}
	memset(longest, 'x', sizeof(longest));
	longest[SPOKEI_TOKEN_MAX] = '\0';
	assert_true(spokei_token_is_valid(span(longest)));
	longest[SPOKEI_TOKEN_MAX] = 'x';
	longest[SPOKEI_TOKEN_MAX + 1] = '\0';
	assert_false(spokei_token_is_valid(span(longest)));
}

TEST(file_has_one_token_a_line)
{
	static const char lines[] = "# of March\n  token-one\t\r\n\n \ntoken-two";
	struct spokei_tokens tokens = { .count = 0 };
	struct spoke_span first;

	assert_null(spokei_tokens_read_lines(&tokens, span(lines), &first));
	assert_int_equal(tokens.count, 2);
	assert_int_equal(first.len, 9);
	assert_memory_equal(first.data, "token-one", 9);
	assert_true(has(&tokens, "token-one"));
	assert_true(has(&tokens, "token-two"));
}

TEST(bad_files_are_refused)
{
	static const char *const bad[] = { "",
					   "\n\n",
					   "# only a comment\n",
					   "token-one, token-two\n",
					   "token-one\nshort\n",
					   "token-1\t111\n",
					   "token-11\ntoken-22\ntoken-33\ntoken-44\ntoken-55\n" };
	static const char zero[] = "token\0one\n";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct spokei_tokens tokens = { .count = 0 };

		assert_non_null(spokei_tokens_read_lines(&tokens, span(bad[i]), NULL));
	}
	for (size_t i = 0; i < 2; i++) {
		struct spokei_tokens tokens = { .count = 0 };
		struct spoke_span bytes = { i == 0 ? zero : "", i == 0 ? sizeof(zero) - 1 : 0 };

		assert_non_null(spokei_tokens_read_lines(&tokens, bytes, NULL));
	}
}

/* --- SHA-1: the examples of FIPS 180, and every way in which the last block can be padded */

#define DIGITS (2 * SPOKEI_SHA1 + 1)

static void print_digest(const void *bytes, size_t len, char digits[DIGITS])
{
	unsigned char digest[SPOKEI_SHA1];

	spokei_sha1(bytes, len, digest);
	for (size_t i = 0; i < SPOKEI_SHA1; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
}

TEST(sha1_examples_of_fips_have_their_digests)
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

TEST(sha1_million_letters_have_their_digest)
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
TEST(sha1_every_length_is_padded_as_the_standard_says)
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

/*
 * --- SHA-256: the examples of FIPS 180, every way in which the last block can be padded, every
 * cut. HMAC: the examples of RFC 4231, and a signature of Dubbo
 */

#define SHA256_DIGITS (2 * SPOKEI_SHA256 + 1)

static void print_bytes(const unsigned char digest[SPOKEI_SHA256], char digits[SHA256_DIGITS])
{
	for (size_t i = 0; i < SPOKEI_SHA256; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
}

static void sha256_print_digest(const void *bytes, size_t len, char digits[SHA256_DIGITS])
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
	char digits[SHA256_DIGITS];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sha256_print_digest(rows[i][0], strlen(rows[i][0]), digits);
		assert_string_equal(digits, rows[i][1]);
	}
}

TEST(million_letters_have_their_digest)
{
	const size_t len = 1000000;
	char *text = malloc(len);
	char digits[SHA256_DIGITS];

	assert_non_null(text);
	memset(text, 'a', len);
	sha256_print_digest(text, len, digits);
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
	char digits[SHA256_DIGITS];

	memset(text, 'a', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++)
		spokei_sha256(text, len, digests + len * SPOKEI_SHA256);
	sha256_print_digest(digests, sizeof(digests), digits);
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
	char digits[SHA256_DIGITS];

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
