/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door: requests of browsers, until they have become connections or were answered. A request
 * is checked, may have to come again, waits for the authorizer, and is admitted or refused.
 */
#include "cluster/comet/parts.h"
#include "cluster/comet/script.h"
#include "core/text/percent.h"
#include "core/text/utf8.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"
#include "transport/http/response.h"
#include "transport/http/text.h"
#include "transport/http/upgrade.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define JSON "application/json"
#define EVENTS_HEAD                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: " SPOKEI_SSE_TYPE "\r\nCache-Control: no-store\r\n"      \
	"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
#define NEVER_AGAIN                                                                                \
	"HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
#define UPGRADE_REQUIRED                                                                           \
	"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"     \
	"Content-Length: 0\r\nConnection: close\r\n\r\n"

static const struct place {
	const char *path;
	enum spoke_comet_kind kind;
} places[] = {
	{ "/spoke/events", SPOKE_COMET_EVENTS },
	{ "/spoke/socket", SPOKE_COMET_SOCKET },
	{ "/spoke/poll", SPOKE_COMET_POLL },
	{ "/spoke/send", SPOKE_COMET_SEND },
};

static struct spoke_comet *comet_of(const struct spokei_http_conn *http)
{
	return spoke_container_of(spokei_http_server_of(http), struct spoke_comet, http);
}

/* --- answers without a connection of the gateway's own */

static void respond_text(struct spokei_http_conn *http, int status, const char *allow,
			 const char *sentence)
{
	if (spokei_http_respond_text(http, status, allow, sentence))
		spokei_http_close(http);
}

static void respond(struct spokei_http_conn *http, const char *type, const void *body, size_t len)
{
	const struct spokei_http_response response = { .status = 200, .type = type, .len = len };

	if (spokei_http_respond(http, &response, body))
		spokei_http_close(http);
}

/* Makes a connection of the gateway's own; NULL: it is closed. */
static struct spokei_comet_conn *detach(struct spokei_http_conn *http, enum spoke_comet_kind kind,
					struct spokei_comet_user *user)
{
	struct spoke_comet *comet = comet_of(http);
	void *seat = spokei_quota_seat(&comet->quota, spokei_http_peer_address(http));
	int fd = spokei_http_detach(http);

	if (fd < 0) {
		spokei_http_close(http);
		return NULL;
	}
	comet->https--;
	return spokei_comet_open(comet, kind, user, fd, seat);
}

/* Answers with bytes that response.h does not write, and ends. */
static void respond_raw(struct spokei_http_conn *http, const char *bytes)
{
	struct spokei_comet_conn *conn = detach(http, SPOKE_COMET_EVENTS, comet_of(http)->nobody);

	if (conn)
		spokei_comet_end(conn, bytes, strlen(bytes));
}

static size_t print_upgrade(const char *key, char head[SPOKEI_UPGRADE_HEAD_MAX])
{
	const struct spokei_upgrade upgrade = { .key = { key, SPOKEI_COMET_KEY } };

	return spokei_upgrade_head(&upgrade, NULL, head);
}

/* Refuses a WebSocket. Pages see a close code, but no status of HTTP. */
static void refuse_socket(struct spokei_http_conn *http, const char *key, unsigned code,
			  const char *reason)
{
	struct spokei_comet_conn *conn = detach(http, SPOKE_COMET_SOCKET, comet_of(http)->nobody);
	char bytes[SPOKEI_UPGRADE_HEAD_MAX + 2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	size_t len;

	if (conn == NULL)
		return;
	len = print_upgrade(key, bytes);
	len += spokei_websocket_close(code, reason, (unsigned char *)bytes + len);
	spokei_comet_end(conn, bytes, len);
}

/* Tells a client to come again, later than usual. An EventSource comes again after status 200 only.
 */
static void come_again(struct spokei_http_conn *http, const struct spokei_comet_ask *ask)
{
	const struct spoke_comet *comet = comet_of(http);
	const uint64_t max_ns = comet->with.retry_max_ns;
	unsigned retry_ms = (unsigned)(spokei_comet_dice(comet, max_ns, 2 * max_ns) / NS_PER_MS);
	char text[64];

	switch ((enum spoke_comet_kind)ask->kind) {
	case SPOKE_COMET_EVENTS:
		respond(http, SPOKEI_SSE_TYPE, text,
			(size_t)snprintf(text, sizeof(text), "retry: %u\n\n", retry_ms));
		break;
	case SPOKE_COMET_SOCKET:
		(void)snprintf(text, sizeof(text), "retry=%u", retry_ms);
		refuse_socket(http, ask->key, SPOKEI_WEBSOCKET_LATER, text);
		break;
	case SPOKE_COMET_POLL:
		respond(http, JSON, text,
			(size_t)snprintf(text, sizeof(text), "{\"again\":%u}", retry_ms));
		break;
	case SPOKE_COMET_SEND:
		respond_text(http, 503, NULL, "Try again later.");
		break;
	}
}

/* --- asks */

/* Takes an ask off its HTTP connection, and frees it. */
static void drop_ask(struct spoke_comet *comet, struct spokei_comet_ask *ask)
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
	drop_ask(comet_of(ask->http), ask);
}

static struct spokei_comet_ask *find_ask(struct spoke_comet_entry entry)
{
	struct spokei_comet_ask *ask;

	if (entry.comet == NULL || entry.comet->closed)
		return NULL;
	ask = spokei_slab_get(&entry.comet->ask_slab, entry.handle);
	return ask && ask->user_len == 0 ? ask : NULL;
}

/* --- admitted */

/* The oldest connection of a user is the last of its list. */
static void close_extra(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	struct spokei_comet_conn *oldest = user->at.here.first;

	if (user->count <= comet->with.connections_per_user_max)
		return;
	while (oldest->next)
		oldest = oldest->next;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_CLOSED_EXTRA);
	spokei_comet_end_with(oldest, SPOKEI_COMET_EXTRA, "too many connections of this user");
}

/* The head and the event "hello" are one write. The browser learns the pause before it reconnects
 * now, because a gateway that crashes cannot tell it. */
static void greet(struct spokei_comet_conn *conn, const char *key)
{
	const struct spoke_comet *comet = conn->user->comet;
	uint32_t retry_ms = spokei_comet_retry(comet);
	char bytes[512 + SPOKEI_COMET_SAY];
	char id[SPOKE_COMET_ID];
	char data[32];
	size_t len;

	(void)spokei_comet_print_id(comet, conn->cursor, id);
	(void)snprintf(data, sizeof(data), "{\"retry\":%u}", retry_ms);
	if (conn->kind == SPOKE_COMET_EVENTS) {
		len = sizeof(EVENTS_HEAD) - 1;
		memcpy(bytes, EVENTS_HEAD, len);
		len += spokei_comet_say(SPOKEI_COMET_AS_EVENT, "hello", id, data, retry_ms,
					bytes + len);
	} else {
		len = print_upgrade(key, bytes);
		len += spokei_comet_say(SPOKEI_COMET_AS_FRAME, "hello", id, data, 0, bytes + len);
	}
	spokei_comet_write(conn, bytes, len);
}

static void open_ask(struct spoke_comet *comet, const struct spokei_comet_ask *ask,
		     struct spoke_span id)
{
	struct spokei_comet_user *user;
	struct spokei_comet_conn *conn;

	if (spokei_comet_find_or_make(comet, id, &user)) {
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
		come_again(ask->http, ask);
		return;
	}
	conn = detach(ask->http, (enum spoke_comet_kind)ask->kind, user);
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
		refuse_socket(copy.http, copy.key, SPOKEI_COMET_REFUSED, reason);
	else if (copy.kind == SPOKE_COMET_EVENTS)
		respond_raw(copy.http, NEVER_AGAIN);
	else
		respond_text(copy.http, 403, NULL, "The authorizer has refused.");
	return true;
}

bool spoke_comet_later(struct spoke_comet_entry entry)
{
	struct spokei_comet_ask *ask = find_ask(entry);
	struct spokei_comet_ask copy;

	if (ask == NULL)
		return false;
	end_ask(ask, &copy);
	come_again(copy.http, &copy);
	return true;
}

void spokei_comet_unanswered(struct spokei_comet_ask *ask)
{
	struct spokei_comet_ask copy;

	spokei_comet_count(comet_of(ask->http), SPOKE_COMET_FIGURE_UNANSWERED);
	end_ask(ask, &copy);
	come_again(copy.http, &copy);
}

/* A user has as many texts a second by POST as by the frames of its newest connection. */
static bool posts_flood(const struct spoke_comet *comet, const struct spokei_comet_ask *ask)
{
	struct spokei_comet_user *user =
		spokei_comet_find(comet, (struct spoke_span){ ask->user, ask->user_len });

	return user && user->count > 0 && spokei_comet_floods(user->at.here.first, 1);
}

void spokei_comet_deliver(struct spoke_comet *comet)
{
	while (!comet->closed && !spokei_list_empty(&comet->sends)) {
		struct spokei_comet_ask *ask = spoke_container_of(spokei_list_first(&comet->sends),
								  struct spokei_comet_ask, node);
		struct spokei_comet_ask copy = *ask;
		const struct spoke_span user = { copy.user, copy.user_len };

		ask->body = NULL;
		ask->body_len = 0;
		drop_ask(comet, ask);
		if (posts_flood(comet, &copy)) {
			respond_text(copy.http, 429, NULL, "Too many messages in a second.");
		} else {
			respond_text(copy.http, 202, NULL, "accepted");
			spokei_comet_count(comet, SPOKE_COMET_FIGURE_RECEIVED);
			comet->with.message(comet->with.arg, user,
					    (struct spoke_span){ copy.body, copy.body_len });
		}
		spokei_comet_give(comet, copy.body, copy.body_len);
	}
}

/* --- checks */

static bool is_listed(struct spoke_span origin, const char *origins)
{
	while (*origins != '\0') {
		size_t len = strcspn(origins, ",");

		if (len > 0 && origin.len == len && memcmp(origin.data, origins, len) == 0)
			return true;
		origins += len + (origins[len] == ',');
	}
	return false;
}

/* Is it the origin of the gateway, perhaps behind a proxy with TLS? */
static bool is_own(struct spoke_span origin, struct spoke_span host)
{
	static const char tls[] = "https://";
	const size_t len = sizeof(tls) - 1;

	if (spokei_guard_origin(origin, host))
		return true;
	return host.data != NULL && host.len > 0 && origin.len == len + host.len &&
	       memcmp(origin.data, tls, len) == 0 &&
	       memcmp((const char *)origin.data + len, host.data, host.len) == 0;
}

/* The same-origin rule does not protect WebSockets, so they need an Origin; and so do POSTs. */
static bool is_welcome(const struct spoke_comet *comet, const struct spokei_http_request *request,
		       enum spoke_comet_kind kind)
{
	if (request->origin.data == NULL)
		return comet->with.any_client || kind == SPOKE_COMET_EVENTS ||
		       kind == SPOKE_COMET_POLL;
	return is_listed(request->origin, comet->with.origins) ||
	       is_own(request->origin, request->host);
}

/* The socket's address costs a system call, so it is the last that is compared. */
static bool is_our_host(const struct spokei_http_conn *http, struct spoke_span host)
{
	const struct spoke_comet *comet = comet_of(http);
	char local[SPOKEI_HTTP_ADDRESS];

	return spokei_guard_host(host, "", comet->with.hosts) ||
	       (spokei_http_local(http, local) &&
		spokei_guard_host(host, local, comet->with.hosts));
}

/* Finds NAME=VALUE in a query. */
static struct spoke_span find_parameter(struct spoke_span query, const char *name)
{
	const size_t len = strlen(name);
	const char *at = query.data;
	const char *end = at + query.len;

	while (at < end) {
		const char *amp = memchr(at, '&', (size_t)(end - at));
		const char *stop = amp ? amp : end;

		if ((size_t)(stop - at) > len && memcmp(at, name, len) == 0 && at[len] == '=')
			return (struct spoke_span){ at + len + 1, (size_t)(stop - at) - len - 1 };
		at = stop + 1;
	}
	return (struct spoke_span){ NULL, 0 };
}

/* Reads the last id that the client has. */
static void read_last(const struct spoke_comet *comet, const struct spokei_http_request *request,
		      struct spokei_comet_ask *ask)
{
	struct spoke_span last = { NULL, 0 };

	if (ask->kind == SPOKE_COMET_EVENTS)
		(void)spokei_http_field(request, "last-event-id", &last);
	if (last.len == 0)
		last = find_parameter(request->query, "last");
	if (last.len == 0 && ask->kind == SPOKE_COMET_POLL)
		last = find_parameter(request->query, "after");
	ask->resumes = spokei_comet_read_id(comet, last, &ask->cursor);
	ask->lost = last.len > 0 && !ask->resumes;
}

/* Checks the fields of a WebSocket's request. Returns false after an answer. */
static bool read_upgrade(struct spokei_http_conn *http, const struct spokei_http_request *request,
			 struct spokei_comet_ask *ask)
{
	struct spokei_upgrade upgrade = { .connection = { NULL, 0 } };
	bool once = spokei_http_field(request, "upgrade", &upgrade.upgrade) <= 1 &&
		    spokei_http_field(request, "sec-websocket-key", &upgrade.key) <= 1 &&
		    spokei_http_field(request, "sec-websocket-version", &upgrade.version) <= 1;
	int status = 400;

	if (request->upgrades)
		upgrade.connection = spoke_comet_text("upgrade");
	if (once)
		status = spokei_upgrade_check(&upgrade);
	if (status == 426) {
		respond_raw(http, UPGRADE_REQUIRED);
		return false;
	}
	if (status != 101 || upgrade.key.len != SPOKEI_COMET_KEY) {
		respond_text(http, 400, NULL, "This is not a valid handshake of WebSocket.");
		return false;
	}
	memcpy(ask->key, upgrade.key.data, SPOKEI_COMET_KEY);
	return true;
}

/* --- a request */

/* Without an authorizer. */
static void believe_query(struct spoke_comet_entry entry, struct spoke_span query)
{
	struct spoke_span user = find_parameter(query, "user");
	char id[3 * SPOKE_COMET_USER_MAX];
	size_t len;

	if (user.len == 0 || user.len > sizeof(id) ||
	    spokei_percent_decode(user.data, user.len, id, &len) != SPOKEI_PERCENT_FINE)
		(void)spoke_comet_refuse(entry, "no user in the query");
	else
		(void)spoke_comet_admit(entry, (struct spoke_span){ id, len });
}

/* Asks the authorizer. It may free the gateway. */
static void ask_authorizer(struct spoke_comet *comet, const struct spokei_comet_ask *ask,
			   const struct spokei_http_request *request)
{
	const struct spoke_comet_entry entry = { comet, ask->handle };
	char peer[SPOKEI_HTTP_ADDRESS];
	struct spoke_comet_request facts = {
		.kind = (enum spoke_comet_kind)ask->kind,
		.path = request->path,
		.query = request->query,
		.authorization = request->authorization,
		.origin = request->origin,
		.host = request->host,
		.peer = peer,
	};

	if (comet->with.authorize == NULL) {
		believe_query(entry, request->query);
		return;
	}
	spokei_http_peer(ask->http, peer);
	(void)spokei_http_field(request, "cookie", &facts.cookie);
	comet->with.authorize(comet->with.arg, entry, &facts);
}

/* Keeps what the ask needs until it is answered. Returns NULL without memory. */
static struct spokei_comet_ask *keep_ask(struct spoke_comet *comet,
					 const struct spokei_comet_ask *given,
					 struct spoke_span body)
{
	struct spokei_comet_door *door = spokei_http_user(given->http);
	struct spokei_comet_ask *ask;
	uint64_t handle;
	void *cell;
	char *copy = NULL;

	if (body.len > 0) {
		copy = spokei_comet_take(comet, body.len);
		if (copy == NULL)
			return NULL;
		memcpy(copy, body.data, body.len);
	}
	if (spokei_slab_take(&comet->ask_slab, &cell, &handle)) {
		spokei_comet_give(comet, copy, body.len);
		return NULL;
	}
	ask = cell;
	*ask = *given;
	ask->handle = handle;
	ask->body = copy;
	ask->body_len = (uint32_t)body.len;
	ask->due_ms = spokei_comet_ms(comet) + (uint32_t)(comet->with.authorize_ns / NS_PER_MS);
	spokei_list_append(&comet->asks, &ask->node);
	door->ask = ask;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_ASKING);
	spokei_comet_sweep_at(comet, ask->due_ms);
	return ask;
}

static void serve(struct spokei_http_conn *http, const struct spokei_http_request *request,
		  enum spoke_comet_kind kind)
{
	struct spoke_comet *comet = comet_of(http);
	struct spokei_comet_ask given = { .http = http, .kind = (uint8_t)kind };
	struct spoke_span body = { NULL, 0 };
	struct spokei_comet_ask *ask = NULL;

	if (kind == SPOKE_COMET_SOCKET && !read_upgrade(http, request, &given))
		return;
	if (!is_welcome(comet, request, kind)) {
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_REFUSED_ORIGIN);
		if (kind == SPOKE_COMET_SOCKET)
			refuse_socket(http, given.key, SPOKEI_COMET_ORIGIN, "origin not allowed");
		else
			respond_text(http, 403, NULL, "Pages of this origin are not allowed here.");
		return;
	}
	if (kind == SPOKE_COMET_SEND)
		body = request->body;
	read_last(comet, request, &given);
	if (!comet->draining && spokei_bucket_take(&comet->rate, 1, comet->engine->begin_ns))
		ask = keep_ask(comet, &given, body);
	if (ask) {
		ask_authorizer(comet, ask, request);
		return;
	}
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
	come_again(http, &given);
}

/* Is the body a text? An empty one is. */
static bool is_text(struct spoke_span body)
{
	struct spokei_utf8_run run = { 0 };

	return body.len == 0 || (spokei_utf8_run(&run, body.data, body.len) == body.len &&
				 spokei_utf8_may_end(&run));
}

static void serve_place(struct spokei_http_conn *http, const struct spokei_http_request *request,
			const struct place *place)
{
	bool sends = place->kind == SPOKE_COMET_SEND;

	if (sends && comet_of(http)->with.message == NULL)
		respond_text(http, 404, NULL, "This gateway takes no messages of pages.");
	else if (request->method != (sends ? SPOKEI_HTTP_POST : SPOKEI_HTTP_GET))
		respond_text(http, 405, sends ? "POST" : "GET", "Another method is required.");
	else if (sends && !is_text(request->body))
		respond_text(http, 400, NULL, "A message is a text in UTF-8.");
	else
		serve(http, request, place->kind);
}

static void door_request(struct spokei_http_conn *http, const struct spokei_http_request *request)
{
	if (!is_our_host(http, request->host)) {
		respond_text(http, 421, NULL,
			     "This gateway is served under localhost, its numeric address, and the "
			     "names in the option hosts.");
		return;
	}
	if (spokei_http_is(request->path, "/spoke.js")) {
		respond(http, "text/javascript; charset=utf-8", spokei_comet_script,
			spokei_comet_script_len);
		return;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (spokei_http_is(request->path, places[i].path)) {
			serve_place(http, request, &places[i]);
			return;
		}
	}
	respond_text(http, 404, NULL,
		     "The paths are /spoke/events /spoke/socket /spoke/poll /spoke.js, and POST "
		     "/spoke/send.");
}

static void door_closed(struct spokei_http_conn *http)
{
	struct spoke_comet *comet = comet_of(http);
	struct spokei_comet_door *door = spokei_http_user(http);

	comet->https--;
	spokei_quota_leave(&comet->quota, spokei_http_peer_address(http));
	if (door->ask)
		drop_ask(comet, door->ask);
	spokei_comet_drained(comet);
}

const struct spokei_http_up spokei_comet_up = {
	.user_size = sizeof(struct spokei_comet_door),
	.request = door_request,
	.closed = door_closed,
};
