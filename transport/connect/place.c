/* SPDX-License-Identifier: Apache-2.0 */
/* Sets an address to connect to, and prints it. */
#include "transport/connect/place.h"

#include "core/base/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int set_path(struct spokei_place *place, const struct spoke_env *env, const char *path)
{
	int status;

	if (strlen(path) > SPOKEI_PLACE_HOST_MAX)
		return SPOKE_ETOOLARGE;
	(void)snprintf(place->name, sizeof(place->name), "unix:%s", path);
	status = env->net->parse(env->ctx, place->name, &place->address);
	if (status == -ENAMETOOLONG)
		return SPOKE_ETOOLARGE;
	if (status)
		return SPOKE_EINVAL;
	place->fixed = true;
	return SPOKE_OK;
}

void spokei_place_share(struct spokei_place *place)
{
	place->shm = true;
	spokei_address_share(place->name);
}

int spokei_place_set(struct spokei_place *place, const struct spoke_env *env, const char *host,
		     uint16_t port, const char *path)
{
	size_t len;

	if (host == NULL)
		return path ? set_path(place, env, path) : SPOKE_EINVAL;
	len = strlen(host);
	if (len == 0)
		return SPOKE_EINVAL;
	if (len > SPOKEI_PLACE_HOST_MAX)
		return SPOKE_ETOOLARGE;
	memcpy(place->host, host, len + 1);
	place->port = port;
	if (strchr(host, ':') && host[0] != '[')
		(void)snprintf(place->name, sizeof(place->name), "[%s]:%u", host, (unsigned)port);
	else
		(void)snprintf(place->name, sizeof(place->name), "%s:%u", host, (unsigned)port);
	place->fixed = env->net->parse(env->ctx, place->name, &place->address) == 0;
	if (host[0] == '[' && host[len - 1] == ']') {
		memmove(place->host, place->host + 1, len - 2);
		place->host[len - 2] = '\0';
	}
	return SPOKE_OK;
}
