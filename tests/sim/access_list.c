/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access lists of secure worlds: the settings file of each provider, whose lists or tokens shut
 * some consumers out for a while. A provider that is frozen then reads its file when it goes on.
 */
#include "tests/sim/oracle.h"

#include "core/virtual/files.h"

#include <spoke/config.h>

#include <stdio.h>
#include <string.h>

#define TEXT 512u
#define PATH "/provider.conf"

static const char *const tokens[] = { "token-of-those-who-stay", "token-of-the-others" };

static bool is_barred(const struct sim_world *world, unsigned consumer)
{
	return world->plan->secure.barred & 1u << consumer;
}

const char *sim_access_token(const struct sim_consumer *consumer)
{
	const struct sim_world *world = consumer->process.world;

	if (world->plan->secure.access != SIM_ACCESS_TOKEN)
		return NULL;
	return tokens[is_barred(world, consumer->process.number - SIM_PROVIDERS)];
}

/* Appends an entry for each consumer that is barred, or is not. */
static void put_entries(const struct sim_world *world, bool barred, char *text)
{
	const struct sim_secure_plan *plan = &world->plan->secure;
	bool by_address = plan->access == SIM_ACCESS_ADDRESS;
	const char *before = by_address ? "10.0." : plan->tls ? "dns:c" : "addr:10.0.";
	const char *after = by_address ? ".1" : plan->tls ? ".test" : ".0/24";
	size_t used = strlen(text);

	for (unsigned i = 0; i < SIM_CONSUMERS; i++)
		if (is_barred(world, i) == barred)
			used += (size_t)snprintf(text + used, TEXT - used, ", %s%u%s", before, i,
						 after);
}

/* Writes the file with all consumers let in, or some shut out. Each list has an entry of a stranger
 * in any case. */
static void put_file(struct sim_world *world, bool shut)
{
	char text[TEXT];

	switch (world->plan->secure.access) {
	case SIM_ACCESS_FREE:
		return;
	case SIM_ACCESS_ADDRESS:
		(void)snprintf(text, sizeof(text), "[provider]\ndeny.from = 10.9.0.0/16");
		if (shut)
			put_entries(world, true, text);
		break;
	case SIM_ACCESS_CALLER:
		(void)snprintf(text, sizeof(text), "[provider]\nallow.callers = uri:x://stranger");
		put_entries(world, false, text);
		if (!shut)
			put_entries(world, true, text);
		break;
	case SIM_ACCESS_TOKEN:
		(void)snprintf(text, sizeof(text),
			       "[provider]\ntoken.publish = false\ntoken = %s%s%s", tokens[0],
			       shut ? "" : ", ", shut ? "" : tokens[1]);
		break;
	}
	(void)strncat(text, "\n", sizeof(text) - strlen(text) - 1);
	spokei_vfiles_put(world->virt.files, PATH, text);
}

void sim_access_begin(struct sim_world *world)
{
	put_file(world, false);
}

static bool is_shut(const struct sim_world *world)
{
	return world->shut_ns > 0 && world->open_ns == 0;
}

bool sim_access_load(struct sim_provider *provider)
{
	struct sim_process *process = &provider->process;
	const struct sim_world *world = process->world;

	if (world->plan->secure.access == SIM_ACCESS_FREE)
		return true;
	provider->access_number = world->access_number;
	provider->shut_ns = is_shut(world) ? sim_now(process) - process->held_ns : 0;
	return spoke_config_load(&process->virt.env, PATH, NULL, NULL, &provider->config) == 0;
}

/* A provider without memory keeps its old lists, and reads the file again later. */
static void reload(struct sim_provider *provider)
{
	struct sim_process *process = &provider->process;
	const struct sim_world *world = process->world;

	if (process->engine == NULL || provider->config == NULL || provider->provider == NULL ||
	    provider->access_number == world->access_number ||
	    process->virt.held_until_ns > world->virt.now_ns)
		return;
	process->virt.fail_at = 0;
	process->progress++;
	if (spoke_config_reload(provider->config, NULL, NULL))
		return;
	provider->access_number = world->access_number;
	provider->shut_ns = is_shut(world) ? sim_now(process) - process->held_ns : 0;
}

static void change(struct sim_world *world, bool shut)
{
	sim_note(world, shut ? "some consumers are shut out" : "all consumers are let in", 0, 0, 0,
		 0);
	world->access_number++;
	put_file(world, shut);
}

void sim_access_look(struct sim_world *world)
{
	const struct sim_secure_plan *plan = &world->plan->secure;
	uint64_t gone_ns = world->virt.now_ns - world->begun_ns;

	if (plan->access == SIM_ACCESS_FREE)
		return;
	if (world->shut_ns == 0 && !world->healing && gone_ns >= plan->shut_ns) {
		world->shut_ns = world->virt.now_ns;
		world->counts.shut++;
		change(world, true);
	}
	if (is_shut(world) && (world->healing || gone_ns >= plan->open_ns)) {
		world->open_ns = world->virt.now_ns;
		change(world, false);
	}
	for (unsigned i = 0; i < world->plan->provider_count; i++)
		reload(&world->providers[i]);
}

void sim_access_heal(struct sim_world *world)
{
	sim_access_look(world);
}
