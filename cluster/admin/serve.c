/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the requests for the page: its paths, their bodies, streams, actions and probes. */
#include "cluster/admin/members.h"
#include "cluster/admin/page.h"
#include "cluster/admin/parts.h"
#include "cluster/admin/settings.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/info.h"
#include "cluster/provider/provider.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/json/document.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"
#include "transport/http/response.h"

#include <stdio.h>

#define HTML "text/html; charset=utf-8"
#define JSON "application/json; charset=utf-8"
#define METRICS "text/plain; version=0.0.4; charset=utf-8"
#define EVENTS "text/event-stream"
#define READERS "GET, HEAD"
#define ACT "/act/"
#define MARK_MAX 16u /* bytes between the two @ of a mark */

/* A path that can be read. */
struct resource {
	const char *path;
	const char *type;                                           /* of the body */
	int (*write)(struct spoke_admin *admin, const char *nonce); /* writes admin->body */
	bool has_nonce;
};

/* --- the page */

static int write_mark(struct spoke_admin *admin, const char *name, size_t len, const char *nonce)
{
	if (len == 5 && memcmp(name, "NONCE", 5) == 0)
		return spokei_buffer_append(&admin->body, nonce, strlen(nonce));
	if (len == 4 && memcmp(name, "NAME", 4) == 0)
		return spokei_http_escape(&admin->body, admin->name, strlen(admin->name));
	return SPOKE_ENOENT;
}

/* Returns the length of a mark's name, capital letters between two @; 0 if this is not a mark. */
static size_t mark_len(const unsigned char *at, const unsigned char *end)
{
	size_t len = 0;

	while (at + len < end && at[len] >= 'A' && at[len] <= 'Z' && len < MARK_MAX)
		len++;
	return at + len < end && at[len] == '@' ? len : 0;
}

static int write_page(struct spoke_admin *admin, const char *nonce)
{
	const unsigned char *from = spokei_page;
	const unsigned char *end = spokei_page + spokei_page_len;
	const unsigned char *at = from;

	while ((at = memchr(at, '@', (size_t)(end - at))) != NULL) {
		size_t len = mark_len(at + 1, end);
		int error;

		if (len == 0) {
			at++;
			continue;
		}
		error = spokei_buffer_append(&admin->body, from, (size_t)(at - from));
		if (error == SPOKE_OK)
			error = write_mark(admin, (const char *)at + 1, len, nonce);
		if (error)
			return error;
		at += len + 2;
		from = at;
	}
	return spokei_buffer_append(&admin->body, from, (size_t)(end - from));
}

/* --- the rest */

/* Describes the page, for a status from these events and samples on. */
static struct spokei_status_of status_of(const struct spoke_admin *admin, uint64_t events_from,
					 uint64_t history_from)
{
	return (struct spokei_status_of){
		.name = admin->name,
		.number = admin->number,
		.born_ns = admin->born_ns,
		.history = &admin->history,
		.history_from = history_from,
		.events_from = events_from,
	};
}

static int write_status(struct spoke_admin *admin, const char *nonce)
{
	const struct spokei_status_of of = status_of(admin, 0, 0);
	int error = spokei_status_write(admin->engine, &of, &admin->body);

	(void)nonce;
	return error ? error : spokei_buffer_append(&admin->body, "\n", 1);
}

static int write_metrics(struct spoke_admin *admin, const char *nonce)
{
	const struct spokei_status_of of = status_of(admin, 0, 0);

	(void)nonce;
	return spokei_metrics_write(admin->engine, &of, &admin->body);
}

static int write_settings(struct spoke_admin *admin, const char *nonce)
{
	int error = spokei_admin_settings_write(admin->engine, &admin->body);

	(void)nonce;
	return error ? error : spokei_buffer_append(&admin->body, "\n", 1);
}

/* Begins a stream: the delay before a reconnect, and the complete status. */
static int write_events(struct spoke_admin *admin, const char *nonce)
{
	static const char begin[] = "retry: 1000\n\ndata: ";
	int error = spokei_buffer_append(&admin->body, begin, sizeof(begin) - 1);

	if (error == SPOKE_OK)
		error = write_status(admin, nonce);
	return error ? error : spokei_buffer_append(&admin->body, "\n", 1);
}

static void step_all(const struct spoke_admin *admin, bool away)
{
	struct spokei_member *member = NULL;

	while ((member = spokei_members_next(admin->engine, spokei_provider_kind, member)) != NULL)
		spokei_provider_step(member, away);
}

static void act_offline(void *arg)
{
	step_all(arg, true);
}

static void act_online(void *arg)
{
	step_all(arg, false);
}

void spokei_admin_add_own(struct spoke_admin *admin)
{
	static const struct spoke_admin_action own[SPOKEI_ADMIN_OWN_ACTIONS] = {
		{ "offline", "Step aside: consumers prefer other providers", act_offline, NULL },
		{ "online", "Come back: consumers use this provider again", act_online, NULL },
	};
	const size_t given = admin->action_count;

	for (size_t i = 0; i < SPOKEI_ADMIN_OWN_ACTIONS; i++) {
		struct spoke_admin_action *next = &admin->actions[admin->action_count];
		size_t same = 0;

		while (same < given && strcmp(admin->actions[same].name, own[i].name) != 0)
			same++;
		if (same < given)
			continue;
		*next = own[i];
		next->arg = admin;
		admin->action_count++;
	}
}

/* Actions of spoke itself are for the engine's providers, so a page without any has none. */
static bool is_offered(const struct spoke_admin *admin, const struct spoke_admin_action *action)
{
	return action->arg != admin ||
	       spokei_members_next(admin->engine, spokei_provider_kind, NULL) != NULL;
}

/* Lists the names and sentences of the actions. */
static int write_actions(struct spoke_admin *admin, const char *nonce)
{
	struct spokei_json json = spokei_json_make(&admin->body);

	(void)nonce;
	spokei_json_open(&json, '[');
	for (size_t i = 0; i < admin->action_count; i++) {
		if (!is_offered(admin, &admin->actions[i]))
			continue;
		spokei_json_open(&json, '{');
		spokei_json_put_text(&json, "name", admin->actions[i].name);
		spokei_json_put_text(&json, "sentence", admin->actions[i].sentence);
		spokei_json_close(&json, '}');
	}
	spokei_json_close(&json, ']');
	return json.error ? json.error : spokei_buffer_append(&admin->body, "\n", 1);
}

static const struct resource resources[] = {
	{ "/", HTML, write_page, true },
	{ "/status", JSON, write_status, false },
	{ "/metrics", METRICS, write_metrics, false },
	{ "/settings", JSON, write_settings, false },
	{ "/events", EVENTS, write_events, false },
};
static const struct resource actions_resource = { "/act", JSON, write_actions, false };

static const struct resource *find_resource(struct spoke_span path)
{
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (spokei_span_is(path, resources[i].path))
			return &resources[i];
	}
	return spokei_span_is(path, actions_resource.path) ? &actions_resource : NULL;
}

/* --- streams: twice a second, one document with all that is new is written to all of them. The
 * timer for it runs while there are streams. */

/* Finds the first event and sample that some idle stream has not had. Returns false if no stream is
 * idle. */
static bool find_unsent(const struct spoke_admin *admin, uint64_t *ret_events,
			uint64_t *ret_history)
{
	struct spokei_http_conn *conn = NULL;
	bool any = false;

	*ret_events = UINT64_MAX;
	*ret_history = UINT64_MAX;
	while ((conn = spokei_http_next_stream(&admin->http, conn)) != NULL) {
		const struct spokei_viewer *viewer = spokei_http_user(conn);

		if (!spokei_http_idle(conn))
			continue;
		any = true;
		if (viewer->events_from < *ret_events)
			*ret_events = viewer->events_from;
		if (viewer->history_from < *ret_history)
			*ret_history = viewer->history_from;
	}
	return any;
}

static int write_document(struct spoke_admin *admin, uint64_t events_from, uint64_t history_from)
{
	const struct spokei_status_of of = status_of(admin, events_from, history_from);
	int error;

	spokei_buffer_truncate(&admin->document, 0);
	error = spokei_buffer_append(&admin->document, "data: ", 6);
	if (error == SPOKE_OK)
		error = spokei_status_write(admin->engine, &of, &admin->document);
	return error ? error : spokei_buffer_append(&admin->document, "\n\n", 2);
}

/* Notes that a stream has received everything up to now. */
static void note_sent(struct spokei_http_conn *conn)
{
	const struct spoke_admin *admin = spokei_admin_of(conn);
	struct spokei_viewer *viewer = spokei_http_user(conn);

	viewer->events_from = admin->engine->events.last + 1;
	viewer->history_from = admin->history.count;
}

static void write_to_streams(struct spoke_admin *admin)
{
	struct spokei_http_conn *next = spokei_http_next_stream(&admin->http, NULL);
	struct spokei_http_conn *conn;

	while ((conn = next) != NULL) {
		next = spokei_http_next_stream(&admin->http, conn);
		if (!spokei_http_idle(conn))
			continue;
		note_sent(conn);
		if (spokei_http_send(conn, spokei_buffer_data(&admin->document),
				     spokei_buffer_len(&admin->document)))
			spokei_http_close(conn);
	}
}

static void close_streams(struct spoke_admin *admin)
{
	struct spokei_http_conn *conn;

	while ((conn = spokei_http_next_stream(&admin->http, NULL)) != NULL)
		spokei_http_close(conn);
}

/* Arms admin->tick if there are streams, else cancels it. Call it when a stream begins or ends.
 * Closes the streams if the wheel has no room for the timer. */
static void watch_streams(struct spoke_admin *admin)
{
	if (admin->closed)
		return;
	if (admin->http.stream_count == 0) {
		(void)spoke_wheel_cancel(admin->engine->wheel, &admin->tick.timer);
		spokei_buffer_fini(&admin->document);
	} else if (!spoke_timer_armed(&admin->tick.timer) &&
		   !spokei_admin_arm(admin, &admin->tick, SPOKEI_ADMIN_TICK_NS)) {
		close_streams(admin);
	}
}

/* A stream whose output still waits is left out. A later tick writes all that it has missed.
 */
void spokei_admin_tick(struct spokei_admin_timer *timer)
{
	struct spoke_admin *admin = spoke_container_of(timer, struct spoke_admin, tick);
	uint64_t events_from;
	uint64_t history_from;

	if (find_unsent(admin, &events_from, &history_from) &&
	    write_document(admin, events_from, history_from) == SPOKE_OK)
		write_to_streams(admin);
	watch_streams(admin);
}

/* --- responses */

/* The body is made first, because its length is part of the head. */
static int respond_resource(struct spokei_http_conn *conn, const struct resource *resource)
{
	struct spoke_admin *admin = spokei_admin_of(conn);
	struct spokei_http_response response = { .status = 200, .type = resource->type };
	char nonce[SPOKEI_HTTP_NONCE];
	const void *body;
	int error;

	spokei_http_make_nonce(admin->engine->env, nonce);
	response.nonce = resource->has_nonce ? nonce : NULL;
	spokei_buffer_init(&admin->body, admin->engine->env, SPOKEI_ADMIN_BODY_MAX);
	error = resource->write(admin, nonce);
	response.len = spokei_buffer_len(&admin->body);
	body = spokei_buffer_data(&admin->body);
	if (error == SPOKE_OK && resource->write == write_events)
		error = spokei_http_stream(conn, &response, body);
	else if (error == SPOKE_OK)
		error = spokei_http_respond(conn, &response, body);
	spokei_buffer_fini(&admin->body);
	return error;
}

static void serve_resource(struct spokei_http_conn *conn, const struct resource *resource)
{
	if (respond_resource(conn, resource)) {
		spokei_http_respond_text(conn, 503, NULL,
					 "There is not enough memory for this response.");
		return;
	}
	if (!spokei_http_streams(conn))
		return;
	note_sent(conn);
	watch_streams(spokei_admin_of(conn));
}

/* Does the request not come from a page of another origin? If it does, responds with the reason. */
static bool is_of_this_origin(struct spokei_http_conn *conn,
			      const struct spokei_http_request *request)
{
	if (spokei_guard_origin(request->origin, request->host))
		return true;
	spokei_http_respond_text(conn, 403, NULL, "Pages of other origins are not allowed here.");
	return false;
}

/* Has the request the token, too? If not, responds with the reason. */
static bool is_trusted(struct spokei_http_conn *conn, const struct spokei_http_request *request)
{
	if (!is_of_this_origin(conn, request))
		return false;
	if (!spokei_guard_token(request->authorization, spokei_admin_of(conn)->token)) {
		spokei_http_respond_text(
			conn, 401, NULL,
			"This requires \"Authorization: Bearer TOKEN\", with the page's token: "
			"that of the file admin.token.file, or else of spoke_admin_token().");
		return false;
	}
	return true;
}

/* May the request read? A client that has proven a name by its certificate needs no token. */
static bool may_read(struct spokei_http_conn *conn, const struct spokei_http_request *request)
{
	if (!spokei_admin_of(conn)->token_reads)
		return true;
	if (spokei_http_is_known(conn))
		return is_of_this_origin(conn, request);
	return is_trusted(conn, request);
}

static void serve_action(struct spokei_http_conn *conn, const struct spokei_http_request *request)
{
	const struct spoke_admin *admin = spokei_admin_of(conn);
	struct spokei_viewer *viewer = spokei_http_user(conn);
	const size_t prefix = sizeof(ACT) - 1;
	struct spoke_span name = { (const char *)request->path.data + prefix,
				   request->path.len - prefix };

	if (request->method != SPOKEI_HTTP_POST) {
		spokei_http_respond_text(conn, 405, "POST", "Actions require POST.");
		return;
	}
	if (!is_trusted(conn, request))
		return;
	for (size_t i = 0; i < admin->action_count; i++) {
		if (spokei_span_is(name, admin->actions[i].name) &&
		    is_offered(admin, &admin->actions[i])) {
			viewer->action = &admin->actions[i];
			spokei_http_respond_text(conn, 202, NULL, viewer->action->sentence);
			return;
		}
	}
	spokei_http_respond_text(conn, 404, NULL,
				 "There is no such action; GET /act with the token lists them.");
}

/* Is the Host header one of this page's names? See guard.h. */
static bool is_ours(const struct spokei_http_conn *conn, struct spoke_span host)
{
	const struct spoke_admin *admin = spokei_admin_of(conn);
	char local[SPOKEI_HTTP_ADDRESS];
	bool known = spokei_http_local(conn, local);

	return spokei_guard_host(host, known ? local : admin->address, admin->hosts);
}

/* Streams last, so a quarter of the connections is kept for other requests. */
static bool has_room_for_stream(const struct spoke_admin *admin)
{
	return admin->http.stream_count < admin->viewers_max - admin->viewers_max / 4;
}

/* --- probes, of load balancers and supervisors */

#define LIVE "/live"
#define READY "/ready"
#define READY_CONSUMERS "/ready/consumers"
#define WHY 256u /* bytes of a reason, with the NUL */

/* Returns whether a call could be sent now. An endpoint that sleeps is connected by the next call,
 * so it counts like a ready one. */
static bool has_endpoint(const struct spoke_consumer *consumer)
{
	const struct spokei_directory *directory = spokei_consumer_look(consumer).directory;
	const struct spokei_candidates *candidates = &directory->candidates;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		if (candidates->endpoints[i]->asleep)
			return true;
	}
	return spokei_directory_ready(directory) > 0;
}

static bool check_providers(const struct spoke_engine *engine, char why[WHY])
{
	struct spokei_member *member = NULL;

	for (unsigned at = 1;
	     (member = spokei_members_next(engine, spokei_provider_kind, member)) != NULL; at++) {
		const struct spokei_provider_view view = spokei_provider_look(
			spokei_provider_of(member));

		const char *state = view.addresses == 0 ? "does not listen" : NULL;

		if (view.offline)
			state = view.draining ? "drains" : "is offline";
		if (state) {
			(void)snprintf(why, WHY, "provider %u %s", at, state);
			return false;
		}
	}
	return true;
}

static bool check_consumers(const struct spoke_engine *engine, char why[WHY])
{
	struct spokei_member *member = NULL;

	for (unsigned at = 1;
	     (member = spokei_members_next(engine, spokei_consumer_kind, member)) != NULL; at++) {
		const struct spoke_consumer *consumer = spokei_consumer_of(member);
		const char *service = spokei_consumer_look(consumer).service;
		char shown[WHY / 2];

		if (has_endpoint(consumer))
			continue;
		(void)spokei_log_escape_end(shown, sizeof(shown), service, strlen(service));
		(void)snprintf(why, WHY, "consumer %u (%s) has no ready endpoint", at, shown);
		return false;
	}
	return true;
}

/*
 * Returns whether requests may be sent to this process: the engine does not drain, and each of its
 * providers listens and is online. `with_consumers`: also each consumer has an endpoint that is
 * ready, or that the next call connects. If not, writes the first reason to `why`.
 */
static bool is_ready(const struct spoke_engine *engine, bool with_consumers, char why[WHY])
{
	if (spokei_engine_ending(engine)) {
		(void)snprintf(why, WHY, "the engine drains");
		return false;
	}
	return check_providers(engine, why) && (!with_consumers || check_consumers(engine, why));
}

static bool is_probe(struct spoke_span path)
{
	return spokei_span_is(path, LIVE) || spokei_span_is(path, READY) ||
	       spokei_span_is(path, READY_CONSUMERS);
}

/* An engine that answers is alive. */
static void serve_probe(struct spokei_http_conn *conn, struct spoke_span path)
{
	const struct spoke_engine *engine = spokei_admin_of(conn)->engine;
	char why[WHY];

	if (spokei_span_is(path, LIVE))
		spokei_http_respond_text(conn, 200, NULL, "alive");
	else if (is_ready(engine, spokei_span_is(path, READY_CONSUMERS), why))
		spokei_http_respond_text(conn, 200, NULL, "ready");
	else
		spokei_http_respond_text(conn, 503, NULL, why);
}

/* --- connections */

/* Counts a viewer. Returns false if there are too many. */
static bool note_viewer(struct spokei_http_conn *conn)
{
	struct spoke_admin *admin = spokei_admin_of(conn);
	struct spokei_viewer *viewer = spokei_http_user(conn);

	if (admin->viewers >= admin->viewers_max)
		return false;
	admin->viewers++;
	viewer->views = true;
	return true;
}

static void viewer_request(struct spokei_http_conn *conn, const struct spokei_http_request *request)
{
	const struct resource *resource = find_resource(request->path);

	/* A response would keep a connection that is for probes. */
	if (!is_probe(request->path) && !note_viewer(conn)) {
		spokei_http_close(conn);
	} else if (!is_ours(conn, request->host)) {
		spokei_http_respond_text(
			conn, 421, NULL,
			"This page is served under localhost, its numeric address, and the names "
			"in the option hosts; other names are rejected because they could "
			"belong to another site.");
	} else if (spokei_span_begins(request->path, ACT)) {
		serve_action(conn, request);
	} else if (resource == NULL && !is_probe(request->path)) {
		spokei_http_respond_text(
			conn, 404, NULL,
			"The paths are / /status /settings /metrics /events /live /ready "
			"/ready/consumers, and POST /act/NAME.");
	} else if (request->method != SPOKEI_HTTP_GET && request->method != SPOKEI_HTTP_HEAD) {
		spokei_http_respond_text(conn, 405, READERS, "This path can only be read.");
	} else if (resource == NULL) {
		serve_probe(conn, request->path);
	} else if (resource->write == write_events && !has_room_for_stream(spokei_admin_of(conn))) {
		spokei_http_respond_text(
			conn, 503, NULL,
			"The limit of streams is reached; see the option viewers_max.");
	} else if (resource == &actions_resource ? is_trusted(conn, request)
						 : may_read(conn, request)) {
		serve_resource(conn, resource);
	}
}

static void forget_viewer(struct spokei_http_conn *conn)
{
	struct spokei_viewer *viewer = spokei_http_user(conn);

	spokei_admin_of(conn)->viewers -= viewer->views;
	viewer->views = false;
}

/* Runs the action that was requested. It may free anything. A connection that lingers gives way to
 * any other, so it keeps no viewer out. */
static void viewer_sent(struct spokei_http_conn *conn)
{
	struct spokei_viewer *viewer = spokei_http_user(conn);
	const struct spoke_admin *admin = spokei_admin_of(conn);
	const struct spoke_admin_action *action = viewer->action;
	char peer[SPOKEI_HTTP_ADDRESS];

	forget_viewer(conn);
	viewer->action = NULL;
	if (action == NULL)
		return;
	spokei_http_peer(conn, peer);
	spokei_event(admin->engine, SPOKE_OK, "admin: running action \"%s\" for %s", action->name,
		     peer);
	action->act(action->arg);
}

static void viewer_closed(struct spokei_http_conn *conn)
{
	struct spoke_admin *admin = spokei_admin_of(conn);
	const struct spokei_viewer *viewer = spokei_http_user(conn);

	spokei_quota_leave(&admin->quota, viewer->quota_peer);
	forget_viewer(conn);
	if (admin->http.stream_count == 0)
		watch_streams(admin);
}

const struct spokei_http_up spokei_admin_up = {
	.user_size = sizeof(struct spokei_viewer),
	.title = "page: ",
	.request = viewer_request,
	.sent = viewer_sent,
	.closed = viewer_closed,
};
