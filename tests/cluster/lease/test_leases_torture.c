/* SPDX-License-Identifier: Apache-2.0 */
/* Leases while calls of the environment fail, each in turn: memory, sockets. Every ask is told
 * once, every lease ends once, and nothing leaks. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define rig leaserig

#define FAULTS_MAX 4000 /* calls of one kind in a run */

/* Asks for a lease if that is possible, and does not mind if it is not. */
static void ask(const char *name, uint64_t wait_ns, uint64_t ttl_ns)
{
	const struct spoke_lease_options options = { .wait_ns = wait_ns, .ttl_ns = ttl_ns };

	(void)leaserig_ask_if(&rig.one, name, &options);
}

static void release_held(void)
{
	for (unsigned i = 0; i < rig.asked; i += 2) {
		if (spoke_lease_fence(rig.asks[i].lease) > 0)
			leaserig_release(&rig.asks[i]);
	}
}

/* Leases that are held, waited for, renewed, released, lost and cancelled. */
static void play(void)
{
	static char long_name[300];

	memset(long_name, 'l', sizeof(long_name) - 1);
	if (spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.one.faulty.env,
							     .timers_max = 64 },
			     &rig.one.engine) ||
	    spoke_leases_new(rig.one.engine,
			     &(struct spoke_leases_options){ .store = "redis://" LEASERIG_AT },
			     &rig.one.leases))
		return;
	ask("a", 0, 0);
	ask("b", SPOKE_LEASE_FOREVER, SECOND);
	ask(long_name, SPOKE_LEASE_FOREVER, 0);
	leaserig_pass(SECOND);
	ask("a", SPOKE_LEASE_FOREVER, 0);
	ask("a", 3 * SECOND, 0);
	ask("c", 2 * SECOND, SECOND);
	leaserig_pass(SECOND);
	fakeredis_reset_all(&rig.server);
	leaserig_pass(2 * SECOND);
	release_held();
	leaserig_pass(SECOND);
	fakeredis_flush_scripts(&rig.server);
	ask("d", SPOKE_LEASE_FOREVER, 0);
	leaserig_pass(2 * SECOND);
	(void)fakeredis_remove(&rig.server, "d");
	leaserig_pass(LEASERIG_TTL / 3);
}

/* After the failure the leases work again. */
static void recover(void)
{
	const struct leaserig_ask *last;

	last = leaserig_ask_if(&rig.one, "last",
			       &(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER });
	assert_non_null(last);
	leaserig_pass(40 * SECOND);
	assert_int_equal(last->told, 1);
	assert_int_equal(last->error, SPOKE_OK);
	assert_int_equal(last->lost, 0);
}

/* Fails each call of a kind; the run has more than `least` of them. */
static void fail_each(enum spokei_faults_kind kind, int error, bool for_ever, uint64_t least)
{
	for (uint64_t nth = 1; nth < FAULTS_MAX; nth++) {
		void *state = NULL;
		bool failed;

		assert_int_equal(leaserig_set_up_world(&state), 0);
		spoke_engine_free(rig.one.engine);
		rig.one.engine = NULL;
		spokei_faults_fail(&rig.one.faulty, kind, nth, error, for_ever);
		play();
		failed = rig.one.faulty.failed[kind] > 0;
		spokei_faults_heal(&rig.one.faulty);
		if (rig.one.leases)
			recover();
		assert_int_equal(leaserig_tear_down(&state), 0);
		if (!failed) {
			assert_true(nth > least);
			return;
		}
	}
	fail_msg("more than %d calls", FAULTS_MAX);
}

TEST(leases_survive_each_failure_of_memory)
{
	fail_each(SPOKEI_FAULTS_MEMORY, -ENOMEM, false, 20);
}

TEST(leases_survive_lasting_lack_of_memory)
{
	fail_each(SPOKEI_FAULTS_MEMORY, -ENOMEM, true, 20);
}

TEST(leases_survive_failures_of_the_network)
{
	static const struct {
		enum spokei_faults_kind kind;
		uint64_t least;
	} rows[] = {
		{ SPOKEI_FAULTS_CONNECT, 3 },
		{ SPOKEI_FAULTS_FINISH, 3 },
		{ SPOKEI_FAULTS_READ, 40 },
		{ SPOKEI_FAULTS_WRITE, 20 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fail_each(rows[i].kind, -ECONNRESET, false, rows[i].least);
}
