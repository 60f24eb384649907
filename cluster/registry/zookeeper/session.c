/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the names of the servers, and replaces sessions that have expired. */
#include "cluster/registry/zookeeper/session.h"

#include "core/base/env.h"
#include "core/base/pace.h"
#include "core/engine/engine.h"
#include "transport/connect/place.h"

#include <errno.h>

#define ADDRESS_TEXT 160u
#define SECOND_NS UINT64_C(1000000000)
#define SHOWN 128

#define REFRESH_NS (10 * SECOND_NS) /* without a connection: before names are resolved again */
#define SILENT_NS (2 * SECOND_NS)   /* without a connection: before it is logged */
#define BACKOFF_FIRST_NS SECOND_NS
#define BACKOFF_CAP_NS (10 * SECOND_NS)

static void keep(struct spokei_zoo_session *session);
static void session_changed(void *arg);

static const char *first_name(const struct spokei_zoo_session *session)
{
	return session->settings.places[0].name;
}

static bool has_names(const struct spokei_zoo_session *session)
{
	for (unsigned i = 0; i < session->settings.place_count; i++)
		if (!session->settings.places[i].fixed)
			return true;
	return false;
}

/* --- pauses */

static void again_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_session *session = spoke_container_of(alarm, struct spokei_zoo_session,
								again);

	if (session->handle == NULL || !spokei_zoo_handle_connected(session->handle))
		keep(session);
}

static void later(struct spokei_zoo_session *session, uint64_t delay_ns)
{
	int error = spoke_alarm_after(session->engine, &session->again, delay_ns, again_due);

	if (error)
		spokei_event(session->engine, error,
			     "registry zookeeper %.*s: cannot set its timer; make a new engine",
			     SHOWN, first_name(session));
}

static void failed(struct spokei_zoo_session *session, int error, const char *why)
{
	static const struct spokei_backoff backoff = { BACKOFF_FIRST_NS, BACKOFF_CAP_NS };
	const struct spoke_env *env = session->engine->env;
	uint64_t dice;

	spokei_event(session->engine, error, "registry zookeeper %.*s: %s; retrying", SHOWN,
		     first_name(session), why);
	env->dice(env->ctx, &dice, sizeof(dice));
	later(session, spokei_backoff_pause(&backoff, session->failures, dice));
	if (session->failures < UINT32_MAX)
		session->failures++;
}

/* --- a handle */

/* Prints addresses in the library's format: without brackets, with commas between. */
static void print_servers(const struct spokei_zoo_session *session, char *out, size_t size)
{
	const struct spoke_env *env = session->engine->env;
	size_t len = 0;

	for (int i = 0; i < session->found_count; i++) {
		char text[ADDRESS_TEXT];

		env->net->print(env->ctx, &session->found[i], text, sizeof(text));
		if (len > 0 && len + 1 < size)
			out[len++] = ',';
		for (const char *at = text; *at && len + 1 < size; at++)
			if (*at != '[' && *at != ']')
				out[len++] = *at;
	}
	out[len] = '\0';
}

/* The requests fail later: their users learn from this line why. */
static void silent_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_session *session = spoke_container_of(alarm, struct spokei_zoo_session,
								silent);

	if (!session->is_connected) {
		spokei_event(session->engine, SPOKE_EUNAVAILABLE,
			     "registry zookeeper %.*s: no server has answered for %u s; trying on",
			     SHOWN, first_name(session), (unsigned)(SILENT_NS / SECOND_NS));
	}
}

/* Without a timer there is no line. */
static void watch_silence(struct spokei_zoo_session *session)
{
	(void)!spoke_alarm_after(session->engine, &session->silent, SILENT_NS, silent_due);
}

static void use_found(struct spokei_zoo_session *session)
{
	char servers[SPOKEI_ZOO_PLACES_MAX * ADDRESS_TEXT];
	int error;

	print_servers(session, servers, sizeof(servers));
	if (session->handle) {
		spokei_zoo_handle_use(session->handle, servers);
	} else {
		error = spokei_zoo_handle_new(session->engine, servers,
					      session->settings.session_ms, session_changed,
					      session, &session->handle);
		if (error) {
			session->handle = NULL;
			failed(session, error, "the ZooKeeper library failed to start");
			return;
		}
		session->connects = 0;
		session->is_connected = false;
		watch_silence(session);
	}
	session->failures = 0;
	if (has_names(session))
		later(session, REFRESH_NS);
}

static void session_over(struct spokei_zoo_session *session)
{
	struct spokei_zoo_handle *handle = session->handle;

	spokei_event(session->engine, SPOKE_ELOST,
		     "registry zookeeper %.*s: session expired; starting a new one", SHOWN,
		     first_name(session));
	session->handle = NULL;
	session->expired(session->arg);
	spokei_zoo_handle_give_up(handle);
	keep(session);
}

static void session_changed(void *arg)
{
	struct spokei_zoo_session *session = arg;
	struct spokei_zoo_handle *handle = session->handle;
	uint64_t connects = spokei_zoo_handle_connects(handle);
	bool connected = spokei_zoo_handle_connected(handle);

	if (spokei_zoo_handle_over(handle)) {
		session_over(session);
		return;
	}
	if (connected && connects != session->connects) {
		spokei_event(session->engine, SPOKE_OK, "registry zookeeper %.*s: connected", SHOWN,
			     first_name(session));
		session->connected(session->arg);
	} else if (!connected && session->is_connected) {
		spokei_event(session->engine, SPOKE_ELOST,
			     "registry zookeeper %.*s: connection lost; reconnecting", SHOWN,
			     first_name(session));
		watch_silence(session);
		if (has_names(session))
			later(session, REFRESH_NS);
	}
	session->connects = connects;
	session->is_connected = connected;
}

/* --- names */

static void session_bury(struct spokei_task *task)
{
	struct spokei_zoo_session *session = spoke_container_of(task, struct spokei_zoo_session,
								bury);

	spokei_free(session->engine->env, session, 1, sizeof(*session));
}

static void resolved(void *arg, const struct spoke_address *found, int count)
{
	struct spokei_zoo_session *session = arg;

	session->resolving = false;
	session->found_count = count;
	if (count > 0)
		memcpy(session->found, found, (unsigned)count * sizeof(*found));
	if (session->connected == NULL)
		spokei_engine_dead(session->engine, &session->bury);
	else if (count <= 0)
		failed(session, SPOKE_ERESOLVE, "cannot resolve any server name");
	else
		use_found(session);
}

static void use_addresses(struct spokei_zoo_session *session)
{
	session->found_count = (int)session->settings.place_count;
	for (unsigned i = 0; i < session->settings.place_count; i++)
		session->found[i] = session->settings.places[i].address;
	use_found(session);
}

static void keep(struct spokei_zoo_session *session)
{
	const struct spokei_zoo_settings *settings = &session->settings;

	if (session->resolving)
		return;
	if (!has_names(session))
		use_addresses(session);
	else if (spokei_lookup(session->engine, settings->places, settings->place_count,
			       SPOKEI_ZOO_PLACES_MAX, resolved, session))
		failed(session, SPOKE_ERESOLVE,
		       "no thread is available to resolve its server names");
	else
		session->resolving = true;
}

/* --- life */

int spokei_zoo_session_new(struct spoke_engine *engine, const struct spoke_url *url,
			   struct spokei_zoo_session **ret_session)
{
	struct spokei_zoo_session *session = spokei_alloc(engine->env, 1, sizeof(*session));
	char why[SPOKEI_ZOO_WHY_MAX];
	int error;

	if (session == NULL) {
		spokei_event(engine, SPOKE_ENOMEM, "registry zookeeper: out of memory");
		return SPOKE_ENOMEM;
	}
	error = spokei_zoo_settings_read(engine->env, url, &session->settings, why);
	if (error) {
		spokei_event(engine, error, "registry zookeeper: %s", why);
		spokei_free(engine->env, session, 1, sizeof(*session));
		return error;
	}
	session->engine = engine;
	session->bury.run = session_bury;
	keep(session);
	*ret_session = session;
	return SPOKE_OK;
}

void spokei_zoo_session_end(struct spokei_zoo_session *session)
{
	session->connected = NULL;
	(void)spoke_alarm_cancel(&session->again);
	(void)spoke_alarm_cancel(&session->silent);
	spokei_zoo_handle_give_up(session->handle);
	session->handle = NULL;
	if (!session->resolving)
		spokei_engine_dead(session->engine, &session->bury);
}
