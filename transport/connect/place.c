/* SPDX-License-Identifier: Apache-2.0 */
/* Sets an address to connect to, prints it, and looks up its name. */
#include "transport/connect/place.h"

#include "core/base/address.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/range.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int set_path(struct spokei_place *place, const struct spoke_env *env, const char *path)
{
	int status;

	if (strlen(path) > SPOKEI_PLACE_HOST_MAX)
		return SPOKE_ETOOLARGE;
	(void)snprintf(place->name, sizeof(place->name), "unix:%s", path);
	status = env->net->parse(env->ctx, place->name, &place->address);
	if (status == -ENAMETOOLONG)
		return SPOKE_ETOOLARGE;
	if (status)
		return SPOKE_EINVAL;
	place->fixed = true;
	return SPOKE_OK;
}

void spokei_place_share(struct spokei_place *place)
{
	place->shm = true;
	spokei_address_share(place->name);
}

int spokei_place_set(struct spokei_place *place, const struct spoke_env *env, const char *host,
		     uint16_t port, const char *path)
{
	size_t len;

	if (host == NULL)
		return path ? set_path(place, env, path) : SPOKE_EINVAL;
	len = strlen(host);
	if (len == 0)
		return SPOKE_EINVAL;
	if (len > SPOKEI_PLACE_HOST_MAX)
		return SPOKE_ETOOLARGE;
	if (spokei_machine_misspelt((struct spoke_span){ host, len }))
		return SPOKE_EINVAL;
	memcpy(place->host, host, len + 1);
	place->port = port;
	if (strchr(host, ':') && host[0] != '[')
		(void)snprintf(place->name, sizeof(place->name), "[%s]:%u", host, (unsigned)port);
	else
		(void)snprintf(place->name, sizeof(place->name), "%s:%u", host, (unsigned)port);
	place->fixed = env->net->parse(env->ctx, place->name, &place->address) == 0;
	if (host[0] == '[' && host[len - 1] == ']') {
		memmove(place->host, place->host + 1, len - 2);
		place->host[len - 2] = '\0';
	}
	return SPOKE_OK;
}

const char *spokei_place_shown(const char *name)
{
	size_t len = strlen(name);

	return len > SPOKEI_PLACE_SHOWN ? name + len - SPOKEI_PLACE_SHOWN : name;
}

/* --- lookup
 *
 * The thread that looks up touches only the lookup itself and the environment, and may be left
 * behind when the engine ends; then it frees the lookup.
 */

struct lookup {
	struct spoke_work work;
	const struct spoke_env *env;
	spokei_lookup_fn done;
	void *arg;
	atomic_uint holders; /* the loop, and a thread that was left behind */
	int found;           /* result: number of addresses, or a negative errno */
	unsigned max;
	unsigned count;
	struct spoke_address *addresses; /* `max` of them, behind the places */
	struct spokei_place places[];
};

static size_t size_of(unsigned count, unsigned max)
{
	return sizeof(struct lookup) + count * sizeof(struct spokei_place) +
	       max * sizeof(struct spoke_address);
}

/* Runs on a thread of the pool. */
static void look_up(struct spoke_work *work)
{
	struct lookup *lookup = spoke_container_of(work, struct lookup, work);
	const struct spoke_env *env = lookup->env;
	unsigned found = 0;
	int status = -ENOENT;

	for (unsigned i = 0; i < lookup->count && found < lookup->max; i++) {
		const struct spokei_place *place = &lookup->places[i];

		if (place->fixed) {
			lookup->addresses[found++] = place->address;
			continue;
		}
		status = env->net->resolve(env->ctx, place->host, place->port,
					   &lookup->addresses[found], (int)(lookup->max - found));
		if (status > 0)
			found += (unsigned)status;
	}
	lookup->found = found > 0 ? (int)found : status < 0 ? status : -ENOENT;
}

static void free_lookup(struct lookup *lookup)
{
	if (atomic_fetch_sub(&lookup->holders, 1) == 1)
		spokei_free(lookup->env, lookup, 1, size_of(lookup->count, lookup->max));
}

/* Runs on a thread that was left behind. */
static void release(struct spoke_work *work)
{
	free_lookup(spoke_container_of(work, struct lookup, work));
}

static void finish(struct spoke_work *work)
{
	struct lookup *lookup = spoke_container_of(work, struct lookup, work);

	if (work->status)
		lookup->done(lookup->arg, NULL, -ECANCELED);
	else
		lookup->done(lookup->arg, lookup->addresses, lookup->found);
	if (work->status != -EINPROGRESS) /* the thread has finished, or never begun */
		(void)atomic_fetch_sub(&lookup->holders, 1);
	free_lookup(lookup);
}

int spokei_lookup(struct spoke_engine *engine, const struct spokei_place *places, unsigned count,
		  unsigned max, spokei_lookup_fn done, void *arg)
{
	struct lookup *lookup = spokei_alloc(engine->env, 1, size_of(count, max));
	int status;

	if (lookup == NULL)
		return -ENOMEM;
	lookup->work = (struct spoke_work){
		.run = look_up, .done = finish, .urgent = true, .release = release
	};
	lookup->env = engine->env;
	lookup->done = done;
	lookup->arg = arg;
	atomic_init(&lookup->holders, 2);
	lookup->max = max;
	lookup->count = count;
	memcpy(lookup->places, places, count * sizeof(*places));
	lookup->addresses = (struct spoke_address *)(void *)&lookup->places[count];
	status = engine->env->loop->offload(engine->loop, &lookup->work);
	if (status)
		spokei_free(engine->env, lookup, 1, size_of(count, max));
	return status;
}
