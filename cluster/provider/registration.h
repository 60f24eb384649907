/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes a provider at a registry: each of its services at each of its addresses. Part of the
 * provider; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H
#define SPOKEI_CLUSTER_PROVIDER_REGISTRATION_H

#include "cluster/discovery/provider_url.h"
#include "core/engine/task.h"

#include <spoke/engine.h>
#include <spoke/url.h>

struct spoke_provider;
struct spoke_provider_options;
struct spokei_keeper;

struct spokei_registration {
	struct spoke_provider *provider;
	bool closed;                  /* nothing is published now */
	struct spokei_keeper *keeper; /* NULL: nothing is published */
	struct spokei_task publish;   /* publishes the rest */
	struct spoke_alarm retry;     /* ... again, after a lack of memory */
	uint32_t weight;
	uint64_t warmup_ms;
	uint64_t born_ms; /* when the first service was published, since 1970; 0: none was */
	bool full;        /* there is more than the keeper takes, which an event has reported */
	const char *application;                /* of the settings */
	char advertise[SPOKE_URL_HOST_MAX + 1]; /* the host to publish; "": that it listens at */
	char admin[SPOKEI_PROVIDER_URL_ADMIN];  /* address of the page; "": none */
};

/* Checks the options of a provider, and opens its registry, if there is one. Returns 0, ENOMEM,
 * ELIMIT, or an error that the engine's newest event explains. Undo with end. */
SPOKE_MUST_USE int spokei_registration_init(struct spoke_provider *provider,
					    const struct spoke_provider_options *options);

/* Checks whether the address can be published. Returns 0 or SPOKE_EINVAL, as above. */
SPOKE_MUST_USE int spokei_registration_check(const struct spokei_registration *registration,
					     const struct spoke_address *address);

/* Publishes everything again: services, addresses, the weight, tokens or lists have changed. The
 * newest entry of a service at an address replaces the older one; an equal one changes nothing. */
void spokei_registration_changed(struct spokei_registration *registration);

/* Withdraws all services, and publishes none until it resumes. */
void spokei_registration_withdraw(struct spokei_registration *registration);

/* Publishes everything again, as a provider that begins now. */
void spokei_registration_resume(struct spokei_registration *registration);

/* Withdraws all services for good, and frees the keeper. */
void spokei_registration_end(struct spokei_registration *registration);

#endif
