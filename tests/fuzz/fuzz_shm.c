/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the peer of a stream over shared memory. The first bytes of the input are the hello and
 * the size of the memory. The rest are steps of the peer: a word or some bytes of the memory are
 * changed, or a bell is rung, and after each step the stream reads, writes, sleeps or ends. It
 * must never touch memory outside of the rings, nor give or take more bytes than fit them.
 */
#include "core/virtual/world.h"
#include "tests/fuzz/fuzz.h"
#include "transport/stream/shm/parts.h"

#include <spoke/engine.h>

#include <string.h>

#define HELLO 16u
#define PLACE "unix:/run/x.sock"

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spokei_stream stream;
	int peer;
	struct spoke_shared shared;
} rig;

static void ignore_ready(struct spoke_watch *watch, unsigned io)
{
	(void)watch;
	(void)io;
}

static void begin(void)
{
	const struct spoke_engine_options options = { .env = &rig.process.env };
	const struct spoke_env *env = &rig.process.env;
	struct spoke_address address;
	int listener = -1;
	int fd = -1;

	memset(&rig, 0, sizeof(rig));
	demand(spokei_world_init(&rig.world, 1), "there is memory");
	spokei_world_process_init(&rig.process, &rig.world);
	demand(spoke_engine_new(&options, &rig.engine) == 0, "there is an engine");
	(void)env->net->parse(env->ctx, PLACE, &address);
	(void)env->net->listen(env->ctx, &address, 1, &listener);
	(void)env->net->connect(env->ctx, &address, &rig.peer);
	spokei_world_run(&rig.world, rig.world.now_ns + 1);
	(void)env->net->finish(env->ctx, rig.peer);
	demand(env->net->accept(env->ctx, listener, &fd, &address) == 0, "it connects");
	env->net->close(env->ctx, listener);
	spokei_stream_init(&rig.stream, rig.engine, &spokei_stream_shm, fd, ignore_ready);
	rig.stream.accepted = true;
}

static void end(void)
{
	const struct spoke_env *env = &rig.process.env;

	spokei_stream_close(&rig.stream);
	env->net->close(env->ctx, rig.peer);
	if (rig.shared.memory)
		env->net->unshare(env->ctx, &rig.shared);
	demand(rig.process.user.shares == 0, "the memory is given up");
	spoke_engine_free(rig.engine);
	demand(rig.process.blocks == 0, "all memory is freed");
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

static void ring(void)
{
	const struct spoke_env *env = &rig.process.env;
	struct iovec bell = { (char[]){ 0 }, 1 };

	/* The engine does not turn here: it would go on until the stream has been read. */
	(void)env->net->write(env->ctx, rig.peer, &bell, 1);
	rig.world.now_ns++;
}

/* The stream goes on in one of its ways. */
static void go_on(uint8_t way)
{
	static unsigned char bytes[32768];
	struct spokei_shm_link *link = rig.stream.state;
	size_t size = link->in.size;
	struct iovec part = { bytes, sizeof(bytes) };
	ssize_t done;

	switch (way % 5) {
	case 0:
		done = spokei_stream_shm.read(&rig.stream, bytes, sizeof(bytes));
		demand(done <= (ssize_t)size, "it reads what fits the ring");
		break;
	case 1:
		done = spokei_stream_shm.write(&rig.stream, &part, 1);
		demand(done != 0 && done <= (ssize_t)size, "it writes what fits the ring");
		break;
	case 2:
		(void)spokei_stream_shm.wants(&rig.stream, way / 5 % 4);
		(void)spokei_sources_sleep(rig.engine);
		break;
	case 3:
		(void)spokei_stream_shm.shut(&rig.stream);
		break;
	default:
		demand(spokei_stream_shm.pending(&rig.stream) <= size, "no more is pending");
		(void)spokei_stream_shm.unsent(&rig.stream);
		(void)spokei_stream_shm.flush(&rig.stream);
		break;
	}
}

/* Steps of six bytes: what the peer does, where, a number, and what the stream does then. */
static void play(const uint8_t *data, size_t size)
{
	static const uint16_t words[] = { 0, 4, 128, 256, 260, 384, 512, 640 };

	for (; size >= 6; data += 6, size -= 6) {
		unsigned char *memory = rig.shared.memory;
		size_t at = ((size_t)data[1] << 8 | data[2]) % rig.shared.size;
		uint32_t word = (uint32_t)data[3] | (uint32_t)data[4] << 8 |
				(data[0] & 8 ? 0xffff0000u : 0);

		if (data[0] % 3 == 0)
			memcpy(memory + words[data[1] % 8], &word, sizeof(word));
		else if (data[0] % 3 == 1)
			memory[at] = data[3];
		else
			ring();
		go_on(data[5]);
	}
}

FUZZ(shm)
{
	const struct spoke_env *env = &rig.process.env;
	unsigned char hello[HELLO];
	struct iovec part = { hello, HELLO };
	size_t memory;

	if (size < HELLO + 2)
		return 0;
	memcpy(hello, data, HELLO);
	memory = ((size_t)data[HELLO] << 8 | data[HELLO + 1]) + 1;
	begin();
	demand(env->net->share(env->ctx, rig.peer, &part, memory, &rig.shared) == 0, "it is sent");
	spokei_world_run(&rig.world, rig.world.now_ns + 1);
	if (spokei_stream_shm.open(&rig.stream) == 0)
		play(data + HELLO + 2, size - HELLO - 2);
	else
		demand(rig.stream.state == NULL, "a refused peer has no memory");
	end();
	return 0;
}
