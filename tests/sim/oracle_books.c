/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the product's own counters and lists with sums over all objects, and with its limits. At
 * the end all of them must be zero.
 */
#include "tests/sim/journals.h"
#include "tests/support/balance.h"
#include "transport/conn/conn.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/retry.h"
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "core/engine/engine.h"
#include "core/memory/slab.h"
#include "transport/conn/link.h"
#include "transport/conn/serving.h"

#include <spoke/link.h>

#define WHEEL_EVERY 1024u /* turns */
#define MIB ((size_t)1 << 20)

static struct spokei_link *link_of(struct sim_process *process)
{
	if (sim_is_provider(process)) {
		struct spoke_provider *provider = ((struct sim_provider *)process)->provider;

		return provider ? provider->link : NULL;
	}
	return ((struct sim_consumer *)process)->consumer
		       ? ((struct sim_consumer *)process)->consumer->link
		       : NULL;
}

/* Returns the link of the calls that a provider makes, or NULL. */
static struct spokei_link *relay_of(const struct sim_process *process)
{
	const struct sim_provider *provider = (const struct sim_provider *)process;

	return sim_is_provider(process) && provider->relay.consumer ? provider->relay.consumer->link
								    : NULL;
}

struct sim_end *sim_end_at(struct sim_process *process, int fd)
{
	struct sim_world *world = process->world;

	for (struct sim_stream *one = world->streams; one; one = one->next) {
		for (unsigned i = 0; i < 2 && !one->over; i++)
			if (one->ends[i].process == process && one->ends[i].fd == fd)
				return &one->ends[i];
	}
	return NULL;
}

/* --- one connection */

static void check_state(struct sim_process *process, const struct spokei_conn *conn)
{
	struct sim_world *world = process->world;
	struct sim_end *end;

	if (conn->state == SPOKEI_CONN_CLOSED)
		sim_violation(world, SIM_S24, "process %u keeps a connection that is closed",
			      process->number);
	if (conn->stream.watch.fd < 0)
		return; /* it is not connected yet */
	end = sim_end_at(process, conn->stream.watch.fd);
	if (end == NULL)
		return;
	if ((uint8_t)conn->state < end->state)
		sim_violation(world, SIM_S24, "connection %u goes from state %u back to %u",
			      end->stream->number, end->state, conn->state);
	if (conn->state == SPOKEI_CONN_CONNECTING)
		sim_violation(world, SIM_S24, "connection %u has a descriptor and still connects",
			      end->stream->number);
	if (conn->state == SPOKEI_CONN_OPEN && end->shut)
		sim_violation(world, SIM_S24,
			      "connection %u is open although its sending side is shut",
			      end->stream->number);
	if (conn->state == SPOKEI_CONN_OPEN && spokei_conn_ended(conn))
		sim_violation(world, SIM_S24, "connection %u is open although its peer has ended",
			      end->stream->number);
	end->state = (uint8_t)conn->state;
}

/* Bytes in shared memory may have been taken by the peer since this side has looked. A pause that
 * does not end leaves calls without an answer. */
static void check_pause(struct sim_process *process, const struct spokei_conn *conn)
{
	size_t low = spokei_link_low(conn->link, conn->unproven);

	if (conn->stream.kind->queues)
		return;
	if (conn->paused && conn->resume.node.next == NULL && conn->state == SPOKEI_CONN_OPEN &&
	    !spokei_conn_unwritable(conn) && spokei_outlet_len(&conn->out) <= low)
		sim_violation(process->world, SIM_S10,
			      "process %u does not read a connection although nothing is queued",
			      process->number);
}

bool sim_books_deaf(const struct sim_end *end)
{
	struct spokei_link *link = end->stream->inner && sim_connected(end) ? relay_of(end->process)
									    : link_of(end->process);

	if (link == NULL)
		return false;
	for (struct spoke_list *at = link->conns.next; at != &link->conns; at = at->next) {
		const struct spokei_conn *conn = spoke_container_of(at, struct spokei_conn, node);

		if (conn->stream.watch.fd == end->fd)
			return conn->paused || conn->output == SPOKEI_OUTPUT_SHUT ||
			       conn->state == SPOKEI_CONN_OPENING;
	}
	return false;
}

/* Checks that nothing is read from a connection whose output is at its limit. Only providers have
 * this limit. Heartbeats have a queue of their own, which does not count. */
void sim_books_read(struct sim_end *end)
{
	struct spokei_link *link = link_of(end->process);

	if (link == NULL || !sim_is_provider(end->process))
		return;
	for (struct spoke_list *at = link->conns.next; at != &link->conns; at = at->next) {
		const struct spokei_conn *conn = spoke_container_of(at, struct spokei_conn, node);

		/* Notices are no replies: they begin no pause. */
		size_t notices = 64 + (SIM_HEAD + 2) * ((struct sim_provider *)end->process)->steps;

		if (conn->stream.watch.fd == end->fd &&
		    spokei_buffer_len(&conn->out.out) >= link->limits.out_high + notices)
			sim_violation(end->process->world, SIM_S10,
				      "connection %u is read while %zu bytes are queued",
				      end->stream->number, spokei_buffer_len(&conn->out.out));
	}
}

/* --- sums over a process */

struct sums {
	size_t queued;
	size_t held;
	uint32_t serving;
	uint32_t conns;
};

static struct sums add_up(struct sim_process *process, const struct spokei_link *link)
{
	struct sums sums = { 0 };

	for (struct spoke_list *at = link->conns.next; at != &link->conns; at = at->next) {
		struct spokei_conn *conn = spoke_container_of(at, struct spokei_conn, node);

		sums.queued += spokei_outlet_len(&conn->out) + conn->unsent_requests;
		sums.held += conn->read_held;
		for (struct spoke_list *serving = conn->servings.next; serving != &conn->servings;
		     serving = serving->next)
			sums.serving += !spoke_container_of(serving, struct spokei_serving, node)
						 ->cancelled;
		sums.conns++;
		if (spokei_outlet_len(&conn->out) > link->limits.out_max)
			sim_violation(process->world, SIM_S9, "process %u: %zu bytes are queued",
				      process->number, spokei_outlet_len(&conn->out));
		check_state(process, conn);
		check_pause(process, conn);
	}
	return sums;
}

/* Returns whether connections that were closed in this turn may wait for their end in the next one:
 * closed by another task, by a handshake at the end, or by a write into a ring. Until then their
 * requests count, and the tokens that they show. */
static bool may_free(const struct sim_process *process)
{
	return !spokei_list_empty(&process->engine->completions);
}

static void check_link(struct sim_process *process, const struct spokei_link *link)
{
	struct sim_world *world = process->world;
	struct sums sums = add_up(process, link);

	if (may_free(process))
		sums.serving = link->serving_count;
	if (sums.queued != link->queued || sums.held != link->held) {
		sim_violation(
			world, SIM_S9,
			"process %u: %zu bytes are queued and %zu held, but it reports %zu and "
			"%zu",
			process->number, sums.queued, sums.held, link->queued, link->held);
	}
	if (link->queued > link->limits.queued_max || link->held > link->limits.held_max)
		sim_violation(world, SIM_S9, "process %u holds more bytes than its limit",
			      process->number);
	if (sums.serving != link->serving_count)
		sim_violation(world, SIM_S9, "process %u reports %u requests, but serves %u",
			      process->number, link->serving_count, sums.serving);
	if (sums.conns != link->conn_count)
		sim_violation(world, SIM_S9, "process %u reports %u connections, but has %u",
			      process->number, link->conn_count, sums.conns);
	if (link->pending_count > link->limits.pending_max)
		sim_violation(world, SIM_S9, "process %u has %u calls waiting", process->number,
			      link->pending_count);
}

/* Compares the numbers of calls and of open attempts with the product's counters. */
static void check_calls(const struct sim_consumer *consumer)
{
	struct sim_world *world = consumer->process.world;
	const struct spokei_slab *calls = &consumer->consumer->caller->calls;
	uint32_t under_way = 0;
	uint32_t tickets = consumer->ticket_count + sim_book_restored(consumer);
	uint32_t waiting;

	if (calls->count != consumer->waits + tickets)
		sim_violation(world, SIM_S9,
			      "consumer %u reports %u calls, but there are %u and %u tickets",
			      consumer->process.number, (unsigned)calls->count, consumer->waits,
			      tickets);
	for (uint32_t i = 0; i < calls->used; i++) {
		const struct spokei_call *call = spokei_slab_at(calls, i);

		if (spokei_slab_get(calls, call->handle) != call)
			continue;
		under_way += call->retry && call->retry->state != SPOKEI_CALL_FIRST
				     ? call->retry->open
				     : 1;
	}
	waiting = consumer->consumer->link->pending_count;
	if (waiting < under_way || (waiting > under_way && !may_free(&consumer->process)))
		sim_violation(world, SIM_S9, "consumer %u reports %u waiting attempts, but %u wait",
			      consumer->process.number, waiting, under_way);
}

static uint64_t armed_of(const struct sim_process *process, unsigned timer_class)
{
	struct spoke_wheel_counts counts;

	if (spoke_wheel_class_counts(process->engine->wheel, timer_class, &counts, NULL))
		return 0;
	return counts.pending;
}

/* --- counters of the engine */

static void check_stat(const struct sim_consumer *consumer, enum spoke_stat stat, uint64_t seen)
{
	uint64_t said = spoke_stat_get(consumer->process.engine, stat);

	if (said != seen) {
		sim_violation(consumer->process.world, SIM_S27,
			      "consumer %u counts %llu as %s, but there were %llu",
			      consumer->process.number, (unsigned long long)said,
			      spoke_stat_name(stat), (unsigned long long)seen);
	}
}

void sim_books_counts(const struct sim_consumer *consumer)
{
	static const enum spoke_stat ends[SIM_ENDS] = {
		[SIM_END_OK] = SPOKE_STAT_CALLS_OK,
		[SIM_END_REMOTE] = SPOKE_STAT_CALLS_REMOTE,
		[SIM_END_TIMEOUT_UNSENT] = SPOKE_STAT_CALLS_TIMEOUT_UNSENT,
		[SIM_END_TIMEOUT] = SPOKE_STAT_CALLS_TIMEOUT,
		[SIM_END_LOST] = SPOKE_STAT_CALLS_LOST,
		[SIM_END_CANCELED] = SPOKE_STAT_CALLS_CANCELED,
		[SIM_END_CLOSED] = SPOKE_STAT_CALLS_CLOSED,
		[SIM_END_FAILED] = SPOKE_STAT_CALLS_FAILED,
		[SIM_END_DEFERRED] = SPOKE_STAT_CALLS_DEFERRED,
	};

	if (consumer->process.engine == NULL)
		return;
	check_stat(consumer, SPOKE_STAT_CALLS, consumer->made);
	for (unsigned i = 0; i < SIM_ENDS; i++)
		check_stat(consumer, ends[i], consumer->ended[i]);
	for (unsigned i = 0; i < SIM_SETTLEMENTS; i++)
		check_stat(consumer,
			   i < SPOKE_TICKET_UNKNOWN
				   ? (enum spoke_stat)(SPOKE_STAT_TICKETS_SUCCESS + i)
				   : (enum spoke_stat)(SPOKE_STAT_TICKETS_UNKNOWN + i -
						       SPOKE_TICKET_UNKNOWN),
			   consumer->settled[i]);
	for (unsigned i = 0; i < SIM_LEASE_COUNTS; i++)
		check_stat(consumer, (enum spoke_stat)(SPOKE_STAT_LEASES_ASKED + i),
			   consumer->leases_seen[i]);
}

/* Returns how many connections have shown a token by a request of its own, which may still wait. */
static uint32_t connections_that_showed(struct spokei_link *link)
{
	uint32_t count = 0;

	for (struct spoke_list *at = link->conns.next; at != &link->conns; at = at->next)
		count += spoke_container_of(at, struct spokei_conn, node)->showed != 0;
	return count;
}

/* Returns how many timers of connections are armed. */
static uint64_t armed_conns(const struct spokei_link *link)
{
	uint64_t armed = 0;

	for (struct spoke_list *at = link->conns.next; at != &link->conns; at = at->next) {
		const struct spokei_conn *conn = spoke_container_of(at, struct spokei_conn, node);

		armed += spoke_timer_armed(&conn->timer);
	}
	return armed;
}

/* Checks that each armed timer belongs to an existing connection or call. */
void sim_books_timers(struct sim_process *process)
{
	struct spokei_link *link = process->engine ? link_of(process) : NULL;
	const struct spokei_link *relay = relay_of(process);
	uint64_t armed;
	uint64_t pending;

	if (link == NULL)
		return;
	armed = armed_conns(link) + (relay ? armed_conns(relay) : 0);
	pending = link->pending_count + connections_that_showed(link) +
		  (relay ? relay->pending_count : 0);
	if (armed_of(process, link->conn_class) != armed)
		sim_violation(process->world, SIM_S18,
			      "process %u: the timer of a closed connection is armed",
			      process->number);
	if (armed_of(process, link->pending_class) > pending && !may_free(process))
		sim_violation(process->world, SIM_S18,
			      "process %u: the timer of a finished call is armed", process->number);
}

/* Returns the most memory that a process may use with its settings. */
static size_t budget_of(const struct sim_process *process)
{
	const struct sim_plan *plan = process->world->plan;
	size_t each = plan->size_max + plan->large + 2048;

	if (plan->bytes_max && !sim_is_provider(process))
		return plan->bytes_max;
	return 24 * MIB + each * 4096;
}

static void check_consumer(const struct sim_consumer *consumer)
{
	struct sim_counts *counts = &consumer->process.world->counts;

	if (counts->bytes_most < consumer->process.virt.bytes)
		counts->bytes_most = consumer->process.virt.bytes;
	sim_books_counts(consumer);
	if (consumer->consumer)
		check_calls(consumer);
}

/* Returns what is wrong with the counters of the engine, or NULL. */
static const char *balance_of(const struct sim_process *process, const struct spokei_link *link,
			      char text[BALANCE_TEXT])
{
	unsigned calls = sim_is_provider(process)
				 ? ((const struct sim_provider *)process)->relay.waits
				 : ((const struct sim_consumer *)process)->waits;

	return balance_wrong(process->engine, calls, link ? link->serving_count : 0, text);
}

void sim_books_check(struct sim_process *process)
{
	struct sim_world *world = process->world;
	const struct spokei_link *link = link_of(process);
	const char *wrong;
	char text[BALANCE_TEXT];

	if (process->engine == NULL)
		return;
	if (link)
		check_link(process, link);
	if (!sim_is_provider(process))
		check_consumer((struct sim_consumer *)process);
	/* The requests of a provider that was freed end with its connections. */
	wrong = link == NULL && may_free(process) ? NULL : balance_of(process, link, text);
	if (wrong)
		sim_violation(world, SIM_S27, "process %u: %s", process->number, wrong);
	wrong = process->turns % WHEEL_EVERY == 0 ? spoke_wheel_check(process->engine->wheel)
						  : NULL;
	if (wrong)
		sim_violation(world, SIM_S18, "process %u: the wheel's invariants do not hold: %s",
			      process->number, wrong);
	if (process->virt.bytes > budget_of(process))
		sim_violation(world, SIM_S9, "process %u uses %llu bytes of memory",
			      process->number, (unsigned long long)process->virt.bytes);
}

void sim_books_end(struct sim_process *process)
{
	if (process->virt.blocks || process->virt.bytes)
		sim_violation(process->world, SIM_S18, "process %u leaks %llu blocks of memory",
			      process->number, (unsigned long long)process->virt.blocks);
	if (process->virt.user.fds)
		sim_violation(process->world, SIM_S18, "process %u leaks %u descriptors",
			      process->number, process->virt.user.fds);
}
