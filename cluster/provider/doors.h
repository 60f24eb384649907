/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of a provider: peers that may connect, and callers that are let in. They are read
 * together, and a reload replaces all of them or none. Afterwards connections that are no longer
 * allowed are drained. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_DOORS_H
#define SPOKEI_CLUSTER_PROVIDER_DOORS_H

#include <spoke/value.h>

struct spoke_provider;
struct spokei_callers;
struct spokei_credentials;

/* Reads the lists of options and file, before the first connection. Returns 0, SPOKE_ENOMEM, or
 * SPOKE_EINVAL, which the engine's newest event explains. */
SPOKE_MUST_USE int spokei_doors_open(struct spoke_provider *provider);

/* Reads all lists of a reloaded file, for one of the next two. Returns 0, or an error that the
 * engine's newest event explains. */
SPOKE_MUST_USE int spokei_doors_prepare_all(struct spoke_provider *provider);

/* Puts these lists in force. The proof of a reload changes next, which drains. */
void spokei_doors_take(struct spoke_provider *provider);

/* Frees the prepared lists. */
void spokei_doors_drop(struct spoke_provider *provider);

/* Drains the connections that lists or credentials do not allow any more. */
void spokei_doors_drain(struct spoke_provider *provider);

/* Makes the list of a service that is about to be added; *ret_callers is NULL if it has none.
 * Returns as spokei_doors_open(). spokei_doors_add() gives it to the service added last, with what
 * spokei_proof_add() has returned. */
SPOKE_MUST_USE int spokei_doors_prepare(struct spoke_provider *provider, const char *service,
					struct spokei_callers **ret_callers);
void spokei_doors_add(struct spoke_provider *provider, struct spokei_callers *callers,
		      const struct spokei_credentials *credentials);

/* Frees the lists. */
void spokei_doors_close(struct spoke_provider *provider);

#endif
