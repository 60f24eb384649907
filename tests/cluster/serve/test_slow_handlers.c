/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the log about handlers that hold the loop, or do not answer in time. */
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_NS (100 * SECOND)

static char logged[4096];
static uint64_t hold_ns;
static unsigned held_of; /* the request that holds the loop, from 1 on */

static void keep_line(void *ctx, const struct spoke_log_line *line)
{
	size_t len = strlen(logged);

	(void)ctx;
	if (line->level == SPOKE_LOG_WARN)
		(void)snprintf(logged + len, sizeof(logged) - len, "%s\n", line->text);
}

static void hold(const struct spoke_request *request)
{
	(void)request;
	if (rig.handled == held_of)
		spokei_world_hold(&rig.processes[SERVER], hold_ns);
}

STEP(set_up)
{
	assert_int_equal(filterrig_set_up(NULL), 0);
	memset(logged, 0, sizeof(logged));
	rig.faulty[SERVER].env.log = keep_line;
	hold_ns = 150 * MS;
	held_of = 1;
	rig.in_echo = hold;
	assert_int_equal(filterrig_begin(NULL), 0);
}

FIXTURE(set_up, filterrig_tear_down);

static unsigned lines(const char *part)
{
	unsigned count = 0;

	for (const char *at = logged; (at = strstr(at, part)) != NULL; at++)
		count++;
	return count;
}

/* --- the loop */

static const char held_loop[] = "the handler of \"S\", method \"echo\", held the loop for ";

TEST(handler_that_holds_loop_is_named)
{
	(void)filterrig_call(rig.echo);
	filterrig_pass(SECOND);
	assert_int_equal(lines(held_loop), 1);
	assert_int_equal(lines(" ms: reply later, or let it run on the pool"), 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_TURNS_HELD), 1);
}

TEST(handler_within_slow_loop_is_not_named)
{
	hold_ns = 100 * MS;
	(void)filterrig_call(rig.echo);
	filterrig_pass(SECOND);
	assert_string_equal(logged, "");
	assert_int_equal(filterrig_stat(SPOKE_STAT_TURNS_HELD), 0);
}

/* Of several in one turn, the one that did. */
TEST(first_of_several_handlers_is_named)
{
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.fail);
	(void)filterrig_call(rig.fail);
	filterrig_pass(SECOND);
	assert_int_equal(rig.handled, 3);
	assert_int_equal(lines(held_loop), 1);
	assert_int_equal(lines("held the loop"), 1);
}

TEST(last_of_several_handlers_is_named)
{
	held_of = 3;
	(void)filterrig_call(rig.fail);
	(void)filterrig_call(rig.fail);
	(void)filterrig_call(rig.echo);
	filterrig_pass(SECOND);
	assert_int_equal(rig.handled, 3);
	assert_int_equal(lines(held_loop), 1);
	assert_int_equal(lines("held the loop"), 1);
}

/* --- requests */

static void call_later(void)
{
	const struct spoke_call_options patient = { .timeout_ns = TIMEOUT_NS };

	(void)filterrig_call_with(rig.later, "hello", &patient);
}

static const char no_answer[] =
	"the handler of \"S\", method \"later\", has not answered 127.0.0.1:";

TEST(request_without_answer_is_named_once)
{
	call_later();
	filterrig_pass(999 * MS);
	assert_string_equal(logged, "");
	filterrig_pass(3 * MS);
	assert_int_equal(lines(no_answer), 1);
	assert_int_equal(lines("after 1000 ms (slow.after)"), 1);
	filterrig_pass(60 * SECOND);
	assert_int_equal(lines(no_answer), 1);
	filterrig_answer_all();
	filterrig_pass(SECOND);
}

TEST(each_request_without_answer_is_named_at_its_time)
{
	for (unsigned i = 0; i < 3; i++) {
		call_later();
		filterrig_pass(300 * MS);
	}
	filterrig_answer(1);
	for (unsigned i = 0; i < 3; i++) {
		filterrig_pass(300 * MS);
		assert_int_equal(lines(no_answer), 1 + (i == 2));
	}
	filterrig_answer_all();
	filterrig_pass(SECOND);
}

TEST(request_that_is_answered_in_time_is_not_named)
{
	call_later();
	filterrig_pass(900 * MS);
	filterrig_answer_all();
	filterrig_pass(10 * SECOND);
	assert_string_equal(logged, "");
}
