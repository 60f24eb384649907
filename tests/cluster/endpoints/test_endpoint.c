/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of an endpoint for a call: failures, limits, and connections that are not open yet. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"

#include <errno.h>

static const struct spoke_consumer_options presets;

static void start(unsigned count, const char *parameters,
		  const struct spoke_consumer_options *options)
{
	for (unsigned i = 0; i < count; i++)
		dirrig_start(i);
	dirrig_consume(parameters, options);
	dirrig_beat(MS);
	LIST(A, B);
	dirrig_pass(10 * MS);
}

static void call(unsigned times, int error)
{
	for (unsigned i = 0; i < times; i++)
		assert_int_equal(dirrig_call(), error);
}

static void assert_served(unsigned first, unsigned second)
{
	assert_int_equal(dirrig_served(0), first);
	assert_int_equal(dirrig_served(1), second);
}

/* --- failures */

#define EJECT "?eject.failures=3&eject.time=1s"

/* Makes the first endpoint fail until it is ejected. */
static void eject_first(void)
{
	start(2, EJECT, &presets);
	dirrig.sides[0].mute = true;
	for (int i = 0; i < 6; i++)
		(void)dirrig_call();
	assert_true(dirrig_info(0).ejected);
	assert_int_equal(dirrig_info(0).failures, 3);
	assert_false(dirrig_info(1).ejected);
	assert_served(3, 3);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(repeated_failures_eject_endpoint)
{
	eject_first();
	call(6, SPOKE_OK);
	assert_served(0, 6);
}

TEST(only_consecutive_failures_eject)
{
	start(2, EJECT, &presets);
	for (int i = 0; i < 4; i++) {
		dirrig.sides[0].mute = true;
		for (int k = 0; k < 4; k++)
			(void)dirrig_call();
		dirrig.sides[0].mute = false;
		call(2, SPOKE_OK);
	}
	assert_int_equal(dirrig_info(0).failures, 8);
	assert_false(dirrig_info(0).ejected);
}

/* Makes four calls. Returns how many of them the first endpoint got. */
static unsigned probes(void)
{
	(void)dirrig_served(0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_try(50 * MS), SPOKE_OK);
	dirrig_pass(60 * MS);
	return dirrig_served(0);
}

/* Ejections last 1 s, 1.6 s, 2.56 s, plus or minus 20 %. */
TEST(failed_probe_lengthens_ejection)
{
	static const uint64_t least_ms[] = { 800, 1280, 2048 };
	static const uint64_t most_ms[] = { 1200, 1920, 3072 };

	eject_first();
	/* It was ejected up to 120 ms ago. */
	dirrig_pass(1000 * MS);
	for (int i = 1; i < 3; i++) {
		dirrig_pass((most_ms[i - 1] - least_ms[i - 1]) * MS);
		assert_int_equal(probes(), 1);
		dirrig_pass((least_ms[i] - 70) * MS);
		assert_int_equal(probes(), 0);
		assert_true(dirrig_info(0).ejected);
	}
}

TEST(answered_probe_ends_ejection)
{
	eject_first();
	dirrig.sides[0].mute = false;
	dirrig_pass(1200 * MS);
	call(2, SPOKE_OK);
	assert_false(dirrig_info(0).ejected);
	(void)dirrig_served(0);
	(void)dirrig_served(1);
	call(6, SPOKE_OK);
	assert_served(3, 3);
}

/* A call that its user gives up says nothing of its endpoint. */
TEST(cancelled_probe_does_not_end_ejection)
{
	eject_first();
	dirrig_pass(1200 * MS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_served(0), 1);
	for (unsigned i = 0; i < dirrig.begun; i++)
		(void)spoke_call_cancel(dirrig.consumer, dirrig.calls[i].name);
	dirrig_pass(10 * MS);
	assert_true(dirrig_info(0).ejected);
	assert_int_equal(dirrig_info(0).failures, 3);
	assert_int_equal(probes(), 1);
}

/* A reply to a request from before the ejection does not prove that the endpoint has recovered. */
TEST(late_answer_does_not_end_ejection)
{
	start(2, EJECT, &presets);
	dirrig.sides[0].mute = true;
	assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	for (int i = 0; i < 6; i++)
		(void)dirrig_call();
	assert_true(dirrig_info(0).ejected);
	dirrig_answer(0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
	assert_true(dirrig_info(0).ejected);
}

TEST(last_usable_endpoint_is_never_ejected)
{
	start(2, EJECT, &presets);
	dirrig.sides[0].mute = true;
	dirrig.sides[1].mute = true;
	call(12, SPOKE_ETIMEOUT);
	assert_true(dirrig_info(0).ejected != dirrig_info(1).ejected);
}

TEST(ejected_endpoint_is_used_if_no_other_can)
{
	eject_first();
	dirrig.sides[0].mute = false;
	dirrig_stop(1);
	dirrig_pass(10 * MS);
	call(1, SPOKE_OK);
	assert_int_equal(dirrig_served(0), 1);
	assert_false(dirrig_info(0).ejected);
}

TEST(lost_connection_counts_as_one_failure)
{
	start(2, EJECT, &presets);
	dirrig.sides[0].mute = true;
	dirrig.sides[1].mute = true;
	for (int i = 0; i < 20; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	dirrig_stop(0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_info(0).failures, 10);
	assert_false(dirrig_info(0).ejected);
}

/* A rejection for overload is a valid reply. */
TEST(refusals_do_not_eject)
{
	dirrig.sides[0].requests_max = 1;
	dirrig.sides[0].mute = true;
	start(2, EJECT, &presets);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 10; i++)
		(void)dirrig_call();
	assert_int_equal(dirrig_info(0).failures, 5);
	assert_false(dirrig_info(0).ejected);
}

/* --- limits, and choosing again */

TEST(endpoint_at_its_limit_is_excluded)
{
	struct spoke_consumer_options options = { .endpoint_actives_max = 2 };

	start(2, "", &options);
	dirrig.sides[0].mute = true;
	dirrig.sides[1].mute = true;
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	assert_int_equal(dirrig_info(0).actives, 2);
	assert_int_equal(dirrig_info(1).actives, 2);
	assert_int_equal(dirrig_try(SECOND), SPOKE_ELIMIT);
	dirrig_pass(10 * MS);
	dirrig_answer(1);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	assert_int_equal(dirrig_info(1).actives, 2);
	assert_int_equal(dirrig_try(SECOND), SPOKE_ELIMIT);
}

TEST(endpoint_below_its_limit_is_chosen_again)
{
	struct spoke_consumer_options options = { .endpoint_actives_max = 2 };

	start(2, "", &options);
	dirrig.sides[0].mute = true;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
		dirrig_pass(10 * MS);
	}
	assert_int_equal(dirrig_info(0).actives, 2);
	dirrig_pass(10 * MS);
	(void)dirrig_served(0);
	call(4, SPOKE_OK);
	assert_int_equal(dirrig_served(0), 0);
	dirrig.sides[0].mute = false;
	dirrig_answer(0);
	dirrig_pass(2 * MS);
	(void)dirrig_served(1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	assert_served(1, 1);
}

#define LARGE (6u << 20) /* a connection queues at most two */

static int try_large(void)
{
	static unsigned char bytes[LARGE + 5] = { 0xc6, LARGE >> 24, LARGE >> 16 };
	const struct spoke_call_options options = { .timeout_ns = 60 * SECOND };

	return spoke_call(dirrig.echo, (struct spoke_span){ bytes, sizeof(bytes) }, &options, NULL,
			  NULL, NULL);
}

/* Neither endpoint is connected yet, and the requests waiting for one of them fill its queue. */
static void fill_both(const struct spoke_policy *policy)
{
	const struct spoke_consumer_options options = { .policy = policy, .sticky = true };

	spokei_vnet_route(dirrig.world.net, "127.0.0.1:20880", SPOKEI_VNET_SILENT);
	spokei_vnet_route(dirrig.world.net, "127.0.0.1:20881", SPOKEI_VNET_SILENT);
	dirrig_consume("", &options);
	LIST(A, B);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(try_large(), SPOKE_OK);
		assert_in_range(dirrig_info(0).actives, 0, 2);
		assert_in_range(dirrig_info(1).actives, 0, 2);
	}
	assert_int_equal(try_large(), SPOKE_ELIMIT);
	/* A moment later there is room again for a smaller request. */
	dirrig_pass(20 * MS);
	assert_int_equal(dirrig_try(SECOND), SPOKE_OK);
}

TEST(single_attempt_avoids_endpoint_with_full_queue)
{
	fill_both(&spoke_policy_available);
}

TEST(retries_avoid_endpoint_with_full_queue)
{
	fill_both(&spoke_policy_failover);
	assert_int_equal(spoke_stat_get(dirrig.engine, SPOKE_STAT_RETRIES), 0);
}

TEST(sticky_choice_holds_while_usable)
{
	struct spoke_consumer_options options = { .sticky = true };
	unsigned first;

	start(2, "", &options);
	call(4, SPOKE_OK);
	first = dirrig.sides[0].served > 0 ? 0 : 1;
	assert_int_equal(dirrig_served(first), 4);
	dirrig_stop(first);
	dirrig_pass(10 * MS);
	call(2, SPOKE_OK);
	assert_int_equal(dirrig_served(1 - first), 2);
	dirrig_start(first);
	dirrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 2);
	call(2, SPOKE_OK);
	assert_int_equal(dirrig_served(1 - first), 2);
}

TEST(in_order_policy_calls_first_usable_endpoint)
{
	struct spoke_consumer_options options = { .policy = &spoke_policy_available };

	start(2, "", &options);
	call(3, SPOKE_OK);
	assert_served(3, 0);
	dirrig_stop(0);
	dirrig_pass(10 * MS);
	call(3, SPOKE_OK);
	assert_served(0, 3);
}

/* --- connections */

TEST(lazy_endpoint_connects_on_first_call)
{
	struct spoke_consumer_options options = { .lazy = true };

	start(2, "", &options);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.consumer->link->conn_count, 0);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 0);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_IDLE);
	call(1, SPOKE_OK);
	assert_int_equal(dirrig.consumer->link->conn_count, 1);
	call(1, SPOKE_OK);
	assert_served(1, 1);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 2);
}

TEST(unreachable_lazy_endpoints_are_skipped)
{
	struct spoke_consumer_options options = { .lazy = true };

	start(0, "", &options);
	spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_CONNECT, 1, -ENETUNREACH, true);
	assert_int_equal(dirrig_try(SECOND), SPOKE_EUNAVAILABLE);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_BACKOFF);
	assert_int_equal(dirrig_info(1).state, SPOKE_ENDPOINT_BACKOFF);
	spokei_faults_heal(&dirrig.faulty);
}

TEST(several_connections_are_used_in_turn)
{
	struct spoke_consumer_options options = { .connections = 3 };
	const struct spoke_list *conns;

	start(1, "", &options);
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_info(0).connections, 3);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 1);
	dirrig.sides[0].mute = true;
	for (int i = 0; i < 6; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	conns = &dirrig.consumer->link->conns;
	for (struct spoke_list *node = conns->next; node != conns; node = node->next)
		assert_int_equal(spoke_container_of(node, struct spokei_conn, node)->pendings.count,
				 2);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.consumer->link->conn_count, 3);
	dirrig_answer(0);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.consumer->link->conn_count, 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(dirrig.calls[i].error, SPOKE_OK);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 0);
}

TEST(waiting_calls_start_when_endpoint_becomes_ready)
{
	struct spoke_consumer_options options = { .wait_ready = true };

	start(0, "", &options);
	assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.calls[0].ends, 0);
	dirrig_start(1);
	dirrig_pass(30 * SECOND);
	assert_int_equal(dirrig.calls[0].ends, 1);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
}

/* --- reported state */

TEST(mean_expires_after_a_while)
{
	start(2, "", &presets);
	dirrig.sides[0].mute = true;
	dirrig.sides[1].mute = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(SECOND), SPOKE_OK);
	dirrig_pass(200 * MS);
	dirrig_answer(0);
	dirrig_pass(10 * MS);
	assert_true(dirrig_info(0).mean_ns >= 190 * MS && dirrig_info(0).mean_ns <= 210 * MS);
	assert_int_equal(dirrig_info(0).calls, 1);
	assert_int_equal(dirrig_info(0).actives, 0);
	assert_int_equal(dirrig_info(1).actives, 1);
	dirrig_pass(31 * SECOND);
	assert_int_equal(dirrig_info(0).mean_ns, 0);
	assert_int_equal(dirrig_info(1).failures, 1);
}

TEST(every_state_has_a_name, .bare = true)
{
	for (int i = SPOKE_ENDPOINT_IDLE; i <= SPOKE_ENDPOINT_REMOVED; i++)
		assert_non_null(spoke_endpoint_state_name((enum spoke_endpoint_state)i));
	assert_string_equal(spoke_endpoint_state_name(SPOKE_ENDPOINT_BACKOFF), "backoff");
	assert_null(
		spoke_endpoint_state_name((enum spoke_endpoint_state)(SPOKE_ENDPOINT_REMOVED + 1)));
}
