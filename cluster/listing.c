/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/listing.h"

#include <stdio.h>

int spokei_listing_read(struct spoke_engine *engine, const struct spoke_url *url,
			struct spokei_listing *ret)
{
	struct spokei_place place = { .port = 0 };
	int error;
	int len;

	*ret = (struct spokei_listing){ .key_len = 0 };
	error = spokei_settings_endpoint(engine, url, &ret->options);
	if (error)
		return error;
	error = spokei_place_set(&place, engine->env, ret->options.host, ret->options.port,
				 ret->options.path);
	if (error) {
		spokei_event(engine, error,
			     "URL: nobody can be called there; write a host, digits or the path "
			     "of a socket, of at most %u bytes",
			     SPOKEI_PLACE_HOST_MAX);
		return error;
	}
	len = snprintf(ret->key, sizeof(ret->key), "%s %s", ret->options.wire->name, place.name);
	SPOKE_ASSERT(len > 0 && (size_t)len < sizeof(ret->key));
	ret->key_len = (size_t)len;
	ret->name_at = strlen(ret->options.wire->name) + 1;
	return SPOKE_OK;
}
