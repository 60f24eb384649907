/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a seed means: who there is, how they are set, what may go wrong. Each seed enables a part of
 * the faults only, for some hide others. A decider: the seed comes in, and nothing else.
 */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

#include "core/virtual/net.h"
#include "tests/sim/dice.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	SIM_PROVIDERS = 7,
	SIM_CONSUMERS = 5,
	SIM_PROCESSES = SIM_PROVIDERS + SIM_CONSUMERS,
	SIM_TICKETS = 1000, /* of a consumer, at most */
};

/* What goes wrong now and then. */
enum sim_fault {
	SIM_RESET,     /* a connection is reset by something in between */
	SIM_HALF_OPEN, /* a peer goes away, and the other one never hears of it */
	SIM_HOLE,      /* nothing gets through, in one direction or both, for a while */
	SIM_DELAY,     /* everything takes longer for a while */
	SIM_CLOG,      /* a connection takes hardly anything for a while */
	SIM_ROUTE,     /* connects are refused, unanswered or lead back */
	SIM_ACCEPT,    /* accept() fails */
	SIM_CRASH,     /* a provider is gone at once, and back later */
	SIM_DRAIN,     /* a provider ends in order, and is back later */
	SIM_HOLD,      /* a process stands still */
	SIM_STALL,     /* ... inside a callback */
	SIM_MEMORY,    /* there is none, once */
	SIM_REPLAY,    /* replies come twice, late, from elsewhere, or to nobody */
	SIM_FLIP,      /* bits are flipped */
	SIM_SLEEP,     /* the machine sleeps: one clock goes on */
	SIM_CANCELS,   /* many calls are cancelled at once */
	SIM_CHURN,     /* a consumer ends, and another one begins */
	SIM_REGISTRY,  /* it fails, is late, is away, forgets, or tells what is not so */
	SIM_FAULTS,
};

/* The name of a fault, for people. */
const char *sim_fault_name(enum sim_fault fault);

/* How handlers behave; calls choose among those that are on. */
enum sim_manner {
	SIM_AT_ONCE,
	SIM_LATER, /* within the time of the call, mostly */
	SIM_NEVER, /* when nobody waits any more */
	SIM_ERROR,
	SIM_LARGE, /* with a large answer */
	SIM_MANNERS,
};

/* How consumers call. */
enum sim_policy {
	SIM_FAILOVER,
	SIM_FAILFAST,
	SIM_FAILSAFE,
	SIM_FAILBACK,
	SIM_FORKING,
	SIM_BROADCAST,
	SIM_AVAILABLE,
	SIM_POLICIES,
};

#define SIM_BALANCERS 6u

/* What becomes of a call beside its first attempt, and who takes it. */
struct sim_calls_plan {
	enum sim_policy policy;
	unsigned balancer;
	bool idempotent;
	uint32_t retries;     /* 0: none */
	uint32_t forks;       /* of forking */
	uint64_t period_ns;   /* between attempts of a ticket */
	uint64_t deadline_ns; /* of a ticket; 0: as the others make it */
	uint32_t tickets_max;
	size_t ticket_bytes_max; /* 0: the default */
	bool drops_oldest;
	uint32_t actives;          /* of each method; 0: no limit */
	uint32_t endpoint_actives; /* 0: no limit */
	uint32_t connections;
	uint32_t eject_failures; /* 0: none is put aside */
	uint64_t eject_ns;
	bool wait_ready;
	bool sticky;
	bool lazy;
};

struct sim_provider_plan {
	uint64_t heartbeat_ns; /* or SPOKE_OFF */
	uint32_t requests_max;
	uint32_t requests_per_connection_max;
	size_t out_high; /* bytes; 0: the default */
	uint32_t weight; /* 0: the usual one; SPOKE_NONE */
	uint64_t warmup_ns;
	bool frees_inside; /* it may be freed in one of its handlers */
};

struct sim_consumer_plan {
	uint64_t heartbeat_ns;
	uint64_t every_ns; /* between calls */
	unsigned burst;    /* as many at a time */
	uint64_t timeout_ns;
	uint32_t pending_max;
	bool mprpc;
	bool frees_inside; /* it may be freed in one of its callbacks */
	bool registry;     /* it is told of providers there */
	struct sim_calls_plan calls;
};

struct sim_plan {
	uint64_t seed;
	uint64_t boot_ahead_ns;   /* where the clock that counts sleep begins */
	bool steady;              /* no faults at all: to measure */
	uint64_t outage_from_ns;  /* all providers are away from then, since the beginning ... */
	uint64_t outage_until_ns; /* ... until then; 0: no such thing */
	size_t bytes_max;         /* of a consumer's process; 0: by what it is set to */
	unsigned provider_count;
	unsigned consumer_count;
	struct sim_provider_plan providers[SIM_PROVIDERS];
	struct sim_consumer_plan consumers[SIM_CONSUMERS];
	uint64_t length_ns;      /* of the time in which faults happen */
	uint64_t fault_every_ns; /* on average; 0: none happens */
	uint64_t interval_ns;    /* the usual heartbeat, by which faults are measured */
	uint32_t faults;         /* bits of enum sim_fault */
	uint32_t manners;        /* bits of enum sim_manner */
	uint32_t one_way_permille;
	size_t size_max; /* of arguments and small answers */
	size_t large;    /* of large ones */
	struct spokei_vnet_link link;
	uint64_t registry_ns;         /* until it answers, usually */
	uint64_t registry_retry_ns;   /* after which it is asked again */
	uint64_t registry_session_ns; /* for so long it keeps what those published who are gone */
};

void sim_plan_draw(struct sim_plan *plan, uint64_t seed);

/* One consumer and one provider, so many calls a second, nothing goes wrong. */
void sim_plan_steady(struct sim_plan *plan, unsigned calls_per_s, uint64_t length_ns);

/* One consumer and one provider, which is away for ten minutes; so many failback calls a second. */
void sim_plan_outage(struct sim_plan *plan, unsigned calls_per_s, bool drops_oldest);

/* How long a ticket lasts, since its call. */
uint64_t sim_plan_ticket_ns(const struct sim_calls_plan *calls, uint64_t timeout_ns);

static inline bool sim_plan_has(const struct sim_plan *plan, enum sim_fault fault)
{
	return plan->faults & 1u << fault;
}

#endif
