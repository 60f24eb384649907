/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of registries in ZooKeeper, and the paths of nodes, as in Dubbo:
 *
 *     /<group>/<encoded service>/providers/<encoded URL of a provider>
 *     /<group>/<encoded service>/consumers/<encoded URL of a consumer>
 *     /<group>/config/dubbo/<key>.configurators, and other rules
 *     /services/<application>/<host>:<port>             an instance, as in Dubbo 3
 *     /<group>/metadata/<application>/<revision>        its metadata
 *     /<group>/mapping/<service>                        the applications that have the service
 *
 * Nodes of providers, consumers and instances are ephemeral, all others are persistent. Pure; any
 * thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_NAMES_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_NAMES_H

#include "transport/connect/place.h"

#include <spoke/url.h>

#define SPOKEI_ZOO_PORT 2181u
#define SPOKEI_ZOO_PLACES_MAX 16u
#define SPOKEI_ZOO_ROOT_MAX 512u      /* bytes of the path before a service, with the NUL */
#define SPOKEI_ZOO_WHY_MAX 256u       /* bytes of a message, with the NUL */
#define SPOKEI_ZOO_SESSION_MS 60000   /* requested; servers often grant 40 s at most */
#define SPOKEI_ZOO_SESSION_MIN_MS 200 /* up to an hour */
#define SPOKEI_ZOO_SESSION_MAX_MS 3600000

struct spokei_zoo_settings {
	struct spokei_place places[SPOKEI_ZOO_PLACES_MAX]; /* of the servers */
	unsigned place_count;
	int session_ms;                     /* session timeout */
	char root[SPOKEI_ZOO_ROOT_MAX];     /* e.g. "/dubbo", without a slash at the end */
	char services[SPOKEI_ZOO_ROOT_MAX]; /* e.g. "/services", the folder of applications */
};

/*
 * Reads "zookeeper://host:2181[/parent]?backup=host2:2181,host3&group=dubbo&session=60000":
 * `backup` lists further servers, the nodes are below /parent/group. Instances are below
 * /parent/services, /parent/group if `group` is given, or /parent/rootPath. Ignores other
 * parameters. Returns 0, or an error and a message in `why`: EINVAL, ERANGE, ESYNTAX, ETOOLARGE;
 * EUNSUPPORTED for a URL with a user.
 */
SPOKE_MUST_USE int spokei_zoo_settings_read(const struct spoke_env *env,
					    const struct spoke_url *url,
					    struct spokei_zoo_settings *ret_settings,
					    char why[SPOKEI_ZOO_WHY_MAX]);

/* Prints the folder of a service's category, e.g. "providers", or the node of a rule, of metadata
 * or of a mapping; for the service "*" the folder of the services. Returns the length of the text,
 * which is written if it fits with a NUL. */
size_t spokei_zoo_print_folder(const struct spokei_zoo_settings *settings, const char *service,
			       const char *category, char *out, size_t size);

#endif
