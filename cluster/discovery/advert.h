/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the URL under which a provider is published, like Dubbo's providers, with sorted keys.
 * Pure.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_ADVERT_H
#define SPOKEI_CLUSTER_DISCOVERY_ADVERT_H

#include "core/base/env.h"

#include <inttypes.h>

/* Parameters for consumers with spoke on the same host: the number of the host, and the address to
 * which they may connect in place of the URL's own. */
#define SPOKEI_ADVERT_HOST "spoke.host"
#define SPOKEI_ADVERT_LOCAL "spoke.local"
#define SPOKEI_ADVERT_HOST_ID "%016" PRIx64

struct spokei_advert {
	const char *service;
	const char *version; /* "": none */
	const char *group;   /* "": none */
	const char *methods; /* with commas between; "*": any */
	const char *socket;  /* path of the unix socket; NULL: a host */
	bool shm;            /* memory is shared over it */
	const char *host;    /* a name or digits, IPv6 without brackets */
	uint16_t port;
	/* Of a host: the unix socket where the provider listens, too, e.g. "unix:/run/demo.sock",
	 * and the number of the host where that path is valid. 0: none. */
	const char *local;
	uint64_t host_id;
	const char *admin; /* address of the process's admin page; "": none */
	const char *application;
	const char *token; /* to be sent with each request; "": none */
	uint32_t weight;
	uint64_t warmup_ms;    /* 0: none */
	uint64_t timestamp_ms; /* start of the warm-up, since 1970 */
};

/* A text with memory of its own. */
struct spokei_advert_text {
	char *text;
	size_t size; /* of the memory */
};

/* Returns 0 or SPOKE_ENOMEM. Free the text with spokei_free(). */
SPOKE_MUST_USE int spokei_advert_print(const struct spoke_env *env,
				       const struct spokei_advert *advert,
				       struct spokei_advert_text *ret_text);

/* Prints the URL under which a consumer is published, with the host 0.0.0.0, which the registry
 * replaces. Uses service, version, group, application and timestamp_ms; `id` distinguishes the
 * consumers of one address. Returns and frees as above. */
SPOKE_MUST_USE int spokei_advert_print_consumer(const struct spoke_env *env,
						const struct spokei_advert *advert, uint64_t id,
						struct spokei_advert_text *ret_text);

#endif
