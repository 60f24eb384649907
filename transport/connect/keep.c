/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps an address connected. Each step ends in exactly one of: a connection that will report its
 * end, a name being resolved, a backoff with the timer set, or closed.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/parts.h"
#include "transport/stream/greet.h"

#include <spoke/link.h>

#include <errno.h>

#define ADDRESS_TEXT 160u
/* How often a timer that only reserves its place is armed again. */
#define REST_NS UINT64_C(3600000000000)

/* --- backoff */

static void wait_for_next(struct spokei_connector *connector, int error)
{
	const struct spoke_env *env = connector->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	connector->pause_ns = spokei_backoff_pause(&connector->backoff, connector->failures, dice);
	if (connector->failures < UINT32_MAX)
		connector->failures++;
	spokei_count(connector->engine, SPOKE_STAT_RECONNECTS);
	spokei_connector_set_timer(connector, connector->pause_ns);
	spokei_connector_tell(connector, SPOKEI_CONNECTOR_WAITING, error);
	if (connector->state == SPOKEI_CONNECTOR_WAITING && !connector->young)
		spokei_connector_announce_pause(connector);
}

/* --- a connection for the attempts */

static const struct spokei_conn_up conn_up;

static void nobody_changed(void *arg, struct spokei_conn *conn, int error)
{
	(void)arg;
	(void)conn;
	(void)error;
}

static void nobody_signs(void *arg, struct spokei_conn *conn, enum spokei_link_event event)
{
	(void)arg;
	(void)conn;
	(void)event;
}

/* Ends a connection that never opened: its calls end, and nothing is reported. */
static const struct spokei_conn_up nobody = { .changed = nobody_changed, .event = nobody_signs };

static void end_round(struct spokei_connector *connector, int error)
{
	struct spokei_conn *conn = connector->conn;

	connector->conn = NULL;
	conn->up = &nobody;
	spokei_conn_close(conn, error);
	wait_for_next(connector, error);
}

/* Makes a connection at which calls wait while it is being opened. */
static bool make_conn(struct spokei_connector *connector)
{
	int error = spokei_conn_new(connector->link, connector->wire, &conn_up, connector,
				    &connector->conn);

	connector->heard = false;
	if (error == 0)
		connector->conn->stream.host = connector->place.host;
	if (error == 0 && connector->profile) {
		connector->conn->profile = connector->profile;
		connector->conn->profile_id = connector->profile->id;
		connector->conn->heartbeat_ns = connector->profile->heartbeat_ns;
		spokei_engine_note_interval(connector->engine, connector->profile->heartbeat_ns);
	}
	if (error == 0)
		return true;
	connector->conn = NULL;
	spokei_connector_complain(connector, error, "no memory for the connection");
	wait_for_next(connector, error);
	return false;
}

/* --- a round */

static void try_all(struct spokei_connector *connector)
{
	if (spokei_connector_try_next(connector))
		spokei_connector_tell(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
	else
		end_round(connector, SPOKE_ECONNECT);
}

static void complain_of_name(struct spokei_connector *connector, int status)
{
	spokei_count(connector->engine, SPOKE_STAT_RESOLVES_FAILED);
	/* The system's sentences for these are about files. */
	if (status == -ENOENT)
		spokei_connector_complain(connector, SPOKE_ERESOLVE, "there is no such host name");
	else if (status == -EAGAIN)
		spokei_connector_complain(connector, SPOKE_ERESOLVE,
					  "the name cannot be resolved now");
	else
		spokei_connector_complain_of_system(connector, SPOKE_ERESOLVE, status);
}

static void resolve_failed(struct spokei_connector *connector, int status)
{
	complain_of_name(connector, status);
	end_round(connector, SPOKE_ERESOLVE);
}

static void connector_bury(struct spokei_task *task)
{
	struct spokei_connector *connector = spoke_container_of(task, struct spokei_connector,
								bury);

	spokei_greeting_free(connector->engine->env, connector->greeting);
	spokei_free(connector->engine->env, connector, 1, sizeof(*connector));
}

/* Closed. Returns whether the memory is still needed by a pending event. */
static void bury_if_alone(struct spokei_connector *connector)
{
	if (connector->conn == NULL && !connector->resolve.resolving)
		spokei_engine_dead(connector->engine, &connector->bury);
}

static void round_resolved(struct spokei_resolve *resolve, int status)
{
	struct spokei_connector *connector = spoke_container_of(resolve, struct spokei_connector,
								resolve);

	if (connector->state == SPOKEI_CONNECTOR_CLOSED)
		bury_if_alone(connector);
	else if (status)
		resolve_failed(connector, status);
	else
		try_all(connector);
}

/* Goes to the addresses of the place, with a connection that has no descriptor. */
static void resolve(struct spokei_connector *connector)
{
	int status = spokei_resolve_begin(&connector->resolve);

	if (status == SPOKEI_RESOLVE_MORE)
		spokei_connector_tell(connector, SPOKEI_CONNECTOR_RESOLVING, SPOKE_OK);
	else if (status)
		resolve_failed(connector, status);
	else
		try_all(connector);
}

static void begin_round(struct spokei_connector *connector)
{
	if (!make_conn(connector))
		return;
	if (spokei_connector_try_path(connector))
		spokei_connector_tell(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
	else
		resolve(connector);
}

/* --- events of a connection */

/* TCP may connect a socket to itself if the port is free for clients and has no listener. */
static bool leads_to_itself(const struct spokei_conn *conn)
{
	const struct spoke_env *env = conn->link->engine->env;
	int fd = conn->stream.watch.fd;
	struct spoke_address local;
	struct spoke_address peer;

	/* A broken connection has no addresses, and reports its end itself. */
	if (env->net->local(env->ctx, fd, &local) != 0 || env->net->peer(env->ctx, fd, &peer) != 0)
		return false;
	return local.len == peer.len && memcmp(local.bytes, peer.bytes, local.len) == 0;
}

static void attempt_opened(struct spokei_connector *connector)
{
	struct spoke_engine *engine = connector->engine;
	struct spoke_link_event news = { .change = SPOKE_LINK_CONNECTED };
	const char *waits = "";
	char text[ADDRESS_TEXT];

	if (leads_to_itself(connector->conn)) {
		spokei_count(engine, SPOKE_STAT_CONNECTS_SELF);
		spokei_count(engine, SPOKE_STAT_CONNECTS_FAILED);
		spokei_connector_complain(connector, SPOKE_ESELF, "no listener there");
		spokei_conn_close(connector->conn, SPOKE_ESELF);
		return;
	}
	spokei_count(engine, SPOKE_STAT_CONNECTED);
	if (connector->by_path) {
		connector->path_failed = false;
		spokei_count(engine, SPOKE_STAT_CONNECTED_LOCAL);
	}
	spokei_connector_print(connector, connector->conn, text, sizeof(text));
	if (spokei_connector_on_probation(connector)) {
		connector->conn->doubted = true;
		spokei_count(engine, SPOKE_STAT_PROBATIONS);
		news.change = SPOKE_LINK_PROBATION;
		news.user = SPOKE_EVENT_OF_HEARTBEAT;
		waits = "; it was silent before, and has to answer first";
	}
	if (strcmp(text, connector->place.name) == 0)
		spokei_event_of(engine, news.user, SPOKE_OK, "connected to %s%s",
				spokei_connector_shown(text), waits);
	else
		spokei_event_of(engine, news.user, SPOKE_OK, "connected to %s at %s%s",
				spokei_connector_shown(connector->place.name),
				spokei_connector_shown(text), waits);
	spokei_connector_tell(connector, SPOKEI_CONNECTOR_OPEN, SPOKE_OK);
	if (connector->state == SPOKEI_CONNECTOR_OPEN)
		(void)spokei_connector_announce(connector, &news);
}

/* The path failed; calls that wait at the connection go on to the addresses of the place. Returns
 * whether there is one, or may be one. */
static bool path_failed(struct spokei_connector *connector, struct spokei_conn *conn, int status)
{
	enum spokei_connector_state next = SPOKEI_CONNECTOR_CONNECTING;

	spokei_connector_complain_of_path(connector, status);
	connector->by_path = false;
	status = spokei_resolve_begin(&connector->resolve);
	if (status < 0) {
		complain_of_name(connector, status);
		conn->error = SPOKE_ERESOLVE;
		return false;
	}
	if (status == SPOKEI_RESOLVE_MORE)
		next = SPOKEI_CONNECTOR_RESOLVING;
	else if (!spokei_connector_try_next(connector))
		return false;
	spokei_connector_tell(connector, next, SPOKE_OK);
	return true;
}

/* One address failed; calls that wait at the connection may go on to the next address. */
static bool conn_failed(void *arg, struct spokei_conn *conn, int status)
{
	struct spokei_connector *connector = arg;

	spokei_count(connector->engine, SPOKE_STAT_CONNECTS_FAILED);
	if (connector->by_path)
		return path_failed(connector, conn, status);
	if (conn->error == SPOKE_EHANDSHAKE)
		spokei_connector_complain_of_stream(connector, conn);
	else if (status != -ETIME) /* see connector_due() */
		spokei_connector_complain_of_system(connector, SPOKE_ECONNECT, status);
	if (!spokei_connector_try_next(connector))
		return false;
	spokei_connector_tell(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
	return true;
}

/* An open connection has ended, and its calls, too. The other addresses are for the next one. */
static void go_on(struct spokei_connector *connector, int error)
{
	bool by_path = connector->by_path;

	connector->by_path = false;
	if (!by_path && connector->resolve.left == 0) {
		wait_for_next(connector, error);
		return;
	}
	if (!make_conn(connector))
		return;
	if (by_path)
		resolve(connector);
	else
		try_all(connector);
}

/* Returns whether the backoff starts again. A peer that drains, or that breaks the protocol on each
 * connection, must not be connected to again and again without a growing pause. A connection that
 * was open for long has worked; without heartbeats its peer may have sent nothing before a call. */
static bool has_worked(const struct spokei_connector *connector, const struct spokei_conn *conn,
		       int error)
{
	uint64_t open_ns = connector->engine->begin_ns - conn->born_ns;

	if (connector->heard && error != SPOKE_EPROTOCOL && !conn->readonly)
		return true;
	return (connector->heard || !connector->wire->probes) &&
	       open_ns >= connector->backoff.cap_ns;
}

static void connection_lost(struct spokei_connector *connector, const struct spokei_conn *conn,
			    int error)
{
	struct spoke_link_event news = { .change = SPOKE_LINK_CLOSED, .error = error };

	if (spokei_conn_suspect(conn) || error == SPOKE_ESILENT)
		connector->suspected = true;
	connector->shuns_path = connector->by_path && conn->heard < SPOKEI_HEARD_ANSWER;
	if (has_worked(connector, conn, error))
		connector->failures = 0;
	if (error == SPOKE_ESILENT)
		news.user = SPOKE_EVENT_OF_HEARTBEAT;
	spokei_connector_report_loss(connector, conn, &news);
	if (conn->foreign)
		news.reason = connector->reason + connector->reason_at;
	if (error == SPOKE_EHANDSHAKE)
		spokei_connector_complain_of_stream(connector, conn);
	if (!spokei_connector_announce(connector, &news))
		return;
	if (connector->retired)
		spokei_connector_tell(connector, SPOKEI_CONNECTOR_DONE, error);
	else if (connector->heard)
		wait_for_next(connector, error);
	else
		go_on(connector, error);
}

static void conn_changed(void *arg, struct spokei_conn *conn, int error)
{
	struct spokei_connector *connector = arg;
	bool was_open = connector->state == SPOKEI_CONNECTOR_OPEN;

	if (conn->state == SPOKEI_CONN_OPEN) {
		attempt_opened(connector);
		return;
	}
	connector->conn = NULL;
	if (connector->state == SPOKEI_CONNECTOR_CLOSED)
		bury_if_alone(connector);
	else if (was_open)
		connection_lost(connector, conn, error);
	else if (error == SPOKE_ESELF)
		go_on(connector, error);
	else
		wait_for_next(connector, error);
}

static void conn_event(void *arg, struct spokei_conn *conn, enum spokei_link_event event)
{
	struct spokei_connector *connector = arg;
	struct spoke_link_event readonly = { .change = SPOKE_LINK_READONLY };

	switch (event) {
	case SPOKEI_LINK_EVENT_HEARD:
		spokei_connector_heard(connector);
		return;
	case SPOKEI_LINK_EVENT_ANSWERED:
		spokei_connector_answered(connector);
		return;
	case SPOKEI_LINK_EVENT_MISSED:
		spokei_connector_missed(connector, conn->idle.misses);
		return;
	case SPOKEI_LINK_EVENT_READONLY:
		(void)spokei_connector_announce(connector, &readonly);
		return;
	case SPOKEI_LINK_EVENT_TRUSTED:
		spokei_connector_recovered(connector, SPOKE_EVENT_OF_HEARTBEAT);
		return;
	case SPOKEI_LINK_EVENT_WRITABLE:
		spokei_connector_recovered(connector, SPOKE_EVENT_OF_NONE);
		return;
	}
}

static const struct spokei_conn_up conn_up = {
	.changed = conn_changed,
	.event = conn_event,
	.failed = conn_failed,
};

static void connector_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_connector *connector = spoke_container_of(timer, struct spokei_connector,
								timer);

	(void)arg;
	spokei_connector_set_timer(connector, REST_NS);
	if (connector->state == SPOKEI_CONNECTOR_WAITING) {
		begin_round(connector);
	} else if (connector->state == SPOKEI_CONNECTOR_CONNECTING &&
		   spokei_conn_is_opening(connector->conn)) {
		int status = -ETIMEDOUT;

		if (!connector->by_path) {
			spokei_connector_complain_of_time(connector);
			status = -ETIME; /* it is reported */
		}
		spokei_conn_give_up(connector->conn, status);
	}
}

/* --- life */

/* Prepares a place over whose socket memory is shared. */
static int share_place(struct spokei_connector *connector)
{
	const char *why = NULL;

	spokei_place_share(&connector->place);
	if (connector->engine->env->net->share == NULL)
		why = "shared memory is not available in this environment";
	else if (connector->link->stream->veiled)
		why = "shared memory has no TLS; use unix: with TLS, or set tls = off";
	if (why == NULL)
		return SPOKE_OK;
	spokei_event(connector->engine, SPOKE_EUNSUPPORTED, "cannot connect to %s: %s",
		     spokei_connector_shown(connector->place.name), why);
	return SPOKE_EUNSUPPORTED;
}

static int set_times(struct spokei_connector *connector,
		     const struct spokei_connector_options *options)
{
	const struct spokei_backoff *backoff = &options->backoff;

	connector->connect_ns = options->connect_ns ? options->connect_ns : SPOKEI_CONNECT_NS;
	connector->backoff.first_ns = backoff->first_ns ? backoff->first_ns
							: SPOKEI_BACKOFF_FIRST_NS;
	connector->backoff.cap_ns = backoff->cap_ns ? backoff->cap_ns : SPOKEI_BACKOFF_CAP_NS;
	if (connector->connect_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS ||
	    connector->backoff.first_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS ||
	    connector->backoff.cap_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS)
		return SPOKE_EINVAL;
	return SPOKE_OK;
}

int spokei_connector_new(struct spokei_link *link, const struct spokei_connector_options *options,
			 const struct spokei_connector_up *up, void *up_arg,
			 struct spokei_connector **ret_connector)
{
	struct spoke_engine *engine = link->engine;
	struct spokei_connector *connector = spokei_alloc(engine->env, 1, sizeof(*connector));
	int error;

	if (connector == NULL)
		return SPOKE_ENOMEM;
	connector->engine = engine;
	connector->link = link;
	connector->up = up;
	connector->up_arg = up_arg;
	connector->wire = options->wire;
	connector->profile = options->profile;
	connector->news.run = spokei_connector_news;
	connector->bury.run = connector_bury;
	spokei_resolve_init(&connector->resolve, engine, &connector->place, round_resolved);
	error = spokei_place_set(&connector->place, engine->env, options->host, options->port,
				 options->path);
	if (!error && options->shm)
		error = share_place(connector);
	if (!error)
		error = spokei_connector_set_path(connector, options->local);
	if (!error)
		error = set_times(connector, options);
	if (!error)
		error = spokei_engine_class(engine, "connector", connector_due,
					    &connector->timer_class);
	if (!error)
		error = spokei_connector_arm(connector, REST_NS);
	if (error) {
		spokei_greeting_free(engine->env, connector->greeting);
		spokei_free(engine->env, connector, 1, sizeof(*connector));
		return error;
	}
	connector->young = true;
	begin_round(connector);
	connector->young = false;
	*ret_connector = connector;
	return SPOKE_OK;
}

void spokei_connector_free(struct spokei_connector *connector)
{
	if (connector == NULL || connector->state == SPOKEI_CONNECTOR_CLOSED)
		return;
	connector->state = SPOKEI_CONNECTOR_CLOSED;
	(void)spoke_wheel_cancel(connector->engine->wheel, &connector->timer);
	spokei_task_drop(&connector->news);
	if (connector->conn)
		spokei_conn_close(connector->conn, SPOKE_ECLOSED);
	bury_if_alone(connector);
}

bool spokei_connector_retire(struct spokei_connector *connector)
{
	if (connector->state != SPOKEI_CONNECTOR_OPEN || connector->conn == NULL)
		return false;
	connector->retired = true;
	spokei_conn_finish(connector->conn);
	return true;
}
