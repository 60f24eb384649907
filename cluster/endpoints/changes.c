/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of endpoints: schedules a refresh of the directory, frees removed endpoints, and passes
 * link events on. */
#include "cluster/endpoints/parts.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

void spokei_directory_refresh_later(struct spokei_directory *directory)
{
	directory->stale = true;
	if (directory->barren && !directory->ended)
		spokei_engine_soon(directory->engine, &directory->news);
}

void spokei_directory_bury_if_over(struct spokei_endpoint *endpoint)
{
	if (endpoint->node.next == NULL || spokei_endpoint_busy(endpoint))
		return;
	spokei_list_remove(&endpoint->node);
	spokei_engine_dead(endpoint->engine, &endpoint->bury);
}

void spokei_directory_remove(struct spokei_directory *directory, struct spokei_endpoint *endpoint)
{
	spokei_list_append(&directory->gone, &endpoint->node);
	spokei_endpoint_retire(endpoint);
	spokei_directory_bury_if_over(endpoint);
}

static void endpoint_changed(void *arg, struct spokei_line *line)
{
	struct spokei_directory *directory = arg;

	enum spokei_connector_state state = spokei_connector_state(line->connector);

	spokei_directory_refresh_later(directory);
	/* A draining consumer needs no further connection. */
	if (state != SPOKEI_CONNECTOR_DONE &&
	    !(directory->resting && state == SPOKEI_CONNECTOR_WAITING))
		return;
	spokei_line_drop(line);
	spokei_directory_bury_if_over(line->endpoint);
	if (directory->resting && directory->link->conn_count == 0)
		directory->up->rested(directory->up_arg);
}

static void endpoint_event(void *arg, const struct spoke_link_event *event)
{
	struct spokei_directory *directory = arg;

	spokei_directory_refresh_later(directory);
	directory->up->event(directory->up_arg, event);
}

const struct spokei_endpoint_up spokei_directory_endpoint_up = {
	.changed = endpoint_changed,
	.event = endpoint_event,
};
