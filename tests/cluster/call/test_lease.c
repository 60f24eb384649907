/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of calls under a lease, their attachments, and the ways to make them. */
#include "tests/cluster/call/leasedrig.h"
#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/provider.h>

#include <string.h>

static const struct spoke_call_options plain;

/* --- the beginning */

FIXTURE(leasedrig_set_up, leasedrig_tear_down);

TEST(call_carries_name_and_number_of_its_lease)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_non_null(strstr(rig.attached, "\"spoke.lease\": \"reports\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
	assert_null(strstr(rig.attached, "spoke.id"));
	leasedrig_answer();
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, SPOKE_OK);
	assert_int_equal(made->attempts, 1);
	(void)leasedrig_call_without(10);
	leasedrig_read();
	assert_null(strstr(rig.attached, "spoke."));
}

TEST(hessian2_carries_name_and_number_as_texts)
{
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_HESSIAN2);
	leasedrig_accept("dubbo");
	leasing_count("reports", "123456789012");
	rig.lease = leasing_grant("reports", SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"spoke.lease\": \"reports\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"123456789013\""));
}

TEST(wire_without_attachments_carries_the_call_alone)
{
	const struct leasedrig_call *made;

	leasedrig_consume("msgpack-rpc", SPOKE_SERIALIZATION_MSGPACK);
	leasedrig_accept("msgpack-rpc");
	rig.lease = leasing_grant("reports", SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_string_equal(rig.attached, "");
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made, 1);
}

TEST(attachments_of_the_user_come_with_those_of_the_lease)
{
	struct spoke_call_options options = { 0 };
	unsigned char memory[64];
	struct spoke_builder builder;

	leasedrig_begin();
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "trace");
	spoke_pack_text(&builder, "t1");
	spoke_pack_text(&builder, "spoke.id");
	spoke_pack_text(&builder, "mine");
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	options.lease = rig.lease;
	(void)leasedrig_call_with(10, &options);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"trace\": \"t1\""));
	assert_non_null(strstr(rig.attached, "\"spoke.id\": \"mine\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
}

static int try_with_key(const char *key)
{
	struct spoke_call_options options = { .lease = rig.lease };
	unsigned char memory[64];
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, key);
	spoke_pack_text(&builder, "9");
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return leasedrig_try(rig.echo, 10, &options);
}

TEST(attachments_of_the_lease_cannot_be_set_by_the_user)
{
	leasedrig_begin();
	assert_int_equal(try_with_key("spoke.lease"), SPOKE_EINVAL);
	assert_int_equal(try_with_key("spoke.fence"), SPOKE_EINVAL);
	rig.lease = (struct spoke_lease){ 0 };
	assert_int_equal(try_with_key("spoke.fence"), 0);
}

TEST(longest_name_is_carried)
{
	static char name[SPOKE_LEASE_NAME_MAX + 1];

	leasedrig_begin();
	memset(name, 'n', SPOKE_LEASE_NAME_MAX);
	rig.lease = leasing_grant(name, SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, name));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"1\""));
}

TEST(call_is_refused_when_its_lease_is_over)
{
	struct spoke_call_options options = { 0 };

	leasedrig_begin();
	options.lease = rig.lease;
	spokei_world_hold(&rig.process, 2 * SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	leasedrig_pass(3 * SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	options.lease.handle = 77; /* never existed */
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	options.lease = leasing_grant("released", SECOND);
	leasing_release(options.lease);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_CALLS_REFUSED), 4);
	leasedrig_read();
	assert_int_equal(rig.came, 0);
}

TEST(lease_of_another_engine_is_rejected)
{
	struct spokei_world_process process;
	struct spoke_engine_options with = { .env = &process.env };
	const struct spoke_consumer_options consumer = { .url = "dubbo://" RIG_AT "/demo.Echo" };
	struct spoke_call_options options;
	struct spoke_consumer *other;
	struct spoke_method *method;
	struct spoke_engine *engine;

	leasedrig_begin();
	options = (struct spoke_call_options){ .lease = rig.lease };
	spokei_world_process_init(&process, &rig.world);
	assert_int_equal(spoke_engine_new(&with, &engine), 0);
	assert_int_equal(spoke_consumer_new(engine, &consumer, &other), 0);
	assert_int_equal(spoke_consumer_method(other, "echo", NULL, &method), 0);
	assert_int_equal(leasedrig_try(method, 10, &options), SPOKE_EINVAL);
	spoke_engine_free(engine);
	spokei_world_process_fini(&process);
}

/* --- values in place of errors */

TEST(fallback_does_not_hide_the_end_of_the_lease)
{
	static const unsigned char nil[] = { 0xc0 };
	const struct spoke_method_options with = { .fallback = { nil, 1 } };
	struct spoke_call_options options = { 0 };

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &with, &rig.echo), 0);
	(void)leasedrig_stall(10, &plain, SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	assert_int_equal(rig.calls[0].error, SPOKE_ELEASE);
	assert_false(rig.calls[0].fallback);
}

TEST(failsafe_does_not_hide_the_end_of_the_lease)
{
	struct spoke_call_options options = { .policy = &spoke_policy_failsafe };
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(10, &options, SECOND);
	options.lease = rig.lease;
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	leasedrig_never_came(made, 0);
}

TEST(limits_are_given_back_when_the_lease_ends)
{
	const struct spoke_method_options with = { .actives = 1 };
	const struct leasedrig_call *made;

	leasedrig_begin();
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &with, &rig.echo), 0);
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_ELEASE);
	(void)leasedrig_call_without(10);
}

/* --- other ways to call */

TEST(future_takes_the_lease_along)
{
	struct spoke_call_options options = { 0 };
	struct spoke_future *futures[2];

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_future_start(rig.echo, leasedrig_args(10), &options, &futures[0]),
			 0);
	leasedrig_pass(10 * MS);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
	leasing_release(rig.lease);
	assert_int_equal(spoke_future_start(rig.echo, leasedrig_args(10), &options, &futures[1]),
			 0);
	leasedrig_pass(10 * MS);
	assert_non_null(spoke_future_result(futures[1]));
	assert_int_equal(spoke_future_result(futures[1])->error, SPOKE_ELEASE);
	for (unsigned i = 0; i < 2; i++)
		spoke_future_free(futures[i]);
}

TEST(push_under_a_lease_is_rejected)
{
	const struct spoke_method_options of = { .service = "demo.Prices" };
	struct spoke_call_options options = { 0 };
	struct spoke_provider *provider;
	struct spoke_method *moved;
	size_t count;

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_method(provider, "moved", &of, &moved), 0);
	assert_int_equal(spoke_push(moved, (struct spoke_peer){ 0 }, leasedrig_args(1), &options,
				    NULL, NULL, NULL),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_push_all(moved, leasedrig_args(1), &options, &count), SPOKE_EINVAL);
}

TEST(lack_of_memory_refuses_calls_cleanly)
{
	struct spoke_call_options options = { 0 };
	int error = SPOKE_ENOMEM;

	leasedrig_begin();
	for (unsigned nth = 1; error; nth++) {
		options.lease = rig.lease;
		rig.process.fail_at = rig.process.demands + nth;
		error = leasedrig_try(rig.echo, 2000, &options);
		rig.process.fail_at = 0;
		assert_true(error == 0 || error == SPOKE_ENOMEM);
		assert_in_range(nth, 1, 20);
	}
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	leasedrig_never_came(&rig.calls[0], 0);
}
