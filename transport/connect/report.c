/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a connector: its state and grade, changes to its owner and to users, and events. */
#include "core/base/address.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/connect/parts.h"

#include <spoke/link.h>

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

/* --- state and grade */

bool spokei_connector_on_probation(const struct spokei_connector *connector)
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

	if (conn == NULL || spokei_conn_unwritable(conn) || conn->readonly)
		return SPOKEI_GRADE_NONE;
	if (spokei_conn_is_opening(conn))
		return SPOKEI_GRADE_CONNECTING;
	if (SPOKEI_UNLIKELY(spokei_connector_on_probation(connector)))
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
	return connector->place.name;
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

const char *spokei_connector_shown(const char *name)
{
	size_t len = strlen(name);

	return len > SPOKEI_CONNECTOR_SHOWN ? name + len - SPOKEI_CONNECTOR_SHOWN : name;
}

void spokei_connector_print(const struct spokei_connector *connector,
			    const struct spokei_conn *conn, char *text, size_t size)
{
	const struct spoke_env *env = connector->engine->env;

	env->net->print(env->ctx, &conn->peer, text, size);
	if (connector->place.shm && !connector->by_path)
		spokei_address_share(text);
}

/* --- to the owner and to users */

void spokei_connector_tell(struct spokei_connector *connector, enum spokei_connector_state state,
			   int error)
{
	connector->state = state;
	connector->error = error;
	if (connector->young) {
		spokei_engine_soon(connector->engine, &connector->news);
		return;
	}
	spokei_task_drop(&connector->news);
	connector->up->changed(connector->up_arg, connector, error);
}

bool spokei_connector_announce(struct spokei_connector *connector, struct spoke_link_event *event)
{
	event->name = connector->place.name;
	event->reason = event->reason ? event->reason : "";
	if (connector->up->event)
		connector->up->event(connector->up_arg, event);
	return connector->state != SPOKEI_CONNECTOR_CLOSED;
}

void spokei_connector_announce_pause(struct spokei_connector *connector)
{
	struct spoke_link_event event = {
		.change = SPOKE_LINK_RECONNECTING,
		.user = spokei_connector_user(connector),
		.error = connector->error,
		.reason = connector->reason + connector->reason_at,
		.attempt = connector->failures,
		.pause_ns = connector->pause_ns,
	};

	(void)spokei_connector_announce(connector, &event);
}

void spokei_connector_news(struct spokei_task *task)
{
	struct spokei_connector *connector = spoke_container_of(task, struct spokei_connector,
								news);

	connector->up->changed(connector->up_arg, connector, connector->error);
	if (connector->state == SPOKEI_CONNECTOR_WAITING)
		spokei_connector_announce_pause(connector);
}

/* Keeps why there is no connection, for the calls that fail until the peer has sent a message. */
static void set_reason(struct spokei_connector *connector, const char *text)
{
	connector->reason_at = (uint32_t)snprintf(connector->reason, sizeof(connector->reason),
						  "%s: ",
						  spokei_connector_shown(connector->place.name));
	(void)snprintf(connector->reason + connector->reason_at,
		       sizeof(connector->reason) - connector->reason_at, "%s", text);
}

void spokei_connector_complain(struct spokei_connector *connector, int error, const char *format,
			       ...)
{
	char text[REASON_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	set_reason(connector, text);
	if (connector->complained)
		return;
	connector->complained = true;
	spokei_event(connector->engine, error, "cannot connect to %s: %s",
		     spokei_connector_shown(connector->place.name), text);
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

void spokei_connector_complain_of_system(struct spokei_connector *connector, int error, int status)
{
	char text[REASON_TEXT + NAME_TEXT];

	print_status(status, text, sizeof(text));
	spokei_connector_complain(connector, error, "%s", text);
}

void spokei_connector_complain_of_path(struct spokei_connector *connector, int status)
{
	const struct spoke_env *env = connector->engine->env;
	char path[SPOKEI_CONNECTOR_SHOWN];
	char text[REASON_TEXT + NAME_TEXT];

	spokei_count(connector->engine, SPOKE_STAT_LOCAL_FAILED);
	if (connector->path_failed)
		return;
	connector->path_failed = true;
	env->net->print(env->ctx, &connector->local, path, sizeof(path));
	if (status == -EPROTO)
		(void)snprintf(text, sizeof(text), "another protocol is spoken there");
	else
		print_status(status, text, sizeof(text));
	spokei_event(connector->engine, SPOKE_ECONNECT, "cannot connect to %s at %s: %s; uses TCP",
		     spokei_connector_shown(connector->place.name), path, text);
}

void spokei_connector_complain_of_stream(struct spokei_connector *connector,
					 const struct spokei_conn *conn)
{
	const char *why = spokei_stream_why(&conn->stream);

	spokei_connector_complain(connector, SPOKE_EHANDSHAKE, "%s",
				  why ? why : spoke_strerror(SPOKE_EHANDSHAKE));
}

/* A handshake that has failed may still wait for the peer to read the reason. */
void spokei_connector_complain_of_time(struct spokei_connector *connector)
{
	const struct spokei_conn *conn = connector->conn;
	bool opens = conn->state == SPOKEI_CONN_OPENING;

	if (opens && spokei_stream_why(&conn->stream)) {
		spokei_connector_complain_of_stream(connector, conn);
	} else if (opens && conn->stream.kind->why) {
		spokei_connector_complain(connector, SPOKE_EHANDSHAKE,
					  "TLS: the peer has not ended the handshake in %" PRIu64
					  " ms",
					  connector->connect_ns / NS_PER_MS);
	} else {
		spokei_connector_complain(connector, SPOKE_ECONNECT, "no answer in %" PRIu64 " ms",
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

void spokei_connector_report_loss(struct spokei_connector *connector,
				  const struct spokei_conn *conn,
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
	spokei_connector_print(connector, conn, text, sizeof(text));
	spokei_event_of(connector->engine, news->user, news->error,
			"lost the connection to %s%s; connects %s%s", spokei_connector_shown(text),
			connector->heard ? "" : ", which never spoke",
			connector->retired ? "no more" : "anew", question);
}

/* --- its connection */

void spokei_connector_heard(struct spokei_connector *connector)
{
	connector->heard = true;
	connector->acquainted = true;
	connector->unheard = 0;
	connector->complained = false;
	connector->hinted = false;
	connector->reason[0] = '\0';
	connector->reason_at = 0;
}

/* A reason against the connection has ended. */
void spokei_connector_recovered(struct spokei_connector *connector, enum spoke_event_user user)
{
	struct spoke_link_event news = { .change = SPOKE_LINK_RECOVERED, .user = user };

	if (spokei_connector_grade(connector) != SPOKEI_GRADE_READY)
		return;
	spokei_count(connector->engine, SPOKE_STAT_RECOVERED);
	spokei_event_of(connector->engine, user, SPOKE_OK, "%s answers again",
			spokei_connector_shown(connector->place.name));
	(void)spokei_connector_announce(connector, &news);
}

/* The connection is not only open; its peer is alive. */
void spokei_connector_answered(struct spokei_connector *connector)
{
	bool was_on_probation = spokei_connector_on_probation(connector);

	connector->suspected = false;
	if (was_on_probation)
		spokei_connector_recovered(connector, SPOKE_EVENT_OF_HEARTBEAT);
}

void spokei_connector_missed(struct spokei_connector *connector, unsigned missed)
{
	struct spoke_link_event news = {
		.change = SPOKE_LINK_SUSPECT,
		.user = SPOKE_EVENT_OF_HEARTBEAT,
		.missed = missed,
	};

	spokei_event_of(connector->engine, SPOKE_EVENT_OF_HEARTBEAT, SPOKE_ESILENT,
			"%s: heartbeat unanswered, %u of %u",
			spokei_connector_shown(connector->place.name), missed, SPOKEI_IDLE_MISSES);
	(void)spokei_connector_announce(connector, &news);
}

/* --- for display */

static uint64_t until_due(const struct spokei_connector *connector)
{
	const struct spoke_engine *engine = connector->engine;
	uint64_t due_ns = spoke_wheel_deadline(engine->wheel, &connector->timer);

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
		ret_look->attempt = connector->failures;
		ret_look->retry_ns = until_due(connector);
	} else if (conn) {
		ret_look->missed = conn->idle.misses;
		ret_look->quiet_ns = spokei_conn_quiet_ns(conn);
	}
}
