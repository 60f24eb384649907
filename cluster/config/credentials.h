/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials, as options, a section of the settings file and files of their own give them: the
 * tokens of which requests must bear one, or the one that a consumer sends; and the key that signs
 * requests. Tokens are kept as digests, and the bytes of files are wiped, except texts that are
 * sent or published. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CREDENTIALS_H
#define SPOKEI_CLUSTER_CONFIG_CREDENTIALS_H

#include "cluster/config/keys.h"
#include "core/text/tokens.h"

#define SPOKEI_ACCESS_MAX 255u /* bytes of an id or a secret */

struct spoke_config;
struct spoke_engine;

struct spokei_credentials {
	struct spokei_tokens tokens;      /* none: no token is asked for */
	char token[SPOKEI_TOKEN_MAX + 1]; /* the first, if its text is kept; else "" */
	bool random;                      /* it is one that was made here */
	bool has_token;                   /* the source says which tokens, or that there is none */
	bool has_access;                  /* ... the same for the signature */
	bool signs;                       /* requests are signed */
	size_t id_len;
	size_t secret_len;
	uint64_t window_ns;
	uint64_t access_print; /* tells the secret from others; 0: there is none */
	char id[SPOKEI_ACCESS_MAX + 1];
	char secret[SPOKEI_ACCESS_MAX + 1];
};

/* Options of a program; each may be NULL, and overrides the file. */
struct spokei_credential_options {
	const char *token; /* a list; "true" or "default": a random one; "false" or "N/A": none */
	const char *token_file;
	const char *access_id; /* with access_secret_file, signs */
	const char *access_secret_file;
};

struct spokei_credential_source {
	const struct spoke_config *config; /* NULL: none */
	enum spokei_section section;
	struct spoke_span name; /* of the section */
	struct spokei_credential_options options;
	bool keeps_text; /* keeps the text of the first token */
	bool sends;      /* one token, never a random one, e.g. of a consumer */
	bool same_token; /* an option gave the tokens of `before`, and is gone: they stay */
	/* The credentials that are replaced: a random token stays. NULL: none are. */
	const struct spokei_credentials *before;
};

/* Reads the credentials. Returns 0, EINVAL (a value, or a file that others may read), ESYSTEM (a
 * file cannot be read), EUNSUPPORTED (the environment has no secret files), each with an event,
 * or ENOMEM. After an error *ret is wiped. */
SPOKE_MUST_USE int spokei_credentials_read(struct spoke_engine *engine,
					   const struct spokei_credential_source *source,
					   struct spokei_credentials *ret);

/* Sets *ret to `narrow`, with what it does not say from `wide`. */
void spokei_credentials_lay(const struct spokei_credentials *wide,
			    const struct spokei_credentials *narrow,
			    struct spokei_credentials *ret);

void spokei_credentials_wipe(struct spokei_credentials *credentials);

#endif
