/* SPDX-License-Identifier: Apache-2.0 */
/* Parses lists of provider URLs. */
#include "cluster/discovery/lineup.h"

#define ROOM_FIRST 16u

void spokei_lineup_init(struct spokei_lineup *lineup, const struct spoke_env *env)
{
	*lineup = (struct spokei_lineup){ .env = env };
}

void spokei_lineup_fini(struct spokei_lineup *lineup)
{
	while (lineup->count > 0)
		spoke_url_fini(&lineup->urls[--lineup->count]);
	spokei_free(lineup->env, lineup->urls, lineup->room, sizeof(*lineup->urls));
	lineup->urls = NULL;
	lineup->room = 0;
}

static bool make_room(struct spokei_lineup *lineup)
{
	const struct spoke_env *env = lineup->env;
	size_t room = lineup->room ? 2 * lineup->room : ROOM_FIRST;
	void *grown;

	if (lineup->count < lineup->room)
		return true;
	grown = env->resize(env->ctx, lineup->urls, lineup->room * sizeof(*lineup->urls),
			    room * sizeof(*lineup->urls));
	if (grown == NULL)
		return false;
	lineup->urls = grown;
	lineup->room = room;
	return true;
}

int spokei_lineup_add(struct spokei_lineup *lineup, const char *text, size_t len)
{
	struct spoke_url_error why;
	struct spoke_url url;
	int error;

	if (lineup->count == SPOKEI_LINEUP_MAX) {
		lineup->over++;
		return SPOKE_OK;
	}
	error = spoke_url_parse(lineup->env, text, len, &url, &why);
	if (error == SPOKE_ENOMEM)
		return error;
	if (error) {
		if (lineup->bad++ == 0)
			lineup->why = why;
		return SPOKE_OK;
	}
	/* Dubbo's marker for an empty list. */
	if (strcmp(url.scheme, "empty") == 0) {
		spoke_url_fini(&url);
		return SPOKE_OK;
	}
	if (!make_room(lineup)) {
		spoke_url_fini(&url);
		return SPOKE_ENOMEM;
	}
	lineup->urls[lineup->count++] = url;
	return SPOKE_OK;
}
