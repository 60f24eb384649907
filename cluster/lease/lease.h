/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one lease: its states, its times, and the consequence of each event. Pure: the caller
 * passes the time, sends the commands, and calls the user. Any thread.
 *
 *     WAITING --send--> ASKING --grant--> HELD --release, expire--> RELEASING --> OVER
 *        ^                 |
 *        +---- refused ----+---- a grant that does not count --> RETURNING --> WAITING
 *
 * All times are of the clock of leases. A grant or a renewal is valid from when its
 * command was sent, not from when its answer came.
 */
#ifndef SPOKEI_CLUSTER_LEASE_LEASE_H
#define SPOKEI_CLUSTER_LEASE_LEASE_H

#include "timer/base.h"

#include <spoke/env.h>
#include <spoke/lease.h>

#define SPOKEI_LEASE_TTL_MIN_NS UINT64_C(100000000)      /* 100 ms */
#define SPOKEI_LEASE_TTL_MAX_NS UINT64_C(86400000000000) /* a day */
#define SPOKEI_LEASE_ROUND_NS UINT64_C(2000000) /* the store counts in ms; part of the guard */

/* The clock of leases: the later of the monotonic clock and the clock that includes sleep of the
 * machine. It never goes back, and is ahead of the engine's time if the machine has slept. */
struct spokei_lease_clock {
	const struct spoke_env *env; /* borrowed for the clock's life */
	uint64_t lead_ns; /* of the clock with sleep when this clock was made; may wrap */
};

/* Makes a clock that agrees with env->now() until the machine sleeps. */
static inline void spokei_lease_clock_init(struct spokei_lease_clock *clock,
					   const struct spoke_env *env)
{
	clock->env = env;
	clock->lead_ns = env->boot_now(env->ctx) - env->now(env->ctx);
}

/* Returns the time, given that of env->now(), in ns. */
static inline uint64_t spokei_lease_clock_at(const struct spokei_lease_clock *clock,
					     uint64_t now_ns)
{
	uint64_t boot_ns = clock->env->boot_now(clock->env->ctx) - clock->lead_ns;

	return boot_ns > now_ns ? boot_ns : now_ns;
}

/* Reads both clocks and returns the time in ns. */
static inline uint64_t spokei_lease_clock_now(const struct spokei_lease_clock *clock)
{
	return spokei_lease_clock_at(clock, clock->env->now(clock->env->ctx));
}

enum spokei_lease_state {
	SPOKEI_LEASE_NONE,      /* an unused cell */
	SPOKEI_LEASE_WAITING,   /* an ask; its ACQUIRE is to be sent, now or later */
	SPOKEI_LEASE_ASKING,    /* its ACQUIRE is under way */
	SPOKEI_LEASE_RETURNING, /* a grant that does not count is given back before another try */
	SPOKEI_LEASE_HELD,
	SPOKEI_LEASE_RELEASING, /* ended for its user, but the store may still have it */
	SPOKEI_LEASE_OVER,      /* ended, also in the store */
	SPOKEI_LEASE_STATES,
};

enum spokei_lease_event {
	SPOKEI_LEASE_GRANT,       /* the store has granted it: needs sent_ns and fence */
	SPOKEI_LEASE_REFUSE,      /* another holder has it */
	SPOKEI_LEASE_DENY,        /* the store rejects its command for good */
	SPOKEI_LEASE_MISS,        /* its command was not answered, or is to be repeated */
	SPOKEI_LEASE_CONFIRM,     /* a renewal was answered: needs sent_ns */
	SPOKEI_LEASE_DISOWN,      /* a renewal was answered: the store has another holder or none */
	SPOKEI_LEASE_PASS,        /* time has passed */
	SPOKEI_LEASE_RELEASE,     /* its user releases it, or cancels the ask */
	SPOKEI_LEASE_RELEASED,    /* its RELEASE was answered */
	SPOKEI_LEASE_UNREACHABLE, /* the store could not be reached */
	SPOKEI_LEASE_CLOSE,       /* its leases are closed */
	SPOKEI_LEASE_EVENTS,
};

/* An event with its details. */
struct spokei_lease_news {
	enum spokei_lease_event event;
	uint64_t now_ns;  /* the time at which it is noticed */
	uint64_t sent_ns; /* the time at which the answered command was sent */
	uint64_t fence;
};

/* The call to the user that an event leads to. */
enum spokei_lease_tell {
	SPOKEI_LEASE_TELL_NOTHING,
	SPOKEI_LEASE_TELL_HELD,
	SPOKEI_LEASE_TELL_FAILED, /* the ask has ended: `error` */
	SPOKEI_LEASE_TELL_LOST,   /* `why` */
};

struct spokei_lease_verdict {
	enum spokei_lease_tell tell;
	int error;
	enum spoke_lease_loss why;
	bool release; /* its RELEASE is to be sent */
};

/* One lease. */
struct spokei_lease_life {
	/* An ask: when it gives up; held: when its validity ends; releasing: from then on the store
	 * has it no more. UINT64_MAX: never. */
	uint64_t end_ns;
	uint64_t
		sent_ns; /* when a command was sent last that gives it time in the store; 0: none */
	uint64_t fence;
	uint32_t ttl_ms;
	uint8_t state; /* enum spokei_lease_state */
	bool once;     /* the ask does not wait */
	bool doubt;    /* an ACQUIRE was not answered, so the store may have the lease */
	bool fixed;    /* it is not renewed */
};

/* The table of legal moves: for each state a bit mask of the states that may follow. */
extern const unsigned spokei_lease_moves[SPOKEI_LEASE_STATES];

/* Returns when a lease is valid no more whose command was sent at this time. guard_ns 0: a tenth of
 * the time to live. */
static inline uint64_t spokei_lease_valid_until(uint64_t sent_ns, uint64_t ttl_ns,
						uint64_t guard_ns)
{
	uint64_t kept_ns = ttl_ns / 100 + SPOKEI_LEASE_ROUND_NS;

	kept_ns += guard_ns ? guard_ns : ttl_ns / 10;
	return kept_ns < ttl_ns ? sent_ns + (ttl_ns - kept_ns) : sent_ns;
}

/*
 * Returns when to renew a lease after a command that was sent at this time: a third of the time to
 * live later, rounded down to a multiple of a thirtieth of it, so that leases which are due close
 * together are due at the same time.
 */
uint64_t spokei_lease_renewal_due(uint64_t sent_ns, uint64_t ttl_ns);

/* Returns how long an answer is awaited, if this is the shortest time to live: not so short that a
 * distant server is taken for a silent one. */
static inline uint64_t spokei_lease_patience(uint64_t ttl_ns)
{
	const uint64_t least_ns = UINT64_C(250000000);

	return ttl_ns / 12 > least_ns ? ttl_ns / 12 : least_ns;
}

static inline uint64_t spokei_lease_ttl_ns(const struct spokei_lease_life *life)
{
	return life->ttl_ms * UINT64_C(1000000);
}

/* Returns how long the lease is valid from `now_ns` on; 0: it is not held, or over. */
static inline uint64_t spokei_lease_left_at(const struct spokei_lease_life *life, uint64_t now_ns)
{
	return life->state == SPOKEI_LEASE_HELD && now_ns < life->end_ns ? life->end_ns - now_ns
									 : 0;
}

/* Returns whether the lease is an ask that was not answered yet. */
static inline bool spokei_lease_is_ask(const struct spokei_lease_life *life)
{
	return life->state >= SPOKEI_LEASE_WAITING && life->state <= SPOKEI_LEASE_RETURNING;
}

/* Begins an ask, which gives up at `end_ns`. */
void spokei_lease_begin(struct spokei_lease_life *life, uint32_t ttl_ms, bool once,
			uint64_t end_ns);

/* Its ACQUIRE was sent (the lease is WAITING), or its renewal (HELD). */
void spokei_lease_sent(struct spokei_lease_life *life, uint64_t sent_ns);

/* Moves the lease after an event; `guard_ns` as in spokei_lease_valid_until(). Every event is legal
 * in every state; one that comes too late changes nothing. */
struct spokei_lease_verdict spokei_lease_step(struct spokei_lease_life *life, uint64_t guard_ns,
					      const struct spokei_lease_news *news);

#endif
