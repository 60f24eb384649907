/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps an address connected. Each step ends in exactly one of: a connection that will report its
 * end, a name being resolved, a backoff with the timer set, or closed. Reports its state, changes
 * and failures to its owner, to users and as events.
 */
#include "transport/connect/connector.h"

#include "core/base/address.h"
#include "core/base/env.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/dialer.h"
#include "transport/stream/greet.h"

#include <spoke/link.h>
#include <spoke/stats.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REASON_TEXT 160u
#define ADDRESS_TEXT 160u
#define QUESTION "; does it expect TLS (tls=on here), or deny this host?"
/* Connections in a row that a peer which has spoken before must leave unheard: a provider that
 * shuts down may end new ones for some seconds, and that is no question of TLS. */
#define UNHEARD_MAX 10u
#define NAME_TEXT 16u /* bytes of the name of an error, in brackets */
#define NS_PER_MS UINT64_C(1000000)
#define PATH_NS UINT64_C(500000000) /* longest wait for an answer on this host */

struct spokei_connector {
	struct spoke_engine *engine;
	struct spokei_link *link; /* not used after close: its owner may be gone */
	const struct spokei_connector_up *up;
	void *up_arg;
	const struct spokei_wire *wire;
	const struct spokei_connector_profile *profile; /* NULL: the default */
	uint64_t connect_ns;
	enum spokei_connector_state state;
	int error;                /* for reports */
	struct spokei_conn *conn; /* until it has reported its end */
	uint32_t unheard;         /* connections in a row that a known peer ended unheard */
	bool young;               /* inside new(): nothing is reported */
	bool heard;               /* the peer of this connection has sent a message */
	bool acquainted;          /* ... or the peer of one before */
	bool suspected;           /* the last peer was silent, and none has answered since */
	bool retired;             /* makes no new connections */
	bool logged;              /* this series of failures was logged */
	bool hinted;              /* ... with the question whether the peer expects TLS */
	bool by_path;             /* the present attempt or connection leads to `local` */
	bool path_failed;         /* ... the last attempt of that kind has failed, and was logged */
	bool shuns_path;          /* ... the last connection of that kind has brought no answer */
	char reason[SPOKEI_CONNECTOR_REASON]; /* place, and why the last attempt failed; "": none */
	uint32_t reason_at;                   /* where the text behind the place begins */
	struct spokei_dialer dialer;
	/* A path of the same peer on this host, and the first bytes sent there; NULL: none. */
	struct spoke_address *local;
	struct spokei_greeting *greeting;
	struct spokei_task news; /* reports changes made inside new() */
	struct spokei_task end;  /* frees it */
};

/* Returns the subsystem to which a reconnect is attributed. */
static inline enum spoke_event_user user_of(const struct spokei_connector *connector)
{
	return connector->suspected ? SPOKE_EVENT_OF_HEARTBEAT : SPOKE_EVENT_OF_NONE;
}

/* --- state and grade */

static bool on_probation(const struct spokei_connector *connector)
{
	return connector->suspected && connector->wire->probes;
}

enum spokei_connector_state spokei_connector_state(const struct spokei_connector *connector)
{
	return connector->state;
}

struct spokei_conn *spokei_connector_conn(const struct spokei_connector *connector)
{
	struct spokei_conn *conn = connector->conn;

	if (conn == NULL || connector->state == SPOKEI_CONNECTOR_CLOSED)
		return NULL;
	if (conn->state <= SPOKEI_CONN_OPEN)
		return conn;
	return NULL;
}

enum spokei_grade spokei_connector_grade(const struct spokei_connector *connector)
{
	const struct spokei_conn *conn = spokei_connector_conn(connector);

	if (conn == NULL || spokei_conn_unwritable(conn) || conn->away)
		return SPOKEI_GRADE_NONE;
	if (spokei_conn_is_opening(conn))
		return SPOKEI_GRADE_CONNECTING;
	if (SPOKEI_UNLIKELY(on_probation(connector)))
		return SPOKEI_GRADE_PROBATION;
	return SPOKEI_UNLIKELY(spokei_conn_suspect(conn)) ? SPOKEI_GRADE_SUSPECT
							  : SPOKEI_GRADE_READY;
}

bool spokei_connector_is_local(const struct spokei_connector *connector)
{
	return connector->by_path && connector->state == SPOKEI_CONNECTOR_OPEN;
}

const char *spokei_connector_name(const struct spokei_connector *connector)
{
	return connector->dialer.place.name;
}

/* The calls of a connection whose handshake was refused late end before it is reported. */
const char *spokei_connector_reason(const struct spokei_connector *connector)
{
	const struct spokei_conn *conn = connector->conn;
	const char *why = NULL;

	if (conn && conn->state == SPOKEI_CONN_CLOSED && conn->error == SPOKE_EHANDSHAKE)
		why = spokei_stream_why(&conn->stream);
	return why ? why : connector->reason;
}

static void print_peer(const struct spokei_connector *connector, const struct spokei_conn *conn,
		       char *text, size_t size)
{
	const struct spoke_env *env = connector->engine->env;

	env->net->print(env->ctx, &conn->peer, text, size);
	if (connector->dialer.place.shm && !connector->by_path)
		spokei_address_share(text);
}

/* --- to the owner and to users */

static void set_state(struct spokei_connector *connector, enum spokei_connector_state state,
		      int error)
{
	connector->state = state;
	connector->error = error;
	if (connector->young) {
		spokei_run_soon(connector->engine, &connector->news);
		return;
	}
	spokei_task_drop(&connector->news);
	connector->up->changed(connector->up_arg, connector, error);
}

static bool report(struct spokei_connector *connector, struct spoke_link_event *event)
{
	event->name = connector->dialer.place.name;
	event->reason = event->reason ? event->reason : "";
	if (connector->up->event)
		connector->up->event(connector->up_arg, event);
	return connector->state != SPOKEI_CONNECTOR_CLOSED;
}

static void report_pause(struct spokei_connector *connector)
{
	struct spoke_link_event event = {
		.change = SPOKE_LINK_RECONNECTING,
		.user = user_of(connector),
		.error = connector->error,
		.reason = connector->reason + connector->reason_at,
		.attempt = connector->dialer.failures,
		.pause_ns = connector->dialer.pause_ns,
	};

	(void)report(connector, &event);
}

static void report_state(struct spokei_task *task)
{
	struct spokei_connector *connector = spoke_container_of(task, struct spokei_connector,
								news);

	connector->up->changed(connector->up_arg, connector, connector->error);
	if (connector->state == SPOKEI_CONNECTOR_WAITING)
		report_pause(connector);
}

/* Keeps why there is no connection, for the calls that fail until the peer has sent a message. */
static void set_reason(struct spokei_connector *connector, const char *text)
{
	connector->reason_at = (uint32_t)snprintf(connector->reason, sizeof(connector->reason),
						  "%s: ",
						  spokei_place_shown(connector->dialer.place.name));
	(void)snprintf(connector->reason + connector->reason_at,
		       sizeof(connector->reason) - connector->reason_at, "%s", text);
}

SPOKEI_PRINTF(3, 4)
static void log_failure(struct spokei_connector *connector, int error, const char *format, ...)
{
	char text[REASON_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	set_reason(connector, text);
	if (connector->logged)
		return;
	connector->logged = true;
	spokei_event(connector->engine, error, "cannot connect to %s: %s",
		     spokei_place_shown(connector->dialer.place.name), text);
}

/* Returns the name of a system error that users look for; NULL for others. */
static const char *name_of(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ ETIMEDOUT, "ETIMEDOUT" },
		{ EHOSTUNREACH, "EHOSTUNREACH" },
		{ ENETUNREACH, "ENETUNREACH" },
		{ ECONNRESET, "ECONNRESET" },
		{ ENOENT, "ENOENT" },
		{ EACCES, "EACCES" },
		{ EMFILE, "EMFILE" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

/* Writes the system's sentence about a negative errno, and its name. */
static void print_status(int status, char *text, size_t size)
{
	const char *name = name_of(-status);
	char sentence[SPOKEI_STATUS_TEXT];

	(void)snprintf(text, size, "%s%s%s%s", spokei_status_text(status, sentence),
		       name ? " (" : "", name ? name : "", name ? ")" : "");
}

static void log_status(struct spokei_connector *connector, int error, int status)
{
	char text[REASON_TEXT + NAME_TEXT];

	print_status(status, text, sizeof(text));
	log_failure(connector, error, "%s", text);
}

static void log_path(struct spokei_connector *connector, int status)
{
	const struct spoke_env *env = connector->engine->env;
	char path[SPOKEI_PLACE_SHOWN];
	char text[REASON_TEXT + NAME_TEXT];

	spokei_count(connector->engine, SPOKE_STAT_LOCAL_FAILED);
	if (connector->path_failed)
		return;
	connector->path_failed = true;
	env->net->print(env->ctx, connector->local, path, sizeof(path));
	if (status == -EPROTO)
		(void)snprintf(text, sizeof(text), "another protocol is spoken there");
	else
		print_status(status, text, sizeof(text));
	spokei_event(connector->engine, SPOKE_ECONNECT, "cannot connect to %s at %s: %s; uses TCP",
		     spokei_place_shown(connector->dialer.place.name), path, text);
}

static void log_stream(struct spokei_connector *connector, const struct spokei_conn *conn)
{
	const char *why = spokei_stream_why(&conn->stream);

	log_failure(connector, SPOKE_EHANDSHAKE, "%s",
		    why ? why : spoke_strerror(SPOKE_EHANDSHAKE));
}

/* A handshake that has failed may still wait for the peer to read the reason. */
static void log_timeout(struct spokei_connector *connector)
{
	const struct spokei_conn *conn = connector->conn;
	bool opens = conn->state == SPOKEI_CONN_OPENING;

	if (opens && spokei_stream_why(&conn->stream)) {
		log_stream(connector, conn);
	} else if (opens && conn->stream.kind->why) {
		log_failure(connector, SPOKE_EHANDSHAKE,
			    "TLS: the peer has not ended the handshake in %" PRIu64 " ms",
			    connector->connect_ns / NS_PER_MS);
	} else {
		log_failure(connector, SPOKE_ECONNECT, "no answer in %" PRIu64 " ms",
			    connector->connect_ns / NS_PER_MS);
	}
}

/* Returns whether the peer may have got a byte: of a request, or of the heartbeat that begins a
 * connection, if that waits no more. */
static bool has_sent(const struct spokei_conn *conn)
{
	return conn->out.sent > 0 ||
	       (conn->wire->probes && spokei_buffer_len(&conn->out.control) == 0);
}

/* Returns whether the peer of a plain connection may have closed it for its first bytes: one that
 * expects TLS answers nothing, and neither does one that denies this host. */
static bool was_left_unheard(const struct spokei_conn *conn, int error)
{
	return error == SPOKE_ELOST && conn->stream.kind == &spokei_stream_socket &&
	       has_sent(conn) && conn->heard == SPOKEI_HEARD_NOTHING &&
	       !spokei_intake_begun(&conn->in);
}

static void log_loss(struct spokei_connector *connector, const struct spokei_conn *conn,
		     const struct spoke_link_event *news)
{
	const char *question = "";
	char text[ADDRESS_TEXT];

	if (was_left_unheard(conn, news->error)) {
		bool asks = !connector->acquainted || ++connector->unheard >= UNHEARD_MAX;

		set_reason(connector,
			   asks ? "the peer ended the connection before it sent a byte" QUESTION
				: "the peer ended the connection before it sent a byte");
		question = asks && !connector->hinted ? QUESTION : "";
		connector->hinted = connector->hinted || asks;
	}
	if (conn->foreign) {
		char why[REASON_TEXT];

		(void)snprintf(why, sizeof(why), "another protocol is spoken there: %s",
			       conn->foreign);
		set_reason(connector, why);
	}
	print_peer(connector, conn, text, sizeof(text));
	/* Nothing failed: its provider is listed no more, or its user has ended. */
	if (connector->retired && news->error == SPOKE_ECLOSED) {
		spokei_event_of(connector->engine, news->user, SPOKE_OK,
				"closed the connection to %s, which is not needed any more",
				spokei_place_shown(text));
		return;
	}
	spokei_event_of(connector->engine, news->user, news->error,
			"lost the connection to %s%s; connects %s%s", spokei_place_shown(text),
			connector->heard ? "" : ", which never spoke",
			connector->retired ? "no more" : "anew", question);
}

/* --- its connection */

static void conn_heard(struct spokei_connector *connector)
{
	connector->heard = true;
	connector->acquainted = true;
	connector->unheard = 0;
	connector->logged = false;
	connector->hinted = false;
	connector->reason[0] = '\0';
	connector->reason_at = 0;
}

/* A reason against the connection has ended. */
static void conn_recovered(struct spokei_connector *connector, enum spoke_event_user user)
{
	struct spoke_link_event news = { .change = SPOKE_LINK_RECOVERED, .user = user };

	if (spokei_connector_grade(connector) != SPOKEI_GRADE_READY)
		return;
	spokei_count(connector->engine, SPOKE_STAT_RECOVERED);
	spokei_event_of(connector->engine, user, SPOKE_OK, "%s answers again",
			spokei_place_shown(connector->dialer.place.name));
	(void)report(connector, &news);
}

/* The connection is not only open; its peer is alive. */
static void conn_answered(struct spokei_connector *connector)
{
	bool was_on_probation = on_probation(connector);

	connector->suspected = false;
	connector->conn->doubted = false;
	if (was_on_probation)
		conn_recovered(connector, SPOKE_EVENT_OF_HEARTBEAT);
}

static void conn_missed(struct spokei_connector *connector, unsigned missed)
{
	struct spoke_link_event news = {
		.change = SPOKE_LINK_SUSPECT,
		.user = SPOKE_EVENT_OF_HEARTBEAT,
		.missed = missed,
	};

	spokei_event_of(connector->engine, SPOKE_EVENT_OF_HEARTBEAT, SPOKE_ESILENT,
			"%s: heartbeat unanswered, %u of %u",
			spokei_place_shown(connector->dialer.place.name), missed,
			SPOKEI_IDLE_MISSES);
	(void)report(connector, &news);
}

/* --- for display */

static uint64_t until_due(const struct spokei_connector *connector)
{
	const struct spoke_engine *engine = connector->engine;
	uint64_t due_ns = spoke_wheel_deadline(engine->wheel, &connector->dialer.timer);

	if (due_ns == SPOKE_WHEEL_NEVER || due_ns <= engine->begin_ns)
		return 0;
	return due_ns - engine->begin_ns;
}

void spokei_connector_look(const struct spokei_connector *connector,
			   struct spokei_connector_look *ret_look)
{
	const struct spokei_conn *conn = connector->conn;

	*ret_look = (struct spokei_connector_look){ .quiet_ns = UINT64_MAX };
	if (connector->state == SPOKEI_CONNECTOR_WAITING) {
		ret_look->attempt = connector->dialer.failures;
		ret_look->retry_ns = until_due(connector);
	} else if (conn) {
		ret_look->missed = conn->idle.misses;
		ret_look->quiet_ns = spokei_conn_quiet_ns(conn);
	}
}

/* --- attempts */

/* Begins an attempt on the connection, which has no descriptor. Returns 0 or a negative errno. */
static int start_attempt(struct spokei_connector *connector, const struct spoke_address *to,
			 uint64_t limit_ns)
{
	connector->conn->peer = *to;
	return spokei_dialer_try(&connector->dialer, to, limit_ns);
}

/* Sets the path of the peer on this host. Returns 0 or the error of spokei_connector_new(). */
static int set_path(struct spokei_connector *connector, const char *path)
{
	struct spokei_place place = { .port = 0 };
	int error;

	if (path == NULL || !connector->wire->probes)
		return SPOKE_OK;
	error = spokei_place_set(&place, connector->engine->env, NULL, 0, path);
	if (error)
		return error;
	connector->local = spokei_alloc(connector->engine->env, 1, sizeof(*connector->local));
	if (connector->local == NULL)
		return SPOKE_ENOMEM;
	*connector->local = place.address;
	return spokei_conn_greeting(connector->link, connector->wire, &connector->greeting);
}

/* Tries the path, if there is one. Returns whether an attempt has begun. The connection after one
 * that got no answer there uses the port: another program may listen at the path. */
static bool try_path(struct spokei_connector *connector)
{
	uint64_t limit_ns = connector->connect_ns < PATH_NS ? connector->connect_ns : PATH_NS;
	bool shuns = connector->shuns_path;
	int status;

	connector->by_path = false;
	connector->shuns_path = false;
	if (connector->greeting == NULL || shuns)
		return false;
	status = start_attempt(connector, connector->local, limit_ns);
	if (status)
		log_path(connector, status);
	connector->by_path = status == 0;
	return connector->by_path;
}

/* Tries the next addresses of this round. Returns whether an attempt has begun. */
static bool try_next(struct spokei_connector *connector)
{
	const struct spoke_address *to;

	while ((to = spokei_dialer_next(&connector->dialer)) != NULL) {
		int status = start_attempt(connector, to, connector->connect_ns);

		if (status == 0)
			return true;
		log_status(connector, SPOKE_ECONNECT, status);
	}
	return false;
}

/* --- backoff */

static void wait_for_next(struct spokei_connector *connector, int error)
{
	spokei_dialer_wait(&connector->dialer);
	spokei_count(connector->engine, SPOKE_STAT_RECONNECTS);
	set_state(connector, SPOKEI_CONNECTOR_WAITING, error);
	if (connector->state == SPOKEI_CONNECTOR_WAITING && !connector->young)
		report_pause(connector);
}

/* --- a connection for the attempts */

static const struct spokei_conn_up conn_up;

/* Ends a connection that never opened: its calls end, and nothing is reported. */
static void end_round(struct spokei_connector *connector, int error)
{
	struct spokei_conn *conn = connector->conn;

	connector->conn = NULL;
	conn->up = NULL;
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
		connector->conn->stream.host = connector->dialer.place.host;
	if (error == 0 && connector->profile) {
		connector->conn->profile = connector->profile;
		connector->conn->profile_id = connector->profile->id;
		connector->conn->heartbeat_ns = connector->profile->heartbeat_ns;
	}
	if (error == 0)
		return true;
	connector->conn = NULL;
	log_failure(connector, error, "no memory for the connection");
	wait_for_next(connector, error);
	return false;
}

/* --- a round */

static void try_all(struct spokei_connector *connector)
{
	if (try_next(connector))
		set_state(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
	else
		end_round(connector, SPOKE_ECONNECT);
}

static void log_name(struct spokei_connector *connector, int status)
{
	/* The system's sentences for these are about files. */
	if (status == -ENOENT)
		log_failure(connector, SPOKE_ERESOLVE, "there is no such host name");
	else if (status == -EAGAIN)
		log_failure(connector, SPOKE_ERESOLVE, "the name cannot be resolved now");
	else
		log_status(connector, SPOKE_ERESOLVE, status);
}

static void resolve_failed(struct spokei_connector *connector, int status)
{
	log_name(connector, status);
	end_round(connector, SPOKE_ERESOLVE);
}

static void free_connector(struct spokei_task *task)
{
	struct spokei_connector *connector = spoke_container_of(task, struct spokei_connector, end);

	spokei_free(connector->engine->env, connector->local, 1, sizeof(*connector->local));
	spokei_greeting_free(connector->engine->env, connector->greeting);
	spokei_free(connector->engine->env, connector, 1, sizeof(*connector));
}

/* Frees a connector that is closed, unless its memory is needed for a pending event. */
static void free_if_alone(struct spokei_connector *connector)
{
	if (connector->conn == NULL && !connector->dialer.resolving)
		spokei_run_freeing(connector->engine, &connector->end);
}

static struct spokei_connector *connector_of(struct spokei_dialer *dialer)
{
	return spoke_container_of(dialer, struct spokei_connector, dialer);
}

static void round_resolved(struct spokei_dialer *dialer, int status)
{
	struct spokei_connector *connector = connector_of(dialer);

	if (connector->state == SPOKEI_CONNECTOR_CLOSED)
		free_if_alone(connector);
	else if (status)
		resolve_failed(connector, status);
	else
		try_all(connector);
}

/* Goes to the addresses of the place, with a connection that has no descriptor. */
static void resolve(struct spokei_connector *connector)
{
	int status = spokei_dialer_resolve(&connector->dialer);

	if (status == SPOKEI_DIALER_MORE)
		set_state(connector, SPOKEI_CONNECTOR_RESOLVING, SPOKE_OK);
	else if (status)
		resolve_failed(connector, status);
	else
		try_all(connector);
}

static void begin_round(struct spokei_connector *connector)
{
	if (!make_conn(connector))
		return;
	if (try_path(connector))
		set_state(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
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
		log_failure(connector, SPOKE_ESELF, "no listener there");
		spokei_conn_close(connector->conn, SPOKE_ESELF);
		return;
	}
	spokei_count(engine, SPOKE_STAT_CONNECTED);
	if (connector->by_path) {
		connector->path_failed = false;
		spokei_count(engine, SPOKE_STAT_CONNECTED_LOCAL);
	}
	print_peer(connector, connector->conn, text, sizeof(text));
	if (on_probation(connector)) {
		connector->conn->doubted = true;
		spokei_count(engine, SPOKE_STAT_PROBATIONS);
		news.change = SPOKE_LINK_PROBATION;
		news.user = SPOKE_EVENT_OF_HEARTBEAT;
		waits = "; it was silent before, and has to answer first";
	}
	if (strcmp(text, connector->dialer.place.name) == 0)
		spokei_event_of(engine, news.user, SPOKE_OK, "connected to %s%s",
				spokei_place_shown(text), waits);
	else
		spokei_event_of(engine, news.user, SPOKE_OK, "connected to %s at %s%s",
				spokei_place_shown(connector->dialer.place.name),
				spokei_place_shown(text), waits);
	set_state(connector, SPOKEI_CONNECTOR_OPEN, SPOKE_OK);
	if (connector->state == SPOKEI_CONNECTOR_OPEN)
		(void)report(connector, &news);
}

/* The path failed; calls that wait at the connection go on to the addresses of the place. Returns
 * whether there is one, or may be one. */
static bool path_failed(struct spokei_connector *connector, struct spokei_conn *conn, int status)
{
	enum spokei_connector_state next = SPOKEI_CONNECTOR_CONNECTING;

	log_path(connector, status);
	connector->by_path = false;
	status = spokei_dialer_resolve(&connector->dialer);
	if (status < 0) {
		log_name(connector, status);
		conn->error = SPOKE_ERESOLVE;
		return false;
	}
	if (status == SPOKEI_DIALER_MORE)
		next = SPOKEI_CONNECTOR_RESOLVING;
	else if (!try_next(connector))
		return false;
	set_state(connector, next, SPOKE_OK);
	return true;
}

/* One address failed; calls that wait at the connection may go on to the next address. Returns
 * whether there is one. `status` -ETIME: it is logged. */
static bool address_failed(struct spokei_connector *connector, struct spokei_conn *conn, int status)
{
	if (connector->by_path)
		return path_failed(connector, conn, status == -ETIME ? -ETIMEDOUT : status);
	if (conn->error == SPOKE_EHANDSHAKE)
		log_stream(connector, conn);
	else if (status != -ETIME)
		log_status(connector, SPOKE_ECONNECT, status);
	if (!try_next(connector))
		return false;
	set_state(connector, SPOKEI_CONNECTOR_CONNECTING, SPOKE_OK);
	return true;
}

/* The stream cannot be opened. */
static bool conn_failed(void *arg, struct spokei_conn *conn, int status)
{
	struct spokei_connector *connector = arg;

	spokei_count(connector->engine, SPOKE_STAT_CONNECTS_FAILED);
	return address_failed(connector, conn, status);
}

/* A connection may have been closed, and not have reported that yet. */
static bool is_connecting(const struct spokei_connector *connector)
{
	return connector->conn && connector->conn->state == SPOKEI_CONN_CONNECTING;
}

static void attempt_failed(struct spokei_dialer *dialer, int status)
{
	struct spokei_connector *connector = connector_of(dialer);
	struct spokei_conn *conn = connector->conn;

	if (!is_connecting(connector))
		return;
	if (status == -ETIME && !connector->by_path)
		log_timeout(connector);
	if (!address_failed(connector, conn, status))
		spokei_conn_close(conn, conn->error ? conn->error : SPOKE_ECONNECT);
}

static void attempt_connected(struct spokei_dialer *dialer, int fd)
{
	struct spokei_connector *connector = connector_of(dialer);
	const struct spoke_env *env = connector->engine->env;
	const struct spokei_stream_kind *kind = NULL;

	if (!is_connecting(connector)) {
		env->net->close(env->ctx, fd);
		return;
	}
	if (connector->by_path)
		kind = &connector->greeting->kind;
	else if (dialer->place.shm)
		kind = &spokei_stream_shm;
	spokei_conn_attach(connector->conn, fd, kind);
}

/* An open connection has ended, and its calls, too. The other addresses are for the next one. */
static void go_on(struct spokei_connector *connector, int error)
{
	bool by_path = connector->by_path;

	connector->by_path = false;
	if (!by_path && connector->dialer.left == 0) {
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
	       open_ns >= connector->dialer.backoff.cap_ns;
}

static void connection_lost(struct spokei_connector *connector, const struct spokei_conn *conn,
			    int error)
{
	struct spoke_link_event news = { .change = SPOKE_LINK_CLOSED, .error = error };

	if (spokei_conn_suspect(conn) || error == SPOKE_ESILENT)
		connector->suspected = true;
	connector->shuns_path = connector->by_path && conn->heard < SPOKEI_HEARD_ANSWER;
	if (has_worked(connector, conn, error))
		connector->dialer.failures = 0;
	if (error == SPOKE_ESILENT)
		news.user = SPOKE_EVENT_OF_HEARTBEAT;
	log_loss(connector, conn, &news);
	if (conn->foreign)
		news.reason = connector->reason + connector->reason_at;
	if (error == SPOKE_EHANDSHAKE)
		log_stream(connector, conn);
	if (!report(connector, &news))
		return;
	if (connector->retired)
		set_state(connector, SPOKEI_CONNECTOR_DONE, error);
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
	spokei_dialer_hang_up(&connector->dialer);
	if (connector->state == SPOKEI_CONNECTOR_CLOSED)
		free_if_alone(connector);
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
		conn_heard(connector);
		return;
	case SPOKEI_LINK_EVENT_ANSWERED:
		conn_answered(connector);
		return;
	case SPOKEI_LINK_EVENT_MISSED:
		conn_missed(connector, conn->idle.misses);
		return;
	case SPOKEI_LINK_EVENT_READONLY:
		(void)report(connector, &readonly);
		return;
	case SPOKEI_LINK_EVENT_TRUSTED:
		conn_recovered(connector, SPOKE_EVENT_OF_HEARTBEAT);
		return;
	case SPOKEI_LINK_EVENT_WRITABLE:
		conn_recovered(connector, SPOKE_EVENT_OF_NONE);
		return;
	case SPOKEI_LINK_EVENT_NAMED:
		connector->up->changed(connector->up_arg, connector, SPOKE_OK);
		return;
	}
}

static const struct spokei_conn_up conn_up = {
	.changed = conn_changed,
	.event = conn_event,
	.failed = conn_failed,
};

/* A pause is over, or the time for opening a stream. */
static void connector_due(struct spokei_dialer *dialer)
{
	struct spokei_connector *connector = connector_of(dialer);

	if (connector->state == SPOKEI_CONNECTOR_WAITING) {
		begin_round(connector);
	} else if (connector->state == SPOKEI_CONNECTOR_CONNECTING &&
		   connector->conn->state == SPOKEI_CONN_OPENING) {
		if (!connector->by_path)
			log_timeout(connector);
		spokei_conn_give_up(connector->conn, -ETIME);
	}
}

static const struct spokei_dialer_up dialer_up = {
	.resolved = round_resolved,
	.connected = attempt_connected,
	.failed = attempt_failed,
	.due = connector_due,
};

/* --- life */

/* Prepares a place over whose socket memory is shared. */
static int share_place(struct spokei_connector *connector)
{
	const char *why = NULL;

	spokei_place_share(&connector->dialer.place);
	if (connector->engine->env->net->share == NULL)
		why = "shared memory is not available in this environment";
	else if (connector->link->stream->veiled)
		why = "shared memory has no TLS; use unix: with TLS, or set tls = off";
	if (why == NULL)
		return SPOKE_OK;
	spokei_event(connector->engine, SPOKE_EUNSUPPORTED, "cannot connect to %s: %s",
		     spokei_place_shown(connector->dialer.place.name), why);
	return SPOKE_EUNSUPPORTED;
}

static int set_times(struct spokei_connector *connector,
		     const struct spokei_connector_options *options)
{
	const struct spokei_backoff *given = &options->backoff;
	struct spokei_backoff *backoff = &connector->dialer.backoff;

	connector->connect_ns = options->connect_ns ? options->connect_ns : SPOKEI_CONNECT_NS;
	backoff->first_ns = given->first_ns ? given->first_ns : SPOKEI_BACKOFF_FIRST_NS;
	backoff->cap_ns = given->cap_ns ? given->cap_ns : SPOKEI_BACKOFF_CAP_NS;
	if (connector->connect_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS ||
	    backoff->first_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS ||
	    backoff->cap_ns > SPOKEI_CONNECTOR_WAIT_MAX_NS)
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
	connector->news.run = report_state;
	connector->end.run = free_connector;
	error = spokei_dialer_init(&connector->dialer, engine, &dialer_up);
	if (!error)
		error = spokei_place_set(&connector->dialer.place, engine->env, options->host,
					 options->port, options->path);
	if (!error && options->shm)
		error = share_place(connector);
	if (!error)
		error = set_path(connector, options->local);
	if (!error)
		error = set_times(connector, options);
	if (error) {
		spokei_dialer_fini(&connector->dialer);
		free_connector(&connector->end);
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
	spokei_dialer_fini(&connector->dialer);
	spokei_task_drop(&connector->news);
	if (connector->conn)
		spokei_conn_close(connector->conn, SPOKE_ECLOSED);
	free_if_alone(connector);
}

bool spokei_connector_retire(struct spokei_connector *connector)
{
	if (connector->state != SPOKEI_CONNECTOR_OPEN || connector->conn == NULL)
		return false;
	connector->retired = true;
	spokei_conn_finish(connector->conn);
	return true;
}
