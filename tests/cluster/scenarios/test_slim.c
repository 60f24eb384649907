/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is kept for the next call and freed during silence, on the virtual clock. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/stage.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#define INTERVAL (100 * MS)
#define LARGE 100000u /* bytes of a call, whose memory the next call may reuse */

#define MANY 50u /* calls in flight */

/* Returns the stage, or NULL if this setting has no virtual clock or no heartbeats. */
static struct stage *begin(void **state)
{
	struct stage *stage = stage_bare(state);
	struct spoke_provider_options provider = { .heartbeat_ns = INTERVAL };
	struct spoke_consumer_options consumer = { .heartbeat_ns = INTERVAL };

	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return NULL;
	stage_provide(stage, &provider);
	stage_consume(stage, &consumer);
	stage_until_ready(stage, 1);
	return stage;
}

static void pass(struct stage *stage, uint64_t ns)
{
	spokei_world_run(&stage->world, stage->world.now_ns + ns);
}

static const struct spokei_conn *only_conn(struct spokei_link *link)
{
	return spoke_container_of(spokei_list_first(&link->conns), struct spokei_conn, node);
}

static int echo_of(struct stage *stage, size_t len)
{
	return stage_end_of(stage,
			    stage_call(stage, stage_method(stage, "echo"), stage_bin(stage, len)))
		->error;
}

RUNNER(stage_run);

TEST(spare_memory_is_freed_when_idle)
{
	struct stage *stage = begin(state);

	if (stage == NULL)
		return;
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
	assert_true(stage->consumer->link->spare_bytes >= LARGE);
	assert_true(stage->provider->link->spare_bytes >= LARGE);
	pass(stage, 2 * INTERVAL);
	assert_int_equal(stage->consumer->link->spare_bytes, 0);
	assert_int_equal(stage->provider->link->spare_bytes, 0);
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
}

/* This includes the ring of calls, the map of requests, and the memo of the last request. */
TEST(rooms_for_many_calls_are_given_back_in_silence)
{
	struct stage *stage = begin(state);
	const struct spokei_conn *caller;
	const struct spokei_conn *server;

	if (stage == NULL)
		return;
	for (unsigned i = 0; i < MANY; i++)
		(void)stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
	stage_until_held(stage, MANY);
	caller = only_conn(stage->consumer->link);
	server = only_conn(stage->provider->link);
	assert_true(caller->pendings.room >= MANY);
	assert_true(server->serving.room >= MANY);
	assert_non_null(server->in.memo);
	while (stage->held_count > 0)
		stage_answer(stage, 0);
	stage_until(stage, &stage->ended, MANY);
	pass(stage, 2 * INTERVAL);
	assert_int_equal(caller->pendings.room, 0);
	assert_int_equal(server->serving.room, 0);
	assert_null(server->in.memo);
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
}

TEST(spare_memory_stays_while_calls_wait)
{
	struct stage *stage = begin(state);
	struct stage_call *call;

	if (stage == NULL)
		return;
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
	call = stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
	pass(stage, 3 * INTERVAL);
	/* Either side may be the first to ask. */
	assert_true(stage_client_stat(stage, SPOKE_STAT_PROBE_ANSWERS_READ) +
			    stage_client_stat(stage, SPOKE_STAT_PROBES_READ) >
		    2);
	assert_true(stage->provider->link->spare_bytes >= LARGE);
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
}
