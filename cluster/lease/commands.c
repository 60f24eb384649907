/* SPDX-License-Identifier: Apache-2.0 */
/* A store: its asks and their answers, its connection for commands, its life. */
#include "cluster/lease/redis.h"
#include "cluster/lease/redis_parts.h"
#include "cluster/lease/refusal.h"
#include "core/base/env.h"

#include <stdio.h>

#define MS UINT64_C(1000000)
#define NEVER UINT64_MAX

static struct spokei_redis *redis_of(struct spokei_redis_link *link)
{
	return link->owner;
}

static struct spokei_redis_ask *ask_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_redis_ask, node);
}

/* --- writing a command */

void spokei_redis_begin(struct spokei_redis *redis, enum spokei_script script, unsigned keys,
			unsigned count)
{
	struct spokei_buffer *out = &redis->commands.out;

	SPOKE_ASSERT(redis->texts == 0 && count >= keys && count > 0);
	redis->mark = spokei_buffer_len(out);
	redis->texts = count;
	redis->script = script;
	redis->keys = keys;
	redis->fault = spokei_redis_is_ready(redis) ? SPOKE_OK : SPOKE_ESTATE;
	if (redis->fault)
		return;
	if (script == SPOKEI_SCRIPT_NONE) {
		redis->fault = spokei_resp_put_command(out, count);
		return;
	}
	redis->fault = spokei_resp_put_command(out, count + 3);
	redis->texts += 3;
	spokei_redis_text(redis, (struct spoke_span){ "EVALSHA", 7 });
	spokei_redis_text(redis, (struct spoke_span){ redis->sha[script], SPOKEI_REDIS_SHA });
	spokei_redis_number(redis, keys);
}

void spokei_redis_text(struct spokei_redis *redis, struct spoke_span text)
{
	SPOKE_ASSERT(redis->texts > 0);
	redis->texts--;
	if (redis->fault == SPOKE_OK)
		redis->fault = spokei_resp_put_text(&redis->commands.out, text);
}

void spokei_redis_number(struct spokei_redis *redis, uint64_t number)
{
	SPOKE_ASSERT(redis->texts > 0);
	redis->texts--;
	if (redis->fault == SPOKE_OK)
		redis->fault = spokei_resp_put_number(&redis->commands.out, number);
}

/* The oldest ask has a time of its own from `now_ns` on. */
static void note_oldest(struct spokei_redis *redis, uint64_t now_ns)
{
	redis->due_ns = NEVER;
	if (redis->patience_ns > 0)
		redis->due_ns = spokei_later(now_ns, redis->patience_ns);
	spokei_redis_link_due(&redis->commands, redis->due_ns);
}

int spokei_redis_send(struct spokei_redis *redis, struct spokei_redis_ask *ask)
{
	const struct spoke_env *env = redis->engine->env;
	bool oldest = spokei_list_empty(&redis->asks);
	int error = redis->fault;

	SPOKE_ASSERT(redis->texts == 0 && ask->node.next == NULL);
	if (error) {
		if (spokei_redis_is_ready(redis))
			spokei_buffer_truncate(&redis->commands.out, redis->mark);
		return error == SPOKE_ETOOLARGE ? SPOKE_ELIMIT : error;
	}
	spokei_count(redis->engine, SPOKE_STAT_LEASE_COMMANDS);
	ask->script = redis->script;
	ask->keys = redis->keys;
	spokei_list_append(&redis->asks, &ask->node);
	if (oldest)
		note_oldest(redis, env->now(env->ctx));
	spokei_redis_link_write(&redis->commands);
	return SPOKE_OK;
}

void spokei_redis_patience(struct spokei_redis *redis, uint64_t ns)
{
	redis->patience_ns = ns;
}

/* --- answers */

static void commands_opened(struct spokei_redis_link *link)
{
	spokei_redis_greet(redis_of(link));
}

static bool commands_expect(struct spokei_redis_link *link)
{
	const struct spokei_redis *redis = redis_of(link);

	return link->state == SPOKEI_REDIS_READY ? !spokei_list_empty(&redis->asks)
						 : redis->steps != 0;
}

/* Ends the connection if the answer shows that this one, or any, is of no use. */
static bool is_useful(struct spokei_redis *redis, const struct spokei_redis_ask *ask,
		      struct spokei_resp_cursor reply)
{
	const char *name = spokei_script_name(ask->script);
	struct spokei_resp_cursor rest = reply;
	struct spokei_resp_value value;
	enum spokei_refusal refusal;

	(void)spokei_resp_next(&rest, &value);
	if (value.kind != SPOKEI_RESP_ERROR) {
		if (!spokei_script_answers(ask->script, ask->keys, reply))
			spokei_redis_strange(&redis->commands, name);
		return spokei_redis_is_ready(redis);
	}
	refusal = spokei_refusal_of(value.text);
	if (refusal == SPOKEI_REFUSAL_RELOAD || refusal == SPOKEI_REFUSAL_ELSEWHERE)
		spokei_redis_refused(&redis->commands, name, &value);
	return spokei_redis_is_ready(redis);
}

/* The store answers after a failure was logged. Until it has worked for a while, a server that
 * fails again and again is not logged again. */
static void note_answer(struct spokei_redis *redis)
{
	if (!redis->quiet || redis->recovered)
		return;
	redis->recovered = true;
	SPOKEI_REDIS_EVENT(redis, SPOKE_OK, "%s", "answers again");
}

/* The greeting is complete. */
static void made(struct spokei_redis *redis)
{
	spokei_redis_link_ready(&redis->commands);
	if (!redis->shown)
		SPOKEI_REDIS_EVENT(redis, SPOKE_OK, "%s", "connected");
	redis->shown = true;
	if (redis->sentinel)
		spokei_redis_listen(redis);
	redis->up->ready(redis->arg);
}

static void commands_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis *redis = redis_of(link);
	struct spokei_redis_ask *ask;

	if (link->state != SPOKEI_REDIS_READY) {
		if (spokei_redis_greeted(redis, reply))
			made(redis);
		return;
	}
	ask = ask_of(spokei_list_first(&redis->asks));
	if (!is_useful(redis, ask, reply))
		return; /* the ask ends with the connection */
	note_answer(redis);
	spokei_list_remove(&ask->node);
	if (!spokei_list_empty(&redis->asks))
		note_oldest(redis, link->engine->begin_ns);
	ask->done(ask, SPOKE_OK, reply);
}

/* --- the connection for commands */

static void report_down(struct spokei_redis *redis, int error, const char *why)
{
	spokei_count(redis->engine, SPOKE_STAT_LEASE_RECONNECTS);
	if (!redis->quiet)
		SPOKEI_REDIS_EVENT(redis, error, "%s; connects again", why);
	redis->recovered = redis->recovered && redis->quiet;
	redis->quiet = true;
	redis->up->down(redis->arg, error, (struct spoke_span){ why, strlen(why) });
}

static void commands_ended(struct spokei_redis_link *link)
{
	static const struct spokei_resp_cursor none = { NULL, NULL };
	struct spokei_redis *redis = redis_of(link);

	if (redis->steps != 0 && link->error == SPOKE_ELOST && *redis->hint)
		(void)snprintf(link->why, sizeof(link->why), "%s", redis->hint);
	redis->steps = 0;
	if (link->worked)
		redis->quiet = false;
	while (!spokei_list_empty(&redis->asks)) {
		struct spokei_redis_ask *ask = ask_of(redis->asks.next);

		spokei_list_remove(&ask->node);
		ask->done(ask, SPOKE_ELOST, none);
		if (redis->freed)
			return;
	}
	if (redis->sentinel) {
		spokei_redis_link_stop(link);
		spokei_redis_seek(redis, link->pause_ns);
	}
	report_down(redis, link->error, link->why);
}

/* Is the oldest ask late? */
static void commands_due(struct spokei_redis_link *link)
{
	const struct spokei_redis *redis = redis_of(link);

	if (spokei_list_empty(&redis->asks))
		return;
	if (redis->due_ns <= link->engine->begin_ns)
		spokei_redis_link_end(link, SPOKE_ESILENT, "the server does not answer");
	else
		spokei_redis_link_due(link, redis->due_ns);
}

static const struct spokei_redis_link_up commands_up = {
	.opened = commands_opened,
	.expects = commands_expect,
	.reply = commands_reply,
	.ended = commands_ended,
	.due = commands_due,
};

void spokei_redis_restart(struct spokei_redis *redis, const char *why)
{
	if (spokei_redis_is_ready(redis))
		spokei_redis_link_end(&redis->commands, SPOKE_ELOST, "%s", why);
}

bool spokei_redis_is_ready(const struct spokei_redis *redis)
{
	return redis->commands.state == SPOKEI_REDIS_READY;
}

const char *spokei_redis_address(const struct spokei_redis *redis)
{
	return redis->commands.goal.name;
}

/* --- with sentinels */

/* Connects to the primary, unless it is connected already. */
static void found(struct spokei_redis *redis, const char *host, uint16_t port)
{
	struct spokei_redis_link *link = &redis->commands;
	bool stopped = link->state == SPOKEI_REDIS_STOPPED;
	struct spokei_place place = { .fixed = false };

	if (spokei_place_set(&place, redis->engine->env, host, port, NULL))
		return;
	if (strcmp(place.name, link->goal.name) != 0) {
		spokei_redis_link_end(link, SPOKE_ELOST, "the primary is now %s", place.name);
		if (!stopped)
			return; /* its end is reported, and the primary is asked for again */
		spokei_redis_link_stop(&redis->ears);
		link->goal = place;
		redis->ears.goal = place;
	}
	if (stopped)
		spokei_redis_link_start(link, 0);
}

/* --- life */

static int copy_text(char to[SPOKEI_REDIS_TEXT_MAX + 1], const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len > SPOKEI_REDIS_TEXT_MAX)
		return SPOKE_ETOOLARGE;
	if (len > 0)
		memcpy(to, text, len + 1);
	return SPOKE_OK;
}

static int copy_texts(struct spokei_redis *redis, const struct spokei_redis_options *options)
{
	int error = copy_text(redis->user, options->user);

	if (error == SPOKE_OK)
		error = copy_text(redis->password, options->password);
	if (error == SPOKE_OK)
		error = copy_text(redis->primary, options->primary);
	return error ? error : copy_text(redis->sentinel_password, options->sentinel_password);
}

static void redis_bury(struct spokei_task *task)
{
	struct spokei_redis *redis = spoke_container_of(task, struct spokei_redis, bury);
	const struct spoke_env *env = redis->engine->env;

	spokei_redis_link_fini(&redis->commands);
	spokei_redis_link_fini(&redis->ears);
	if (redis->sentinel) {
		spokei_redis_link_fini(&redis->sentinel->link);
		spokei_free(env, redis->sentinel, 1, sizeof(*redis->sentinel));
	}
	spokei_map_fini(&redis->channels);
	spokei_free(env, redis, 1, sizeof(*redis));
}

static void bury_if_idle(struct spokei_redis *redis)
{
	if (redis->freed && !spokei_redis_link_busy(&redis->commands) &&
	    !spokei_redis_link_busy(&redis->ears) &&
	    !(redis->sentinel && spokei_redis_link_busy(&redis->sentinel->link)))
		spokei_engine_dead(redis->engine, &redis->bury);
}

static void link_idle(struct spokei_redis_link *link)
{
	bury_if_idle(redis_of(link));
}

static void own(struct spokei_redis *redis, struct spokei_redis_link *link)
{
	link->owner = redis;
	link->idle = link_idle;
}

static void leave(struct spokei_redis *redis)
{
	spokei_redis_link_leave(&redis->commands);
	spokei_redis_link_leave(&redis->ears);
	if (redis->sentinel)
		spokei_redis_link_leave(&redis->sentinel->link);
}

static int aim(struct spokei_redis *redis, const struct spokei_redis_options *options)
{
	int error;

	own(redis, &redis->commands);
	own(redis, &redis->ears);
	if (options->sentinel_count > 0) {
		error = spokei_redis_sentinel_new(redis, options);
		if (redis->sentinel) {
			own(redis, &redis->sentinel->link);
			redis->sentinel->found = found;
			redis->sentinel->none = report_down;
		}
		return error;
	}
	error = spokei_redis_link_aim(&redis->commands, options->host, options->port,
				      options->path);
	if (error == SPOKE_OK)
		redis->ears.goal = redis->commands.goal;
	return error;
}

int spokei_redis_new(struct spoke_engine *engine, const struct spokei_redis_options *options,
		     const struct spokei_redis_up *up, void *arg, struct spokei_redis **ret_redis)
{
	struct spokei_redis *redis = spokei_alloc(engine->env, 1, sizeof(*redis));
	uint64_t connect_ns = options->connect_ns ? options->connect_ns : SPOKEI_REDIS_CONNECT_NS;
	int error;
	int other;

	if (redis == NULL)
		return SPOKE_ENOMEM;
	redis->engine = engine;
	redis->up = up;
	redis->arg = arg;
	redis->db = options->db;
	redis->bury.run = redis_bury;
	spokei_list_init(&redis->asks);
	spokei_list_init(&redis->wanted);
	spokei_list_init(&redis->asked);
	spokei_map_init(&redis->channels, engine->env);
	error = spokei_redis_link_init(&redis->commands, engine, &commands_up, connect_ns);
	other = spokei_redis_link_init(&redis->ears, engine, &spokei_redis_ears_up, connect_ns);
	if (error == SPOKE_OK)
		error = other;
	if (error == SPOKE_OK)
		error = copy_texts(redis, options);
	if (error == SPOKE_OK)
		error = aim(redis, options);
	if (error) {
		leave(redis);
		redis_bury(&redis->bury);
		return error;
	}
	if (redis->sentinel)
		spokei_redis_seek(redis, 0);
	else
		spokei_redis_link_start(&redis->commands, 0);
	*ret_redis = redis;
	return SPOKE_OK;
}

void spokei_redis_free(struct spokei_redis *redis)
{
	if (redis == NULL || redis->freed)
		return;
	redis->freed = true;
	if (!spokei_engine_forked(redis->engine)) /* the connection is the parent's */
		spokei_redis_link_flush(&redis->commands);
	while (!spokei_list_empty(&redis->asks))
		spokei_list_remove(redis->asks.next);
	spokei_redis_deaf(redis);
	leave(redis);
	bury_if_idle(redis);
}
