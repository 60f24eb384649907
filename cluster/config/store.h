/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of a store of leases:
 *
 *     redis://[USER:PASSWORD@]HOST[:PORT][/DB]                         a server
 *     redis+unix:///PATH[?db=N]                                        a server at a unix socket
 *     sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT].../NAME[/DB]  the primary that sentinels
 *                                                                      name; user and password are
 *                                                                      those of the primary
 *
 * Parameters are keys of [lease] with the prefix "lease.". Pure; any thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_STORE_H
#define SPOKEI_CLUSTER_CONFIG_STORE_H

#include "cluster/config/keys.h"

#include <spoke/url.h>

#define SPOKEI_STORE_SENTINELS_MAX 8u
#define SPOKEI_STORE_TEXT_MAX 255u /* bytes of user, password, and name of a primary */
#define SPOKEI_STORE_PORT 6379
#define SPOKEI_STORE_SENTINEL_PORT 26379
#define SPOKEI_STORE_DB_MAX 2147483647u

struct spokei_key_values;

/* Where a server or a sentinel listens. */
struct spokei_store_host {
	const char *host; /* a name, or an IP address without brackets */
	uint16_t port;
};

/* A parsed URL. The texts live until fini. */
struct spokei_store {
	struct spokei_store_host server; /* host NULL: a socket, or sentinels */
	const char *path;                /* of the unix socket; NULL: none */
	const char *primary;             /* name that sentinels know; NULL: no sentinels */
	struct spokei_store_host sentinels[SPOKEI_STORE_SENTINELS_MAX];
	unsigned sentinel_count;
	const char *user;     /* NULL: not given */
	const char *password; /* NULL: not given */
	uint32_t db;
	struct spoke_url urls[SPOKEI_STORE_SENTINELS_MAX]; /* own the texts, one for each host */
};

/*
 * Parses a text. Returns 0, ESYNTAX, EINVAL (no such parameter), ERANGE (a number), ETOOLARGE,
 * EUNSUPPORTED (the scheme) or ENOMEM. Undo with fini. After an error *ret is unchanged, and *why
 * has the position and a sentence, which quotes neither user nor password nor values.
 */
SPOKE_MUST_USE int spokei_store_parse(const struct spoke_env *env, const char *text, size_t len,
				      struct spokei_store *ret, struct spoke_url_error *why);
void spokei_store_fini(struct spokei_store *store);

/* Sets the keys that the parameters of the URL contain. */
void spokei_store_keys(const struct spokei_store *store, struct spokei_key_values *values);

#endif
