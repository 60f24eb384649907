/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection for published messages. Replies to SUBSCRIBE and UNSUBSCRIBE come in the order of
 * the commands, one for each channel, so they are counted: a channel that was left and joined again
 * is in force only after its second SUBSCRIBE.
 */
#include "cluster/lease/redis_parts.h"
#include "core/base/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* SUBSCRIBEs wait in a list, not in the output, beyond this many bytes. */
#define OUT_HIGH 65536u

static struct spokei_redis *redis_of(struct spokei_redis_link *link)
{
	return link->owner;
}

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

void spokei_redis_listen(struct spokei_redis *redis)
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
	spokei_redis_listen(redis);
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

void spokei_redis_unsubscribe_all(struct spokei_redis *redis)
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
	redis->subscriber_pinged = false;
}

static void begin_to_listen(struct spokei_redis *redis)
{
	struct spokei_redis_link *link = &redis->subscriber;

	spokei_redis_link_ready(link);
	spokei_redis_link_due(link, spokei_later(link->heard_ns, SPOKEI_REDIS_IDLE_NS));
	put_wanted(redis);
}

static void subscriber_opened(struct spokei_redis_link *link)
{
	static const char *const name[] = { "CLIENT", "SETNAME", "spoke" };
	struct spokei_redis *redis = redis_of(link);

	want_all(redis);
	redis->subscriber_greeted = *redis->password == '\0';
	if (!redis->subscriber_greeted)
		spokei_redis_put_auth(link, redis->user, redis->password);
	spokei_redis_put(link, COUNT(name), name);
}

static void subscriber_ended(struct spokei_redis_link *link)
{
	struct spokei_redis *redis = redis_of(link);

	want_all(redis);
	if (link->worked)
		redis->subscriber_quiet = false;
	if (!redis->subscriber_quiet)
		SPOKEI_REDIS_EVENT(redis, link->error,
				   "connection for messages: %s; connects again", link->why);
	redis->subscriber_quiet = true;
}

static void subscriber_due(struct spokei_redis_link *link)
{
	spokei_redis_probe(link, &redis_of(link)->subscriber_pinged);
}

/* --- replies and messages */

static bool subscriber_expect(struct spokei_redis_link *link)
{
	(void)link;
	return true;
}

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

static void took_push(struct spokei_redis *redis, struct spokei_resp_cursor *rest)
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
	} else if (redis->subscriber_pinged && spokei_resp_is(&kind, "pong")) {
		redis->subscriber_pinged = false;
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

/* The reply to AUTH, then that to CLIENT SETNAME, which may be an error. */
static void took_greeting(struct spokei_redis *redis, const struct spokei_resp_value *value)
{
	if (redis->subscriber_greeted) {
		begin_to_listen(redis);
	} else if (value->kind == SPOKEI_RESP_ERROR) {
		spokei_redis_refused(&redis->subscriber, "AUTH", value);
	} else if (value->kind != SPOKEI_RESP_SIMPLE) {
		spokei_redis_strange(&redis->subscriber, "AUTH");
	} else {
		redis->subscriber_greeted = true;
	}
}

static void subscriber_reply(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_redis *redis = redis_of(link);
	struct spokei_resp_value value;

	(void)spokei_resp_next(&reply, &value);
	if (link->state == SPOKEI_REDIS_GREETING) {
		took_greeting(redis, &value);
	} else if (value.kind == SPOKEI_RESP_ARRAY && value.count >= 2) {
		took_push(redis, &reply);
	} else if (value.kind == SPOKEI_RESP_SIMPLE && redis->subscriber_pinged) {
		redis->subscriber_pinged = false;
	} else if (value.kind == SPOKEI_RESP_ERROR) {
		took_refusal(redis, &value);
	} else {
		spokei_redis_strange(link, "SUBSCRIBE");
	}
}

const struct spokei_redis_link_up spokei_redis_subscriber_up = {
	.opened = subscriber_opened,
	.expects = subscriber_expect,
	.reply = subscriber_reply,
	.ended = subscriber_ended,
	.due = subscriber_due,
};
