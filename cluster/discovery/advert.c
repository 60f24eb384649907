/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the URL under which a provider is published. */
#include "cluster/discovery/advert.h"
#include "core/base/env.h"

#include <spoke/url.h>

#include <stdio.h>
#include <string.h>

#define NUMBER 24u /* bytes of a number in digits, with the NUL */
#define KEYS 20u

struct numbers {
	char timestamp[NUMBER];
	char warmup[NUMBER];
	char weight[NUMBER];
	char host_id[NUMBER];
};

static void print_numbers(const struct spokei_advert *advert, struct numbers *numbers)
{
	(void)snprintf(numbers->timestamp, NUMBER, "%" PRIu64, advert->timestamp_ms);
	(void)snprintf(numbers->warmup, NUMBER, "%" PRIu64, advert->warmup_ms);
	(void)snprintf(numbers->weight, NUMBER, "%" PRIu32, advert->weight);
	*numbers->host_id = '\0';
	if (advert->host_id)
		(void)snprintf(numbers->host_id, NUMBER, SPOKEI_ADVERT_HOST_ID, advert->host_id);
}

/* Lists the parameters that have a value. Returns how many. */
static unsigned choose_keys(const struct spokei_advert *advert, const struct numbers *numbers,
			    struct spoke_url_parameter keys[KEYS])
{
	const struct spoke_url_parameter all[KEYS] = {
		{ "admin", advert->admin },
		{ "anyhost", "false" },
		{ "application", advert->application },
		{ "dubbo", "2.0.2" },
		{ "dynamic", "true" },
		{ "generic", "false" },
		{ "group", advert->group },
		{ "interface", advert->service },
		{ "methods", advert->methods },
		/* Consumers of Dubbo 3.x in Java encode heartbeats in the first one of the list,
		 * and fail if they do not have it. */
		{ "prefer.serialization", "hessian2,msgpack" },
		{ "serialization", "hessian2" },
		{ "side", "provider" },
		{ SPOKEI_ADVERT_HOST, numbers->host_id },
		{ SPOKEI_ADVERT_LOCAL, advert->host_id ? advert->local : "" },
		{ "spoke.serialization", "msgpack" },
		{ "timestamp", numbers->timestamp },
		{ "token", advert->token },
		{ "version", advert->version },
		{ "warmup", numbers->warmup },
		{ "weight", numbers->weight },
	};
	unsigned count = 0;

	for (unsigned i = 0; i < KEYS; i++)
		if (*all[i].value)
			keys[count++] = all[i];
	return count;
}

static int print(const struct spoke_env *env, const struct spoke_url *url,
		 struct spokei_advert_text *ret_text)
{
	ret_text->size = spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	ret_text->text = spokei_alloc(env, 1, ret_text->size);
	if (ret_text->text == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(url, SPOKE_URL_WHOLE, ret_text->text, ret_text->size);
	return SPOKE_OK;
}

int spokei_advert_print(const struct spoke_env *env, const struct spokei_advert *advert,
			struct spokei_advert_text *ret_text)
{
	struct numbers numbers;
	struct spoke_url_parameter keys[KEYS];
	struct spoke_url url = {
		.scheme = "dubbo",
		.path = "",
		.port = -1,
		.parameters = keys,
		.socket = advert->socket,
		.shm = advert->shm,
	};

	print_numbers(advert, &numbers);
	url.parameter_count = choose_keys(advert, &numbers, keys);
	if (url.socket == NULL) {
		url.host = advert->host;
		url.port = advert->port;
		url.path = advert->service;
	}
	return print(env, &url, ret_text);
}

int spokei_advert_print_consumer(const struct spoke_env *env, const struct spokei_advert *advert,
				 uint64_t id, struct spokei_advert_text *ret_text)
{
	char timestamp[NUMBER];
	char name[NUMBER];
	struct spoke_url_parameter keys[] = {
		{ "application", advert->application },
		{ "category", "consumers" },
		{ "check", "false" },
		{ "dubbo", "2.0.2" },
		{ "id", name },
		{ "interface", advert->service },
		{ "side", "consumer" },
		{ "timestamp", timestamp },
		{ "group", advert->group },
		{ "version", advert->version },
	};
	struct spoke_url url = {
		.scheme = "consumer",
		.host = "0.0.0.0",
		.port = -1,
		.path = advert->service,
		.parameters = keys,
		.parameter_count = sizeof(keys) / sizeof(keys[0]) - 2,
	};

	(void)snprintf(timestamp, sizeof(timestamp), "%" PRIu64, advert->timestamp_ms);
	(void)snprintf(name, sizeof(name), "%016" PRIx64, id);
	/* The last two are optional. */
	if (*advert->group)
		url.parameter_count++;
	else
		keys[url.parameter_count] = keys[url.parameter_count + 1];
	if (*advert->version)
		url.parameter_count++;
	return print(env, &url, ret_text);
}
