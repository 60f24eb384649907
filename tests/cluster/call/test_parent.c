/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are made for a request: the time, the end and the trace that they inherit. */
#include "tests/cluster/call/chainrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/stats.h>
#include <spoke/trace.h>

#include <stdio.h>
#include <string.h>

FIXTURE(chain_set_up, chain_tear_down);

static struct chain_node *const middle = &chain.nodes[1];

static uint64_t now(void)
{
	return chain.world.now_ns;
}

/* On the pool, where a request takes no callback. */
static void keep(struct chain_node *node, struct spoke_request *request)
{
	node->held[0] = request;
}

/* --- time */

TEST(inner_call_ends_with_the_time_of_its_request)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=3s");
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->ends, 1);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
	assert_in_range(chain.last->left_ns, 595 * MS, 601 * MS);
}

/* The handler waits before it calls, so less is left than when the request came. */
static struct spoke_alarm alarm_of_late;
static struct spoke_request *late_request;

static void call_late(struct spoke_alarm *alarm)
{
	const struct spoke_call_options options = { .parent = late_request };

	(void)alarm;
	assert_int_equal(chain_call_next(middle, late_request, &options), 0);
}

static void wait_first(struct chain_node *node, struct spoke_request *request)
{
	late_request = request;
	assert_int_equal(spoke_alarm_after(node->engine, &alarm_of_late, 400 * MS, call_late), 0);
}

TEST(parent_is_named_where_no_handler_runs)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=3s");
	middle->handle = wait_first;
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->ends, 1);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
	assert_in_range(chain.last->left_ns, 195 * MS, 201 * MS);
}

static unsigned late;

static void note_late(struct chain_node *node, struct spoke_request *request)
{
	(void)node;
	late += spoke_request_left(request) == 0;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void hold_the_loop(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
	spokei_world_stall(&chain.world, 50 * MS);
}

TEST(time_that_a_callback_takes_counts_for_requests_after_it)
{
	late = 0;
	chain_begin(3, "timeout=3s");
	middle->handle = note_late;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(spoke_call(middle->method, (struct spoke_span){ NULL, 0 }, NULL,
					    hold_the_loop, NULL, NULL),
				 0);
		chain_pass(5 * MS);
		(void)chain_call(20 * MS);
		chain_answer(chain.last, 0);
		chain_pass(200 * MS);
	}
	assert_int_equal(late, 0);
	assert_true(spoke_stat_get(middle->engine, SPOKE_STAT_REQUESTS_EXPIRED) > 0);
}

TEST(own_timeout_stays_if_it_is_shorter)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=200ms");
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->error, SPOKE_ETIMEOUT);
	assert_in_range(middle->ended_ns - begun_ns, 200 * MS, 203 * MS);
}

static int refusal;

static void call_without_time(struct chain_node *node, struct spoke_request *request)
{
	spokei_world_stall(&chain.world, 700 * MS);
	assert_int_equal(spoke_request_left(request), 0);
	assert_false(spoke_request_abandoned(request));
	refusal = chain_call_next(node, NULL, NULL);
	chain_hold(node, request);
}

/* No time is not the same as no timeout. */
TEST(request_without_time_left_refuses_its_inner_calls)
{
	chain_begin(3, "timeout=3s");
	middle->handle = call_without_time;
	(void)chain_call(600 * MS);
	chain_pass(SECOND);
	assert_int_equal(refusal, SPOKE_ETIMEOUT_UNSENT);
	assert_int_equal(chain.last->runs, 0);
}

TEST(request_without_a_deadline_has_that_of_its_provider)
{
	const struct spoke_provider_options provide = { .timeout_default_ns = 700 * MS };
	uint64_t begun_ns;

	chain.plain = true;
	chain.provide = &provide;
	chain_begin(3, "timeout=3s");
	begun_ns = now();
	(void)chain_call(2 * SECOND);
	chain_pass(10 * MS);
	assert_in_range(middle->left_ns, 699 * MS, 700 * MS);
	assert_in_range(chain.last->left_ns, 690 * MS, 701 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->error, SPOKE_ETIMEOUT);
	assert_in_range(middle->ended_ns - begun_ns, 699 * MS, 703 * MS);
}

TEST(request_without_any_deadline_leaves_its_calls_their_own)
{
	chain.plain = true;
	chain_begin(3, "timeout=1s");
	(void)chain_call(2 * SECOND);
	chain_pass(10 * MS);
	assert_true(middle->left_ns == UINT64_MAX);
	assert_in_range(chain.last->left_ns, 990 * MS, 1000 * MS);
}

TEST(deadline_of_the_caller_comes_before_that_of_the_provider)
{
	const struct spoke_provider_options provide = { .timeout_default_ns = 700 * MS };

	chain.provide = &provide;
	chain_begin(3, "timeout=3s");
	(void)chain_call(2 * SECOND);
	chain_pass(10 * MS);
	assert_in_range(middle->left_ns, 1990 * MS, 2000 * MS);
}

/* --- the end */

TEST(cancel_travels_along_the_whole_chain)
{
	struct spoke_call made;

	chain_begin(4, "timeout=3s");
	made = chain_call(0);
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 1);
	assert_true(spoke_call_cancel(chain.first->consumer, made));
	chain_pass(10 * MS);
	assert_int_equal(chain.first->error, SPOKE_ECANCELED);
	assert_int_equal(chain.nodes[1].error, SPOKE_ECANCELED);
	assert_int_equal(chain.nodes[2].error, SPOKE_ECANCELED);
	assert_int_equal(chain.last->abandoned, 1);
}

TEST(timeout_travels_along_the_whole_chain)
{
	uint64_t begun_ns;

	chain_begin(4, "timeout=3s");
	begun_ns = now();
	(void)chain_call(500 * MS);
	chain_pass(505 * MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(chain.nodes[i].ends, 1);
		assert_in_range(chain.nodes[i].ended_ns - begun_ns, 499 * MS, 503 * MS);
	}
	assert_int_equal(chain.last->abandoned, 1);
}

TEST(lost_connection_of_the_caller_ends_inner_calls)
{
	chain_begin(4, "timeout=3s");
	(void)chain_call(0);
	chain_pass(100 * MS);
	chain_kill(chain.first);
	chain_pass(10 * MS);
	assert_int_equal(chain.nodes[1].error, SPOKE_ECANCELED);
	assert_int_equal(chain.nodes[2].error, SPOKE_ECANCELED);
	assert_int_equal(chain.last->abandoned, 1);
}

static void call_thrice(struct chain_node *node, struct spoke_request *request)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(chain_call_next(node, NULL, NULL), 0);
	chain_hold(node, request);
}

TEST(all_inner_calls_end)
{
	struct spoke_call made;

	chain_begin(3, "timeout=3s");
	middle->handle = call_thrice;
	made = chain_call(0);
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 3);
	assert_true(spoke_call_cancel(chain.first->consumer, made));
	chain_pass(10 * MS);
	assert_int_equal(middle->ends, 3);
	assert_int_equal(chain.last->abandoned, 3);
}

/* The inner call waits for a connection, which opens only after the request has ended. */
TEST(unsent_inner_call_never_runs)
{
	struct spoke_call made;

	chain.route = SPOKEI_VNET_SILENT;
	chain_begin(3, "timeout=30s&lazy=true");
	made = chain_call(20 * SECOND);
	chain_pass(100 * MS);
	assert_int_equal(middle->runs, 1);
	assert_int_equal(middle->ends, 0);
	(void)spoke_call_cancel(chain.first->consumer, made);
	chain_pass(10 * MS);
	assert_int_equal(middle->ends, 1);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	assert_false(middle->written);
	spokei_vnet_route(chain.world.net, chain_last_address, SPOKEI_VNET_NORMAL);
	chain_pass(20 * SECOND);
	assert_int_equal(spoke_consumer_ready(middle->consumer), 1);
	assert_int_equal(chain.last->runs, 0);
}

static void refuse_more(struct spoke_request *request, void *arg)
{
	const struct spoke_call_options options = { .parent = request };
	struct chain_node *node = arg;

	assert_int_equal(chain_call_next(node, NULL, &options), SPOKE_ECANCELED);
	node->abandoned++;
}

static void hold_and_refuse(struct chain_node *node, struct spoke_request *request)
{
	chain_hold(node, request);
	spoke_request_on_abandoned(request, refuse_more, node);
}

TEST(abandoned_request_takes_no_more_calls)
{
	chain_begin(3, "timeout=3s");
	middle->handle = hold_and_refuse;
	(void)chain_call(100 * MS);
	chain_pass(200 * MS);
	assert_int_equal(middle->abandoned, 1);
}

static void call_and_answer(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(chain_call_next(node, NULL, NULL), 0);
	SPOKE_REPLY(request, "done");
}

TEST(answer_leaves_inner_calls_alone)
{
	chain_begin(3, "timeout=3s");
	middle->handle = call_and_answer;
	(void)chain_call(600 * MS);
	chain_pass(100 * MS);
	assert_int_equal(chain.first->error, SPOKE_OK);
	chain_kill(chain.first);
	chain_pass(100 * MS);
	assert_int_equal(middle->ends, 0);
	chain_answer(chain.last, 0);
	chain_pass(10 * MS);
	assert_int_equal(middle->error, SPOKE_OK);
}

/* ... but not beyond the time that they have. */
TEST(inner_call_keeps_its_time_after_the_answer)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=3s");
	middle->handle = call_and_answer;
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->error, SPOKE_ETIMEOUT);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
}

static void answer_and_call(struct chain_node *node, struct spoke_request *request)
{
	SPOKE_REPLY(request, "done");
	assert_int_equal(chain_call_next(node, NULL, NULL), 0);
}

TEST(call_after_the_answer_is_made_for_no_request)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=3s");
	middle->handle = answer_and_call;
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_in_range(middle->ended_ns - begun_ns, 3 * SECOND, 3 * SECOND + 5 * MS);
}

/* --- the choice of the parent */

static void call_again(void *arg, const struct spoke_result *result)
{
	struct spoke_request *request = arg;

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(chain_call_next(middle, request, NULL), 0);
}

static void call_twice(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(spoke_call_with(node->method, SPOKE_NO_ARGS, call_again, request), 0);
}

TEST(call_in_the_callback_of_an_inner_call_has_the_same_request)
{
	struct spoke_call made;

	chain_begin(3, "timeout=3s");
	middle->handle = call_twice;
	made = chain_call(600 * MS);
	chain_pass(100 * MS);
	chain_answer(chain.last, 0);
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 2);
	assert_in_range(chain.last->left_ns, 490 * MS, 501 * MS);
	(void)spoke_call_cancel(chain.first->consumer, made);
	chain_pass(10 * MS);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	assert_int_equal(chain.last->abandoned, 1);
}

static void call_after_answer(void *arg, const struct spoke_result *result)
{
	(void)result;
	SPOKE_REPLY(arg, "done"); /* and is freed */
	assert_int_equal(chain_call_next(middle, NULL, NULL), 0);
}

static void answer_in_callback(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(spoke_call_with(node->method, SPOKE_NO_ARGS, call_after_answer, request),
			 0);
}

TEST(callback_that_has_answered_calls_for_no_request)
{
	chain_begin(3, "timeout=3s");
	middle->handle = answer_in_callback;
	(void)chain_call(600 * MS);
	chain_pass(100 * MS);
	chain_answer(chain.last, 0);
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 2);
	assert_in_range(chain.last->left_ns, 2900 * MS, 3001 * MS);
}

static void call_detached(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .detached = true };

	assert_int_equal(chain_call_next(node, NULL, &options), 0);
	chain_hold(node, request);
}

static void assert_made_for_none(void)
{
	struct spoke_call made;
	uint64_t begun_ns = now();

	made = chain_call(600 * MS);
	chain_pass(100 * MS);
	assert_true(spoke_call_cancel(chain.first->consumer, made));
	chain_pass(10 * MS);
	assert_int_equal(middle->abandoned, 1);
	assert_int_equal(middle->ends, 0);
	chain_pass(5 * SECOND);
	assert_in_range(middle->ended_ns - begun_ns, 3 * SECOND, 3 * SECOND + 5 * MS);
}

TEST(detached_call_is_made_for_no_request)
{
	chain_begin(3, "timeout=3s");
	middle->handle = call_detached;
	assert_made_for_none();
}

static void call_and_hold(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(chain_call_next(node, NULL, NULL), 0);
	chain_hold(node, request);
}

TEST(setting_turns_the_inheritance_off)
{
	chain_begin(3, "timeout=3s&inherit=false");
	middle->handle = call_and_hold;
	assert_made_for_none();
}

static void name_and_hold(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .parent = request };

	assert_int_equal(chain_call_next(node, NULL, &options), 0);
	chain_hold(node, request);
}

TEST(parent_that_is_named_counts_though_the_setting_is_off)
{
	struct spoke_call made;

	chain_begin(3, "timeout=3s&inherit=false");
	middle->handle = name_and_hold;
	made = chain_call(0);
	chain_pass(100 * MS);
	assert_true(spoke_call_cancel(chain.first->consumer, made));
	chain_pass(10 * MS);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
}

static void free_provider(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(chain_call_next(node, NULL, NULL), 0);
	chain_hold(node, request);
	spoke_provider_free(node->provider);
}

TEST(provider_that_is_freed_ends_inner_calls)
{
	chain_begin(3, "timeout=3s");
	middle->handle = free_provider;
	(void)chain_call(0);
	chain_pass(10 * MS);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	chain_answer(middle, 0);
}

/* --- futures and handlers on the pool */

static struct spoke_future *started;

static void future_over(void *arg, const struct spoke_result *result)
{
	middle->ends++;
	middle->error = result->error;
	middle->ended_ns = now();
	if (arg)
		SPOKE_REPLY(arg, "over");
}

static void start_future(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .parent = request };
	const struct spoke_span none = { NULL, 0 };

	assert_int_equal(spoke_future_start(node->method, none, &options, &started), 0);
	assert_int_equal(spoke_future_then(started, future_over, request), 0);
}

TEST(future_of_a_pool_handler_ends_with_its_request)
{
	struct spoke_call made;

	chain.flags = SPOKE_HANDLER_POOL;
	chain_begin(3, "timeout=3s");
	middle->handle = start_future;
	chain.last->handle = keep;
	made = chain_call(600 * MS);
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 1);
	assert_in_range(chain.last->left_ns, 590 * MS, 601 * MS);
	(void)spoke_call_cancel(chain.first->consumer, made);
	chain_pass(10 * MS);
	assert_int_equal(middle->ends, 1);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	spoke_future_free(started);
}

static void start_and_answer(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .parent = request };
	const struct spoke_span none = { NULL, 0 };

	assert_int_equal(spoke_future_start(node->method, none, &options, &started), 0);
	assert_int_equal(spoke_future_then(started, future_over, NULL), 0);
	SPOKE_REPLY(request, "done");
}

TEST(future_of_a_pool_handler_goes_on_after_the_answer)
{
	uint64_t begun_ns;

	chain.flags = SPOKE_HANDLER_POOL;
	chain_begin(3, "timeout=3s");
	middle->handle = start_and_answer;
	chain.last->handle = keep;
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(10 * MS);
	assert_int_equal(chain.first->error, SPOKE_OK);
	chain_kill(chain.first);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->error, SPOKE_ETIMEOUT);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
	spoke_future_free(started);
}

/* The future is on the engine of the first process. */
static void start_elsewhere(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .parent = request };
	const struct spoke_span none = { NULL, 0 };

	assert_int_equal(chain_call_next(chain.first, NULL, &options), SPOKE_EINVAL);
	node->handle = chain_hold;
	assert_int_equal(spoke_future_start(chain.first->method, none, &options, &started), 0);
	assert_int_equal(spoke_future_then(started, future_over, NULL), 0);
	SPOKE_REPLY(request, "done");
}

TEST(future_on_another_engine_has_the_time_of_the_request)
{
	uint64_t begun_ns;

	chain_begin(3, "timeout=3s");
	middle->handle = start_elsewhere;
	begun_ns = now();
	(void)chain_call(600 * MS);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->runs, 2);
	assert_int_equal(middle->error, SPOKE_ETIMEOUT);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
	spoke_future_free(started);
}

static void start_elsewhere_and_hold(struct chain_node *node, struct spoke_request *request)
{
	const struct spoke_call_options options = { .parent = request };

	node->handle = keep;
	node->held[1] = request;
	assert_int_equal(spoke_future_start_args(chain.first->method, SPOKE_NO_ARGS, &options,
						 &started),
			 0);
	assert_int_equal(spoke_future_then(started, future_over, NULL), 0);
}

static void assert_future_elsewhere_ends_with_its_request(unsigned flags)
{
	struct spoke_call made;

	chain.flags = flags;
	chain_begin(3, "timeout=3s");
	middle->handle = start_elsewhere_and_hold;
	made = chain_call(0);
	chain_pass(100 * MS);
	assert_int_equal(middle->runs, 2);
	assert_int_equal(middle->ends, 0);
	(void)spoke_call_cancel(chain.first->consumer, made);
	chain_pass(10 * MS);
	assert_int_equal(middle->ends, 1);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	assert_true(spoke_request_abandoned(middle->held[0]));
	spoke_future_free(started);
	chain_kill(middle); /* which answers the request, so that the future's memory is freed */
}

TEST(future_on_another_engine_ends_with_its_request)
{
	assert_future_elsewhere_ends_with_its_request(0);
}

TEST(future_elsewhere_of_a_pool_handler_ends_with_its_request)
{
	assert_future_elsewhere_ends_with_its_request(SPOKE_HANDLER_POOL);
}

/* --- callers over HTTP */

static int post(const char *headers)
{
	const struct spoke_env *env = &chain.first->process.env;
	int fd = scene_connect(env, "127.0.0.1:21001");
	char text[256];
	int len;

	chain_pass(10 * MS);
	len = snprintf(
		text, sizeof(text),
		"POST /demo.Hop/go HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 2\r\n\r\n[]",
		headers);
	scene_write(env, fd, text, (size_t)len);
	return fd;
}

TEST(http_request_gives_its_time_to_inner_calls)
{
	uint64_t begun_ns;
	int fd;

	chain_begin(3, "timeout=3s");
	fd = post("Spoke-Timeout: 600ms\r\n");
	begun_ns = now();
	chain_pass(5 * SECOND);
	assert_in_range(chain.last->left_ns, 590 * MS, 601 * MS);
	assert_int_equal(middle->ends, 1);
	assert_in_range(middle->ended_ns - begun_ns, 599 * MS, 602 * MS);
	assert_int_equal(chain.last->abandoned, 1);
	scene_hang_up(&chain.first->process.env, fd);
}

TEST(http_client_that_hangs_up_ends_inner_calls)
{
	static const struct spoke_provider_options at_once = { .half_close_ns = SPOKE_OFF };
	int fd;

	chain.provide = &at_once;
	chain_begin(3, "timeout=3s");
	fd = post("");
	chain_pass(100 * MS);
	assert_int_equal(chain.last->runs, 1);
	assert_int_equal(middle->ends, 0);
	scene_hang_up(&chain.first->process.env, fd);
	chain_pass(10 * MS);
	assert_int_equal(middle->ends, 1);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	assert_int_equal(chain.last->abandoned, 1);
}

/* --- failback */

static void note_deferred(void *arg, const struct spoke_result *result)
{
	middle->error = result->error;
	SPOKE_REPLY(arg, "later");
}

static void defer(struct chain_node *node, struct spoke_request *request)
{
	assert_int_equal(spoke_call_with(node->method, SPOKE_NO_ARGS, note_deferred, request), 0);
}

/* The ticket's attempts have the method's own timeout, not what was left of the request's. */
TEST(ticket_goes_on_after_its_request_with_its_own_time)
{
	chain.route = SPOKEI_VNET_REFUSE;
	chain_begin(3, "timeout=3s&cluster=failback&retry.period=1s&lazy=true");
	middle->handle = defer;
	(void)chain_call(200 * MS);
	chain_pass(100 * MS);
	assert_int_equal(middle->error, SPOKE_EDEFERRED);
	chain_kill(chain.first);
	spokei_vnet_route(chain.world.net, chain_last_address, SPOKEI_VNET_NORMAL);
	chain_pass(2 * SECOND);
	assert_int_equal(chain.last->runs, 1);
	assert_in_range(chain.last->left_ns, 2900 * MS, 3001 * MS);
	chain_answer(chain.last, 0);
	chain_pass(10 * MS);
	assert_int_equal(spoke_stat_get(middle->engine, SPOKE_STAT_TICKETS_SUCCESS), 1);
}

TEST(failback_call_that_is_no_ticket_yet_ends_with_its_request)
{
	struct spoke_call made;

	chain.route = SPOKEI_VNET_SILENT;
	chain_begin(3, "timeout=3s&cluster=failback&retry.period=1s&lazy=true");
	made = chain_call(200 * MS);
	chain_pass(100 * MS);
	(void)spoke_call_cancel(chain.first->consumer, made);
	chain_pass(5 * SECOND);
	assert_int_equal(middle->ends, 1);
	assert_int_equal(middle->error, SPOKE_ECANCELED);
	assert_int_equal(spoke_stat_get(middle->engine, SPOKE_STAT_CALLS_DEFERRED), 0);
}

/* --- the trace */

static struct spoke_trace_context seen[CHAIN_MAX];

static void see_trace(struct chain_node *node, struct spoke_request *request)
{
	assert_true(spoke_trace_of(request, &seen[node - chain.nodes]));
	if (node == chain.last)
		SPOKE_REPLY(request, "end");
	else
		assert_int_equal(chain_call_next(node, request, NULL), 0);
}

TEST(inner_call_is_part_of_the_trace)
{
	struct spoke_tracer *tracer;
	struct spoke_provider_options provide = { .filter_count = 1 };
	const struct spoke_filter *filter;

	/* Without spans to keep, one tracer may serve all processes. */
	assert_int_equal(spoke_tracer_new(NULL, NULL, &tracer), 0);
	filter = spoke_tracer_filter(tracer);
	provide.filters = &filter;
	chain.provide = &provide;
	chain.filters = &filter;
	chain.filter_count = 1;
	chain_begin(3, "timeout=3s");
	middle->handle = see_trace;
	chain.last->handle = see_trace;
	(void)chain_call(0);
	chain_pass(10 * MS);
	assert_int_equal(chain.first->error, SPOKE_OK);
	assert_memory_equal(seen[1].trace_id, seen[2].trace_id, sizeof(seen[1].trace_id));
	assert_memory_not_equal(seen[1].span_id, seen[2].span_id, sizeof(seen[1].span_id));
	chain_end();
	spoke_tracer_free(tracer);
}

/* --- tag */

static char attached[300]; /* attachments of the last request of the last process, as text */

static void note_attachments(struct chain_node *node, struct spoke_request *request)
{
	(void)node;
	(void)spoke_value_print(spoke_request_attachments(request), attached, sizeof(attached));
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* Has the first process call the second with the tag "gray". */
static void call_gray(void)
{
	static const unsigned char gray[] = "\x81\xa9"
					    "dubbo.tag\xa4gray";
	const struct spoke_call_options options = { .attachments = { gray, sizeof(gray) - 1 } };

	chain.last->handle = note_attachments;
	assert_int_equal(spoke_call(chain.first->method, (struct spoke_span){ NULL, 0 }, &options,
				    NULL, NULL, NULL),
			 0);
	chain_pass(50 * MS);
}

TEST(inner_call_has_the_tag_of_its_request)
{
	chain_begin(4, "timeout=3s");
	call_gray();
	assert_non_null(strstr(attached, "\"dubbo.tag\": \"gray\""));
}

/* Sets another tag, beside another attachment. */
static void call_blue(struct chain_node *node, struct spoke_request *request)
{
	static const unsigned char blue[] = "\x82\xa1k\xa1v\xa9"
					    "dubbo.tag\xa4"
					    "blue";
	const struct spoke_call_options options = { .attachments = { blue, sizeof(blue) - 1 } };

	assert_int_equal(chain_call_next(node, request, &options), 0);
}

TEST(tag_of_an_inner_call_itself_counts_more)
{
	chain_begin(3, "timeout=3s&tag=red");
	middle->handle = call_blue;
	call_gray();
	assert_non_null(strstr(attached, "\"dubbo.tag\": \"blue\""));
	assert_null(strstr(attached, "gray"));
	assert_non_null(strstr(attached, "\"k\": \"v\""));
}

static void call_with_key(struct chain_node *node, struct spoke_request *request)
{
	static const unsigned char key[] = "\x81\xa1k\xa1v";
	const struct spoke_call_options options = { .attachments = { key, sizeof(key) - 1 } };

	assert_int_equal(chain_call_next(node, request, &options), 0);
}

TEST(inherited_tag_stands_beside_other_attachments)
{
	chain_begin(3, "timeout=3s");
	middle->handle = call_with_key;
	call_gray();
	assert_non_null(strstr(attached, "\"dubbo.tag\": \"gray\""));
	assert_non_null(strstr(attached, "\"k\": \"v\""));
}

TEST(detached_call_has_no_tag)
{
	chain_begin(3, "timeout=3s");
	middle->handle = call_detached;
	call_gray();
	assert_null(strstr(attached, "gray"));
}
