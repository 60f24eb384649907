/* SPDX-License-Identifier: Apache-2.0 */
/* State of endpoints as users see it: spoke_consumer_ready(), spoke_consumer_endpoints(). */
#include "cluster/endpoints/info.h"

#include "cluster/endpoints/directory.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"

#include <stdio.h>

/* --- one endpoint */

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

const char *spokei_directory_reason(const struct spokei_directory *directory)
{
	const char *reason = NULL;

	for (size_t i = 0; reason == NULL && i < spokei_directory_listed(directory); i++)
		reason = spokei_endpoint_reason(directory->candidates.endpoints[i]);
	return reason;
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

/* --- all endpoints */

size_t spokei_directory_ready(const struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	size_t ready = 0;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		const struct spokei_endpoint *endpoint = candidates->endpoints[i];

		if (!endpoint->asleep && spokei_endpoint_grade(endpoint) == SPOKEI_GRADE_READY)
			ready++;
	}
	return ready;
}

const struct spokei_endpoint *spokei_directory_next(const struct spokei_directory *directory,
						    const struct spokei_endpoint *before)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	struct spoke_list *node = directory->gone.next;
	size_t place = before ? before->place + 1 : 0;

	if (before && before->place == SPOKEI_NOWHERE)
		node = before->node.next;
	else if (place < candidates->shown.count)
		return candidates->endpoints[place];
	return node == &directory->gone ? NULL
					: spoke_container_of(node, struct spokei_endpoint, node);
}

size_t spokei_directory_infos(const struct spokei_directory *directory,
			      struct spoke_endpoint_info *infos, size_t max)
{
	const struct spokei_endpoint *endpoint = NULL;
	size_t count = 0;

	while ((endpoint = spokei_directory_next(directory, endpoint)) != NULL) {
		if (count < max)
			spokei_endpoint_info(endpoint, &infos[count]);
		count++;
	}
	return count;
}
