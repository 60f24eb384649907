/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS of a provider, and the peers that may learn about its services. */
#include "cluster/provider/parts.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/callers.h"
#include "transport/conn/conn.h"
#include "transport/stream/tls/tls.h"

#include <spoke/filter.h>
#include <spoke/provider.h>

int spokei_provider_secure(struct spoke_provider *provider,
			   const struct spoke_provider_options *options)
{
	const struct spokei_tls_sources sources = {
		.options = options->tls,
		.values = &provider->settings->keys.in_force,
		.section = SPOKEI_IN_PROVIDER,
	};
	int error = spokei_settings_tls(provider->engine, &sources, &provider->tls_mode,
					&provider->tls);

	if (provider->tls)
		spokei_tls_watch(provider->tls, spokei_conn_finish_stream);
	provider->settings->keys.file.tls = provider->tls;
	provider->settings->keys.file.credentials = &provider->proof->set;
	return error;
}

bool spokei_provider_lets_know(void *arg, struct spokei_conn *conn,
			       const struct spokei_message *message, char *text,
			       struct spoke_filter_verdict *ret_verdict)
{
	struct spoke_provider *provider = arg;

	return spokei_proof_lets_know(provider->proof, conn, message, text, ret_verdict) &&
	       spokei_callers_lets_know(&provider->callers, conn, message, text, ret_verdict);
}
