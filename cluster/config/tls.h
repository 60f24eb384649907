/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the TLS of a provider or a consumer from its options and the settings file. */
#ifndef SPOKEI_CLUSTER_CONFIG_TLS_H
#define SPOKEI_CLUSTER_CONFIG_TLS_H

#include "cluster/config/keys.h"
#include "cluster/config/places.h"
#include "transport/stream/tls/tls.h"

struct spoke_engine;
struct spoke_tls_options;

struct spokei_tls_sources {
	const struct spoke_tls_options *options; /* NULL: none, and the rest decides */
	const char *of_url;                      /* "tls" of this side's own URL; NULL: not set */
	const struct spokei_key_values *values;  /* in force, with these options */
	enum spokei_section section;             /* of a provider or a consumer */
};

/*
 * Returns 0, with *ret_tls NULL if it is off and no place can ask for it; or an error, which the
 * engine's newest event explains. Reads files.
 */
SPOKE_MUST_USE int spokei_tls_of(struct spoke_engine *engine,
				 const struct spokei_tls_sources *sources,
				 enum spokei_tls_mode *ret_mode, struct spokei_tls **ret_tls);

#endif
