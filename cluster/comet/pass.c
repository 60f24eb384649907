/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass, once in each turn with news: users that came or left, then messages in a slice that
 * is bounded by time and by writes. Messages to one user go first. All messages to all users share
 * one pass over the connections, because each connection has its cursor. The rest goes on in
 * the next turn, after the descriptors were read.
 */
#include "cluster/comet/parts.h"

#define SLICE_NS UINT64_C(500000)
#define SLICE_WRITES 256u
#define LOOK_EVERY 16u    /* writes between two readings of the clock */
#define VISIT_EVERY 256u  /* connections visited without a write between two readings */
#define BROADCAST_MIN 32u /* connections that a slice visits at least */
#define SWEEP_MS 3600000u

/* --- users that come and leave */

static void tell(struct spoke_comet *comet, struct spoke_span user, enum spoke_comet_change change)
{
	if (comet->with.change)
		comet->with.change(comet->with.arg, user, change);
}

static struct spoke_span id_of(const struct spokei_comet_user *user)
{
	return (struct spoke_span){ user->id, user->len };
}

/* A client that polls has no connection between two polls, but it has not left. */
static void settle_absent(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	bool was_here = user->flags & SPOKEI_COMET_TOLD;

	if (was_here && (user->flags & SPOKEI_COMET_POLLED)) {
		spokei_comet_absent(user, &comet->grace, SPOKEI_COMET_GRACE_MS);
		return;
	}
	user->flags &= (uint8_t)~SPOKEI_COMET_TOLD;
	spokei_comet_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	if (was_here)
		tell(comet, id_of(user), SPOKE_COMET_LEFT);
}

static void settle(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	struct spokei_comet_conn *next;

	if (user->count == 0) {
		settle_absent(user);
		return;
	}
	if (!(user->flags & SPOKEI_COMET_TOLD)) {
		user->flags |= SPOKEI_COMET_TOLD | SPOKEI_COMET_KNOWN;
		tell(comet, id_of(user), SPOKE_COMET_CAME);
		if (comet->closed)
			return;
	}
	for (struct spokei_comet_conn *conn = user->at.here.first; conn; conn = next) {
		next = conn->next;
		spokei_comet_pump(conn);
	}
}

static struct spokei_comet_user *take_dirty(struct spoke_comet *comet)
{
	struct spokei_comet_user *user = comet->dirty;

	comet->dirty = user->at.here.next_dirty;
	if (comet->dirty == NULL)
		comet->dirty_end = &comet->dirty;
	user->flags &= (uint8_t)~SPOKEI_COMET_DIRTY;
	return user;
}

/* --- a slice */

struct slice {
	struct spoke_comet *comet;
	uint64_t ends_ns;
	uint32_t writes; /* value of comet->writes at which it ends */
	uint32_t look;   /* ... at which the clock is read next */
	uint32_t visits; /* since the clock was read */
};

static bool is_over(struct slice *slice)
{
	const struct spoke_env *env = slice->comet->engine->env;
	uint32_t writes = slice->comet->writes;

	if ((int32_t)(writes - slice->writes) >= 0)
		return true;
	if ((int32_t)(writes - slice->look) < 0 && ++slice->visits < VISIT_EVERY)
		return false;
	slice->look = writes + LOOK_EVERY;
	slice->visits = 0;
	return env->now(env->ctx) >= slice->ends_ns;
}

/* Visits the connections that are left in the pass of messages to all. */
static void broadcast(struct spoke_comet *comet, struct slice *slice)
{
	for (uint32_t i = 0; comet->pass_left > 0 && (i < BROADCAST_MIN || !is_over(slice)); i++) {
		struct spokei_comet_conn *conn;

		if (comet->pass_at >= comet->used)
			comet->pass_at = 0;
		conn = spokei_comet_cell(comet, comet->pass_at++);
		comet->pass_left--;
		if (conn->state == SPOKEI_COMET_OPEN && conn->user != comet->nobody)
			spokei_comet_pump(conn);
	}
}

void spokei_comet_pass(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, pass);
	const struct spoke_env *env = comet->engine->env;
	struct slice slice = {
		.comet = comet,
		.writes = comet->writes + SLICE_WRITES,
		.look = comet->writes + LOOK_EVERY,
	};

	if (comet->closed)
		return;
	slice.ends_ns = env->now(env->ctx) + SLICE_NS;
	spokei_comet_deliver(comet);
	while (!comet->closed && comet->dirty && !is_over(&slice))
		settle(take_dirty(comet));
	if (comet->closed)
		return;
	broadcast(comet, &slice);
	if (comet->dirty || comet->pass_left > 0)
		spokei_engine_soon(comet->engine, &comet->pass);
}

/* --- the sweep: things that are over by time, without a timer each */

static bool is_due(const struct spoke_comet *comet, uint32_t ms)
{
	return spokei_comet_until(ms, spokei_comet_ms(comet)) <= 0;
}

static struct spokei_comet_user *first_user(const struct spoke_list *list)
{
	return spoke_container_of(spokei_list_first(list), struct spokei_comet_user, at.node);
}

/* The client has not polled again: the user has left. */
static void end_grace(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	spokei_comet_here(user);
	user->flags &= (uint8_t) ~(SPOKEI_COMET_TOLD | SPOKEI_COMET_POLLED);
	spokei_comet_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	tell(comet, id_of(user), SPOKE_COMET_LEFT);
}

static void end_user(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	bool known = user->flags & SPOKEI_COMET_KNOWN;
	char id[SPOKE_COMET_USER_MAX];
	struct spoke_span span = { id, user->len };

	memcpy(id, user->id, user->len);
	spokei_comet_forget(user);
	if (known)
		tell(comet, span, SPOKE_COMET_ENDED);
}

static void look_at_ring(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	spokei_comet_ring_age(comet, ring);
	if (ring->count == 0 && ring->user) {
		spokei_comet_ring_free(ring->user);
		return;
	}
	ring->look_ms = spokei_comet_ms(comet) + spokei_comet_ms_of(comet->with.ring_ns);
	spokei_list_remove(&ring->node);
	spokei_list_append(&comet->rings, &ring->node);
}

static struct spokei_comet_ring *first_ring(const struct spoke_comet *comet)
{
	return spoke_container_of(spokei_list_first(&comet->rings), struct spokei_comet_ring, node);
}

static struct spokei_comet_ask *first_ask(const struct spoke_comet *comet)
{
	return spoke_container_of(spokei_list_first(&comet->asks), struct spokei_comet_ask, node);
}

/* Each list is in the order in which its entries are due. */
static void sweep(struct spoke_comet *comet)
{
	while (!spokei_list_empty(&comet->asks) && is_due(comet, first_ask(comet)->due_ms))
		spokei_comet_unanswered(first_ask(comet));
	while (is_due(comet, first_ring(comet)->look_ms))
		look_at_ring(comet, first_ring(comet));
	while (!comet->closed && !spokei_list_empty(&comet->grace) &&
	       is_due(comet, first_user(&comet->grace)->due_ms))
		end_grace(first_user(&comet->grace));
	while (!comet->closed && !spokei_list_empty(&comet->absent) &&
	       is_due(comet, first_user(&comet->absent)->due_ms))
		end_user(first_user(&comet->absent));
}

/* The alarm is set again first, while its room in the wheel is free; then it only moves. */
void spokei_comet_sweep(struct spoke_alarm *alarm)
{
	struct spoke_comet *comet = spoke_container_of(alarm, struct spoke_comet, sweep);

	comet->sweep_ms = spokei_comet_ms(comet) + SWEEP_MS + 1;
	spokei_comet_sweep_at(comet, spokei_comet_ms(comet) + SWEEP_MS);
	sweep(comet);
	if (comet->closed)
		return;
	spokei_comet_sweep_at(comet, first_ring(comet)->look_ms);
	if (!spokei_list_empty(&comet->asks))
		spokei_comet_sweep_at(comet, first_ask(comet)->due_ms);
	if (!spokei_list_empty(&comet->grace))
		spokei_comet_sweep_at(comet, first_user(&comet->grace)->due_ms);
	if (!spokei_list_empty(&comet->absent))
		spokei_comet_sweep_at(comet, first_user(&comet->absent)->due_ms);
}
