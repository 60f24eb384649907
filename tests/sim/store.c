/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the store of leases, and its faults. */
#include "tests/sim/store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const addresses[2] = { "127.0.0.1:6379", "127.0.0.1:6380" };
static const char *const name_texts[SIM_NAMES] = { "reports", "a {tag} b", "mail" };

#define SENTINEL_AT "127.0.0.1:26379"

static struct sim_store *store_of(struct sim_world *world)
{
	return world->store;
}

static uint64_t draw_until(struct sim_world *world)
{
	return world->virt.now_ns + sim_magnitude(&world->dice, MS, 2 * world->plan->leases.ttl_ns);
}

static const char *address_of(const struct sim_store *store, const struct fakeredis *server)
{
	return addresses[server == &store->servers[1]];
}

static void start_server(struct sim_world *world, struct fakeredis *server)
{
	fakeredis_start(server, &world->virt, address_of(world->store, server));
}

/* --- faults of the primary */

static bool change_phase(struct sim_world *world)
{
	struct sim_store *store = store_of(world);
	unsigned phase = (unsigned)sim_between(&world->dice, FAKEREDIS_LOADING, FAKEREDIS_MISCONF);

	store->phase_until_ns = draw_until(world);
	store->primary->phase = (enum fakeredis_phase)phase;
	sim_note(world, "the store refuses commands, phase %", phase, 0, 0, 0);
	return true;
}

static bool flush(struct sim_world *world)
{
	sim_note(world, "the store forgets its scripts", 0, 0, 0, 0);
	fakeredis_flush_scripts(store_of(world)->primary);
	return true;
}

static bool slow_down(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	store->slow_until_ns = draw_until(world);
	store->primary->delay_ns = sim_magnitude(&world->dice, MS, world->plan->leases.ttl_ns);
	sim_note(world, "the store answers % us late", store->primary->delay_ns / 1000, 0, 0, 0);
	return true;
}

static bool freeze(struct sim_world *world)
{
	struct fakeredis *primary = store_of(world)->primary;
	uint64_t ns = sim_magnitude(&world->dice, MS, 2 * world->plan->leases.ttl_ns);

	if (primary->process.held_until_ns > world->virt.now_ns)
		return false;
	sim_note(world, "the store is frozen for % us", ns / 1000, 0, 0, 0);
	primary->process.held_until_ns = world->virt.now_ns + ns;
	return true;
}

static bool stop(struct sim_world *world, bool wipes)
{
	struct sim_store *store = store_of(world);

	if (!store->primary->running || store->demote_ns)
		return false;
	sim_note(world, wipes ? "the store is killed, and loses all" : "the store is killed", 0, 0,
		 0, 0);
	fakeredis_kill(store->primary);
	store->back_ns = draw_until(world);
	if (wipes) {
		fakeredis_wipe(store->primary);
		sim_store_lost(world, UINT_MAX);
		for (unsigned i = 0; i < SIM_NAMES; i++)
			store->names[i].fence = 0;
	}
	return true;
}

static bool stop_server(struct sim_world *world)
{
	return stop(world, false);
}

static bool wipe(struct sim_world *world)
{
	return stop(world, true);
}

static bool step_clock(struct sim_world *world)
{
	uint64_t ms = sim_magnitude(&world->dice, 1, 2 * world->plan->leases.ttl_ns / MS);

	sim_note(world, "the clock of the store steps by % ms", ms, 0, 0, 0);
	for (unsigned i = 0; i < 2; i++)
		store_of(world)->servers[i].clock_ms += (int64_t)ms;
	sim_store_lost(world, UINT_MAX);
	return true;
}

/* --- faults of a key */

static unsigned any_name(struct sim_world *world)
{
	return (unsigned)(sim_throw(&world->dice) % world->plan->leases.names);
}

static bool evict(struct sim_world *world)
{
	struct sim_store *store = store_of(world);
	unsigned name = any_name(world);
	struct fakeredis_lock lock;

	if (!store->primary->running ||
	    !fakeredis_lock(store->primary, store->names[name].text, &lock))
		return false;
	sim_note(world, "the store loses name %", name, 0, 0, 0);
	if (sim_chance(&world->dice, 500))
		fakeredis_unlock(store->primary, store->names[name].text);
	else
		(void)fakeredis_remove(store->primary, store->names[name].text);
	sim_store_lost(world, name);
	return true;
}

/* Another client takes a lock that is free, and keeps it until its time is over. */
static bool take(struct sim_world *world)
{
	struct sim_store *store = store_of(world);
	unsigned name = any_name(world);
	uint64_t ms = sim_magnitude(&world->dice, 1, 2 * world->plan->leases.ttl_ns / MS);
	struct fakeredis_lock lock;

	if (!store->primary->running ||
	    fakeredis_lock(store->primary, store->names[name].text, &lock))
		return false;
	sim_note(world, "another client takes name % for % ms", name, ms, 0, 0);
	fakeredis_put_lock(store->primary, store->names[name].text,
			   "6b43d2c5-0c15-4ad0-9d66-8a2b9c1c5fbb:1", 1, ms);
	store->names[name].holder[0] = '\0';
	return true;
}

/* --- faults of a connection */

static bool cut(struct sim_world *world)
{
	enum fakeredis_cut how = (enum fakeredis_cut)(sim_throw(&world->dice) % 3);
	enum fakeredis_script script = (enum fakeredis_script)sim_between(&world->dice,
									  FAKEREDIS_ACQUIRE,
									  FAKEREDIS_RELEASE);

	sim_note(world, "the connection of the next script % is cut, way %", script, how, 0, 0);
	fakeredis_cut(store_of(world)->primary, how, "EVALSHA", script, 0);
	return true;
}

static struct sim_line *any_line(struct sim_world *world)
{
	struct sim_line *chosen = NULL;
	unsigned open = 0;

	for (struct sim_line *one = store_of(world)->lines; one; one = one->next)
		if (one->ends[0].fd >= 0 && one->ends[1].fd >= 0 &&
		    sim_throw(&world->dice) % ++open == 0)
			chosen = one;
	return chosen;
}

static struct spokei_vnet_link *link_of(struct sim_world *world, const struct sim_end *end)
{
	return spokei_vnet_link(world->virt.net, end->fd);
}

static bool reset(struct sim_world *world)
{
	const struct sim_line *line = any_line(world);

	if (line == NULL)
		return false;
	sim_note(world, "line % is reset", line->number, 0, 0, 0);
	spokei_vnet_reset(world->virt.net, line->ends[0].fd);
	return true;
}

static bool open_hole(struct sim_world *world)
{
	struct sim_line *line = any_line(world);
	unsigned which = (unsigned)sim_between(&world->dice, 1, 3);

	if (line == NULL)
		return false;
	line->hole_until_ns = sim_chance(&world->dice, 300) ? UINT64_MAX : draw_until(world);
	sim_note(world, "nothing passes on line %, ends %", line->number, which, 0, 0);
	for (unsigned i = 0; i < 2; i++)
		if (which & 1u << i)
			link_of(world, &line->ends[i])->blackhole = true;
	return true;
}

static bool delay(struct sim_world *world)
{
	const struct sim_line *line = any_line(world);
	unsigned which = (unsigned)(sim_throw(&world->dice) % 2);
	uint64_t ns = sim_magnitude(&world->dice, MS, world->plan->leases.ttl_ns);

	if (line == NULL)
		return false;
	sim_note(world, "line % is delayed by % us at end %", line->number, ns / 1000, which, 0);
	link_of(world, &line->ends[which])->latency_ns = ns;
	return true;
}

static bool change_route(struct sim_world *world)
{
	static const enum spokei_vnet_route routes[] = { SPOKEI_VNET_REFUSE, SPOKEI_VNET_SILENT,
							 SPOKEI_VNET_UNREACHABLE,
							 SPOKEI_VNET_AT_ONCE };
	struct sim_store *store = store_of(world);
	unsigned which = (unsigned)(sim_throw(&world->dice) % 4);

	sim_note(world, "the route to the store is now: %r", routes[which], 0, 0, 0);
	spokei_vnet_route(world->virt.net, address_of(store, store->primary), routes[which]);
	store->route_until_ns = draw_until(world);
	return true;
}

/* --- failover */

static void undo_faults(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	store->primary->phase = FAKEREDIS_NORMAL;
	store->primary->delay_ns = 0;
	spokei_vnet_route(world->virt.net, addresses[0], SPOKEI_VNET_NORMAL);
	spokei_vnet_route(world->virt.net, addresses[1], SPOKEI_VNET_NORMAL);
}

/* Returns the replica of the present primary, or NULL. */
static struct fakeredis *replica_of(struct sim_store *store)
{
	struct fakeredis *other = &store->servers[store->primary == &store->servers[0]];

	return other->primary == store->primary ? other : NULL;
}

static bool lag(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	if (replica_of(store) == NULL)
		return false;
	sim_note(world, "the replica is cut off", 0, 0, 0, 0);
	fakeredis_cut_off(replica_of(store), true);
	store->lag_until_ns = draw_until(world);
	return true;
}

/* The replica becomes the primary. The old one dies, or does not know for a while. */
static bool fail_over(struct sim_world *world)
{
	struct sim_store *store = store_of(world);
	struct fakeredis *old = store->primary;
	struct fakeredis *new = replica_of(store);

	if (store->demote_ns || store->back_ns || new == NULL ||
	    old->process.held_until_ns > world->virt.now_ns)
		return false;
	undo_faults(world);
	fakeredis_cut(old, FAKEREDIS_CUT_BEFORE, NULL, FAKEREDIS_NO_SCRIPT, 0);
	fakeredis_promote(new);
	if (sim_chance(&world->dice, 500))
		fakeredis_kill(old);
	sim_note(world, "the replica is promoted; the old primary runs: %", old->running, 0, 0, 0);
	store->old = old;
	store->primary = new;
	store->demote_ns = draw_until(world);
	sim_store_failed_over(world);
	fakeredis_switch(&store->sentinel, new);
	return true;
}

static void demote(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	sim_note(world, "the old primary becomes a replica", 0, 0, 0, 0);
	store->demote_ns = 0;
	if (!store->old->running)
		start_server(world, store->old);
	fakeredis_follow(store->old, store->primary, world->plan->leases.replica_ns);
}

/* --- all kinds */

static bool (*const begin[SIM_STORE_FAULTS])(struct sim_world *world) = {
	[SIM_STORE_PHASE] = change_phase,
	[SIM_STORE_FLUSH] = flush,
	[SIM_STORE_SLOW] = slow_down,
	[SIM_STORE_FREEZE] = freeze,
	[SIM_STORE_KILL] = stop_server,
	[SIM_STORE_WIPE] = wipe,
	[SIM_STORE_EVICT] = evict,
	[SIM_STORE_PEER] = take,
	[SIM_STORE_CUT] = cut,
	[SIM_STORE_RESET] = reset,
	[SIM_STORE_HOLE] = open_hole,
	[SIM_STORE_DELAY] = delay,
	[SIM_STORE_ROUTE] = change_route,
	[SIM_STORE_FAILOVER] = fail_over,
	[SIM_STORE_STEP] = step_clock,
	[SIM_STORE_LAG] = lag,
};

void sim_store_fault(struct sim_world *world)
{
	const struct sim_leases_plan *plan = &world->plan->leases;
	struct sim_store *store = store_of(world);
	unsigned fault;

	store->next_fault_ns = world->virt.now_ns +
			       sim_between(&world->dice, 1, 2 * plan->fault_every_ns);
	do
		fault = (unsigned)(sim_throw(&world->dice) % SIM_STORE_FAULTS);
	while (!(plan->faults & 1u << fault));
	if (begin[fault](world)) {
		world->counts.faults++;
		world->counts.of_store_fault[fault]++;
	}
}

static bool is_due(uint64_t *due_ns, const struct sim_world *world)
{
	if (*due_ns == 0 || *due_ns > world->virt.now_ns)
		return false;
	*due_ns = 0;
	return true;
}

void sim_store_look(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	if (store == NULL)
		return;
	if (is_due(&store->phase_until_ns, world))
		store->primary->phase = FAKEREDIS_NORMAL;
	if (is_due(&store->slow_until_ns, world))
		store->primary->delay_ns = 0;
	if (is_due(&store->route_until_ns, world))
		for (unsigned i = 0; i < 2; i++)
			spokei_vnet_route(world->virt.net, addresses[i], SPOKEI_VNET_NORMAL);
	if (is_due(&store->lag_until_ns, world) && replica_of(store))
		fakeredis_cut_off(replica_of(store), false);
	if (is_due(&store->back_ns, world))
		start_server(world, store->primary);
	if (is_due(&store->demote_ns, world))
		demote(world);
	for (struct sim_line *line = store->lines; line; line = line->next) {
		if (!is_due(&line->hole_until_ns, world))
			continue;
		for (unsigned i = 0; i < 2; i++)
			if (line->ends[i].fd >= 0)
				link_of(world, &line->ends[i])->blackhole = false;
	}
}

void sim_store_heal(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	if (store == NULL)
		return;
	undo_faults(world);
	fakeredis_cut(store->primary, FAKEREDIS_CUT_BEFORE, NULL, FAKEREDIS_NO_SCRIPT, 0);
	store->phase_until_ns = store->slow_until_ns = store->route_until_ns = 0;
	if (replica_of(store))
		fakeredis_cut_off(replica_of(store), false);
	if (store->back_ns)
		store->back_ns = world->virt.now_ns;
	if (store->demote_ns)
		store->demote_ns = world->virt.now_ns;
	for (struct sim_line *line = store->lines; line; line = line->next) {
		line->hole_until_ns = 0;
		if (line->ends[1].fd >= 0)
			spokei_vnet_reset(world->virt.net, line->ends[1].fd);
	}
}

void sim_store_sever(struct sim_process *process)
{
	struct sim_world *world = process->world;

	if (world->store == NULL)
		return;
	sim_note(world, "c% is killed", process->number, 0, 0, 0);
	for (const struct sim_line *line = world->store->lines; line; line = line->next)
		for (unsigned i = 0; i < 2; i++)
			if (line->process == process && line->ends[i].fd >= 0)
				link_of(world, &line->ends[i])->blackhole = true;
}

void sim_store_sleep(struct sim_world *world, uint64_t ns)
{
	if (world->store == NULL)
		return;
	for (unsigned i = 0; i < 2; i++)
		world->store->servers[i].process.boot_ahead_ns += ns;
}

/* --- life */

void sim_store_start(struct sim_world *world)
{
	static struct sim_store store;
	const struct sim_leases_plan *plan = &world->plan->leases;

	world->store = NULL;
	if (!plan->on)
		return;
	memset(&store, 0, sizeof(store));
	world->store = &store;
	store.primary = &store.servers[0];
	store.next_fault_ns = plan->faults ? world->virt.now_ns + plan->fault_every_ns : UINT64_MAX;
	for (unsigned i = 0; i < plan->names; i++)
		(void)snprintf(store.names[i].text, sizeof(store.names[i].text), "%s",
			       name_texts[i]);
	for (unsigned i = 0; i < 2; i++) {
		store.servers[i].ran = sim_store_ran;
		store.servers[i].ran_arg = world;
		if (plan->forbids)
			store.servers[i].forbidden[0] = "client|kill";
	}
	start_server(world, &store.servers[0]);
	if (!plan->sentinel)
		return;
	start_server(world, &store.servers[1]);
	fakeredis_follow(&store.servers[1], &store.servers[0], plan->replica_ns);
	store.sentinel.sentinel = "sim";
	store.sentinel.watched = store.primary;
	fakeredis_start(&store.sentinel, &world->virt, SENTINEL_AT);
}

void sim_store_stop(struct sim_world *world)
{
	struct sim_store *store = store_of(world);

	if (store == NULL)
		return;
	fakeredis_stop(&store->sentinel);
	fakeredis_stop(&store->servers[1]);
	fakeredis_stop(&store->servers[0]);
	sim_lines_free(world);
	world->store = NULL;
}
