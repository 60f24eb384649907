/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: the connection for commands with the first commands, its asks and their answers; the
 * connection for published messages; the sentinels that name the primary; its life.
 */
#include "cluster/lease/redis.h"
#include "cluster/config/store.h"
#include "cluster/lease/link.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/memory/map.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NUMBER_TEXT 24u
#define NEVER UINT64_MAX
/* SUBSCRIBEs wait in a list, not in the output, beyond this many bytes. */
#define OUT_HIGH 65536u
/* Words of a message of +switch-master: name, old host, old port, new host, new port. */
#define SWITCH_WORDS 5u
#define SPOKEI_REDIS_SHA 40u /* bytes of a script's id in hex */

/* The first commands, in the order of their replies. */
enum spokei_redis_step {
	SPOKEI_REDIS_SELECT,
	SPOKEI_REDIS_NAME,   /* CLIENT SETNAME */
	SPOKEI_REDIS_ID,     /* CLIENT ID */
	SPOKEI_REDIS_POLICY, /* CONFIG GET maxmemory-policy */
	SPOKEI_REDIS_ROLE,
	SPOKEI_REDIS_LOAD, /* SCRIPT LOAD, of each script */
	SPOKEI_REDIS_KILL = SPOKEI_REDIS_LOAD + SPOKEI_SCRIPTS - 1, /* CLIENT KILL */
	SPOKEI_REDIS_STEPS,
};

/* A sentinel that is asked, and listened to afterwards. */
struct spokei_redis_sentinel {
	struct spokei_redis_link link;
	struct spokei_place places[SPOKEI_STORE_SENTINELS_MAX];
	unsigned count;
	unsigned next;   /* index of the sentinel that is asked */
	unsigned failed; /* sentinels in a row that gave no answer */
	bool named;      /* it has named the primary on this connection */
};

struct spokei_redis {
	struct spoke_engine *engine;
	const struct spokei_redis_up *up;
	void *arg;
	struct spokei_redis_link commands;
	struct spokei_redis_link subscriber;
	struct spokei_redis_sentinel *sentinel; /* NULL: the address is fixed */

	/* asks */
	struct spoke_list asks; /* under way, the oldest first */
	uint64_t patience_ns;
	uint64_t due_ns;           /* the answer to the oldest ask is late from here on */
	size_t mark;               /* bytes of output before the command that is being written */
	unsigned texts;            /* still missing in it */
	int fault;                 /* of its parts */
	enum spokei_script script; /* that it calls */
	unsigned keys;

	/* greeting */
	uint32_t steps;     /* first commands without a reply, as bits */
	uint64_t id;        /* of this connection at the server; 0: unknown */
	uint64_t stale;     /* of the connection before, to be ended; 0: none */
	char stale_at[160]; /* and its address as seen from here; "": not known */
	char sha[SPOKEI_SCRIPTS][SPOKEI_REDIS_SHA];
	char hint[SPOKEI_REDIS_WHY]; /* a text that the server sent before it closed; "": none */
	bool warned_policy;
	bool quiet;     /* a failure has been logged, and no connection has worked since */
	bool recovered; /* ... and that it answers again */
	bool shown;     /* the connection has been logged */

	/* subscriber */
	struct spokei_map channels;
	struct spoke_list wanted; /* channels whose SUBSCRIBE is to be written */
	struct spoke_list asked;  /* ... is written */
	uint64_t subscriber_sent; /* SUBSCRIBE and UNSUBSCRIBE on this connection */
	uint64_t subscriber_got;  /* replies to them */
	bool subscriber_quiet;    /* the failure has been logged */
	bool subscriber_refused;  /* ... that of a SUBSCRIBE */

	bool freed;
	struct spokei_task end; /* frees it */
	uint32_t db;
	const char *primary; /* its name at the sentinels; of the options */
};

/* Logs an event of the store. */
#define SPOKEI_REDIS_EVENT(redis, error, format, ...)                                              \
	spokei_event_of((redis)->engine, SPOKE_EVENT_OF_LEASE, error, "store %s: " format,         \
			(redis)->commands.dialer.place.name, __VA_ARGS__)

/* --- published messages
 *
 * Replies to SUBSCRIBE and UNSUBSCRIBE come in the order of the commands, one for each channel, so
 * they are counted: a channel that was left and joined again is in force only after its second
 * SUBSCRIBE.
 */

static struct spokei_redis_channel *channel_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_redis_channel, node);
}

/* --- commands */

static bool put_channel(struct spokei_redis *redis, const char *command,
			const struct spokei_redis_channel *channel)
{
	struct spokei_redis_link *link = &redis->subscriber;
	int error = spokei_resp_put_command(&link->out, 2);

	if (error == SPOKE_OK)
		error = spokei_resp_put_text(&link->out,
					     (struct spoke_span){ command, strlen(command) });
	if (error == SPOKE_OK)
		error = spokei_resp_put_text(&link->out, channel->name);
	if (error) {
		spokei_redis_link_end(link, error == SPOKE_ENOMEM ? error : SPOKE_ELIMIT,
				      "too many subscriptions at once");
		return false;
	}
	redis->subscriber_sent++;
	spokei_count(redis->engine, SPOKE_STAT_LEASE_COMMANDS);
	spokei_redis_link_write(link);
	return true;
}

/* Writes SUBSCRIBEs as far as there is room; replies make more room. */
static void put_wanted(struct spokei_redis *redis)
{
	if (redis->subscriber.state != SPOKEI_REDIS_READY)
		return;
	while (!spokei_list_empty(&redis->wanted) &&
	       spokei_buffer_len(&redis->subscriber.out) < OUT_HIGH) {
		struct spokei_redis_channel *channel = channel_of(redis->wanted.next);

		if (!put_channel(redis, "SUBSCRIBE", channel))
			return;
		channel->order = redis->subscriber_sent;
		spokei_list_remove(&channel->node);
		spokei_list_append(&redis->asked, &channel->node);
	}
}

static void listen_if_wanted(struct spokei_redis *redis)
{
	/* Sentinels: the address is known once the commands are taken. */
	if (redis->subscriber.state == SPOKEI_REDIS_STOPPED && redis->channels.count > 0 &&
	    (!redis->sentinel || redis->commands.state == SPOKEI_REDIS_READY))
		spokei_redis_link_start(&redis->subscriber, 0);
}

void spokei_redis_subscribe(struct spokei_redis *redis, struct spokei_redis_channel *channel)
{
	SPOKE_ASSERT(channel->node.next == NULL);
	channel->order = 0;
	channel->known = spokei_map_add(&redis->channels, channel->name.data, channel->name.len,
					channel) == SPOKE_OK;
	if (!channel->known)
		return;
	spokei_list_append(&redis->wanted, &channel->node);
	listen_if_wanted(redis);
	put_wanted(redis);
}

void spokei_redis_unsubscribe(struct spokei_redis *redis, struct spokei_redis_channel *channel)
{
	if (!channel->known)
		return;
	channel->known = false;
	(void)spokei_map_remove(&redis->channels, channel->name.data, channel->name.len);
	spokei_list_remove(&channel->node);
	if (channel->order > 0 && redis->subscriber.state == SPOKEI_REDIS_READY)
		(void)put_channel(redis, "UNSUBSCRIBE", channel);
	channel->order = 0;
}

static void forget_all(struct spoke_list *channels)
{
	while (!spokei_list_empty(channels)) {
		struct spokei_redis_channel *channel = channel_of(channels->next);

		spokei_list_remove(&channel->node);
		channel->known = false;
		channel->order = 0;
	}
}

static void unsubscribe_all(struct spokei_redis *redis)
{
	forget_all(&redis->wanted);
	forget_all(&redis->asked);
	spokei_map_fini(&redis->channels);
}

/* --- the connection */

/* A new connection has no subscription yet. */
static void want_all(struct spokei_redis *redis)
{
	while (!spokei_list_empty(&redis->asked)) {
		struct spokei_redis_channel *channel = channel_of(redis->asked.next);

		spokei_list_remove(&channel->node);
		spokei_list_append(&redis->wanted, &channel->node);
		channel->order = 0;
	}
	redis->subscriber_sent = 0;
	redis->subscriber_got = 0;
}

static void begin_to_listen(struct spokei_redis *redis)
{
	spokei_redis_listens(&redis->subscriber);
	put_wanted(redis);
}

static void subscriber_opened(struct spokei_redis_link *link)
{
	static const char *const name[] = { "CLIENT", "SETNAME", "spoke" };
	struct spokei_redis *redis = link->redis;

	want_all(redis);
	spokei_redis_put(link, COUNT(name), name);
}

static void subscriber_ended(struct spokei_redis_link *link)
{
	struct spokei_redis *redis = link->redis;

	want_all(redis);
	if (link->worked)
		redis->subscriber_quiet = false;
	if (!redis->subscriber_quiet)
		SPOKEI_REDIS_EVENT(redis, link->error,
				   "connection for messages: %s; connects again", link->why);
	redis->subscriber_quiet = true;
}

/* --- replies and messages */

static struct spokei_redis_channel *find(const struct spokei_redis *redis,
					 const struct spokei_resp_value *name)
{
	if (name->kind != SPOKEI_RESP_BULK || name->text.len == 0)
		return NULL;
	return spokei_map_get(&redis->channels, name->text.data, name->text.len);
}

/* The reply to a SUBSCRIBE or UNSUBSCRIBE, maybe an error. Returns false if there was none. */
static bool count_reply(struct spokei_redis *redis)
{
	if (redis->subscriber_got == redis->subscriber_sent) {
		spokei_redis_link_end(&redis->subscriber, SPOKE_EPROTOCOL,
				      "the server sent bytes that were not asked for");
		return false;
	}
	redis->subscriber_got++;
	return true;
}

static void took_subscription(struct spokei_redis *redis, const struct spokei_resp_value *name)
{
	struct spokei_redis_channel *channel = find(redis, name);

	if (channel && channel->order == redis->subscriber_got)
		redis->up->subscribed(redis->arg, channel);
}

/* A message of a channel that was just left may be on its way; of no other. */
static void took_message(struct spokei_redis *redis, struct spokei_resp_cursor *rest)
{
	struct spokei_resp_value name;
	struct spokei_resp_value payload;
	struct spokei_redis_channel *channel;

	if (!spokei_resp_next(rest, &name) || !spokei_resp_next(rest, &payload) ||
	    payload.kind != SPOKEI_RESP_BULK) {
		spokei_redis_strange(&redis->subscriber, "SUBSCRIBE");
		return;
	}
	channel = find(redis, &name);
	if (channel)
		redis->up->message(redis->arg, channel, payload.text);
	else if (redis->subscriber_got == redis->subscriber_sent)
		spokei_redis_link_end(&redis->subscriber, SPOKE_EPROTOCOL,
				      "the server sent messages that were not asked for");
}

static void took_publication(struct spokei_redis *redis, struct spokei_resp_cursor *rest)
{
	struct spokei_resp_value kind;
	struct spokei_resp_value name;
	bool joined;

	(void)spokei_resp_next(rest, &kind);
	joined = spokei_resp_is(&kind, "subscribe");
	if (spokei_resp_is(&kind, "message")) {
		took_message(redis, rest);
	} else if (joined || spokei_resp_is(&kind, "unsubscribe")) {
		uint32_t round = redis->subscriber.round;

		if (!count_reply(redis) || !spokei_resp_next(rest, &name))
			return;
		if (joined)
			took_subscription(redis, &name);
		if (redis->subscriber.round == round)
			put_wanted(redis);
	} else if (redis->subscriber.pinged && spokei_resp_is(&kind, "pong")) {
		redis->subscriber.pinged = false;
	} else {
		spokei_redis_strange(&redis->subscriber, "SUBSCRIBE");
	}
}

/* Other channels may be permitted. */
static void took_refusal(struct spokei_redis *redis, const struct spokei_resp_value *value)
{
	char shown[SPOKEI_REDIS_WHY];

	if (!count_reply(redis))
		return;
	(void)spokei_log_escape(shown, sizeof(shown), value->text.data, value->text.len);
	if (!redis->subscriber_refused)
		SPOKEI_REDIS_EVENT(redis, SPOKE_ESTORE,
				   "SUBSCRIBE: %s; waits without messages from now on", shown);
	redis->subscriber_refused = true;
	put_wanted(redis);
}

static void subscriber_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis *redis = link->redis;
	struct spokei_resp_value value;

	(void)spokei_resp_next(&reply, &value);
	if (link->state == SPOKEI_REDIS_GREETING) {
		begin_to_listen(redis); /* after CLIENT SETNAME, which may be forbidden */
	} else if (value.kind == SPOKEI_RESP_ARRAY && value.count >= 2) {
		took_publication(redis, &reply);
	} else if (value.kind == SPOKEI_RESP_SIMPLE && redis->subscriber.pinged) {
		redis->subscriber.pinged = false;
	} else if (value.kind == SPOKEI_RESP_ERROR) {
		took_refusal(redis, &value);
	} else {
		spokei_redis_strange(link, "SUBSCRIBE");
	}
}

static const struct spokei_redis_link_up subscriber_up = {
	.opened = subscriber_opened,
	.reply = subscriber_reply,
	.ended = subscriber_ended,
};

/* --- sentinels
 *
 * One sentinel after the other is asked for the primary; the one that answered is then listened to.
 * Its answer is only a hint, because it may be late; the primary's own ROLE decides.
 */

static struct spokei_redis_sentinel *sentinel_of(struct spokei_redis_link *link)
{
	return spoke_container_of(link, struct spokei_redis_sentinel, link);
}

/* Returns the name of the primary. */
static const char *primary_of(const struct spokei_redis_sentinel *sentinel)
{
	const struct spokei_redis *redis = sentinel->link.redis;

	return redis->primary;
}

static void found(struct spokei_redis *redis, const char *host, uint16_t port);
static void report_down(struct spokei_redis *redis, int error, const char *why);

/* --- one sentinel after the other */

static void connect_next(struct spokei_redis_sentinel *sentinel, uint64_t pause_ns)
{
	sentinel->named = false;
	sentinel->link.dialer.place = sentinel->places[sentinel->next];
	spokei_redis_link_start(&sentinel->link, pause_ns);
}

/* Asks for the primary after a pause. */
static void seek(struct spokei_redis *redis, uint64_t pause_ns)
{
	spokei_redis_link_stop(&redis->sentinel->link);
	redis->sentinel->failed = 0;
	connect_next(redis->sentinel, pause_ns);
}

static void sentinel_opened(struct spokei_redis_link *link)
{
	const struct spokei_redis *redis = link->redis;
	const char *const ask[] = { "SENTINEL", "get-master-addr-by-name", redis->primary };
	static const char *const listen[] = { "SUBSCRIBE", "+switch-master" };

	spokei_redis_put(link, COUNT(ask), ask);
	spokei_redis_put(link, COUNT(listen), listen);
}

/* The next sentinel is asked at once, unless all have failed, or this one has answered before. */
static void sentinel_ended(struct spokei_redis_link *link)
{
	struct spokei_redis_sentinel *sentinel = sentinel_of(link);
	struct spokei_redis *redis = link->redis;
	bool all = ++sentinel->failed >= sentinel->count;
	char why[SPOKEI_REDIS_WHY + sizeof(sentinel->places->name) + sizeof("sentinel : ")];

	(void)snprintf(why, sizeof(why), "sentinel %s: %s", sentinel->link.dialer.place.name,
		       link->why);
	sentinel->next = (sentinel->next + 1) % sentinel->count;
	spokei_redis_link_stop(link);
	connect_next(sentinel, all || sentinel->named ? link->dialer.pause_ns : 0);
	if (!all)
		return;
	sentinel->failed = 0;
	if (redis->commands.state == SPOKEI_REDIS_STOPPED)
		report_down(redis, link->error, why);
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
		found(sentinel->link.redis, name, number);
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
		spokei_redis_listens(&sentinel->link);
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

static void took_notice(struct spokei_redis_sentinel *sentinel, struct spokei_resp_cursor rest)
{
	struct spokei_resp_value kind;
	struct spokei_resp_value channel;
	struct spokei_resp_value payload;

	if (!spokei_resp_next(&rest, &kind) || !spokei_resp_next(&rest, &channel))
		return;
	if (spokei_resp_is(&kind, "pong"))
		sentinel->link.pinged = false;
	else if (spokei_resp_is(&kind, "message") && spokei_resp_next(&rest, &payload) &&
		 payload.kind == SPOKEI_RESP_BULK)
		took_switch(sentinel, payload.text);
}

static void sentinel_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis_sentinel *sentinel = sentinel_of(link);
	struct spokei_resp_value value;

	(void)spokei_resp_next(&reply, &value);
	if (link->state == SPOKEI_REDIS_GREETING)
		took_primary(sentinel, &value, reply);
	else if (value.kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(link, "SUBSCRIBE", &value);
	else if (value.kind == SPOKEI_RESP_ARRAY && value.count >= 2)
		took_notice(sentinel, reply);
	else
		spokei_redis_strange(link, "SUBSCRIBE");
}

static const struct spokei_redis_link_up sentinel_up = {
	.opened = sentinel_opened,
	.reply = sentinel_reply,
	.ended = sentinel_ended,
};

/* --- made */

static const char *text_of(const char *text)
{
	return text ? text : "";
}

/* Makes the sentinel's part. Returns 0 or an error as spokei_redis_new(). */
static int sentinel_new(struct spokei_redis *redis, const struct spokei_redis_options *options)
{
	const struct spoke_env *env = redis->engine->env;
	const struct spokei_store *store = options->store;
	struct spokei_redis_sentinel *sentinel;
	int error;

	if (store->primary == NULL || *store->primary == '\0')
		return SPOKE_EINVAL;
	sentinel = spokei_alloc(env, 1, sizeof(*sentinel));
	if (sentinel == NULL)
		return SPOKE_ENOMEM;
	redis->sentinel = sentinel;
	sentinel->count = store->sentinel_count;
	error = spokei_redis_link_init(&sentinel->link, redis, &sentinel_up, redis->engine,
				       redis->commands.connect_ns);
	sentinel->link.password = text_of(options->sentinel_password);
	for (unsigned i = 0; i < sentinel->count && error == SPOKE_OK; i++)
		error = spokei_place_set(&sentinel->places[i], env, store->sentinels[i].host,
					 store->sentinels[i].port, NULL);
	(void)snprintf(redis->commands.dialer.place.name, sizeof(redis->commands.dialer.place.name),
		       "%s", redis->primary);
	return error;
}

/* --- commands
 *
 * The first commands are written together, so a new connection is ready after one round trip; after
 * two, if the connection before has to be ended at the server: a command that lies unread in its
 * socket might run after later ones.
 */

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
	if (link->dialer.place.fixed && strncmp(link->dialer.place.name, "unix:", 5) == 0)
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

static void took_select(struct spokei_redis *redis, const struct spokei_resp_value *value)
{
	if (value->kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(&redis->commands, "SELECT", value);
	else if (value->kind != SPOKEI_RESP_SIMPLE)
		spokei_redis_strange(&redis->commands, "SELECT");
}

static void took_step(struct spokei_redis *redis, unsigned step, struct spokei_resp_cursor reply)
{
	struct spokei_resp_cursor rest = reply;
	struct spokei_resp_value value;

	(void)spokei_resp_next(&rest, &value);
	switch (step) {
	case SPOKEI_REDIS_SELECT:
		took_select(redis, &value);
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
	greet(link->redis);
}

static bool commands_expect(struct spokei_redis_link *link)
{
	const struct spokei_redis *redis = link->redis;

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
		listen_if_wanted(redis);
	redis->up->ready(redis->arg);
}

static void commands_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis *redis = link->redis;
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
	struct spokei_redis *redis = link->redis;

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
		seek(redis, link->dialer.pause_ns);
	}
	report_down(redis, link->error, link->why);
}

/* Is the oldest ask late? */
static void commands_due(struct spokei_redis_link *link)
{
	const struct spokei_redis *redis = link->redis;

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
	return redis->commands.dialer.place.name;
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
	if (strcmp(place.name, link->dialer.place.name) != 0) {
		spokei_redis_link_end(link, SPOKE_ELOST, "the primary is now %s", place.name);
		if (!stopped)
			return; /* its end is reported, and the primary is asked for again */
		spokei_redis_link_stop(&redis->subscriber);
		link->dialer.place = place;
		redis->subscriber.dialer.place = place;
	}
	if (stopped)
		spokei_redis_link_start(link, 0);
}

/* --- life */

static void free_redis(struct spokei_task *task)
{
	struct spokei_redis *redis = spoke_container_of(task, struct spokei_redis, end);
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

void spokei_redis_idle(struct spokei_redis *redis)
{
	if (redis->freed && !spokei_redis_link_busy(&redis->commands) &&
	    !spokei_redis_link_busy(&redis->subscriber) &&
	    !(redis->sentinel && spokei_redis_link_busy(&redis->sentinel->link)))
		spokei_run_freeing(redis->engine, &redis->end);
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
	const struct spokei_store *store = options->store;
	int error;

	if (store->sentinel_count > 0)
		return sentinel_new(redis, options);
	error = spokei_place_set(&redis->commands.dialer.place, redis->engine->env,
				 store->server.host, store->server.port, store->path);
	if (error == SPOKE_OK)
		redis->subscriber.dialer.place = redis->commands.dialer.place;
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
	redis->db = options->store->db;
	redis->primary = options->store->primary;
	redis->end.run = free_redis;
	spokei_list_init(&redis->asks);
	spokei_list_init(&redis->wanted);
	spokei_list_init(&redis->asked);
	spokei_map_init(&redis->channels, engine->env);
	error = spokei_redis_link_init(&redis->commands, redis, &commands_up, engine, connect_ns);
	other = spokei_redis_link_init(&redis->subscriber, redis, &subscriber_up, engine,
				       connect_ns);
	if (error == SPOKE_OK)
		error = other;
	redis->commands.user = redis->subscriber.user = text_of(options->user);
	redis->commands.password = redis->subscriber.password = text_of(options->password);
	if (error == SPOKE_OK)
		error = aim(redis, options);
	if (error) {
		leave(redis);
		free_redis(&redis->end);
		return error;
	}
	if (redis->sentinel)
		seek(redis, 0);
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
	unsubscribe_all(redis);
	leave(redis);
	spokei_redis_idle(redis);
}
