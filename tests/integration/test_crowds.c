/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten thousand connections that say nothing but heartbeats, and none of them is killed. Fewer where
 * processes may not have so many descriptors, and then that is said.
 */
#include "tests/integration/rig.h"

#include <sys/resource.h>

#define CROWDS 2u
#define CONNECTIONS 10000u
#define SPARE 200u          /* descriptors of a process besides */
#define HEARTBEAT_MS 10000u /* nobody is starved for four of these */
#define INTERVALS 2u

static struct rig_process *provider;
static struct rig_process *crowds[CROWDS];

/* As many as the limit of descriptors allows: ten thousand, unless it is low. */
static unsigned connections_here(void)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur >= CONNECTIONS + SPARE)
		return CONNECTIONS;
	assert_true(files.rlim_cur >= 2 * SPARE);
	print_message("the limit is low: %llu descriptors\n", (unsigned long long)files.rlim_cur);
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

static void idle_connections_are_asked_and_kept(void **state)
{
	unsigned count = connections_here();
	uint64_t closed;

	(void)state;
	start(count);
	/* An attempt that was given up closes one of the provider's, but none that stands does. */
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RIG_TEST(idle_connections_are_asked_and_kept),
	};

	return cmocka_run_group_tests_name("crowds", tests, NULL, NULL);
}
