/* SPDX-License-Identifier: Apache-2.0 */
/* The service "spoke.Comet", by which clients of RPC push messages. */
#include "cluster/comet/comet.h"
#include "core/json/json.h"

#include <spoke/provider.h>

#define SERVICE "spoke.Comet"
#define WHO_MAX 1000u
#define BATCH_MAX 65536u /* users of one push_many */

/* The argument of the handlers. It outlives the gateway, until the engine ends. */
struct spokei_comet_served {
	struct spokei_member member; /* among the retired ones, so that the engine frees it */
	struct spoke_engine *engine;
	struct spoke_comet *comet;        /* NULL: closed */
	struct spokei_comet_served *next; /* of the gateway */
};

/* Returns the gateway, or answers the request. */
static struct spoke_comet *comet_of(struct spoke_request *request, void *arg)
{
	const struct spokei_comet_served *served = arg;

	if (served->comet == NULL) {
		spoke_reply_error(request, SPOKE_ECLOSED, "the gateway is closed");
		return NULL;
	}
	return served->comet;
}

/* --- arguments */

/* A request that pushes. */
struct pushing {
	struct spoke_comet *comet;
	struct spoke_value event; /* its arguments */
	struct spoke_value data;
	struct spoke_value options;
	struct spoke_comet_message message;
	struct spokei_buffer json; /* text of data that is no text */
};

static int read_options(struct spoke_request *request, struct spoke_value options,
			struct spoke_comet_message *message)
{
	struct spoke_reader reader = spoke_reader_of(options);
	uint64_t ttl_ms = 0;
	int error;

	if (spoke_value_type(options) == SPOKE_VALUE_NONE || spoke_value_is_nil(options))
		return SPOKE_OK;
	error = SPOKE_READ_MAP(&reader, "ttl", SPOKE_OPTIONAL(&ttl_ms), "keep",
			       SPOKE_OPTIONAL(&message->keep));
	if (error) {
		spoke_reply_unread(request, &reader);
		return error;
	}
	message->ttl_ns = ttl_ms < UINT64_MAX / 1000000 ? ttl_ms * 1000000 : UINT64_MAX;
	return SPOKE_OK;
}

/* Makes the message. Returns an error after it was answered. */
static int read_message(struct spoke_request *request, struct pushing *it)
{
	int error = SPOKE_OK;

	spokei_buffer_init(&it->json, it->comet->engine->env, it->comet->with.message_max);
	if (!spoke_value_is_nil(it->event))
		error = spoke_value_str(it->event, &it->message.event);
	if (error) {
		spoke_reply_error(request, error, "the event is a text or nil");
		return error;
	}
	if (spoke_value_str(it->data, &it->message.data)) {
		error = spokei_json_append(&it->json, it->data);
		it->message.data = (struct spoke_span){ spokei_buffer_data(&it->json),
							spokei_buffer_len(&it->json) };
	}
	if (error == SPOKE_ETOOLARGE) {
		spoke_reply_error(
			request, error,
			"push: the data has more bytes as JSON than message.max allows, %u",
			(unsigned)it->comet->with.message_max);
	} else if (error) {
		spoke_reply_error(request, error, "%s", spoke_strerror(error));
	} else {
		error = read_options(request, it->options, &it->message);
	}
	if (error)
		spokei_buffer_fini(&it->json);
	return error;
}

static void end_push(struct spoke_request *request, struct pushing *it, int error,
		     const struct spoke_comet_result *result)
{
	bool explained = error == SPOKE_EINVAL || error == SPOKE_ETOOLARGE;

	spokei_buffer_fini(&it->json);
	if (error) {
		spoke_reply_error(request, error, "%s",
				  explained ? spoke_engine_why(it->comet->engine)
					    : spoke_strerror(error));
	} else {
		SPOKE_REPLY(request, SPOKE_MAP("id", result->id, "users", result->users,
					       "connections", result->connections));
	}
}

/* --- the methods */

static void serve_push(struct spoke_request *request, void *arg)
{
	struct pushing it = { .comet = comet_of(request, arg) };
	struct spoke_comet_result result;
	struct spoke_span user;

	if (it.comet == NULL ||
	    SPOKE_READ_REQUEST(request, &user, &it.event, &it.data, SPOKE_OPTIONAL(&it.options)) ||
	    read_message(request, &it))
		return;
	end_push(request, &it, spoke_comet_push(it.comet, user, &it.message, &result), &result);
}

static int push_to(struct spoke_comet *comet, struct spoke_value users,
		   const struct spoke_comet_message *message, struct spoke_comet_result *result)
{
	const struct spoke_env *env = comet->engine->env;
	struct spoke_cursor cursor;
	struct spoke_value value;
	struct spoke_span *spans;
	size_t count;
	size_t i = 0;
	int error = spoke_value_array_len(users, &count);

	if (error == SPOKE_OK)
		error = spoke_cursor_array(users, &cursor);
	if (error)
		return error;
	if (count > BATCH_MAX) {
		spokei_why_set(comet->engine, "push_many: %zu users; at most %u are allowed", count,
			       BATCH_MAX);
		return SPOKE_ETOOLARGE;
	}
	spans = count ? spokei_alloc(env, count, sizeof(*spans)) : NULL;
	if (count && spans == NULL)
		return SPOKE_ENOMEM;
	while (error == SPOKE_OK && i < count && spoke_cursor_next(&cursor, &value))
		error = spoke_value_str(value, &spans[i++]);
	if (error == SPOKE_OK)
		error = spoke_comet_push_many(comet, spans, i, message, result);
	spokei_free(env, spans, count, sizeof(*spans));
	return error;
}

static void serve_push_many(struct spoke_request *request, void *arg)
{
	struct pushing it = { .comet = comet_of(request, arg) };
	struct spoke_value users = { NULL, 0 };
	struct spoke_comet_result result;

	if (it.comet == NULL ||
	    SPOKE_READ_REQUEST(request, &users, &it.event, &it.data, SPOKE_OPTIONAL(&it.options)) ||
	    read_message(request, &it))
		return;
	end_push(request, &it, push_to(it.comet, users, &it.message, &result), &result);
}

static void serve_push_all(struct spoke_request *request, void *arg)
{
	struct pushing it = { .comet = comet_of(request, arg) };
	struct spoke_comet_result result;

	if (it.comet == NULL ||
	    SPOKE_READ_REQUEST(request, &it.event, &it.data, SPOKE_OPTIONAL(&it.options)) ||
	    read_message(request, &it))
		return;
	end_push(request, &it, spoke_comet_push_all(it.comet, &it.message, &result), &result);
}

/* Replies with the packed value. */
static void reply_built(struct spoke_request *request, struct spoke_builder *builder)
{
	struct spoke_value value;
	int error = spoke_builder_finish_value(builder, &value);

	if (error)
		spoke_reply_error(request, error, "%s", spoke_strerror(error));
	else
		spoke_reply(request, value);
	spoke_builder_fini(builder);
}

static void reply_all_users(struct spoke_comet *comet, struct spoke_request *request)
{
	const struct spoke_env *env = comet->engine->env;
	struct spoke_span *users = spokei_alloc(env, WHO_MAX, sizeof(*users));
	struct spoke_builder builder;
	size_t online;
	size_t count;

	if (users == NULL) {
		spoke_reply_error(request, SPOKE_ENOMEM, "%s", spoke_strerror(SPOKE_ENOMEM));
		return;
	}
	online = spoke_comet_users(comet, users, WHO_MAX);
	count = online < WHO_MAX ? online : WHO_MAX;
	spoke_builder_init(&builder, env, NULL);
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "online");
	spoke_pack_u64(&builder, online);
	spoke_pack_text(&builder, "users");
	spoke_pack_array(&builder, count);
	for (size_t i = 0; i < count; i++)
		spoke_pack_str(&builder, users[i].data, users[i].len);
	reply_built(request, &builder);
	spokei_free(env, users, WHO_MAX, sizeof(*users));
}

static void serve_who(struct spoke_request *request, void *arg)
{
	struct spoke_comet *comet = comet_of(request, arg);
	struct spoke_span user;

	if (comet == NULL)
		return;
	if (spoke_request_arg_count(request) == 0)
		reply_all_users(comet, request);
	else if (SPOKE_READ_REQUEST(request, &user) == SPOKE_OK)
		SPOKE_REPLY(request,
			    SPOKE_MAP("connections", spoke_comet_connections(comet, user)));
}

static void serve_kick(struct spoke_request *request, void *arg)
{
	struct spoke_comet *comet = comet_of(request, arg);
	char reason[SPOKEI_COMET_REASON] = "";
	struct spoke_span user;

	if (comet == NULL || SPOKE_READ_REQUEST(request, &user, SPOKE_OPTIONAL(SPOKE_TEXT(reason))))
		return;
	SPOKE_REPLY(request, SPOKE_MAP("connections", spoke_comet_kick(comet, user, reason)));
}

static void serve_stats(struct spoke_request *request, void *arg)
{
	struct spoke_comet *comet = comet_of(request, arg);
	struct spoke_builder builder;

	if (comet == NULL)
		return;
	spoke_builder_init(&builder, comet->engine->env, NULL);
	spoke_pack_map(&builder, SPOKE_COMET_FIGURE_COUNT);
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++) {
		spoke_pack_text(&builder, spoke_comet_figure_name((enum spoke_comet_figure)i));
		spoke_pack_u64(&builder, comet->figures[i]);
	}
	reply_built(request, &builder);
}

/* --- the service */

static void served_free(struct spokei_member *member)
{
	struct spokei_comet_served *served = spoke_container_of(member, struct spokei_comet_served,
								member);

	spokei_free(served->engine->env, served, 1, sizeof(*served));
}

void spokei_comet_unserve(struct spoke_comet *comet)
{
	for (; comet->served; comet->served = comet->served->next)
		comet->served->comet = NULL;
}

int spoke_comet_serve(struct spoke_comet *comet, struct spoke_provider *provider)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	const unsigned safe = SPOKE_HANDLER_SAFE;
	struct spokei_comet_served *served;
	int error;

	if (comet->closed)
		return SPOKE_ECLOSED;
	served = spokei_alloc(comet->engine->env, 1, sizeof(*served));
	if (served == NULL)
		return SPOKE_ENOMEM;
	error = spoke_provider_add(
		provider, &service,
		(const struct spoke_handler[]){
			{ .method = "push", .handle = serve_push, .arg = served },
			{ .method = "push_many", .handle = serve_push_many, .arg = served },
			{ .method = "push_all", .handle = serve_push_all, .arg = served },
			{ .method = "who", .handle = serve_who, .arg = served, .flags = safe },
			{ .method = "kick", .handle = serve_kick, .arg = served },
			{ .method = "stats", .handle = serve_stats, .arg = served, .flags = safe },
		},
		6);
	if (error) {
		spokei_free(comet->engine->env, served, 1, sizeof(*served));
		return error;
	}
	served->engine = comet->engine;
	served->comet = comet;
	served->next = comet->served;
	comet->served = served;
	served->member = (struct spokei_member){ .kind = "comet service", .free = served_free };
	spokei_list_append(&comet->engine->retired, &served->member.node);
	return SPOKE_OK;
}
