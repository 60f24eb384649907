/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: their context on the wire, and their spans. */
#include "cluster/trace/context.h"
#include "core/virtual/world.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/trace.h>

#include <stdio.h>
#include <string.h>

/* --- tracers of a consumer and a provider, in the virtual world */

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

/* --- trace contexts: hostile texts, and contexts of new spans */

FIXTURE(NULL, NULL);

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define VALID "00-" ID "-" SPAN "-01"

enum {
	TEXT = 1024,
};

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

static bool parse(const char *parent, const char *state, struct spoke_trace_context *context)
{
	return spoke_trace_parse(span_of(parent), span_of(state), context);
}

TEST(valid_parents_are_read_and_printed)
{
	static const char *const same[] = { VALID, "00-" ID "-" SPAN "-00" };
	char text[SPOKE_TRACE_PARENT_TEXT];
	struct spoke_trace_context context;

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_true(parse(same[i], "", &context));
		assert_int_equal(context.sampled, i == 0);
		spoke_trace_print(&context, text);
		assert_string_equal(text, same[i]);
	}
}

TEST(later_versions_and_flags_are_read_as_far_as_known)
{
	static const char *const later[] = {
		"01-" ID "-" SPAN "-01",
		"cc-" ID "-" SPAN "-01-more",
		"fe-" ID "-" SPAN "-01-",
		"00-" ID "-" SPAN "-ff",
	};
	char text[SPOKE_TRACE_PARENT_TEXT];
	struct spoke_trace_context context;

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		assert_true(parse(later[i], "", &context));
		spoke_trace_print(&context, text);
		assert_string_equal(text, VALID);
	}
}

TEST(hostile_parents_are_rejected)
{
	static const char *const bad[] = {
		"",
		"00",
		"00-" ID "-" SPAN,
		"00-" ID "-" SPAN "-1",
		"00-" ID "-" SPAN "-01-",
		"00-" ID "-" SPAN "-011",
		"00-" ID "-" SPAN "-0g",
		"01-" ID "-" SPAN "-01.more",
		"ff-" ID "-" SPAN "-01",
		"0x-" ID "-" SPAN "-01",
		" 0-" ID "-" SPAN "-01",
		" " VALID,
		VALID " ",
		"00_" ID "-" SPAN "-01",
		"00-" ID "_" SPAN "-01",
		"00-" ID "-" SPAN "_01",
		"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
		"00-" ID "-B7AD6B7169203331-01",
		"00-00000000000000000000000000000000-" SPAN "-01",
		"00-" ID "-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319-" SPAN "-001",
		"00-" ID "-\xc3\xbc"
		"ad6b71692033-01",
		"00-" ID "-%s%s%s%s%s%s%s%s-01",
	};
	struct spoke_trace_context context;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse(bad[i], "", &context));
}

TEST(nul_bytes_in_parent_are_rejected)
{
	struct spoke_trace_context context;
	char text[] = VALID;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		char was = text[i];

		text[i] = '\0';
		assert_false(spoke_trace_parse((struct spoke_span){ text, sizeof(text) - 1 },
					       span_of(""), &context));
		text[i] = was;
	}
}

/* Writes `count` members "k1=v,k2=v". */
static void write_members(char text[TEXT], unsigned count)
{
	size_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, TEXT - len, "%sk%u=v", i ? "," : "", i);
}

TEST(states_are_bounded)
{
	struct spoke_trace_context context;
	char text[TEXT];

	write_members(text, 32);
	assert_true(parse(VALID, text, &context));
	assert_int_equal(context.state_len, strlen(text));
	assert_memory_equal(context.state, text, strlen(text));
	write_members(text, 33);
	assert_true(parse(VALID, text, &context));
	assert_int_equal(context.state_len, 0);
	memset(text, 'v', sizeof(text));
	memcpy(text, "a=", 2);
	memcpy(text + 256, ",b=", 3);
	text[SPOKE_TRACE_STATE_MAX] = '\0';
	assert_true(parse(VALID, text, &context));
	assert_int_equal(context.state_len, SPOKE_TRACE_STATE_MAX);
	memcpy(text + SPOKE_TRACE_STATE_MAX, "v", 2);
	assert_true(parse(VALID, text, &context));
	assert_int_equal(context.state_len, 0);
}

TEST(hostile_states_are_dropped)
{
	static const struct {
		const char *text;
		bool good;
	} rows[] = {
		{ "a=1", true },
		{ "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true },
		{ "tenant@system=x, b/c*d-e_f=y z", true },
		{ "a=1,,b=2,", true },
		{ "1a=\t", false },
		{ ",", false },
		{ " ", false },
		{ "a", false },
		{ "=", false },
		{ "a=", false },
		{ "=1", false },
		{ "a=1=2", false },
		{ "A=1", false },
		{ "_a=1", false },
		{ "a b=1", false },
		{ "a =1", false },
		{ "a=1,a=2", false },
		{ "a=1,b=2,a=3", false },
		{ "a=\x7f", false },
		{ "a=x\ny", false },
		{ "a=\xc3\xbc", false },
	};
	struct spoke_trace_context context;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(parse(VALID, rows[i].text, &context));
		assert_int_equal(context.state_len, rows[i].good ? strlen(rows[i].text) : 0);
	}
}

TEST(attachments_round_trip)
{
	unsigned char bytes[SPOKEI_TRACE_MAP];
	struct spoke_trace_context context;
	struct spoke_trace_context read;
	char text[TEXT];

	write_members(text, 32);
	assert_true(parse(VALID, text, &context));
	assert_true(spokei_trace_read(spokei_trace_write(&context, bytes), &read));
	assert_memory_equal(&read, &context, sizeof(read));
	memset(context.state, 'v', sizeof(context.state));
	context.state_len = SPOKE_TRACE_STATE_MAX;
	assert_int_not_equal(spokei_trace_write(&context, bytes).len, 0);
}

TEST(attachments_of_other_types_are_no_context)
{
	/* {"traceparent": 1} and no map */
	static const unsigned char number[] = "\x81\xabtraceparent\x01";
	struct spoke_trace_context context;

	assert_false(
		spokei_trace_read((struct spoke_value){ number, sizeof(number) - 1 }, &context));
	assert_false(spokei_trace_read((struct spoke_value){ number + 13, 1 }, &context));
	assert_false(spokei_trace_read((struct spoke_value){ NULL, 0 }, &context));
}

TEST(child_keeps_trace_and_gets_an_id_of_its_own)
{
	struct spokei_world_process process;
	struct spokei_world world;
	struct spoke_trace_context parent;
	struct spoke_trace_context child;
	unsigned sampled = 0;

	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	assert_true(parse(VALID, "a=1", &parent));
	spokei_trace_begin(&parent, 0, &process.env, &child);
	assert_memory_equal(child.trace_id, parent.trace_id, 16);
	assert_memory_not_equal(child.span_id, parent.span_id, 8);
	assert_true(child.sampled);
	assert_int_equal(child.state_len, 3);
	for (unsigned i = 0; i < 1000; i++) {
		spokei_trace_begin(NULL, 250000, &process.env, &child);
		assert_memory_not_equal(child.trace_id, parent.trace_id, 16);
		assert_int_equal(child.state_len, 0);
		sampled += child.sampled;
	}
	assert_in_range(sampled, 190, 310);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
}
