/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks all connections and passes the bytes on them to the parser of frames. */
#include "tests/sim/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 8388608u
#define BACKOFF_FLOOR_NS (80 * MS) /* the first pause, minus its jitter */

static struct sim_process *process_of(struct spokei_vnet_user *user)
{
	return (struct sim_process *)(void *)user;
}

/* --- connect and accept */

static unsigned place_of(const char *name)
{
	return (unsigned)strtoul(strrchr(name, ':') + 1, NULL, 10) - SIM_PORT;
}

static void init_end(struct sim_stream *stream, unsigned which, struct sim_process *process, int fd)
{
	struct sim_end *end = &stream->ends[which];

	end->stream = stream;
	end->process = process;
	end->fd = fd;
	end->since_ns = stream->world->virt.now_ns;
	end->sent.frame_max = FRAME_MAX;
	end->seen.frame_max = FRAME_MAX;
	end->sent.timed = end->seen.timed = stream->world->chains != NULL;
}

/* Checks a new connection attempt. A provider that was withdrawn and listed again may get a new
 * connection before the old one has ended. */
static void check_connect(struct sim_consumer *consumer, unsigned place)
{
	struct sim_world *world = consumer->process.world;
	const struct sim_stream *last = consumer->last[place];
	unsigned lines = consumer->plan->calls.connections;
	uint64_t *times = consumer->connected_ns[place];
	uint64_t before_ns = times[lines - 1];

	if (consumer->process.closed)
		sim_violation(world, SIM_S12, "consumer %u connects after it was closed",
			      consumer->process.number);
	if (last && last->ends[0].fd >= 0 && !consumer->several)
		sim_violation(world, SIM_S12,
			      "consumer %u has two connection attempts to provider %u in progress",
			      consumer->process.number, place);
	if (before_ns && world->virt.now_ns - before_ns < BACKOFF_FLOOR_NS &&
	    !consumer->plan->registry)
		sim_violation(world, SIM_S12,
			      "consumer %u connects to provider %u again after only %.3f ms",
			      consumer->process.number, place,
			      (double)(world->virt.now_ns - before_ns) / 1e6);
	memmove(times + 1, times, (SIM_LINES - 1) * sizeof(*times));
	times[0] = world->virt.now_ns;
}

static struct sim_end *connecting(struct sim_world *world, const struct spokei_vnet_news *news)
{
	struct sim_process *process = process_of(news->user);
	struct sim_consumer *consumer = (struct sim_consumer *)process;
	unsigned place = place_of(news->name);
	struct sim_stream *stream;

	if (place >= SIM_PROVIDERS)
		return sim_line_new(process, news->fd)->ends;
	stream = calloc(1, sizeof(*stream));
	if (stream == NULL)
		abort();
	stream->inner = sim_is_provider(process);
	if (!stream->inner)
		check_connect(consumer, place);
	stream->world = world;
	stream->number = ++world->stream_count;
	stream->place = place;
	stream->dubbo = stream->inner || !consumer->plan->mprpc;
	stream->veiled = sim_plan_veils(world->plan);
	stream->next = world->streams;
	world->streams = stream;
	init_end(stream, 0, process, news->fd);
	init_end(stream, 1, NULL, -1);
	if (!stream->inner)
		consumer->last[place] = stream;
	sim_note(world,
		 stream->inner ? "p% connects to p%: connection %"
			       : "c% connects to p%: connection %",
		 process->number, place, stream->number, 0);
	return &stream->ends[0];
}

static void accepted(struct sim_end *end, const struct spokei_vnet_news *news)
{
	end->process = process_of(news->user);
	end->fd = news->fd;
	end->since_ns = end->stream->world->virt.now_ns;
	(void)snprintf(end->stream->peer, sizeof(end->stream->peer), "%s", news->name);
	sim_note(end->stream->world, "p% accepts connection %", end->process->number,
		 end->stream->number, 0, 0);
}

/* --- bytes */

/* Records the begin of the next frame. */
static void frame_begins(struct sim_end *end)
{
	end->frame_ns = sim_now(end->process);
	end->frame_order = ++end->stream->world->order;
}

static void sent_whole(void *arg, const struct sim_frame *frame)
{
	struct sim_end *end = arg;

	sim_ask_sent(end, frame);
	sim_link_moved(end);
	frame_begins(end);
}

static void seen_whole(void *arg, const struct sim_frame *frame)
{
	sim_ask_seen(arg, frame);
}

void sim_stream_wrote(struct sim_end *end, const void *bytes, size_t len)
{
	end->wrote_ns = end->stream->world->virt.now_ns;
	if (end->first_wrote_ns == 0) {
		end->first_wrote_ns = end->wrote_ns;
		end->first_order = ++end->stream->world->order;
	}
	if (end->sent.have == 0)
		frame_begins(end);
	if (end->stream->dubbo)
		sim_frames_feed(&end->sent, bytes, len, sent_whole, end);
}

static void wrote(struct sim_end *end, const struct spokei_vnet_news *news)
{
	end->process->progress++;
	/* Over shared memory it is a bell. */
	if (!end->stream->world->plan->shares)
		end->passed_ns = end->stream->world->virt.now_ns;
	if (!end->stream->veiled)
		sim_stream_wrote(end, news->bytes, news->len);
	else if (!end->stream->world->plan->shares)
		sim_link_moved(end);
}

static void arrived(struct sim_end *end, const struct spokei_vnet_news *news)
{
	end->arrived += news->len;
	end->arrived_ns = end->stream->world->virt.now_ns;
	if (end->process)
		end->silent = sim_excuse_now(end);
}

void sim_stream_read(struct sim_end *end, const void *bytes, size_t len)
{
	struct sim_process *process = end->process;

	end->read_ns = end->stream->world->virt.now_ns;
	end->asked_ns = 0;
	end->patience_ns = 0;
	end->misses = 0;
	if (!end->stream->dubbo)
		return;
	sim_frames_feed(&end->seen, bytes, len, seen_whole, end);
	if (!end->seen.broken)
		return;
	sim_note(process->world, "connection % has an invalid frame for process %",
		 end->stream->number, process->number, 0, 0);
	end->broken_turn = process->turns + 1;
	process->broken = end;
}

void sim_stream_reads(struct sim_end *end)
{
	if (end->broken_turn)
		sim_violation(end->stream->world, SIM_S16,
			      "connection %u is read further after a broken frame",
			      end->stream->number);
	sim_books_read(end);
	sim_turns_read(end);
}

/* Over shared memory only bells are read here. */
static void was_read(struct sim_end *end, const struct spokei_vnet_news *news)
{
	if (end->stream->world->plan->shares)
		sim_turns_read(end);
	else
		sim_stream_reads(end);
	end->taken += news->len;
	end->taken_ns = end->stream->world->virt.now_ns;
	end->process->progress++;
	if (!end->stream->veiled)
		sim_stream_read(end, news->bytes, news->len);
}

static void free_bytes(struct sim_stream *stream)
{
	free(stream->asks);
	stream->asks = NULL;
	for (unsigned i = 0; i < 2; i++) {
		free(stream->ends[i].flight);
		stream->ends[i].flight = NULL;
	}
}

/* Moves a stream from the list of open ones to that of past ones. */
static void leave(struct sim_stream *stream)
{
	struct sim_world *world = stream->world;
	struct sim_stream **at = &world->streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	stream->next = world->past;
	world->past = stream;
	stream->over = true;
}

/* Without memory an attempt ends as it begins, and the provider has not seen it. There is no
 * failure to back off from: the next call tries again. */
static void forget_attempt(struct sim_end *end)
{
	struct sim_consumer *consumer = (struct sim_consumer *)end->process;
	uint64_t *times = consumer->connected_ns[end->stream->place];

	if (!sim_plan_has(end->stream->world->plan, SIM_MEMORY) ||
	    end->since_ns != end->stream->world->virt.now_ns || times[0] != end->since_ns)
		return;
	memmove(times, times + 1, (SIM_LINES - 1) * sizeof(*times));
	times[SIM_LINES - 1] = 0;
}

static void closed(struct sim_end *end)
{
	struct sim_stream *stream = end->stream;

	if (end->process == NULL)
		return; /* aborted by the kernel before accept() */
	if (end == &stream->ends[0] && !stream->inner)
		forget_attempt(end);
	sim_parents_lost(end);
	sim_note(stream->world, "process % closes connection %", end->process->number,
		 stream->number, 0, 0);
	end->process->progress++;
	end->fd = -1;
	/* A connection that is not accepted yet may still be accepted. */
	if (sim_other(end)->fd >= 0 || stream->ends[1].process == NULL || stream->over)
		return;
	leave(stream);
	free_bytes(stream);
	stream->ask_count = 0;
	stream->ask_room = 0;
}

/* --- events of the network */

static struct sim_end *end_of(struct sim_world *world, const struct spokei_vnet_news *news)
{
	struct sim_end *other = news->peer_note ? *news->peer_note : NULL;

	if (*news->note == NULL && other)
		*news->note = other->stream ? sim_other(other) : other + 1;
	if (*news->note == NULL && news->act == SPOKEI_VNET_CONNECT)
		*news->note = connecting(world, news);
	return *news->note;
}

void sim_observe(void *arg, const struct spokei_vnet_news *news)
{
	struct sim_end *end = end_of(arg, news);

	if (end == NULL)
		return; /* a listener */
	if (end->stream == NULL) {
		sim_line_observe(end, news);
		return;
	}
	switch (news->act) {
	case SPOKEI_VNET_ACCEPT:
		accepted(end, news);
		end->process->progress++;
		break;
	case SPOKEI_VNET_WRITE:
		wrote(end, news);
		break;
	case SPOKEI_VNET_ARRIVE:
		arrived(end, news);
		break;
	case SPOKEI_VNET_READ:
		was_read(end, news);
		break;
	case SPOKEI_VNET_AGAIN:
		end->again_ns = end->stream->world->virt.now_ns;
		end->process->progress++;
		break;
	case SPOKEI_VNET_SHUT:
		end->shut = true;
		end->process->progress++;
		break;
	case SPOKEI_VNET_END:
		end->ended = true;
		break;
	case SPOKEI_VNET_CLOSE:
		closed(end);
		break;
	case SPOKEI_VNET_CONNECT:
		end->process->progress++;
		break;
	}
}

static void free_all(struct sim_stream *stream)
{
	while (stream) {
		struct sim_stream *next = stream->next;

		free_bytes(stream);
		free(stream);
		stream = next;
	}
}

void sim_streams_free(struct sim_world *world)
{
	free_all(world->streams);
	free_all(world->past);
}
