/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the authorizer: clients are admitted as connections, refused, or come again. */
#include "cluster/comet/comet.h"
#include "transport/http/response.h"
#include "transport/http/websocket.h"

#include <stdio.h>

#define EVENTS_HEAD                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: " SPOKEI_SSE_TYPE "\r\nCache-Control: no-store\r\n"      \
	"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
#define NEVER_AGAIN "HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n"

/* --- asks */

void spokei_comet_drop_ask(struct spoke_comet *comet, struct spokei_comet_ask *ask)
{
	struct spokei_comet_door *door = spokei_http_user(ask->http);

	door->ask = NULL;
	spokei_list_remove(&ask->node);
	spokei_comet_give(comet, ask->body, ask->body_len);
	comet->figures[SPOKE_COMET_FIGURE_ASKING]--;
	spokei_slab_give(&comet->ask_slab, ask->handle);
}

/* Ends an ask, and writes a copy without the body. */
static void end_ask(struct spokei_comet_ask *ask, struct spokei_comet_ask *ret)
{
	*ret = *ask;
	ret->body = NULL;
	spokei_comet_drop_ask(spokei_comet_of(ask->http), ask);
}

static struct spokei_comet_ask *find_ask(struct spoke_comet_entry entry)
{
	struct spokei_comet_ask *ask;

	if (entry.comet == NULL || spokei_engine_check(entry.comet->engine) || entry.comet->closed)
		return NULL;
	ask = spokei_slab_get(&entry.comet->ask_slab, entry.handle);
	return ask && ask->user_len == 0 ? ask : NULL;
}

/* --- admitted */

/* The oldest connection of a user is the last of its list. There may be several too many, since the
 * limit was changed. */
static void close_extra(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	while (user->count > comet->with.connections_per_user_max) {
		struct spokei_comet_conn *oldest = user->at.here.first;

		while (oldest->next)
			oldest = oldest->next;
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_CLOSED_EXTRA);
		spokei_comet_end_with(oldest, SPOKEI_COMET_EXTRA,
				      "too many connections of this user");
	}
}

/* The head and the event "hello" are one write. The browser learns the pause before it reconnects
 * now, because a gateway that crashes cannot tell it. If "lost" follows, the browser keeps its old
 * id until then: a connection that is cut in between would hide the loss. */
static void greet(struct spokei_comet_conn *conn, const char *key)
{
	const struct spoke_comet *comet = conn->user->comet;
	uint32_t retry_ms = spokei_comet_retry(comet);
	char bytes[SPOKEI_COMET_HEAD + SPOKEI_COMET_CORS + SPOKEI_COMET_SAY];
	char cors[SPOKEI_COMET_CORS];
	char number[SPOKE_COMET_ID];
	const char *id = conn->lost ? NULL : number;
	char data[32];
	size_t len;

	(void)spokei_comet_print_id(comet, conn->cursor, number);
	(void)snprintf(data, sizeof(data), "{\"retry\":%u}", retry_ms);
	if (conn->kind == SPOKE_COMET_EVENTS) {
		len = (size_t)snprintf(bytes, sizeof(bytes), EVENTS_HEAD "%s\r\n",
				       spokei_comet_cors(comet, conn->origin, cors));
		len += spokei_comet_say(SPOKEI_COMET_AS_EVENT, "hello", id, data, retry_ms,
					bytes + len);
	} else {
		len = spokei_comet_print_upgrade(key, bytes);
		len += spokei_comet_say(SPOKEI_COMET_AS_FRAME, "hello", id, data, 0, bytes + len);
	}
	spokei_comet_write(conn, bytes, len);
}

/* Counts a client behind a proxy under its own address. Returns whether there is room. */
static bool move_seat(struct spoke_comet *comet, const struct spokei_comet_ask *ask)
{
	const struct spoke_env *env = comet->engine->env;
	struct spokei_comet_door *door = spokei_http_user(ask->http);
	struct spoke_address client;

	if (ask->client[0] == '\0' || env->net->parse(env->ctx, ask->client, &client))
		return true;
	return spokei_quota_move(&comet->quota, door->quota_peer, &client, &door->quota_peer) ==
	       SPOKE_OK;
}

static void open_ask(struct spoke_comet *comet, const struct spokei_comet_ask *ask,
		     struct spoke_span id)
{
	struct spokei_comet_user *user;
	struct spokei_comet_conn *conn;

	if (comet->draining || !move_seat(comet, ask) ||
	    spokei_comet_find_or_make(comet, id, &user)) {
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
		spokei_comet_come_again(ask->http, ask);
		return;
	}
	conn = spokei_comet_detach(ask->http, (enum spoke_comet_kind)ask->kind, user);
	if (conn == NULL)
		return;
	conn->lost = ask->lost;
	if (ask->resumes)
		conn->cursor = ask->cursor;
	if (ask->resumes && ask->cursor >= user->floor && ask->cursor >= comet->all_floor)
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_RESUMED);
	close_extra(user);
	if (conn->kind != SPOKE_COMET_POLL)
		greet(conn, ask->key);
	else if (!ask->resumes && !ask->lost)
		spokei_comet_answer(conn, 0); /* the client gets an id at once */
}

bool spoke_comet_admit(struct spoke_comet_entry entry, struct spoke_span user)
{
	struct spokei_comet_ask *ask = find_ask(entry);
	struct spokei_comet_ask copy;

	if (ask == NULL)
		return false;
	if (!spokei_comet_is_user(user)) {
		spokei_event(entry.comet->engine, SPOKE_EINVAL,
			     "comet: the authorizer has admitted a user with an invalid id");
		return spoke_comet_refuse(entry, NULL);
	}
	if (ask->kind == SPOKE_COMET_SEND) {
		ask->user_len = (uint8_t)user.len;
		memcpy(ask->user, user.data, user.len);
		spokei_list_remove(&ask->node);
		spokei_list_append(&entry.comet->sends, &ask->node);
		spokei_engine_soon(entry.comet->engine, &entry.comet->pass);
		return true;
	}
	end_ask(ask, &copy);
	open_ask(entry.comet, &copy, user);
	return true;
}

bool spoke_comet_refuse(struct spoke_comet_entry entry, const char *reason)
{
	struct spokei_comet_ask *ask = find_ask(entry);
	struct spokei_comet_ask copy;

	if (ask == NULL)
		return false;
	end_ask(ask, &copy);
	spokei_comet_count(entry.comet, SPOKE_COMET_FIGURE_REFUSED);
	if (copy.kind == SPOKE_COMET_SOCKET)
		spokei_comet_refuse_socket(copy.http, copy.key, SPOKEI_COMET_REFUSED, reason);
	else if (copy.kind == SPOKE_COMET_EVENTS)
		spokei_comet_respond_raw(copy.http, NEVER_AGAIN);
	else
		spokei_comet_respond_text(copy.http, 403, NULL, "The authorizer has refused.");
	return true;
}

bool spoke_comet_later(struct spoke_comet_entry entry)
{
	struct spokei_comet_ask *ask = find_ask(entry);
	struct spokei_comet_ask copy;

	if (ask == NULL)
		return false;
	end_ask(ask, &copy);
	spokei_comet_come_again(copy.http, &copy);
	return true;
}

void spokei_comet_unanswered(struct spokei_comet_ask *ask)
{
	struct spokei_comet_ask copy;

	spokei_comet_count(spokei_comet_of(ask->http), SPOKE_COMET_FIGURE_UNANSWERED);
	end_ask(ask, &copy);
	spokei_comet_come_again(copy.http, &copy);
}

/* A user has as many texts a second by POST as one connection by frames. */
static bool posts_flood(struct spokei_comet_user *user)
{
	const struct spoke_comet *comet = user->comet;
	uint16_t second = (uint16_t)(spokei_comet_ms(comet) / 1000);

	if (user->second != second) {
		user->second = second;
		user->posts = 0;
	}
	if (user->posts >= comet->with.frames_per_second)
		return true;
	user->posts++;
	return false;
}

void spokei_comet_deliver(struct spoke_comet *comet)
{
	while (!comet->closed && !spokei_list_empty(&comet->sends)) {
		struct spokei_comet_ask *ask = spoke_container_of(spokei_list_first(&comet->sends),
								  struct spokei_comet_ask, node);
		struct spokei_comet_ask copy = *ask;
		const struct spoke_span id = { copy.user, copy.user_len };
		struct spokei_comet_user *user;

		ask->body = NULL;
		ask->body_len = 0;
		spokei_comet_drop_ask(comet, ask);
		if (spokei_comet_find_or_make(comet, id, &user)) {
			spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
			spokei_comet_come_again(copy.http, &copy);
		} else if (posts_flood(user)) {
			spokei_comet_respond_text(copy.http, 429, NULL,
						  "Too many messages in a second.");
		} else {
			spokei_comet_respond_text(copy.http, 202, NULL, "accepted");
			spokei_comet_count(comet, SPOKE_COMET_FIGURE_RECEIVED);
			comet->with.message(comet->with.arg, id,
					    (struct spoke_span){ copy.body, copy.body_len });
		}
		spokei_comet_give(comet, copy.body, copy.body_len);
	}
}
