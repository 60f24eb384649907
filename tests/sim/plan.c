/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the plan of a seed: settings of all processes, calls and faults. */
#include "tests/sim/plan.h"

#include "cluster/balancer/balancers.h"

#include <spoke/call.h>
#include <spoke/link.h>
#include <spoke/provider.h>

#define LEASES_SEED UINT64_C(0x6c65617365730000)
#define LEASES_PERMILLE 250u /* of all seeds */
#define SECURE_SEED UINT64_C(0x7365637572650000)
#define SECURE_PERMILLE 40u /* of all seeds */
#define SHARES_PERMILLE 40u
#define SHARES_SEED UINT64_C(0x73686d)
#define FLOODS_SEED UINT64_C(0x666c6f6f6400)
#define FLOODS_PERMILLE 150u
#define STEPS_SEED UINT64_C(0x737465707300)
#define STEPS_PERMILLE 300u
#define LIMITS_SEED UINT64_C(0x6c696d69747300)
#define LIMITS_PERMILLE 300u
#define DEDUPE_SEED UINT64_C(0x64656475706500)
#define DEDUPE_PERMILLE 400u
#define CHAINS_SEED UINT64_C(0x706172656e7400)
#define CHAINS_PERMILLE 200u
#define JOURNALS_SEED UINT64_C(0x6a6f7572006e)
#define JOURNALS_PERMILLE 200u
#define OUTAGE_BEFORE_NS (5 * SECOND)
#define OUTAGE_NS (600 * SECOND)
#define OUTAGE_AFTER_NS (5 * SECOND)

static const char *const fault_names[SIM_FAULTS] = {
	[SIM_RESET] = "reset",     [SIM_HALF_OPEN] = "half-open", [SIM_HOLE] = "hole",
	[SIM_DELAY] = "delay",     [SIM_CLOG] = "clog",           [SIM_ROUTE] = "route",
	[SIM_ACCEPT] = "accept",   [SIM_CRASH] = "crash",         [SIM_DRAIN] = "drain",
	[SIM_HOLD] = "hold",       [SIM_STALL] = "stall",         [SIM_MEMORY] = "memory",
	[SIM_REPLAY] = "replay",   [SIM_FLIP] = "flip",           [SIM_SLEEP] = "sleep",
	[SIM_CANCELS] = "cancels", [SIM_CHURN] = "churn",         [SIM_REGISTRY] = "registry",
};

const char *sim_fault_name(enum sim_fault fault)
{
	return fault_names[fault];
}

static const char *const store_fault_names[SIM_STORE_FAULTS] = {
	[SIM_STORE_PHASE] = "phase", [SIM_STORE_FLUSH] = "flush",
	[SIM_STORE_SLOW] = "slow",   [SIM_STORE_FREEZE] = "freeze",
	[SIM_STORE_KILL] = "kill",   [SIM_STORE_WIPE] = "wipe",
	[SIM_STORE_EVICT] = "evict", [SIM_STORE_PEER] = "peer",
	[SIM_STORE_CUT] = "cut",     [SIM_STORE_RESET] = "reset",
	[SIM_STORE_HOLE] = "hole",   [SIM_STORE_DELAY] = "delay",
	[SIM_STORE_ROUTE] = "route", [SIM_STORE_FAILOVER] = "failover",
	[SIM_STORE_STEP] = "step",   [SIM_STORE_LAG] = "lag",
};

const char *sim_store_fault_name(enum sim_store_fault fault)
{
	return store_fault_names[fault];
}

static const char *const journal_fault_names[SIM_JOURNAL_FAULTS] = {
	[SIM_JOURNAL_KILL] = "kill", [SIM_JOURNAL_POWER] = "power", [SIM_JOURNAL_CLOSE] = "close",
	[SIM_JOURNAL_FULL] = "full", [SIM_JOURNAL_WRITE] = "write", [SIM_JOURNAL_SYNC] = "sync",
	[SIM_JOURNAL_SLOW] = "slow", [SIM_JOURNAL_CALL] = "call",   [SIM_JOURNAL_FLIP] = "flip",
};

const char *sim_journal_fault_name(enum sim_journal_fault fault)
{
	return journal_fault_names[fault];
}

/* Returns the heartbeat interval of a process. Most processes of a seed share one; some have
 * another one, or none. */
static uint64_t draw_heartbeat(struct sim_dice *dice, uint64_t usual_ns)
{
	if (sim_chance(dice, 100))
		return SPOKE_OFF;
	if (sim_chance(dice, 400))
		return sim_magnitude(dice, 20 * MS, 2 * SECOND);
	return usual_ns;
}

static void draw_provider(struct sim_dice *dice, struct sim_provider_plan *plan, uint64_t usual_ns)
{
	*plan = (struct sim_provider_plan){
		.heartbeat_ns = draw_heartbeat(dice, usual_ns),
		.requests_max = (uint32_t)sim_magnitude(dice, 4, 1000),
		.requests_per_connection_max = (uint32_t)sim_magnitude(dice, 2, 200),
	};
	if (sim_chance(dice, 300))
		plan->out_high = (size_t)sim_magnitude(dice, 2048, 65536);
	plan->frees_inside = sim_chance(dice, 100);
	plan->warmup_ns = sim_chance(dice, 500) ? SPOKE_OFF
						: sim_magnitude(dice, SECOND, 600 * SECOND);
	if (sim_chance(dice, 300))
		plan->weight = sim_chance(dice, 200) ? SPOKE_NONE
						     : (uint32_t)sim_magnitude(dice, 1, 1000);
}

/* --- calls */

static enum sim_policy draw_policy(struct sim_dice *dice)
{
	unsigned which = (unsigned)sim_between(dice, 0, SIM_POLICIES + 4);

	/* The default policy and the most complex one are chosen more often. */
	if (which < SIM_POLICIES)
		return (enum sim_policy)which;
	return which < SIM_POLICIES + 2 ? SIM_FAILOVER : SIM_FAILBACK;
}

static void draw_tickets(struct sim_dice *dice, struct sim_calls_plan *plan)
{
	plan->period_ns = sim_magnitude(dice, 10 * MS, SECOND);
	if (sim_chance(dice, 400))
		plan->deadline_ns = sim_magnitude(dice, 10 * MS, 4 * SECOND);
	plan->tickets_max = (uint32_t)sim_magnitude(dice, 1, 200);
	if (sim_chance(dice, 200))
		plan->ticket_bytes_max = (size_t)sim_magnitude(dice, 1024, 65536);
	plan->drops_oldest = sim_chance(dice, 500);
}

static unsigned count_balancers(void)
{
	unsigned count = 0;

	while (spokei_balancers[count])
		count++;
	return count;
}

static void draw_calls(struct sim_dice *dice, struct sim_calls_plan *plan)
{
	*plan = (struct sim_calls_plan){
		.policy = draw_policy(dice),
		.balancer = (unsigned)(sim_throw(dice) % count_balancers()),
		.idempotent = sim_chance(dice, 400),
		.retries = (uint32_t)sim_between(dice, 0, 4),
		.forks = (uint32_t)sim_between(dice, 2, 4),
		.connections = sim_chance(dice, 150) ? (uint32_t)sim_between(dice, 2, 3) : 1,
		.wait_ready = sim_chance(dice, 250),
		.sticky = sim_chance(dice, 150),
		.lazy = sim_chance(dice, 150),
	};
	draw_tickets(dice, plan);
	if (sim_chance(dice, 150))
		plan->actives = (uint32_t)sim_magnitude(dice, 1, 50);
	if (sim_chance(dice, 150))
		plan->endpoint_actives = (uint32_t)sim_magnitude(dice, 1, 50);
	if (sim_chance(dice, 500))
		plan->eject_failures = (uint32_t)sim_magnitude(dice, 1, 20);
	plan->eject_ns = sim_magnitude(dice, 10 * MS, 2 * SECOND);
	if (sim_chance(dice, 300))
		plan->hedge_ns = sim_chance(dice, 300) ? SPOKE_PERCENTILE(sim_between(dice, 50, 99))
						       : sim_magnitude(dice, MS, 300 * MS);
}

uint64_t sim_plan_ticket_ns(const struct sim_calls_plan *calls, uint64_t timeout_ns)
{
	return calls->deadline_ns ? calls->deadline_ns
				  : (calls->retries + 1) * (calls->period_ns + timeout_ns);
}

static void draw_consumer(struct sim_dice *dice, struct sim_consumer_plan *plan, uint64_t usual_ns)
{
	*plan = (struct sim_consumer_plan){
		.heartbeat_ns = draw_heartbeat(dice, usual_ns),
		.every_ns = sim_magnitude(dice, 5 * MS, SECOND),
		.burst = sim_chance(dice, 200) ? (unsigned)sim_between(dice, 2, 12) : 1,
		.timeout_ns = sim_magnitude(dice, 5 * MS, SECOND),
		.pending_max = (uint32_t)sim_magnitude(dice, SIM_PROVIDERS + 1, 4096),
		.mprpc = sim_chance(dice, 120),
		.frees_inside = sim_chance(dice, 150),
	};
	plan->registry = !plan->mprpc && sim_chance(dice, 400);
	draw_calls(dice, &plan->calls);
}

static void draw_link(struct sim_dice *dice, struct spokei_vnet_link *link)
{
	if (sim_chance(dice, 700))
		link->latency_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 300))
		link->jitter_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 150))
		link->write_max = (uint32_t)sim_magnitude(dice, 1, 256);
	if (sim_chance(dice, 150))
		link->read_max = (uint32_t)sim_magnitude(dice, 1, 256);
	if (sim_chance(dice, 150))
		link->eagain_permille = (uint32_t)sim_between(dice, 1, 500);
	if (sim_chance(dice, 150))
		link->capacity = (uint32_t)sim_magnitude(dice, 256, 65536);
	if (sim_chance(dice, 100))
		link->bytes_per_s = sim_magnitude(dice, 20000, 2000000);
}

/* Draws sizes of values so large that they are written at once, and links that accept them in
 * pieces. */
static void draw_long(struct sim_plan *plan)
{
	plan->size_max = 60000;
	plan->large = 65000;
	plan->link.write_max *= 256;
	plan->link.read_max *= 256;
	if (plan->link.capacity)
		plan->link.capacity |= 8192;
}

/* Has a generator of its own, so that the rest of the plan is as it would be without leases. */
static void draw_leases(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ LEASES_SEED);
	struct sim_leases_plan *leases = &plan->leases;

	if (!sim_chance(&dice, LEASES_PERMILLE))
		return;
	*leases = (struct sim_leases_plan){
		.on = true,
		.sentinel = sim_chance(&dice, 300),
		.forbids = sim_chance(&dice, 150),
		.names = (unsigned)sim_between(&dice, 1, SIM_NAMES),
		.workers = (unsigned)sim_between(&dice, 1, SIM_WORKERS),
		.fault_every_ns = sim_magnitude(&dice, 20 * MS, SECOND),
		.ttl_ns = sim_magnitude(&dice, 100 * MS, SECOND),

	};
	leases->replica_ns = sim_magnitude(&dice, 100000, leases->ttl_ns / 16);
	for (unsigned i = 0; i < SIM_STORE_FAULTS; i++)
		leases->faults |= sim_chance(&dice, 300) ? 1u << i : 0;
	if (sim_chance(&dice, 500)) /* the store loses nothing */
		leases->faults &= ~(1u << SIM_STORE_WIPE | 1u << SIM_STORE_EVICT |
				    1u << SIM_STORE_STEP);
	if (plan->faults == 0)
		leases->faults = 0;
	if (!leases->sentinel)
		leases->faults &= ~(1u << SIM_STORE_FAILOVER | 1u << SIM_STORE_LAG);
	if (sim_chance(&dice, 300))
		leases->guard_ns = sim_chance(&dice, 300)
					   ? SPOKE_OFF
					   : sim_between(&dice, 1, leases->ttl_ns / 3);
}

/* Has a generator of its own, too. */
static void draw_secure(struct sim_plan *plan, bool always)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ SECURE_SEED);
	struct sim_secure_plan *secure = &plan->secure;

	secure->always = !sim_chance(&dice, SECURE_PERMILLE);
	if (secure->always && !always)
		return;
	secure->on = true;
	secure->tls = sim_chance(&dice, 800);
	secure->access = (enum sim_access)sim_between(&dice, SIM_ACCESS_FREE, SIM_ACCESS_TOKEN);
	secure->barred = (uint32_t)sim_between(&dice, 1, (1u << SIM_CONSUMERS) - 1);
	secure->shut_ns = sim_between(&dice, plan->length_ns / 8, plan->length_ns / 2);
	secure->open_ns = sim_between(&dice, secure->shut_ns, 2 * plan->length_ns);
	if (secure->tls && sim_chance(&dice, 400))
		secure->renew_ns = sim_between(&dice, plan->length_ns / 8, plan->length_ns);
}

void sim_plan_share(struct sim_plan *plan, bool always)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ SHARES_SEED);
	bool drawn = sim_chance(&dice, SHARES_PERMILLE);

	plan->shares = (drawn || always) && !plan->secure.tls;
	plan->shares_always = plan->shares && !drawn;
	if (plan->shares)
		plan->chain_permille = 0;
}

/* Has a generator of its own, too. */
static void draw_floods(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ FLOODS_SEED);

	if (plan->faults && sim_chance(&dice, FLOODS_PERMILLE))
		plan->flood_ns = sim_magnitude(&dice, 20 * MS, 100 * MS);
}

/* Has a generator of its own, too. A notice whose bits are flipped would be lost for good. */
static void draw_steps(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ STEPS_SEED);

	if (!sim_chance(&dice, STEPS_PERMILLE) || plan->faults & 1u << SIM_FLIP)
		return;
	plan->step_every_ns = sim_magnitude(&dice, 10 * MS, SECOND);
	for (unsigned i = 0; i < plan->provider_count; i++)
		if (sim_chance(&dice, 300))
			plan->providers[i].delay_ns = sim_magnitude(&dice, 10 * MS, 500 * MS);
}

/* Has a generator of its own, too. */
static void draw_limits(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ LIMITS_SEED);

	for (unsigned i = 0; i < plan->provider_count; i++)
		if (sim_chance(&dice, LIMITS_PERMILLE))
			plan->providers[i].executes = SPOKE_EXECUTES_AUTO;
}

/* Has a generator of its own, too. */
static void draw_dedupe(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ DEDUPE_SEED);

	if (!sim_chance(&dice, DEDUPE_PERMILLE))
		return;
	for (unsigned i = 0; i < plan->provider_count; i++) {
		if (sim_chance(&dice, 200))
			continue;
		plan->providers[i].dedupe_ns = sim_magnitude(&dice, SECOND, 60 * SECOND);
		if (sim_chance(&dice, 300))
			plan->providers[i].dedupe_max = (uint32_t)sim_magnitude(&dice, 1, 100);
	}
}

/* Has a generator of its own, too. Callers that go away are what it is about. */
static void draw_chains(struct sim_plan *plan)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ CHAINS_SEED);

	if (!sim_chance(&dice, CHAINS_PERMILLE) || plan->provider_count < 2 || plan->secure.on)
		return;
	plan->chain_permille = (unsigned)sim_between(&dice, 200, 900);
	plan->chain = (struct sim_chain_plan){
		.timeout_ns = sim_magnitude(&dice, 10 * MS, SECOND),
		.policy = (unsigned)sim_between(&dice, 0, 2),
		.idempotent = sim_chance(&dice, 500),
		.hedge_ns = sim_chance(&dice, 300) ? sim_magnitude(&dice, MS, 100 * MS) : 0,
		.wait_ready = sim_chance(&dice, 300),
		.lazy = sim_chance(&dice, 300),
	};
	if (plan->faults && sim_chance(&dice, 700))
		plan->faults |= 1u << SIM_CANCELS;
}

static void draw_registry(struct sim_dice *dice, struct sim_plan *plan)
{
	plan->registry_ns = sim_magnitude(dice, 100000, 20 * MS);
	plan->registry_retry_ns = sim_magnitude(dice, 10 * MS, 2 * SECOND);
	plan->registry_session_ns = sim_magnitude(dice, MS, 2 * SECOND);
}

void sim_plan_draw(struct sim_plan *plan, uint64_t seed, bool secure)
{
	struct sim_dice dice = sim_dice_make(seed);
	uint64_t usual_ns = sim_magnitude(&dice, 20 * MS, 500 * MS);

	*plan = (struct sim_plan){
		.seed = seed,
		.provider_count = (unsigned)sim_between(&dice, 1, 3),
		.consumer_count = (unsigned)sim_between(&dice, 1, SIM_CONSUMERS),
		.interval_ns = usual_ns,
		.fault_every_ns = sim_magnitude(&dice, 10 * MS, SECOND),
		.manners = (uint32_t)sim_throw(&dice) | 1u << SIM_AT_ONCE,
		.one_way_permille = sim_chance(&dice, 500) ? 100 : 0,
		.size_max = (size_t)sim_magnitude(&dice, 16, 4096),
		.large = (size_t)sim_magnitude(&dice, 1000, 40000),
	};
	if (sim_chance(&dice, 400)) { /* use many providers */
		plan->provider_count = (unsigned)sim_between(&dice, 3, SIM_PROVIDERS);
		plan->consumer_count = (unsigned)sim_between(&dice, 1, 3);
	}
	plan->length_ns = sim_between(&dice, 10, 40) * usual_ns;
	if (plan->length_ns > 5 * SECOND)
		plan->length_ns = 5 * SECOND;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		plan->faults |= sim_chance(&dice, 375) ? 1u << i : 0;
	if (sim_chance(&dice, 700))
		plan->faults &= ~(1u << SIM_FLIP | 1u << SIM_MEMORY);
	if (sim_chance(&dice, 100))
		plan->faults = 0;
	for (unsigned i = 0; i < plan->provider_count; i++)
		draw_provider(&dice, &plan->providers[i], usual_ns);
	for (unsigned i = 0; i < plan->consumer_count; i++)
		draw_consumer(&dice, &plan->consumers[i], usual_ns);
	draw_link(&dice, &plan->link);
	draw_registry(&dice, plan);
	if (sim_chance(&dice, 100))
		draw_long(plan);
	for (unsigned i = 0; i < plan->consumer_count; i++)
		plan->consumers[i].hessian2 = sim_chance(&dice, 400);
	draw_leases(plan);
	draw_secure(plan, secure);
	draw_floods(plan);
	draw_steps(plan);
	draw_limits(plan);
	draw_dedupe(plan);
	draw_chains(plan);
}

/* Tickets last longer than usual, so that they live through several processes. */
static void draw_journal(struct sim_dice *dice, struct sim_consumer_plan *plan, size_t record)
{
	struct sim_calls_plan *calls = &plan->calls;

	calls->policy = SIM_FAILBACK;
	calls->retries = (uint32_t)sim_between(dice, 0, 4);
	calls->period_ns = sim_magnitude(dice, 10 * MS, SECOND);
	if (sim_chance(dice, 700))
		calls->deadline_ns = sim_magnitude(dice, 100 * MS, 8 * SECOND);
	calls->once = !calls->idempotent && sim_chance(dice, 400);
	plan->journal = (struct sim_journal_plan){
		.on = true,
		.power = sim_chance(dice, 500),
		.wait_ns = sim_magnitude(dice, MS, 200 * MS),
		.sync_ns = sim_magnitude(dice, 10 * MS, SECOND),
		.segment_size = (uint32_t)sim_magnitude(dice, 2048, 65536),
		.salvages = sim_chance(dice, 500),
	};
	/* As in real journals, a segment has room for several of the largest records. */
	if (plan->journal.segment_size < 4 * record)
		plan->journal.segment_size = (uint32_t)(4 * record);
}

void sim_plan_journals(struct sim_plan *plan, bool always)
{
	struct sim_dice dice = sim_dice_make(plan->seed ^ JOURNALS_SEED);

	if ((!sim_chance(&dice, JOURNALS_PERMILLE) && !always) || plan->secure.on)
		return;
	plan->journals = (struct sim_journals_plan){
		.on = true,
		.always = always,
		.fault_every_ns = sim_magnitude(&dice, 20 * MS, SECOND),
	};
	for (unsigned i = 0; i < plan->consumer_count; i++)
		if (i == 0 || sim_chance(&dice, 500))
			draw_journal(&dice, &plan->consumers[i], plan->size_max + 512);
	for (unsigned i = 0; i < SIM_JOURNAL_FAULTS; i++)
		plan->journals.faults |= sim_chance(&dice, i <= SIM_JOURNAL_CLOSE ? 500 : 200)
						 ? 1u << i
						 : 0;
	if (plan->journals.faults == 1u << SIM_JOURNAL_FLIP)
		plan->journals.faults |= 1u << SIM_JOURNAL_KILL;
	if (plan->faults == 0)
		plan->journals.faults = 0;
}

void sim_plan_steady(struct sim_plan *plan, unsigned calls_per_s, uint64_t length_ns)
{
	*plan = (struct sim_plan){
		.seed = 1,
		.steady = true,
		.provider_count = 1,
		.consumer_count = 1,
		.providers = { { .heartbeat_ns = SECOND } },
		.consumers = { { .heartbeat_ns = SECOND,
				 .every_ns = SECOND / calls_per_s,
				 .burst = 1,
				 .timeout_ns = SECOND,
				 .calls = { .retries = 2, .connections = 1 } } },
		.length_ns = length_ns,
		.interval_ns = SECOND,
		.manners = 1u << SIM_AT_ONCE,
		.size_max = 32,
		.link = { .latency_ns = 50000 },
		.registry_ns = MS,
		.registry_retry_ns = SECOND,
		.registry_session_ns = SECOND,
	};
}

void sim_plan_outage(struct sim_plan *plan, unsigned calls_per_s, bool drops_oldest)
{
	sim_plan_steady(plan, calls_per_s, OUTAGE_BEFORE_NS + OUTAGE_NS + OUTAGE_AFTER_NS);
	plan->steady = false;
	plan->bytes_max = (size_t)4 << 20;
	plan->outage_from_ns = OUTAGE_BEFORE_NS;
	plan->outage_until_ns = OUTAGE_BEFORE_NS + OUTAGE_NS;
	plan->consumers[0].calls = (struct sim_calls_plan){
		.policy = SIM_FAILBACK,
		.retries = 3,
		.connections = 1,
		.period_ns = SECOND, /* attempts at this pace exceed the retry budget */
		.tickets_max = SIM_TICKETS,
		.drops_oldest = drops_oldest,
	};
}
