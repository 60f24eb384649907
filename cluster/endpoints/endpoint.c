/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint: its connections, its weight and its life. */
#include "cluster/endpoints/endpoint.h"

#include "cluster/discovery/provider_url.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "cluster/endpoints/routing.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/range.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/link.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

_Static_assert(SPOKEI_ENDPOINT_ADMIN >= SPOKEI_PROVIDER_URL_ADMIN, "an address is never cut");

/* --- callbacks of connections */

static void line_changed(void *arg, struct spokei_connector *connector, int error)
{
	struct spokei_line *line = arg;

	(void)error;
	if (line->connector != connector)
		return;
	line->open = spokei_connector_state(connector) == SPOKEI_CONNECTOR_OPEN
			     ? spokei_connector_conn(connector)
			     : NULL;
	if (line->open && line->open->instance && !line->endpoint->named)
		spokei_directory_named(line->endpoint);
	spokei_directory_changed(line);
}

static void line_event(void *arg, const struct spoke_link_event *event)
{
	const struct spokei_line *line = arg;

	spokei_directory_tell(line->endpoint, event);
}

static const struct spokei_connector_up line_up = {
	.changed = line_changed,
	.event = line_event,
};

/* --- connections */

void spokei_line_drop(struct spokei_line *line)
{
	struct spokei_connector *connector = line->connector;

	line->connector = NULL;
	line->open = NULL;
	if (connector)
		spokei_connector_free(connector);
}

int spokei_endpoint_wake(struct spokei_endpoint *endpoint)
{
	SPOKE_ASSERT(endpoint->asleep);
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		struct spokei_line *line = &endpoint->lines[i];
		int error = spokei_connector_new(endpoint->directory->link, &endpoint->options,
						 &line_up, line, &line->connector);

		if (error == 0)
			continue;
		while (i-- > 0)
			spokei_line_drop(&endpoint->lines[i]);
		return error;
	}
	endpoint->asleep = false;
	return SPOKE_OK;
}

static enum spokei_grade line_grade(const struct spokei_line *line)
{
	return line->connector ? spokei_connector_grade(line->connector) : SPOKEI_GRADE_NONE;
}

enum spokei_grade spokei_endpoint_grade(const struct spokei_endpoint *endpoint)
{
	enum spokei_grade best = endpoint->asleep ? SPOKEI_GRADE_READY : SPOKEI_GRADE_NONE;

	for (uint32_t i = 0; i < endpoint->line_count && best != SPOKEI_GRADE_READY; i++) {
		enum spokei_grade grade = line_grade(&endpoint->lines[i]);

		best = grade < best ? grade : best;
	}
	return best;
}

/* Chooses among several connections. */
static SPOKEI_NOINLINE struct spokei_conn *choose_conn(struct spokei_endpoint *endpoint,
						       enum spokei_grade *ret_grade)
{
	const struct spokei_line *best = NULL;
	enum spokei_grade best_grade = SPOKEI_GRADE_NONE;
	uint32_t at = endpoint->turn;

	for (uint32_t i = 0; i < endpoint->line_count && best_grade != SPOKEI_GRADE_READY; i++) {
		const struct spokei_line *line = &endpoint->lines[at];
		enum spokei_grade grade = line_grade(line);

		at = at + 1 < endpoint->line_count ? at + 1 : 0;
		if (grade >= best_grade)
			continue;
		best = line;
		best_grade = grade;
		endpoint->turn = at;
	}
	*ret_grade = best_grade;
	return best ? spokei_connector_conn(best->connector) : NULL;
}

struct spokei_conn *spokei_endpoint_conn(struct spokei_endpoint *endpoint,
					 enum spokei_grade *ret_grade)
{
	const struct spokei_line *first = endpoint->lines;
	struct spokei_conn *conn = NULL;
	enum spokei_grade grade;

	if (SPOKEI_UNLIKELY(endpoint->line_count != 1))
		return choose_conn(endpoint, ret_grade);
	grade = line_grade(first);
	if (SPOKEI_LIKELY(grade != SPOKEI_GRADE_NONE))
		conn = spokei_connector_conn(first->connector);
	*ret_grade = grade;
	return conn;
}

/* Instances are told before the first answer. */
int spokei_endpoint_reach(const struct spokei_endpoint *endpoint, uint32_t instance,
			  struct spokei_conn **ret_conn)
{
	int error = SPOKE_ENOPROVIDER;

	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		const struct spokei_connector *connector = endpoint->lines[i].connector;
		struct spokei_conn *conn = connector ? spokei_connector_conn(connector) : NULL;

		if (conn && conn->instance == instance) {
			*ret_conn = conn;
			return SPOKE_OK;
		}
		if (conn == NULL || (conn->instance == 0 && conn->heard < SPOKEI_HEARD_ANSWER))
			error = SPOKE_EUNAVAILABLE;
	}
	return error;
}

static void tell_of_end(struct spokei_line *line)
{
	struct spoke_link_event event = { .change = SPOKE_LINK_CLOSED, .error = SPOKE_ECLOSED };

	if (line->connector == NULL ||
	    spokei_connector_state(line->connector) != SPOKEI_CONNECTOR_OPEN)
		return;
	event.name = spokei_connector_name(line->connector);
	line_event(line, &event);
}

void spokei_endpoint_end(struct spokei_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		tell_of_end(&endpoint->lines[i]);
		spokei_line_drop(&endpoint->lines[i]);
	}
	endpoint->asleep = false;
}

void spokei_endpoint_rest(struct spokei_endpoint *endpoint, bool calls)
{
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		struct spokei_line *line = &endpoint->lines[i];
		struct spokei_conn *conn;

		if (line->connector == NULL)
			continue;
		conn = spokei_connector_conn(line->connector);
		if (conn && conn->state == SPOKEI_CONN_OPEN)
			spokei_conn_finish(conn);
		else if (spokei_connector_state(line->connector) == SPOKEI_CONNECTOR_WAITING ||
			 (conn && !calls))
			spokei_line_drop(line);
	}
	endpoint->asleep = false;
}

void spokei_endpoint_retire(struct spokei_endpoint *endpoint)
{
	endpoint->removed = true;
	endpoint->asleep = false;
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		struct spokei_line *line = &endpoint->lines[i];
		struct spokei_conn *conn;

		if (line->connector == NULL || spokei_connector_retire(line->connector))
			continue;
		conn = spokei_connector_conn(line->connector);
		if (conn)
			spokei_conn_close(conn, SPOKE_EUNAVAILABLE);
		spokei_line_drop(line);
	}
}

/* Returns whether it has connections or attempts. */
static bool is_busy(const struct spokei_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->line_count; i++)
		if (endpoint->lines[i].connector)
			return true;
	return endpoint->actives > 0;
}

/* --- the list */

static const char *text_or_none(const char *text)
{
	return text ? text : "";
}

bool spokei_endpoint_fits(const struct spokei_endpoint *endpoint,
			  const struct spokei_provider_url *provider)
{
	const struct spokei_connector_profile *profile = &endpoint->profile;

	return profile->codec == provider->codec &&
	       profile->heartbeat_ns == provider->heartbeat_ns &&
	       strcmp(text_or_none(profile->path), provider->path) == 0 &&
	       strcmp(text_or_none(endpoint->options.local), provider->local) == 0 &&
	       strcmp(text_or_none(profile->token), provider->token) == 0;
}

bool spokei_endpoint_take(struct spokei_endpoint *endpoint,
			  const struct spokei_provider_url *provider)
{
	const struct spoke_env *env = endpoint->engine->env;

	(void)snprintf(endpoint->admin, sizeof(endpoint->admin), "%s", provider->admin);
	(void)snprintf(endpoint->application, sizeof(endpoint->application), "%s",
		       provider->application);
	spokei_routing_tag(endpoint, provider->tag);
	if (endpoint->weight == provider->weight && endpoint->warmup_ms == provider->warmup_ms &&
	    endpoint->timestamp_ms == provider->timestamp_ms)
		return false;
	endpoint->weight = provider->weight;
	endpoint->warmup_ms = provider->warmup_ms;
	endpoint->timestamp_ms = provider->timestamp_ms;
	endpoint->listed_ns = endpoint->engine->begin_ns;
	endpoint->uptime_ms = 0;
	/* Read once, so that a clock change does not alter the uptime. */
	if (provider->timestamp_ms > 0)
		endpoint->uptime_ms = (int64_t)(env->wall(env->ctx) / MS) -
				      (int64_t)provider->timestamp_ms;
	return true;
}

uint32_t spokei_endpoint_warm(uint32_t weight, uint64_t warmup_ms, int64_t uptime_ms)
{
	uint64_t warm;

	if (weight == 0)
		return 0;
	if (uptime_ms <= 0)
		return 1;
	if ((uint64_t)uptime_ms >= warmup_ms)
		return weight;
	warm = (uint64_t)uptime_ms * weight / warmup_ms;
	return warm > 0 ? (uint32_t)warm : 1;
}

uint32_t spokei_endpoint_weight(const struct spokei_endpoint *endpoint, bool *ret_grows)
{
	uint64_t passed_ms = (endpoint->engine->begin_ns - endpoint->listed_ns) / MS;
	int64_t uptime_ms = endpoint->uptime_ms + (int64_t)passed_ms;

	*ret_grows = false;
	if (endpoint->timestamp_ms == 0)
		return endpoint->weight;
	*ret_grows = uptime_ms < (int64_t)endpoint->warmup_ms && endpoint->weight > 1;
	return spokei_endpoint_warm(endpoint->weight, endpoint->warmup_ms, uptime_ms);
}

/* A name other than "localhost" may become any address. */
bool spokei_endpoint_is_near(const char *host)
{
	struct spokei_machine machine;

	if (strcmp(host, "localhost") == 0)
		return true;
	return spokei_machine_read((struct spoke_span){ host, strlen(host) }, &machine) &&
	       spokei_machine_is_here(&machine);
}

/* --- life */

static void endpoint_finalise(struct spokei_task *task)
{
	spokei_endpoint_free(spoke_container_of(task, struct spokei_endpoint, finalise));
}

/* Copies a text to *at, and moves *at behind it. Returns the copy. */
static const char *put_text(char **at, const char *text, size_t size)
{
	const char *copy = *at;

	memcpy(*at, text, size);
	*at += size;
	return copy;
}

/* Copies the texts after the lines, those of the options and the profile too. */
static void copy_texts(struct spokei_endpoint *endpoint, const struct spokei_provider_url *provider)
{
	struct spokei_connector_options *options = &endpoint->options;
	struct spokei_connector_profile *profile = &endpoint->profile;
	const char *where = options->host ? options->host : options->path;
	char *at = (char *)&endpoint->lines[endpoint->line_count];

	endpoint->key = put_text(&at, provider->key, provider->key_len);
	endpoint->key_len = provider->key_len;
	endpoint->name = endpoint->key + provider->name_at;
	endpoint->group = endpoint->key + provider->group_at;
	endpoint->version = endpoint->key + provider->version_at;
	*(options->host ? &options->host : &options->path) = put_text(&at, where,
								      strlen(where) + 1);
	profile->codec = provider->codec;
	profile->heartbeat_ns = provider->heartbeat_ns;
	profile->near = options->host == NULL || spokei_endpoint_is_near(where);
	if (*provider->local)
		options->local = put_text(&at, provider->local, strlen(provider->local) + 1);
	if (*provider->path)
		profile->path = put_text(&at, provider->path, strlen(provider->path) + 1);
	if (*provider->token)
		profile->token = put_text(&at, provider->token, strlen(provider->token) + 1);
}

int spokei_endpoint_new(struct spokei_directory *directory,
			const struct spokei_provider_url *provider,
			struct spokei_endpoint **ret_endpoint)
{
	struct spoke_engine *engine = directory->engine;
	const uint32_t connections = directory->settings.connections;
	const struct spokei_connector_options *options = &provider->options;
	const char *where = options->host ? options->host : options->path;
	size_t size = sizeof(struct spokei_endpoint) + connections * sizeof(struct spokei_line) +
		      provider->key_len + strlen(where) + strlen(provider->path) +
		      strlen(provider->token) + strlen(provider->local) + 4;
	struct spokei_endpoint *endpoint = spokei_alloc(engine->env, 1, size);

	if (endpoint == NULL)
		return SPOKE_ENOMEM;
	endpoint->engine = engine;
	endpoint->directory = directory;
	endpoint->size = size;
	endpoint->place = SPOKEI_NOWHERE;
	endpoint->asleep = true;
	endpoint->line_count = connections;
	endpoint->options = *options;
	endpoint->options.profile = &endpoint->profile;
	endpoint->finalise.run = endpoint_finalise;
	for (uint32_t i = 0; i < connections; i++)
		endpoint->lines[i].endpoint = endpoint;
	endpoint->score = spokei_score_make();
	copy_texts(endpoint, provider);
	endpoint->weight = UINT32_MAX;
	(void)spokei_endpoint_take(endpoint, provider);
	*ret_endpoint = endpoint;
	return SPOKE_OK;
}

void spokei_endpoint_free(struct spokei_endpoint *endpoint)
{
	SPOKE_ASSERT(!is_busy(endpoint));
	spoke_url_fini(&endpoint->url);
	spokei_free(endpoint->engine->env, endpoint, 1, endpoint->size);
}

const char *spokei_endpoint_reason(const struct spokei_endpoint *endpoint)
{
	for (unsigned i = 0; i < endpoint->line_count; i++) {
		const struct spokei_connector *connector = endpoint->lines[i].connector;

		if (connector && *spokei_connector_reason(connector))
			return spokei_connector_reason(connector);
	}
	return NULL;
}

void spokei_endpoint_free_if_over(struct spokei_endpoint *endpoint)
{
	if (endpoint->node.next == NULL || is_busy(endpoint))
		return;
	spokei_list_remove(&endpoint->node);
	spokei_run_freeing(endpoint->engine, &endpoint->finalise);
}

/* --- for users */

static bool stands(const struct spokei_line *line)
{
	return line->connector && spokei_connector_state(line->connector) == SPOKEI_CONNECTOR_OPEN;
}

static uint32_t count_standing(const struct spokei_endpoint *endpoint)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < endpoint->line_count; i++)
		count += stands(&endpoint->lines[i]);
	return count;
}

enum spoke_endpoint_state spokei_endpoint_state(const struct spokei_endpoint *endpoint)
{
	static const enum spoke_endpoint_state states[] = {
		[SPOKEI_GRADE_READY] = SPOKE_ENDPOINT_READY,
		[SPOKEI_GRADE_SUSPECT] = SPOKE_ENDPOINT_SUSPECT,
		[SPOKEI_GRADE_PROBATION] = SPOKE_ENDPOINT_PROBATION,
		[SPOKEI_GRADE_CONNECTING] = SPOKE_ENDPOINT_CONNECTING,
	};
	enum spokei_grade grade = spokei_endpoint_grade(endpoint);

	if (endpoint->removed)
		return SPOKE_ENDPOINT_REMOVED;
	if (endpoint->asleep)
		return SPOKE_ENDPOINT_IDLE;
	if (grade < SPOKEI_GRADE_NONE)
		return states[grade];
	return count_standing(endpoint) ? SPOKE_ENDPOINT_READONLY : SPOKE_ENDPOINT_BACKOFF;
}

/* Merges the state of all connections: the last byte, the most misses, the next attempt. */
static void look_at_lines(const struct spokei_endpoint *endpoint, struct spoke_endpoint_info *info)
{
	info->heard_ns = UINT64_MAX;
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		struct spokei_connector_look look;

		if (endpoint->lines[i].connector == NULL)
			continue;
		spokei_connector_look(endpoint->lines[i].connector, &look);
		info->missed = look.missed > info->missed ? look.missed : info->missed;
		info->heard_ns = look.quiet_ns < info->heard_ns ? look.quiet_ns : info->heard_ns;
		if (look.attempt == 0 || (info->attempt && look.retry_ns >= info->retry_ns))
			continue;
		info->attempt = look.attempt;
		info->retry_ns = look.retry_ns;
	}
	if (info->state != SPOKE_ENDPOINT_BACKOFF) {
		info->attempt = 0;
		info->retry_ns = 0;
	}
}

bool spokei_endpoint_tls(const struct spokei_endpoint *endpoint, struct spoke_tls_info *ret_info)
{
	for (uint32_t i = 0; i < endpoint->line_count; i++) {
		if (stands(&endpoint->lines[i])) {
			const struct spokei_conn *conn = spokei_connector_conn(
				endpoint->lines[i].connector);

			if (conn && spokei_stream_look(&conn->stream, ret_info))
				return true;
		}
	}
	return false;
}

static bool is_local(const struct spokei_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->line_count; i++)
		if (stands(&endpoint->lines[i]) &&
		    spokei_connector_is_local(endpoint->lines[i].connector))
			return true;
	return false;
}

void spokei_endpoint_info(const struct spokei_endpoint *endpoint, struct spoke_endpoint_info *ret)
{
	bool grows;

	*ret = (struct spoke_endpoint_info){
		.state = spokei_endpoint_state(endpoint),
		.ejected = endpoint->eject.aside,
		.weight = spokei_endpoint_weight(endpoint, &grows),
		.actives = endpoint->actives,
		.connections = count_standing(endpoint),
		.mean_ns = spokei_score_mean(&endpoint->score, endpoint->engine->begin_ns),
		.calls = endpoint->calls,
		.failures = endpoint->failures,
		.tls = spokei_endpoint_tls(endpoint, NULL),
		.local = is_local(endpoint),
	};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", endpoint->name);
	(void)snprintf(ret->admin, sizeof(ret->admin), "%s", endpoint->admin);
	look_at_lines(endpoint, ret);
}

const char *spoke_endpoint_state_name(enum spoke_endpoint_state state)
{
	static const char *const names[] = {
		[SPOKE_ENDPOINT_IDLE] = "idle",         [SPOKE_ENDPOINT_CONNECTING] = "connecting",
		[SPOKE_ENDPOINT_BACKOFF] = "backoff",   [SPOKE_ENDPOINT_PROBATION] = "probation",
		[SPOKE_ENDPOINT_READY] = "ready",       [SPOKE_ENDPOINT_SUSPECT] = "suspect",
		[SPOKE_ENDPOINT_READONLY] = "readonly", [SPOKE_ENDPOINT_REMOVED] = "removed",
	};

	return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}
