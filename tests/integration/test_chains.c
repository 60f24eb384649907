/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 66 and 67 of the table of faults: endless chains of calls made in callbacks; and a process
 * that forks.
 */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <spoke/future.h>

#include <sys/wait.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NIL ((struct spoke_span){ "\xc0", 1 })

/* --- row 66 */

#define STACK_MAX (64u << 10)
#define STRANDS 200u /* parallel chains, so that not every call needs a turn */

struct chain {
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	bool cancels; /* cancel each call as soon as it has begun */
	bool probes;  /* also make calls that are rejected at once */
	int expected;
	uint64_t left; /* calls to be begun */
	uint64_t ended;
	uintptr_t lowest; /* stack addresses in callbacks */
	uintptr_t highest;
};

static void link_done(void *arg, const struct spoke_result *result);

static void begin_link(struct chain *chain)
{
	static const struct spoke_call_options impossible = { .timeout_ns = UINT64_MAX };
	struct spoke_call call;

	if (chain->left == 0)
		return;
	chain->left--;
	if (chain->probes)
		assert_int_equal(spoke_call(chain->method, NIL, &impossible, link_done, chain,
					    NULL),
				 SPOKE_ERANGE);
	assert_int_equal(spoke_call(chain->method, NIL, NULL, link_done, chain, &call), SPOKE_OK);
	if (chain->cancels)
		assert_true(spoke_call_cancel(chain->consumer, call));
}

static void link_done(void *arg, const struct spoke_result *result)
{
	struct chain *chain = arg;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here < chain->lowest)
		chain->lowest = here;
	if (here > chain->highest)
		chain->highest = here;
	assert_int_equal(result->error, chain->expected);
	chain->ended++;
	begin_link(chain);
}

static bool has_run_out(void *arg)
{
	const struct chain *chain = arg;

	return chain->left == 0 && chain->ended > 0;
}

/* Makes this many calls, each but the first ones in the callback of another. */
static void pull(struct stage *stage, struct chain *chain, uint64_t count)
{
	chain->consumer = stage->consumer ? stage->consumer : stage->second;
	chain->left = count;
	chain->lowest = UINTPTR_MAX;
	for (unsigned i = 0; i < STRANDS; i++)
		begin_link(chain);
	stage_until(stage, has_run_out, chain);
	while (chain->ended < count)
		stage_turn(stage);
	stage_pass(stage, MS);
	assert_int_equal(chain->ended, count);
	assert_true(chain->highest - chain->lowest < STACK_MAX);
}

static uint64_t length_of(const struct stage *stage)
{
	return stage->on == STAGE_MEMORY ? 1000000 : stage->on == STAGE_ROUGH ? 2000 : 20000;
}

RUNNER(stage_run_rows);

ROW(row_66_a_chain_of_calls_does_not_grow_the_stack, STAGE_ALL)
{
	struct chain chain = { 0 };

	stage_set_provider(stage, NULL);
	chain.method = stage->second_echo;
	stage_mark(stage);
	pull(stage, &chain, length_of(stage));
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, length_of(stage));
	assert_second_connection_works(stage);
}

/* The provider is full and refuses all calls. */
ROW(row_66_a_chain_of_refused_calls_does_not_grow_the_stack, STAGE_ALL)
{
	const struct spoke_provider_options options = { .requests_max = 1 };
	struct chain chain = { .expected = SPOKE_EREFUSED, .probes = true };
	struct spoke_method *later;
	struct ending ending;

	stage_set_provider(stage, &options);
	chain.method = stage->second_echo;
	assert_int_equal(spoke_consumer_method(stage->second, "later", NULL, &later), SPOKE_OK);
	stage_call(stage, later, "x", &ending, NULL);
	while (stage->later_count == 0)
		stage_turn(stage);
	stage_mark(stage);
	pull(stage, &chain, length_of(stage) / 10);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_REFUSED, length_of(stage) / 10);
	stage_answer_later(stage);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_second_connection_works(stage);
}

ROW(row_66_a_chain_of_cancelled_calls_does_not_grow_the_stack, STAGE_ALL)
{
	struct chain chain = { .expected = SPOKE_ECANCELED, .cancels = true };

	stage_set_provider(stage, NULL);
	chain.method = stage->second_echo;
	pull(stage, &chain, length_of(stage) / 10);
	assert_second_connection_works(stage);
	assert_nothing_closed(stage);
}

/* --- row 67 */

enum child {
	WELL,
	NOT_REFUSED,
	NOT_FREED,
	ENDED_TWICE,
};

static void nothing_due(struct spoke_post *post)
{
	(void)post;
}

/* In the child, each function that can return an error returns one. */
static enum child try_all(struct stage *stage, struct spoke_future *future)
{
	const struct spoke_service_options service = { .name = "demo.Other" };
	const struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = "dubbo://127.0.0.1:20880/demo.EchoService"
	};
	struct spoke_future *other = NULL;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_post post = { .run = nothing_due };
	const int errors[] = {
		spoke_engine_run(stage->engine),
		spoke_engine_turn(stage->engine, true),
		spoke_engine_start(stage->engine),
		spoke_engine_join(stage->engine),
		spoke_engine_drain(stage->engine, 0),
		spoke_consumer_new(stage->engine, &options, &consumer),
		spoke_consumer_method(stage->consumer, "echo", NULL, &method),
		spoke_call(stage->echo, NIL, NULL, NULL, NULL, NULL),
		spoke_call(stage->second_echo, NIL, NULL, NULL, NULL, NULL),
		spoke_provider_new(stage->engine, NULL, &provider),
		spoke_provider_add(stage->provider, &service, NULL, 0),
		spoke_provider_listen(stage->provider, "dubbo://127.0.0.1:0"),
		spoke_future_start(stage->echo, NIL, NULL, &other),
		spoke_future_wait(future),
		spoke_future_then(future, NULL, NULL),
		spoke_future_wait_all(&future, 1),
		spoke_call_wait(stage->echo, NIL, NULL, &other),
	};

	spoke_engine_post(stage->engine, &post);
	for (size_t i = 0; i < LENGTH(errors); i++) {
		if (errors[i] == SPOKE_EFORKED)
			continue;
		print_error("the %zuth function of the child returned %s\n", i,
			    spoke_errname(errors[i]));
		return NOT_REFUSED;
	}
	return WELL;
}

static enum child live_as_child(struct stage *stage, struct spoke_future *future,
				struct ending *ending)
{
	enum child child = try_all(stage, future);

	if (child != WELL)
		return child;
	spoke_future_free(future);
	spoke_consumer_free(stage->consumer);
	stage_end_serving(stage);
	spoke_engine_free(stage->engine);
	spoke_engine_free(stage->good);
	if (ending->ends > 1)
		return ENDED_TWICE;
	if (stage->faulty.blocks || stage->faulty.fds)
		print_error("the child was left with %zu blocks of memory, %zu descriptors\n",
			    stage->faulty.blocks, stage->faulty.fds);
	return stage->faulty.blocks == 0 && stage->faulty.fds == 0 ? WELL : NOT_FREED;
}

ROW(row_67_forked_child_does_not_disturb_its_parent, STAGE_REAL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct spoke_future *future;
	struct spoke_method *later;
	static struct ending endings[2];
	int status = -1;
	uint64_t id;
	pid_t pid;

	assert_int_equal(spoke_consumer_method(stage->second, "later", NULL, &later), SPOKE_OK);
	stage_call(stage, stage->echo, "x", &endings[0], NULL);
	stage_call(stage, later, "y", &endings[1], NULL);
	raw_frame(raw, &request);
	id = request.id;
	assert_int_equal(spoke_future_start(later, NIL, NULL, &future), SPOKE_OK);
	while (stage->later_count < 2)
		stage_turn(stage);
	stage_mark(stage);
	pid = fork();
	if (pid == 0)
		_exit((int)live_as_child(stage, future, &endings[0]));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
	/* The parent's calls continue: those in flight, and new ones. */
	assert_int_equal(endings[0].ends + endings[1].ends, 0);
	stage_answer_later(stage);
	stage_answer_later(stage);
	while (spoke_future_result(future) == NULL)
		stage_turn(stage);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_OK);
	spoke_future_free(future);
	say_reply(raw, id, 20, "z");
	assert_ends(stage, &endings[0], SPOKE_OK);
	assert_ends(stage, &endings[1], SPOKE_OK);
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
	assert_nothing_closed(stage);
	assert_raw_lives(raw_start(stage)); /* the listener, too */
}
