/* SPDX-License-Identifier: Apache-2.0 */
/* Reports changes of a provider's connections, to its user and as events. */
#include "cluster/provider/parts.h"

#include "core/engine/engine.h"
#include "transport/conn/conn.h"

#define ADDRESS_TEXT 160u
#define NEWS 10u /* per second */

struct spokei_bucket spokei_provider_news(uint64_t now_ns)
{
	return spokei_bucket_make(NEWS, NEWS, now_ns);
}

/* A connection that closes with an error of its peer reports that itself. */
static bool is_reported_here(const struct spoke_link_event *event)
{
	return event->change != SPOKE_LINK_CLOSED || event->error == SPOKE_ELOST ||
	       event->error == SPOKE_ECLOSED;
}

static void note_end(struct spoke_engine *engine, const char *name, const struct spokei_conn *conn,
		     int error)
{
	const char *how = conn->readonly ? "ended after a drain notice" : "closed";

	if (error == SPOKE_ELOST)
		spokei_event_of_peer(engine, "%s closed its connection", name);
	else
		spokei_event_of_peer(engine, "connection of %s %s", name, how);
}

static void note(struct spoke_engine *engine, const char *name, const struct spokei_conn *conn,
		 const struct spoke_link_event *event)
{
	switch (event->change) {
	case SPOKE_LINK_CONNECTED:
		spokei_event_of_peer(engine, "%s connected", name);
		return;
	case SPOKE_LINK_SUSPECT:
		spokei_event_of(engine, event->user, SPOKE_ESILENT,
				"%s: heartbeat unanswered, %u of %u", name, event->missed,
				SPOKEI_IDLE_MISSES);
		return;
	case SPOKE_LINK_RECOVERED:
		spokei_event_of(engine, event->user, SPOKE_OK, "%s answers again", name);
		return;
	case SPOKE_LINK_READONLY:
		spokei_event_of_peer(engine, "%s sent a drain notice", name);
		return;
	case SPOKE_LINK_CLOSED:
		note_end(engine, name, conn, event->error);
		return;
	case SPOKE_LINK_PROBATION:
	case SPOKE_LINK_RECONNECTING:
		return; /* only consumers have these */
	}
}

void spokei_provider_report(struct spoke_provider *provider, const struct spokei_conn *conn,
			    const struct spoke_link_event *event)
{
	struct spoke_engine *engine = provider->engine;
	struct spoke_link_event news = *event;
	char name[ADDRESS_TEXT];

	engine->env->net->print(engine->env->ctx, &conn->peer, name, sizeof(name));
	if (is_reported_here(event) && spokei_bucket_take(&provider->news, 1, engine->begin_ns))
		note(engine, name, conn, event);
	if (provider->changed == NULL || provider->freed)
		return;
	news.name = name;
	news.peer.handle = conn->handle;
	provider->changed(provider->changed_arg, &news);
}
