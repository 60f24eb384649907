/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose repeats a provider recognises: their ids, and the instance to which they are bound.
 */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/policy.h>

#include <stdio.h>
#include <string.h>

#define KEEP (600 * SECOND)

static int set_up(void **state)
{
	int failed = clusterrig_set_up(state);

	clusterrig.dedupe_ns = KEEP;
	return failed;
}

FIXTURE(set_up, clusterrig_tear_down);

/* --- what the network and the provider do */

/* Ends the connection to this provider. */
static void cut_one(unsigned which)
{
	const struct spokei_link *link = clusterrig.providers[which].provider->link;
	const struct spokei_conn *conn = spoke_container_of(link->conns.next, struct spokei_conn,
							    node);

	spokei_vnet_reset(clusterrig.world.net, conn->stream.watch.fd);
}

/* Ends all connections of the consumer, as a device on the path would. */
static void cut(void)
{
	struct spoke_list *node = clusterrig.consumer->link->conns.next;

	while (node != &clusterrig.consumer->link->conns) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		spokei_vnet_reset(clusterrig.world.net, conn->stream.watch.fd);
	}
}

static void answer_held(unsigned which)
{
	static const unsigned char yes[] = { 0xc3 };
	struct rig_provider *by = &clusterrig.providers[which];

	for (unsigned i = 0; i < by->held_count; i++)
		spoke_reply(by->held[i], (struct spoke_value){ yes, sizeof(yes) });
	by->held_count = 0;
}

static void restart(unsigned which)
{
	clusterrig_kill(which);
	clusterrig_start(which);
}

/* Provides once, silently, and begins a call that is written. */
static struct rig_call *begin(unsigned providers, const char *query)
{
	struct rig_call *call;

	clusterrig_provide(providers);
	for (unsigned i = 0; i < providers; i++)
		clusterrig.providers[i].manner = RIG_SILENT;
	clusterrig_consume(query, NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(clusterrig.runs, 1);
	return call;
}

static uint64_t provider_stat(unsigned which, enum spoke_stat stat)
{
	return spoke_stat_get(clusterrig.providers[which].engine, stat);
}

/* --- a lost answer */

TEST(repeat_after_a_lost_answer_gets_that_of_the_first_run)
{
	struct rig_call *call = begin(1, "timeout=5s");

	cut();
	clusterrig_pass(500 * MS);
	assert_int_equal(call->ends, 0);
	assert_int_equal(clusterrig.runs, 1);
	answer_held(0);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(clusterrig.runs, 1);
	assert_int_equal(provider_stat(0, SPOKE_STAT_REPEATS_ANSWERED), 1);
}

TEST(repeat_goes_to_the_provider_that_may_have_run_it)
{
	struct rig_call *call = begin(4, "timeout=20s&retries=3");
	unsigned which = clusterrig.run_list[0].provider;

	for (unsigned i = 0; i < 3; i++) {
		cut_one(which);
		clusterrig_pass(SECOND);
		assert_int_equal(call->ends, 0);
	}
	answer_held(which);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 4);
	assert_int_equal(clusterrig.runs, 1);
	assert_int_equal(provider_stat(which, SPOKE_STAT_REPEATS_ANSWERED), 1);
}

TEST(repeats_are_bounded_by_retries)
{
	struct rig_call *call = begin(1, "timeout=20s&retries=2");

	for (unsigned i = 0; i < 3; i++) {
		cut();
		clusterrig_pass(SECOND);
	}
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_int_equal(call->attempts, 3);
	assert_true(call->written);
	answer_held(0);
}

/* The request was lost with its connection, so the repeat is the first to arrive. */
TEST(repeat_runs_if_the_request_never_came)
{
	struct rig_call *call;

	clusterrig_provide(1);
	clusterrig_consume("timeout=5s", NULL);
	clusterrig_pass(SECOND);
	spokei_vnet_link(clusterrig.world.net,
			 spoke_container_of(clusterrig.consumer->link->conns.next,
					    struct spokei_conn, node)
				 ->stream.watch.fd)
		->blackhole = true;
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(clusterrig.runs, 0);
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(clusterrig.runs, 1);
	assert_true(clusterrig.run_list[0].repeat[0] != '\0');
}

/* --- an instance that is gone */

TEST(repeat_is_not_sent_to_another_instance)
{
	struct rig_call *call = begin(2, "timeout=5s");

	restart(clusterrig.run_list[0].provider);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_true(call->written);
	assert_int_equal(call->attempts, 1);
	assert_int_equal(clusterrig.runs, 1);
	assert_int_equal(provider_stat(clusterrig.run_list[0].provider, SPOKE_STAT_REPEATS_REFUSED),
			 0);
}

TEST(repeat_is_not_sent_to_a_provider_that_remembers_no_more)
{
	struct rig_call *call = begin(1, "timeout=2s");

	clusterrig.dedupe_ns = 0;
	restart(0);
	clusterrig.providers[0].manner = RIG_ECHO;
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_int_equal(clusterrig.runs, 1);
}

TEST(call_waits_for_its_instance_until_its_deadline)
{
	struct rig_call *call = begin(1, "timeout=2s");
	uint64_t begun_ns = clusterrig.world.now_ns;

	clusterrig_kill(0);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_true(call->written);
	assert_in_range(clusterrig.world.now_ns - begun_ns, 1900 * MS, 2010 * MS);
}

/* --- what is not bound */

TEST(provider_that_remembers_nothing_gets_no_ids_and_no_repeats)
{
	struct rig_call *call;

	clusterrig.dedupe_ns = 0;
	call = begin(1, "timeout=5s");
	assert_string_equal(clusterrig.run_list[0].id, "");
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_int_equal(call->attempts, 1);
	answer_held(0);
}

TEST(idempotent_call_is_repeated_elsewhere_without_a_mark)
{
	struct spoke_method_options options = { .idempotent = true };
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig.providers[0].manner = RIG_SILENT;
	clusterrig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("timeout=5s", NULL);
	call = clusterrig_call(clusterrig_method("echo", &options));
	clusterrig_pass(10 * MS);
	cut_one(clusterrig.run_list[0].provider);
	clusterrig_pass(500 * MS);
	assert_int_equal(clusterrig.runs, 2);
	assert_string_equal(clusterrig.run_list[0].id, clusterrig.run_list[1].id);
	assert_int_equal(strlen(clusterrig.run_list[1].id), 32);
	assert_string_equal(clusterrig.run_list[1].repeat, "");
	answer_held(0);
	answer_held(1);
	clusterrig_end(call);
}

TEST(call_that_was_refused_goes_to_another_provider)
{
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig.providers[0].manner = RIG_REFUSE;
	clusterrig_consume("", NULL);
	for (unsigned i = 0; i < 6; i++) {
		call = clusterrig_call(clusterrig_method("echo", NULL));
		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_OK);
	}
	assert_int_equal(clusterrig.runs, 6);
}

TEST(slow_call_of_a_marked_method_has_no_backup)
{
	struct rig_call *call = begin(2, "timeout=5s&hedge.after=20ms");

	clusterrig_pass(SECOND);
	assert_int_equal(clusterrig.runs, 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES), 0);
	answer_held(clusterrig.run_list[0].provider);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
}

/* An attempt whose connection lives has all the time of its call. */
TEST(slow_answer_is_awaited_and_not_repeated)
{
	struct rig_call *call = begin(3, "timeout=3s");

	clusterrig_pass(2500 * MS);
	assert_int_equal(call->ends, 0);
	answer_held(clusterrig.run_list[0].provider);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 1);
}

TEST(attempt_that_is_given_up_is_repeated_at_its_instance)
{
	struct rig_call *call = begin(2, "timeout=5s&attempt.timeout=1s");

	clusterrig_pass(1500 * MS);
	answer_held(clusterrig.run_list[0].provider);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(clusterrig.runs, 1);
}

/* --- ids */

TEST(ids_of_calls_differ_and_cannot_be_guessed)
{
	struct spoke_method *echo;
	unsigned same = 0;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 8; i++)
		clusterrig_end(clusterrig_call(echo));
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(strlen(clusterrig.run_list[i].id), 32);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(clusterrig.run_list[i].id,
						clusterrig.run_list[j].id);
		same += memcmp(clusterrig.run_list[i].id, clusterrig.run_list[0].id, 16) == 0;
	}
	assert_int_equal(same, 1);
}

TEST(methods_without_retries_bear_no_ids)
{
	struct spoke_method_options none = { .retries = SPOKE_NONE };
	struct spoke_method_options fast = { .policy = &spoke_policy_failfast };

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", &none)));
	clusterrig_end(clusterrig_call(clusterrig_method("echo", &fast)));
	assert_string_equal(clusterrig.run_list[0].id, "");
	assert_string_equal(clusterrig.run_list[1].id, "");
}

TEST(ids_are_off_if_the_consumer_wants_so)
{
	struct rig_call *call = begin(1, "timeout=5s&dedupe.id=off");

	assert_string_equal(clusterrig.run_list[0].id, "");
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	answer_held(0);
}

TEST(ids_are_on_for_every_provider_if_the_consumer_wants_so)
{
	struct rig_call *call;

	clusterrig.dedupe_ns = 0;
	call = begin(1, "timeout=5s&dedupe.id=on");
	assert_int_equal(strlen(clusterrig.run_list[0].id), 32);
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_int_equal(call->attempts, 1);
	answer_held(0);
}

/* --- tickets */

TEST(ticket_is_bound_to_its_instance)
{
	struct rig_call *call = begin(3, "cluster=failback&timeout=1s&retry.period=1s");
	unsigned which = clusterrig.run_list[0].provider;
	char id[33];

	memcpy(id, clusterrig.run_list[0].id, sizeof(id));
	cut();
	clusterrig_pass(500 * MS);
	assert_int_equal(call->error, SPOKE_EDEFERRED);
	answer_held(which);
	clusterrig_pass(2 * SECOND);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settled_error, SPOKE_OK);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	assert_int_equal(clusterrig.runs, 1);
	(void)snprintf(id + 16, sizeof(id) - 16, "%016llx", (unsigned long long)call->id);
	assert_string_equal(id, clusterrig.run_list[0].id);
}

TEST(ticket_ends_when_its_instance_is_gone)
{
	struct rig_call *call = begin(2, "cluster=failback&timeout=1s&retry.period=1s");

	restart(clusterrig.run_list[0].provider);
	clusterrig_pass(3 * SECOND);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(call->settled_error, SPOKE_ELOST);
	assert_int_equal(clusterrig.runs, 1);
}

/* --- a provider that cannot tell */

/* Answers what the provider holds, and loses the answer. */
static void lose_answer(void)
{
	const struct spokei_link *link = clusterrig.providers[0].provider->link;
	const struct spokei_conn *conn = spoke_container_of(link->conns.next, struct spokei_conn,
							    node);

	spokei_vnet_link(clusterrig.world.net, conn->stream.watch.fd)->blackhole = true;
	answer_held(0);
	clusterrig_pass(10 * MS);
}

TEST(call_ends_with_its_own_error_if_its_fate_is_not_known)
{
	struct rig_call *call = begin(1, "timeout=5s");
	struct spokei_dedupe_table *table = &clusterrig.providers[0].provider->dedupe->table;
	struct spokei_dedupe_method *method = spoke_container_of(table->methods.next,
								 struct spokei_dedupe_method, node);

	lose_answer();
	spokei_dedupe_set(table, method, 0, false, clusterrig.world.now_ns);
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(clusterrig.runs, 1);
	assert_int_equal(provider_stat(0, SPOKE_STAT_REPEATS_REFUSED), 1);
}

TEST(ticket_ends_if_the_fate_of_its_call_is_not_known)
{
	struct rig_call *call = begin(1, "cluster=failback&timeout=1s&retry.period=1s");
	struct spokei_dedupe_table *table = &clusterrig.providers[0].provider->dedupe->table;
	struct spokei_dedupe_method *method = spoke_container_of(table->methods.next,
								 struct spokei_dedupe_method, node);

	lose_answer();
	spokei_dedupe_set(table, method, 0, false, clusterrig.world.now_ns);
	cut();
	clusterrig_pass(3 * SECOND);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(call->settled_error, SPOKE_ELOST);
	assert_int_equal(clusterrig.runs, 1);
}

TEST(answer_that_was_lost_is_replayed)
{
	struct rig_call *call = begin(1, "timeout=5s");

	lose_answer();
	cut();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(clusterrig.runs, 1);
}
