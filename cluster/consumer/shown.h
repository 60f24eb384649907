/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials that a consumer shows to providers: a token of its own, and the key that signs
 * its requests. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SHOWN_H
#define SPOKEI_CLUSTER_CONSUMER_SHOWN_H

#include "cluster/config/credentials.h"

struct spoke_consumer_options;
struct spoke_url;
struct spokei_consumer_settings;
struct spokei_secrets;

struct spokei_shown {
	struct spokei_credentials of;   /* of options, else of the service, else of all consumers */
	struct spokei_credentials next; /* ... while they are read again */
	struct spokei_credential_options options; /* paths, copied; no token */
	char *texts;
	size_t texts_size;
	bool same_token; /* an option gave the token */
	struct spoke_engine *engine;
	const struct spokei_consumer_settings *settings;
	struct spokei_secrets *secrets; /* NULL: no file can be in use */
};

/* Reads the credentials. `ret` is all zero. Returns 0, ENOMEM, or an error that the engine's newest
 * event explains. Undo with fini, also after an error. */
SPOKE_MUST_USE int spokei_shown_init(struct spoke_engine *engine,
				     const struct spoke_consumer_options *options,
				     const struct spokei_consumer_settings *settings,
				     struct spokei_shown *ret);
void spokei_shown_fini(const struct spoke_env *env, struct spokei_shown *shown);

/* Reads them again, and keeps them for replace(). Returns 0, or an error that the engine's newest
 * event explains. */
SPOKE_MUST_USE int spokei_shown_prepare(struct spokei_shown *shown);

/* Uses what prepare() has read, or drops it. */
void spokei_shown_replace(struct spokei_shown *shown, bool takes);

/* Returns 0, or EINVAL, with an event, if the token would go over plain TCP to one of these
 * providers on another machine. */
SPOKE_MUST_USE int spokei_shown_check(struct spoke_engine *engine, const struct spokei_shown *shown,
				      const struct spoke_url *urls, size_t count);

#endif
