/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the store's tests: see redisrig.h. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/scene.h"

#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_NS (200 * SECOND)

/* --- reports of the store */

static void note_ready(void *arg)
{
	struct redisrig *rig = arg;

	rig->ready++;
	assert_true(spokei_redis_is_ready(rig->redis));
	if (rig->on_ready)
		rig->on_ready(rig);
}

static void note_down(void *arg, int error, struct spoke_span text)
{
	struct redisrig *rig = arg;

	rig->down++;
	rig->down_error = error;
	assert_in_range(text.len, 1, REDISRIG_TEXT - 1);
	memcpy(rig->down_text, text.data, text.len);
	rig->down_text[text.len] = '\0';
	assert_false(spokei_redis_is_ready(rig->redis));
	if (rig->on_down)
		rig->on_down(rig);
}

static void note_subscribed(void *arg, struct spokei_redis_channel *channel)
{
	struct redisrig *rig = arg;

	rig->subscribed++;
	rig->channel = channel;
}

static void note_message(void *arg, struct spokei_redis_channel *channel, struct spoke_span payload)
{
	struct redisrig *rig = arg;

	rig->messages++;
	rig->channel = channel;
	assert_in_range(payload.len, 0, REDISRIG_TEXT - 1);
	memcpy(rig->payload, payload.data, payload.len);
	rig->payload[payload.len] = '\0';
	if (rig->on_message)
		rig->on_message(rig);
}

static const struct spokei_redis_up rig_up = {
	.ready = note_ready,
	.down = note_down,
	.subscribed = note_subscribed,
	.message = note_message,
};

/* --- life */

RIG_STEP(redisrig_set_up)
{
	struct redisrig *rig = calloc(1, sizeof(*rig));
	struct spoke_engine_options options = { 0 };

	assert_non_null(rig);
	options.env = &rig->faulty.env;
	rig->options.store = &rig->store;
	rig->store.server.host = "127.0.0.1";
	rig->store.server.port = 6379;
	scene_open(&rig->world, 11);
	spokei_world_process_init(&rig->client, &rig->world);
	spokei_world_process_init(&rig->server, &rig->world);
	spokei_faults_init(&rig->faulty, &rig->client.env);
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	rig->listener = redisrig_listen(rig, REDISRIG_AT);
	*state = rig;
}

RIG_STEP(redisrig_tear_down)
{
	struct redisrig *rig = *state;

	spokei_redis_free(rig->redis);
	redisrig_run(rig, MS);
	scene_leave(&rig->client, &rig->faulty, &rig->engine);
	scene_kill(&rig->server);
	spokei_world_fini(&rig->world);
	free(rig);
}

int redisrig_start(struct redisrig *rig)
{
	int error = spokei_redis_new(rig->engine, &rig->options, &rig_up, rig, &rig->redis);

	assert_int_equal(rig->ready + rig->down, 0);
	return error;
}

void redisrig_run(struct redisrig *rig, uint64_t ns)
{
	spokei_world_run(&rig->world, rig->world.now_ns + ns);
}

/* --- the server */

int redisrig_listen(struct redisrig *rig, const char *at)
{
	return scene_listen(&rig->server.env, at);
}

static int try_accept(struct redisrig *rig, int listener)
{
	int fd = scene_accept(&rig->server.env, listener);

	if (fd < 0)
		return -1;
	assert_in_range(fd, 0, REDISRIG_CONNS - 1);
	rig->held[fd] = 0;
	return fd;
}

int redisrig_accept_at(struct redisrig *rig, int listener)
{
	uint64_t until_ns = rig->world.now_ns + PATIENCE_NS;
	int fd;

	while ((fd = try_accept(rig, listener)) < 0)
		assert_true(spokei_world_step(&rig->world, until_ns));
	return fd;
}

int redisrig_accept(struct redisrig *rig)
{
	return redisrig_accept_at(rig, rig->listener);
}

bool redisrig_called(struct redisrig *rig)
{
	return spokei_vnet_ready(rig->world.net, rig->listener) != 0;
}

/* Reads what has arrived. Returns false at the end. */
static bool read_more(struct redisrig *rig, int fd)
{
	bool ended;

	rig->held[fd] += scene_read(&rig->server.env, fd, rig->bytes[fd] + rig->held[fd],
				    REDISRIG_BYTES - rig->held[fd], &ended);
	return !ended;
}

/* Takes a command that has arrived, its texts joined by spaces. Returns whether there was one. */
static bool take_command(struct redisrig *rig, int fd, char text[REDISRIG_TEXT])
{
	struct spokei_resp_reader reader;
	struct spokei_resp_cursor cursor = { rig->bytes[fd], rig->bytes[fd] + rig->held[fd] };
	struct spokei_resp_value value;
	size_t at = 0;

	spokei_resp_begin(&reader);
	if (rig->held[fd] == 0 ||
	    spokei_resp_read(&reader, rig->bytes[fd], rig->held[fd]) != SPOKEI_RESP_WHOLE)
		return false;
	assert_true(spokei_resp_next(&cursor, &value));
	assert_int_equal(value.kind, SPOKEI_RESP_ARRAY);
	for (uint32_t left = value.count; left > 0; left--) {
		assert_true(spokei_resp_next(&cursor, &value));
		assert_int_equal(value.kind, SPOKEI_RESP_BULK);
		assert_in_range(at + value.text.len, 0, REDISRIG_TEXT - 2);
		memcpy(text + at, value.text.data, value.text.len);
		at += value.text.len;
		text[at++] = ' ';
	}
	text[at - 1] = '\0';
	rig->held[fd] -= reader.at;
	memmove(rig->bytes[fd], rig->bytes[fd] + reader.at, rig->held[fd]);
	return true;
}

void redisrig_expect(struct redisrig *rig, int fd, const char *command)
{
	uint64_t until_ns = rig->world.now_ns + PATIENCE_NS;
	size_t len = strlen(command);
	char text[REDISRIG_TEXT];

	redisrig_run(rig, 0); /* what was sent outside of a turn is written */
	while (!take_command(rig, fd, text)) {
		bool open = read_more(rig, fd);

		if (take_command(rig, fd, text))
			break;
		assert_true(open);
		assert_true(spokei_world_step(&rig->world, until_ns));
	}
	if (len > 0 && command[len - 1] == '*')
		text[len - 1 < strlen(text) ? len - 1 : strlen(text)] = '*', text[len] = '\0';
	assert_string_equal(text, command);
}

void redisrig_expect_none(struct redisrig *rig, int fd)
{
	char text[REDISRIG_TEXT];

	redisrig_run(rig, MS);
	assert_true(read_more(rig, fd));
	assert_false(take_command(rig, fd, text));
}

void redisrig_expect_end(struct redisrig *rig, int fd)
{
	uint64_t until_ns = rig->world.now_ns + PATIENCE_NS;

	redisrig_run(rig, 0);
	for (;;) {
		rig->held[fd] = 0;
		if (!read_more(rig, fd))
			break;
		assert_true(spokei_world_step(&rig->world, until_ns));
	}
	redisrig_hang_up(rig, fd);
}

void redisrig_say_bytes(struct redisrig *rig, int fd, const void *bytes, size_t len)
{
	scene_write(&rig->server.env, fd, bytes, len);
	redisrig_run(rig, MS);
}

void redisrig_say(struct redisrig *rig, int fd, const char *bytes)
{
	redisrig_say_bytes(rig, fd, bytes, strlen(bytes));
}

void redisrig_hang_up(struct redisrig *rig, int fd)
{
	scene_hang_up(&rig->server.env, fd);
}

void redisrig_expect_greeting(struct redisrig *rig, int fd)
{
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	redisrig_expect(rig, fd, "CLIENT ID");
	redisrig_expect(rig, fd, "CONFIG GET maxmemory-policy");
	redisrig_expect(rig, fd, "ROLE");
	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		redisrig_expect(rig, fd, "SCRIPT LOAD *");
}

void redisrig_answer_greeting(struct redisrig *rig, int fd, unsigned id)
{
	static const char script[] = "$40\r\n" REDISRIG_SHA "\r\n";
	char text[REDISRIG_TEXT];
	int at = snprintf(text, sizeof(text),
			  "+OK\r\n:%u\r\n*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"
			  "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
			  id);

	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s", script);
	redisrig_say(rig, fd, text);
}

int redisrig_welcome(struct redisrig *rig)
{
	unsigned ready = rig->ready;
	int fd = redisrig_accept(rig);

	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 7);
	assert_int_equal(rig->ready, ready + 1);
	return fd;
}

int redisrig_begin(struct redisrig *rig)
{
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	return redisrig_accept(rig);
}

int redisrig_greeted(struct redisrig *rig)
{
	int fd = redisrig_begin(rig);

	redisrig_expect_greeting(rig, fd);
	return fd;
}

int redisrig_open(struct redisrig *rig)
{
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	return redisrig_welcome(rig);
}

/* --- asks */

/* Prints a reply, e.g. "[0 '17']". Returns the number of bytes. */
static void print_reply(struct spokei_resp_cursor reply, char text[REDISRIG_TEXT])
{
	struct spokei_resp_value value;
	size_t room = REDISRIG_TEXT;
	int len = 0;

	text[0] = '\0';
	while (spokei_resp_next(&reply, &value)) {
		int count = (int)value.text.len;
		const char *bytes = value.text.data;

		switch (value.kind) {
		case SPOKEI_RESP_NIL:
			len = snprintf(text, room, "nil ");
			break;
		case SPOKEI_RESP_SIMPLE:
			len = snprintf(text, room, "+%.*s ", count, bytes);
			break;
		case SPOKEI_RESP_ERROR:
			len = snprintf(text, room, "-%.*s ", count, bytes);
			break;
		case SPOKEI_RESP_INTEGER:
			len = snprintf(text, room, "%lld ", (long long)value.integer);
			break;
		case SPOKEI_RESP_BULK:
			len = snprintf(text, room, "'%.*s' ", count, bytes);
			break;
		case SPOKEI_RESP_ARRAY:
			len = snprintf(text, room, "*%u ", (unsigned)value.count);
			break;
		}
		assert_in_range(len, 1, room - 1);
		text += len;
		room -= (size_t)len;
	}
	if (len > 0)
		text[-1] = '\0';
}

static void note_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct redisask *told = spoke_container_of(ask, struct redisask, ask);

	assert_null(ask->node.next);
	told->done++;
	told->error = error;
	if (told->first)
		told->first(told);
	print_reply(reply, told->reply);
	if (told->then)
		told->then(told);
}

int redisrig_ask(struct redisrig *rig, struct redisask *ask, const char *name)
{
	ask->ask.done = note_done;
	ask->rig = rig;
	spokei_redis_begin(rig->redis, SPOKEI_SCRIPT_NONE, 0, 2);
	spokei_redis_text(rig->redis, (struct spoke_span){ "GET", 3 });
	spokei_redis_text(rig->redis, (struct spoke_span){ name, strlen(name) });
	return spokei_redis_send(rig->redis, &ask->ask);
}

int redisrig_run_script(struct redisrig *rig, struct redisask *ask, enum spokei_script script,
			unsigned keys, unsigned count)
{
	ask->ask.done = note_done;
	ask->rig = rig;
	spokei_redis_begin(rig->redis, script, keys, count);
	for (unsigned i = 0; i < count; i++) {
		char text[16];
		int len = snprintf(text, sizeof(text), "k%u", i);

		spokei_redis_text(rig->redis, (struct spoke_span){ text, (size_t)len });
	}
	return spokei_redis_send(rig->redis, &ask->ask);
}

unsigned redisrig_events(const struct redisrig *rig, const char *words)
{
	return scene_events(rig->engine, words);
}
