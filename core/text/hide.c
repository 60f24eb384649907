/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secrets in texts for people. */
#include "core/text/hide.h"

#include <string.h>
#include <strings.h>

#define BLANKS " \t,"     /* between words */
#define CLOSES ":;)]\"'." /* of a sentence, after a word */
#define STARS 3u

bool spokei_hide_is_secret(struct spoke_span name)
{
	static const char *const secrets[] = { "token", "password", "secret", "secretAccessKey" };
	const char *text = name.data;
	size_t len = 0;

	while (len < name.len && text[name.len - len - 1] != '.')
		len++;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (strlen(secrets[i]) == len &&
		    strncasecmp(text + name.len - len, secrets[i], len) == 0)
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
	       (byte >= '0' && byte <= '9') || strchr(".-_%", byte);
}

/* Returns whether the key that ends at `end` is a secret; an encoded one may be. */
static bool is_secret_key(const char *text, const char *end)
{
	const char *begin = end;

	while (begin > text && is_of_key(begin[-1]))
		begin--;
	return memchr(begin, '%', (size_t)(end - begin)) != NULL ||
	       spokei_hide_is_secret((struct spoke_span){ begin, (size_t)(end - begin) });
}

/* Returns the length of a value, without the marks of a sentence around it. */
static size_t value_len(const char *value)
{
	size_t len = strcspn(value, BLANKS "&");

	while (len > 0 && strchr(CLOSES, value[len - 1]))
		len--;
	return len;
}

/* Hides the user and the password of a word, which ends at `end`. Returns the new end. */
static char *hide_user(char *word, char *end)
{
	char *at = end;
	char *begin;
	char *colon;

	while (at > word && at[-1] != '@')
		at--;
	if (at == word)
		return end;
	begin = strstr(word, "://");
	begin = begin && begin < at ? begin + 3 : word;
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
