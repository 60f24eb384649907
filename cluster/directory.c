/* SPDX-License-Identifier: Apache-2.0 */
/* The list, and the life of a directory. Who takes a call: directory_pick.c. */
#include "cluster/directory.h"

void spokei_directory_refresh_later(struct spokei_directory *directory)
{
	directory->stale = true;
	if (directory->barren && !directory->ended)
		spokei_engine_soon(directory->engine, &directory->news);
}

/* --- what endpoints tell */

static void endpoint_request(void *arg, struct spokei_conn *conn,
			     const struct spokei_message *message)
{
	struct spokei_directory *directory = arg;

	directory->up->request(directory->up_arg, conn, message);
}

static void endpoint_changed(void *arg, struct spokei_line *line)
{
	struct spokei_directory *directory = arg;

	spokei_directory_refresh_later(directory);
	if (!directory->resting ||
	    spokei_connector_state(line->connector) != SPOKEI_CONNECTOR_WAITING)
		return;
	/* A consumer that drains has no use for another connection. */
	spokei_line_drop(line);
	if (directory->link->conn_count == 0)
		directory->up->rested(directory->up_arg);
}

static void endpoint_event(void *arg, const struct spoke_link_event *event)
{
	struct spokei_directory *directory = arg;

	spokei_directory_refresh_later(directory);
	directory->up->event(directory->up_arg, event);
}

static const struct spokei_endpoint_up endpoint_up = {
	.request = endpoint_request,
	.changed = endpoint_changed,
	.event = endpoint_event,
};

/* --- the list */

/* Other endpoints sit there, or at other places. */
static void relisted(struct spokei_directory *directory)
{
	const struct spokei_seats *seats = &directory->seats;

	directory->listing++;
	directory->version++;
	directory->turn = 0;
	directory->stuck = 0;
	directory->sole = seats->shown.count == 1 && directory->settings.connections == 1
				  ? seats->endpoints[0]
				  : NULL;
	spokei_directory_refresh_later(directory);
}

/* A new endpoint that sits nowhere yet. */
static int make_endpoint(struct spokei_directory *directory, const struct spokei_listing *listing,
			 struct spokei_endpoint **ret)
{
	struct spokei_endpoint *endpoint;
	int error = spokei_endpoint_new(directory->link, listing, directory->settings.connections,
					&endpoint_up, directory, &endpoint);

	if (error)
		return error;
	endpoint->directory = directory;
	endpoint->id = ++directory->last_id;
	directory->needs_service |= listing->options.wire->attachments;
	*ret = endpoint;
	return SPOKE_OK;
}

static int add_fixed(struct spokei_directory *directory, const struct spoke_url *url)
{
	struct spokei_listing listing;
	struct spokei_endpoint *endpoint;
	int error = spokei_listing_read(directory->engine, url, &listing);

	if (error)
		return error;
	error = make_endpoint(directory, &listing, &endpoint);
	if (error)
		return error;
	spokei_seats_add(&directory->seats, endpoint);
	return directory->settings.lazy ? SPOKE_OK : spokei_endpoint_wake(endpoint);
}

static void forget_all(struct spokei_directory *directory)
{
	struct spokei_seats *seats = &directory->seats;
	size_t count = seats->shown.count;

	spokei_seats_clear(seats);
	for (size_t i = 0; i < count; i++) {
		struct spokei_endpoint *endpoint = seats->endpoints[i];

		for (uint32_t at = 0; at < endpoint->line_count; at++)
			spokei_line_drop(&endpoint->lines[at]);
		spokei_endpoint_free(endpoint);
	}
}

int spokei_directory_fix(struct spokei_directory *directory, const struct spoke_url *urls,
			 size_t count)
{
	int error = spokei_seats_reserve(&directory->seats, count);

	SPOKE_ASSERT(directory->seats.shown.count == 0);
	for (size_t i = 0; i < count && error == 0; i++)
		error = add_fixed(directory, &urls[i]);
	if (error)
		forget_all(directory);
	relisted(directory);
	return error;
}

/* --- the end */

void spokei_directory_end(struct spokei_directory *directory)
{
	const struct spokei_seats *seats = &directory->seats;

	if (directory->ended)
		return;
	directory->ended = true;
	directory->sole = NULL;
	directory->stale = true;
	spokei_task_drop(&directory->news);
	for (size_t i = 0; i < seats->shown.count; i++)
		spokei_endpoint_end(seats->endpoints[i]);
}

void spokei_directory_rest(struct spokei_directory *directory, bool calls)
{
	const struct spokei_seats *seats = &directory->seats;

	directory->resting = true;
	spokei_directory_refresh_later(directory);
	for (size_t i = 0; i < seats->shown.count; i++)
		spokei_endpoint_rest(seats->endpoints[i], calls);
}

/* --- life */

static void tell_able(struct spokei_task *task)
{
	struct spokei_directory *directory = spoke_container_of(task, struct spokei_directory,
								news);
	uint32_t able;
	uint32_t fresh;

	spokei_directory_count(directory, NULL, 0, &able, &fresh);
	if (able > 0 && directory->up->able)
		directory->up->able(directory->up_arg);
}

void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg)
{
	const struct spoke_env *env = link->engine->env;

	*directory = (struct spokei_directory){
		.engine = link->engine,
		.link = link,
		.settings = *settings,
		.up = up,
		.up_arg = up_arg,
		.listing = 1,
		.version = 1,
		.best = SPOKEI_RANK_NONE,
		.stale = true,
		.news = { .run = tell_able },
	};
	if (directory->settings.connections == 0)
		directory->settings.connections = 1;
	if (directory->settings.actives_max == 0)
		directory->settings.actives_max = UINT32_MAX;
	env->dice(env->ctx, &directory->dice, sizeof(directory->dice));
	spokei_seats_init(&directory->seats, env);
	spokei_list_init(&directory->gone);
}

void spokei_directory_fini(struct spokei_directory *directory)
{
	forget_all(directory);
	spokei_seats_fini(&directory->seats);
}

/* --- attempts */

void spokei_directory_ended(struct spokei_endpoint *endpoint, enum spoke_fate fate, int error,
			    uint64_t took_ns)
{
	struct spokei_directory *directory = endpoint->directory;

	(void)fate;
	(void)error;
	(void)took_ns;
	SPOKE_ASSERT(endpoint->actives > 0);
	endpoint->actives--;
	if (SPOKEI_UNLIKELY(endpoint->place == SPOKEI_NOWHERE))
		return;
	directory->seats.actives[endpoint->place] = endpoint->actives;
	if (SPOKEI_UNLIKELY(endpoint->actives + 1 == directory->settings.actives_max))
		spokei_directory_refresh_later(directory);
}

/* --- what users ask */

size_t spokei_directory_ready(const struct spokei_directory *directory)
{
	const struct spokei_seats *seats = &directory->seats;
	size_t ready = 0;

	for (size_t i = 0; i < seats->shown.count; i++) {
		const struct spokei_endpoint *endpoint = seats->endpoints[i];

		if (!endpoint->asleep && spokei_endpoint_grade(endpoint) == SPOKEI_GRADE_READY)
			ready++;
	}
	return ready;
}
