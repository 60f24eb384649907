/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a provider: accepts them, serves their requests, reports their changes to its
 * user and as events, gives them the names by which users know its peers, and pushes to these. */
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/provider.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/access_log.h"
#include "cluster/serve/request.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/memory/slab.h"
#include "core/value/builder.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

#include <spoke/provider.h>

#define ADDRESS_TEXT 160u
#define EVENTS 10u /* events per second */
#define PEERS_MAX (UINT32_MAX / 2)

/* --- requests */

static SPOKEI_NOINLINE void serve_another(struct spoke_provider *provider, struct spokei_conn *conn,
					  const struct spokei_message *message)
{
	const struct spokei_route *route = spokei_request_route(provider->services, conn, message);

	if (route)
		spokei_request_run(route, provider->filters, conn, message, &provider->spare);
}

static void serve(void *arg, struct spokei_conn *conn, const struct spokei_message *message)
{
	struct spoke_provider *provider = arg;

	if (SPOKEI_LIKELY(conn->found))
		spokei_request_run(conn->found, provider->filters, conn, message, &provider->spare);
	else
		serve_another(provider, conn, message);
}

/* Callers that have to prove something, or are on a list, learn nothing here: browsers ask without
 * credentials. */
static bool is_unsafe(void *arg, struct spokei_conn *conn, const struct spokei_message *message)
{
	struct spoke_provider *provider = arg;

	return !conn->unproven && provider->access->callers == NULL &&
	       spokei_request_is_unsafe(provider->services, message);
}

static void note_unread(void *arg, struct spokei_conn *conn)
{
	const struct spoke_provider *provider = arg;

	spokei_access_note_unread(provider->access, conn);
}

static void note_refused(void *arg, struct spokei_conn *conn, const struct spokei_message *message,
			 int error)
{
	const struct spoke_provider *provider = arg;

	if (provider->access_log)
		spokei_access_log_refused(provider->access_log, conn, message, error);
}

/* --- peers
 *
 * Connections on which the peer has sent something, by the names that users know.
 */

struct peer {
	struct spokei_conn *conn;
};

/* Gives a connection its name. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
static int add_peer(struct spoke_provider *provider, struct spokei_conn *conn)
{
	struct peer *peer;
	void *cell;
	int error = spokei_slab_take(provider->peers, &cell, &conn->handle);

	if (error)
		return error;
	peer = cell;
	peer->conn = conn;
	return SPOKE_OK;
}

/* Takes the name of a closed connection back, if it has one. */
static void drop_peer(struct spoke_provider *provider, struct spokei_conn *conn)
{
	if (conn->handle)
		spokei_slab_give(provider->peers, conn->handle);
	conn->handle = 0;
}

/* Returns the connection of a name; NULL: it is gone. A closed connection keeps its name until its
 * end is reported. */
static struct spokei_conn *conn_of(const struct spoke_provider *provider, struct spoke_peer named)
{
	const struct peer *peer;

	if (spokei_engine_elsewhere(provider->engine))
		return NULL;
	peer = spokei_slab_get(provider->peers, named.handle);
	return peer ? peer->conn : NULL;
}

/* Returns whether a push can be sent on the connection. */
static bool is_ready(const struct spokei_conn *conn)
{
	return conn->handle != 0 && conn->state == SPOKEI_CONN_OPEN &&
	       !spokei_conn_unwritable(conn) && !conn->readonly && !conn->unproven;
}

size_t spoke_provider_connections(const struct spoke_provider *provider)
{
	return provider->link->conn_count;
}

size_t spoke_provider_peers(const struct spoke_provider *provider, struct spoke_peer *peers,
			    size_t max)
{
	const struct spoke_list *conns = &provider->link->conns;
	size_t count = 0;

	if (spokei_engine_elsewhere(provider->engine))
		return 0;
	for (struct spoke_list *node = conns->next; node != conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		if (!is_ready(conn))
			continue;
		if (count < max)
			peers[count].handle = conn->handle;
		count++;
	}
	return count;
}

void spokei_peer_look(const struct spokei_conn *conn, struct spoke_peer_info *ret_info)
{
	const struct spoke_env *env = conn->link->engine->env;

	*ret_info = (struct spoke_peer_info){
		.readonly = conn->readonly,
		.missed = conn->idle.misses,
		.in_flight = conn->serving_count,
		.heard_ns = spokei_conn_quiet_ns(conn),
		.tls = spokei_stream_look(&conn->stream, NULL),
	};
	env->net->print(env->ctx, &conn->peer, ret_info->name, sizeof(ret_info->name));
}

bool spoke_provider_peer(const struct spoke_provider *provider, struct spoke_peer peer,
			 struct spoke_peer_info *ret_info)
{
	const struct spokei_conn *conn = conn_of(provider, peer);

	if (conn == NULL)
		return false;
	spokei_engine_refresh(provider->engine);
	spokei_peer_look(conn, ret_info);
	return true;
}

size_t spoke_peer_print(const struct spoke_provider *provider, struct spoke_peer peer, char *text,
			size_t size)
{
	const struct spoke_env *env = provider->engine->env;
	const struct spokei_conn *conn = conn_of(provider, peer);

	if (conn == NULL || size == 0)
		return 0;
	env->net->print(env->ctx, &conn->peer, text, size);
	return strlen(text);
}

/* --- events */

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

/* Reports a change of a connection on which the peer has sent something: as an event of the engine,
 * unless there were many in this second, and to the user's callback. May free anything. */
static void report(struct spoke_provider *provider, const struct spokei_conn *conn,
		   const struct spoke_link_event *event)
{
	struct spoke_engine *engine = provider->engine;
	struct spoke_link_event reported = *event;
	char name[ADDRESS_TEXT];

	engine->env->net->print(engine->env->ctx, &conn->peer, name, sizeof(name));
	if (is_reported_here(event) &&
	    spokei_bucket_take(&provider->event_limit, 1, engine->begin_ns))
		note(engine, name, conn, event);
	if (provider->changed == NULL || provider->freed)
		return;
	reported.name = name;
	reported.peer.handle = conn->handle;
	provider->changed(provider->changed_arg, &reported);
}

static void conn_event(void *arg, struct spokei_conn *conn, enum spokei_link_event kind)
{
	struct spoke_link_event event = { .change = SPOKE_LINK_RECOVERED };

	switch (kind) {
	case SPOKEI_LINK_EVENT_ANSWERED:
	case SPOKEI_LINK_EVENT_NAMED:
		return;
	case SPOKEI_LINK_EVENT_HEARD:
		if (add_peer(arg, conn)) {
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
			return;
		}
		event.change = SPOKE_LINK_CONNECTED;
		/* The connection was accepted as the drain began. */
		if (((struct spoke_provider *)arg)->draining)
			spokei_conn_finish(conn);
		else if (((struct spoke_provider *)arg)->offline)
			spokei_conn_tell(conn, true);
		break;
	case SPOKEI_LINK_EVENT_MISSED:
		event.change = SPOKE_LINK_SUSPECT;
		event.user = SPOKE_EVENT_OF_HEARTBEAT;
		event.missed = conn->idle.misses;
		break;
	case SPOKEI_LINK_EVENT_READONLY:
		event.change = SPOKE_LINK_READONLY;
		break;
	case SPOKEI_LINK_EVENT_TRUSTED:
	case SPOKEI_LINK_EVENT_WRITABLE:
		if (spokei_conn_suspect(conn) || conn->readonly)
			return;
		if (kind == SPOKEI_LINK_EVENT_TRUSTED)
			event.user = SPOKE_EVENT_OF_HEARTBEAT;
		spokei_count(conn->link->engine, SPOKE_STAT_RECOVERED);
		break;
	}
	report(arg, conn, &event);
}

static void conn_changed(void *arg, struct spokei_conn *conn, int error)
{
	struct spoke_provider *provider = arg;
	const struct spoke_link_event closed = {
		.change = SPOKE_LINK_CLOSED,
		.user = error == SPOKE_ESILENT ? SPOKE_EVENT_OF_HEARTBEAT : SPOKE_EVENT_OF_NONE,
		.error = error,
	};

	if (error == SPOKE_OK)
		return;
	if (!conn->left)
		spokei_listen_group_left(provider->listeners, conn->quota_peer);
	if (conn->handle)
		report(provider, conn, &closed);
	drop_peer(provider, conn);
	if (provider->draining && spokei_list_empty(&provider->link->conns))
		spokei_provider_end(provider);
}

static const struct spokei_conn_up conn_up = {
	.changed = conn_changed,
	.event = conn_event,
};

/* --- accepting */

static const struct spokei_stream_kind *stream_of(const struct spoke_provider *provider,
						  unsigned marks)
{
	if (marks & SPOKEI_LISTENER_SHM)
		return &spokei_stream_shm;
	if (provider->tls == NULL)
		return NULL;
	if (marks & SPOKEI_PROVIDER_TLS_OR_PLAIN)
		return spokei_tls_or_plain(provider->tls);
	return marks & SPOKEI_PROVIDER_TLS ? spokei_tls_kind(provider->tls) : NULL;
}

/* Serves a connection that the listeners accepted. Is a spokei_accept. */
static void accept_conn(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_provider *provider = arg;
	struct spokei_quota_peer *quota_peer = spokei_listen_group_peer(provider->listeners, peer);
	struct spokei_conn *conn;

	const struct spokei_arrival arrival = {
		.fd = fd,
		.peer = peer,
		.http = marks & SPOKEI_PROVIDER_HTTP,
		.stream = stream_of(provider, marks),
		.local = marks & SPOKEI_PROVIDER_UNIX,
		.quota_peer = quota_peer,
	};

	/* A provider that has joined shares the address, but has no certificate: it never speaks
	 * plain bytes there. */
	if (marks & (SPOKEI_PROVIDER_TLS | SPOKEI_PROVIDER_TLS_OR_PLAIN) && provider->tls == NULL) {
		provider->engine->env->net->close(provider->engine->env->ctx, fd);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED_HANDSHAKE);
		spokei_listen_group_left(provider->listeners, quota_peer);
		return;
	}
	if (spokei_conn_accept(provider->link, &arrival, &conn_up, provider, &conn)) {
		/* The listener has counted the connection as accepted. */
		spokei_count(provider->engine, SPOKE_STAT_CLOSED);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED_MEMORY);
		spokei_listen_group_left(provider->listeners, quota_peer);
	}
}

/* Is a spokei_make_room. */
static bool make_room(void *arg)
{
	struct spoke_provider *provider = arg;
	struct spokei_conn *conn = spokei_link_make_room(provider->link);

	if (conn == NULL)
		return false;
	conn->left = true;
	spokei_listen_group_left(provider->listeners, conn->quota_peer);
	return true;
}

int spokei_provider_open(struct spoke_provider *provider)
{
	struct spoke_engine *engine = provider->engine;
	struct spokei_link *link = provider->link;
	const struct spokei_listen_options listen = {
		.limits = provider->settings->connections,
		.accept = accept_conn,
		.make_room = make_room,
		.arg = provider,
		.events = &provider->event_limit,
	};
	int error = spokei_link_init(link, engine, &provider->settings->limits);

	if (error)
		return error;
	link->serve = serve;
	link->serve_arg = provider;
	link->is_unsafe = is_unsafe;
	link->unread = note_unread;
	link->refused = note_refused;
	provider->event_limit = spokei_bucket_make(EVENTS, EVENTS,
						   engine->env->now(engine->env->ctx));
	spokei_slab_init(provider->peers, engine->env, sizeof(struct peer), PEERS_MAX);
	error = spokei_listen_group_new(engine, &listen, &provider->listeners);
	if (error)
		spokei_link_fini(link);
	return error;
}

/* --- pushes */

/* The link hands requests to its provider, and pushes take the same link. */
static const struct spoke_provider *provider_of(const struct spoke_method *method)
{
	return method->caller->link->serve_arg;
}

int spoke_provider_method(struct spoke_provider *provider, const char *name,
			  const struct spoke_method_options *options,
			  struct spoke_method **ret_method)
{
	struct spokei_method_presets presets = {
		.service = "",
		.version = "",
		.group = "",
		.advice = "set it in the options",
		.settings.timeout_ns = SPOKEI_TIMEOUT_NS,
	};

	if (options && options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	if (options && options->timeout_ns)
		presets.settings.timeout_ns = options->timeout_ns;

	return spokei_method_new(provider->caller, name, options, &presets, ret_method);
}

static int prepare_push(const struct spoke_method *method, struct spoke_span values,
			const struct spoke_call_options *options, struct spokei_call_args *ret)
{
	if (!method->caller->pushes || options->lease.leases)
		return SPOKE_EINVAL;
	return spokei_call_prepare(method, values, options, ret);
}

static int begin_push(struct spoke_method *method, struct spokei_conn *conn,
		      const struct spokei_call_args *args, struct spokei_call **ret_call)
{
	int error;

	conn->profile_id = conn->asked_codec; /* the same as the consumer uses */
	error = spokei_call_begin(method, conn, args, ret_call);
	if (error == SPOKE_OK)
		spokei_count(method->caller->engine, SPOKE_STAT_PUSHES);
	return error;
}

static int take_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span values,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_call_args args;
	int error = prepare_push(method, values, options, &args);
	struct spokei_conn *conn;

	if (error)
		return error;
	conn = conn_of(provider_of(method), peer);
	if (conn == NULL)
		return SPOKE_EUNAVAILABLE;
	return begin_push(method, conn, &args, ret_call);
}

/* Has the parameters of spoke_call(), and the peer. */
/* NOLINTNEXTLINE(readability-function-size) */
int spoke_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_call *call = NULL;
	int error;

	options = options ? options : &defaults;
	error = take_push(method, peer, args, options, &call);
	if (error)
		return spokei_limits_refuse(method, error, args.len);
	return spokei_call_taken(call, done, arg, ret_call);
}

/* No callback is called meanwhile. A connection may be closed as it writes, and leaves the list. */
static size_t push_to_all(struct spoke_method *method, const struct spokei_call_args *args)
{
	struct spoke_list *conns = &method->caller->link->conns;
	size_t count = 0;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);
		struct spokei_call *call;

		node = node->next;
		if (!is_ready(conn))
			continue;
		if (begin_push(method, conn, args, &call)) {
			spokei_figures_count(method->figures, SPOKE_STAT_CALLS_REFUSED);
			continue;
		}
		call->done = NULL;
		count++;
	}
	return count;
}

int spoke_push_all(struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options, size_t *ret_count)
{
	struct spoke_call_options with = { 0 };
	struct spokei_call_args prepared;
	size_t count;
	int error;

	if (options)
		with = *options;
	with.one_way = true;
	error = prepare_push(method, args, &with, &prepared);
	if (error)
		return spokei_limits_refuse(method, error, args.len);
	count = push_to_all(method, &prepared);
	if (ret_count)
		*ret_count = count;
	return SPOKE_OK;
}

int spoke_push_with(struct spoke_method *method, struct spoke_peer peer, struct spoke_args args,
		    spoke_call_done_fn done, void *arg)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_push(method, peer, packed.values, NULL, done, arg, NULL);
	spokei_packed_free(&packed);
	return error;
}

int spoke_push_all_with(struct spoke_method *method, struct spoke_args args, size_t *ret_count)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_push_all(method, packed.values, NULL, ret_count);
	spokei_packed_free(&packed);
	return error;
}

bool spoke_push_cancel(struct spoke_provider *provider, struct spoke_call push)
{
	return spokei_call_cancel(provider->caller, push);
}
