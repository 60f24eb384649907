/* SPDX-License-Identifier: Apache-2.0 */
/* The link of a consumer, and the TLS of its connections. */
#include "transport/conn/link.h"
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
		.values = &settings->keys.in_force,
		.section = SPOKEI_IN_CONSUMER,
	};
	enum spokei_tls_mode mode;
	int error = spokei_settings_tls(consumer->engine, &sources, &mode, &consumer->tls);

	if (error)
		return error;
	error = spokei_link_init(consumer->link, consumer->engine, &settings->limits);
	if (error) {
		spokei_tls_free(consumer->tls);
		return error;
	}
	consumer->settings->keys.file.tls = consumer->tls;
	consumer->link->connects = true;
	consumer->peers_of_file = options->tls == NULL || options->tls->peers == NULL;
	if (consumer->tls) {
		consumer->link->stream = spokei_tls_kind(consumer->tls);
		spokei_tls_watch(consumer->tls, spokei_conn_finish_stream);
	}
	return SPOKE_OK;
}

bool spokei_consumer_expects(const struct spoke_consumer *consumer, const char *service)
{
	const struct spokei_consumer_settings *settings = consumer->settings;
	const struct spoke_span other = { service, strlen(service) };
	const char *asked = spokei_config_text(settings->keys.file.config, SPOKEI_IN_SERVICE, other,
					       SPOKEI_KEY_TLS_PEERS);
	const char *expected = settings->keys.in_force.text[SPOKEI_KEY_TLS_PEERS];

	if (consumer->tls == NULL || !consumer->peers_of_file || asked == NULL)
		return true;
	return expected && strcmp(asked, expected) == 0;
}

void spokei_consumer_unlink(struct spoke_consumer *consumer)
{
	spokei_link_fini(consumer->link);
	spokei_tls_free(consumer->tls);
}
