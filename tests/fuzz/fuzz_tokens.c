/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes files and lists of tokens: what is accepted is a set of valid tokens, of which the first
 * is where the reader says. */
#include "core/text/secret.h"
#include "tests/fuzz/fuzz.h"
#include "timer/base.h"

#include <stdlib.h>
#include <string.h>

static void demand_set(const struct spokei_tokens *tokens, const char *why, struct spoke_span first)
{
	SPOKE_ASSERT(tokens->count <= SPOKEI_TOKENS_MAX);
	if (why)
		return;
	SPOKE_ASSERT(tokens->count > 0);
	SPOKE_ASSERT(spokei_token_is_valid(first));
	SPOKE_ASSERT(spokei_tokens_has(tokens, first));
	first.len--;
	SPOKE_ASSERT(tokens->count > 1 || !spokei_tokens_has(tokens, first));
}

/* The bytes lie at the end of a block of their own, so that reading past them is noticed. */
static void read_lines(const unsigned char *data, size_t size)
{
	struct spokei_tokens tokens = { .count = 0 };
	struct spoke_span first = { NULL, 0 };
	char *copy = malloc(size + 1);
	const char *why;

	SPOKE_ASSERT(copy != NULL);
	memcpy(copy, data, size);
	why = spokei_tokens_read_lines(&tokens, (struct spoke_span){ copy, size }, &first);
	demand_set(&tokens, why, first);
	free(copy);
}

static void read_list(const unsigned char *data, size_t size)
{
	struct spokei_tokens tokens = { .count = 0 };
	struct spoke_span first = { NULL, 0 };
	char *copy = malloc(size + 1);
	const char *why;

	SPOKE_ASSERT(copy != NULL);
	memcpy(copy, data, size);
	copy[size] = '\0';
	why = spokei_tokens_read_list(&tokens, copy, &first);
	demand_set(&tokens, why, first);
	free(copy);
}

FUZZ(tokens)
{
	if (size == 0)
		return 0;
	read_lines(data, size);
	read_list(data, size);
	return 0;
}
