/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens and keys that a provider asks of its callers (its demands): of the whole provider, or
 * of a service by its own settings. They are read again when their files change. On the engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_DEMANDS_H
#define SPOKEI_CLUSTER_PROVIDER_DEMANDS_H

#include "cluster/config/credentials.h"
#include "timer/base.h"

struct spoke_provider_options;
struct spokei_config_user;
struct spokei_secrets;
struct spokei_service;

struct spokei_demands {
	struct spoke_engine *engine;
	const struct spokei_config_user *file; /* its config may be gone */
	struct spokei_credential_options options;
	char *texts; /* of the options */
	size_t texts_size;
	bool same_token; /* an option gave the tokens; its text is not kept */
	bool publishes;  /* a token goes to the registry */
	struct spokei_credentials own;
	struct spokei_credentials next; /* ... while they are read again */
	struct spoke_list services;     /* those of single services */
	struct spokei_secrets *secrets; /* NULL: no file can be in use */
	void (*changed)(void *arg);
	void *changed_arg;
};

/* Reads the credentials of a provider. `file`: borrowed for the life of the struct, which must not
 * be moved. Returns 0, ENOMEM, or an error that the engine's newest event explains. Undo with fini,
 * also after an error. */
SPOKE_MUST_USE int spokei_demands_init(struct spokei_demands *demands, struct spoke_engine *engine,
				       const struct spoke_provider_options *options,
				       const struct spokei_config_user *file, bool publishes);
void spokei_demands_fini(struct spokei_demands *demands);

/* Has `changed` called when files of tokens or keys may have changed, for
 * spokei_demands_prepare().
 * Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_demands_watch(struct spokei_demands *demands, void (*changed)(void *arg),
					void *arg);

/* Reads the credentials that the file has for a service of this name. *ret_asked, which the demands
 * own, becomes spokei_service.asked. Returns as init. */
SPOKE_MUST_USE int spokei_demands_add(struct spokei_demands *demands, const char *service,
				      void **ret_asked);

/* Reads everything again, and keeps it for replace(). Returns 0, or an error that the engine's
 * newest event explains. */
SPOKE_MUST_USE int spokei_demands_prepare(struct spokei_demands *demands);

/* Uses what prepare() has read, or drops it. Returns whether a token that is published has changed.
 */
bool spokei_demands_replace(struct spokei_demands *demands, bool takes);

/* Returns the credentials that requests to a service need, with the token to publish: "": none. */
const struct spokei_credentials *spokei_demands_of(const struct spokei_demands *demands,
						   const struct spokei_service *service);

/* Returns whether these credentials ask for anything. */
bool spokei_demands_asks(const struct spokei_credentials *credentials);

/* Returns whether any do; whether any may, now or after a reload. */
bool spokei_demands_ask_anywhere(const struct spokei_demands *demands);
bool spokei_demands_may_ask(const struct spokei_demands *demands);

/* Returns whether any of the credentials has the token of a digest; the number of a proof. */
bool spokei_demands_have_token(const struct spokei_demands *demands, const unsigned char *digest);
bool spokei_demands_have_number(const struct spokei_demands *demands, uint64_t number);

#endif
