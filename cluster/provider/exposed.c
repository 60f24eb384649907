/* SPDX-License-Identifier: Apache-2.0 */
/* Reports once that every host may call a provider, and how to change that. */
#include "cluster/config/exposure.h"
#include "cluster/config/places.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/proof.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

#include <stdio.h>

#define NAME_SHOWN 64u /* bytes of a service */

/* Describes one address of the provider; `service` NULL: without a service. */
static struct spokei_exposure describe(const struct spoke_provider *provider, size_t index,
				       const struct spokei_service *service)
{
	const struct spokei_listen_group *group = provider->listeners;
	const struct spokei_demands *demands = &provider->proof->demands;
	const struct spokei_credentials *asked = service ? spokei_demands_of(demands, service)
							 : &demands->own;
	unsigned marks = spokei_listen_group_marks(group, index);
	struct spokei_exposure of = {
		.local = spokei_places_is_local(provider->engine->env,
						spokei_listen_group_address(group, index)),
		.plain = !(marks & SPOKEI_PROVIDER_TLS),
		.asks = spokei_demands_asks(asked),
		.of_owner = spokei_listen_group_rules(group),
		.of_address = spokei_listen_group_rules_at(group, index),
		.of_provider = provider->callers,
		.of_service = service ? service->callers : NULL,
	};

	if (!of.plain)
		of.verify = spokei_tls_verifies(provider->tls);
	return of;
}

/* Writes " NAME" of the first service that is open to every host at this address, or "" if all are.
 * Without services the provider itself counts. */
static enum spokei_exposed judge(const struct spoke_provider *provider, size_t index,
				 char name[NAME_SHOWN + 1])
{
	const struct spoke_list *all = &provider->services->all;
	struct spokei_exposure of = describe(provider, index, NULL);
	enum spokei_exposed whole = spokei_exposure_judge(&of);
	enum spokei_exposed found = SPOKEI_EXPOSED_NOT;
	bool names = whole == SPOKEI_EXPOSED_NOT;

	name[0] = '\0';
	if (all->next == all)
		return whole;
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_service *service =
			spoke_container_of(node, struct spokei_service, node);
		enum spokei_exposed each;

		of = describe(provider, index, service);
		each = spokei_exposure_judge(&of);
		names |= each == SPOKEI_EXPOSED_NOT;
		if (each == SPOKEI_EXPOSED_NOT || found != SPOKEI_EXPOSED_NOT)
			continue;
		found = each;
		name[0] = ' ';
		(void)spokei_log_escape_end(name + 1, NAME_SHOWN, service->name.data,
					    service->name.len);
	}
	if (!names)
		name[0] = '\0';
	return found;
}

void spokei_provider_warn(struct spoke_provider *provider)
{
	const struct spokei_listen_group *group = provider->listeners;
	char address[SPOKEI_PLACES_SHOWN];
	char name[NAME_SHOWN + 1];

	for (size_t i = 0; i < spokei_listen_group_own(group) && !provider->warned; i++) {
		enum spokei_exposed exposed = judge(provider, i, name);

		if (exposed == SPOKEI_EXPOSED_NOT)
			continue;
		provider->warned = true;
		spokei_listen_group_print(group, i, address, sizeof(address));
		spokei_event(provider->engine, SPOKE_OK,
			     "listen: all hosts that reach %s may call%s%s, allow.from, "
			     "allow.callers or token to change that",
			     address, name, spokei_exposed_why(exposed));
	}
}
