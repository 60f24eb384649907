/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes a provider at a registry: each of its services at each of its addresses. Part of the
 * provider; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H
#define SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H

#include "cluster/provider/local.h"
#include "core/engine/task.h"

#include <spoke/engine.h>

struct spoke_provider_options;
struct spokei_keeper;
struct spokei_proof;
struct spokei_listen_group;
struct spokei_provider_settings;
struct spokei_routes;

/* The services and the addresses to publish; borrowed for the registration's life. */
struct spokei_registration_of {
	struct spokei_routes *services;
	const struct spokei_listen_group *listeners;
	const struct spokei_proof *proof; /* which tokens are published */
	struct spokei_local_of local;     /* whether a path is published with the ports */
};

struct spokei_registration {
	struct spoke_engine *engine;
	struct spokei_registration_of of;
	bool closed;                  /* nothing is published any more */
	struct spokei_keeper *keeper; /* NULL: nothing is published */
	struct spokei_task publish;   /* publishes the rest */
	struct spoke_alarm retry;     /* ... again, after a lack of memory */
	uint64_t retry_ns;
	uint32_t weight;
	uint64_t warmup_ms;
	uint64_t born_ms;  /* when the first service was published, since 1970; 0: none was */
	bool full;         /* there is more than the keeper takes, which an event has reported */
	char *application; /* these three share one block of memory */
	char *advertise;   /* the host to publish; "": the one it listens at */
	char *admin;       /* address of the page; "": none */
	size_t texts_size;
};

/* Checks the options, and opens the registry, if there is one. Returns 0, ENOMEM, ELIMIT, or an
 * error that the engine's newest event explains. Undo with end and fini. */
SPOKE_MUST_USE int spokei_registration_init(struct spokei_registration *registration,
					    struct spoke_engine *engine,
					    const struct spokei_registration_of *of,
					    const struct spoke_provider_options *options,
					    const struct spokei_provider_settings *settings);

/* Checks whether the address can be published. Returns 0 or SPOKE_EINVAL, as above. */
SPOKE_MUST_USE int spokei_registration_check(const struct spokei_registration *registration,
					     const struct spoke_address *address);

/* Publishes a service or an address that was added, or what a new list of callers changes. */
void spokei_registration_changed(struct spokei_registration *registration);

/* Changes the weight and publishes it. `warmup_ns` 0: no warm-up. */
void spokei_registration_reweigh(struct spokei_registration *registration, uint32_t weight,
				 uint64_t warmup_ns);

/* Publishes everything again, because a token has changed. */
void spokei_registration_renew(struct spokei_registration *registration);

/* Withdraws all services, and publishes no more. */
void spokei_registration_withdraw(struct spokei_registration *registration);

/* Does the same, and frees the keeper. */
void spokei_registration_end(struct spokei_registration *registration);

/* Returns how many entries are published, and how many should be. */
size_t spokei_registration_count(const struct spokei_registration *registration,
				 size_t *ret_wanted);

/* Frees the memory. */
void spokei_registration_fini(struct spokei_registration *registration);

#endif
