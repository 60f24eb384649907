/* SPDX-License-Identifier: Apache-2.0 */
/* The present state of a consumer, for its user and for the page. */
#include "cluster/consumer/consumer.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>
#include <spoke/tls.h>

size_t spoke_consumer_ready(const struct spoke_consumer *consumer)
{
	return spokei_directory_ready(consumer->directory);
}

size_t spoke_consumer_endpoints(const struct spoke_consumer *consumer,
				struct spoke_endpoint_info *infos, size_t max)
{
	spokei_engine_refresh(consumer->engine);
	return spokei_directory_infos(consumer->directory, infos, max);
}

bool spoke_consumer_tls(const struct spoke_consumer *consumer, size_t index,
			struct spoke_tls_info *ret_info)
{
	const struct spokei_endpoint *endpoint = spokei_directory_next(consumer->directory, NULL);

	while (endpoint && index-- > 0)
		endpoint = spokei_directory_next(consumer->directory, endpoint);
	return endpoint && spokei_endpoint_tls(endpoint, ret_info);
}

struct spokei_consumer_view spokei_consumer_look(const struct spoke_consumer *consumer)
{
	const struct spokei_consumer_settings *settings = consumer->settings;

	return (struct spokei_consumer_view){
		.service = settings->service,
		.directory = consumer->directory,
		.caller = consumer->caller,
		.settings = &settings->calls,
		.all = settings,
		.tls = consumer->tls,
		.heartbeat_ns = settings->limits.heartbeat_ns,
	};
}
