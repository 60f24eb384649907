/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/roster.h"

#define ROOM_FIRST 16u

void spokei_roster_init(struct spokei_roster *roster, const struct spoke_env *env)
{
	*roster = (struct spokei_roster){ .env = env };
}

void spokei_roster_fini(struct spokei_roster *roster)
{
	while (roster->count > 0)
		spoke_url_fini(&roster->urls[--roster->count]);
	spokei_free(roster->env, roster->urls, roster->room, sizeof(*roster->urls));
	roster->urls = NULL;
	roster->room = 0;
}

static bool make_room(struct spokei_roster *roster)
{
	const struct spoke_env *env = roster->env;
	size_t room = roster->room ? 2 * roster->room : ROOM_FIRST;
	void *grown;

	if (roster->count < roster->room)
		return true;
	grown = env->resize(env->ctx, roster->urls, roster->room * sizeof(*roster->urls),
			    room * sizeof(*roster->urls));
	if (grown == NULL)
		return false;
	roster->urls = grown;
	roster->room = room;
	return true;
}

int spokei_roster_add(struct spokei_roster *roster, const char *text, size_t len)
{
	struct spoke_url_error why;
	struct spoke_url url;
	int error;

	if (roster->count == SPOKEI_ROSTER_MAX) {
		roster->over++;
		return SPOKE_OK;
	}
	error = spoke_url_parse(roster->env, text, len, &url, &why);
	if (error == SPOKE_ENOMEM)
		return error;
	if (error) {
		if (roster->bad++ == 0)
			roster->why = why;
		return SPOKE_OK;
	}
	if (!make_room(roster)) {
		spoke_url_fini(&url);
		return SPOKE_ENOMEM;
	}
	roster->urls[roster->count++] = url;
	return SPOKE_OK;
}
