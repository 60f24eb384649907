/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something that is to be true at a registry: a provider is listed, or a service is subscribed to;
 * and what has become of it so far. Of several wishes about the same place and service one is
 * wanted at most, and none is said before the others are taken back. Part of a keeper.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_WISH_H
#define SPOKEI_CLUSTER_DISCOVERY_WISH_H

#include "core/base/env.h"

#include <spoke/url.h>

#define SPOKEI_WISH_GIVEN_UP UINT64_MAX

enum spokei_wish_state {
	SPOKEI_WISH_UNSAID,   /* nothing of it is there, and nothing under way */
	SPOKEI_WISH_SAYING,   /* under way */
	SPOKEI_WISH_HOLDS,    /* it is there */
	SPOKEI_WISH_UNSAYING, /* under way */
	SPOKEI_WISH_LEFT,     /* it may be there: taking it back has failed */
};

struct spokei_wish {
	struct spoke_list node; /* of the keeper */
	enum spokei_wish_state state;
	bool subscribes; /* else it publishes */
	bool wanted;
	bool stale;          /* it has to be taken back and said anew */
	bool troubled;       /* it failed or was lost, and does not hold again yet */
	uint64_t which;      /* the intent that said it, unless UNSAID */
	uint64_t asked;      /* the intent under way; 0: none */
	uint64_t due_ns;     /* nothing is tried before; SPOKEI_WISH_GIVEN_UP: not any more */
	uint64_t anew_ns;    /* from then on a loss is answered at once */
	uint32_t failures;   /* in a row */
	const char *service; /* these are behind this, in its memory */
	const char *url;     /* "" for a subscription */
	const char *key;     /* equal for the same place and service */
	size_t size;         /* of this, with its texts */
	char texts[];
};

/* Copies the texts; `url` is NULL for a subscription. Returns 0, SPOKE_ENOMEM or what
 * spoke_url_parse() says. Undo with free. */
SPOKE_MUST_USE int spokei_wish_new(const struct spoke_env *env, const char *service,
				   const char *url, struct spokei_wish **ret_wish);
void spokei_wish_free(const struct spoke_env *env, struct spokei_wish *wish);

/* Is anything of it at the registry, or may be? */
static inline bool spokei_wish_is_there(const struct spokei_wish *wish)
{
	return wish->state != SPOKEI_WISH_UNSAID;
}

#endif
