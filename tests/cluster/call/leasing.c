/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of tests of calls: see leasing.h. */

#include "tests/cluster/call/leasing.h"
#include "cluster/lease/script.h"
#include "tests/support/redis/redis.h"
#include "tests/support/test.h"

#include <string.h>

#define AT "127.0.0.1:6379"

static struct fakeredis server;
static struct spoke_engine *engine;
static struct spoke_leases *leases;
static struct spokei_world *world;

static void pass(uint64_t ns)
{
	spokei_world_run(world, world->now_ns + ns);
}

void leasing_join(void)
{
	/* The store counts in ms, and the rest of the margin is as small as can be. */
	const struct spoke_leases_options options = {
		.store = "redis://" AT,
		.guard_ns = MS,
	};

	assert_int_equal(spoke_leases_new(engine, &options, &leases), 0);
	pass(20 * MS);
}

void leasing_begin(struct spokei_world *in, struct spoke_engine *of)
{
	world = in;
	engine = of;
	memset(&server, 0, sizeof(server));
	fakeredis_start(&server, world, AT);
	leasing_join();
}

static void note_held(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	bool *held = arg;

	(void)lease;
	assert_int_equal(answer->error, SPOKE_OK);
	*held = true;
}

struct spoke_lease leasing_grant(const char *name, uint64_t valid_ns)
{
	/* A hundredth of the time to live, and 3 ms, are margin. */
	const uint64_t ttl_ns = (valid_ns + 3 * MS) / 99 * 100;
	bool held = false;
	const struct spoke_lease_options options = {
		.ttl_ns = (ttl_ns / MS + 1) * MS,
		.wait_ns = 30 * SECOND,
		.fixed = true,
		.arg = &held,
	};
	struct spoke_lease lease;

	assert_int_equal(spoke_lease_ask(leases, name, &options, note_held, &lease), 0);
	for (unsigned i = 0; i < 31000 && !held; i++)
		pass(i < 1000 ? MS / 100 : MS);
	assert_true(held);
	return lease;
}

void leasing_count(const char *name, const char *last)
{
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE + 1];
	const struct spoke_span span = { name, strlen(name) };

	key[spokei_lease_name(key, SPOKEI_LEASE_TOKEN, span)] = '\0';
	fakeredis_put(&server, key, last);
}

void leasing_release(struct spoke_lease lease)
{
	assert_int_equal(spoke_lease_release(lease, NULL, NULL), 0);
}

void leasing_leave(void)
{
	spoke_leases_free(leases);
	leases = NULL;
}

void leasing_end(void)
{
	fakeredis_stop(&server);
}
