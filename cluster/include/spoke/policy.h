/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a call when an attempt fails. A policy is a table with one function that knows
 * nothing but the history of the call it is asked about, and answers what comes next; whoever
 * carries the call asks it before the first attempt, after the end of each, and after each pause,
 * and not before all attempts that it asked for have begun. One that is `plain` it need not ask
 * until an attempt has failed.
 *
 * - failover: the first answer, else the last error. A request may run once, or 1 + retries times
 *   if its method is idempotent.
 * - failfast: what the one attempt ended with. A request may run once.
 * - failsafe: what the one attempt ended with; nil if it failed. Once.
 * - failback: the first answer, else EDEFERRED and a ticket. 1 + retries times.
 * - forking: the first answer of several providers. Once at each of `forks`.
 * - broadcast: OK when all that can take it now have answered so. Once at each of them.
 * - available: what the one attempt at the first in the list that can take it ended with. Once.
 *
 * Whatever a policy says, no attempt is made after the deadline (what 1 + retries attempts and
 * their pauses may take; of a policy that `repeats` retry.deadline), none that may have been run is
 * repeated unless the method is idempotent or the policy `repeats`, and none is repeated beyond the
 * consumer's retry budget: in any 10 s at most a fifth of its calls and 100.
 *
 * A program may bring policies of its own.
 */
#ifndef SPOKE_POLICY_H
#define SPOKE_POLICY_H

#include <spoke/error.h>

#include <stdbool.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* How an attempt ended, as far as it matters for another one. */
enum spoke_policy_fate {
	SPOKE_FATE_NONE,     /* no attempt has ended */
	SPOKE_FATE_OK,       /* with an answer */
	SPOKE_FATE_ANSWERED, /* with an error that any provider would answer: of the handler, or
			      * about the request */
	SPOKE_FATE_SAFE,     /* failed, and was not run: nobody could take it, it was refused, or
			      * never written */
	SPOKE_FATE_UNSURE,   /* failed, and may have been run */
};

/* What has become of a call, and what was set for it. */
struct spoke_policy_history {
	uint32_t begun;              /* attempts, with those that failed as they began */
	uint32_t open;               /* ... of them that have not ended */
	uint32_t ok;                 /* ... that ended with an answer */
	uint32_t failed;             /* ... with anything else */
	uint32_t able;               /* providers that could take it now */
	uint32_t fresh;              /* ... of them that it was not sent to yet */
	enum spoke_policy_fate last; /* of the attempt that ended last */
	bool repeatable;             /* one that may have been run may be run again */
	bool deferred;               /* its caller has a ticket */
	bool waited;                 /* a WAIT has passed, and no attempt was begun since */
	uint64_t left_ns;            /* until its deadline */
	uint64_t dice;               /* a random number */
	uint32_t retries;            /* settings, from here on */
	uint32_t forks;
	uint32_t fail_percent;
	bool growing;       /* pauses grow, by 1.6 each time, up to 60 s */
	uint64_t period_ns; /* the pause, or the first one */
};

enum spoke_policy_step {
	SPOKE_STEP_FINISH, /* the call ends as its last attempt did */
	SPOKE_STEP_SEND,   /* `count` attempts more, each at another provider if there is one */
	SPOKE_STEP_LISTEN, /* nothing, until another attempt ends; one has to be open */
	SPOKE_STEP_WAIT,   /* nothing for `wait_ns`, then it is asked again */
};

struct spoke_policy_verdict {
	enum spoke_policy_step step;
	uint32_t count;   /* of SEND, from 1 on */
	uint64_t wait_ns; /* of WAIT */
	bool defer;       /* of WAIT: the caller is told EDEFERRED, if it was not yet */
	bool excuse;      /* of FINISH: a failure is told as OK with nil */
	bool blame;       /* of FINISH: an answer does not count, for some have failed: the last
			   * error is told */
};

struct spoke_policy {
	const char *name; /* as in URLs: "cluster=failover" */
	/* Answers, and does nothing else: it must not call spoke. */
	struct spoke_policy_verdict (*next)(const struct spoke_policy_history *history);
	uint32_t retries; /* where no setting says it */
	bool repeats;     /* who chooses it allows that requests are run again */
	bool in_order;    /* the first one in the list that can take it, without a balancer */
	bool once;        /* it makes one attempt, and never waits */
	bool elsewhere;   /* it asks each provider once at most, and never waits */
	bool fans_out;    /* it may have several attempts open at a time */
	/* It begins with one attempt, and ends with the first answer; nothing follows from it where
	 * it repeats, or calls wait until somebody is ready. */
	bool plain;
};

SPOKE_API extern const struct spoke_policy spoke_policy_failover;
SPOKE_API extern const struct spoke_policy spoke_policy_failfast;
SPOKE_API extern const struct spoke_policy spoke_policy_failsafe;
SPOKE_API extern const struct spoke_policy spoke_policy_failback;
SPOKE_API extern const struct spoke_policy spoke_policy_forking;
SPOKE_API extern const struct spoke_policy spoke_policy_broadcast;
SPOKE_API extern const struct spoke_policy spoke_policy_available;

SPOKE_END_DECLS

#endif
