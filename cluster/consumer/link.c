/* SPDX-License-Identifier: Apache-2.0 */
/* The link of a consumer, and the TLS of its connections. */
#include "transport/conn/link.h"
#include "cluster/config/tls.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/stream/tls/tls.h"

#include <spoke/consumer.h>

#include <string.h>

int spokei_consumer_link(struct spoke_consumer *consumer,
			 const struct spoke_consumer_options *options)
{
	const struct spokei_consumer_settings *settings = consumer->settings;
	const struct spokei_tls_sources sources = {
		.options = options->tls,
		.of_url = spoke_url_get(&settings->url, "tls"),
		.config = options->config,
		.values = &settings->in_force,
		.section = SPOKEI_IN_CONSUMER,
		.service = { settings->service, strlen(settings->service) },
	};
	enum spokei_tls_mode mode;
	int error = spokei_tls_of(consumer->engine, &sources, &mode, &consumer->tls);

	if (error)
		return error;
	error = spokei_link_init(consumer->link, consumer->engine, &settings->limits);
	if (error) {
		spokei_tls_free(consumer->tls);
		return error;
	}
	consumer->link->connects = true;
	if (consumer->tls) {
		consumer->link->stream = spokei_tls_kind(consumer->tls);
		spokei_tls_watch(consumer->tls, spokei_conn_finish_stream);
	}
	return SPOKE_OK;
}

void spokei_consumer_unlink(struct spoke_consumer *consumer)
{
	spokei_link_fini(consumer->link);
	spokei_tls_free(consumer->tls);
}
