/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cluster policies: they decide about a call when an attempt fails. A policy is a pure function
 * from the history of a call to the next step. spoke asks the policy before the first attempt,
 * after the end of each attempt, after each pause, and while an attempt is open, if the policy has
 * asked for that; but never before all attempts have begun that the policy asked for.
 *
 * - failover: the first answer, else the last error. A request may run once, or 1 + retries times
 *   if its method is idempotent. With "hedge.after" it begins an attempt at another provider when
 *   the one before is slow.
 * - failfast: the result of the only attempt. A request may run once.
 * - failsafe: the result of the only attempt; nil if the attempt failed. A request may run once.
 * - failback: the first answer, else EDEFERRED and a ticket. A request may run 1 + retries times.
 * - forking: the first answer of several providers. A request may run once at each of `forks`.
 * - broadcast: OK when all providers that can take the call have answered. A request may run once
 *   at each of them.
 * - available: the result of the only attempt, at the first provider in the list that can take it.
 *   A request may run once.
 *
 * Some limits hold under every policy. No attempt begins, and none goes on, after the timeout of
 * the call; a ticket has until retry.deadline. A request that
 * may have run is sent again only if the method is idempotent or the policy repeats, or to the
 * instance that recognises it; then no other provider counts as able or fresh. The retry
 * budget of a consumer allows 100 retries and a fifth of its calls in any 10 s.
 *
 * A program may define policies of its own.
 */
#ifndef SPOKE_POLICY_H
#define SPOKE_POLICY_H

#include <spoke/error.h>

#include <stdbool.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* How an attempt ended, as far as it matters for another attempt. */
enum spoke_policy_fate {
	SPOKE_FATE_NONE,     /* no attempt has ended */
	SPOKE_FATE_OK,       /* answered */
	SPOKE_FATE_ANSWERED, /* answered with an error that every provider would give: by the
			      * handler, or because the request is invalid */
	SPOKE_FATE_SAFE,     /* failed without having run: no provider could take the request, the
			      * provider refused it, or it was never written */
	SPOKE_FATE_UNSURE,   /* failed, and may have run */
};

/* The history of a call, and its settings. */
struct spoke_policy_history {
	uint32_t begun;              /* attempts, with those that failed to begin */
	uint32_t open;               /* attempts in flight */
	uint32_t ok;                 /* attempts that were answered */
	uint32_t failed;             /* attempts that ended in any other way */
	uint32_t able;               /* providers that could take an attempt now */
	uint32_t fresh;              /* those of them that have had no attempt of this call */
	enum spoke_policy_fate last; /* of the attempt that ended last */
	bool repeatable;             /* a request that may have run may be sent again */
	bool deferred;               /* the user has a ticket, or is about to get it */
	bool given_up;               /* the last attempt had a part of the time, and used it up */
	bool waited;                 /* a pause or a `wait_ns` has ended, and no attempt has begun
				      * since */
	uint64_t left_ns;            /* until the deadline */
	uint64_t dice;               /* a random number, if pauses grow and the policy repeats */
	uint32_t retries;            /* from here on: settings */
	uint32_t forks;
	uint32_t fail_percent;
	bool growing;       /* pauses grow by a factor of 1.6 up to 60 s */
	uint64_t period_ns; /* the pause, or the first pause */
	/* How long an attempt is open before it is slow, and a backup may begin elsewhere; 0:
	 * never, also if the call is not repeatable. */
	uint64_t hedge_ns;
};

/* The next step of a call. */
enum spoke_policy_step {
	SPOKE_STEP_FINISH, /* the call ends as its last attempt did */
	SPOKE_STEP_SEND, /* `count` more attempts, at providers without an attempt if there are any
			  */
	SPOKE_STEP_LISTEN, /* nothing until another attempt ends; one must be in flight */
	SPOKE_STEP_WAIT,   /* a pause of `wait_ns`; none may be in flight */
};

/* The decision of a policy. */
struct spoke_policy_verdict {
	enum spoke_policy_step step;
	uint32_t count; /* of SEND; 0 means 1 */
	/* Of WAIT: the pause. Of SEND and LISTEN: the policy is asked again after this time if
	 * an attempt is still open; 0: not before one ends. A backup, begun then, has to be
	 * repeatable. */
	uint64_t wait_ns;
	bool defer; /* of WAIT: the user gets EDEFERRED and a ticket, if not done yet */
	/* Of FINISH: a failure is reported as OK with nil, or with the method's fallback. */
	bool excuse;
	bool last_failure; /* of FINISH: the error of the last failed attempt is reported, even if
			    * the last attempt was answered */
};

/*
 * A promise of a policy about the attempts of each call. Calls of a policy that promises more than
 * ANY cost less, and such a policy is not asked about each step.
 */
enum spoke_policy_attempts {
	SPOKE_ATTEMPTS_ANY, /* nothing is promised; so if the policy repeats */
	SPOKE_ATTEMPTS_ONE, /* one; its result ends the call */
	/* One, and after its failure another at a provider without an attempt, up to 1 + `retries`.
	 * The first answer ends the call. Attempts overlap only if `hedge_ns` is not 0. */
	SPOKE_ATTEMPTS_IN_TURN,
	SPOKE_ATTEMPTS_FORKED, /* at `forks` providers at the same time; the same as ONE if it is 1
				*/
	SPOKE_ATTEMPTS_TO_ALL, /* at all providers at the same time */
};

/*
 * A policy; borrowed by consumers, methods and calls for their life. Zero-initialise unused
 * fields.
 */
struct spoke_policy {
	/* For URLs and files: "cluster=failover". A policy of your own is set by its address only,
	 * and its name appears in texts. */
	const char *name;
	/* Decides the next step. Must be pure: equal histories get equal verdicts, and it must not
	 * call spoke. */
	struct spoke_policy_verdict (*next)(const struct spoke_policy_history *history);
	uint32_t retries; /* default of the setting "retries" */
	enum spoke_policy_attempts attempts;
	/* Allows that a request runs more than once, even if its method is not idempotent. Calls
	 * may last for retry.deadline, and their attempts carry "spoke.id" and "spoke.attempt". */
	bool repeats;
	/* Sends an attempt to the first provider in the list that can take it, instead of asking
	 * the load balancer. */
	bool in_order;
	/* Reports each failure as OK with nil, or with the method's fallback; also that of a call
	 * that could not begin, about which the policy is not asked. */
	bool excuses;
};

/* The built-in policies, in the order of the list above. */
SPOKE_API extern const struct spoke_policy spoke_policy_failover;
SPOKE_API extern const struct spoke_policy spoke_policy_failfast;
SPOKE_API extern const struct spoke_policy spoke_policy_failsafe;
SPOKE_API extern const struct spoke_policy spoke_policy_failback;
SPOKE_API extern const struct spoke_policy spoke_policy_forking;
SPOKE_API extern const struct spoke_policy spoke_policy_broadcast;
SPOKE_API extern const struct spoke_policy spoke_policy_available;

SPOKE_END_DECLS

#endif
