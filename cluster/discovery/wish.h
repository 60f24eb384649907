/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publication or subscription that should exist at a registry (a "wish"), and its progress. Of
 * several wishes about the same address and service at most one is wanted, and it is not
 * requested before the others are withdrawn. Part of a keeper.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_WISH_H
#define SPOKEI_CLUSTER_DISCOVERY_WISH_H

#include "core/base/env.h"

#include <spoke/url.h>

#define SPOKEI_WISH_GIVEN_UP UINT64_MAX

enum spokei_wish_state {
	SPOKEI_WISH_UNSAID,   /* not at the registry, nothing in flight */
	SPOKEI_WISH_SAYING,   /* request in flight */
	SPOKEI_WISH_HOLDS,    /* at the registry */
	SPOKEI_WISH_UNSAYING, /* request in flight */
	SPOKEI_WISH_LEFT,     /* may be there: its withdrawal has failed */
};

struct spokei_wish {
	struct spoke_list node; /* list of the keeper */
	enum spokei_wish_state state;
	bool subscribes; /* false: publishes */
	bool wanted;
	bool stale;          /* must be withdrawn and requested again */
	bool troubled;       /* failed or lost, and not restored yet */
	uint64_t which;      /* intent of the request, unless UNSAID */
	uint64_t asked;      /* intent in flight; 0: none */
	uint64_t due_ns;     /* earliest next request; SPOKEI_WISH_GIVEN_UP: never */
	uint64_t anew_ns;    /* from then on a loss is repeated at once */
	uint32_t failures;   /* consecutive */
	const char *service; /* the texts follow this struct */
	const char *url;     /* of a subscription: the category, or "" for the providers */
	const char *key;     /* equal for the same address and service */
	size_t size;         /* of this struct with its texts */
	char texts[];
};

/* Copies the texts; `url` is NULL for a subscription, of a `category`: "" for providers. Returns 0,
 * SPOKE_ENOMEM or an error of spoke_url_parse(). Undo with free. */
SPOKE_MUST_USE int spokei_wish_new(const struct spoke_env *env, const char *service,
				   const char *url, const char *category,
				   struct spokei_wish **ret_wish);
void spokei_wish_free(const struct spoke_env *env, struct spokei_wish *wish);

/* Returns whether it is or may be at the registry. */
static inline bool spokei_wish_is_there(const struct spokei_wish *wish)
{
	return wish->state != SPOKEI_WISH_UNSAID;
}

#endif
