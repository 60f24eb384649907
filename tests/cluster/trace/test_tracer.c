/* SPDX-License-Identifier: Apache-2.0 */
/* Tracers of a consumer and a provider, in the virtual world. */
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/trace.h>

#include <string.h>

enum {
	SPANS = 16,
};

static struct {
	struct spoke_tracer *tracers[2];
	const struct spoke_filter *filters[2];
	struct spoke_trace_span spans[SPANS]; /* their borrowed texts are gone */
	char peers[SPANS][64];
	unsigned count;
	struct spoke_trace_attempt first; /* of the last call */
	struct spoke_trace_context seen;  /* by the handler */
	bool has_seen;
} traced;

static void note(void *arg, const struct spoke_trace_span *span)
{
	(void)arg;
	assert_in_range(traced.count, 0, SPANS - 1);
	assert_int_equal(span->service.len, 1);
	assert_memory_equal(span->service.data, "S", 1);
	(void)strncpy(traced.peers[traced.count], span->peer, 63);
	if (span->attempt_count > 0)
		traced.first = span->attempt[0];
	traced.spans[traced.count++] = *span;
}

static void see(const struct spoke_request *request)
{
	traced.has_seen = spoke_trace_of(request, &traced.seen);
}

static int set_up(void **state)
{
	int error = filterrig_set_up(state);

	memset(&traced, 0, sizeof(traced));
	rig.in_echo = see;
	return error;
}

FIXTURE(set_up, filterrig_tear_down);

/* Makes tracers of both sides, connected. */
static void begin(const struct spoke_tracer_options *options)
{
	struct spoke_tracer_options with = options ? *options
						   : (struct spoke_tracer_options){ .sample = 0 };
	struct spoke_provider_options provide = { .filters = &traced.filters[SERVER],
						  .filter_count = 1 };

	with.ended = note;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(spoke_tracer_new(&rig.faulty[i].env, &with, &traced.tracers[i]),
				 0);
		traced.filters[i] = spoke_tracer_filter(traced.tracers[i]);
	}
	rig.filters = &traced.filters[CLIENT];
	rig.filter_count = 1;
	assert_int_equal(filterrig_begin(&provide), 0);
}

/* Frees the sides and their tracers. */
static void end(void)
{
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	rig.consumer = NULL;
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	filterrig_answer_all();
	for (unsigned i = 0; i < 2; i++) {
		spoke_engine_free(rig.engines[i]);
		rig.engines[i] = NULL;
		spoke_tracer_free(traced.tracers[i]);
	}
}

TEST(call_and_request_share_a_trace)
{
	const struct spoke_trace_span *server = &traced.spans[0];
	const struct spoke_trace_span *client = &traced.spans[1];

	begin(NULL);
	assert_int_equal(filterrig_call(rig.echo)->ends, 0);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	assert_int_equal(server->kind, SPOKE_TRACE_SERVER);
	assert_int_equal(client->kind, SPOKE_TRACE_CLIENT);
	assert_memory_equal(server->context.trace_id, client->context.trace_id, 16);
	assert_false(client->has_parent);
	assert_true(server->has_parent);
	assert_memory_equal(server->parent_id, client->context.span_id, 8);
	assert_memory_not_equal(server->context.span_id, client->context.span_id, 8);
	assert_true(traced.has_seen);
	assert_memory_equal(traced.seen.span_id, server->context.span_id, 8);
	assert_string_equal(traced.peers[1], "127.0.0.1:20880");
	assert_memory_equal(traced.peers[0], "127.0.0.1:", 10);
	assert_int_equal(client->attempts, 1);
	assert_int_equal(client->attempt_count, 1);
	assert_string_equal(traced.first.peer, "127.0.0.1:20880");
	end();
}

TEST(call_with_a_context_is_its_child)
{
	struct spoke_trace_context parent = { .trace_id = { 1 },
					      .span_id = { 2 },
					      .sampled = true };
	const struct spoke_call_options options = { .trace = &parent };

	begin(&(struct spoke_tracer_options){ .sample = SPOKE_NONE });
	memcpy(parent.state, "a=1", 3);
	parent.state_len = 3;
	(void)filterrig_call_with(rig.echo, "hello", &options);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_memory_equal(traced.spans[i].context.trace_id, parent.trace_id, 16);
		assert_int_equal(traced.spans[i].context.state_len, 3);
		assert_memory_equal(traced.spans[i].context.state, "a=1", 3);
	}
	assert_memory_equal(traced.spans[1].parent_id, parent.span_id, 8);
	end();
}

TEST(future_carries_its_context)
{
	struct spoke_trace_context parent = { .trace_id = { 1 },
					      .span_id = { 2 },
					      .sampled = true };
	const struct spoke_call_options options = { .trace = &parent };
	struct spoke_future *future;

	begin(NULL);
	assert_int_equal(spoke_future_start(rig.echo, (struct spoke_span){ "\xa1x", 2 }, &options,
					    &future),
			 0);
	memset(&parent, 9, sizeof(parent));
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	assert_int_equal(traced.spans[1].parent_id[0], 2);
	spoke_future_free(future);
	end();
}

TEST(trace_that_is_not_sampled_travels_without_spans)
{
	begin(&(struct spoke_tracer_options){ .sample = SPOKE_NONE });
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 0);
	assert_true(traced.has_seen);
	assert_false(traced.seen.sampled);
	end();
}

TEST(hostile_context_begins_a_new_trace)
{
	/* {"traceparent": "00-"} */
	static const unsigned char bad[] = "\x81\xabtraceparent\xa3"
					   "00-";
	const struct spoke_call_options options = { .attachments = { bad, sizeof(bad) - 1 } };

	begin(NULL);
	(void)filterrig_call_with(rig.echo, "hello", &options);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	assert_false(traced.spans[1].has_parent);
	assert_memory_equal(traced.spans[0].context.trace_id, traced.spans[1].context.trace_id, 16);
	end();
}

TEST(spans_have_errors_and_times)
{
	struct spoke_call_options options = { .timeout_ns = 100 * MS };

	begin(NULL);
	(void)filterrig_call(rig.fail);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(traced.spans[i].error, SPOKE_EREMOTE);
		assert_int_equal(traced.spans[i].error_code, 7);
	}
	(void)filterrig_call_with(rig.later, "hello", &options);
	filterrig_pass(250 * MS);
	assert_int_equal(traced.count, 3);
	assert_int_equal(traced.spans[2].error, SPOKE_ETIMEOUT);
	assert_int_equal(traced.first.error, SPOKE_ETIMEOUT);
	filterrig_answer(0);
	assert_int_equal(traced.count, 4);
	assert_int_equal(traced.spans[3].kind, SPOKE_TRACE_SERVER);
	end();
}

TEST(call_beyond_open_max_has_no_span)
{
	begin(&(struct spoke_tracer_options){ .open_max = 1 });
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(spoke_tracer_missed(traced.tracers[CLIENT]), 1);
	/* Two requests, one of a new trace that is not sampled; and one call. */
	assert_int_equal(traced.count, 2);
	end();
}

TEST(handler_on_pool_sees_the_context)
{
	begin(NULL);
	(void)filterrig_call(rig.pool);
	filterrig_pass(10 * MS);
	assert_int_equal(traced.count, 2);
	assert_true(traced.has_seen);
	assert_memory_equal(traced.seen.trace_id, traced.spans[1].context.trace_id, 16);
	end();
}

TEST(request_without_tracer_has_no_context)
{
	assert_int_equal(filterrig_begin(NULL), 0);
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.handled, 1);
	assert_false(traced.has_seen);
}
