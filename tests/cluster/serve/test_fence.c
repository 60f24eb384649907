/* SPDX-License-Identifier: Apache-2.0 */
/* The fence of a provider, over connections with each wire and serialization. */
#include "cluster/filter/filter.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/test.h"

#include <spoke/fence.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"

enum {
	LONG_NAME = 10240,
};

static struct spokei_faults faulty; /* the environment of the fence */
static struct spoke_fence *fence;
static struct spoke_consumer *others[2];
static unsigned others_count;
static unsigned char memory[2 * LONG_NAME];

/* --- set-up */

static int set_up(void **state)
{
	fence = NULL;
	others_count = 0;
	if (filterrig_set_up(state))
		return -1;
	spokei_faults_init(&faulty, &rig.processes[SERVER].env);
	return 0;
}

static int tear_down(void **state)
{
	int failed;

	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	while (others_count > 0)
		spoke_consumer_free(others[--others_count]);
	/* The environment of a process ends with the rig. */
	spoke_fence_free(fence);
	assert_int_equal(faulty.blocks, 0);
	failed = filterrig_tear_down(state);
	return failed;
}

FIXTURE(set_up, tear_down);

static void begin(const struct spoke_fence_options *options)
{
	const struct spoke_filter *filters[1];
	const struct spoke_provider_options with = { .filters = filters, .filter_count = 1 };

	assert_int_equal(spoke_fence_new(&faulty.env, options, &fence), 0);
	filters[0] = spoke_fence_filter(fence);
	assert_int_equal(filterrig_begin(&with), 0);
}

/* Makes another consumer; returns its method "echo". */
static struct spoke_method *echo_by(const char *url)
{
	const struct spoke_consumer_options options = {
		.url = url,
		.serialization = SPOKE_SERIALIZATION_HESSIAN2,
	};
	struct spoke_consumer **consumer = &others[others_count++];
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, consumer), 0);
	assert_int_equal(spoke_consumer_method(*consumer, "echo", NULL, &method), 0);
	filterrig_pass(10 * MS);
	return method;
}

static struct spoke_method *echo_by_hessian2(void)
{
	return echo_by("dubbo://" AT "/S?version=1.0&timeout=10s");
}

/* --- calls */

/* Returns attachments with these texts; NULL: without. */
static struct spoke_value marks(const char *name, const char *number, bool by_java)
{
	struct spoke_builder builder;
	struct spoke_value map;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, (size_t)(name != NULL) + (number != NULL) + by_java);
	if (by_java) {
		spoke_pack_text(&builder, "interface");
		spoke_pack_text(&builder, "S");
	}
	if (name) {
		spoke_pack_text(&builder, "spoke.lease");
		spoke_pack_text(&builder, name);
	}
	if (number) {
		spoke_pack_text(&builder, "spoke.fence");
		spoke_pack_text(&builder, number);
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
	return map;
}

/* Makes a call and returns its end. */
static struct filterrig_call *call_by(struct spoke_method *method, const char *name,
				      const char *number)
{
	const struct spoke_call_options options = { .attachments = marks(name, number, false) };
	struct filterrig_call *call = filterrig_call_with(method, "hello", &options);

	filterrig_pass(10 * MS);
	assert_int_equal(call->ends, 1);
	return call;
}

static struct filterrig_call *call(const char *name, const char *number)
{
	return call_by(rig.echo, name, number);
}

/* --- tests */

static void lower_number_than_seen_is_refused(struct spoke_method *method)
{
	unsigned handled = rig.handled;
	struct filterrig_call *refused;

	assert_int_equal(call_by(method, "reports", "7")->error, SPOKE_OK);
	assert_int_equal(call_by(method, "reports", "7")->error, SPOKE_OK);
	assert_int_equal(call_by(method, "reports", "9")->error, SPOKE_OK);
	refused = call_by(method, "reports", "7");
	assert_int_equal(refused->error, SPOKE_EREMOTE);
	assert_string_equal(refused->text,
			    "fence number 7 of lease \"reports\" is lower than 9, seen before");
	assert_int_equal(call_by(method, "others", "1")->error, SPOKE_OK);
	assert_int_equal(call_by(method, NULL, NULL)->error, SPOKE_OK);
	assert_int_equal(rig.handled - handled, 5);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_FENCED), 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 1);
}

TEST(stale_number_is_refused_over_msgpack)
{
	begin(NULL);
	lower_number_than_seen_is_refused(rig.echo);
}

TEST(stale_number_is_refused_over_hessian2)
{
	begin(NULL);
	lower_number_than_seen_is_refused(echo_by_hessian2());
}

TEST(number_seen_by_one_serialization_fences_the_other)
{
	struct spoke_method *hessian2;

	begin(NULL);
	hessian2 = echo_by_hessian2();
	assert_int_equal(call("reports", "9")->error, SPOKE_OK);
	assert_int_equal(call_by(hessian2, "reports", "8")->error, SPOKE_EREMOTE);
	assert_int_equal(call_by(hessian2, "reports", "10")->error, SPOKE_OK);
	assert_int_equal(call("reports", "9")->error, SPOKE_EREMOTE);
}

static struct spoke_result seen;
static char seen_class[128];
static char seen_text[128];

static void note_result(void *arg, const struct spoke_result *result)
{
	(void)arg;
	seen = *result;
	(void)snprintf(seen_class, sizeof(seen_class), "%.*s", (int)result->error_class.len,
		       (const char *)result->error_class.data);
	(void)snprintf(seen_text, sizeof(seen_text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
}

static void expect_exception_of_java(struct spoke_method *method, bool by_java)
{
	const struct spoke_call_options options = { .attachments = marks("x", "4", by_java) };

	assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 }, &options, note_result,
				    NULL, NULL),
			 0);
	filterrig_pass(10 * MS);
	assert_int_equal(seen.error, SPOKE_EREMOTE);
	assert_int_equal(seen.error_code, 0);
	assert_string_equal(seen_class, "java.lang.IllegalMonitorStateException");
	assert_string_equal(seen_text,
			    "fence number 4 of lease \"x\" is lower than 5, seen before");
}

TEST(refusal_is_an_exception_that_java_knows)
{
	struct spoke_method *hessian2;

	begin(NULL);
	hessian2 = echo_by_hessian2();
	assert_int_equal(call("x", "5")->error, SPOKE_OK);
	expect_exception_of_java(rig.echo, false);
	expect_exception_of_java(hessian2, false);
	expect_exception_of_java(hessian2, true);
}

TEST(stale_call_is_not_retried_by_failover)
{
	struct spoke_call_options options = { .policy = &spoke_policy_failover };
	const struct spoke_consumer_options twice = {
		.url = "dubbo://" AT "/S?version=1.0&retries=3&timeout=1s",
	};
	struct spoke_method *echo;

	begin(NULL);
	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &twice, &others[0]), 0);
	others_count = 1;
	assert_int_equal(spoke_consumer_method(others[0], "echo", NULL, &echo), 0);
	filterrig_pass(10 * MS);
	assert_int_equal(call("x", "5")->error, SPOKE_OK);
	options.attachments = marks("x", "4", false);
	assert_int_equal(spoke_call(echo, (struct spoke_span){ NULL, 0 }, &options, note_result,
				    NULL, NULL),
			 0);
	filterrig_pass(SECOND);
	assert_int_equal(seen.error, SPOKE_EREMOTE);
	assert_int_equal(seen.attempts, 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_FENCED), 1);
}

TEST(required_number_is_missed_in_requests_without_one)
{
	const struct spoke_fence_options options = { .required = true };
	struct filterrig_call *refused;

	begin(&options);
	refused = call(NULL, NULL);
	assert_int_equal(refused->error, SPOKE_EREMOTE);
	assert_non_null(strstr(refused->text, "requires a call under a lease"));
	assert_int_equal(call("x", "1")->error, SPOKE_OK);
	assert_int_equal(rig.handled, 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_FENCED), 0);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 1);
}

TEST(required_number_is_not_needed_for_echo_of_dubbo)
{
	const struct spoke_fence_options options = { .required = true };
	struct spoke_method *echo;

	begin(&options);
	assert_int_equal(spoke_consumer_method(rig.consumer, "$echo", NULL, &echo), 0);
	assert_int_equal(call_by(echo, NULL, NULL)->error, SPOKE_OK);
}

/* Calls of the user at a unix socket, who is known, and of a caller over TCP, who is not. */
static void numbers_count_of_proven_callers_only(void)
{
	struct spoke_method *known;

	assert_int_equal(spoke_provider_listen(rig.provider, "unix:/run/x.sock"), 0);
	known = echo_by("unix:/run/x.sock?interface=S&version=1.0&timeout=10s");
	assert_int_equal(call("reports", "18446744073709551615")->error, SPOKE_EFORBIDDEN);
	assert_int_equal(call_by(known, "reports", "7")->error, SPOKE_OK);
	assert_int_equal(call_by(known, "reports", "6")->error, SPOKE_EREMOTE);
	/* Calls without a number are no matter of the fence. */
	assert_int_equal(call(NULL, NULL)->error, SPOKE_OK);
}

TEST(fence_may_believe_proven_callers_only)
{
	const struct spoke_fence_options options = { .proven = true };

	begin(&options);
	numbers_count_of_proven_callers_only();
}

TEST(provider_may_have_fences_believe_proven_callers_only)
{
	begin(NULL);
	assert_int_equal(call("other", "9")->error, SPOKE_OK);
	rig.provider->filters->fence_proven = true;
	numbers_count_of_proven_callers_only();
}

TEST(rpc_without_attachments_passes_unless_required)
{
	begin(NULL);
	assert_int_equal(call("x", "9")->error, SPOKE_OK);
	assert_int_equal(filterrig_call(echo_by("msgpack-rpc://" AT "?timeout=1s"))->ends, 0);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.calls[1].error, SPOKE_OK);
	assert_int_equal(rig.handled, 2);
}

TEST(rpc_without_attachments_is_refused_if_required)
{
	const struct spoke_fence_options options = { .required = true };

	begin(&options);
	assert_int_equal(filterrig_call(echo_by("msgpack-rpc://" AT "?timeout=1s"))->ends, 0);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.calls[0].error, SPOKE_EREMOTE);
	assert_non_null(strstr(rig.calls[0].text, "requires a call under a lease"));
	assert_int_equal(rig.handled, 0);
}

TEST(invalid_attachments_are_refused_with_a_sentence)
{
	static char name[LONG_NAME + 1];
	static const char *const bad[] = { "",    "-1",   "0", "seven", "18446744073709551616",
					   "1\n", "\xff", "" };
	struct spoke_method *methods[2];

	begin(NULL);
	methods[0] = rig.echo;
	methods[1] = echo_by_hessian2();
	memset(name, 'n', LONG_NAME);
	for (unsigned i = 0; i < 2; i++) {
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			struct filterrig_call *refused = call_by(methods[i], "x", bad[k]);

			assert_int_equal(refused->error, SPOKE_EREMOTE);
			assert_non_null(strstr(refused->text, "not a decimal number"));
		}
		assert_non_null(strstr(call_by(methods[i], name, "7")->text, "1 to 1024 bytes"));
		assert_non_null(strstr(call_by(methods[i], "", "7")->text, "1 to 1024 bytes"));
		assert_non_null(strstr(call_by(methods[i], NULL, "7")->text, "1 to 1024 bytes"));
	}
	assert_int_equal(rig.handled, 0);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_FENCED), 0);
	assert_int_equal(filterrig_stat(SPOKE_STAT_CLOSED_PROTOCOL), 0);
}

TEST(names_are_escaped_and_cut_in_sentences)
{
	static char name[1025];
	struct filterrig_call *refused;

	begin(NULL);
	memset(name, '\n', 1024);
	assert_int_equal(call(name, "2")->error, SPOKE_OK);
	refused = call(name, "1");
	assert_non_null(strstr(refused->text, "\\x0a"));
	assert_non_null(strstr(refused->text, "is lower than 2, seen before"));
}

TEST(full_fence_lets_callers_go_elsewhere)
{
	const struct spoke_fence_options options = { .names_max = 2, .keep_ns = 10 * SECOND };
	struct filterrig_call *refused;

	begin(&options);
	assert_int_equal(call("a", "1")->error, SPOKE_OK);
	assert_int_equal(call("b", "1")->error, SPOKE_OK);
	refused = call("c", "1");
	assert_int_equal(refused->error, SPOKE_EREFUSED);
	assert_string_equal(refused->text,
			    "lease \"c\": the fence already keeps the numbers of 2 names");
	filterrig_pass(10 * SECOND);
	assert_int_equal(call("c", "1")->error, SPOKE_OK);
}

static unsigned count_events(const char *text)
{
	struct spoke_event event = { 0 };
	unsigned found = 0;

	while (spoke_event_get(rig.engines[SERVER], event.number + 1, &event) == 0)
		found += event.user == SPOKE_EVENT_OF_LEASE && strstr(event.text, text);
	return found;
}

TEST(events_are_one_per_name_and_minute)
{
	begin(NULL);
	(void)call("a", "9");
	(void)call("b", "9");
	for (int i = 0; i < 5; i++) {
		(void)call("a", "8");
		(void)call("b", "8");
		(void)call("b", "none");
	}
	assert_int_equal(count_events("of lease \"a\" is lower than 9"), 1);
	assert_int_equal(count_events("of lease \"b\" is lower than 9"), 1);
	assert_int_equal(count_events("request of 127.0.0.1:"), 3);
	filterrig_pass(60 * SECOND);
	(void)call("a", "8");
	assert_int_equal(count_events("of lease \"a\" is lower than 9"), 2);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_FENCED), 11);
}

/* --- spoke_request_fence() */

static bool marked;
static char lease[64];
static uint64_t number;

static struct spoke_filter_verdict read_fence(void *arg, const struct spoke_request *request)
{
	struct spoke_span name;

	(void)arg;
	marked = spoke_request_fence(request, &name, &number);
	if (marked)
		(void)snprintf(lease, sizeof(lease), "%.*s", (int)name.len,
			       (const char *)name.data);
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

TEST(handlers_read_name_and_number)
{
	static const struct spoke_filter reader = { .before_request = read_fence };
	static const struct spoke_filter *const filters[] = { &reader };
	const struct spoke_provider_options with = { .filters = filters, .filter_count = 1 };

	assert_int_equal(filterrig_begin(&with), 0);
	(void)call("reports", "42");
	assert_true(marked);
	assert_string_equal(lease, "reports");
	assert_int_equal(number, 42);
	(void)call(NULL, NULL);
	assert_false(marked);
	(void)call("reports", "x");
	assert_false(marked);
	(void)call("reports", NULL);
	assert_false(marked);
}

/* --- options */

TEST(options_have_a_range_and_memory_is_needed)
{
	struct spoke_fence_options options = { .names_max = 1000001 };
	struct spoke_fence *none = NULL;

	assert_int_equal(spoke_fence_new(NULL, &options, &none), SPOKE_ERANGE);
	spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	assert_int_equal(spoke_fence_new(&faulty.env, NULL, &none), SPOKE_ENOMEM);
	assert_null(none);
	options.names_max = 1000000;
	assert_int_equal(spoke_fence_new(NULL, &options, &none), 0);
	spoke_fence_free(none);
	spoke_fence_free(NULL);
}

TEST(lack_of_memory_lets_callers_go_elsewhere)
{
	struct filterrig_call *refused;

	begin(NULL);
	spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	refused = call("a", "2");
	assert_int_equal(refused->error, SPOKE_EREFUSED);
	assert_string_equal(refused->text, "lease \"a\": the fence has no memory");
	assert_int_equal(call("a", "2")->error, SPOKE_OK);
	assert_int_equal(call("a", "1")->error, SPOKE_EREMOTE);
}
