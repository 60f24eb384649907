/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a service at one place is listed: a URL as Dubbo's providers have it, with sorted keys.
 * Judges only.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_ADVERT_H
#define SPOKEI_CLUSTER_DISCOVERY_ADVERT_H

#include "cluster/serve/routes.h"

struct spokei_advert {
	const struct spokei_service *service;
	const char *socket; /* path of the unix socket; NULL: a host */
	const char *host;   /* a name or digits, IPv6 without brackets */
	uint16_t port;
	const char *admin; /* where the process shows itself; "": nowhere */
	const char *application;
	uint32_t weight;
	uint64_t warmup_ms;    /* 0: none */
	uint64_t timestamp_ms; /* since 1970, from which on it warms up */
};

/* A text, in memory of its own. */
struct spokei_advert_text {
	char *text;
	size_t size; /* of the memory */
};

/* Returns 0 or SPOKE_ENOMEM. Give the memory back with spokei_free(). */
SPOKE_MUST_USE int spokei_advert_print(const struct spoke_env *env,
				       const struct spokei_advert *advert,
				       struct spokei_advert_text *ret_text);

#endif
