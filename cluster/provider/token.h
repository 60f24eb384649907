/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token of a provider: a text that each request has to contain as the attachment "token", as
 * with Dubbo. The registry shows it to consumers. It is checked by a filter. "$echo" needs none. On
 * the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_TOKEN_H
#define SPOKEI_CLUSTER_PROVIDER_TOKEN_H

#include <spoke/filter.h>

#define SPOKEI_TOKEN_MAX 256u /* bytes */

struct spoke_engine;
struct spokei_token;

/*
 * Makes the token of an option: "true" or "default" is a random one; "false", "0", "null", "N/A"
 * and NULL are none, for which *ret_token is NULL. Returns 0, SPOKE_ENOMEM, or SPOKE_EINVAL, which
 * the engine's newest event explains.
 */
SPOKE_MUST_USE int spokei_token_new(struct spoke_engine *engine, const char *option,
				    struct spokei_token **ret_token);
void spokei_token_free(struct spoke_engine *engine, struct spokei_token *token);

/* Returns the text; "" for NULL. */
const char *spokei_token_text(const struct spokei_token *token);

/* The filter that refuses requests without the token with an exception, as Java does. */
const struct spoke_filter *spokei_token_filter(const struct spokei_token *token);

#endif
