/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of secure worlds: the files with certificates, which all processes of a world read. Once in a
 * run, new certificates of a new authority replace all of them. A process that lives is told so;
 * one that is frozen then reads them when it goes on. Threads that take steps of handshakes are
 * late at times.
 */
#include "tests/sim/oracle.h"

#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "core/engine/engine.h"
#include "core/virtual/files.h"
#include "transport/stream/tls/tls.h"

#include <spoke/stats.h>

#include <stdio.h>

#define LAG_SEED UINT64_C(0x1a6)

static void path_of(unsigned which, char path[static 16])
{
	(void)snprintf(path, 16, "/%u.pem", which);
}

static void put_files(struct sim_world *world)
{
	char path[16];

	for (unsigned i = 0; i < SIM_CERTS; i++) {
		path_of(i, path);
		spokei_vfiles_put(world->virt.files, path, sim_cert(i, world->certs));
	}
}

void sim_secure_begin(struct sim_world *world)
{
	const struct sim_secure_plan *plan = &world->plan->secure;

	world->counts.secure += plan->on;
	world->counts.shares += world->plan->shares;
	if (!plan->tls)
		return;
	world->counts.tls++;
	spokei_vnet_veil(world->virt.net);
	put_files(world);
	world->lag_dice = sim_dice_make(world->plan->seed ^ LAG_SEED);
}

const struct spoke_tls_options *sim_secure_options(struct sim_process *process)
{
	static char paths[3][16];
	static struct spoke_tls_options options;
	bool provides = sim_is_provider(process);
	unsigned cert = provides ? SIM_CERT_PROVIDER
				 : SIM_CERT_CONSUMERS + 2 * (process->number - SIM_PROVIDERS);

	if (!process->world->plan->secure.tls)
		return NULL;
	path_of(SIM_CERT_AUTHORITY, paths[0]);
	path_of(cert, paths[1]);
	path_of(cert + 1, paths[2]);
	options = (struct spoke_tls_options){
		.ca = paths[0],
		.cert = paths[1],
		.key = paths[2],
		.peers = provides ? NULL : "dns:provider.test",
	};
	process->certs = process->world->certs;
	if (provides)
		((struct sim_provider *)process)->renewed_ns = 0;
	return &options;
}

static struct spokei_tls *tls_of(struct sim_process *process)
{
	if (sim_is_provider(process)) {
		const struct sim_provider *provider = (struct sim_provider *)process;

		return provider->provider ? provider->provider->tls : NULL;
	}
	return ((struct sim_consumer *)process)->consumer
		       ? ((struct sim_consumer *)process)->consumer->tls
		       : NULL;
}

static void look_at(struct sim_process *process)
{
	struct sim_world *world = process->world;
	struct spokei_tls *tls = process->engine ? tls_of(process) : NULL;
	struct sim_provider *provider = (struct sim_provider *)process;

	if (tls == NULL || process->virt.held_until_ns > world->virt.now_ns)
		return;
	if (process->certs != world->certs) {
		sim_note(world, "process % reads the new certificates", process->number, 0, 0, 0);
		process->certs = world->certs;
		if (sim_is_provider(process))
			provider->told_ns = sim_now(process);
		spokei_tls_reload(tls);
	} else if (sim_is_provider(process) && provider->renewed_ns == 0 &&
		   spoke_stat_get(process->engine, SPOKE_STAT_TLS_RELOADS) > 0) {
		provider->renewed_ns = sim_now(process) - process->held_ns;
	}
}

/* Has the thread that takes steps of handshakes be late, at some looks. Not while the world heals.
 */
static void lag(struct sim_process *process)
{
	struct sim_world *world = process->world;
	struct spokei_world_process *virt = &process->virt;
	const struct spoke_engine *engine = process->engine;
	bool ends = world->healing || sim_chance(&world->lag_dice, 300);

	if (!virt->background_waits) {
		virt->background_waits = !world->healing && sim_chance(&world->lag_dice, 150);
	} else if (ends) {
		virt->background_waits = false;
		if (engine)
			engine->env->loop->wake(engine->loop);
	}
}

void sim_secure_look(struct sim_world *world)
{
	const struct sim_secure_plan *plan = &world->plan->secure;

	for (unsigned i = 0; plan->tls && i < SIM_PROCESSES; i++)
		if (sim_process_at(world, i)->world)
			lag(sim_process_at(world, i));
	if (!plan->tls || plan->renew_ns == 0 ||
	    world->virt.now_ns < world->begun_ns + plan->renew_ns)
		return;
	if (world->certs == 0) {
		sim_note(world, "all certificates are replaced", 0, 0, 0, 0);
		world->counts.renewed++;
		world->certs = 1;
		put_files(world);
	}
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		if (sim_process_at(world, i)->world)
			look_at(sim_process_at(world, i));
}
