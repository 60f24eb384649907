/* SPDX-License-Identifier: Apache-2.0 */
/* URLs in lists of registries. */
#include "cluster/registry/urls.h"

#include <string.h>

int spokei_urls_put(struct spokei_buffer *list, const struct spoke_url *url)
{
	size_t size = spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	unsigned char *room = spokei_buffer_reserve(list, size);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(url, SPOKE_URL_WHOLE, (char *)room, size);
	spokei_buffer_commit(list, size);
	return SPOKE_OK;
}

int spokei_urls_put_service(struct spokei_buffer *list, const char *service)
{
	const struct spoke_url url = {
		.scheme = "consumer",
		.host = "any",
		.path = service,
		.port = -1,
	};

	return spokei_urls_put(list, &url);
}

bool spokei_urls_are_services(const char *service)
{
	return strcmp(service, "*") == 0;
}

static bool is_same_text(const char *one, const char *other)
{
	return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool is_same_parameter(const struct spoke_url *one, const struct spoke_url *other,
			      const char *key)
{
	return is_same_text(spoke_url_get(one, key), spoke_url_get(other, key));
}

bool spokei_urls_same(const struct spoke_url *one, const struct spoke_url *other)
{
	return one->port == other->port && one->shm == other->shm &&
	       is_same_text(one->host, other->host) && is_same_text(one->socket, other->socket) &&
	       is_same_text(one->scheme, other->scheme) && is_same_parameter(one, other, "group") &&
	       is_same_parameter(one, other, "version");
}
