/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to requests that do not become connections, or only for a moment. */
#include "cluster/comet/parts.h"
#include "cluster/comet/script.h"
#include "transport/http/response.h"
#include "transport/http/sse.h"
#include "transport/http/upgrade.h"
#include "transport/http/websocket.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define PAGE_MAX 1048576u /* bytes of the document at / */
#define PAGE_HEAD 512u

void spokei_comet_respond_text(struct spokei_http_conn *http, int status, const char *allow,
			       const char *sentence)
{
	const struct spokei_comet_door *door = spokei_http_user(http);
	char cors[SPOKEI_COMET_CORS];
	char line[SPOKEI_HTTP_SENTENCE];
	const struct spokei_http_response response = {
		.status = status,
		.type = "text/plain; charset=utf-8",
		.len = (size_t)snprintf(line, sizeof(line), "%s\n", sentence),
		.allow = allow,
		.more = spokei_comet_cors(spokei_comet_of(http), door->origin, cors),
	};

	SPOKE_ASSERT(response.len < sizeof(line));
	if (spokei_http_respond(http, &response, line))
		spokei_http_close(http);
}

void spokei_comet_respond(struct spokei_http_conn *http, const char *type, const void *body,
			  size_t len)
{
	const struct spokei_comet_door *door = spokei_http_user(http);
	char cors[SPOKEI_COMET_CORS];
	const struct spokei_http_response response = {
		.status = 200,
		.type = type,
		.len = len,
		.more = spokei_comet_cors(spokei_comet_of(http), door->origin, cors),
	};

	if (spokei_http_respond(http, &response, body))
		spokei_http_close(http);
}

/* A page loads a script without naming its origin, so all may if some other than the gateway's own
 * may connect. */
void spokei_comet_respond_script(struct spokei_http_conn *http)
{
	const struct spokei_http_response response = {
		.status = 200,
		.type = "text/javascript; charset=utf-8",
		.len = spokei_comet_script_len,
		.foreign = spokei_comet_of(http)->with.origins[0] != '\0',
	};

	if (spokei_http_respond(http, &response, spokei_comet_script))
		spokei_http_close(http);
}

/* Makes a connection of the gateway's own; NULL: it is closed. */
struct spokei_comet_conn *spokei_comet_detach(struct spokei_http_conn *http,
					      enum spoke_comet_kind kind,
					      struct spokei_comet_user *user)
{
	const struct spokei_comet_door *door = spokei_http_user(http);
	void *seat = door->seat;
	const uint16_t origin = door->origin;
	struct spokei_comet_conn *conn;
	int fd = spokei_http_detach(http);

	if (fd < 0) {
		spokei_http_close(http);
		return NULL;
	}
	conn = spokei_comet_open(spokei_comet_of(http), kind, user, fd, seat);
	if (conn)
		conn->origin = origin;
	return conn;
}

/* Answers with a head that response.h does not write, and ends. */
void spokei_comet_respond_raw(struct spokei_http_conn *http, const char *head)
{
	struct spokei_comet_conn *conn = spokei_comet_detach(http, SPOKE_COMET_EVENTS,
							     spokei_comet_of(http)->nobody);

	char bytes[SPOKEI_COMET_HEAD + SPOKEI_COMET_CORS];
	char cors[SPOKEI_COMET_CORS];
	int len;

	if (conn == NULL)
		return;
	len = snprintf(bytes, sizeof(bytes), "%s%s\r\n", head,
		       spokei_comet_cors(conn->user->comet, conn->origin, cors));
	spokei_comet_end(conn, bytes, (size_t)len);
}

/* The document may run scripts, unlike other responses. */
int spokei_comet_make_page(struct spoke_comet *comet)
{
	const char *page = comet->with.page;
	const size_t len = page ? strlen(page) : 0;

	comet->with.page = NULL;
	if (page == NULL)
		return SPOKE_OK;
	if (len > PAGE_MAX) {
		spokei_event(comet->engine, SPOKE_EINVAL,
			     "option page of the gateway: at most 1048576 bytes");
		return SPOKE_EINVAL;
	}
	comet->page_size = PAGE_HEAD + len + 1;
	comet->page = spokei_alloc(comet->engine->env, 1, comet->page_size);
	if (comet->page == NULL)
		return SPOKE_ENOMEM;
	(void)snprintf(comet->page, comet->page_size,
		       "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nCache-Control: no-store\r\n"
		       "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
		       "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n%s",
		       len, page);
	return SPOKE_OK;
}

void spokei_comet_respond_page(struct spokei_http_conn *http)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
	struct spokei_comet_conn *conn = spokei_comet_detach(http, SPOKE_COMET_EVENTS,
							     comet->nobody);

	if (conn)
		spokei_comet_end(conn, comet->page, strlen(comet->page));
}

size_t spokei_comet_print_upgrade(const char *key, char *head)
{
	const struct spokei_upgrade upgrade = { .key = { key, SPOKEI_COMET_KEY } };

	return spokei_upgrade_head(&upgrade, NULL, head);
}

/* Refuses a WebSocket. Pages see a close code, but no status of HTTP. */
void spokei_comet_refuse_socket(struct spokei_http_conn *http, const char *key, unsigned code,
				const char *reason)
{
	struct spokei_comet_conn *conn = spokei_comet_detach(http, SPOKE_COMET_SOCKET,
							     spokei_comet_of(http)->nobody);
	char bytes[SPOKEI_COMET_HEAD + 2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	size_t len;

	if (conn == NULL)
		return;
	len = spokei_comet_print_upgrade(key, bytes);
	len += spokei_websocket_close(code, reason, (unsigned char *)bytes + len);
	spokei_comet_end(conn, bytes, len);
}

/* Tells a client to come again, later than usual, with the id that it has. An EventSource comes
 * again after status 200 only. */
void spokei_comet_come_again(struct spokei_http_conn *http, const struct spokei_comet_ask *ask)
{
	const struct spoke_comet *comet = spokei_comet_of(http);
	const uint64_t max_ns = comet->with.retry_max_ns;
	unsigned retry_ms = (unsigned)(spokei_comet_dice(comet, max_ns, 2 * max_ns) / NS_PER_MS);
	char text[128];

	switch ((enum spoke_comet_kind)ask->kind) {
	case SPOKE_COMET_EVENTS:
		spokei_comet_respond(http, SPOKEI_SSE_TYPE, text,
				     (size_t)snprintf(text, sizeof(text), "retry: %u\n\n",
						      retry_ms));
		break;
	case SPOKE_COMET_SOCKET:
		(void)snprintf(text, sizeof(text), "retry=%u", retry_ms);
		spokei_comet_refuse_socket(http, ask->key, SPOKEI_WEBSOCKET_LATER, text);
		break;
	case SPOKE_COMET_POLL:
		spokei_comet_respond(http, "application/json", text,
				     (size_t)snprintf(text, sizeof(text),
						      "{\"last\":\"%s\",\"retry\":%u,\"again\":%u}",
						      ask->last, spokei_comet_retry(comet),
						      retry_ms));
		break;
	case SPOKE_COMET_SEND:
		spokei_comet_respond_text(http, 503, NULL, "Try again later.");
		break;
	}
}
