/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a consumer: attachments that they add, and the ends of attempts. */
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

enum {
	FILTERS = 2,
	TEXT = 64,
};

static struct adder {
	struct spoke_filter filter;
	struct spoke_value attachments; /* to add */
	struct spoke_filter_attempt attempt;
	char peer[TEXT];
	uint32_t before;
	uint32_t after;
	unsigned attempts;
	unsigned ends;
} adders[FILTERS];
static const struct spoke_filter *list[FILTERS];
static char seen[TEXT]; /* the attachments "a" and "b" that the handler got */

/* {"a": "1"}, {"a": "2"}, {"b": "3"} */
#define MAP_A1                                                                                     \
	((struct spoke_value){ (const unsigned char *)"\x81\xa1"                                   \
						      "a\xa1"                                      \
						      "1",                                         \
			       5 })
#define MAP_A2                                                                                     \
	((struct spoke_value){ (const unsigned char *)"\x81\xa1"                                   \
						      "a\xa1"                                      \
						      "2",                                         \
			       5 })
#define MAP_B3                                                                                     \
	((struct spoke_value){ (const unsigned char *)"\x81\xa1"                                   \
						      "b\xa1"                                      \
						      "3",                                         \
			       5 })

static struct spoke_filter_verdict before_call(void *arg, const struct spoke_filter_call *call)
{
	struct adder *adder = arg;

	adder->before = call->number;
	return (struct spoke_filter_verdict){ .attachments = adder->attachments };
}

static struct spoke_filter_verdict after_call(void *arg, const struct spoke_filter_call *call)
{
	struct adder *adder = arg;

	adder->after = call->number;
	adder->ends++;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void after_attempt(void *arg, const struct spoke_filter_attempt *attempt)
{
	struct adder *adder = arg;

	assert_int_equal(adder->ends, 0);
	adder->attempts++;
	adder->attempt = *attempt;
	(void)snprintf(adder->peer, sizeof(adder->peer), "%.*s", (int)attempt->peer.len,
		       (const char *)attempt->peer.data);
}

static void see(const struct spoke_request *request)
{
	struct spoke_value all = spoke_request_attachments(request);
	struct spoke_value value;
	struct spoke_span text;
	size_t len = 0;

	for (const char *key = "a"; key; key = *key == 'a' ? "b" : NULL) {
		if (all.len > 0 && spoke_value_get(all, key, &value) == 0 &&
		    spoke_value_str(value, &text) == 0)
			len += (size_t)snprintf(seen + len, sizeof(seen) - len, "%s=%.*s ", key,
						(int)text.len, (const char *)text.data);
	}
}

static int set_up(void **state)
{
	int error = filterrig_set_up(state);

	memset(adders, 0, sizeof(adders));
	seen[0] = '\0';
	for (unsigned i = 0; i < FILTERS; i++) {
		adders[i].filter = (struct spoke_filter){
			.arg = &adders[i],
			.before_call = before_call,
			.after_call = after_call,
			.after_attempt = after_attempt,
		};
		list[i] = &adders[i].filter;
	}
	rig.filters = list;
	rig.filter_count = FILTERS;
	rig.in_echo = see;
	return error;
}

FIXTURE(set_up, filterrig_tear_down);

static struct filterrig_call *call_with(struct spoke_value attachments)
{
	const struct spoke_call_options options = { .attachments = attachments };
	struct filterrig_call *made;

	assert_int_equal(filterrig_begin(NULL), 0);
	made = filterrig_call_with(rig.echo, "hello", &options);
	filterrig_pass(10 * MS);
	return made;
}

TEST(attachments_of_filters_join_those_of_the_call)
{
	adders[0].attachments = MAP_B3;
	assert_int_equal(call_with(MAP_A1)->error, SPOKE_OK);
	assert_string_equal(seen, "a=1 b=3 ");
}

TEST(attachment_of_later_filter_replaces_same_key)
{
	adders[0].attachments = MAP_B3;
	adders[1].attachments = MAP_A2;
	assert_int_equal(call_with(MAP_A1)->error, SPOKE_OK);
	assert_string_equal(seen, "a=2 b=3 ");
}

TEST(invalid_attachments_of_filter_refuse_the_call)
{
	adders[0].attachments = (struct spoke_value){ (const unsigned char *)"\x81\x01\x02", 3 };
	assert_int_equal(filterrig_begin(NULL), 0);
	assert_false(filterrig_try(rig.echo));
	/* The filter let the call pass, so it sees the end. */
	assert_int_equal(adders[0].ends, 1);
	assert_int_equal(adders[0].after, adders[0].before);
	assert_int_equal(adders[1].before, 0);
}

TEST(filter_attachments_are_dropped_by_messagepack_rpc)
{
	rig.url = "msgpack-rpc://127.0.0.1:20880?timeout=10s";
	adders[0].attachments = MAP_B3;
	assert_int_equal(call_with((struct spoke_value){ NULL, 0 })->error, SPOKE_OK);
	assert_string_equal(seen, "");
}

TEST(filter_sees_end_of_attempt_before_end_of_call)
{
	struct spoke_value none = { NULL, 0 };

	assert_int_equal(call_with(none)->error, SPOKE_OK);
	for (unsigned i = 0; i < FILTERS; i++) {
		assert_int_equal(adders[i].attempts, 1);
		assert_int_equal(adders[i].ends, 1);
		assert_int_not_equal(adders[i].before, 0);
		assert_int_equal(adders[i].attempt.number, adders[i].before);
		assert_int_equal(adders[i].after, adders[i].before);
		assert_int_equal(adders[i].attempt.error, SPOKE_OK);
		assert_true(adders[i].attempt.written);
		assert_string_equal(adders[i].peer, "127.0.0.1:20880");
	}
}

TEST(filter_sees_each_attempt_that_fails)
{
	struct spoke_call_options options = { .timeout_ns = 100 * MS };
	struct spoke_method_options of = {
		.idempotent = true,
		.retries = 2,
		.policy = &spoke_policy_failback,
	};
	struct spoke_method *method;
	struct filterrig_call *made;

	assert_int_equal(filterrig_begin(NULL), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "later", &of, &method), 0);
	made = filterrig_call_with(method, "hello", &options);
	filterrig_pass(SECOND);
	assert_int_equal(made->error, SPOKE_EDEFERRED);
	assert_int_equal(adders[0].attempts, 1);
	filterrig_pass(60 * SECOND);
	assert_int_equal(adders[0].attempts, 3);
	assert_int_equal(adders[0].attempt.error, SPOKE_ETIMEOUT);
	assert_in_range(adders[0].attempt.queued_ns + adders[0].attempt.waited_ns, 99 * MS,
			103 * MS);
	assert_int_equal(adders[0].ends, 1);
}

TEST(each_call_has_a_number_of_its_own)
{
	uint32_t first;

	(void)call_with((struct spoke_value){ NULL, 0 });
	first = adders[0].before;
	adders[0].ends = adders[1].ends = 0;
	(void)filterrig_call(rig.echo);
	assert_int_not_equal(adders[0].before, first);
	filterrig_pass(10 * MS);
}
