/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a provider or a consumer: options before the settings file. */
#include "cluster/config/tls.h"

#include "core/engine/engine.h"
#include "transport/stream/tls/tls.h"

#include <string.h>

static int find_mode(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
		     enum spokei_tls_mode *ret)
{
	*ret = (enum spokei_tls_mode)sources->values->of[SPOKEI_KEY_TLS];
	if (sources->options)
		*ret = sources->options->optional ? SPOKEI_TLS_OPTIONAL : SPOKEI_TLS_ON;
	else if (sources->of_url && !spokei_places_tls_mode(sources->of_url, ret)) {
		spokei_event(engine, SPOKE_EINVAL, "tls: use on or off");
		return SPOKE_EINVAL;
	}
	if (sources->section == SPOKEI_IN_PROVIDER || *ret != SPOKEI_TLS_OPTIONAL)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "tls: a consumer never falls back to plain connections; use on or off");
	return SPOKE_EINVAL;
}

static struct spokei_tls_options options_of(const struct spokei_tls_sources *sources)
{
	const unsigned named = sources->values->of[SPOKEI_KEY_TLS_MIN] ? 12 : 13;
	struct spokei_tls_options options = {
		.accepts = sources->section == SPOKEI_IN_PROVIDER,
		.oldest = sources->options && sources->options->oldest ? sources->options->oldest
								       : named,
	};

	spokei_keys_fill(sources->values, 1u << sources->section, SPOKEI_AT_FILES, &options);
	spokei_keys_fill(sources->values, 1u << sources->section, SPOKEI_AT_HANDSHAKES,
			 &options.limits);
	return options;
}

/* Files and rules of TLS without TLS are a mistake mostly, and a link would be plain without a
 * word.
 */
static void tell_of_unused(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
			   const struct spokei_tls_options *options)
{
	const char *key = options->ca      ? "tls.ca"
			  : options->cert  ? "tls.cert"
			  : options->crl   ? "tls.crl"
			  : options->peers ? "tls.peers"
					   : NULL;

	if (key == NULL && options->verify != SPOKE_TLS_VERIFY_DEFAULT)
		key = "tls.verify";
	if (key && sources->of_url == NULL)
		spokei_event(engine, SPOKE_EINVAL, "tls: %s is set, but TLS is off; set tls = on",
			     key);
}

int spokei_tls_of(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
		  enum spokei_tls_mode *ret_mode, struct spokei_tls **ret_tls)
{
	struct spokei_tls_options options;
	char why[SPOKEI_TLS_WHY];
	int error = find_mode(engine, sources, ret_mode);

	*ret_tls = NULL;
	if (error)
		return error;
	options = options_of(sources);
	if (*ret_mode == SPOKEI_TLS_OFF && (!options.accepts || options.cert == NULL)) {
		tell_of_unused(engine, sources, &options);
		return SPOKE_OK;
	}
	error = spokei_tls_new(engine, &options, why, ret_tls);
	if (error)
		spokei_event(engine, error, "%s", why);
	return error;
}
