/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a unix socket that is published together with the provider's ports, for consumers on
 * the same host. Such a path has no entry of its own at the registry: it means nothing on other
 * hosts, and consumers here would see two providers. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_LOCAL_H
#define SPOKEI_CLUSTER_PROVIDER_LOCAL_H

#include <spoke/env.h>

struct spokei_callers;
struct spokei_listen_group;
struct spokei_service;

#define SPOKEI_LOCAL_TEXT 160u /* bytes of an address, with the NUL */

/* The parts of a provider that decide; borrowed. */
struct spokei_local_of {
	const struct spokei_listen_group *listeners;
	struct spokei_callers *const *callers; /* the provider's list, which changes; NULL: none */
	const bool *wanted;                    /* `local.path` is not off */
};

struct spokei_local {
	size_t index;                 /* of the address in the group of listeners */
	uint64_t host_id;             /* of this process; 0: no path is published with ports */
	char text[SPOKEI_LOCAL_TEXT]; /* e.g. "unix:/run/demo.sock" */
};

/*
 * Finds the path for a service, or none: the provider listens at a port and at an absolute path
 * where plain bytes are accepted, `local.path` is not off, the identity of the host is known, and
 * no list of callers asks for addresses, which a unix socket has not.
 */
void spokei_local_find(const struct spokei_local_of *of, const struct spoke_env *env,
		       const struct spokei_service *service, struct spokei_local *ret);

/* Returns whether the address has no entry of its own. */
static inline bool spokei_local_hides(const struct spokei_local *local, size_t index)
{
	return local->host_id != 0 && local->index == index;
}

#endif
