/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/discovery/advert.h"

#include <spoke/url.h>

#include <inttypes.h>
#include <stdio.h>

#define NUMBER 24u /* bytes of one in digits, with the NUL */
#define KEYS 16u
#define ANY_METHOD "*"

/* The texts of one URL. */
struct texts {
	char names[SPOKEI_SERVICE_KEY_MAX + 1]; /* service, version and group, with zeros between */
	const char *service;
	const char *version;
	const char *group;
	char timestamp[NUMBER];
	char warmup[NUMBER];
	char weight[NUMBER];
	char *methods; /* with commas; NULL: any */
	size_t methods_size;
};

/* What everybody serves is not told; who serves any method has no list of them. */
static bool is_told(const struct spokei_route *route)
{
	return route->method.len > 0 && *(const char *)route->method.data != '$';
}

static size_t put_methods(const struct spokei_service *service, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < service->count; i++) {
		const struct spoke_span method = service->routes[i].method;

		if (!is_told(&service->routes[i]))
			continue;
		if (out) {
			memcpy(out + len, method.data, method.len);
			out[len + method.len] = ',';
		}
		len += method.len + 1;
	}
	return len;
}

static int print_methods(const struct spoke_env *env, const struct spokei_service *service,
			 struct texts *texts)
{
	size_t len = put_methods(service, NULL);

	/* A list that leaves no room for the rest of the URL says nothing either. */
	if (service->other || len == 0 || len > SPOKE_URL_MAX / 4)
		return SPOKE_OK;
	texts->methods = spokei_alloc(env, 1, len);
	if (texts->methods == NULL)
		return SPOKE_ENOMEM;
	texts->methods_size = len;
	(void)put_methods(service, texts->methods);
	texts->methods[len - 1] = '\0';
	return SPOKE_OK;
}

static void print_texts(const struct spokei_advert *advert, struct texts *texts)
{
	const struct spoke_span key = advert->service->key;

	memcpy(texts->names, key.data, key.len);
	texts->names[key.len] = '\0';
	texts->service = texts->names;
	texts->version = texts->service + strlen(texts->service) + 1;
	texts->group = texts->version + strlen(texts->version) + 1;
	(void)snprintf(texts->timestamp, NUMBER, "%" PRIu64, advert->timestamp_ms);
	(void)snprintf(texts->warmup, NUMBER, "%" PRIu64, advert->warmup_ms);
	(void)snprintf(texts->weight, NUMBER, "%" PRIu32, advert->weight);
}

/* Those that are not given are left out. */
static unsigned choose_keys(const struct spokei_advert *advert, const struct texts *texts,
			    struct spoke_url_parameter keys[KEYS])
{
	const struct spoke_url_parameter all[KEYS] = {
		{ "admin", advert->admin },
		{ "anyhost", "false" },
		{ "application", advert->application },
		{ "dubbo", "2.0.2" },
		{ "dynamic", "true" },
		{ "generic", "false" },
		{ "group", texts->group },
		{ "interface", texts->service },
		{ "methods", texts->methods ? texts->methods : ANY_METHOD },
		{ "prefer.serialization", "msgpack" },
		{ "serialization", "msgpack" },
		{ "side", "provider" },
		{ "timestamp", texts->timestamp },
		{ "version", texts->version },
		{ "warmup", texts->warmup },
		{ "weight", texts->weight },
	};
	unsigned count = 0;

	for (unsigned i = 0; i < KEYS; i++)
		if (*all[i].value)
			keys[count++] = all[i];
	return count;
}

int spokei_advert_print(const struct spoke_env *env, const struct spokei_advert *advert,
			struct spokei_advert_text *ret_text)
{
	struct texts texts = { .methods = NULL };
	struct spoke_url_parameter keys[KEYS];
	struct spoke_url url = {
		.scheme = "dubbo",
		.path = "",
		.port = -1,
		.parameters = keys,
		.socket = advert->socket,
	};
	int error = print_methods(env, advert->service, &texts);

	if (error)
		return error;
	print_texts(advert, &texts);
	url.parameter_count = choose_keys(advert, &texts, keys);
	if (url.socket == NULL) {
		url.host = advert->host;
		url.port = advert->port;
		url.path = texts.service;
	}
	ret_text->size = spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	ret_text->text = spokei_alloc(env, 1, ret_text->size);
	if (ret_text->text)
		(void)spoke_url_print(&url, SPOKE_URL_WHOLE, ret_text->text, ret_text->size);
	spokei_free(env, texts.methods, 1, texts.methods_size);
	return ret_text->text ? SPOKE_OK : SPOKE_ENOMEM;
}
