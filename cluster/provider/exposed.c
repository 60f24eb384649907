/* SPDX-License-Identifier: Apache-2.0 */
/* Reports once that every host may call a provider, and how to change that. */
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

/* Describes one address of the provider, without a service. */
static struct spokei_exposure describe(const struct spoke_provider *provider, size_t index)
{
	const struct spokei_listen_group *group = provider->listeners;
	unsigned marks = spokei_listen_group_marks(group, index);
	struct spokei_exposure of = {
		.local = spokei_places_is_local(provider->engine->env,
						spokei_listen_group_address(group, index)),
		.plain = !(marks & SPOKEI_PROVIDER_TLS),
		.asks = spokei_proof_asks(provider->proof->own),
		.of_owner = spokei_listen_group_rules(group),
		.of_address = spokei_listen_group_rules_at(group, index),
		.of_provider = provider->callers,
	};

	if (!of.plain)
		of.verify = spokei_tls_verifies(provider->tls);
	return of;
}

static enum spokei_exposed judge_service(const struct spoke_provider *provider,
					 const struct spokei_service *service,
					 struct spokei_exposure of)
{
	of.asks = spokei_proof_asks(spokei_proof_of(provider->proof, service));
	of.of_service = service->callers;
	return spokei_exposure_judge(&of);
}

/* Judges the services from `first` on; those before it are guarded. Writes " NAME" of the first one
 * that is open to every host at this address, or "" if all are. Without services the provider
 * itself counts. */
static enum spokei_exposed judge(const struct spoke_provider *provider, size_t index,
				 struct spoke_list *first, char name[NAME_SHOWN + 1])
{
	const struct spoke_list *all = &provider->services->all;
	const struct spokei_exposure of = describe(provider, index);
	enum spokei_exposed whole = spokei_exposure_judge(&of);
	enum spokei_exposed found = SPOKEI_EXPOSED_NOT;
	bool names = whole == SPOKEI_EXPOSED_NOT || first != all->next;

	name[0] = '\0';
	if (all->next == all)
		return whole;
	for (struct spoke_list *node = first; node != all; node = node->next) {
		const struct spokei_service *service =
			spoke_container_of(node, struct spokei_service, node);
		enum spokei_exposed each = judge_service(provider, service, of);

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

static void warn_from(struct spoke_provider *provider, struct spoke_list *first)
{
	const struct spokei_listen_group *group = provider->listeners;
	char address[SPOKEI_PLACES_SHOWN];
	char name[NAME_SHOWN + 1];

	for (size_t i = 0; i < spokei_listen_group_own(group) && !provider->warned; i++) {
		enum spokei_exposed exposed = judge(provider, i, first, name);

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

void spokei_provider_warn(struct spoke_provider *provider)
{
	warn_from(provider, provider->services->all.next);
}

void spokei_provider_warn_of_last(struct spoke_provider *provider)
{
	warn_from(provider, provider->services->all.prev);
}
