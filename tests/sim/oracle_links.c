/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks heartbeats: a peer is suspected and closed only after enough silence, and always after too
 * much of it. Also checks the order of link events.
 */
#include "tests/sim/oracle.h"

#include <spoke/stats.h>

#include <stdlib.h>
#include <string.h>

#define TICK_NS MS
#define MISSES 3u
#define MUTE 4u                /* intervals until the first bytes must arrive ... */
#define MUTE_NS (240 * SECOND) /* ... or this long, if that is longer */

static uint64_t interval_of(const struct sim_process *process)
{
	return sim_is_provider(process)
		       ? ((const struct sim_provider *)process)->plan->heartbeat_ns
		       : ((const struct sim_consumer *)process)->plan->heartbeat_ns;
}

uint64_t sim_judges_until(const struct sim_process *process)
{
	return interval_of(process) / 2;
}

/* --- the connection of an event */

static struct sim_end *find_accepted(struct sim_stream *streams, const struct sim_process *process,
				     const char *name)
{
	for (struct sim_stream *one = streams; one; one = one->next)
		if (one->ends[1].process == process && strcmp(one->peer, name) == 0)
			return &one->ends[1];
	return NULL;
}

struct sim_end *sim_accepted_end(struct sim_process *process, const char *name)
{
	struct sim_world *world = process->world;
	struct sim_end *end = find_accepted(world->streams, process, name);

	return end ? end : find_accepted(world->past, process, name);
}

/* Returns NULL if nothing was ever connected, or several connections are possible. */
static struct sim_end *end_of(struct sim_process *process, const char *name)
{

	if (!sim_is_provider(process)) {
		unsigned place = (unsigned)strtoul(strrchr(name, ':') + 1, NULL, 10) - SIM_PORT;
		const struct sim_consumer *consumer = (struct sim_consumer *)process;
		struct sim_stream *last = consumer->last[place];

		return last && !consumer->several ? &last->ends[0] : NULL;
	}
	return sim_accepted_end(process, name);
}

/* --- S11 */

/* Returns whether the peer's end is open. An end that was just closed is writable, but the bytes
 * are lost. */
static bool is_peer_open(const struct sim_end *end)
{
	return end->stream->ends[sim_connected(end) ? 1 : 0].fd >= 0;
}

/* Returns when bytes went into the stream or out of it. A heartbeat may wait behind either. */
static uint64_t moved(const struct sim_end *end)
{
	return end->wrote_ns > end->passed_ns ? end->wrote_ns : end->passed_ns;
}

uint64_t sim_late_of(const struct sim_process *process)
{
	const uint64_t now_ns = process->world->virt.now_ns;
	const uint64_t late_ns = now_ns > process->due_ns ? now_ns - process->due_ns : 0;

	return late_ns < process->virt.late_ns ? late_ns : process->virt.late_ns;
}

/*
 * Returns whether a timeout found now would be late. The wake-up time of a process that does not
 * sleep is unknown, so the latest possible one is used: an interval after the last heartbeat, miss,
 * read or write. A late turn that finds the interval over starts it again; its rounds are at one
 * time.
 */
static bool is_late(const struct sim_end *end)
{
	const struct sim_process *process = end->process;
	uint64_t until_ns = sim_judges_until(process);
	uint64_t due_ns = end->asked_ns > end->missed_ns ? end->asked_ns : end->missed_ns;
	uint64_t earlier_ns = process->late_ns < process->world->virt.now_ns
				      ? process->late_ns
				      : process->late_before_ns;

	if (end->asked_ns == 0 && moved(end) > due_ns)
		due_ns = moved(end);
	if (end->asked_ns == 0 && end->read_ns > due_ns)
		due_ns = end->read_ns;
	if (earlier_ns >= due_ns + interval_of(process))
		due_ns = earlier_ns;
	due_ns += interval_of(process);
	return sim_late_of(process) > until_ns && process->world->virt.now_ns > due_ns + until_ns;
}

/* Returns whether bytes were left unread. The virtual network gives a part of what there is, which
 * may be a part of a record: that is no byte of the peer yet. */
static bool left_unread(const struct sim_end *end, uint64_t now_ns)
{
	if (end->arrived == end->taken || end->again_ns == now_ns)
		return false;
	return !end->stream->veiled || end->taken_ns != now_ns;
}

/* Checks a missed heartbeat: this side must have read everything and sent a heartbeat an interval
 * ago. */
static void check_miss(const struct sim_end *end)
{
	struct sim_process *process = end->process;
	struct sim_world *world = process->world;
	uint64_t interval_ns = interval_of(process);
	uint64_t now_ns = world->virt.now_ns;
	uint64_t moved_ns = end->since_ns;

	if (left_unread(end, now_ns))
		sim_violation(
			world, SIM_S11,
			"process %u counts a miss of connection %u before it has read everything",
			process->number, end->stream->number);
	if (is_late(end))
		sim_violation(world, SIM_S11,
			      "process %u counts a miss of connection %u in a late turn",
			      process->number, end->stream->number);
	if (end->asked_ns) {
		if (now_ns - end->asked_ns < interval_ns) {
			sim_violation(world, SIM_S11,
				      "process %u counts a miss of connection %u %.3f ms after its "
				      "heartbeat",
				      process->number, end->stream->number,
				      (double)(now_ns - end->asked_ns) / 1e6);
		}
		return;
	}
	/* No heartbeat was sent: then the connection must not be writable, and nothing may have
	 * moved. The descriptor of a ring tells nothing of its room. */
	if (end->sent.have == 0 && !world->plan->shares && end->again_ns + interval_ns < now_ns &&
	    process->virt.held_until_ns < now_ns && is_peer_open(end) &&
	    spokei_vnet_ready(world->virt.net, end->fd) & SPOKE_IO_WRITE)
		sim_violation(world, SIM_S11,
			      "process %u counts a miss of connection %u although it could have "
			      "sent a heartbeat",
			      process->number, end->stream->number);
	if (end->read_ns > moved_ns)
		moved_ns = end->read_ns;
	if (moved(end) > moved_ns)
		moved_ns = moved(end);
	if (now_ns - moved_ns < interval_ns)
		sim_violation(world, SIM_S11,
			      "process %u counts a miss of connection %u without a heartbeat",
			      process->number, end->stream->number);
}

static void suspect(struct sim_end *end, unsigned missed)
{
	struct sim_world *world = end->stream->world;

	world->counts.suspects++;
	check_miss(end);
	if (missed != end->misses + 1)
		sim_violation(world, SIM_S11, "miss %u of connection %u after %u", missed,
			      end->stream->number, end->misses);
	end->misses = missed;
	end->missed_ns = world->virt.now_ns;
	end->asked_ns = 0; /* the next miss requires another heartbeat */
}

static void closed_for_silence(const struct sim_end *end)
{
	struct sim_process *process = end->process;
	struct sim_world *world = process->world;
	uint64_t interval_ns = interval_of(process);

	world->counts.closed_silent++;
	if (end->told && end->misses != MISSES)
		sim_violation(world, SIM_S11, "connection %u is closed for silence after %u misses",
			      end->stream->number, end->misses);
	if (!end->told && (world->virt.now_ns - end->since_ns < MUTE * interval_ns ||
			   world->virt.now_ns - end->since_ns < MUTE_NS))
		sim_violation(world, SIM_S11,
			      "connection %u is closed after only %.3f ms of silence",
			      end->stream->number,
			      (double)(world->virt.now_ns - end->since_ns) / 1e6);
	if (left_unread(end, world->virt.now_ns))
		sim_violation(world, SIM_S11,
			      "connection %u is closed for silence before it was read",
			      end->stream->number);
}

/* --- S24: order of events */

static void check_order(const struct sim_end *end, const struct spoke_link_event *event)
{
	struct sim_world *world = end->stream->world;
	bool begins = event->change == SPOKE_LINK_CONNECTED ||
		      event->change == SPOKE_LINK_PROBATION;
	const char *wrong = NULL;

	if (end->told_closed && event->change != SPOKE_LINK_RECONNECTING)
		wrong = "after its end";
	else if (begins && end->told)
		wrong = "twice";
	else if (!begins && !end->told && event->change != SPOKE_LINK_CLOSED &&
		 event->change != SPOKE_LINK_RECONNECTING)
		wrong = "before it was established";
	else if (event->change == SPOKE_LINK_RECONNECTING && end->fd >= 0)
		wrong = "while it is open";
	else if (event->change == SPOKE_LINK_RECOVERED && !end->suspected && !end->on_probation &&
		 !end->read_only)
		wrong = "without a reason";
	if (wrong)
		sim_violation(world, SIM_S24, "process %u: connection %u %s gets the event %s",
			      end->process->number, end->stream->number,
			      spoke_link_change_name(event->change), wrong);
}

/* Clears all doubts about the connection. */
static void recover(struct sim_end *end)
{
	end->suspected = false;
	end->on_probation = false;
	end->read_only = false;
	end->well_ns = sim_now(end->process);
}

/* --- L1: the backoff restarts after a peer that worked, except for one that drains */

static void check_attempt(struct sim_end *end, const struct spoke_link_event *event)
{
	const struct sim_stream *stream = end->stream;

	if (end->pauses++ == 0 && stream->dubbo && !stream->tampered && end->seen.frame_len > 0 &&
	    !end->read_only && event->attempt != 1 && event->error != SPOKE_ENOMEM)
		sim_violation(
			stream->world, SIM_L1,
			"process %u: connection %u worked, but the next one counts as attempt %u",
			end->process->number, stream->number, event->attempt);
}

/* --- S39 */

/* Checks that silence is not forgotten before the next connection. The connector of an endpoint
 * that was listed again is new and knows nothing. */
static void check_probation(struct sim_end *end, const struct spoke_link_event *event)
{
	struct sim_consumer *consumer = (struct sim_consumer *)end->process;
	const struct sim_stream *stream = end->stream;
	bool *was_silent;

	if (!sim_connected(end) || !stream->dubbo || consumer->plan->registry)
		return;
	was_silent = &consumer->was_silent[stream->place];
	if (*was_silent && event->change == SPOKE_LINK_CONNECTED)
		sim_violation(stream->world, SIM_S39,
			      "process %u: connection %u follows a silent one and is not on "
			      "probation",
			      end->process->number, stream->number);
	*was_silent = event->change == SPOKE_LINK_CLOSED && event->error == SPOKE_ESILENT;
}

void sim_link_changed(struct sim_process *process, const struct spoke_link_event *event)
{
	struct sim_world *world = process->world;
	struct sim_end *end = end_of(process, event->name);

	process->progress++;
	sim_note(world, "process % gets the event %l of connection %, missed %", process->number,
		 (uint64_t)event->change, end ? end->stream->number : 0, event->missed);
	if (process->closed)
		sim_violation(world, SIM_S18,
			      "process %u gets an event of a connection after its end",
			      process->number);
	if (end == NULL)
		return;
	check_order(end, event);
	if (event->change != SPOKE_LINK_RECONNECTING)
		check_probation(end, event);
	switch (event->change) {
	case SPOKE_LINK_PROBATION:
	case SPOKE_LINK_CONNECTED:
		end->told = true;
		end->stood_ns = sim_now(process);
		end->silent = sim_excuse_now(end);
		end->on_probation = event->change == SPOKE_LINK_PROBATION;
		break;
	case SPOKE_LINK_SUSPECT:
		suspect(end, event->missed);
		end->suspected = true;
		break;
	case SPOKE_LINK_READONLY:
		end->read_only = true;
		sim_ask_readonly(end);
		break;
	case SPOKE_LINK_RECOVERED:
		recover(end);
		/* A later notice of the same read is noted when its event comes. */
		end->aside = 0;
		break;
	case SPOKE_LINK_CLOSED:
		if (event->error == SPOKE_ESILENT)
			closed_for_silence(end);
		end->told_closed = true;
		break;
	case SPOKE_LINK_RECONNECTING:
		check_attempt(end, event);
		break;
	}
}

/* --- L2 */

/* Returns the number of sleeps of the machine that the process has noticed. It looks for them from
 * time to time only, so bytes may arrive between a sleep and its notice. More sleeps than there
 * were do not count. */
static uint64_t noticed(const struct sim_process *process)
{
	uint64_t count = process->engine ? spoke_stat_get(process->engine, SPOKE_STAT_SLEEPS) : 0;

	return count < process->world->sleeps ? count : process->world->sleeps;
}

struct sim_excuse sim_excuse_now(const struct sim_end *end)
{
	const struct sim_process *process = end->process;
	uint64_t held_ns = process->held_ns;

	/* A freeze is counted when it begins: its rest is still to come. */
	if (process->virt.held_until_ns > process->world->virt.now_ns)
		held_ns -= process->virt.held_until_ns - process->world->virt.now_ns;
	return (struct sim_excuse){ process->late_turns, held_ns, noticed(process) };
}

/* Returns the time by which silence may last longer: the time while frozen, and an interval for
 * each late turn and each sleep, which restart the interval. */
static uint64_t excused_ns(const struct sim_end *end, const struct sim_excuse *since)
{
	struct sim_excuse now = sim_excuse_now(end);
	uint64_t anew = now.late_turns - since->late_turns + now.sleeps - since->sleeps;

	return anew * (interval_of(end->process) + TICK_NS) + now.held_ns - since->held_ns;
}

/* The misses of a heartbeat count from this time of the process on. */
static void count_from(struct sim_end *end, uint64_t ns)
{
	uint64_t interval_ns = interval_of(end->process);
	uint64_t until_ns;

	if (interval_ns == SPOKE_OFF || end->misses >= MISSES)
		return;
	until_ns = ns + (MISSES - end->misses) * (interval_ns + TICK_NS);
	if (end->patience_ns >= until_ns)
		return;
	end->patience_ns = until_ns;
	end->asked = sim_excuse_now(end);
}

void sim_link_asked(struct sim_end *end)
{
	struct sim_world *world = end->stream->world;

	end->asked_ns = world->virt.now_ns;
	sim_note(world, "process % sends a heartbeat on connection %", end->process->number,
		 end->stream->number, 0, 0);
	count_from(end, sim_now(end->process));
}

void sim_link_moved(struct sim_end *end)
{
	if (end->stream->clogged && end->asked_ns > 0)
		count_from(end, sim_now(end->process));
}

void sim_link_taken(struct sim_end *end)
{
	if (end->process && end->process->engine && end->asked_ns > 0)
		count_from(end, sim_now(end->process) + interval_of(end->process) + TICK_NS);
}

/* Checks that a silent peer is noticed within four intervals, a tick each, and the excused time. */
static void check_noticed(const struct sim_end *end)
{
	const struct sim_process *process = end->process;
	struct sim_world *world = process->world;
	uint64_t interval_ns = interval_of(process);
	uint64_t last_ns = end->arrived_ns > end->stood_ns ? end->arrived_ns : end->stood_ns;
	uint64_t bound_ns = (MISSES + 1) * (interval_ns + TICK_NS) + TICK_NS +
			    excused_ns(end, &end->silent);

	/* Without memory the heartbeat is sent an interval later. */
	if (sim_plan_has(world->plan, SIM_MEMORY))
		bound_ns += interval_ns;
	/* A heartbeat that is half written counts from its last byte. */
	if (end->sent.have > 0)
		bound_ns += interval_ns;
	/* Writes count as life of the peer until a heartbeat is sent. */
	if ((end->asked_ns == 0 || end->sent.have > 0) && moved(end) > last_ns)
		last_ns = moved(end);
	if (end->read_ns > last_ns)
		last_ns = end->read_ns;
	if (world->virt.now_ns > last_ns + bound_ns &&
	    world->virt.now_ns > end->patience_ns + excused_ns(end, &end->asked) &&
	    !sim_books_deaf(end))
		sim_violation(world, SIM_L2,
			      "process %u: connection %u has been silent for %.3f ms",
			      process->number, end->stream->number,
			      (double)(world->virt.now_ns - last_ns) / 1e6);
}

void sim_links_check(struct sim_world *world)
{
	for (const struct sim_stream *one = world->streams; one; one = one->next) {
		for (unsigned i = 0; i < 2 && one->dubbo && !one->over; i++) {
			const struct sim_end *end = &one->ends[i];

			if (end->fd < 0 || !end->told || end->told_closed || end->ended ||
			    end->shut || interval_of(end->process) == SPOKE_OFF ||
			    end->arrived > end->taken ||
			    end->process->virt.held_until_ns > world->virt.now_ns ||
			    end->process->engine == NULL)
				continue;
			check_noticed(end);
		}
	}
}
