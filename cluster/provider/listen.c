/* SPDX-License-Identifier: Apache-2.0 */
/* Where a provider listens. */
#include "cluster/provider/provider.h"

#include <stdio.h>

int spokei_provider_open(struct spoke_provider *provider, const struct spokei_listen_place *place)
{
	size_t count = spokei_provider_places(provider);
	bool by_system = place->shared && !place->handed;

	return (by_system ? spokei_listener_new_shared
			  : spokei_listener_new)(provider->engine, &place->address,
						 &provider->quota, spokei_provider_accept, provider,
						 &provider->listeners[count]);
}

int spoke_provider_listen(struct spoke_provider *provider, const char *url)
{
	struct spokei_listen_place place;
	int error;

	if (spokei_engine_forked(provider->engine))
		return SPOKE_EFORKED;
	if (provider->ended || provider->draining)
		return SPOKE_ECLOSED;
	if (provider->handoffs.joined)
		return SPOKE_ESTATE;
	if (provider->listener_count == SPOKEI_LISTENERS_MAX)
		return SPOKE_ELIMIT;
	error = spokei_places_listen(provider->engine, url, &place);
	if (error == 0)
		error = spokei_registration_check(&provider->registration, &place.address);
	if (error == 0 && place.shared)
		error = spokei_handoffs_prepare(provider);
	if (error == 0)
		error = spokei_provider_open(provider, &place);
	if (error)
		return error;
	provider->listener_count++;
	if (place.shared)
		spokei_handoffs_share(provider, &place);
	spokei_registration_changed(&provider->registration);
	return SPOKE_OK;
}

int spoke_provider_listen_configured(struct spoke_provider *provider)
{
	const char *list = spokei_config_text(provider->file.config, SPOKEI_IN_PROVIDER,
					      spokei_span(NULL, 0), SPOKEI_KEY_LISTEN);
	const char *at = list;
	struct spoke_span item;
	int count = 0;

	while (spokei_option_item(&at, &item)) {
		char url[SPOKE_URL_HOST_MAX + 128];
		int error = SPOKE_ETOOLARGE;

		(void)snprintf(url, sizeof(url), "%.*s", (int)item.len, (const char *)item.data);
		if (strlen(url) == item.len)
			error = spoke_provider_listen(provider, url);
		else
			spokei_event(provider->engine, error, "listen: a URL is too long");
		if (error)
			return error;
		count++;
	}
	return count;
}

size_t spoke_provider_address(const struct spoke_provider *provider, size_t index, char *text,
			      size_t size)
{
	const struct spoke_env *env = provider->engine->env;

	if (index >= spokei_provider_places(provider) || size == 0)
		return 0;
	env->net->print(env->ctx, spokei_listener_address(provider->listeners[index]), text, size);
	return strlen(text);
}
