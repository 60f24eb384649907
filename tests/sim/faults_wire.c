/* SPDX-License-Identifier: Apache-2.0 */
/* Injects faults into one connection: cuts, holes, delays, and bytes altered on the way. */
#include "tests/sim/oracle.h"

#include <string.h>

static struct sim_stream *any_stream(struct sim_world *world)
{
	unsigned open = 0;
	struct sim_stream *chosen = NULL;

	for (struct sim_stream *one = world->streams; one; one = one->next) {
		if (one->ends[0].fd < 0 || one->ends[1].fd < 0)
			continue;
		if (sim_throw(&world->dice) % ++open == 0)
			chosen = one;
	}
	return chosen;
}

static struct spokei_vnet_link *link_of(const struct sim_stream *stream, unsigned end)
{
	return spokei_vnet_link(stream->world->virt.net, stream->ends[end].fd);
}

static uint64_t draw_until(struct sim_world *world)
{
	return world->virt.now_ns + sim_magnitude(&world->dice, world->plan->interval_ns / 8,
						  8 * world->plan->interval_ns);
}

static bool open_hole(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;
	unsigned which = (unsigned)sim_between(&world->dice, 1, 3);

	stream->hole_until_ns = draw_until(world);
	sim_note(world, "nothing passes on connection %, %d, until % us", stream->number, which,
		 stream->hole_until_ns / 1000, 0);
	for (unsigned i = 0; i < 2; i++)
		if (which & 1u << i)
			link_of(stream, i)->blackhole = true;
	return true;
}

/* Drops everything in both directions for ever; an end that closes is not noticed by the other one.
 */
static bool cut_in_half(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;

	sim_note(world, "connection % is half open", stream->number, 0, 0, 0);
	stream->hole_until_ns = UINT64_MAX;
	for (unsigned i = 0; i < 2; i++)
		link_of(stream, i)->blackhole = true;
	return true;
}

static bool delay(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;
	uint64_t ns = sim_magnitude(&world->dice, MS, 2 * world->plan->interval_ns);

	sim_note(world, "connection % is delayed by % us", stream->number, ns / 1000, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		link_of(stream, i)->latency_ns = ns;
		link_of(stream, i)->jitter_ns = ns / 2;
	}
	return true;
}

/* Clogs a connection, or ends the clog. */
static bool turn_clog(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;

	stream->clogged = !stream->clogged;
	stream->marred = true; /* bytes in flight are delayed */
	sim_note(world,
		 stream->clogged ? "connection % is clogged" : "connection % is no longer clogged",
		 stream->number, 0, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct spokei_vnet_link *link = link_of(stream, i);

		*link = world->plan->link;
		if (stream->clogged) {
			link->capacity = (uint32_t)sim_magnitude(&world->dice, 1, 500);
			link->bytes_per_s = sim_magnitude(&world->dice, 100, 10000);
		}
	}
	return true;
}

/* --- altered bytes */

static bool flip(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;
	unsigned which = (unsigned)(sim_throw(&world->dice) % 2);

	sim_note(world, "bits are flipped on connection %", stream->number, 0, 0, 0);
	stream->tampered = true;
	stream->marred = true;
	world->tampered |= !stream->veiled; /* over TLS the connection ends instead */
	link_of(stream, which)->corrupt_permille = (uint32_t)sim_between(&world->dice, 10, 500);
	return true;
}

static void put_id(unsigned char *reply, uint64_t id)
{
	for (unsigned i = 0; i < 8; i++)
		reply[4 + i] = (unsigned char)(id >> (56 - 8 * i));
}

/* Delivers an earlier reply again: on the same or another connection; with its own id, an unknown
 * id or the next id. Only between two frames. */
static bool replay(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;
	const struct sim_stream *from = any_stream(world);
	unsigned char reply[SIM_KEPT];
	unsigned how = (unsigned)(sim_throw(&world->dice) % 4);

	if (!stream->dubbo || from->last_len == 0 || stream->ends[1].sent.have != 0 ||
	    stream->ends[1].sent.broken)
		return false;
	memcpy(reply, from->last_reply, from->last_len);
	if (how == 1)
		put_id(reply, sim_throw(&world->dice));
	else if (how == 2)
		put_id(reply,
		       stream->id_base + stream->ask_count + sim_between(&world->dice, 0, 3));
	if (!spokei_vnet_inject(world->virt.net, stream->ends[1].fd, reply, from->last_len))
		return false;
	sim_note(world, "an old reply of connection % is replayed on connection %, %i",
		 from->number, stream->number, how, 0);
	stream->tampered = true;
	/* The id may be in use when the reply arrives. */
	world->tampered |= how == 2 && !stream->veiled;
	return true;
}

static bool reset(struct sim_stream *stream)
{
	unsigned which = stream->ends[0].fd >= 0 ? 0 : 1;

	sim_note(stream->world, "connection % is reset", stream->number, 0, 0, 0);
	spokei_vnet_reset(stream->world->virt.net, stream->ends[which].fd);
	return true;
}

/* Stalls are not listed: handlers call sim_fault_stall(). */
static bool (*const begin[SIM_FAULTS])(struct sim_stream *stream) = {
	[SIM_RESET] = reset, [SIM_HALF_OPEN] = cut_in_half, [SIM_HOLE] = open_hole,
	[SIM_DELAY] = delay, [SIM_CLOG] = turn_clog,        [SIM_REPLAY] = replay,
	[SIM_FLIP] = flip,
};

bool sim_fault_stream(struct sim_world *world, enum sim_fault fault)
{
	struct sim_stream *stream = any_stream(world);

	return stream && begin[fault] && begin[fault](stream);
}

/* Ends the holes whose time is over. */
void sim_fault_streams_look(struct sim_world *world)
{
	for (struct sim_stream *one = world->streams; one; one = one->next) {
		if (one->hole_until_ns == 0 || one->hole_until_ns > world->virt.now_ns)
			continue;
		one->hole_until_ns = 0;
		for (unsigned i = 0; i < 2; i++)
			if (one->ends[i].fd >= 0)
				link_of(one, i)->blackhole = false;
	}
}

void sim_fault_streams_end(struct sim_world *world)
{
	for (struct sim_stream *one = world->streams; one; one = one->next) {
		one->hole_until_ns = 0;
		one->clogged = false;
		/* Reset half-open connections, so that both ends notice. */
		if (one->ends[1].process &&
		    (one->marred || one->ends[0].fd < 0 || one->ends[1].fd < 0))
			(void)reset(one);
	}
}
