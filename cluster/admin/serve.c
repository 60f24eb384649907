/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to be asked for, and what the answers are made of. */
#include "cluster/admin/admin_parts.h"
#include "cluster/admin/page.h"
#include "core/text/json.h"
#include "transport/http/guard.h"
#include "transport/http/response.h"

#define HTML "text/html; charset=utf-8"
#define JSON "application/json; charset=utf-8"
#define METRICS "text/plain; version=0.0.4; charset=utf-8"
#define EVENTS "text/event-stream"
#define READERS "GET, HEAD"
#define ACT "/act/"
#define MARK_MAX 16u /* bytes between the two @ of a mark */

/* A place that can be read. Makes its body, in admin->body. */
struct place {
	const char *path;
	const char *type;
	int (*write)(struct spoke_admin *admin, const char *nonce);
	bool has_nonce;
};

struct spokei_status_of spokei_admin_status_of(const struct spoke_admin *admin,
					       uint64_t events_from, uint64_t history_from)
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

/* --- the page */

static int write_escaped_status(struct spoke_admin *admin)
{
	const struct spokei_status_of of = spokei_admin_status_of(admin, 0, 0);
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, admin->engine->env, SPOKEI_ADMIN_OUT_MAX / 8);
	error = spokei_status_write_text(admin->engine, &of, &text);
	if (error == SPOKE_OK)
		error = spokei_answer_escape(&admin->body, spokei_buffer_data(&text),
					     spokei_buffer_len(&text));
	spokei_buffer_fini(&text);
	return error;
}

static int write_mark(struct spoke_admin *admin, const char *name, size_t len, const char *nonce)
{
	if (len == 5 && memcmp(name, "NONCE", 5) == 0)
		return spokei_buffer_append(&admin->body, nonce, strlen(nonce));
	if (len == 4 && memcmp(name, "NAME", 4) == 0)
		return spokei_answer_escape(&admin->body, admin->name, strlen(admin->name));
	if (len == 6 && memcmp(name, "STATUS", 6) == 0)
		return write_escaped_status(admin);
	return SPOKE_ENOENT;
}

/* The name of a mark: capital letters between two @. 0: this is none. */
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

static int write_status(struct spoke_admin *admin, const char *nonce)
{
	const struct spokei_status_of of = spokei_admin_status_of(admin, 0, 0);
	int error = spokei_status_write(admin->engine, &of, &admin->body);

	(void)nonce;
	return error ? error : spokei_buffer_append(&admin->body, "\n", 1);
}

static int write_metrics(struct spoke_admin *admin, const char *nonce)
{
	const struct spokei_status_of of = spokei_admin_status_of(admin, 0, 0);

	(void)nonce;
	return spokei_metrics_write(admin->engine, &of, &admin->body);
}

/* What a new stream is told: when to try again if it breaks, and all there is. */
static int write_events(struct spoke_admin *admin, const char *nonce)
{
	static const char begin[] = "retry: 1000\n\ndata: ";
	int error = spokei_buffer_append(&admin->body, begin, sizeof(begin) - 1);

	if (error == SPOKE_OK)
		error = write_status(admin, nonce);
	return error ? error : spokei_buffer_append(&admin->body, "\n", 1);
}

/* Of the actions: their names and sentences. */
static int write_actions(struct spoke_admin *admin, const char *nonce)
{
	struct spokei_json json = spokei_json_make(&admin->body);

	(void)nonce;
	spokei_json_open(&json, '[');
	for (size_t i = 0; i < admin->action_count; i++) {
		spokei_json_open(&json, '{');
		spokei_json_put_text(&json, "name", admin->actions[i].name);
		spokei_json_put_text(&json, "sentence", admin->actions[i].sentence);
		spokei_json_close(&json, '}');
	}
	spokei_json_close(&json, ']');
	return json.error ? json.error : spokei_buffer_append(&admin->body, "\n", 1);
}

static const struct place places[] = {
	{ "/", HTML, write_page, true },
	{ "/status", JSON, write_status, false },
	{ "/metrics", METRICS, write_metrics, false },
	{ "/events", EVENTS, write_events, false },
};
static const struct place actions_place = { "/act", JSON, write_actions, false };

static void make_nonce(const struct spoke_env *env, char nonce[SPOKEI_ANSWER_NONCE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char dice[(SPOKEI_ANSWER_NONCE - 1) / 2];

	env->dice(env->ctx, dice, sizeof(dice));
	for (size_t i = 0; i < sizeof(dice); i++) {
		nonce[2 * i] = digits[dice[i] >> 4];
		nonce[2 * i + 1] = digits[dice[i] & 15];
	}
	nonce[SPOKEI_ANSWER_NONCE - 1] = '\0';
}

static bool is(struct spoke_span path, const char *text)
{
	return path.len == strlen(text) && memcmp(path.data, text, path.len) == 0;
}

static const struct place *find_place(struct spoke_span path)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (is(path, places[i].path))
			return &places[i];
	}
	return is(path, actions_place.path) ? &actions_place : NULL;
}

/* The body is made first: its length goes into the head. */
static int answer_place(struct spokei_viewer *viewer, const struct place *place, bool head_only)
{
	struct spoke_admin *admin = viewer->admin;
	char nonce[SPOKEI_ANSWER_NONCE];
	bool streams = place->write == write_events;
	struct spokei_answer answer = { .status = 200, .type = place->type };
	int error;

	make_nonce(admin->engine->env, nonce);
	spokei_buffer_init(&admin->body, admin->engine->env, SPOKEI_ADMIN_OUT_MAX / 2);
	error = place->write(admin, nonce);
	answer.len = streams ? SPOKEI_ANSWER_STREAM : spokei_buffer_len(&admin->body);
	answer.nonce = place->has_nonce ? nonce : NULL;
	if (error == SPOKE_OK)
		error = spokei_answer_head(&viewer->out, &answer);
	if (error == SPOKE_OK && !head_only)
		error = spokei_buffer_append(&viewer->out, spokei_buffer_data(&admin->body),
					     spokei_buffer_len(&admin->body));
	spokei_buffer_fini(&admin->body);
	if (error == SPOKE_OK && streams && !head_only) {
		viewer->state = SPOKEI_VIEWER_STREAMING;
		viewer->events_from = admin->engine->events.last + 1;
		viewer->history_from = admin->history.count;
	}
	return error;
}

static int answer_text(struct spokei_viewer *viewer, int status, const char *allow,
		       const char *sentence, bool head_only)
{
	int error = spokei_answer_text(&viewer->out, status, allow, sentence, head_only);

	if (error)
		spokei_buffer_truncate(&viewer->out, 0);
	return error;
}

static int answer_action(struct spokei_viewer *viewer, struct spoke_span name)
{
	const struct spoke_admin *admin = viewer->admin;

	for (size_t i = 0; i < admin->action_count; i++) {
		if (is(name, admin->actions[i].name)) {
			viewer->action = &admin->actions[i];
			return answer_text(viewer, 202, NULL, viewer->action->sentence, false);
		}
	}
	return answer_text(viewer, 404, NULL,
			   "There is no such action; GET /act, with the token, names them.", false);
}

/* May this visitor see and do what is done by the token? If not, it is told why. */
static bool is_trusted(struct spokei_viewer *viewer, const struct spokei_http_request *request,
		       int *ret_error)
{
	bool head_only = request->method == SPOKEI_HTTP_HEAD;

	if (!spokei_guard_origin(request->origin, request->host)) {
		*ret_error = answer_text(viewer, 403, NULL,
					 "Pages of other origins may do nothing here.", head_only);
		return false;
	}
	if (!spokei_guard_token(request->authorization, viewer->admin->token)) {
		*ret_error = answer_text(viewer, 401, NULL,
					 "This takes the token: \"Authorization: Bearer TOKEN\", "
					 "as the program that shows this page has printed it.",
					 head_only);
		return false;
	}
	return true;
}

static int serve_action(struct spokei_viewer *viewer, const struct spokei_http_request *request)
{
	const size_t prefix = sizeof(ACT) - 1;
	struct spoke_span name = { (const char *)request->path.data + prefix,
				   request->path.len - prefix };
	int error;

	if (request->method != SPOKEI_HTTP_POST) {
		return answer_text(viewer, 405, "POST", "Actions are done by POST alone.",
				   request->method == SPOKEI_HTTP_HEAD);
	}
	return is_trusted(viewer, request, &error) ? answer_action(viewer, name) : error;
}

static bool begins_with(struct spoke_span path, const char *text)
{
	return path.len >= strlen(text) && memcmp(path.data, text, strlen(text)) == 0;
}

/* Whose name it was asked under: see guard.h. */
static bool is_ours(const struct spokei_viewer *viewer, struct spoke_span host)
{
	const struct spoke_admin *admin = viewer->admin;
	const struct spoke_env *env = admin->engine->env;
	struct spoke_address address;
	char local[SPOKEI_ADMIN_ADDRESS];

	if (env->net->local(env->ctx, viewer->stream.watch.fd, &address))
		return spokei_guard_host(host, admin->address, admin->hosts);
	env->net->print(env->ctx, &address, local, sizeof(local));
	return spokei_guard_host(host, local, admin->hosts);
}

/* Streams last; a quarter of all places is left for who asks and goes. */
static bool has_room_for_stream(const struct spoke_admin *admin)
{
	const struct spoke_list *viewers = &admin->viewers;
	uint32_t streams = 0;

	for (struct spoke_list *node = viewers->next; node != viewers; node = node->next)
		streams += spoke_container_of(node, struct spokei_viewer, node)->state ==
			   SPOKEI_VIEWER_STREAMING;
	return streams < admin->viewers_max - admin->viewers_max / 4;
}

int spokei_admin_serve(struct spokei_viewer *viewer, const struct spokei_http_request *request)
{
	bool head_only = request->method == SPOKEI_HTTP_HEAD;
	const struct place *place;
	int error;

	if (!is_ours(viewer, request->host)) {
		return answer_text(viewer, 421, NULL,
				   "This page answers under localhost, its address in digits and "
				   "the names in its option hosts, against names that lead here "
				   "from elsewhere.",
				   head_only);
	}
	if (begins_with(request->path, ACT))
		return serve_action(viewer, request);
	place = find_place(request->path);
	if (place == NULL) {
		return answer_text(viewer, 404, NULL,
				   "There are / /status /metrics /events, and POST /act/NAME.",
				   head_only);
	}
	if (request->method != SPOKEI_HTTP_GET && !head_only)
		return answer_text(viewer, 405, READERS, "This is there to be read.", false);
	if (place->write == write_events && !has_room_for_stream(viewer->admin)) {
		return answer_text(viewer, 503, NULL,
				   "As many watch the stream as may, see the option viewers_max.",
				   head_only);
	}
	if (place == &actions_place && !is_trusted(viewer, request, &error))
		return error;
	error = answer_place(viewer, place, head_only);
	if (error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(&viewer->out, 0);
	return answer_text(viewer, 503, NULL, "There is no memory for this now.", head_only);
}

static const char *fault(int status)
{
	switch (status) {
	case 408:
		return "A request has to be complete within 5 s.";
	case 413:
		return "A body has at most 1,024 bytes here.";
	case 414:
		return "A request line has at most 2,048 bytes here.";
	case 431:
		return "A head has at most 8,192 bytes here.";
	case 501:
		return "A Transfer-Encoding is not taken here; send a Content-Length.";
	case 505:
		return "This is HTTP/1.1.";
	default:
		return "That was no request of HTTP/1.1.";
	}
}

int spokei_admin_refuse(struct spokei_viewer *viewer, int status, bool head_only)
{
	return answer_text(viewer, status, NULL, fault(status), head_only);
}
