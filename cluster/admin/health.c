/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether an engine is ready, for the probes of load balancers and supervisors. */
#include "cluster/admin/health.h"

#include "cluster/admin/members.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/info.h"
#include "cluster/provider/provider.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>

/* Returns whether a call could be sent now. An endpoint that sleeps is connected by the next call,
 * so it counts like a ready one. */
static bool has_endpoint(const struct spoke_consumer *consumer)
{
	const struct spokei_directory *directory = spokei_consumer_look(consumer).directory;
	const struct spokei_candidates *candidates = &directory->candidates;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		if (candidates->endpoints[i]->asleep)
			return true;
	}
	return spokei_directory_ready(directory) > 0;
}

static bool check_providers(const struct spoke_engine *engine, char why[SPOKEI_HEALTH_WHY])
{
	const struct spoke_provider *provider = NULL;

	for (unsigned at = 1; (provider = spokei_members_provider(engine, provider)); at++) {
		const struct spokei_provider_view view = spokei_provider_look(provider);

		if (view.draining || view.addresses == 0) {
			(void)snprintf(why, SPOKEI_HEALTH_WHY, "provider %u %s", at,
				       view.draining ? "drains" : "does not listen");
			return false;
		}
	}
	return true;
}

static bool check_consumers(const struct spoke_engine *engine, char why[SPOKEI_HEALTH_WHY])
{
	const struct spoke_consumer *consumer = NULL;

	for (unsigned at = 1; (consumer = spokei_members_consumer(engine, consumer)); at++) {
		const char *service = spokei_consumer_look(consumer).service;
		char shown[SPOKEI_HEALTH_WHY / 2];

		if (has_endpoint(consumer))
			continue;
		(void)spokei_log_escape_end(shown, sizeof(shown), service, strlen(service));
		(void)snprintf(why, SPOKEI_HEALTH_WHY, "consumer %u (%s) has no ready endpoint", at,
			       shown);
		return false;
	}
	return true;
}

bool spokei_health_ready(const struct spoke_engine *engine, bool with_consumers,
			 char why[SPOKEI_HEALTH_WHY])
{
	if (spokei_engine_ending(engine)) {
		(void)snprintf(why, SPOKEI_HEALTH_WHY, "the engine drains");
		return false;
	}
	return check_providers(engine, why) && (!with_consumers || check_consumers(engine, why));
}
