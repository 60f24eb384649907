/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether texts of options and files name what they should: a place, a host, a page's address, a
 * service. Deciders. `*ret_why` is what is wrong, and what would be right.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CHECK_H
#define SPOKEI_CLUSTER_CONFIG_CHECK_H

#include "core/base/env.h"

#include <spoke/url.h>

#include <stdbool.h>

#define SPOKEI_PORT_PRESET 20880

/* Where to listen: digits or a path. Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_place(const struct spoke_env *env, const struct spoke_url *url,
				      struct spoke_address *ret, const char **ret_why);

/* May the URL of a place have this parameter? Whatever else is said of it, options say. */
bool spokei_check_is_place_key(const char *key);

/* How providers of several engines share a place. */
enum spokei_sharing {
	SPOKEI_SHARED_NOT,
	SPOKEI_SHARED_TRUE,  /* as the system does it, where it can */
	SPOKEI_SHARED_TURNS, /* each connection to the next of them */
};

/* What it says of "shared". Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_shared(const struct spoke_url *url, enum spokei_sharing *ret,
				       const char **ret_why);

/* A host to be told to others, and nothing else of a URL; IPv6 with brackets or not. Returns 0,
 * EINVAL or ENOMEM. */
SPOKE_MUST_USE int spokei_check_advertised(const struct spoke_env *env, const char *host,
					   const char **ret_why);

/* Where the admin page is shown. Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_admin(const struct spoke_env *env, const char *listen,
				      const char **ret_why);

/* The name of a service or a method in a section's heading; NULL: nothing is wrong. */
const char *spokei_check_name(const char *name);

/* Does it stand for all addresses of a machine? */
bool spokei_check_is_any(const char *host);

#endif
