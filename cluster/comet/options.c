/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a gateway, laid over the section [comet] of a file, and changes of that file while
 * the gateway runs.
 */
#include "cluster/comet/parts.h"
#include "cluster/comet/view.h"
#include "cluster/config/settings.h"
#include "transport/listen/listener.h"

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define TIME_MAX (UINT64_C(20) * 24 * 3600 * SECOND) /* stamps are 32 bits of ms */

/* --- limits */

int spokei_comet_wrong(struct spoke_engine *engine, const char *option, const char *rule)
{
	spokei_event(engine, SPOKE_EINVAL, "option %s of the gateway: %s", option, rule);
	return SPOKE_EINVAL;
}

/* Checks values that depend on others. */
static int check_together(struct spoke_engine *engine, const struct spokei_key_values *values)
{
	if (values->of[SPOKEI_KEY_COMET_RETRY_MIN] > values->of[SPOKEI_KEY_COMET_RETRY_MAX])
		return spokei_comet_wrong(engine, "retry_min_ns", "greater than retry_max_ns");
	return SPOKE_OK;
}

/* No key of the file sets the time of the authorizer. */
static int check_authorizer(struct spoke_engine *engine, struct spoke_comet_options *with)
{
	if (with->authorize_ns == 0)
		with->authorize_ns = 5 * SECOND;
	if (with->authorize_ns < MS || with->authorize_ns > TIME_MAX)
		return spokei_comet_wrong(engine, "authorize_ns", "out of range");
	if (with->authorize == NULL && !with->query_user)
		return spokei_comet_wrong(engine, "authorize",
					  "required, unless query_user is set");
	return SPOKE_OK;
}

/* --- changes of the file */

void spokei_comet_preset(const struct spoke_comet *comet, struct spokei_listener *listener)
{
	/* A client that is gone without a word, or does not read, costs the system little. */
	spokei_listener_preset(listener, comet->with.slow_ns, comet->with.send_buffer);
}

/* Returns the place of an origin of the former list in the present one. */
static uint16_t moved(const struct spoke_comet *comet, const char *former, uint16_t origin)
{
	const char *name = former + (origin ? origin - 1 : 0);

	if (origin == 0)
		return 0;
	return spokei_comet_listed((struct spoke_span){ name, strcspn(name, ",") },
				   comet->with.origins);
}

static void move_asks(const struct spoke_comet *comet, const struct spoke_list *asks,
		      const char *former)
{
	for (struct spoke_list *node = asks->next; node != asks; node = node->next) {
		struct spokei_comet_door *door = spokei_http_user(
			spoke_container_of(node, struct spokei_comet_ask, node)->http);

		door->origin = moved(comet, former, door->origin);
	}
}

/* Connections know their origin by its place in the list. Those without one are never answered, or
 * have been. */
static void move_origins(struct spoke_comet *comet, const char *former)
{
	for (uint32_t i = 0; i < comet->used; i++) {
		struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);

		if (conn->state != SPOKEI_COMET_FREE)
			conn->origin = moved(comet, former, conn->origin);
	}
	move_asks(comet, &comet->asks, former);
	move_asks(comet, &comet->sends, former);
}

/* Lists are looked up often: one that is not set is empty. */
static void complete_lists(struct spoke_comet_options *with)
{
	const char **const lists[] = { &with->origins, &with->hosts, &with->proxies };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (*lists[i] == NULL)
			*lists[i] = "";
}

/* Applies the limits that other objects hold. */
static void apply(void *owner)
{
	struct spoke_comet *comet = owner;
	const struct spoke_comet_options *with = &comet->with;
	const uint64_t now_ns = comet->engine->begin_ns;

	complete_lists(&comet->with);
	move_origins(comet, comet->origins);
	comet->origins = with->origins;
	comet->http.limits.request_ns = with->head_ns;
	comet->http.limits.body_max = with->frame_max;
	comet->http.limits.slow_ns = with->authorize_ns + with->slow_ns;
	if (comet->rate.rate != with->accept_rate) {
		const uint32_t half = with->accept_rate / 2;

		comet->rate = spokei_bucket_make(with->accept_rate, with->accept_rate, now_ns);
		comet->reserve = spokei_bucket_make(half, half, now_ns);
	}
	comet->ask_slab.max = with->connections_max;
	spokei_quota_change(&comet->quota, &comet->connections);
	for (size_t i = 0; i < comet->listener_count; i++) {
		if (comet->listeners[i])
			spokei_comet_preset(comet, comet->listeners[i]);
	}
}

static int prepare(void *owner)
{
	const struct spoke_comet *comet = owner;

	return check_together(comet->engine, comet->settings->next);
}

static const struct spokei_settings_part parts[] = {
	{ SPOKEI_AT_QUOTA, offsetof(struct spoke_comet, connections), NULL },
	{ SPOKEI_AT_COMET, offsetof(struct spoke_comet, with), apply },
};

static const struct spokei_settings_kind kind = {
	.sections = 1u << SPOKEI_IN_COMET,
	.parts = parts,
	.part_count = sizeof(parts) / sizeof(parts[0]),
	.prepare = prepare,
};

/* --- the beginning */

const struct spokei_settings *spokei_comet_settings(const struct spoke_comet *comet)
{
	return comet->settings;
}

static int read_all(struct spoke_comet *comet, struct spokei_settings *settings,
		    const struct spoke_comet_options *options)
{
	struct spoke_engine *engine = comet->engine;
	int error = spokei_keys_read_code(engine, &settings->options, SPOKEI_IN_COMET,
					  SPOKEI_AT_COMET, options);

	if (error == SPOKE_OK)
		error = spokei_settings_begin(settings, engine);
	if (error == SPOKE_OK)
		error = check_together(engine, &settings->in_force);
	if (error == SPOKE_OK)
		error = check_authorizer(engine, &comet->with);
	return error == SPOKE_ERANGE ? SPOKE_EINVAL : error;
}

int spokei_comet_read_options(struct spoke_comet *comet, const struct spoke_comet_options *options)
{
	struct spokei_settings *settings = spokei_alloc(comet->engine->env, 1, sizeof(*settings));
	int error;

	comet->with = *options;
	if (settings == NULL)
		return SPOKE_ENOMEM;
	settings->kind = &kind;
	settings->owner = comet;
	settings->structs = comet;
	settings->file.config = options->config;
	comet->settings = settings;
	error = read_all(comet, settings, options);
	complete_lists(&comet->with);
	comet->origins = comet->with.origins;
	return error ? error : spokei_comet_make_page(comet);
}

void spokei_comet_leave_file(struct spoke_comet *comet)
{
	if (comet->settings)
		spokei_settings_leave(comet->settings);
}

void spokei_comet_free_options(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;

	if (comet->settings)
		spokei_settings_end(comet->settings, env);
	spokei_free(env, comet->settings, 1, sizeof(*comet->settings));
}
