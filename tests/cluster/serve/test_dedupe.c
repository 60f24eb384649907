/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats of requests at a provider: answered from memory, made to wait, or refused. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/config.h>

#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"
#define KEEP (10 * SECOND)

static struct spoke_consumer *other; /* another consumer, or NULL */
static struct spoke_config *config;

static int set_up(void **state)
{
	other = NULL;
	config = NULL;
	if (filterrig_set_up(state))
		return 1;
	/* The tests set ids and marks themselves. */
	rig.url = "dubbo://" AT "/S?version=1.0&timeout=10s&dedupe.id=off";
	return 0;
}

static int tear_down(void **state)
{
	spoke_consumer_free(other);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	filterrig_answer_all();
	spoke_config_free(config);
	return filterrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static void begin(void)
{
	const struct spoke_provider_options with = { .dedupe_ns = KEEP };

	assert_int_equal(filterrig_begin(&with), 0);
}

/* Returns the method of another consumer, which uses the other serialization, and may have a token.
 */
static struct spoke_method *other_method(const char *name, const char *token)
{
	const struct spoke_consumer_options options = {
		.url = "dubbo://" AT "/S?version=1.0&timeout=10s",
		.token = token,
		.serialization = SPOKE_SERIALIZATION_HESSIAN2,
	};
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, &other), 0);
	assert_int_equal(spoke_consumer_method(other, name, NULL, &method), 0);
	filterrig_pass(10 * MS);
	return method;
}

static void end_other(void)
{
	spoke_consumer_free(other);
	other = NULL;
	filterrig_pass(10 * MS);
}

/* Begins a call with an id, and the mark of a repeat, or NULL. */
static struct filterrig_call *begin_call(struct spoke_method *method, const char *id,
					 const char *repeat, const char *text)
{
	unsigned char memory[256];
	struct spoke_call_options options = { .timeout_ns = 0 };
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, repeat ? 2 : 1);
	spoke_pack_text(&builder, "spoke.id");
	spoke_pack_text(&builder, id);
	if (repeat) {
		spoke_pack_text(&builder, "spoke.repeat");
		spoke_pack_text(&builder, repeat);
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return filterrig_call_with(method, text, &options);
}

static struct filterrig_call *call(struct spoke_method *method, const char *id, const char *repeat)
{
	struct filterrig_call *made = begin_call(method, id, repeat, "hello");

	filterrig_pass(10 * MS);
	return made;
}

/* The mark of a repeat whose first attempt was written to the rig's provider `ago_ns` ago. */
static const char *mark(uint64_t ago_ns)
{
	static char text[32];

	(void)snprintf(text, sizeof(text), "%08x.%llx",
		       (unsigned)rig.provider->dedupe->table.instance,
		       (unsigned long long)((rig.world.now_ns - ago_ns) / MS));
	return text;
}

static void assert_call(const struct filterrig_call *made, int error, const char *text)
{
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, error);
	assert_non_null(strstr(made->text, text));
}

/* --- afterwards */

TEST(repeat_gets_the_answer_of_the_first)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "a", ""), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REPEATS_ANSWERED), 2);
}

TEST(repeat_gets_the_answer_in_its_own_serialization)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(other_method("echo", NULL), "a", ""), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(repeat_gets_the_error_of_the_first)
{
	struct filterrig_call *made;

	begin();
	assert_call(call(rig.fail, "a", NULL), SPOKE_EREMOTE, "it went wrong");
	made = call(rig.fail, "a", "");
	assert_call(made, SPOKE_EREMOTE, "it went wrong");
	assert_int_equal(made->code, 7);
	assert_int_equal(rig.handled, 1);
}

TEST(answer_from_the_pool_is_remembered)
{
	begin();
	assert_call(call(rig.pool, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.pool, "a", ""), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(request_without_an_id_is_not_remembered)
{
	begin();
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.handled, 2);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
}

TEST(same_id_of_another_method_is_another_request)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.fail, "a", NULL), SPOKE_EREMOTE, "it went wrong");
	assert_int_equal(rig.handled, 2);
}

TEST(same_id_with_other_arguments_is_refused)
{
	struct filterrig_call *made;

	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	made = begin_call(rig.echo, "a", NULL, "other");
	filterrig_pass(10 * MS);
	assert_call(made, SPOKE_EREMOTE, "other arguments");
	assert_int_equal(rig.handled, 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REPEATS_REFUSED), 1);
}

/* Lists serve the change of a token: the repeat may bear the new one. */
TEST(tokens_of_one_list_are_one_caller)
{
	const struct spoke_provider_options with = { .dedupe_ns = KEEP,
						     .token = "first-token,second-token" };

	rig.url = "dubbo://" AT "/S?version=1.0&timeout=10s&dedupe.id=off&token=first-token";
	assert_int_equal(filterrig_begin(&with), 0);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(other_method("echo", "second-token"), "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(bad_attachments_are_refused)
{
	static const char *const marks[] = {
		"x", "0123456g.0", "01234567", "01234567.", "01234567.1234567890123", "01234567-0"
	};

	begin();
	assert_call(call(rig.echo, "", NULL), SPOKE_EREMOTE, "1 to 64 bytes");
	assert_call(call(rig.echo,
			 "01234567890123456789012345678901234567890123456789012345678901234", NULL),
		    SPOKE_EREMOTE, "1 to 64 bytes");
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		assert_call(call(rig.echo, "a", marks[i]), SPOKE_EREMOTE, "spoke.repeat");
	assert_int_equal(rig.handled, 0);
}

/* --- at the same time */

TEST(repeat_waits_while_the_first_runs)
{
	struct filterrig_call *first;
	struct filterrig_call *repeat;

	begin();
	first = call(rig.later, "a", NULL);
	repeat = call(rig.later, "a", "");
	assert_int_equal(first->ends + repeat->ends, 0);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_call(first, SPOKE_OK, "");
	assert_call(repeat, SPOKE_OK, "");
	assert_int_equal(rig.handled, 1);
}

TEST(waiting_repeat_ends_with_its_own_deadline)
{
	const struct spokei_link *link;

	begin();
	(void)call(rig.later, "a", NULL);
	link = rig.provider->link;
	filterrig_pass(5 * SECOND);
	(void)call(other_method("later", NULL), "a", "");
	assert_int_equal(link->serving_count, 2);
	filterrig_pass(9900 * MS);
	assert_int_equal(link->serving_count, 1);
	filterrig_pass(100 * MS);
	assert_int_equal(link->serving_count, 0);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
}

TEST(waiting_repeats_are_bounded)
{
	struct filterrig_call *last = NULL;

	begin();
	for (unsigned i = 0; i < 18; i++)
		last = call(rig.later, "a", NULL);
	assert_call(last, SPOKE_EREFUSED, "too many repeats");
	assert_int_equal(rig.provider->link->serving_count, 17);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.handled, 1);
	assert_int_equal(rig.provider->link->serving_count, 0);
}

TEST(answer_to_a_lost_caller_is_remembered)
{
	begin();
	(void)call(other_method("later", NULL), "a", NULL);
	end_other();
	filterrig_answer(0);
	assert_call(call(rig.later, "a", ""), SPOKE_OK, "");
	assert_int_equal(rig.handled, 1);
}

TEST(repeat_on_a_new_connection_waits_for_the_answer)
{
	struct filterrig_call *repeat;

	begin();
	(void)call(other_method("later", NULL), "a", NULL);
	end_other();
	repeat = call(rig.later, "a", "");
	assert_int_equal(repeat->ends, 0);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_call(repeat, SPOKE_OK, "");
	assert_int_equal(rig.handled, 1);
}

TEST(waiting_repeat_ends_with_its_connection)
{
	begin();
	(void)call(rig.later, "a", NULL);
	(void)call(other_method("later", NULL), "a", "");
	assert_int_equal(rig.provider->link->serving_count, 2);
	end_other();
	assert_int_equal(rig.provider->link->serving_count, 1);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
}

TEST(provider_is_freed_with_repeats_that_wait)
{
	begin();
	(void)call(rig.later, "a", NULL);
	(void)call(rig.later, "a", "");
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	assert_int_equal(rig.ended, 2);
}

static unsigned abandoned;

static void is_abandoned(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	abandoned++;
}

/* Its handler goes on, because repeats are to get the answer. */
TEST(remembered_request_outlives_its_caller)
{
	const struct filterrig_call *first;
	const struct filterrig_call *repeat;

	begin();
	first = call(rig.later, "a", NULL);
	spoke_request_on_abandoned(rig.held[0], is_abandoned, NULL);
	repeat = call(rig.later, "a", "");
	assert_true(spoke_call_cancel(rig.consumer, first->name));
	filterrig_pass(10 * MS);
	assert_int_equal(abandoned, 0);
	assert_false(spoke_request_abandoned(rig.held[0]));
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_call(repeat, SPOKE_OK, "");
	assert_int_equal(rig.handled, 1);
}

/* --- requests that did not run */

TEST(request_refused_by_a_limit_is_not_remembered)
{
	rig.executes = 1;
	begin();
	(void)call(rig.later, "a", NULL);
	assert_call(call(rig.later, "b", NULL), SPOKE_EREFUSED, "executes");
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	filterrig_pass(SECOND);
	(void)call(rig.later, "b", mark(SECOND));
	assert_int_equal(rig.handled, 2);
	filterrig_answer(1);
	filterrig_pass(10 * MS);
}

TEST(repeat_uses_up_no_limit)
{
	rig.executes = 1;
	begin();
	(void)call(rig.later, "a", NULL);
	assert_int_equal(call(rig.later, "a", "")->ends, 0);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_call(call(rig.later, "a", ""), SPOKE_OK, "");
}

/* --- what is not known */

TEST(repeat_runs_if_its_first_request_never_came)
{
	begin();
	filterrig_pass(SECOND);
	assert_call(call(rig.echo, "a", mark(500 * MS)), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(repeat_of_another_instance_is_refused)
{
	begin();
	filterrig_pass(SECOND);
	assert_call(call(rig.echo, "a", "00000000.0"), SPOKE_EREFUSED, "another instance");
	assert_call(call(rig.echo, "a", ""), SPOKE_EREFUSED, "another instance");
	assert_int_equal(rig.handled, 0);
}

TEST(repeat_from_before_the_memory_is_refused)
{
	begin();
	filterrig_pass(SECOND);
	assert_call(call(rig.echo, "a", mark(rig.world.now_ns)), SPOKE_EREMOTE, "is not known");
	assert_int_equal(rig.handled, 0);
}

TEST(answer_is_forgotten_after_its_time)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	filterrig_pass(KEEP - 50 * MS);
	assert_call(call(rig.echo, "a", mark(KEEP)), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
	filterrig_pass(100 * MS);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
	assert_int_equal(rig.provider->dedupe->table.bytes, 0);
	assert_call(call(rig.echo, "a", mark(KEEP + 200 * MS)), SPOKE_EREMOTE, "is not known");
	assert_int_equal(filterrig_stat(SPOKE_STAT_REPEATS_FORGOTTEN), 0);
	assert_int_equal(rig.handled, 1);
}

TEST(idle_provider_looks_for_old_entries_once_a_second)
{
	struct spoke_wheel_counts before;
	struct spoke_wheel_counts after;
	char id[8];

	begin();
	for (unsigned i = 0; i < 40; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_call(call(rig.echo, id, NULL), SPOKE_OK, "hello");
		filterrig_pass(40 * MS);
	}
	filterrig_pass(KEEP - 2 * SECOND);
	spoke_wheel_counts(spoke_engine_wheel(rig.engines[SERVER]), &before);
	filterrig_pass(4 * SECOND);
	spoke_wheel_counts(spoke_engine_wheel(rig.engines[SERVER]), &after);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
	assert_in_range(after.fired - before.fired, 2, 5);
}

/* --- the name of the instance */

static const struct spokei_conn *conn_of_consumer(void)
{
	return spoke_container_of(rig.consumer->link->conns.next, struct spokei_conn, node);
}

TEST(consumer_learns_the_instance_and_its_time)
{
	const struct spokei_conn *conn;

	begin();
	conn = conn_of_consumer();
	assert_int_equal(conn->instance, rig.provider->dedupe->table.instance);
	assert_true(conn->instance_ns <= conn->instance_told_ns);
	assert_true(conn->instance_told_ns - conn->instance_ns < 10 * MS);
}

TEST(name_of_the_instance_is_counted_once_as_output)
{
	begin();
	assert_int_equal(rig.provider->link->queued, 0);
}

TEST(provider_that_remembers_nothing_has_no_name)
{
	assert_int_equal(filterrig_begin(NULL), 0);
	assert_int_equal(conn_of_consumer()->instance, 0);
}

TEST(clock_that_stood_still_makes_another_instance)
{
	uint32_t before;

	begin();
	before = conn_of_consumer()->instance;
	spokei_world_sleep(&rig.world, 60 * SECOND);
	filterrig_pass(2 * SECOND);
	(void)filterrig_call(rig.echo);
	filterrig_pass(100 * MS);
	assert_int_not_equal(conn_of_consumer()->instance, before);
	assert_int_equal(conn_of_consumer()->instance, rig.provider->dedupe->table.instance);
}

/* --- settings of a file */

static void begin_with(const char *text)
{
	struct spoke_provider_options with = { .config = NULL };
	const struct spoke_env *env = &rig.processes[SERVER].env;

	assert_int_equal(spoke_config_parse(env, "file", (struct spoke_span){ text, strlen(text) },
					    NULL, NULL, &config),
			 0);
	with.config = config;
	assert_int_equal(filterrig_begin(&with), 0);
}

TEST(file_turns_a_method_on)
{
	begin_with("[method.S.echo]\ndedupe = 10s\n");
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "a", ""), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

/* Also the methods before the first one that is on. */
TEST(repeat_of_a_method_that_is_off_is_refused)
{
	begin_with("[method.S.later]\ndedupe = 10s\n");
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "a", mark(0)), SPOKE_EREMOTE, "dedupe is off");
	assert_call(call(rig.pool, "a", mark(0)), SPOKE_EREMOTE, "dedupe is off");
	assert_int_equal(rig.handled, 1);
}

TEST(unknown_repeat_runs_if_the_method_wants_so)
{
	begin_with("[provider]\ndedupe = 10s\n[method.S.echo]\ndedupe.unknown = run\n");
	assert_call(call(rig.echo, "a", ""), SPOKE_OK, "hello");
	assert_call(call(rig.fail, "a", ""), SPOKE_EREFUSED, "another instance");
	assert_int_equal(rig.handled, 1);
}

TEST(full_memory_forgets_the_oldest_first)
{
	begin_with("[provider]\ndedupe = 10s\ndedupe.max = 2\n");
	filterrig_pass(SECOND);
	(void)call(rig.echo, "a", NULL);
	(void)call(rig.echo, "b", NULL);
	(void)call(rig.echo, "c", NULL);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REPEATS_FORGOTTEN), 1);
	assert_call(call(rig.echo, "b", mark(SECOND)), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "a", mark(SECOND)), SPOKE_EREMOTE, "is not known");
	assert_int_equal(rig.handled, 3);
}

TEST(requests_that_run_are_not_forgotten)
{
	begin_with("[provider]\ndedupe = 10s\ndedupe.max = 1\n");
	(void)call(rig.later, "a", NULL);
	assert_call(call(rig.echo, "b", NULL), SPOKE_EREFUSED, "dedupe.max");
	filterrig_answer(0);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
}

static void reply_long(struct spoke_request *request)
{
	static unsigned char bytes[2048];
	struct spoke_builder builder;
	struct spoke_value value;

	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_array(&builder, 1024);
	for (unsigned i = 0; i < 1024; i++)
		spoke_pack_nil(&builder);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
}

TEST(answer_that_is_too_large_is_not_kept)
{
	begin_with("[provider]\ndedupe = 10s\ndedupe.bytes = 4096\n");
	(void)call(rig.later, "a", NULL);
	reply_long(rig.held[0]);
	rig.held[0] = NULL;
	filterrig_pass(10 * MS);
	assert_call(call(rig.later, "a", ""), SPOKE_EREMOTE, "too large to be kept");
	assert_int_equal(rig.handled, 1);
}
