/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the URL of a registry in ZooKeeper says, and the names of nodes there, as Dubbo has them:
 *
 *     /<group>/<encoded service>/providers/<encoded URL of a provider>
 *
 * The last one is ephemeral, all others stay. Judges only; any thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_NAMES_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_NAMES_H

#include "transport/connect/place.h"

#include <spoke/url.h>

#define SPOKEI_ZOO_PORT 2181u
#define SPOKEI_ZOO_PLACES_MAX 16u
#define SPOKEI_ZOO_ROOT_MAX 512u      /* bytes of what stands before a service, with the NUL */
#define SPOKEI_ZOO_WHY_MAX 256u       /* bytes of a sentence, with the NUL */
#define SPOKEI_ZOO_SESSION_MS 60000   /* asked for; servers often grant 40 s at most */
#define SPOKEI_ZOO_SESSION_MIN_MS 200 /* and up to an hour */
#define SPOKEI_ZOO_SESSION_MAX_MS 3600000

struct spokei_zoo_settings {
	struct spokei_place places[SPOKEI_ZOO_PLACES_MAX]; /* of the servers */
	unsigned place_count;
	int session_ms;                 /* the server forgets who is silent for so long */
	char root[SPOKEI_ZOO_ROOT_MAX]; /* as "/dubbo", without a slash at the end */
};

/*
 * Reads
 * "zookeeper://host:2181[/parent]?backup=host2:2181,host3&group=dubbo&session=60000": `backup` are
 * the other servers, the nodes lie below /parent/group. Other parameters are passed over. Returns
 * 0, or an error and a sentence in `why`: EINVAL, ERANGE, ESYNTAX, ETOOLARGE; EUNSUPPORTED: a user
 * is named.
 */
SPOKE_MUST_USE int spokei_zoo_settings_read(const struct spoke_env *env,
					    const struct spoke_url *url,
					    struct spokei_zoo_settings *ret_settings,
					    char why[SPOKEI_ZOO_WHY_MAX]);

/* The node whose children are a service's providers; of "*" the one whose children are the
 * services. Returns the length of the text, which is written if all of it and a NUL fit in. */
size_t spokei_zoo_print_folder(const struct spokei_zoo_settings *settings, const char *service,
			       char *out, size_t size);

/* Do two URLs of one service name the same provider, though it may have started twice? Scheme,
 * place, group and version tell. */
bool spokei_zoo_same_provider(const struct spoke_url *one, const struct spoke_url *other);

#endif
