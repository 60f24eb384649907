/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to connect: to the peer's path on this host, or to an address; and the connector's
 * timer, which ends it. */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/parts.h"
#include "transport/stream/greet.h"

#include <errno.h>

#define PATH_NS UINT64_C(500000000) /* longest wait for an answer on this host */

/* --- the timer */

int spokei_connector_arm(struct spokei_connector *connector, uint64_t delay_ns)
{
	struct spoke_engine *engine = connector->engine;
	uint64_t due_ns = engine->env->now(engine->env->ctx) + delay_ns;

	if (spoke_timer_armed(&connector->timer))
		return spokei_engine_fold(
			spoke_wheel_reschedule(engine->wheel, &connector->timer, due_ns));
	return spokei_engine_fold(spoke_wheel_schedule(engine->wheel, &connector->timer,
						       connector->timer_class, due_ns));
}

void spokei_connector_set_timer(struct spokei_connector *connector, uint64_t delay_ns)
{
	int error = spokei_connector_arm(connector, delay_ns);

	if (error)
		spokei_event(connector->engine, error,
			     "connector %s: its timer cannot be set; make a new engine",
			     spokei_connector_shown(connector->place.name));
}

/* --- attempts */

/* Returns 0 or a negative errno. `kind` NULL: that of the link. */
static int start_attempt(struct spokei_connector *connector, const struct spoke_address *to,
			 const struct spokei_stream_kind *kind, uint64_t limit_ns)
{
	struct spoke_engine *engine = connector->engine;
	const struct spoke_env *env = engine->env;
	int fd = -1;
	int status = env->net->connect(env->ctx, to, &fd);

	spokei_count(engine, SPOKE_STAT_CONNECTS);
	if (status != 0 && status != -EINPROGRESS) {
		spokei_count(engine, SPOKE_STAT_CONNECTS_FAILED);
		return status;
	}
	/* A connection that is open already is writable at once and goes the same way. */
	spokei_conn_attach(connector->conn, fd, to, kind);
	spokei_connector_set_timer(connector, limit_ns);
	return 0;
}

int spokei_connector_set_path(struct spokei_connector *connector, const char *path)
{
	struct spokei_place place = { .port = 0 };
	int error;

	if (path == NULL || !connector->wire->probes)
		return SPOKE_OK;
	error = spokei_place_set(&place, connector->engine->env, NULL, 0, path);
	if (error)
		return error;
	connector->local = place.address;
	return spokei_conn_greeting(connector->link, connector->wire, &connector->greeting);
}

/* The connection after one that got no answer there uses the port: another program may listen at
 * the path. */
bool spokei_connector_try_path(struct spokei_connector *connector)
{
	uint64_t limit_ns = connector->connect_ns < PATH_NS ? connector->connect_ns : PATH_NS;
	bool shuns = connector->shuns_path;
	int status;

	connector->by_path = false;
	connector->shuns_path = false;
	if (connector->greeting == NULL || shuns)
		return false;
	status = start_attempt(connector, &connector->local, &connector->greeting->kind, limit_ns);
	if (status)
		spokei_connector_complain_of_path(connector, status);
	connector->by_path = status == 0;
	return connector->by_path;
}

bool spokei_connector_try_next(struct spokei_connector *connector)
{
	const struct spokei_stream_kind *kind = connector->place.shm ? &spokei_stream_shm : NULL;
	const struct spoke_address *to;

	while ((to = spokei_resolve_next(&connector->resolve)) != NULL) {
		int status = start_attempt(connector, to, kind, connector->connect_ns);

		if (status == 0)
			return true;
		spokei_connector_complain_of_system(connector, SPOKE_ECONNECT, status);
	}
	return false;
}
