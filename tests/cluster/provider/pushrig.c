/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of pushes: see pushrig.h. */
#include "tests/cluster/provider/pushrig.h"
#include "tests/support/scene.h"

#include <errno.h>

#define PATIENCE 10000 /* steps of 1 ms */

void pushrig_speak(struct stage *stage)
{
	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
							 stage_text(stage, "hello"))),
			  "hello");
}

struct spoke_peer pushrig_peer(const struct stage *stage)
{
	struct spoke_peer peer;

	assert_int_equal(spoke_provider_peers(stage->provider, &peer, 1), 1);
	return peer;
}

void pushrig_until_peers(struct stage *stage, size_t count)
{
	for (unsigned i = 0; spoke_provider_peers(stage->provider, NULL, 0) != count; i++) {
		assert_in_range(i, 0, PATIENCE);
		stage_pass(stage, MS);
	}
}

void pushrig_methods(struct pushrig *rig)
{
	static const struct spoke_method_options options = { .service = "demo.Push" };
	struct spoke_provider *provider = rig->stage->provider;

	assert_int_equal(spoke_provider_method(provider, "echo", &options, &rig->echo), 0);
	assert_int_equal(spoke_provider_method(provider, "later", &options, &rig->later), 0);
}

struct pushrig pushrig_on(struct stage *stage, const struct spoke_consumer_options *options)
{
	struct pushrig rig = { .stage = stage };

	stage_consume(stage, options);
	pushrig_speak(stage);
	rig.peer = pushrig_peer(stage);
	pushrig_methods(&rig);
	return rig;
}

struct pushrig pushrig_begin(void **state)
{
	struct stage *stage = stage_bare(state);
	const struct spoke_consumer_options options = { .handle = stage_handle,
							.handle_arg = stage };

	stage_provide(stage, NULL);
	return pushrig_on(stage, &options);
}

struct pushrig pushrig_begin_unserved(void **state)
{
	struct stage *stage = stage_bare(state);

	stage_provide(stage, NULL);
	return pushrig_on(stage, NULL);
}

int pushrig_mute(struct stage *stage)
{
	size_t before = spoke_provider_connections(stage->provider);
	int fd = scene_connect(&stage->client.env, stage->places[0]);

	for (unsigned i = 0; spoke_provider_connections(stage->provider) == before; i++) {
		assert_in_range(i, 0, PATIENCE);
		stage_pass(stage, MS);
	}
	return fd;
}

void pushrig_close_mute(struct stage *stage, int fd)
{
	stage->client.env.net->close(stage->client.env.ctx, fd);
}
