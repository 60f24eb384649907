/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of tokens, which is kept as digests: memory contains no text of a token. Several are valid
 * at once while they are changed. Pure.
 */
#ifndef SPOKEI_CORE_TEXT_TOKENS_H
#define SPOKEI_CORE_TEXT_TOKENS_H

#include "core/text/sha256.h"

#include <spoke/value.h>

#define SPOKEI_TOKENS_MAX 4u
#define SPOKEI_TOKEN_MIN 8u   /* bytes of a token */
#define SPOKEI_TOKEN_MAX 256u /* ... at most */

struct spokei_tokens {
	unsigned count;
	unsigned char digests[SPOKEI_TOKENS_MAX][SPOKEI_SHA256];
};

/* Returns whether the text can be a token: visible ASCII without a comma, which separates tokens in
 * a list. */
bool spokei_token_is_valid(struct spoke_span text);

/* Adds a valid token. Returns whether there was room; one that the set has needs none. */
bool spokei_tokens_add(struct spokei_tokens *tokens, struct spoke_span text);

/* Returns a number, not 0, that tells a text or a digest from all others that are likely. */
uint64_t spokei_digest_print(const unsigned char digest[SPOKEI_SHA256]);
uint64_t spokei_token_print(const void *text, size_t len);

/* Returns whether the text, or that of the digest, is one of the tokens. The duration depends on
 * the length of the text only: each call compares all bytes of SPOKEI_TOKENS_MAX digests. */
bool spokei_tokens_has(const struct spokei_tokens *tokens, struct spoke_span text);
bool spokei_tokens_has_digest(const struct spokei_tokens *tokens,
			      const unsigned char digest[SPOKEI_SHA256]);

/*
 * Adds the tokens of a list, separated by commas, or of the content of a file: one a line, between
 * blanks that do not count; empty lines and those that begin with "#" are left out. If not NULL,
 * *ret_first is the first of them. Returns NULL, or a sentence about the error, which quotes
 * nothing; then the set is in no useful state.
 */
const char *spokei_tokens_read_list(struct spokei_tokens *tokens, const char *list,
				    struct spoke_span *ret_first);
const char *spokei_tokens_read_lines(struct spokei_tokens *tokens, struct spoke_span lines,
				     struct spoke_span *ret_first);

#endif
