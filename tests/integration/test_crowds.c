/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand connections that say nothing but heartbeats, and none of them is killed. */
#include "tests/integration/rig.h"

#include <sys/resource.h>

#define CROWDS 2u
#define CONNECTIONS 10000u
#define SPARE 200u /* descriptors of a process besides */
#define HEARTBEAT_MS 2000u
#define INTERVALS 2u

static struct rig_process *provider;
static struct rig_process *crowds[CROWDS];

/* As many as this machine has descriptors for. */
static unsigned connections_here(void)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur >= CONNECTIONS + SPARE)
		return CONNECTIONS;
	assert_true(files.rlim_cur >= 2 * SPARE);
	return (unsigned)(files.rlim_cur - SPARE) / CROWDS * CROWDS;
}

static void idle_connections_are_asked_and_kept(void **state)
{
	unsigned count = connections_here();
	const char *address;

	(void)state;
	provider = rig_provider(NULL, "heartbeat=%u connections=%u", HEARTBEAT_MS, count);
	address = rig_address(provider);
	for (unsigned i = 0; i < CROWDS; i++) {
		crowds[i] =
			rig_consumer(NULL,
				     "url=dubbo://%s/demo.EchoService heartbeat=%u consumers=%u",
				     address, HEARTBEAT_MS, count / CROWDS);
	}
	rig_until_stat(provider, "accepted", count);
	/* The first word of each, and then one of each in every interval. */
	rig_until_stat(provider, "messages_read", (uint64_t)count * (1 + INTERVALS));
	assert_int_equal(rig_stat(provider, "closed"), 0);
	for (unsigned i = 0; i < CROWDS; i++) {
		assert_int_equal(rig_stat(crowds[i], "closed"), 0);
		rig_tell(crowds[i], "ready");
		(void)rig_wait(crowds[i], "ready *");
		assert_call_works(crowds[i]);
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
