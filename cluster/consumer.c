/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a consumer, and which endpoint takes the next call. */
#include "cluster/consumer_parts.h"

#include "cluster/request.h"

#define ENDPOINTS_MAX 1024u

static size_t consumer_size(size_t endpoints)
{
	return sizeof(struct spoke_consumer) + endpoints * sizeof(struct spokei_endpoint);
}

/* --- endpoints */

struct spokei_conn *spokei_consumer_pick(struct spoke_consumer *consumer)
{
	const struct spokei_connector *best = NULL;
	enum spokei_grade best_grade = SPOKEI_GRADE_NONE;
	size_t next = consumer->turn;

	for (size_t i = 0; i < consumer->endpoint_count; i++) {
		size_t at = consumer->turn;
		const struct spokei_connector *connector = consumer->endpoints[at].connector;
		enum spokei_grade grade = connector ? spokei_connector_grade(connector)
						    : SPOKEI_GRADE_NONE;

		consumer->turn = at + 1 < consumer->endpoint_count ? at + 1 : 0;
		if (SPOKEI_LIKELY(grade == SPOKEI_GRADE_READY))
			return spokei_connector_conn(connector);
		if (grade < best_grade) {
			best = connector;
			best_grade = grade;
			next = consumer->turn;
		}
	}
	consumer->turn = next;
	return best ? spokei_connector_conn(best) : NULL;
}

static void drop_endpoint(struct spokei_endpoint *endpoint)
{
	struct spokei_connector *connector = endpoint->connector;

	endpoint->connector = NULL;
	if (connector)
		spokei_connector_free(connector);
}

static void endpoint_request(void *arg, struct spokei_conn *conn,
			     const struct spokei_message *message)
{
	struct spokei_endpoint *endpoint = arg;

	spokei_request_serve_pushed(endpoint->consumer, conn, message);
}

static void endpoint_changed(void *arg, struct spokei_connector *connector, int error)
{
	struct spokei_endpoint *endpoint = arg;
	struct spoke_consumer *consumer = endpoint->consumer;

	(void)error;
	if (!consumer->caller.closed || endpoint->connector == NULL ||
	    spokei_connector_state(connector) != SPOKEI_CONNECTOR_WAITING)
		return;
	/* A consumer that drains has no use for another connection. */
	drop_endpoint(endpoint);
	if (consumer->link.conn_count == 0)
		spokei_consumer_end(consumer);
}

static void endpoint_event(void *arg, const struct spoke_link_event *event)
{
	const struct spokei_endpoint *endpoint = arg;
	const struct spokei_consumer_settings *settings = &endpoint->consumer->settings;

	if (settings->changed)
		settings->changed(settings->changed_arg, event);
}

static const struct spokei_connector_up endpoint_up = {
	.request = endpoint_request,
	.changed = endpoint_changed,
	.event = endpoint_event,
};

static int add_endpoint(struct spoke_consumer *consumer, const struct spoke_url *url)
{
	struct spokei_endpoint *endpoint = &consumer->endpoints[consumer->endpoint_count];
	struct spokei_connector_options options;
	int error = spokei_settings_endpoint(consumer->engine, url, &options);

	if (error)
		return error;
	endpoint->consumer = consumer;
	consumer->settings.needs_service |= options.wire->attachments;
	error = spokei_connector_new(&consumer->link, &options, &endpoint_up, endpoint,
				     &endpoint->connector);
	if (error == 0)
		consumer->endpoint_count++;
	return error;
}

static int add_endpoints(struct spoke_consumer *consumer,
			 const struct spoke_consumer_options *options)
{
	int error = add_endpoint(consumer, &consumer->settings.url);

	for (size_t i = 0; i < options->more_count && error == 0; i++) {
		struct spoke_url url;

		error = spokei_settings_url(consumer->engine, options->more_urls[i], &url);
		if (error)
			break;
		error = spokei_settings_further(consumer->engine, &consumer->settings, &url);
		if (error == 0)
			error = add_endpoint(consumer, &url);
		spoke_url_fini(&url);
	}
	return error;
}

/* --- the end */

static void consumer_bury(struct spokei_task *task)
{
	struct spoke_consumer *consumer = spoke_container_of(task, struct spoke_consumer, bury);
	const struct spoke_env *env = consumer->engine->env;
	struct spokei_desk *desk = atomic_load_explicit(&consumer->desk, memory_order_acquire);

	if (!consumer->freed) {
		spokei_roll_retire(consumer->engine, &consumer->member);
		return;
	}
	if (!spokei_desk_close(desk)) {
		spokei_engine_dead(consumer->engine, task);
		return;
	}
	spokei_desk_drop(desk);
	spokei_roll_drop(consumer->engine, &consumer->member);
	spokei_caller_fini(&consumer->caller);
	spokei_link_fini(&consumer->link);
	spokei_settings_consumer_fini(&consumer->settings);
	spokei_free(env, consumer, 1, consumer->size);
}

static void tell_of_end(struct spokei_endpoint *endpoint)
{
	struct spoke_link_event event = { .change = SPOKE_LINK_CLOSED, .error = SPOKE_ECLOSED };

	if (endpoint->consumer->freed || endpoint->connector == NULL ||
	    spokei_connector_state(endpoint->connector) != SPOKEI_CONNECTOR_OPEN)
		return;
	event.name = spokei_connector_name(endpoint->connector);
	endpoint_event(endpoint, &event);
}

/* Ends all that the consumer does; it is buried when its last connection is, if it is freed. */
void spokei_consumer_end(struct spoke_consumer *consumer)
{
	if (consumer->ended)
		return;
	consumer->caller.closed = true;
	consumer->ended = true;
	for (size_t i = 0; i < consumer->endpoint_count; i++) {
		tell_of_end(&consumer->endpoints[i]);
		drop_endpoint(&consumer->endpoints[i]);
	}
	spokei_link_end(&consumer->link, &consumer->bury);
}

/* What drains ends with its last call, or when all that was pushed to it is answered: connections
 * that have nothing else to do see to that themselves. */
static void rest(struct spoke_consumer *consumer)
{
	bool calls = consumer->link.pending_count > 0;

	if (!calls && consumer->link.serving_count == 0) {
		spokei_consumer_end(consumer);
		return;
	}
	for (size_t i = 0; i < consumer->endpoint_count; i++) {
		struct spokei_endpoint *endpoint = &consumer->endpoints[i];
		struct spokei_conn *conn;

		if (endpoint->connector == NULL)
			continue;
		conn = spokei_connector_conn(endpoint->connector);
		if (conn && conn->state == SPOKEI_CONN_OPEN)
			spokei_conn_finish(conn);
		else if (spokei_connector_state(endpoint->connector) == SPOKEI_CONNECTOR_WAITING ||
			 (conn && !calls))
			drop_endpoint(endpoint);
	}
}

static void consumer_idle(struct spokei_caller *caller)
{
	rest(spoke_container_of(caller, struct spoke_consumer, caller));
}

void spoke_consumer_free(struct spoke_consumer *consumer)
{
	if (consumer == NULL || consumer->freed)
		return;
	consumer->freed = true;
	spokei_consumer_end(consumer);
	if (consumer->link.alive == 0)
		spokei_engine_dead(consumer->engine, &consumer->bury);
}

static void consumer_close(struct spokei_member *member)
{
	spokei_consumer_end(spoke_container_of(member, struct spoke_consumer, member));
}

static void consumer_free(struct spokei_member *member)
{
	spoke_consumer_free(spoke_container_of(member, struct spoke_consumer, member));
}

static void consumer_woke(struct spokei_member *member)
{
	spokei_link_woke(&spoke_container_of(member, struct spoke_consumer, member)->link);
}

/* The calls under way go on; nothing new is taken. */
static void consumer_drain(struct spokei_member *member)
{
	struct spoke_consumer *consumer = spoke_container_of(member, struct spoke_consumer, member);

	consumer->caller.closed = true;
	consumer->link.closing = true;
	rest(consumer);
}

/* --- the beginning */

int spoke_consumer_new(struct spoke_engine *engine, const struct spoke_consumer_options *options,
		       struct spoke_consumer **ret_consumer)
{
	static const struct spoke_consumer_options defaults;
	const struct spoke_consumer_options *with = options ? options : &defaults;
	struct spoke_consumer *consumer;
	size_t size;
	int error;

	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	if (with->more_count > ENDPOINTS_MAX || (with->more_count && with->more_urls == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option more_urls: at most %u, and not NULL",
			     ENDPOINTS_MAX);
		return SPOKE_EINVAL;
	}
	size = consumer_size(with->more_count + 1);
	consumer = spokei_alloc(engine->env, 1, size);
	if (consumer == NULL)
		return SPOKE_ENOMEM;
	consumer->engine = engine;
	consumer->size = size;
	error = spokei_settings_consumer(engine, with, &consumer->settings);
	if (error)
		goto err_after_alloc;
	error = spokei_link_init(&consumer->link, engine, &consumer->settings.limits);
	if (error)
		goto err_after_settings;
	consumer->link.connects = true;
	consumer->link.serves = with->handle != NULL;
	consumer->pushed = (struct spokei_route){ .handle = with->handle, .arg = with->handle_arg };
	consumer->bury.run = consumer_bury;
	spokei_caller_init(&consumer->caller, &consumer->link);
	consumer->caller.idle = consumer_idle;
	consumer->member = (struct spokei_member){
		.kind = "consumer",
		.close = consumer_close,
		.drain = consumer_drain,
		.woke = consumer_woke,
		.free = consumer_free,
	};
	spokei_roll_add(engine, &consumer->member);
	error = add_endpoints(consumer, with);
	if (error) {
		spoke_consumer_free(consumer);
		return error;
	}
	*ret_consumer = consumer;
	return SPOKE_OK;

err_after_settings:
	spokei_settings_consumer_fini(&consumer->settings);
err_after_alloc:
	spokei_free(engine->env, consumer, 1, size);
	return error;
}

size_t spoke_consumer_ready(const struct spoke_consumer *consumer)
{
	size_t ready = 0;

	for (size_t i = 0; i < consumer->endpoint_count; i++) {
		const struct spokei_connector *connector = consumer->endpoints[i].connector;

		if (connector && spokei_connector_grade(connector) == SPOKEI_GRADE_READY)
			ready++;
	}
	return ready;
}
