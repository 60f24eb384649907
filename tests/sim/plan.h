/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a seed: number and settings of consumers and providers, and the faults to inject.
 * Each seed enables only a part of the faults, because some faults hide others. A pure function of
 * the seed.
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
	SIM_TICKETS = 1000, /* most unsettled tickets of a consumer */
	SIM_NAMES = 3,      /* most names of leases */
	SIM_WORKERS = 3,    /* most workers of a consumer */
};

/* Kinds of faults. */
enum sim_fault {
	SIM_RESET,     /* a device on the path resets a connection */
	SIM_HALF_OPEN, /* a peer disappears, and the other side receives no notice */
	SIM_HOLE,      /* nothing gets through for a while, in one direction or both */
	SIM_DELAY,     /* the latency of the network rises for a while */
	SIM_CLOG,      /* a connection accepts hardly any bytes for a while */
	SIM_ROUTE,     /* connects are refused, unanswered or lead back to their start */
	SIM_ACCEPT,    /* accept() fails */
	SIM_CRASH,     /* a provider is killed and restarted later */
	SIM_DRAIN,     /* a provider is drained and restarted later */
	SIM_HOLD,      /* a process is frozen */
	SIM_STALL,     /* a process is frozen inside a callback */
	SIM_MEMORY,    /* one allocation fails */
	SIM_REPLAY, /* a reply is delivered again: late, on another connection, or for an unknown id
		     */
	SIM_FLIP,   /* bits are flipped */
	SIM_SLEEP,  /* the machine sleeps: only one of the clocks advances */
	SIM_CANCELS,  /* many calls are cancelled at once */
	SIM_CHURN,    /* a consumer is freed and a new one created */
	SIM_REGISTRY, /* the registry fails, is slow, is away, loses entries, or sends a wrong list
		       */
	SIM_FAULTS,
};

/* Kinds of faults of the store of leases. */
enum sim_store_fault {
	SIM_STORE_PHASE,    /* it refuses commands: loading, busy, full, not able to write */
	SIM_STORE_FLUSH,    /* it forgets the scripts */
	SIM_STORE_SLOW,     /* its answers are late */
	SIM_STORE_FREEZE,   /* it is frozen */
	SIM_STORE_KILL,     /* it is killed, and comes back with its data */
	SIM_STORE_WIPE,     /* it comes back empty */
	SIM_STORE_EVICT,    /* a lock is removed, without a message or with one */
	SIM_STORE_PEER,     /* a client of another kind holds a lock for a while */
	SIM_STORE_CUT,      /* a connection ends at a script: before or after it, or is mute */
	SIM_STORE_RESET,    /* a device on the path resets a connection */
	SIM_STORE_HOLE,     /* nothing gets through on a connection for a while, or ever */
	SIM_STORE_DELAY,    /* one direction of a connection is slow for good */
	SIM_STORE_ROUTE,    /* connects are refused or unanswered */
	SIM_STORE_FAILOVER, /* a replica becomes the primary; with sentinels only */
	SIM_STORE_LAG,      /* the replica is cut off for a while */
	SIM_STORE_STEP,     /* the clock of the store steps forward */
	SIM_STORE_FAULTS,
};

/* Kinds of faults of consumers with journals, and of their disks. */
enum sim_journal_fault {
	SIM_JOURNAL_KILL,  /* the process is killed, maybe between two steps of its disk */
	SIM_JOURNAL_POWER, /* ... and power fails */
	SIM_JOURNAL_CLOSE, /* the consumer is freed or drained, or its process ends in order */
	SIM_JOURNAL_FULL,  /* the disk is full for a while */
	SIM_JOURNAL_WRITE, /* some writes fail */
	SIM_JOURNAL_SYNC,  /* some syncs fail, and the next ones succeed without the lost bytes */
	SIM_JOURNAL_SLOW,  /* some syncs take long */
	SIM_JOURNAL_CALL,  /* calls of one kind fail */
	SIM_JOURNAL_FLIP,  /* a bit is flipped while no process runs */
	SIM_JOURNAL_FAULTS,
};

/* Return the names of faults for reports. */
const char *sim_journal_fault_name(enum sim_journal_fault fault);
const char *sim_store_fault_name(enum sim_store_fault fault);
const char *sim_fault_name(enum sim_fault fault);

/* Behaviours of handlers; a call selects one of those that the plan enables. */
enum sim_manner {
	SIM_AT_ONCE,
	SIM_LATER, /* mostly before the deadline of the call */
	SIM_NEVER, /* long after the deadline of the call */
	SIM_ERROR,
	SIM_LARGE, /* with a large answer */
	SIM_MANNERS,
};

/* Policies of consumers. */
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

/* Settings of a consumer's calls: policy, retries, limits. */
struct sim_calls_plan {
	enum sim_policy policy;
	unsigned balancer;
	bool idempotent;
	bool once;            /* used by failback, if not idempotent */
	uint64_t hedge_ns;    /* or a percentile; 0: no backups */
	uint32_t retries;     /* 0: none */
	uint32_t forks;       /* used by the forking policy */
	uint64_t period_ns;   /* between two attempts of a ticket */
	uint64_t deadline_ns; /* of a ticket; 0: derived from the other settings */
	uint32_t tickets_max;
	size_t ticket_bytes_max; /* 0: the default */
	bool drops_oldest;
	uint32_t actives;          /* limit for each method; 0: no limit */
	uint32_t endpoint_actives; /* 0: no limit */
	uint32_t connections;
	uint32_t eject_failures; /* 0: no outlier ejection */
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
	uint32_t weight; /* 0: the default; or SPOKE_NONE */
	uint64_t warmup_ns;
	bool frees_inside;   /* the provider may be freed in one of its handlers */
	uint64_t delay_ns;   /* from its start until it is online */
	uint64_t dedupe_ns;  /* time for which it remembers requests; 0: it does not */
	uint32_t dedupe_max; /* requests that it remembers; 0: the default */
	uint32_t executes;   /* 0, or SPOKE_EXECUTES_AUTO */
};

/* The journal of a consumer. */
struct sim_journal_plan {
	bool on;
	bool power; /* its tickets survive the loss of power */
	uint64_t wait_ns;
	uint64_t sync_ns;
	uint32_t segment_size;
	bool salvages; /* a damaged journal is used */
};

struct sim_consumer_plan {
	uint64_t heartbeat_ns;
	uint64_t every_ns; /* between bursts of calls */
	unsigned burst;    /* calls at a time */
	uint64_t timeout_ns;
	uint32_t pending_max;
	bool mprpc;
	bool hessian2;     /* calls in Hessian 2, or in msgpack; with Dubbo's protocol only */
	bool frees_inside; /* the consumer may be freed in one of its callbacks */
	bool registry;     /* the consumer finds its providers in the registry */
	struct sim_calls_plan calls;
	struct sim_journal_plan journal;
};

/* Journals of consumers. */
struct sim_journals_plan {
	bool on;
	bool always;             /* the seed alone would not have them */
	uint32_t faults;         /* bits of enum sim_journal_fault */
	uint64_t fault_every_ns; /* on average */
};

/* Leases of the consumers, all at one store. */
struct sim_leases_plan {
	bool on;
	bool sentinel;           /* with a primary and a replica */
	bool forbids;            /* clients must not kill others */
	unsigned names;          /* of leases */
	unsigned workers;        /* of each consumer; each asks for one lease at a time */
	uint32_t faults;         /* bits of enum sim_store_fault */
	uint64_t fault_every_ns; /* on average */
	uint64_t ttl_ns;
	uint64_t guard_ns;   /* 0: the default; or SPOKE_OFF */
	uint64_t replica_ns; /* delay of the replica */
};

/* The calls of providers to the next ones. */
struct sim_chain_plan {
	uint64_t timeout_ns;
	unsigned policy; /* failover, failfast, forking */
	bool idempotent;
	uint64_t hedge_ns;
	bool wait_ready;
	bool lazy;
};

/* Lists by which providers shut consumers out. */
enum sim_access {
	SIM_ACCESS_FREE,
	SIM_ACCESS_ADDRESS, /* deny.from */
	SIM_ACCESS_CALLER,  /* allow.callers: names of certificates, or addresses without TLS */
	SIM_ACCESS_TOKEN,
};

/* The security of a world. Times are counted from the beginning. */
struct sim_secure_plan {
	bool on;
	bool always; /* the seed alone would not have it */
	bool tls;    /* all links; both sides show certificates */
	enum sim_access access;
	uint32_t barred;   /* a bit for each consumer that is shut out for a while */
	uint64_t shut_ns;  /* when it is */
	uint64_t open_ns;  /* when it is let in again, at the latest when the faults end */
	uint64_t renew_ns; /* when all certificates are replaced, and their authority is withdrawn;
			      0: never */
};

struct sim_plan {
	uint64_t seed;
	uint64_t boot_ahead_ns;   /* start value of the clock that counts sleep, ahead of the other
				     clock */
	bool steady;              /* no faults at all, for measurements */
	bool gateways;            /* only the worlds with gateways are run */
	uint64_t outage_from_ns;  /* all providers are away from this time, counted from the
				     beginning */
	uint64_t outage_until_ns; /* until this time; 0: no outage */
	size_t bytes_max; /* memory limit of a consumer's process; 0: derived from its settings */
	unsigned provider_count;
	unsigned consumer_count;
	struct sim_provider_plan providers[SIM_PROVIDERS];
	struct sim_consumer_plan consumers[SIM_CONSUMERS];
	uint64_t length_ns;      /* of the phase with faults */
	uint64_t fault_every_ns; /* on average; 0: no faults */
	/* How often each provider steps aside or comes back, on average; 0: never. */
	uint64_t step_every_ns;
	uint64_t interval_ns; /* the usual heartbeat interval, the scale of all faults */
	uint32_t faults;      /* bits of enum sim_fault */
	uint32_t manners;     /* bits of enum sim_manner */
	uint32_t one_way_permille;
	size_t size_max; /* of arguments and small answers */
	size_t large;    /* of large answers */
	struct spokei_vnet_link link;
	uint64_t registry_ns; /* usual latency of a registry request */
	/* Time that a consumer needs for one read from a provider that floods it with heartbeats;
	 * 0: none does. */
	uint64_t flood_ns;
	uint64_t registry_retry_ns;   /* retry period of registry requests */
	uint64_t registry_session_ns; /* the registry keeps entries of an ended session this long */
	unsigned chain_permille; /* requests whose handlers make calls; 0: providers make none */
	struct sim_chain_plan chain;
	struct sim_leases_plan leases;
	struct sim_secure_plan secure;
	struct sim_journals_plan journals;
	bool shares;        /* all links of consumers are shared memory */
	bool shares_always; /* ... which the seed alone would not have */
};

/* Draws the plan of a seed. `secure`: a secure world, whatever the seed says. */
void sim_plan_draw(struct sim_plan *plan, uint64_t seed, bool secure);

/* Gives a plan without TLS links of shared memory, one seed in 25 or, with `always`, each. */
void sim_plan_share(struct sim_plan *plan, bool always);

/* Gives consumers of a plan without certificates journals, one seed in five or, with `always`,
 * each. */
void sim_plan_journals(struct sim_plan *plan, bool always);

/* Returns whether the bytes of links are not those that the network carries. */
static inline bool sim_plan_veils(const struct sim_plan *plan)
{
	return plan->secure.tls || plan->shares;
}

/* Plans one consumer and one provider with `per_second` calls and no faults. */
void sim_plan_steady(struct sim_plan *plan, unsigned calls_per_s, uint64_t length_ns);

/* Plans one consumer and one provider that is away for ten minutes, with `per_second` failback
 * calls. */
void sim_plan_outage(struct sim_plan *plan, unsigned calls_per_s, bool drops_oldest);

/* Returns the lifetime of a ticket, counted from its call. */
uint64_t sim_plan_ticket_ns(const struct sim_calls_plan *calls, uint64_t timeout_ns);

static inline bool sim_plan_has(const struct sim_plan *plan, enum sim_fault fault)
{
	return plan->faults & 1u << fault;
}

#endif
