/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first commands of a connection. They are written together, so a new connection is ready after
 * one round trip; after two, if the connection before has to be ended at the server: a command that
 * lies unread in its socket might run after later ones.
 */
#include "cluster/lease/redis_parts.h"
#include "cluster/lease/refusal.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHOWN_TEXT (4 * SPOKEI_REDIS_SHOWN + 1)
#define NUMBER_TEXT 24u

/* --- parts of all links */

void spokei_redis_put(struct spokei_redis_link *link, unsigned count, const char *const *texts)
{
	int error = spokei_resp_put_command(&link->out, count);

	for (unsigned i = 0; i < count && error == SPOKE_OK; i++)
		error = spokei_resp_put_text(&link->out,
					     (struct spoke_span){ texts[i], strlen(texts[i]) });
	if (error) {
		spokei_redis_link_end(link, SPOKE_ENOMEM, "no memory for a command");
		return;
	}
	spokei_count(link->engine, SPOKE_STAT_LEASE_COMMANDS);
	spokei_redis_link_write(link);
}

void spokei_redis_put_auth(struct spokei_redis_link *link, const char *user, const char *password)
{
	const char *const all[] = { "AUTH", user, password };
	const char *const old[] = { "AUTH", password };

	if (*user)
		spokei_redis_put(link, COUNT(all), all);
	else
		spokei_redis_put(link, COUNT(old), old);
}

void spokei_redis_refused(struct spokei_redis_link *link, const char *command,
			  const struct spokei_resp_value *reply)
{
	struct spoke_span text = spokei_refusal_text(reply->text);
	char shown[SHOWN_TEXT];

	if (text.len > SPOKEI_REDIS_SHOWN)
		text.len = SPOKEI_REDIS_SHOWN;
	(void)spokei_log_escape(shown, sizeof(shown), text.data, text.len);
	spokei_redis_link_end(link, SPOKE_ESTORE, "%s: %s", command, shown);
}

void spokei_redis_strange(struct spokei_redis_link *link, const char *command)
{
	spokei_redis_link_end(link, SPOKE_EPROTOCOL, "the server sent a wrong reply to %s",
			      command);
}

void spokei_redis_probe(struct spokei_redis_link *link, bool *pinged)
{
	static const char *const ping[] = { "PING" };
	uint64_t quiet_ns = link->engine->begin_ns - link->heard_ns;
	uint64_t wait_ns = SPOKEI_REDIS_IDLE_NS;

	if (quiet_ns < wait_ns) {
		*pinged = false;
	} else if (!*pinged) {
		*pinged = true;
		spokei_redis_put(link, COUNT(ping), ping);
		wait_ns += link->connect_ns;
	} else if (quiet_ns < (wait_ns += link->connect_ns)) {
		/* The answer may still come. */
	} else {
		spokei_redis_link_end(link, SPOKE_ESILENT, "the server is silent");
	}
	spokei_redis_link_due(link, spokei_later(link->heard_ns, wait_ns));
}

/* --- the first commands for commands */

static void put_step(struct spokei_redis *redis, enum spokei_redis_step step, unsigned count,
		     const char *const *texts)
{
	redis->steps |= UINT32_C(1) << step;
	spokei_redis_put(&redis->commands, count, texts);
}

void spokei_redis_greet(struct spokei_redis *redis)
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
	char ghost[NUMBER_TEXT];
	const char *const kill[] = { "CLIENT", "KILL", "ID", ghost, "ADDR", redis->ghost_at };
	bool addressed = *redis->ghost_at != '\0';

	redis->id = value->kind == SPOKEI_RESP_INTEGER && value->integer > 0
			    ? (uint64_t)value->integer
			    : 0;
	/* Ids only grow. If this one is not higher, the server has restarted, and its connections
	 * are gone. The address protects others if ids have grown again since then. */
	if (redis->ghost > 0 && redis->id > redis->ghost) {
		(void)snprintf(ghost, sizeof(ghost), "%" PRIu64, redis->ghost);
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
static void note_ghost(struct spokei_redis *redis)
{
	const struct spokei_redis_link *link = &redis->commands;
	const struct spoke_env *env = redis->engine->env;
	struct spoke_address local;

	redis->ghost = redis->id;
	redis->ghost_at[0] = '\0';
	if (env->net->local(env->ctx, link->stream.watch.fd, &local) == 0)
		env->net->print(env->ctx, &local, redis->ghost_at, sizeof(redis->ghost_at));
	if (link->place.fixed && strncmp(link->place.name, "unix:", 5) == 0)
		redis->ghost_at[0] = '\0';
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

bool spokei_redis_greeted(struct spokei_redis *redis, struct spokei_resp_cursor reply)
{
	unsigned step = 0;

	while (!(redis->steps & UINT32_C(1) << step))
		step++;
	redis->steps &= ~(UINT32_C(1) << step);
	took_step(redis, step, reply);
	if (redis->commands.state != SPOKEI_REDIS_GREETING || redis->steps != 0)
		return false;
	note_ghost(redis);
	return true;
}
