/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place to connect to: a name with a port, which has to be resolved, or digits or a path, which
 * are an address already. Constant once it is set; embedded in its owner.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_PLACE_H
#define SPOKEI_TRANSPORT_CONNECT_PLACE_H

#include "core/base/env.h"

#define SPOKEI_PLACE_HOST_MAX 255u /* bytes of a name or a path */

struct spokei_place {
	bool fixed;                   /* `address` is the only one there is */
	struct spoke_address address; /* if fixed */
	uint16_t port;
	char host[SPOKEI_PLACE_HOST_MAX + 1];                  /* to be resolved, if not fixed */
	char name[SPOKEI_PLACE_HOST_MAX + sizeof("[]:65535")]; /* as "demo.test:80", "unix:PATH" */
};

/*
 * Copies what is given: a host, or a path if host is NULL. An address of IPv6 may be in brackets or
 * not. Returns 0; SPOKE_EINVAL: neither, or the path is none; SPOKE_ETOOLARGE: a name or a path of
 * too many bytes.
 */
SPOKE_MUST_USE int spokei_place_set(struct spokei_place *place, const struct spoke_env *env,
				    const char *host, uint16_t port, const char *path);

#endif
