/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what follows each event in the life of one lease. */
#include "cluster/lease/lease.h"

#define TO(state) (1u << SPOKEI_LEASE_##state)

const unsigned spokei_lease_moves[SPOKEI_LEASE_STATES] = {
	[SPOKEI_LEASE_NONE] = TO(WAITING),
	[SPOKEI_LEASE_WAITING] = TO(ASKING) | TO(RELEASING) | TO(OVER),
	[SPOKEI_LEASE_ASKING] = TO(WAITING) | TO(RETURNING) | TO(HELD) | TO(RELEASING) | TO(OVER),
	[SPOKEI_LEASE_RETURNING] = TO(WAITING) | TO(RELEASING) | TO(OVER),
	[SPOKEI_LEASE_HELD] = TO(RELEASING) | TO(OVER),
	[SPOKEI_LEASE_RELEASING] = TO(OVER),
	[SPOKEI_LEASE_OVER] = TO(NONE),
};

static const struct spokei_lease_verdict nothing;

const char *spoke_lease_loss_name(enum spoke_lease_loss why)
{
	switch (why) {
	case SPOKE_LEASE_EXPIRED:
		return "expired";
	case SPOKE_LEASE_TAKEN:
		return "taken";
	case SPOKE_LEASE_CLOSED:
		return "closed";
	default:
		return NULL;
	}
}

static void move(struct spokei_lease_life *life, enum spokei_lease_state to)
{
	SPOKE_ASSERT(spokei_lease_moves[life->state] & 1u << to);
	life->state = (uint8_t)to;
}

/* --- times */

uint64_t spokei_lease_renewal_due(uint64_t sent_ns, uint64_t ttl_ns)
{
	uint64_t due_ns = sent_ns + ttl_ns / 3;

	return due_ns - due_ns % (ttl_ns / 30);
}

void spokei_lease_begin(struct spokei_lease_life *life, uint32_t ttl_ms, bool once, uint64_t end_ns)
{
	*life = (struct spokei_lease_life){ .ttl_ms = ttl_ms, .once = once, .end_ns = end_ns };
	move(life, SPOKEI_LEASE_WAITING);
}

void spokei_lease_sent(struct spokei_lease_life *life, uint64_t sent_ns)
{
	if (life->state != SPOKEI_LEASE_HELD)
		move(life, SPOKEI_LEASE_ASKING);
	life->sent_ns = sent_ns;
}

/* The user has no more to do with the lease. If the store may have it, it is released there, for as
 * long as its last command can have given it time: a command that is unanswered for longer is
 * abandoned. */
static bool leave(struct spokei_lease_life *life, bool stored)
{
	uint64_t ttl_ns = spokei_lease_ttl_ns(life);

	if (!stored) {
		move(life, SPOKEI_LEASE_OVER);
		return false;
	}
	move(life, SPOKEI_LEASE_RELEASING);
	life->end_ns = life->sent_ns + ttl_ns + spokei_lease_patience(ttl_ns);
	return true;
}

/* Ends an ask without a lease. */
static struct spokei_lease_verdict fail(struct spokei_lease_life *life, int error)
{
	bool stored = life->doubt || life->state != SPOKEI_LEASE_WAITING;

	return (struct spokei_lease_verdict){
		.tell = SPOKEI_LEASE_TELL_FAILED,
		.error = error,
		.release = leave(life, stored),
	};
}

static struct spokei_lease_verdict lose(struct spokei_lease_life *life, enum spoke_lease_loss why)
{
	return (struct spokei_lease_verdict){
		.tell = SPOKEI_LEASE_TELL_LOST,
		.why = why,
		.release = leave(life, why != SPOKE_LEASE_TAKEN),
	};
}

/* A grant counts if it is still valid. Otherwise it is given back. */
static struct spokei_lease_verdict granted(struct spokei_lease_life *life, uint64_t guard_ns,
					   const struct spokei_lease_news *news)
{
	uint64_t end_ns = spokei_lease_valid_until(news->sent_ns, spokei_lease_ttl_ns(life),
						   guard_ns);

	if (life->state != SPOKEI_LEASE_ASKING)
		return nothing;
	if (news->now_ns < end_ns) {
		move(life, SPOKEI_LEASE_HELD);
		life->doubt = false;
		life->end_ns = end_ns;
		life->fence = news->fence;
		return (struct spokei_lease_verdict){ .tell = SPOKEI_LEASE_TELL_HELD };
	}
	if (life->once)
		return fail(life, SPOKE_EUNAVAILABLE);
	move(life, SPOKEI_LEASE_RETURNING);
	return (struct spokei_lease_verdict){ .release = true };
}

static struct spokei_lease_verdict refused(struct spokei_lease_life *life)
{
	if (life->state != SPOKEI_LEASE_ASKING)
		return nothing;
	move(life, SPOKEI_LEASE_WAITING);
	life->doubt = false;
	return life->once ? fail(life, SPOKE_EBUSY) : nothing;
}

/* The rejected command had no effect, unlike perhaps one before it. A lease that is held is renewed
 * again until it expires. */
static struct spokei_lease_verdict denied(struct spokei_lease_life *life)
{
	if (life->state == SPOKEI_LEASE_ASKING) {
		move(life, SPOKEI_LEASE_WAITING);
		return fail(life, SPOKE_ESTORE);
	}
	if (life->state == SPOKEI_LEASE_RETURNING) {
		move(life, SPOKEI_LEASE_OVER);
		return (struct spokei_lease_verdict){ .tell = SPOKEI_LEASE_TELL_FAILED,
						      .error = SPOKE_ESTORE };
	}
	if (life->state == SPOKEI_LEASE_RELEASING)
		move(life, SPOKEI_LEASE_OVER);
	return nothing;
}

static struct spokei_lease_verdict missed(struct spokei_lease_life *life)
{
	if (life->state == SPOKEI_LEASE_ASKING) {
		life->doubt = true;
		move(life, SPOKEI_LEASE_WAITING);
	}
	return nothing;
}

/* A lease whose validity has ended stays over, even if the store has prolonged it. */
static struct spokei_lease_verdict confirmed(struct spokei_lease_life *life, uint64_t guard_ns,
					     const struct spokei_lease_news *news)
{
	uint64_t end_ns = spokei_lease_valid_until(news->sent_ns, spokei_lease_ttl_ns(life),
						   guard_ns);

	if (life->state != SPOKEI_LEASE_HELD)
		return nothing;
	if (news->now_ns >= life->end_ns)
		return lose(life, SPOKE_LEASE_EXPIRED);
	if (end_ns > life->end_ns)
		life->end_ns = end_ns;
	return nothing;
}

static struct spokei_lease_verdict passed(struct spokei_lease_life *life, uint64_t now_ns)
{
	if (now_ns < life->end_ns)
		return nothing;
	if (spokei_lease_is_ask(life))
		return fail(life, life->once ? SPOKE_EUNAVAILABLE : SPOKE_ETIMEOUT);
	if (life->state == SPOKEI_LEASE_HELD)
		return lose(life, SPOKE_LEASE_EXPIRED);
	if (life->state == SPOKEI_LEASE_RELEASING)
		move(life, SPOKEI_LEASE_OVER);
	return nothing;
}

static struct spokei_lease_verdict released(struct spokei_lease_life *life)
{
	if (life->state == SPOKEI_LEASE_RETURNING) {
		move(life, SPOKEI_LEASE_WAITING);
		life->doubt = false;
	} else if (life->state == SPOKEI_LEASE_RELEASING) {
		move(life, SPOKEI_LEASE_OVER);
	}
	return nothing;
}

struct spokei_lease_verdict spokei_lease_step(struct spokei_lease_life *life, uint64_t guard_ns,
					      const struct spokei_lease_news *news)
{
	bool asks = spokei_lease_is_ask(life);
	bool held = life->state == SPOKEI_LEASE_HELD;

	switch (news->event) {
	case SPOKEI_LEASE_GRANT:
		return granted(life, guard_ns, news);
	case SPOKEI_LEASE_REFUSE:
		return refused(life);
	case SPOKEI_LEASE_DENY:
		return denied(life);
	case SPOKEI_LEASE_MISS:
		return missed(life);
	case SPOKEI_LEASE_CONFIRM:
		return confirmed(life, guard_ns, news);
	case SPOKEI_LEASE_DISOWN:
		return held ? lose(life, SPOKE_LEASE_TAKEN) : nothing;
	case SPOKEI_LEASE_PASS:
		return passed(life, news->now_ns);
	case SPOKEI_LEASE_RELEASE:
		if (asks)
			return fail(life, SPOKE_ECANCELED);
		return (struct spokei_lease_verdict){ .release = held && leave(life, true) };
	case SPOKEI_LEASE_RELEASED:
		return released(life);
	case SPOKEI_LEASE_UNREACHABLE:
		return asks && life->once ? fail(life, SPOKE_EUNAVAILABLE) : nothing;
	case SPOKEI_LEASE_CLOSE:
		if (asks)
			return fail(life, SPOKE_ECLOSED);
		return held ? lose(life, SPOKE_LEASE_CLOSED) : nothing;
	case SPOKEI_LEASE_EVENTS:
	default:
		SPOKE_ASSERT(news->event < SPOKEI_LEASE_EVENTS);
		return nothing;
	}
}
