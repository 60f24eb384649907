/* SPDX-License-Identifier: Apache-2.0 */
/* Parses lists of provider URLs. */
#include "cluster/discovery/url_list.h"

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
