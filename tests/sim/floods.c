/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers that flood: for a while there is always something to read from them, and each read of
 * it costs their consumer time. It has no other effect, so all invariants hold.
 */
#include "tests/sim/oracle.h"

#define BEGIN_PERMILLE 100u /* at each look */
#define BATCH 8u            /* heartbeats after each turn */

/* A heartbeat that wants no answer. */
static const unsigned char heartbeat[SIM_HEAD + 1] = { 0xda, 0xbb, 0xa0 | 27, [15] = 1, 0xc0 };

/* A provider takes it that reading costs no time before its first handler of a turn. */
static bool may_flood(const struct sim_stream *stream)
{
	return stream->dubbo && !stream->veiled && !stream->inner && stream->ends[0].fd >= 0 &&
	       stream->ends[1].fd >= 0;
}

/* Chooses a connection; a consumer has at most one that floods. */
static struct sim_stream *any_stream(struct sim_world *world)
{
	struct sim_stream *chosen = NULL;
	unsigned open = 0;

	for (struct sim_stream *one = world->streams; one; one = one->next)
		if (may_flood(one) && sim_throw(&world->flood_dice) % ++open == 0)
			chosen = one;
	for (struct sim_stream *one = world->streams; chosen && one; one = one->next)
		if (one->flood_until_ns && one->ends[0].process == chosen->ends[0].process)
			return NULL;
	return chosen;
}

/* Heartbeats go between the frames that the provider has written. */
static void flood(struct sim_stream *stream)
{
	const struct sim_frames *sent = &stream->ends[1].sent;

	for (unsigned i = 0; i < BATCH && sent->have == 0 && !sent->broken; i++)
		if (!spokei_vnet_inject(stream->world->virt.net, stream->ends[1].fd, heartbeat,
					sizeof(heartbeat)))
			return;
}

static void begin(struct sim_world *world)
{
	struct sim_stream *stream = any_stream(world);

	if (stream == NULL)
		return;
	stream->flood_until_ns = world->virt.now_ns + sim_magnitude(&world->flood_dice,
								    world->plan->interval_ns / 2,
								    8 * world->plan->interval_ns);
	world->counts.floods++;
	sim_note(world, "p% floods connection % until % us", stream->place, stream->number,
		 stream->flood_until_ns / 1000, 0);
	flood(stream);
}

void sim_floods_look(struct sim_world *world)
{
	if (world->plan->flood_ns == 0 || world->plan->shares || world->healing)
		return;
	for (struct sim_stream *one = world->streams; one; one = one->next)
		if (one->flood_until_ns <= world->virt.now_ns)
			one->flood_until_ns = 0;
	if (sim_chance(&world->flood_dice, BEGIN_PERMILLE))
		begin(world);
}

void sim_floods_turned(struct sim_process *process)
{
	for (struct sim_stream *one = process->world->streams; one; one = one->next)
		if (one->flood_until_ns && one->ends[0].process == process && may_flood(one))
			flood(one);
}

void sim_floods_read(struct sim_end *end)
{
	struct sim_process *process = end->process;

	if (end->stream->flood_until_ns == 0 || !sim_connected(end))
		return;
	sim_freeze(process, process->world->plan->flood_ns);
	process->flooded_ns += process->world->plan->flood_ns;
}

void sim_floods_end(struct sim_world *world)
{
	for (struct sim_stream *one = world->streams; one; one = one->next)
		one->flood_until_ns = 0;
}
