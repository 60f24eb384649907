/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secrets in texts for people. */
#include "core/text/hide.h"

#include "core/text/percent.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"   /* between words */
#define CLOSES ":;)]\"'.," /* of a sentence, after a word */
#define STARS 3u
#define TAIL 64u /* bytes of a key that are read; the longest name has 45, if encoded */

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
