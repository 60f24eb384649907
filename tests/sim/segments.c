/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a provider's behaviour is independent of how its input is split. A stream of
 * requests, some of them damaged, is sent whole and in pieces of every size. The handlers must see
 * the same requests, and the replies must be the same.
 */
#include "tests/sim/sim.h"

#include "core/engine/engine.h"

#include <errno.h>
#include <string.h>

enum {
	REQUESTS = 12,
	STREAM_MAX = 8192,
	PLACE = 20990,
};

struct hearing {
	uint64_t handled;  /* hash of the requests */
	uint64_t answered; /* hash of the reply bytes */
	unsigned count;
	bool closed; /* by the provider: unwritten replies are lost */
};

static void mix(uint64_t *hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ at[i]) * UINT64_C(0x100000001b3);
}

static void handle(struct spoke_request *request, void *arg)
{
	struct hearing *hearing = arg;
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_span method = spoke_request_method(request);
	struct spoke_value value = { NULL, 0 };

	mix(&hearing->handled, method.data, method.len);
	while (spoke_cursor_next(&args, &value))
		mix(&hearing->handled, value.data, value.len);
	hearing->count++;
	spoke_reply(request, value);
}

/* --- the input */

static size_t put_request(unsigned char *at, struct sim_dice *dice, uint64_t id)
{
	static const char head[] = "\xa5"
				   "2.0.2\xa8sim.Echo\xa5"
				   "0.0.0\xa3now\xa2[B\xc4";
	size_t size = (size_t)sim_between(dice, SIM_MARK, 200);
	size_t body = sizeof(head) - 1 + 1 + size + 1;

	memset(at, 0, SIM_HEAD);
	at[0] = 0xda;
	at[1] = 0xbb;
	at[2] = 0xc0 | 27;
	for (unsigned i = 0; i < 8; i++)
		at[4 + i] = (unsigned char)(id >> (56 - 8 * i));
	at[14] = (unsigned char)(body >> 8);
	at[15] = (unsigned char)body;
	memcpy(at + SIM_HEAD, head, sizeof(head) - 1);
	at += SIM_HEAD + sizeof(head) - 1;
	*at++ = (unsigned char)size;
	memset(at, 0x55, size);
	sim_mark_write(at, id);
	at[size] = 0x80;
	return SIM_HEAD + body;
}

static size_t make_stream(unsigned char *bytes, struct sim_dice *dice)
{
	size_t len = 0;

	for (unsigned i = 0; i < REQUESTS; i++)
		len += put_request(bytes + len, dice, 1000 + i);
	for (unsigned i = (unsigned)sim_between(dice, 0, 2); i > 0; i--)
		bytes[sim_throw(dice) % len] ^= (unsigned char)(1u << sim_throw(dice) % 8);
	return len;
}

/* --- one run */

struct room {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	int fd;
};

static bool open_room(struct room *room, struct hearing *hearing)
{
	static const struct spoke_service_options service = { .name = "sim.Echo" };
	const struct spoke_handler handler = { .handle = handle, .arg = hearing };
	struct spoke_engine_options with = { .env = &room->server.env, .timers_max = 1000 };
	struct spoke_address address;

	if (!spokei_world_init(&room->world, 1))
		return false;
	spokei_world_process_init(&room->server, &room->world);
	spokei_world_process_init(&room->client, &room->world);
	return spoke_engine_new(&with, &room->engine) == 0 &&
	       spoke_provider_new(room->engine, NULL, &room->provider) == 0 &&
	       spoke_provider_add(room->provider, &service, &handler, 1) == 0 &&
	       spoke_provider_listen(room->provider, "dubbo://127.0.0.1:20990") == 0 &&
	       spokei_vnet_table.parse(&room->client, "127.0.0.1:20990", &address) == 0 &&
	       spokei_vnet_table.connect(&room->client, &address, &room->fd) < 0;
}

static void close_room(struct room *room)
{
	spokei_vnet_kill(&room->client.user);
	spoke_engine_free(room->engine);
	spokei_world_process_fini(&room->server);
	spokei_world_process_fini(&room->client);
	spokei_world_fini(&room->world);
}

static void take_answers(struct room *room, struct hearing *hearing)
{
	unsigned char bytes[4096];
	ssize_t got;

	while ((got = spokei_vnet_table.read(&room->client, room->fd, bytes, sizeof(bytes))) > 0)
		mix(&hearing->answered, bytes, (size_t)got);
	hearing->closed |= got == 0 || got == -ECONNRESET;
}

/* Writes the stream in pieces of up to `most` bytes, with a short pause after each. */
static struct hearing hear(const unsigned char *bytes, size_t len, size_t most,
			   struct sim_dice *dice)
{
	struct hearing hearing = { 0 };
	struct room room = { 0 };
	size_t at = 0;

	if (!open_room(&room, &hearing))
		return hearing;
	spokei_world_run(&room.world, room.world.now_ns + MS);
	while (at < len) {
		size_t part = (size_t)sim_between(dice, 1, most);
		struct iovec piece = { (void *)(uintptr_t)(bytes + at),
				       part < len - at ? part : len - at };
		ssize_t took = spokei_vnet_table.write(&room.client, room.fd, &piece, 1);

		if (took <= 0)
			break; /* the provider may close the connection */
		at += (size_t)took;
		spokei_world_run(&room.world, room.world.now_ns + 1000);
		take_answers(&room, &hearing);
	}
	spokei_world_run(&room.world, room.world.now_ns + MS);
	take_answers(&room, &hearing);
	close_room(&room);
	return hearing;
}

void sim_segments(uint64_t seed)
{
	unsigned char bytes[STREAM_MAX];
	struct sim_dice dice = sim_dice_make(seed ^ UINT64_C(0x5e65e65e6));
	size_t len = make_stream(bytes, &dice);
	struct hearing whole = hear(bytes, len, len, &dice);

	for (unsigned i = 0; i < 3; i++) {
		size_t most = i == 0 ? 1 : (size_t)sim_magnitude(&dice, 2, 400);
		struct hearing cut = hear(bytes, len, most, &dice);

		if (cut.handled != whole.handled || cut.closed != whole.closed ||
		    (!cut.closed && cut.answered != whole.answered))
			sim_violation(sim_world_now, SIM_S15,
				      "pieces of up to %zu bytes: %u requests, and %u in one", most,
				      cut.count, whole.count);
	}
}
