/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a provider publishes: each of its services at each of its places. Part of the provider; on
 * the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H
#define SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H

#include "cluster/discovery/keeper.h"
#include "cluster/serve/routes.h"
#include "transport/listen/listener.h"

#include <spoke/provider.h>

/* What there is to be published; borrowed for the registration's life. */
struct spokei_registration_of {
	struct spokei_routes *services;
	struct spokei_listener *const *listeners;
	const size_t *listener_count;
};

struct spokei_provider_settings;

struct spokei_registration {
	struct spoke_engine *engine;
	struct spokei_registration_of of;
	bool closed;                  /* nothing is published any more */
	struct spokei_keeper *keeper; /* NULL: nothing is published */
	struct spokei_task publish;   /* ... what is not yet */
	struct spoke_alarm retry;     /* ... for which there was no memory */
	uint64_t retry_ns;
	uint32_t weight;
	uint64_t warmup_ms;
	uint64_t born_ms;  /* when the first was published, since 1970; 0: none was */
	bool full;         /* there are more than the keeper takes, and an event has said so */
	char *application; /* these three are one block */
	char *advertise;   /* "": the host it listens at */
	char *admin;       /* "": the process shows itself nowhere */
	size_t texts_size;
};

/* Looks at the options, and opens the registry, if there is one. Returns 0, or an error of which
 * the engine's newest event has a sentence, ENOMEM or ELIMIT. Undo with end and fini. */
SPOKE_MUST_USE int spokei_registration_init(struct spokei_registration *registration,
					    struct spoke_engine *engine,
					    const struct spokei_registration_of *of,
					    const struct spoke_provider_options *options,
					    const struct spokei_provider_settings *settings);

/* May the provider listen there? Returns 0 or SPOKE_EINVAL, as above. */
SPOKE_MUST_USE int spokei_registration_check(const struct spokei_registration *registration,
					     const struct spoke_address *address);

/* There is a service or a place more. */
void spokei_registration_changed(struct spokei_registration *registration);

/* Changes the weight and publishes it. `warmup_ns` 0: no warm-up. */
void spokei_registration_reweigh(struct spokei_registration *registration, uint32_t weight,
				 uint64_t warmup_ns);

/* Withdraws all, and publishes no more. */
void spokei_registration_withdraw(struct spokei_registration *registration);

/* The same, and gives the keeper up. */
void spokei_registration_end(struct spokei_registration *registration);

/* How many listings hold, and how many are wanted. */
size_t spokei_registration_count(const struct spokei_registration *registration,
				 size_t *ret_wanted);

/* Gives the memory back. */
void spokei_registration_fini(struct spokei_registration *registration);

#endif
