/* SPDX-License-Identifier: Apache-2.0 */
/* An idle consumer and its provider wake only for heartbeats. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

enum {
	CLIENT,
	SERVER
};

/* How often a side woke although no bytes came and no timer fired. */
static struct {
	const struct stage *stage;
	uint64_t at_ns[2];
	uint64_t done[2];
	unsigned empty[2];
} turns;

static void note_turn(struct spokei_world_process *process)
{
	const struct stage *stage = turns.stage;
	unsigned side = process == &stage->processes[SERVER] ? SERVER : CLIENT;
	const struct spoke_engine *engine = side ? stage->server_engine : stage->client_engine;
	struct spoke_wheel_counts counts;
	uint64_t done;

	spoke_wheel_counts(spoke_engine_wheel(engine), &counts);
	done = counts.fired + spoke_stat_get(engine, SPOKE_STAT_READS);
	turns.empty[side] += done == turns.done[side] && turns.at_ns[side] != stage->world.now_ns;
	turns.done[side] = done;
	turns.at_ns[side] = stage->world.now_ns;
}

RUNNER(stage_run);

TEST(idle_pair_never_wakes_for_nothing)
{
	struct stage *stage = stage_bare(state);

	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return;
	stage_provide(stage, &(struct spoke_provider_options){ .heartbeat_ns = 0 });
	stage_consume(stage, &(struct spoke_consumer_options){ .heartbeat_ns = 0 });
	stage_until_ready(stage, 1);
	stage_pass(stage, SECOND);
	turns.stage = stage;
	for (unsigned side = 0; side < 2; side++) {
		turns.empty[side] = 0;
		stage->processes[side].turned = note_turn;
	}
	stage_pass(stage, 3600 * SECOND);
	assert_in_range(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN) +
				stage_server_stat(stage, SPOKE_STAT_PROBES_WRITTEN),
			58, 62);
	/* Once in 4.7 hours the wheel's highest level moves. */
	assert_in_range(turns.empty[CLIENT], 0, 1);
	assert_in_range(turns.empty[SERVER], 0, 1);
}
