/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of leases, from all sources: a later one overrides an earlier one. The default, the
 * section [lease] of a file, the URL of the store, the options in the program; for one lease the
 * options of its ask.
 */
#ifndef SPOKEI_CLUSTER_LEASE_SETTINGS_H
#define SPOKEI_CLUSTER_LEASE_SETTINGS_H

#include "cluster/config/keys.h"
#include "cluster/config/store.h"
#include "cluster/lease/redis.h"

#include <spoke/lease.h>

#define SPOKEI_LEASE_WHY_MAX 256u /* bytes of a sentence, with the NUL */

struct spokei_lease_settings {
	/* Terms of a lease without options of its own. */
	uint64_t ttl_ns;
	uint64_t wait_ns;  /* 0: an ask does not wait; SPOKE_LEASE_FOREVER */
	uint64_t guard_ns; /* 0: a tenth of the time to live */
	uint32_t max;      /* leases asked for and held at one time */
	/* Of the store. The texts are in `texts` or `store`. */
	struct spokei_redis_options redis;
	struct spokei_store store;
	/* For the page: the values in force, without secrets and the URL of the store. */
	struct spokei_key_values in_force;
	const char *file; /* name of the settings file; NULL: none */
	char *texts;      /* copies */
	size_t texts_size;
};

/*
 * Reads all sources. Returns 0, EINVAL, ESYNTAX, ERANGE, ETOOLARGE, EUNSUPPORTED or ENOMEM, which
 * the engine's newest event explains, without secrets. *ret may not be moved. On the engine's
 * thread.
 */
SPOKE_MUST_USE int spokei_lease_settings(struct spoke_engine *engine,
					 const struct spoke_leases_options *options,
					 struct spokei_lease_settings *ret);

/* Frees the texts. Zero-initialised settings have none. */
void spokei_lease_settings_free(const struct spoke_env *env,
				struct spokei_lease_settings *settings);

/* The terms of one lease. */
struct spokei_lease_terms {
	uint64_t ttl_ns; /* whole milliseconds */
	uint64_t wait_ns;
};

/*
 * Returns the terms of a lease: those of the settings, changed by the options of its ask, which may
 * be NULL. Returns 0, or ERANGE, which `why` explains. Pure; any thread.
 */
SPOKE_MUST_USE int spokei_lease_terms(const struct spokei_lease_settings *settings,
				      const struct spoke_lease_options *options,
				      struct spokei_lease_terms *ret,
				      char why[SPOKEI_LEASE_WHY_MAX]);

#endif
