/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten thousand idle connections with heartbeats only, none of which may be closed. If the limit of
 * descriptors is lower, the test uses fewer connections and prints their number.
 */
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <sys/resource.h>

#define CROWDS 2u
#define CONNECTIONS 10000u
#define SPARE 200u          /* descriptors of a process for other purposes */
#define HEARTBEAT_MS 10000u /* a process starves for less than four of these */
#define INTERVALS 2u

static struct rig_process *provider;
static struct rig_process *crowds[CROWDS];

/* Returns the number of connections that the limit of descriptors allows, at most ten thousand. */
static unsigned connections_here(void)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur >= CONNECTIONS + SPARE)
		return CONNECTIONS;
	assert_true(files.rlim_cur >= 2 * SPARE);
	print_message("low limit of descriptors: %llu\n", (unsigned long long)files.rlim_cur);
	return (unsigned)(files.rlim_cur - SPARE) / CROWDS * CROWDS;
}

static void start(unsigned count)
{
	const char *address;

	provider = rig_provider(NULL, "heartbeat=%u connections=%u", HEARTBEAT_MS, count);
	address = rig_address(provider);
	for (unsigned i = 0; i < CROWDS; i++) {
		crowds[i] =
			rig_consumer(NULL,
				     "url=dubbo://%s/demo.EchoService heartbeat=%u consumers=%u",
				     address, HEARTBEAT_MS, count / CROWDS);
	}
	for (unsigned i = 0; i < CROWDS; i++)
		rig_until_ready(crowds[i], count / CROWDS);
	rig_until_stat(provider, "accepted", count);
}

FIXTURE(rig_set_up, rig_tear_down);

TEST(idle_connections_are_asked_and_kept)
{
	unsigned count = connections_here();
	uint64_t closed;

	start(count);
	/* A connect that timed out closes one of the provider's connections; established
	 * connections stay open. */
	closed = rig_stat(provider, "closed");
	rig_until_stat(provider, "messages_read",
		       rig_stat(provider, "messages_read") + (uint64_t)count * INTERVALS);
	assert_int_equal(rig_stat(provider, "closed"), closed);
	assert_int_equal(rig_count(provider, "link closed * error ESILENT *"), 0);
	for (unsigned i = 0; i < CROWDS; i++) {
		assert_int_equal(rig_stat(crowds[i], "closed"), 0);
		rig_until_ready(crowds[i], count / CROWDS);
		assert_call_works(crowds[i]);
	}
	print_message("%u connections\n", count);
	for (unsigned i = 0; i < CROWDS; i++) {
		assert_ends_well(crowds[i]);
	}
	assert_ends_well(provider);
}
