/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of tokens: which texts they contain, and how they are read. */
#define _GNU_SOURCE /* memmem() */
#include "core/text/tokens.h"
#include "tests/support/test.h"

#include <string.h>

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
