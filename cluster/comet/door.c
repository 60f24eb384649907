/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of a gateway: a request of a browser is checked, may have to come again, and waits for
 * the authorizer, which admits it as a connection, refuses it, or has it come again; and the
 * answers to requests that do not become connections, or only for a moment.
 */
#include "cluster/comet/comet.h"
#include "core/base/siphash.h"
#include "core/text/encoding.h"
#include "core/text/option.h"
#include "core/text/range.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"
#include "transport/http/response.h"
#include "transport/http/websocket.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define UPGRADE_HEAD 512u /* bytes of the head that accepts a WebSocket, at most */
#define FEW_SHARE 20u     /* of the rate: one address has opened few */
#define UPGRADE_REQUIRED                                                                           \
	"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"     \
	"Content-Length: 0\r\nConnection: close\r\n"

#define EVENTS_HEAD                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: " SPOKEI_SSE_TYPE "\r\nCache-Control: no-store\r\n"      \
	"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
#define NEVER_AGAIN "HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n"

/* --- for pages of other origins */

const char *spokei_comet_cors(const struct spoke_comet *comet, uint16_t origin,
			      char out[SPOKEI_COMET_CORS])
{
	struct spoke_span name = spokei_guard_origin_of(comet->with.origins, origin);

	out[0] = '\0';
	if (name.len > 0) {
		(void)snprintf(out, SPOKEI_COMET_CORS,
			       "Access-Control-Allow-Origin: %.*s\r\n"
			       "Access-Control-Allow-Credentials: true\r\nVary: Origin\r\n",
			       (int)name.len, (const char *)name.data);
	}
	return out;
}

/* --- answers */

static void respond(struct spokei_http_conn *http, struct spokei_http_response response,
		    const void *body)
{
	const struct spokei_comet_door *door = spokei_http_user(http);
	char cors[SPOKEI_COMET_CORS];

	if (!response.foreign)
		response.more = spokei_comet_cors(spokei_comet_of(http), door->origin, cors);
	if (spokei_http_respond(http, &response, body))
		spokei_http_close(http);
}

static void respond_text(struct spokei_http_conn *http, int status, const char *allow,
			 const char *sentence)
{
	char line[SPOKEI_HTTP_SENTENCE];
	const struct spokei_http_response response = {
		.status = status,
		.type = "text/plain; charset=utf-8",
		.len = (size_t)snprintf(line, sizeof(line), "%s\n", sentence),
		.allow = allow,
	};

	SPOKE_ASSERT(response.len < sizeof(line));
	respond(http, response, line);
}

/* A page loads a script without naming its origin, so all may if some other than the gateway's own
 * may connect. */
static void respond_script(struct spokei_http_conn *http)
{
	const struct spokei_http_response response = {
		.status = 200,
		.type = "text/javascript; charset=utf-8",
		.len = spokei_comet_script_len,
		.foreign = spokei_comet_of(http)->with.origins[0] != '\0',
	};

	respond(http, response, spokei_comet_script);
}

/* Makes a connection of the gateway's own; NULL: it is closed. */
static struct spokei_comet_conn *detach(struct spokei_http_conn *http, enum spoke_comet_kind kind,
					struct spokei_comet_user *user)
{
	const struct spokei_comet_door *door = spokei_http_user(http);
	struct spokei_quota_peer *quota_peer = door->quota_peer;
	const uint16_t origin = door->origin;
	struct spokei_comet_conn *conn;
	int fd = spokei_http_detach(http);

	if (fd < 0) {
		spokei_http_close(http);
		return NULL;
	}
	conn = spokei_comet_open(spokei_comet_of(http), kind, user, fd, quota_peer);
	if (conn)
		conn->origin = origin;
	return conn;
}

/* Answers with a head that response.h does not write, and ends. */
static void respond_raw(struct spokei_http_conn *http, const char *head)
{
	struct spokei_comet_conn *conn = detach(http, SPOKE_COMET_EVENTS,
						spokei_comet_of(http)->nobody);

	char bytes[UPGRADE_HEAD + SPOKEI_COMET_CORS];
	char cors[SPOKEI_COMET_CORS];
	int len;

	if (conn == NULL)
		return;
	len = snprintf(bytes, sizeof(bytes), "%s%s\r\n", head,
		       spokei_comet_cors(conn->user->comet, conn->origin, cors));
	spokei_comet_end(conn, bytes, (size_t)len);
}

static void respond_page(struct spokei_http_conn *http)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
	struct spokei_comet_conn *conn = detach(http, SPOKE_COMET_EVENTS, comet->nobody);

	if (conn)
		spokei_comet_end(conn, comet->page, strlen(comet->page));
}

static size_t print_upgrade(const char *key, char *head)
{
	const struct spokei_upgrade upgrade = { .key = { key, SPOKEI_COMET_KEY } };

	return spokei_upgrade_head(&upgrade, NULL, head);
}

/* Refuses a WebSocket. Pages see a close code, but no status of HTTP. */
static void refuse_socket(struct spokei_http_conn *http, const char *key, unsigned code,
			  const char *reason)
{
	struct spokei_comet_conn *conn = detach(http, SPOKE_COMET_SOCKET,
						spokei_comet_of(http)->nobody);
	char bytes[UPGRADE_HEAD + 2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	size_t len;

	if (conn == NULL)
		return;
	len = print_upgrade(key, bytes);
	len += spokei_websocket_close(code, reason, (unsigned char *)bytes + len);
	spokei_comet_end(conn, bytes, len);
}

/* Tells a client to come again, later than usual, with the id that it has. An EventSource comes
 * again after status 200 only. */
static void come_again(struct spokei_http_conn *http, const struct spokei_comet_ask *ask)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
	const uint64_t max_ns = comet->with.retry_max_ns;
	unsigned retry_ms = (unsigned)(spokei_comet_dice(comet, max_ns, 2 * max_ns) / NS_PER_MS);
	char text[128];
	struct spokei_http_response response = { .status = 200 };

	switch ((enum spoke_comet_kind)ask->kind) {
	case SPOKE_COMET_EVENTS:
		response.type = SPOKEI_SSE_TYPE;
		response.len = (size_t)snprintf(text, sizeof(text), "retry: %u\n\n", retry_ms);
		respond(http, response, text);
		break;
	case SPOKE_COMET_SOCKET:
		(void)snprintf(text, sizeof(text), "retry=%u", retry_ms);
		refuse_socket(http, ask->key, SPOKEI_WEBSOCKET_LATER, text);
		break;
	case SPOKE_COMET_POLL:
		response.type = "application/json";
		response.len = (size_t)snprintf(text, sizeof(text),
						"{\"last\":\"%s\",\"retry\":%u,\"again\":%u}",
						ask->last, spokei_comet_retry(comet), retry_ms);
		respond(http, response, text);
		break;
	case SPOKE_COMET_SEND:
		respond_text(http, 503, NULL, "Try again later.");
		break;
	}
}

/* --- asks */

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
	drop_ask(spokei_comet_of(ask->http), ask);
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
	char bytes[UPGRADE_HEAD + SPOKEI_COMET_CORS + SPOKEI_COMET_SAY];
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
		len = print_upgrade(key, bytes);
		len += spokei_comet_say(SPOKEI_COMET_AS_FRAME, "hello", id, data, 0, bytes + len);
	}
	spokei_comet_write(conn, bytes, len);
}

/* Counts a client behind a proxy under its own address. Returns whether there is room. */
static bool move_to_client(struct spoke_comet *comet, const struct spokei_comet_ask *ask)
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

	if (comet->draining || !move_to_client(comet, ask) ||
	    spokei_comet_find_or_make(comet, id, &user)) {
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
		spokei_run_soon(entry.comet->engine, &entry.comet->pass);
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

	spokei_comet_count(spokei_comet_of(ask->http), SPOKE_COMET_FIGURE_UNANSWERED);
	end_ask(ask, &copy);
	come_again(copy.http, &copy);
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
		drop_ask(comet, ask);
		if (spokei_comet_find_or_make(comet, id, &user)) {
			spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
			come_again(copy.http, &copy);
		} else if (posts_flood(user)) {
			respond_text(copy.http, 429, NULL, "Too many messages in a second.");
		} else {
			respond_text(copy.http, 202, NULL, "accepted");
			spokei_comet_count(comet, SPOKE_COMET_FIGURE_RECEIVED);
			comet->with.message(comet->with.arg, id,
					    (struct spoke_span){ copy.body, copy.body_len });
		}
		spokei_comet_give(comet, copy.body, copy.body_len);
	}
}

/* --- checks */

/* Is it the origin of the gateway, perhaps behind a proxy with TLS? */
static bool is_own(struct spoke_span origin, struct spoke_span host)
{
	return spokei_guard_origin(origin, host) ||
	       spokei_guard_origin_at(origin, "https://", host);
}

/* The same-origin rule does not protect WebSockets, so they need an Origin; and so do POSTs. */
static bool is_welcome(const struct spoke_comet *comet, const struct spokei_http_request *request,
		       enum spoke_comet_kind kind, uint16_t origin)
{
	struct spoke_span site = { NULL, 0 };

	if (request->origin.data == NULL) {
		(void)spokei_http_field(request, "sec-fetch-site", &site);
		return spokei_guard_site(site) &&
		       (comet->with.any_client || kind == SPOKE_COMET_EVENTS ||
			kind == SPOKE_COMET_POLL);
	}
	return origin > 0 || is_own(request->origin, request->host);
}

/* The socket's address costs a system call, so it is the last that is compared. */
static bool is_our_host(const struct spokei_http_conn *http, struct spoke_span host)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
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
	const char *end = query.len ? at + query.len : at;

	while (at < end) {
		const char *amp = memchr(at, '&', (size_t)(end - at));
		const char *stop = amp ? amp : end;

		if ((size_t)(stop - at) > len && memcmp(at, name, len) == 0 && at[len] == '=')
			return (struct spoke_span){ at + len + 1, (size_t)(stop - at) - len - 1 };
		at = stop + 1;
	}
	return (struct spoke_span){ NULL, 0 };
}

/* Copies an id that may be of another gateway. A text that is none becomes an id that no gateway
 * has, so it stands for a loss, too. */
static void copy_id(struct spoke_span id, char out[SPOKE_COMET_ID])
{
	const char *text = id.data;
	bool fits = id.len < SPOKE_COMET_ID;

	for (size_t i = 0; i < id.len && fits; i++)
		fits = strchr("0123456789abcdef.", text[i]) && text[i] != '\0';
	(void)snprintf(out, SPOKE_COMET_ID, "%.*s", fits ? (int)id.len : 3, fits ? text : "0.0");
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
	if (last.len > 0)
		copy_id(last, ask->last);
}

/* --- clients behind a proxy */

/* Returns the last address of the last X-Forwarded-For: the proxy has added it. */
static struct spoke_span last_client(const struct spokei_http_request *request)
{
	struct spoke_span fields = request->fields;
	struct spoke_span list = { NULL, 0 };
	struct spoke_span name;
	struct spoke_span value;

	while (spokei_http_next_field(&fields, &name, &value)) {
		if (spokei_span_is_any_case(name, "x-forwarded-for"))
			list = value;
	}
	for (size_t i = list.len; i > 0; i--) {
		const char *at = (const char *)list.data + i - 1;

		if (*at == ',' || *at == ' ' || *at == '\t')
			return (struct spoke_span){ at + 1, list.len - i };
	}
	return list;
}

static bool is_proxy(const struct spoke_comet *comet, const struct spoke_address *peer)
{
	const struct spokei_machine machine = spokei_machine_of(comet->engine->env, peer);
	const char *proxies = comet->with.proxies;
	struct spokei_range range;
	struct spoke_span item;

	while (spokei_option_item(&proxies, &item))
		if (spokei_range_read(item, &range) == NULL && spokei_range_has(&range, &machine))
			return true;
	return false;
}

/* Writes the address of a client behind a proxy, with a port; "" if there is no valid one. */
static void read_client(const struct spokei_http_conn *http,
			const struct spokei_http_request *request, char client[SPOKEI_COMET_CLIENT])
{
	static const char *const forms[][2] = { { "", ":1" }, { "[", "]:1" }, { "", "" } };
	const struct spoke_comet *comet = spokei_comet_of(http);
	const struct spoke_env *env = comet->engine->env;
	struct spoke_address address;
	struct spoke_span last;

	client[0] = '\0';
	if (!is_proxy(comet, spokei_http_peer_address(http)))
		return;
	last = last_client(request);
	if (last.len == 0 || last.len > 47)
		return;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		(void)snprintf(client, SPOKEI_COMET_CLIENT, "%s%.*s%s", forms[i][0], (int)last.len,
			       (const char *)last.data, forms[i][1]);
		if (strncmp(client, "unix:", 5) != 0 &&
		    env->net->parse(env->ctx, client, &address) == 0)
			return;
	}
	client[0] = '\0';
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

	if (user.len == 0)
		(void)spoke_comet_refuse(entry, "no user in the query");
	else if (user.len > sizeof(id) ||
		 spokei_percent_decode(user.data, user.len, id, &len) != SPOKEI_PERCENT_FINE ||
		 !spokei_comet_is_user((struct spoke_span){ id, len }))
		(void)spoke_comet_refuse(entry, "the user in the query is no valid id");
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
	if (ask->client[0] == '\0')
		spokei_http_peer(ask->http, peer);
	else
		facts.peer = ask->client;
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

/* Counts an opening of a peer, as the quota tells peers, together with those of others that have
 * the same hash. Returns whether there were few in this second. */
static bool has_opened_few(struct spoke_comet *comet, const struct spoke_address *address)
{
	const uint32_t second = spokei_comet_ms(comet) / 1000;
	struct spokei_machine machine = spokei_machine_of(comet->engine->env, address);
	uint64_t key[2];
	uint16_t *opened;

	if (machine.kind != SPOKEI_MACHINE_V4 && machine.kind != SPOKEI_MACHINE_V6)
		return false;
	machine = spokei_machine_cut(&machine, comet->with.connections_per_peer_prefix6);
	key[0] = machine.high;
	key[1] = machine.low;
	if (comet->second != second) {
		comet->second = second;
		memset(comet->opened, 0, sizeof(comet->opened));
	}
	opened = &comet->opened[spokei_siphash(comet->hash_key, key, sizeof(key)) &
				(SPOKEI_COMET_ADDRESSES - 1)];
	if (*opened < UINT16_MAX)
		++*opened;
	return *opened <= comet->with.accept_rate / FEW_SHARE;
}

/* Keeps to the rate. A storm from some addresses takes all of it, but not the reserve. */
static bool may_open(struct spoke_comet *comet, const struct spokei_comet_ask *ask)
{
	const struct spoke_env *env = comet->engine->env;
	const uint64_t now_ns = comet->engine->begin_ns;
	struct spoke_address address;
	bool few;

	if (ask->client[0] == '\0' || env->net->parse(env->ctx, ask->client, &address))
		address = *spokei_http_peer_address(ask->http);
	few = has_opened_few(comet, &address);
	return spokei_bucket_take(&comet->rate, 1, now_ns) ||
	       (few && spokei_bucket_take(&comet->reserve, 1, now_ns));
}

static void serve(struct spokei_http_conn *http, const struct spokei_http_request *request,
		  enum spoke_comet_kind kind)
{
	struct spoke_comet *comet = spokei_comet_of(http);
	struct spokei_comet_door *door = spokei_http_user(http);
	struct spokei_comet_ask given = { .http = http, .kind = (uint8_t)kind };
	struct spoke_span body = { NULL, 0 };
	struct spokei_comet_ask *ask = NULL;

	if (kind == SPOKE_COMET_SOCKET && !read_upgrade(http, request, &given))
		return;
	if (request->origin.data)
		door->origin = (uint16_t)spokei_guard_listed(request->origin, comet->with.origins);
	if (!is_welcome(comet, request, kind, door->origin)) {
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
	read_client(http, request, given.client);
	if (!comet->draining && may_open(comet, &given))
		ask = keep_ask(comet, &given, body);
	if (ask) {
		ask_authorizer(comet, ask, request);
		return;
	}
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_STORMED);
	come_again(http, &given);
}

static const struct resource {
	const char *path;
	enum spoke_comet_kind kind;
} resources[] = {
	{ "/spoke/events", SPOKE_COMET_EVENTS },
	{ "/spoke/socket", SPOKE_COMET_SOCKET },
	{ "/spoke/poll", SPOKE_COMET_POLL },
	{ "/spoke/send", SPOKE_COMET_SEND },
};

static void serve_resource(struct spokei_http_conn *http, const struct spokei_http_request *request,
			   const struct resource *resource)
{
	bool sends = resource->kind == SPOKE_COMET_SEND;

	if (sends && spokei_comet_of(http)->with.message == NULL)
		respond_text(http, 404, NULL, "This gateway takes no messages of pages.");
	else if (request->method != (sends ? SPOKEI_HTTP_POST : SPOKEI_HTTP_GET))
		respond_text(http, 405, sends ? "POST" : "GET", "Another method is required.");
	else if (sends && !spokei_utf8_all(request->body.data, request->body.len))
		respond_text(http, 400, NULL, "A message is a text in UTF-8.");
	else
		serve(http, request, resource->kind);
}

static void door_request(struct spokei_http_conn *http, const struct spokei_http_request *request)
{
	if (!is_our_host(http, request->host)) {
		respond_text(http, 421, NULL,
			     "This gateway is served under localhost, its numeric address, and the "
			     "names in the option hosts.");
		return;
	}
	if (spokei_span_is(request->path, "/spoke.js")) {
		respond_script(http);
		return;
	}
	if (spokei_comet_of(http)->page && request->method == SPOKEI_HTTP_GET &&
	    spokei_span_is(request->path, "/")) {
		respond_page(http);
		return;
	}
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (spokei_span_is(request->path, resources[i].path)) {
			serve_resource(http, request, &resources[i]);
			return;
		}
	}
	respond_text(http, 404, NULL,
		     "The paths are /spoke/events /spoke/socket /spoke/poll /spoke.js, and POST "
		     "/spoke/send.");
}

/* spoke.js hands the sentence to its page. */
static void door_too_long(struct spokei_http_conn *http, const struct spokei_http_request *request)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
	struct spokei_comet_door *door = spokei_http_user(http);
	char sentence[96];

	if (request->origin.data)
		door->origin = (uint16_t)spokei_guard_listed(request->origin, comet->with.origins);
	(void)snprintf(sentence, sizeof(sentence),
		       "A text of a page is limited to %u bytes (text.max).",
		       (unsigned)comet->with.frame_max);
	respond_text(http, 413, NULL, sentence);
}

static void door_closed(struct spokei_http_conn *http)
{
	struct spoke_comet *comet = spokei_comet_of(http);
	struct spokei_comet_door *door = spokei_http_user(http);

	spokei_quota_leave(&comet->quota, door->quota_peer);
	if (door->ask)
		drop_ask(comet, door->ask);
	/* A drain may be over, once the turn ends. */
	spokei_run_freeing(comet->engine, &comet->dead);
}

const struct spokei_http_up spokei_comet_up = {
	.title = "comet: ",
	.user_size = sizeof(struct spokei_comet_door),
	.request = door_request,
	.too_long = door_too_long,
	.closed = door_closed,
};
