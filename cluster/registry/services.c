/* SPDX-License-Identifier: Apache-2.0 */
/* The list of services that subscribers to "*" receive. */
#include "cluster/registry/services.h"

#include <spoke/url.h>

bool spokei_services_wanted(const char *service)
{
	return service[0] == '*' && service[1] == '\0';
}

size_t spokei_services_print(const char *service, char *out, size_t size)
{
	const struct spoke_url url = {
		.scheme = "consumer",
		.host = "any",
		.path = service,
		.port = -1,
	};

	return spoke_url_print(&url, SPOKE_URL_WHOLE, out, size);
}
