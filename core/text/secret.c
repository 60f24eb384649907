/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets in constant time, wipes them, hides them in texts, and keeps sets of tokens. */
/* For explicit_bzero(). NOLINTNEXTLINE(bugprone-reserved-identifier): of the C library */
#define _DEFAULT_SOURCE
#include "core/text/secret.h"

#include "core/text/encoding.h"
#include "core/text/option.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"   /* between words */
#define CLOSES ":;)]\"'.," /* of a sentence, after a word */
#define STARS 3u
#define TAIL 64u /* bytes of a key that are read; the longest name has 45, if encoded */

bool spokei_secret_is(struct spoke_span given, const char *secret)
{
	const unsigned char *bytes = given.data;
	size_t len = strlen(secret);
	volatile unsigned char wrong = len == 0 || given.len != len;

	for (size_t i = 0; i < given.len; i++)
		wrong = (unsigned char)(wrong |
					(bytes[i] ^ (unsigned char)secret[i < len ? i : len]));
	return wrong == 0;
}

bool spokei_secret_same(const void *a, const void *b, size_t len)
{
	const unsigned char *one = a;
	const unsigned char *other = b;
	volatile uint64_t wrong = 0;
	uint64_t words[2];

	for (; len >= sizeof(words[0]); len -= sizeof(words[0])) {
		memcpy(&words[0], one, sizeof(words[0]));
		memcpy(&words[1], other, sizeof(words[1]));
		wrong = wrong | (words[0] ^ words[1]);
		one += sizeof(words[0]);
		other += sizeof(words[0]);
	}
	for (size_t i = 0; i < len; i++)
		wrong = wrong | (uint64_t)(one[i] ^ other[i]);
	return wrong == 0;
}

void spokei_secret_wipe(void *bytes, size_t len)
{
	explicit_bzero(bytes, len);
}

/* --- hiding */

/* In lower case. */
static const char *const names[] = {
	"token", "password", "passwd", "secret", "secretaccesskey", "signature", "authorization",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

bool spokei_hide_is_secret(struct spoke_span name)
{
	const char *text = name.data;

	for (size_t i = 0; i < NAMES; i++) {
		size_t len = strlen(names[i]);

		if (name.len >= len && strncasecmp(text + name.len - len, names[i], len) == 0)
			return true;
	}
	return false;
}

bool spokei_hide_may_be_secret(const char *name)
{
	static const char part[] = "pass";

	for (size_t i = 0; name[i]; i++)
		if (spokei_hide_is_secret((struct spoke_span){ name, i + 1 }) ||
		    strncasecmp(name + i, part, sizeof(part) - 1) == 0)
			return true;
	return false;
}

/* Replaces bytes, which does not make the text longer. Returns the end of the asterisks. */
static char *put_stars(char *at, size_t len)
{
	size_t stars = len < STARS ? len : STARS;

	memset(at, '*', stars);
	memmove(at + stars, at + len, strlen(at + len) + 1);
	return at + stars;
}

static bool is_of_key(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr(".-_%", byte));
}

/* Decodes percent signs that have two digits, and keeps others. `out` has room for as many bytes.
 * Returns the new length. */
static size_t decode(const char *text, size_t len, char *out)
{
	size_t out_len = 0;

	for (size_t i = 0; i < len; i++) {
		int high = text[i] == '%' && len - i > 2 ? spokei_hex_value(text[i + 1]) : -1;
		int low = high >= 0 ? spokei_hex_value(text[i + 2]) : -1;

		if (low >= 0)
			i += 2;
		out[out_len++] = low >= 0 ? (char)(high * 16 + low) : text[i];
	}
	return out_len;
}

/* Returns whether the key that ends at `end` is a secret; it may be encoded. */
static bool is_secret_key(const char *text, const char *end)
{
	const char *begin = end;
	char key[TAIL];

	while (begin > text && end - begin < (ptrdiff_t)TAIL && is_of_key(begin[-1]))
		begin--;
	return spokei_hide_is_secret(
		(struct spoke_span){ key, decode(begin, (size_t)(end - begin), key) });
}

/* Returns the length of a value, without the marks of a sentence around it. A comma belongs to it,
 * because tokens are lists. */
static size_t value_len(const char *value)
{
	size_t len = strcspn(value, BLANKS "&");

	while (len > 0 && strchr(CLOSES, value[len - 1]))
		len--;
	return len;
}

/* Returns the part of a word after the slashes of a scheme, also of a wrong one ("dubbo:/h"); NULL:
 * there is none. */
static char *after_slashes(char *word, const char *end)
{
	for (char *at = word; at + 1 < end; at++)
		if (at[1] == '/' && (*at == '/' || *at == ':'))
			return at + 1 + strspn(at + 1, "/");
	return NULL;
}

/* Hides the user and the password of a word, which ends at `end`. Returns the new end. Without
 * slashes it could be a service with its version, e.g. "demo.A:1.0@host". */
static char *hide_user(char *word, char *end)
{
	char *begin = after_slashes(word, end);
	char *at = end;
	char *colon;

	while (at > word && at[-1] != '@')
		at--;
	if (!begin || begin >= at)
		return end;
	colon = memchr(begin, ':', (size_t)(at - 1 - begin));
	if (!colon || colon + 1 == at - 1)
		return end;
	return end - (at - 1 - put_stars(begin, (size_t)(at - 1 - begin)));
}

void spokei_hide_secrets(char *text)
{
	for (char *at = text; *at; at++)
		if ((*at == '=' || *at == ':') && is_secret_key(text, at) && value_len(at + 1) > 0)
			at = put_stars(at + 1, value_len(at + 1)) - 1;
	for (char *word = text; *word;) {
		word += strspn(word, BLANKS);
		word = hide_user(word, word + strcspn(word, BLANKS));
	}
}

/* --- tokens */

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

static const char *add_token(struct spokei_tokens *tokens, struct spoke_span text,
			     struct spoke_span *first)
{
	if (!spokei_token_is_valid(text))
		return bad_token;
	if (first->len == 0)
		*first = text;
	return spokei_tokens_add(tokens, text) ? NULL : too_many;
}

static const char *end_reading(const char *why, struct spoke_span first,
			       struct spoke_span *ret_first)
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
		why = add_token(tokens, text, &first);
	return end_reading(why, first, ret_first);
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
			why = add_token(tokens, text, &first);
		at = line_end ? line_end + 1 : after;
	}
	return end_reading(why, first, ret_first);
}
