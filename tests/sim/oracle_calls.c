/* SPDX-License-Identifier: Apache-2.0 */
/* Checks calls as the caller sees them, and requests as handlers see them. */
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

#include <inttypes.h>
#include <string.h>

#define UNDER_WAY 65536u /* bytes of late answers to earlier calls, in one direction */
#define UNSEEN 4096u     /* bytes that a system may keep without a sign of progress */
#define TICK_NS MS
#define LATE_NS (2 * TICK_NS) /* one tick, and rounding */

static unsigned number_of(const struct sim_world *world, const struct sim_call *call)
{
	return (unsigned)sim_number(world, call);
}

/* Returns the latest end of a call on the clock of its process, which does not count the time while
 * frozen. */
static uint64_t end_of(const struct sim_call *call)
{
	return call->begun_ns + sim_answer_ns(call) + LATE_NS + sim_book_wait_ns(call) +
	       call->by->process.held_ns - call->held_ns;
}

/* Returns by how much bytes of peers that flood may hold back the end of a call: the rest of the
 * turn in which it was made, from whose end its time counts, the rest of the turn in which its
 * deadline lies, and the next turn. Each takes the time of a late turn at most, a round that began
 * before its end, and a read for calls that are due. */
static uint64_t flood_most_ns(const struct sim_call *call)
{
	uint64_t read_ns = call->by->process.world->plan->flood_ns;

	return 3 * (SIM_LATE_NS + 2 * read_ns);
}

static void check_flood(struct sim_world *world, const struct sim_call *call, uint64_t now_ns)
{
	uint64_t flooded_ns = call->by->process.flooded_ns - call->flooded_ns;
	uint64_t most_ns = flood_most_ns(call);

	if (flooded_ns > most_ns && now_ns > end_of(call) - flooded_ns + most_ns)
		sim_violation(world, SIM_S52, "call %u ends %.3f ms after its deadline",
			      number_of(world, call),
			      (double)(now_ns - end_of(call) + flooded_ns) / 1e6);
}

/* --- end of a call */

/* Returns the earliest time at which the call may time out. If the deadline of the ticket is before
 * the timeout of an attempt, it replaces the timeout. */
static uint64_t least_ns(const struct sim_call *call)
{
	uint64_t deadline_ns = call->by->plan->calls.deadline_ns;

	return deadline_ns && deadline_ns < call->timeout_ns ? deadline_ns : call->timeout_ns;
}

static void check_time(struct sim_world *world, const struct sim_call *call, int error)
{
	uint64_t now_ns = sim_now(&call->by->process);
	bool timed_out = error == SPOKE_ETIMEOUT || error == SPOKE_ETIMEOUT_UNSENT;

	if (timed_out && call->worker == NULL && now_ns < call->begun_ns + least_ns(call))
		sim_violation(world, SIM_S3, "call %u timed out %.3f ms before its deadline",
			      number_of(world, call),
			      (double)(call->begun_ns + least_ns(call) - now_ns) / 1e6);
	if (now_ns > end_of(call))
		sim_violation(world, SIM_S3, "call %u ended %.3f ms too late",
			      number_of(world, call), (double)(now_ns - end_of(call)) / 1e6);
	check_flood(world, call, now_ns);
}

/* Returns whether the deadline of the ticket may pass while a connection is made and the answer is
 * on its way, although nothing fails. */
static bool is_too_short(const struct sim_world *world, const struct sim_call *call)
{
	const struct spokei_vnet_link *link = &world->plan->link;
	uint64_t need_ns = 4 * (link->latency_ns + link->jitter_ns) + 2 * LATE_NS;

	if (sim_plan_veils(world->plan)) /* the handshake */
		need_ns += 4 * (link->latency_ns + link->jitter_ns);
	if (link->bytes_per_s)
		need_ns += 2 * SECOND * (world->plan->size_max + UNDER_WAY) / link->bytes_per_s;
	return call->by->plan->calls.policy == SIM_FAILBACK && least_ns(call) < need_ns;
}

/* Returns whether a peer may be taken for silent although nothing fails: its answer to a heartbeat
 * waits in the system behind a few KiB, which show no progress there, for longer than intervals. */
static bool is_too_slow(const struct sim_world *world)
{
	uint64_t bytes_per_s = world->plan->link.bytes_per_s;
	uint64_t shortest_ns = SPOKE_OFF;

	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		uint64_t interval_ns =
			i < SIM_PROVIDERS ? world->plan->providers[i].heartbeat_ns
					  : world->plan->consumers[i - SIM_PROVIDERS].heartbeat_ns;

		if (interval_ns < shortest_ns)
			shortest_ns = interval_ns;
	}
	return bytes_per_s > 0 && UNSEEN * SECOND / bytes_per_s > shortest_ns;
}

/* Returns whether the error is the peer's answer. */
static bool is_answer(int error)
{
	switch (error) {
	case SPOKE_OK:
	case SPOKE_EREMOTE:
	case SPOKE_EREFUSED:
	case SPOKE_ENOSERVICE:
	case SPOKE_EBADREPLY:
	case SPOKE_EBADREQUEST:
	case SPOKE_EEXPIRED:
	case SPOKE_ESERVER:
	case SPOKE_EFORBIDDEN:
		return true;
	default:
		return false;
	}
}

static void check_value(struct sim_world *world, const struct sim_call *call,
			const struct spoke_result *result)
{
	struct spoke_span span = { NULL, 0 };
	uint64_t number = 0;

	/* Without memory for its answer, a call that has run cannot be answered again. */
	if (result->error == SPOKE_EREMOTE && result->error_code == 0 &&
	    sim_plan_has(world->plan, SIM_MEMORY) && sim_may_be_bound(call))
		return;
	if (result->error == SPOKE_EREMOTE)
		number = (uint64_t)result->error_code;
	else if (!spoke_value_bin(result->value, &span) && span.len >= SIM_MARK)
		number = sim_mark_read(span.data);
	if (number != number_of(world, call))
		sim_violation(world, SIM_S4, "call %u got the reply of call %" PRIu64,
			      number_of(world, call), number);
}

/* Returns whether an answer was read to a request that is half written. The id is already on the
 * wire, so altered bytes can match it. */
static bool is_guessed(const struct sim_world *world, const struct sim_call *call)
{
	for (const struct sim_stream *one = world->streams; one; one = one->next)
		if (one->ends[0].process == &call->by->process &&
		    one->ends[0].guessed_ns == world->virt.now_ns)
			return true;
	for (const struct sim_stream *one = world->past; one; one = one->next)
		if (one->ends[0].process == &call->by->process &&
		    one->ends[0].guessed_ns == world->virt.now_ns)
			return true;
	return false;
}

/* Returns whether the result may stand for any error: failsafe returns nil. */
static bool is_excused(const struct sim_call *call, const struct spoke_result *result)
{
	return call->by->plan->calls.policy == SIM_FAILSAFE && result->error == SPOKE_OK &&
	       spoke_value_is_nil(result->value);
}

static void check_answer(struct sim_world *world, const struct sim_call *call,
			 const struct spoke_result *result)
{
	/* A call that waited for a connection ends here with a refusal if the peer drains. */
	if (!is_answer(result->error) || call->one_way ||
	    (result->error == SPOKE_EREFUSED && result->waited_ns == 0) || is_excused(call, result))
		return;
	if (!call->by->plan->mprpc && !call->answered && !is_guessed(world, call))
		sim_violation(world, SIM_S4, "call %u ended by a reply that was not read",
			      number_of(world, call));
	/* MessagePack-RPC does not transmit the error code. */
	if ((result->error == SPOKE_OK ||
	     (result->error == SPOKE_EREMOTE && !call->by->plan->mprpc && !call->fenced)) &&
	    !world->tampered)
		check_value(world, call, result);
}

/* Checks that a late turn reads the socket before it times out calls, unless its callbacks alone
 * have taken as long as it may wait for that. */
static void check_late(struct sim_world *world, const struct sim_call *call, int error)
{
	const struct sim_process *process = &call->by->process;
	const struct sim_end *end = call->stream ? &call->stream->ends[0] : NULL;

	if (error != SPOKE_ETIMEOUT || call->writes != 1 || end == NULL || end->fd < 0 ||
	    end->arrived == end->taken || sim_late_of(process) <= SIM_LATE_NS ||
	    sim_now(process) - world->virt.now_ns >= SIM_LATE_NS)
		return;
	if (end->taken_ns < world->virt.now_ns && end->again_ns < world->virt.now_ns &&
	    end->arrived_ns < world->virt.now_ns)
		sim_violation(world, SIM_S11,
			      "call %u times out in a late turn before its connection was read",
			      number_of(world, call));
}

static enum sim_end_kind kind_of(int error)
{
	switch (error) {
	case SPOKE_OK:
		return SIM_END_OK;
	case SPOKE_ETIMEOUT:
		return SIM_END_TIMEOUT;
	case SPOKE_ETIMEOUT_UNSENT:
		return SIM_END_TIMEOUT_UNSENT;
	case SPOKE_ECANCELED:
		return SIM_END_CANCELED;
	case SPOKE_ECLOSED:
		return SIM_END_CLOSED;
	case SPOKE_EDEFERRED:
		return SIM_END_DEFERRED;
	default:
		break;
	}
	if (spoke_error_is_remote(error))
		return SIM_END_REMOTE;
	return spoke_error_is_transport(error) ? SIM_END_LOST : SIM_END_FAILED;
}

void sim_call_ended(struct sim_call *call, const struct spoke_result *result)
{
	struct sim_world *world = call->by->process.world;

	if (call->by->calling)
		sim_violation(world, SIM_S2, "call %u ends inside spoke_call()",
			      number_of(world, call));
	if (call->by->process.engine == NULL && !call->by->process.ending)
		sim_violation(world, SIM_S18, "call %u ends after its engine was freed",
			      number_of(world, call));
	if (++call->ends > 1)
		sim_violation(world, SIM_S1, "call %u ends twice", number_of(world, call));
	if (call->cancelled && result->error != SPOKE_ECANCELED)
		sim_violation(world, SIM_S1, "call %u was cancelled but ends with: %s",
			      number_of(world, call), spoke_strerror(result->error));
	call->by->waits--;
	call->by->ended[kind_of(result->error)]++;
	/* Failsafe reports other ends so, too. */
	call->succeeded = result->error == SPOKE_OK && call->by->plan->calls.policy != SIM_FAILSAFE;
	if (result->error == SPOKE_OK)
		world->counts.ok++;
	if (result->error == SPOKE_EDEFERRED)
		sim_ticket_opened(call, result);
	if (result->error == SPOKE_ELEASE)
		sim_lease_denied(call);
	if (result->error == SPOKE_EFORBIDDEN)
		sim_access_refused(call);
	check_time(world, call, result->error);
	check_late(world, call, result->error);
	check_answer(world, call, result);
	if (call->wanted && result->error && !is_too_short(world, call) &&
	    !(result->error == SPOKE_ELOST && is_too_slow(world)))
		sim_violation(world, world->pieces ? SIM_L5 : SIM_L1,
			      "call %u after healing ends with: %s", number_of(world, call),
			      spoke_strerror(result->error));
}

void sim_call_died(struct sim_call *call)
{
	struct sim_world *world = call->by->process.world;

	if (++call->ends > 1)
		sim_violation(world, SIM_S1, "call %u ends twice", number_of(world, call));
	call->by->waits--;
}

void sim_calls_check(struct sim_world *world, bool all)
{
	while (world->oldest < world->call_count && world->calls[world->oldest].ends)
		world->oldest++;
	for (uint64_t i = world->oldest; i < world->call_count; i++) {
		const struct sim_call *call = &world->calls[i];

		if (call->ends)
			continue;
		if (all || call->by->process.engine == NULL)
			sim_violation(world, SIM_S1, "call %u never ended", number_of(world, call));
		if (sim_now(&call->by->process) > end_of(call) + TICK_NS)
			sim_violation(world, SIM_S3, "call %u has not ended at its deadline",
				      number_of(world, call));
	}
}

/* --- handlers */

/* Returns the longest time of an attempt. Those of a later process have the timeout of the method.
 */
static uint64_t attempt_ns(const struct sim_call *call)
{
	uint64_t answer_ns = sim_answer_ns(call);

	return call->lives > 0 && answer_ns < call->by->plan->timeout_ns
		       ? call->by->plan->timeout_ns
		       : answer_ns;
}

static void check_deadline(struct sim_provider *provider, const struct sim_call *call,
			   const struct sim_stream *stream, const struct spoke_request *request)
{
	struct sim_world *world = provider->process.world;
	uint64_t left_ns = spoke_request_left(request);
	uint64_t put_ns = call->begun_ns;
	uint64_t most_ns;

	if (left_ns == UINT64_MAX || world->tampered || stream == NULL)
		return;
	if (left_ns == 0)
		sim_violation(world, SIM_S14, "call %u is run after its deadline",
			      number_of(world, call));
	/* The request cannot have been queued on the connection before it was established. A later
	 * attempt may have been queued at any time. */
	if (put_ns < stream->ends[0].first_wrote_ns && !sim_repeats(call))
		put_ns = stream->ends[0].first_wrote_ns;
	most_ns = call->begun_ns + attempt_ns(call) - put_ns + MS +
		  (call->by->process.held_ns - call->held_ns);
	if (left_ns > most_ns)
		sim_violation(world, SIM_S13, "the deadline of call %u grew by %.3f ms",
			      number_of(world, call), (double)(left_ns - most_ns) / 1e6);
}

/* Returns the connection of the request. If the call was written once, it is the one on which it
 * was read. */
static struct sim_stream *stream_of(struct sim_provider *provider, const struct sim_call *call,
				    const struct spoke_request *request)
{
	const struct sim_end *end;
	char peer[64];

	if (call->writes <= 1 && call->lives == 0)
		return call->read;
	(void)spoke_request_peer(request, peer, sizeof(peer));
	end = sim_accepted_end(&provider->process, peer);
	return end ? end->stream : NULL;
}

/* Returns the attempt number in the request's attachments; 0: none. */
static unsigned attempt_of(const struct spoke_request *request)
{
	struct spoke_value map = spoke_request_attachments(request);
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span text;

	if (map.len == 0 || spoke_cursor_map(map, &pairs))
		return 0;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (spoke_value_str(key, &text) || text.len != strlen("spoke.attempt") ||
		    memcmp(text.data, "spoke.attempt", text.len) != 0)
			continue;
		if (spoke_value_str(value, &text) || text.len != 1)
			return 0;
		return (unsigned)(*(const unsigned char *)text.data - '0');
	}
	return 0;
}

struct sim_stream *sim_call_runs(struct sim_provider *provider, struct sim_call *call,
				 const struct spoke_request *request)
{
	struct sim_world *world = provider->process.world;
	const struct sim_provider_plan *plan = provider->plan;
	struct sim_stream *stream = stream_of(provider, call, request);

	sim_note(world, "p% runs call %", provider->process.number, sim_number(world, call), 0, 0);
	if (provider->process.closed)
		sim_violation(world, SIM_S18, "a handler runs after its provider was freed");
	sim_attempt_runs(provider, call);
	sim_ask_runs(call, stream, attempt_of(request));
	sim_repeat_runs(provider, call, request);
	sim_access_runs(provider, call, stream);
	check_deadline(provider, call, stream, request);
	if (stream == NULL)
		return NULL;
	provider->running++;
	stream->running++;
	if (plan->requests_max && provider->running > plan->requests_max)
		sim_violation(world, SIM_S20, "p%u runs %u handlers, more than %u",
			      provider->process.number, provider->running, plan->requests_max);
	if (plan->requests_per_connection_max &&
	    stream->running > plan->requests_per_connection_max)
		sim_violation(world, SIM_S20, "connection %u has %u handlers, more than %u",
			      stream->number, stream->running, plan->requests_per_connection_max);
	return stream;
}

void sim_handler_ended(struct sim_provider *provider, struct sim_stream *stream)
{
	if (stream == NULL)
		return;
	provider->running--;
	stream->running--;
}
