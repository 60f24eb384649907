/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: its connection for commands with the first commands, its asks and their answers, its
 * life. The first commands are written together, so a new connection is ready after one round trip;
 * after two, if the connection before has to be ended at the server: a command that lies unread in
 * its socket might run after later ones.
 */
#include "cluster/lease/redis_parts.h"
#include "core/base/env.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NUMBER_TEXT 24u
#define NEVER UINT64_MAX

/* --- the first commands */

static void put_step(struct spokei_redis *redis, enum spokei_redis_step step, unsigned count,
		     const char *const *texts)
{
	redis->steps |= UINT32_C(1) << step;
	spokei_redis_put(&redis->commands, count, texts);
}

/* Writes the first commands. */
static void greet(struct spokei_redis *redis)
{
	static const char *const name[] = { "CLIENT", "SETNAME", "spoke" };
	static const char *const id[] = { "CLIENT", "ID" };
	static const char *const policy[] = { "CONFIG", "GET", "maxmemory-policy" };
	static const char *const role[] = { "ROLE" };
	char db[NUMBER_TEXT];
	const char *const select[] = { "SELECT", db };

	redis->steps = 0;
	redis->id = 0;
	redis->hint[0] = '\0';
	if (*redis->password) {
		redis->steps |= UINT32_C(1) << SPOKEI_REDIS_AUTH;
		spokei_redis_put_auth(&redis->commands, redis->user, redis->password);
	}
	(void)snprintf(db, sizeof(db), "%" PRIu32, redis->db);
	if (redis->db > 0)
		put_step(redis, SPOKEI_REDIS_SELECT, COUNT(select), select);
	put_step(redis, SPOKEI_REDIS_NAME, COUNT(name), name);
	put_step(redis, SPOKEI_REDIS_ID, COUNT(id), id);
	put_step(redis, SPOKEI_REDIS_POLICY, COUNT(policy), policy);
	put_step(redis, SPOKEI_REDIS_ROLE, COUNT(role), role);
	for (unsigned i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++) {
		const char *const load[] = { "SCRIPT", "LOAD",
					     spokei_script_text((enum spokei_script)i) };

		put_step(redis, (enum spokei_redis_step)(SPOKEI_REDIS_LOAD + i - 1), COUNT(load),
			 load);
	}
}

/* --- their replies */

/* A lost lease would be found at its next renewal only. */
static void warn_policy(struct spokei_redis *redis, const struct spokei_resp_value *policy)
{
	if (redis->warned_policy || (policy && spokei_resp_is(policy, "noeviction")))
		return;
	redis->warned_policy = true;
	if (policy) {
		SPOKEI_REDIS_EVENT(redis, SPOKE_ESTORE, "%s",
				   "it may evict leases when its memory is full; set its "
				   "maxmemory-policy to noeviction");
	} else {
		SPOKEI_REDIS_EVENT(redis, SPOKE_OK, "%s",
				   "CONFIG GET is not permitted; make sure that its "
				   "maxmemory-policy is noeviction");
	}
}

/* Returns whether a list of the server forbids a command, or its name has been changed. */
static bool is_not_permitted(struct spoke_span error)
{
	static const char *const begins[] = { "NOPERM", "ERR unknown command" };

	for (size_t i = 0; i < COUNT(begins); i++) {
		size_t len = strlen(begins[i]);

		if (error.len >= len && memcmp(error.data, begins[i], len) == 0)
			return true;
	}
	return false;
}

static void took_policy(struct spokei_redis *redis, struct spokei_resp_cursor reply)
{
	struct spokei_resp_value value;

	if (!spokei_resp_next(&reply, &value))
		return;
	/* Other errors are those of the connection, e.g. of a server that loads its data. */
	if (value.kind == SPOKEI_RESP_ERROR && is_not_permitted(value.text))
		warn_policy(redis, NULL);
	else if (value.kind == SPOKEI_RESP_ARRAY && value.count == 2 &&
		 spokei_resp_next(&reply, &value) && spokei_resp_next(&reply, &value))
		warn_policy(redis, &value);
}

/* A server without ROLE, or that forbids it, reports by READONLY that it is a replica. */
static void took_role(struct spokei_redis *redis, struct spokei_resp_cursor reply)
{
	struct spokei_resp_value value;

	if (!spokei_resp_next(&reply, &value) || value.kind != SPOKEI_RESP_ARRAY ||
	    !spokei_resp_next(&reply, &value) || spokei_resp_is(&value, "master"))
		return;
	spokei_redis_link_end(&redis->commands, SPOKE_ESTORE,
			      spokei_resp_is(&value, "sentinel")
				      ? "the server is a sentinel; use its URL as sentinel://"
				      : "the server is a replica; leases need the primary");
}

static void took_id(struct spokei_redis *redis, const struct spokei_resp_value *value)
{
	char stale[NUMBER_TEXT];
	const char *const kill[] = { "CLIENT", "KILL", "ID", stale, "ADDR", redis->stale_at };
	bool addressed = *redis->stale_at != '\0';

	redis->id = value->kind == SPOKEI_RESP_INTEGER && value->integer > 0
			    ? (uint64_t)value->integer
			    : 0;
	/* Ids only grow. If this one is not higher, the server has restarted, and its connections
	 * are gone. The address protects others if ids have grown again since then. */
	if (redis->stale > 0 && redis->id > redis->stale) {
		(void)snprintf(stale, sizeof(stale), "%" PRIu64, redis->stale);
		put_step(redis, SPOKEI_REDIS_KILL, addressed ? 6 : 4, kill);
	}
}

/* A server that is busy is asked again: the connection before could still run commands later. */
static void took_kill(struct spokei_redis *redis, const struct spokei_resp_value *value)
{
	if (value->kind == SPOKEI_RESP_ERROR &&
	    spokei_refusal_of(value->text) == SPOKEI_REFUSAL_AGAIN)
		spokei_redis_refused(&redis->commands, "CLIENT", value);
}

/* Remembers this connection for the next one. One that ends before this has left nothing behind,
 * and perhaps has not ended the one before it. */
static void note_stale(struct spokei_redis *redis)
{
	const struct spokei_redis_link *link = &redis->commands;
	const struct spoke_env *env = redis->engine->env;
	struct spoke_address local;

	redis->stale = redis->id;
	redis->stale_at[0] = '\0';
	if (env->net->local(env->ctx, link->stream.watch.fd, &local) == 0)
		env->net->print(env->ctx, &local, redis->stale_at, sizeof(redis->stale_at));
	if (link->place.fixed && strncmp(link->place.name, "unix:", 5) == 0)
		redis->stale_at[0] = '\0';
}

static void took_script(struct spokei_redis *redis, unsigned script,
			const struct spokei_resp_value *value)
{
	if (value->kind == SPOKEI_RESP_ERROR) {
		spokei_redis_refused(&redis->commands, "SCRIPT LOAD", value);
	} else if (value->kind != SPOKEI_RESP_BULK || value->text.len != SPOKEI_REDIS_SHA) {
		spokei_redis_strange(&redis->commands, "SCRIPT LOAD");
	} else {
		memcpy(redis->sha[script], value->text.data, SPOKEI_REDIS_SHA);
	}
}

static void took_ok(struct spokei_redis *redis, const char *command,
		    const struct spokei_resp_value *value)
{
	if (value->kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(&redis->commands, command, value);
	else if (value->kind != SPOKEI_RESP_SIMPLE)
		spokei_redis_strange(&redis->commands, command);
}

static void took_step(struct spokei_redis *redis, unsigned step, struct spokei_resp_cursor reply)
{
	struct spokei_resp_cursor rest = reply;
	struct spokei_resp_value value;

	(void)spokei_resp_next(&rest, &value);
	switch (step) {
	case SPOKEI_REDIS_AUTH:
		took_ok(redis, "AUTH", &value);
		break;
	case SPOKEI_REDIS_SELECT:
		took_ok(redis, "SELECT", &value);
		break;
	case SPOKEI_REDIS_NAME: /* a server that refuses the connection says why, and closes it */
		if (value.kind == SPOKEI_RESP_ERROR)
			(void)spokei_log_escape(redis->hint, sizeof(redis->hint), value.text.data,
						value.text.len);
		break;
	case SPOKEI_REDIS_KILL: /* it may be gone, or the command forbidden */
		took_kill(redis, &value);
		break;
	case SPOKEI_REDIS_ID:
		took_id(redis, &value);
		took_kill(redis, &value);
		break;
	case SPOKEI_REDIS_POLICY:
		took_policy(redis, reply);
		break;
	case SPOKEI_REDIS_ROLE:
		took_role(redis, reply);
		break;
	default:
		took_script(redis, step - SPOKEI_REDIS_LOAD + 1, &value);
	}
}

/* Reads a reply to one of the first commands. Returns whether it was the last, and all are good. */
static bool greeted(struct spokei_redis *redis, struct spokei_resp_cursor reply)
{
	unsigned step = 0;

	while (!(redis->steps & UINT32_C(1) << step))
		step++;
	redis->steps &= ~(UINT32_C(1) << step);
	took_step(redis, step, reply);
	if (redis->commands.state != SPOKEI_REDIS_GREETING || redis->steps != 0)
		return false;
	note_stale(redis);
	return true;
}

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
	greet(redis_of(link));
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
		if (greeted(redis, reply))
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
		spokei_redis_link_stop(&redis->subscriber);
		link->goal = place;
		redis->subscriber.goal = place;
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
	spokei_redis_link_fini(&redis->subscriber);
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
	    !spokei_redis_link_busy(&redis->subscriber) &&
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
	spokei_redis_link_leave(&redis->subscriber);
	if (redis->sentinel)
		spokei_redis_link_leave(&redis->sentinel->link);
}

static int aim(struct spokei_redis *redis, const struct spokei_redis_options *options)
{
	int error;

	own(redis, &redis->commands);
	own(redis, &redis->subscriber);
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
		redis->subscriber.goal = redis->commands.goal;
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
	other = spokei_redis_link_init(&redis->subscriber, engine, &spokei_redis_subscriber_up,
				       connect_ns);
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
	spokei_redis_unsubscribe_all(redis);
	leave(redis);
	bury_if_idle(redis);
}
