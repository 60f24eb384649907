/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the primary: asks one sentinel after the other, and then listens to the one that answered.
 * A sentinel's answer is only a hint, because it may be late; the primary's own ROLE decides.
 */
#include "cluster/lease/redis_parts.h"
#include "core/base/env.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Words of a message of +switch-master: name, old host, old port, new host, new port. */
#define SWITCH_WORDS 5u

static struct spokei_redis_sentinel *sentinel_of(struct spokei_redis_link *link)
{
	return spoke_container_of(link, struct spokei_redis_sentinel, link);
}

/* Returns the name of the primary. */
static const char *primary_of(const struct spokei_redis_sentinel *sentinel)
{
	const struct spokei_redis *redis = sentinel->link.owner;

	return redis->primary;
}

/* --- one sentinel after the other */

static void connect_next(struct spokei_redis_sentinel *sentinel, uint64_t pause_ns)
{
	sentinel->named = false;
	sentinel->link.goal = sentinel->places[sentinel->next];
	spokei_redis_link_start(&sentinel->link, pause_ns);
}

void spokei_redis_seek(struct spokei_redis *redis, uint64_t pause_ns)
{
	spokei_redis_link_stop(&redis->sentinel->link);
	redis->sentinel->failed = 0;
	connect_next(redis->sentinel, pause_ns);
}

static void sentinel_opened(struct spokei_redis_link *link)
{
	struct spokei_redis_sentinel *sentinel = sentinel_of(link);
	const struct spokei_redis *redis = link->owner;
	const char *const ask[] = { "SENTINEL", "get-master-addr-by-name", redis->primary };
	static const char *const listen[] = { "SUBSCRIBE", "+switch-master" };

	sentinel->pinged = false;
	sentinel->greeted = *redis->sentinel_password == '\0';
	if (!sentinel->greeted)
		spokei_redis_put_auth(link, "", redis->sentinel_password);
	spokei_redis_put(link, COUNT(ask), ask);
	spokei_redis_put(link, COUNT(listen), listen);
}

/* The next sentinel is asked at once, unless all have failed, or this one has answered before. */
static void sentinel_ended(struct spokei_redis_link *link)
{
	struct spokei_redis_sentinel *sentinel = sentinel_of(link);
	struct spokei_redis *redis = link->owner;
	bool all = ++sentinel->failed >= sentinel->count;
	char why[SPOKEI_REDIS_WHY + sizeof(sentinel->places->name) + sizeof("sentinel : ")];

	(void)snprintf(why, sizeof(why), "sentinel %s: %s", sentinel->link.goal.name, link->why);
	sentinel->next = (sentinel->next + 1) % sentinel->count;
	spokei_redis_link_stop(link);
	connect_next(sentinel, all || sentinel->named ? link->pause_ns : 0);
	if (!all)
		return;
	sentinel->failed = 0;
	if (redis->commands.state == SPOKEI_REDIS_STOPPED)
		sentinel->none(redis, link->error, why);
}

static void sentinel_due(struct spokei_redis_link *link)
{
	spokei_redis_probe(link, &sentinel_of(link)->pinged);
}

/* --- its answers */

/* Copies a host of printable bytes, and reads a port. Returns whether both are valid. */
static bool read_place(struct spoke_span host, struct spoke_span port,
		       char to[SPOKEI_PLACE_HOST_MAX + 1], uint16_t *ret_port)
{
	const unsigned char *bytes = host.data;
	const struct spokei_resp_value digits = { .kind = SPOKEI_RESP_BULK, .text = port };
	int64_t number;

	if (host.len == 0 || host.len > SPOKEI_PLACE_HOST_MAX)
		return false;
	for (size_t i = 0; i < host.len; i++) {
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return false;
		to[i] = (char)bytes[i];
	}
	to[host.len] = '\0';
	if (!spokei_resp_number(&digits, &number) || number <= 0 || number > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)number;
	return true;
}

static void go(struct spokei_redis_sentinel *sentinel, struct spoke_span host,
	       struct spoke_span port)
{
	char name[SPOKEI_PLACE_HOST_MAX + 1];
	uint16_t number;

	if (read_place(host, port, name, &number)) {
		sentinel->failed = 0;
		sentinel->named = true;
		sentinel->found(sentinel->link.owner, name, number);
	} else {
		spokei_redis_link_end(&sentinel->link, SPOKE_EPROTOCOL,
				      "it names no valid address of the primary");
	}
}

static void took_primary(struct spokei_redis_sentinel *sentinel,
			 const struct spokei_resp_value *value, struct spokei_resp_cursor rest)
{
	struct spokei_resp_value host;
	struct spokei_resp_value port;

	if (value->kind == SPOKEI_RESP_NIL) {
		spokei_redis_link_end(&sentinel->link, SPOKE_ESTORE, "it does not know \"%.*s\"",
				      SPOKEI_REDIS_SHOWN, primary_of(sentinel));
	} else if (value->kind == SPOKEI_RESP_ERROR) {
		spokei_redis_refused(&sentinel->link, "SENTINEL", value);
	} else if (value->kind == SPOKEI_RESP_ARRAY && value->count == 2 &&
		   spokei_resp_next(&rest, &host) && spokei_resp_next(&rest, &port)) {
		spokei_redis_link_ready(&sentinel->link);
		spokei_redis_link_due(&sentinel->link,
				      spokei_later(sentinel->link.heard_ns, SPOKEI_REDIS_IDLE_NS));
		go(sentinel, host.text, port.text);
	} else {
		spokei_redis_strange(&sentinel->link, "SENTINEL");
	}
}

/* Splits a message at its spaces. Returns how many words there are, at most SWITCH_WORDS. */
static unsigned split(struct spoke_span text, struct spoke_span words[SWITCH_WORDS])
{
	const char *bytes = text.data;
	size_t from = 0;
	unsigned count = 0;

	for (size_t i = 0; i <= text.len && count < SWITCH_WORDS; i++) {
		if (i < text.len && bytes[i] != ' ')
			continue;
		words[count++] = (struct spoke_span){ bytes + from, i - from };
		from = i + 1;
	}
	return count;
}

static void took_switch(struct spokei_redis_sentinel *sentinel, struct spoke_span text)
{
	struct spoke_span words[SWITCH_WORDS];
	struct spokei_resp_value name = { .kind = SPOKEI_RESP_BULK };

	if (split(text, words) < SWITCH_WORDS)
		return;
	name.text = words[0];
	if (spokei_resp_is(&name, primary_of(sentinel)))
		go(sentinel, words[3], words[4]);
}

static void took_push(struct spokei_redis_sentinel *sentinel, struct spokei_resp_cursor rest)
{
	struct spokei_resp_value kind;
	struct spokei_resp_value channel;
	struct spokei_resp_value payload;

	if (!spokei_resp_next(&rest, &kind) || !spokei_resp_next(&rest, &channel))
		return;
	if (spokei_resp_is(&kind, "pong"))
		sentinel->pinged = false;
	else if (spokei_resp_is(&kind, "message") && spokei_resp_next(&rest, &payload) &&
		 payload.kind == SPOKEI_RESP_BULK)
		took_switch(sentinel, payload.text);
}

static void sentinel_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis_sentinel *sentinel = sentinel_of(link);
	struct spokei_resp_value value;

	(void)spokei_resp_next(&reply, &value);
	if (!sentinel->greeted && value.kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(link, "AUTH", &value);
	else if (!sentinel->greeted)
		sentinel->greeted = true;
	else if (link->state == SPOKEI_REDIS_GREETING)
		took_primary(sentinel, &value, reply);
	else if (value.kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(link, "SUBSCRIBE", &value);
	else if (value.kind == SPOKEI_RESP_ARRAY && value.count >= 2)
		took_push(sentinel, reply);
	else
		spokei_redis_strange(link, "SUBSCRIBE");
}

static bool sentinel_expects(struct spokei_redis_link *link)
{
	(void)link;
	return true;
}

static const struct spokei_redis_link_up sentinel_up = {
	.opened = sentinel_opened,
	.expects = sentinel_expects,
	.reply = sentinel_reply,
	.ended = sentinel_ended,
	.due = sentinel_due,
};

/* --- made */

int spokei_redis_sentinel_new(struct spokei_redis *redis,
			      const struct spokei_redis_options *options)
{
	const struct spoke_env *env = redis->engine->env;
	struct spokei_redis_sentinel *sentinel;
	int error;

	if (options->sentinel_count > SPOKEI_REDIS_SENTINELS_MAX)
		return SPOKE_ETOOLARGE;
	if (*redis->primary == '\0')
		return SPOKE_EINVAL;
	sentinel = spokei_alloc(env, 1, sizeof(*sentinel));
	if (sentinel == NULL)
		return SPOKE_ENOMEM;
	redis->sentinel = sentinel;
	sentinel->count = options->sentinel_count;
	error = spokei_redis_link_init(&sentinel->link, redis->engine, &sentinel_up,
				       redis->commands.connect_ns);
	for (unsigned i = 0; i < sentinel->count && error == SPOKE_OK; i++) {
		const struct spokei_redis_place *place = &options->sentinels[i];

		error = spokei_place_set(&sentinel->places[i], env, place->host, place->port,
					 place->path);
	}
	(void)snprintf(redis->commands.goal.name, sizeof(redis->commands.goal.name), "%s",
		       redis->primary);
	return error;
}
