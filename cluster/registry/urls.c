/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and parses lists of URLs, as registries report them. */
#include "cluster/registry/urls.h"

#include <string.h>

int spokei_urls_put(struct spokei_buffer *list, const struct spoke_url *url)
{
	size_t size = spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	unsigned char *room = spokei_buffer_reserve(list, size);

	if (room == NULL)
		return size > list->max - spokei_buffer_len(list) ? SPOKE_ETOOLARGE : SPOKE_ENOMEM;
	(void)spoke_url_print(url, SPOKE_URL_WHOLE, (char *)room, size);
	spokei_buffer_commit(list, size);
	return SPOKE_OK;
}

int spokei_urls_put_service(struct spokei_buffer *list, const char *service)
{
	const struct spoke_url url = {
		.scheme = "consumer",
		.host = "any",
		.path = service,
		.port = -1,
	};

	return spokei_urls_put(list, &url);
}

bool spokei_urls_are_services(const char *service)
{
	return strcmp(service, "*") == 0;
}

static bool is_same_text(const char *one, const char *other)
{
	return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool is_same_parameter(const struct spoke_url *one, const struct spoke_url *other,
			      const char *key)
{
	return strcmp(spokei_urls_value(one, key), spokei_urls_value(other, key)) == 0;
}

bool spokei_urls_same(const struct spoke_url *one, const struct spoke_url *other)
{
	return one->port == other->port && one->shm == other->shm &&
	       is_same_text(one->host, other->host) && is_same_text(one->socket, other->socket) &&
	       is_same_text(one->scheme, other->scheme) && is_same_parameter(one, other, "group") &&
	       is_same_parameter(one, other, "version");
}

/* --- parsed */

#define ROOM_FIRST 16u

void spokei_url_list_init(struct spokei_url_list *list, const struct spoke_env *env)
{
	*list = (struct spokei_url_list){ .env = env };
}

void spokei_url_list_fini(struct spokei_url_list *list)
{
	while (list->count > 0)
		spoke_url_fini(&list->urls[--list->count]);
	spokei_free(list->env, list->urls, list->room, sizeof(*list->urls));
	list->urls = NULL;
	list->room = 0;
}

static bool make_room(struct spokei_url_list *list)
{
	const struct spoke_env *env = list->env;
	size_t room = list->room ? 2 * list->room : ROOM_FIRST;
	void *grown;

	if (list->count < list->room)
		return true;
	grown = env->resize(env->ctx, list->urls, list->room * sizeof(*list->urls),
			    room * sizeof(*list->urls));
	if (grown == NULL)
		return false;
	list->urls = grown;
	list->room = room;
	return true;
}

int spokei_url_list_add(struct spokei_url_list *list, const char *text, size_t len)
{
	struct spoke_url_error why;
	struct spoke_url url;
	int error;

	if (list->count == SPOKEI_URL_LIST_MAX) {
		list->over++;
		return SPOKE_OK;
	}
	error = spoke_url_parse(list->env, text, len, &url, &why);
	if (error == SPOKE_ENOMEM)
		return error;
	if (error) {
		if (list->bad++ == 0)
			list->why = why;
		return SPOKE_OK;
	}
	/* Dubbo's marker for an empty list. */
	if (strcmp(url.scheme, "empty") == 0) {
		spoke_url_fini(&url);
		return SPOKE_OK;
	}
	if (!make_room(list)) {
		spoke_url_fini(&url);
		return SPOKE_ENOMEM;
	}
	list->urls[list->count++] = url;
	return SPOKE_OK;
}
