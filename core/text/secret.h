/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets, e.g. tokens and passwords: compared with texts of peers, wiped, and hidden in texts for
 * people. Pure.
 */
#ifndef SPOKEI_CORE_TEXT_SECRET_H
#define SPOKEI_CORE_TEXT_SECRET_H

#include "core/text/digest.h"

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether a text of a peer is the secret; an empty secret equals no text. The duration
 * depends on the length of the text, not on its content. */
bool spokei_secret_is(struct spoke_span given, const char *secret);

/* Returns whether two runs of bytes are the same. The duration depends on the length only. */
bool spokei_secret_same(const void *a, const void *b, size_t len);

/* Overwrites bytes with zeros, also if nothing reads them afterwards. */
void spokei_secret_wipe(void *bytes, size_t len);

/* --- hiding */

/* Returns whether the value of a parameter, a header or an attachment of this name is a secret: the
 * name ends, in any case, with "token", "password", "passwd", "secret", "secretAccessKey",
 * "signature" or "authorization". "token.file" is none. */
bool spokei_hide_is_secret(struct spoke_span name);

/* Returns whether an unknown name, e.g. a misspelt one, could be that of a secret: it contains a
 * name of the list, or "pass". */
bool spokei_hide_may_be_secret(const char *name);

/*
 * Replaces secrets in a text, in place, with at most three asterisks each: values of parameters
 * with such a name ("token=TEXT", "token:TEXT"), and user and password before the @ of a URL, if
 * slashes stand before them. A value ends at a blank or "&"; a comma belongs to it. For texts that
 * need not be valid URLs; those that are valid are printed by spoke_url_print() with
 * SPOKE_URL_DISPLAY.
 */
void spokei_hide_secrets(char *text);

/* --- a set of tokens, which is kept as digests: memory contains no text of a token. Several are
 * valid at once while they are changed. */

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
