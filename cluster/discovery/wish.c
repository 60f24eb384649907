/* SPDX-License-Identifier: Apache-2.0 */
/* Makes wishes, with a key to compare them. */
#include "cluster/discovery/wish.h"

#include "core/text/percent.h"

#include <stdio.h>

static const char *value_of(const struct spoke_url *url, const char *name)
{
	const char *value = spoke_url_get(url, name);

	return value ? value : "";
}

static void put_part(struct spokei_text *text, const char *part)
{
	spokei_percent_put(text, part, strlen(part), "-._/:");
	spokei_text_put(text, " ");
}

/* Separates the parts by spaces, which no part contains. */
static size_t print_key(const char *service, const struct spoke_url *url, char *out, size_t size)
{
	struct spokei_text text = { .out = out, .size = size };
	char port[16];

	(void)snprintf(port, sizeof(port), "%d", url->port);
	put_part(&text, service);
	put_part(&text, url->scheme);
	put_part(&text, url->socket ? url->socket : url->host);
	put_part(&text, url->shm ? "shm" : url->socket ? "unix" : port);
	put_part(&text, value_of(url, "group"));
	put_part(&text, value_of(url, "version"));
	return spokei_text_end(&text);
}

static int make(const struct spoke_env *env, const char *service, const char *text,
		const struct spoke_url *url, struct spokei_wish **ret_wish)
{
	size_t service_size = strlen(service) + 1;
	size_t url_size = strlen(text) + 1;
	size_t key_size = url ? print_key(service, url, NULL, 0) + 1 : service_size + url_size;
	struct spokei_wish *wish;
	size_t size = sizeof(*wish) + service_size + url_size + key_size;

	wish = spokei_alloc(env, 1, size);
	if (wish == NULL)
		return SPOKE_ENOMEM;
	wish->size = size;
	wish->subscribes = url == NULL;
	memcpy(wish->texts, service, service_size);
	memcpy(wish->texts + service_size, text, url_size);
	wish->service = wish->texts;
	wish->url = wish->texts + service_size;
	wish->key = wish->url + url_size;
	if (url)
		(void)print_key(service, url, wish->texts + service_size + url_size, key_size);
	else
		(void)snprintf(wish->texts + service_size + url_size, key_size, "%s %s", service,
			       text);
	*ret_wish = wish;
	return SPOKE_OK;
}

int spokei_wish_new(const struct spoke_env *env, const char *service, const char *url,
		    const char *category, struct spokei_wish **ret_wish)
{
	struct spoke_url parsed;
	int error;

	if (url == NULL)
		return make(env, service, category, NULL, ret_wish);
	error = spoke_url_parse(env, url, strlen(url), &parsed, NULL);
	if (error)
		return error;
	error = make(env, service, url, &parsed, ret_wish);
	spoke_url_fini(&parsed);
	return error;
}

void spokei_wish_free(const struct spoke_env *env, struct spokei_wish *wish)
{
	spokei_free(env, wish, 1, wish->size);
}
