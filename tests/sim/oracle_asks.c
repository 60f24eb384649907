/* SPDX-License-Identifier: Apache-2.0 */
/* Checks requests and answers of each connection by their ids. */
#include "core/engine/engine.h"
#include "tests/sim/store.h"

#include <stdlib.h>
#include <string.h>

#define BELOW 64u       /* ids below the first expected one: those of calls that waited before it */
#define ASIDES_MAX 100u /* in a minute; more are not believed */
#define JUMP 1000000u   /* a larger step is an invalid id */

enum {
	STATUS_OK = 20,
	STATUS_EXPIRED = 31,
	STATUS_BAD_REQUEST = 40,
	STATUS_NO_SERVICE = 60,
	STATUS_REFUSED = 100,
};

/* --- table of the requests of a connection */

static struct sim_ask *find(const struct sim_stream *stream, uint64_t id)
{
	uint64_t at = id - stream->id_base;

	return at < stream->ask_count ? &stream->asks[at] : NULL;
}

/* Extends the table to `count` entries, plus `below` new ones in front. */
static void grow(struct sim_stream *stream, uint64_t count, uint64_t below)
{
	uint32_t old = stream->ask_count;

	if (count + below > stream->ask_room) {
		stream->ask_room = (uint32_t)(2 * (count + below));
		stream->asks = realloc(stream->asks, stream->ask_room * sizeof(*stream->asks));
		if (stream->asks == NULL)
			abort();
	}
	if (below > 0)
		memmove(stream->asks + below, stream->asks, old * sizeof(*stream->asks));
	memset(stream->asks, 0, (size_t)below * sizeof(*stream->asks));
	memset(stream->asks + old + below, 0, (size_t)(count - old) * sizeof(*stream->asks));
	stream->ask_count = (uint32_t)(count + below);
}

/* Returns the entry of an id that is being written; adds the entry if it is missing. */
static struct sim_ask *place(struct sim_stream *stream, uint64_t id)
{
	uint64_t at;

	if (stream->ask_count == 0)
		stream->id_base = id;
	at = id - stream->id_base;
	if (at > UINT64_MAX - JUMP) {
		uint64_t below = 0 - at + BELOW;

		grow(stream, stream->ask_count, below);
		stream->id_base -= below;
		at += below;
	}
	if (at > JUMP)
		sim_violation(stream->world, SIM_S5, "connection %u: a request id out of order",
			      stream->number);
	if (at >= stream->ask_count)
		grow(stream, at + 1, 0);
	return &stream->asks[at];
}

static struct sim_call *call_of(struct sim_world *world, uint64_t number)
{
	return number > 0 && number <= world->call_count ? &world->calls[number - 1] : NULL;
}

/* --- frames written */

static void request_sent(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_stream *stream = end->stream;
	struct sim_world *world = stream->world;
	struct sim_ask *ask = place(stream, frame->id);
	struct sim_call *call = call_of(world, frame->number);

	if (ask->written)
		sim_violation(world, SIM_S5, "connection %u: a request id is used twice",
			      stream->number);
	*ask = (struct sim_ask){ .number = (uint32_t)frame->number,
				 .attempt = (uint8_t)frame->attempt,
				 .repeat = frame->repeat,
				 .written = true,
				 .two_way = frame->two_way };
	if (call == NULL) {
		sim_inner_written(end, frame);
		return;
	}
	sim_note(world, "call % is written on connection %", frame->number, stream->number, 0, 0);
	/* Flipped bits may have hidden the drain notice from the product. */
	if (end->readonly && call->order > end->readonly && !stream->tampered)
		sim_violation(world, SIM_S19,
			      "call %u is written on connection %u after READONLY was read",
			      (unsigned)frame->number, stream->number);
	/* A peer that steps aside and comes back without end is not believed any more. A repeat has
	 * one place only. */
	if (end->aside && !frame->repeat && end->asides < ASIDES_MAX && call->order > end->aside &&
	    !stream->tampered) {
		sim_violation(world, SIM_S54,
			      "call %u is written on connection %u, whose provider has stepped "
			      "aside",
			      (unsigned)frame->number, stream->number);
	}
	sim_lease_written(call, end->frame_order, end->frame_ns == sim_now(end->process));
	sim_attempt_written(call, stream, frame);
}

static void keep_reply(struct sim_end *end)
{
	struct sim_stream *stream = end->stream;

	if (end->sent.frame_len > SIM_KEPT)
		return;
	stream->last_len = (size_t)end->sent.frame_len;
	memcpy(stream->last_reply, end->sent.kept, stream->last_len);
}

/* Notes whether a request ran, as its answer tells. Attempts of a call may be equal on the wire, so
 * that an equal request without an answer may be the one that ran; or one with an answer, which was
 * taken for that to a repeat. */
static void exchange_run(const struct sim_stream *stream, struct sim_ask *ask, bool ran)
{
	for (uint32_t i = 0; i < stream->ask_count && ask->ran != ran; i++) {
		struct sim_ask *equal = &stream->asks[i];

		if (equal == ask || equal->number != ask->number ||
		    equal->attempt != ask->attempt || !equal->read || equal->ran != ran ||
		    (equal->answered && (ran || equal->refused)))
			continue;
		equal->ran = ask->ran;
		ask->ran = ran;
	}
}

static void reply_sent(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_stream *stream = end->stream;
	struct sim_world *world = stream->world;
	struct sim_ask *ask = find(stream, frame->id);
	struct sim_call *call = ask ? call_of(world, ask->number) : NULL;

	keep_reply(end);
	if (call && !ask->ran)
		call->fenced |= sim_lease_fenced((struct sim_provider *)end->process, call) ||
				ask->barred || sim_access_may_refuse(call);
	if (stream->tampered)
		return;
	if (ask == NULL || !ask->read)
		sim_violation(world, SIM_S4,
			      "connection %u: a reply to a request that was never sent",
			      stream->number);
	if (ask->answered)
		sim_violation(world, SIM_S23, "connection %u: call %u is answered twice",
			      stream->number, ask->number);
	ask->answered = true;
	ask->refused = frame->status == STATUS_REFUSED || frame->status == STATUS_NO_SERVICE ||
		       frame->status == STATUS_EXPIRED || frame->status == STATUS_BAD_REQUEST;
	if (call && !ask->ran &&
	    sim_repeat_answered((struct sim_provider *)end->process, call, ask, frame))
		return;
	if (call && ask->ran == ask->refused)
		exchange_run(stream, ask, !ask->refused);
	if (call && ask->refused && ask->ran)
		sim_violation(world, SIM_S19, "call %u was both run and refused", ask->number);
	if (call && !ask->refused && !ask->ran && !call->fenced)
		sim_violation(world, SIM_S19,
			      "call %u is answered with status %d but was never run", ask->number,
			      (int)frame->status);
}

/* Returns what is wrong with the cancel of a request, or NULL. A call that may have several
 * attempts may give up one of them. */
static const char *wrong_cancel(const struct sim_ask *ask, const struct sim_call *call)
{
	if (ask == NULL || !ask->written || !ask->two_way)
		return "waits for no reply";
	if (ask->given_up)
		return "was cancelled before";
	if (call == NULL || call->writes != 1 || sim_repeats(call) ||
	    call->by->plan->calls.policy == SIM_FORKING ||
	    call->by->plan->calls.policy == SIM_BROADCAST)
		return NULL;
	if (call->ends == 0)
		return "is still waited for";
	return ask->heard && call->succeeded ? "was answered" : NULL;
}

static void cancel_sent(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_stream *stream = end->stream;
	struct sim_ask *ask = find(stream, frame->id);
	const struct sim_call *call = ask ? call_of(stream->world, ask->number) : NULL;
	const char *wrong = wrong_cancel(ask, call);

	if (stream->tampered)
		return;
	if (wrong)
		sim_violation(stream->world, SIM_S53,
			      "connection %u: a request is cancelled that %s (call %u)",
			      stream->number, wrong, ask ? ask->number : 0);
	ask->given_up = true;
}

void sim_ask_sent(struct sim_end *end, const struct sim_frame *frame)
{
	switch (frame->kind) {
	case SIM_REQUEST:
		request_sent(end, frame);
		break;
	case SIM_REPLY:
		reply_sent(end, frame);
		break;
	case SIM_PROBE:
		if (sim_connected(end))
			request_sent(end, frame);
		sim_link_asked(end);
		break;
	case SIM_READONLY:
		sim_note(end->stream->world, "p% writes the drain notice on connection %",
			 end->process->number, end->stream->number, 0, 0);
		end->announced = true;
		break;
	case SIM_CANCEL:
		if (sim_connected(end))
			cancel_sent(end, frame);
		break;
	case SIM_ASIDE:
	case SIM_BACK:
		sim_note(end->stream->world,
			 frame->kind == SIM_ASIDE ? "p% steps aside on connection %"
						  : "p% is back on connection %",
			 end->process->number, end->stream->number, 0, 0);
		break;
	case SIM_NAME:
	case SIM_PROBE_ANSWER:
	case SIM_OTHER:
		break;
	}
}

/* --- frames read */

static void request_seen(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_stream *stream = end->stream;
	struct sim_ask *ask = find(stream, frame->id);
	struct sim_call *call = call_of(stream->world, frame->number);

	if (ask) {
		ask->read = true;
		ask->read_ns = stream->world->virt.now_ns;
		ask->clock_ns = sim_now(end->process);
		if (end->process->engine)
			ask->due_ns = end->process->engine->begin_ns -
				      end->process->engine->late_ns;
		ask->held_ns = end->process->held_ns;
		ask->timeout_ms = (uint32_t)frame->timeout_ms;
		ask->barred = call && sim_access_may_refuse(call);
	}
	if (call) {
		call->read = stream;
		call->read_id = frame->id;
		sim_lease_read((struct sim_provider *)end->process, call);
	}
}

/* Returns whether the status states that the request was not run. */
static bool is_refusal(uint8_t status)
{
	return status == STATUS_REFUSED || status == STATUS_NO_SERVICE || status == STATUS_EXPIRED;
}

static void reply_seen(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_stream *stream = end->stream;
	struct sim_world *world = stream->world;
	struct sim_ask *ask = find(stream, frame->id);
	struct sim_call *call = ask && ask->written ? call_of(world, ask->number) : NULL;

	if (call) {
		call->answered = true;
		call->murky |= stream->tampered;
		if (!ask->heard && is_refusal(frame->status)) {
			call->refusals++;
			call->refused_ns = world->virt.now_ns;
		}
		ask->heard = true;
	} else if (stream->tampered && sim_frames_may_be(&end->sent, frame->id)) {
		end->guessed_ns = world->virt.now_ns;
	}
}

void sim_ask_seen(struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_ask *ask;

	switch (frame->kind) {
	case SIM_REQUEST:
		if (!sim_connected(end))
			request_seen(end, frame);
		break;
	case SIM_REPLY:
		if (sim_connected(end))
			reply_seen(end, frame);
		break;
	case SIM_READONLY:
		sim_note(end->stream->world, "c% reads the drain notice on connection %",
			 end->process->number, end->stream->number, 0, 0);
		end->readonly_seen = true;
		break;
	case SIM_CANCEL:
		ask = sim_connected(end) ? NULL : find(end->stream, frame->id);
		if (ask && !ask->dropped)
			ask->dropped_turn = end->process->turns + 1;
		if (ask)
			ask->dropped = true;
		if (ask)
			sim_parent_cancelled(end, frame);
		break;
	case SIM_ASIDE:
		end->aside_seen = true;
		end->asides++;
		break;
	case SIM_BACK:
		end->aside_seen = false;
		end->aside = 0;
		break;
	case SIM_NAME:
		sim_note(end->stream->world, "c% is told instance % on connection %",
			 end->process->number, frame->instance, end->stream->number, 0);
		end->stream->instance = frame->instance;
		end->stream->names[end->stream->name_count++ % SIM_NAMED] = frame->instance;
		end->stream->named_order = ++end->stream->world->order;
		break;
	case SIM_PROBE:
	case SIM_PROBE_ANSWER:
	case SIM_OTHER:
		break;
	}
}

void sim_ask_readonly(struct sim_end *end)
{
	if (end->readonly_seen && end->readonly == 0)
		end->readonly = ++end->stream->world->order;
	if (end->aside_seen && end->aside == 0)
		end->aside = ++end->stream->world->order;
}

/* Returns the request that is being run: as a rule the last one read. Attempts of a call may be
 * equal on the wire, so several requests may match: one that has not run, if there is one. */
static struct sim_ask *find_run(const struct sim_call *call, struct sim_stream *stream,
				unsigned number, unsigned attempt)
{
	struct sim_ask *ask = call->read == stream ? find(stream, call->read_id) : NULL;
	struct sim_ask *match = NULL;

	if (ask && ask->number == number && ask->attempt == attempt && !ask->ran)
		return ask;
	for (uint32_t i = stream->asks ? stream->ask_count : 0; i-- > 0;) {
		ask = &stream->asks[i];
		if (ask->number != number || ask->attempt != attempt)
			continue;
		if (ask->read && !ask->ran)
			return ask;
		match = match ? match : ask;
	}
	return match;
}

void sim_ask_runs(struct sim_call *call, struct sim_stream *stream, unsigned attempt)
{
	struct sim_world *world = call->by->process.world;
	unsigned number = (unsigned)sim_number(world, call);
	struct sim_ask *ask;

	if (call->by->plan->mprpc)
		return;
	if (stream == NULL || call->read == NULL) {
		if (call->stream && call->stream->ends[1].seen.broken)
			sim_violation(world, SIM_S16,
				      "call %u is run although it follows a broken frame", number);
		sim_violation(world, SIM_S6, "call %u is run, but no such request was read",
			      number);
	}
	ask = find_run(call, stream, number, attempt);
	if (ask == NULL)
		return;
	if (ask->ran && !stream->tampered)
		sim_violation(world, SIM_S6, "call %u is run twice for one request", number);
	/* A connection that pauses reads bytes that it takes in later. */
	if (ask->dropped && ask->dropped_turn <= stream->ends[1].process->turns &&
	    !stream->tampered &&
	    ((const struct sim_provider *)stream->ends[1].process)->plan->out_high == 0)
		sim_violation(world, SIM_S60, "call %u is run although it was cancelled", number);
	ask->ran = true;
}

/* --- final check */

/* Returns whether the handler may still delay its answer on purpose. */
static bool may_be_held(struct sim_world *world, const struct sim_ask *ask)
{
	const struct sim_call *call = call_of(world, ask->number);

	if (call == NULL || (call->manner != SIM_LATER && call->manner != SIM_NEVER))
		return false;
	return world->virt.now_ns < ask->read_ns + call->timeout_ns * 5 / 4 + 4 * SECOND;
}

/* Returns a request on the connection that the provider has read and not answered, or NULL. */
static const struct sim_ask *find_owed(struct sim_world *world, const struct sim_stream *stream)
{
	const struct sim_end *end = &stream->ends[1];

	if (stream->over || stream->tampered || end->fd < 0 || !stream->dubbo || end->shut ||
	    end->ended)
		return NULL;
	for (uint32_t i = 0; i < stream->ask_count; i++) {
		const struct sim_ask *ask = &stream->asks[i];

		if (ask->number && ask->read && ask->two_way && !ask->answered && !ask->dropped &&
		    !may_be_held(world, ask))
			return ask;
	}
	return NULL;
}

bool sim_asks_owed(struct sim_world *world)
{
	for (const struct sim_stream *one = world->streams; one; one = one->next)
		if (find_owed(world, one))
			return true;
	return false;
}

void sim_asks_check(struct sim_world *world)
{
	for (const struct sim_stream *one = world->streams; one; one = one->next) {
		const struct sim_ask *ask = find_owed(world, one);

		if (ask)
			sim_violation(world, SIM_S23,
				      "connection %u: call %u was read and never answered",
				      one->number, ask->number);
	}
}
