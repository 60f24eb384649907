/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens, and compares their digests. */
#include "core/text/tokens.h"

#include "core/text/option.h"
#include "core/text/secret.h"

#include <string.h>

static const char bad_token[] = "a token has 8 to 256 visible ASCII characters without commas";
static const char too_many[] = "at most 4 tokens can be valid at once";
static const char no_token[] = "there is no token";

bool spokei_token_is_valid(struct spoke_span text)
{
	const unsigned char *bytes = text.data;

	if (text.len < SPOKEI_TOKEN_MIN || text.len > SPOKEI_TOKEN_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (bytes[i] <= ' ' || bytes[i] >= 0x7f || bytes[i] == ',')
			return false;
	return true;
}

uint64_t spokei_digest_print(const unsigned char digest[SPOKEI_SHA256])
{
	uint64_t print;

	memcpy(&print, digest, sizeof(print));
	return print ? print : 1;
}

uint64_t spokei_token_print(const void *text, size_t len)
{
	unsigned char digest[SPOKEI_SHA256];

	spokei_sha256(text, len, digest);
	return spokei_digest_print(digest);
}

/* --- comparison */

bool spokei_tokens_has_digest(const struct spokei_tokens *tokens,
			      const unsigned char digest[SPOKEI_SHA256])
{
	bool has = false;

	for (unsigned i = 0; i < SPOKEI_TOKENS_MAX; i++)
		has |= spokei_secret_same(tokens->digests[i], digest, SPOKEI_SHA256) &
		       (i < tokens->count);
	return has;
}

bool spokei_tokens_has(const struct spokei_tokens *tokens, struct spoke_span text)
{
	unsigned char digest[SPOKEI_SHA256];

	if (text.len > SPOKEI_TOKEN_MAX)
		return false;
	spokei_sha256(text.data, text.len, digest);
	return spokei_tokens_has_digest(tokens, digest);
}

bool spokei_tokens_add(struct spokei_tokens *tokens, struct spoke_span text)
{
	unsigned char digest[SPOKEI_SHA256];

	spokei_sha256(text.data, text.len, digest);
	if (spokei_tokens_has_digest(tokens, digest))
		return true;
	if (tokens->count == SPOKEI_TOKENS_MAX)
		return false;
	memcpy(tokens->digests[tokens->count++], digest, sizeof(digest));
	return true;
}

/* --- reading */

static const char *add(struct spokei_tokens *tokens, struct spoke_span text,
		       struct spoke_span *first)
{
	if (!spokei_token_is_valid(text))
		return bad_token;
	if (first->len == 0)
		*first = text;
	return spokei_tokens_add(tokens, text) ? NULL : too_many;
}

static const char *end(const char *why, struct spoke_span first, struct spoke_span *ret_first)
{
	if (why == NULL && first.len == 0)
		return no_token;
	if (ret_first)
		*ret_first = first;
	return why;
}

const char *spokei_tokens_read_list(struct spokei_tokens *tokens, const char *list,
				    struct spoke_span *ret_first)
{
	struct spoke_span first = { NULL, 0 };
	const char *why = NULL;
	struct spoke_span text;

	while (why == NULL && spokei_option_item(&list, &text))
		why = add(tokens, text, &first);
	return end(why, first, ret_first);
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct spoke_span trim(const char *from, const char *to)
{
	while (from < to && is_blank(*from))
		from++;
	while (to > from && is_blank(to[-1]))
		to--;
	return (struct spoke_span){ from, (size_t)(to - from) };
}

const char *spokei_tokens_read_lines(struct spokei_tokens *tokens, struct spoke_span lines,
				     struct spoke_span *ret_first)
{
	const char *at = lines.data;
	const char *after = at + lines.len;
	struct spoke_span first = { NULL, 0 };
	const char *why = NULL;

	while (why == NULL && at < after) {
		const char *line_end = memchr(at, '\n', (size_t)(after - at));
		struct spoke_span text = trim(at, line_end ? line_end : after);

		if (text.len > 0 && *(const char *)text.data != '#')
			why = add(tokens, text, &first);
		at = line_end ? line_end + 1 : after;
	}
	return end(why, first, ret_first);
}
