/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams over shared memory; see shmrig.h. */
#include "tests/transport/stream/shmrig.h"
#include "tests/support/scene.h"

#include <string.h>

enum {
	STEPS = 100,
};

static void ignore_ready(struct spoke_watch *watch, unsigned io)
{
	(void)watch;
	(void)io;
}

RIG_STEP(shmrig_set_up)
{
	static struct shmrig pair;
	int fds[2];

	memset(&pair, 0, sizeof(pair));
	scene_open(&pair.world, 3);
	pair.engine = scene_engine(&pair.world, &pair.process, &pair.faulty, NULL);
	scene_pair(&pair.world, &pair.faulty.env, SHMRIG_PLACE, fds);
	for (unsigned i = 0; i < 2; i++) {
		spokei_stream_init(&pair.sides[i], pair.engine, &spokei_stream_shm, fds[i],
				   ignore_ready);
		pair.sides[i].accepted = i == 1;
		pair.sides[i].ring_bits = SPOKEI_SHM_BITS_MIN;
	}
	*state = &pair;
}

RIG_STEP(shmrig_tear_down)
{
	struct shmrig *pair = *state;

	spokei_stream_close(&pair->sides[0]);
	spokei_stream_close(&pair->sides[1]);
	scene_leave(&pair->process, &pair->faulty, &pair->engine);
	assert_int_equal(pair->faulty.shares, 0);
	assert_int_equal(pair->process.user.shares, 0);
	spokei_world_fini(&pair->world);
}

void shmrig_open(struct shmrig *pair)
{
	int status[2] = { SPOKEI_STREAM_MORE, SPOKEI_STREAM_MORE };
	unsigned calls = 0;

	while (status[0] || status[1]) {
		for (unsigned i = 0; i < 2; i++)
			if (status[i])
				status[i] = spokei_stream_shm.open(&pair->sides[i]);
		assert_in_range(status[0], 0, SPOKEI_STREAM_MORE);
		assert_in_range(status[1], 0, SPOKEI_STREAM_MORE);
		assert_in_range(++calls, 1, STEPS);
	}
}

struct spokei_shm_link *shmrig_link(struct shmrig *pair, size_t side)
{
	return pair->sides[side].state;
}

ssize_t shmrig_write(struct shmrig *pair, size_t side, size_t len)
{
	static unsigned char bytes[8192];
	struct iovec part = { bytes, len };

	return spokei_stream_shm.write(&pair->sides[side], &part, 1);
}

ssize_t shmrig_read(struct shmrig *pair, size_t side, size_t len)
{
	static unsigned char bytes[8192];

	return spokei_stream_shm.read(&pair->sides[side], bytes, len);
}

void shmrig_sleep(struct shmrig *pair, unsigned first, unsigned second)
{
	(void)spokei_stream_shm.wants(&pair->sides[0], first);
	(void)spokei_stream_shm.wants(&pair->sides[1], second);
	assert_false(spokei_sources_sleep(pair->engine));
}

bool shmrig_is_rung(struct shmrig *pair, size_t side)
{
	return spokei_vnet_ready(pair->world.net, pair->sides[side].watch.fd) & SPOKE_IO_READ;
}
