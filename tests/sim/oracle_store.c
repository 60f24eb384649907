/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks the connections to the store of leases, and the scripts that it runs. */
#include "tests/sim/store.h"

#include "timer/base.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- connections */

struct sim_line *sim_line_new(struct sim_process *process, int fd)
{
	struct sim_store *store = process->world->store;
	struct sim_line *line = calloc(1, sizeof(*line));

	if (line == NULL)
		abort();
	line->process = process;
	line->client = ((const struct sim_consumer *)process)->clients;
	line->number = ++store->line_count;
	line->ends[0].line = line;
	line->ends[1].line = line;
	line->ends[0].process = process;
	line->ends[0].fd = fd;
	line->ends[1].fd = -1;
	line->next = store->lines;
	store->lines = line;
	sim_note(process->world, "c% connects to the store: line %", process->number, line->number,
		 0, 0);
	return line;
}

void sim_lines_free(struct sim_world *world)
{
	while (world->store->lines) {
		struct sim_line *line = world->store->lines;

		world->store->lines = line->next;
		free(line);
	}
}

static struct fakeredis *server_of(struct sim_store *store, const struct spokei_vnet_user *user)
{
	for (unsigned i = 0; i < 2; i++)
		if (user == &store->servers[i].process.user)
			return &store->servers[i];
	return &store->sentinel;
}

void sim_line_observe(struct sim_end *end, const struct spokei_vnet_news *news)
{
	struct sim_line *line = end->line;
	bool of_client = end == &line->ends[0];

	if (news->act == SPOKEI_VNET_ACCEPT) {
		end->fd = news->fd;
		line->server = server_of(line->process->world->store, news->user);
	} else if (news->act == SPOKEI_VNET_CLOSE) {
		end->fd = -1;
	}
	if (of_client && news->act != SPOKEI_VNET_ARRIVE)
		line->process->progress++;
}

static struct sim_line *line_of(struct sim_store *store, const struct fakeredis *server, int fd)
{
	struct sim_line *line = store->lines;

	while (line && (line->server != server || line->ends[1].fd != fd))
		line = line->next;
	return line;
}

/* --- grants */

void sim_store_lost(struct sim_world *world, unsigned name)
{
	struct sim_store *store = world->store;
	uint64_t first = store->grant_count > SIM_GRANTS ? store->grant_count - SIM_GRANTS : 0;

	for (uint64_t i = first; i < store->grant_count; i++)
		if (name == UINT_MAX || store->grants[i % SIM_GRANTS].name == name)
			store->grants[i % SIM_GRANTS].lost = true;
	for (unsigned i = 0; i < world->plan->leases.names; i++)
		if (name == UINT_MAX || name == i) {
			store->names[i].holder[0] = '\0';
			store->names[i].told = 0;
		}
}

/* The new primary may have less. */
void sim_store_failed_over(struct sim_world *world)
{
	struct sim_store *store = world->store;
	uint64_t first = store->grant_count > SIM_GRANTS ? store->grant_count - SIM_GRANTS : 0;

	for (uint64_t i = first; i < store->grant_count; i++)
		store->grants[i % SIM_GRANTS].failed_over = true;
	for (unsigned i = 0; i < world->plan->leases.names; i++) {
		struct sim_name *name = &store->names[i];
		struct fakeredis_lock lock;

		if (!fakeredis_lock(store->primary, name->text, &lock) ||
		    strcmp(lock.holder, name->holder) != 0)
			name->holder[0] = '\0';
		name->fence = fakeredis_token(store->primary, name->text);
		name->told = 0;
	}
}

static void granted(struct sim_world *world, struct fakeredis *server, unsigned which,
		    const struct fakeredis_lock *lock)
{
	struct sim_store *store = world->store;
	struct sim_name *name = &store->names[which];
	uint64_t fence = fakeredis_token(server, name->text);
	struct sim_grant *grant = &store->grants[store->grant_count % SIM_GRANTS];
	size_t len = strlen(lock->holder);

	SPOKE_ASSERT(len < SIM_HOLDER);
	store->grant_count++;
	*grant = (struct sim_grant){ .name = which,
				     .fence = fence,
				     .failed_over = server != store->primary };
	memcpy(grant->holder, lock->holder, len);
	sim_note(world, "the store grants name % under number %", which, fence, 0, 0);
	if (server != store->primary)
		return;
	memcpy(name->holder, grant->holder, SIM_HOLDER);
	name->fence = fence;
}

/* --- holders */

static unsigned name_of(const struct sim_world *world, struct spoke_span text)
{
	for (unsigned i = 0; i < world->plan->leases.names; i++)
		if (strlen(world->store->names[i].text) == text.len &&
		    memcmp(world->store->names[i].text, text.data, text.len) == 0)
			return i;
	abort(); /* no worker asks for it */
}

static struct sim_holder *holder_of(struct sim_world *world, unsigned name, struct spoke_span text)
{
	struct sim_store *store = world->store;
	uint32_t hash = 2166136261u + name;
	struct sim_holder *holder;

	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ ((const unsigned char *)text.data)[i]) * 16777619u;
	for (;; hash++) {
		holder = &store->holders[hash % SIM_HOLDERS];
		if (holder->text[0] == '\0')
			break;
		if (holder->name == name && strlen(holder->text) == text.len &&
		    memcmp(holder->text, text.data, text.len) == 0)
			return holder;
	}
	SPOKE_ASSERT(text.len < SIM_HOLDER);
	memcpy(holder->text, text.data, text.len);
	holder->name = name;
	return holder;
}

/* --- scripts */

/* A holder counts if it asks for a lock. */
static void count_holder(struct sim_world *world, const struct sim_line *line,
			 struct sim_holder *holder)
{
	struct sim_store *store = world->store;
	unsigned consumer = line->process->number - SIM_PROVIDERS;

	store->holder_count[consumer] += !holder->counted;
	holder->counted = true;
	if (store->holder_count[consumer] > store->ask_count[consumer])
		sim_violation(world, SIM_S35,
			      "consumer %u has asked for %u leases, and this is holder %u",
			      line->process->number, (unsigned)store->ask_count[consumer],
			      store->holder_count[consumer]);
}

static void acquired(struct sim_world *world, struct fakeredis *server, const struct sim_line *line,
		     const struct fakeredis_run *run)
{
	unsigned which = name_of(world, run->args[3]);
	struct sim_holder *holder = holder_of(world, which, run->args[6]);
	const struct sim_name *name = &world->store->names[which];
	struct fakeredis_lock lock;

	count_holder(world, line, holder);
	holder->released = false;
	if (!fakeredis_lock(server, name->text, &lock) || strcmp(lock.holder, holder->text) != 0)
		return;
	/* A holder that asks again may get it again, if its time was over. */
	if (strcmp(lock.holder, name->holder) != 0 || server != world->store->primary ||
	    fakeredis_token(server, name->text) != name->fence)
		granted(world, server, which, &lock);
}

static void renewed(struct sim_world *world, const struct sim_line *line,
		    const struct fakeredis_run *run)
{
	unsigned keys = (run->count - 3) / 3;

	for (unsigned i = 0; i < keys; i++) {
		const struct sim_holder *holder = holder_of(world, name_of(world, run->args[3 + i]),
							    run->args[3 + keys + 2 * i]);

		if (holder->released && holder->line == line->number)
			sim_violation(world, SIM_S38,
				      "consumer %u renews the lease of holder %s after its release",
				      line->process->number, holder->text);
	}
}

static void released(struct sim_world *world, const struct sim_line *line,
		     const struct fakeredis_run *run)
{
	unsigned which = name_of(world, run->args[3]);
	struct sim_holder *holder = holder_of(world, which, run->args[5]);

	holder->released = true;
	holder->line = line->number;
	if (strcmp(world->store->names[which].holder, holder->text) == 0)
		world->store->names[which].holder[0] = '\0';
}

/* Was the client connected to another server meanwhile? It ends only the connection before. */
static bool was_elsewhere(const struct sim_store *store, const struct sim_line *old,
			  const struct sim_line *new)
{
	for (const struct sim_line *one = store->lines; one; one = one->next)
		if (one->client == old->client && one->number > old->number &&
		    one->number < new->number && one->server != old->server)
			return true;
	return false;
}

/* Checks that no older connection of this client has run it. */
static void check_newest(struct sim_world *world, const struct sim_line *line)
{
	struct sim_store *store = world->store;
	const struct sim_line **newest = &store->newest[line->process->number - SIM_PROVIDERS];

	if (*newest == NULL || line->number >= (*newest)->number)
		*newest = line;
	else if (!world->plan->leases.forbids && (*newest)->server == line->server &&
		 (*newest)->client == line->client && !was_elsewhere(store, line, *newest))
		sim_violation(world, SIM_S36,
			      "line %u of consumer %u runs a script after line %u has",
			      line->number, line->process->number, (*newest)->number);
}

void sim_store_ran(void *arg, struct fakeredis *server, const struct fakeredis_run *run)
{
	struct sim_world *world = arg;
	const struct sim_line *line;

	if (run->script == FAKEREDIS_NO_SCRIPT)
		return;
	line = line_of(world->store, server, run->fd);
	if (line == NULL)
		return;
	sim_note(world, "line %: the store runs script %", line->number, run->script, 0, 0);
	check_newest(world, line);
	if (run->script == FAKEREDIS_ACQUIRE)
		acquired(world, server, line, run);
	else if (run->script == FAKEREDIS_RENEW)
		renewed(world, line, run);
	else if (run->script == FAKEREDIS_RELEASE)
		released(world, line, run);
}
