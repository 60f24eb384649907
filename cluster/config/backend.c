/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the key `backend` of [comet]: a URL of a service, with an address or with a registry. */
#include "cluster/config/backend.h"
#include "cluster/config/places.h"

#include <string.h>

#define CONSUMER "consumer" /* scheme of a URL whose addresses are in a registry */

const char *spokei_backend_check(const struct spoke_url *url)
{
	if (*spokei_places_service(url) == '\0')
		return "the URL must name the service, e.g. dubbo://127.0.0.1:20880/shop.Texts";
	if (strcmp(url->scheme, CONSUMER) != 0 && spokei_check_wire(url->scheme) == NULL)
		return "unknown scheme; use dubbo, msgpack-rpc, tcp or consumer";
	if (url->host && url->port == 0)
		return "port 0 is not valid for a consumer";
	return NULL;
}

static const struct spokei_entry *find_entry(const struct spokei_sheet *sheet,
					     enum spokei_section kind, enum spokei_key key)
{
	const struct spoke_span none = { NULL, 0 };

	return spokei_sheet_entry(spokei_sheet_part(sheet, kind, none), key);
}

const char *spokei_backend_check_with(const struct spokei_sheet *sheet,
				      const struct spokei_entry **ret_entry)
{
	const struct spokei_entry *backend = find_entry(sheet, SPOKEI_IN_COMET,
							SPOKEI_KEY_COMET_BACKEND);
	const bool has_registry = find_entry(sheet, SPOKEI_IN_REGISTRY, SPOKEI_KEY_REGISTRY_URL);
	bool listed;

	*ret_entry = backend;
	if (backend == NULL)
		return NULL;
	listed = strncmp(backend->text, CONSUMER, strlen(CONSUMER)) == 0;
	if (listed == has_registry)
		return NULL;
	return listed ? "consumer:// has no address; set url in [registry] too, or write "
			"dubbo://HOST:PORT/SERVICE"
		      : "an address and the url in [registry] exclude each other; write "
			"consumer://any/SERVICE";
}
