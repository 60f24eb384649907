/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: what it says, when it is written, and what becomes of it when that fails. */
#include "tests/cluster/filterrig.h"

#include "cluster/filter/access_line.h"
#include "cluster/filter/access_log.h"
#include "tests/support/memfiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "access"

static const struct spoke_provider_options to_file = { .access_log = PATH };

static void begin(const struct spoke_provider_options *options)
{
	assert_int_equal(rig_begin(options), 0);
}

static const char *file(void)
{
	return memfiles_get(rig.world.files, PATH);
}

static unsigned appends(void)
{
	return memfiles_calls(rig.world.files, MEMFILES_APPEND);
}

/* How many lines there are, and how many are said to be left out. */
static unsigned count_lines(unsigned *ret_missing)
{
	const char *at = file();
	unsigned lines = 0;

	*ret_missing = 0;
	while (at && *at) {
		if (strncmp(at, "... ", 4) == 0)
			*ret_missing += (unsigned)strtoul(at + 4, NULL, 10);
		else
			lines++;
		at = strchr(at, '\n');
		assert_non_null(at);
		at++;
	}
	return lines;
}

static unsigned count_events(const char *words)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(rig.engines[SERVER], event.number + 1, &event) == 0)
		count += strstr(event.text, words) != NULL;
	return count;
}

/* Requests come in, `count` of them. */
static void serve(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)rig_call(rig.echo);
	rig_pass(20 * MS);
}

/* --- lines */

static void a_time_is_iso_8601(void **state)
{
	static const struct {
		uint64_t second;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.007Z" },
		{ 951782400, "2000-02-29T00:00:00.007Z" },
		{ 951868799, "2000-02-29T23:59:59.007Z" },
		{ 1709251199, "2024-02-29T23:59:59.007Z" },
		{ 1709251200, "2024-03-01T00:00:00.007Z" },
		{ 1767225599, "2025-12-31T23:59:59.007Z" },
		{ 1767225600, "2026-01-01T00:00:00.007Z" },
		{ 4107542399, "2100-02-28T23:59:59.007Z" },
		{ 4107542400, "2100-03-01T00:00:00.007Z" },
	};
	char text[SPOKEI_ACCESS_TIME];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spokei_access_print_time(cases[i].second * SECOND + 7999999, text);
		assert_string_equal(text, cases[i].text);
	}
	spokei_access_print_time(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709Z");
}

static void what_peers_say_is_escaped_and_cut(void **state)
{
	char name[2000];
	struct spoke_span whole = { name, sizeof(name) };
	struct spokei_access_line line = {
		.time = "T",
		.peer = "p",
		.service = { "a\"b\nc d", 7 },
		.arg_len = 3,
		.error = SPOKE_EREFUSED,
		.abandoned = true,
		.took_ns = 12345678,
	};
	char text[SPOKEI_ACCESS_LINE];
	size_t len;

	(void)state;
	len = spokei_access_print_line(&line, text);
	assert_string_equal(text, "T \"p\" \"a\\\"b\\x0ac d\" \"\" \"\" \"\" 3 EREFUSED 12.345 "
				  "abandoned");
	assert_int_equal(len, strlen(text));
	memset(name, '\1', sizeof(name));
	line = (struct spokei_access_line){
		.time = "2026-01-01T00:00:00.007Z",
		.peer = "p",
		.service = whole,
		.version = whole,
		.group = whole,
		.method = whole,
		.arg_len = SIZE_MAX,
		.error = SPOKE_ETIMEOUT_UNSENT,
		.abandoned = true,
		.took_ns = UINT64_MAX,
	};
	len = spokei_access_print_line(&line, text);
	assert_int_equal(len, strlen(text));
	assert_in_range(len, 600, SPOKEI_ACCESS_LINE - 2);
}

/* --- a file */

static void every_request_has_a_line(void **state)
{
	char expected[512];
	const char *peer;

	(void)state;
	begin(&to_file);
	(void)rig_call(rig.echo);
	(void)rig_call(rig.fail);
	(void)rig_call(rig.pool);
	(void)rig_call(rig.later);
	rig_pass(100 * MS);
	rig_answer(0);
	assert_null(file());
	rig_pass(SECOND);
	peer = strstr(file(), "\"127.0.0.1:");
	assert_non_null(peer);
	(void)snprintf(expected, sizeof(expected), "\"127.0.0.1:%.*s\"",
		       (int)strcspn(peer + 11, "\""), peer + 11);
	for (const char *at = file(); *at; at = strchr(at, '\n') + 1) {
		bool later = strncmp(strchr(at, 'S') + 12, "\"later", 6) == 0;

		assert_memory_equal(at,
				    later ? "2026-01-01T00:00:01.110Z "
					  : "2026-01-01T00:00:01.010Z ",
				    25);
		assert_memory_equal(at + 25, expected, strlen(expected));
		assert_memory_equal(at + 25 + strlen(expected), " \"S\" \"1.0\" \"\" \"", 15);
	}
	assert_non_null(strstr(file(), "\"echo\" 6 OK 0.000\n"));
	assert_non_null(strstr(file(), "\"fail\" 6 EREMOTE 0.000\n"));
	assert_non_null(strstr(file(), "\"pool\" 6 OK 0.000\n"));
	assert_non_null(strstr(file(), "\"later\" 6 OK 100.000\n"));
}

static struct spoke_filter_verdict refuse(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_REFUSE };
}

static void what_filters_refuse_has_a_line_too(void **state)
{
	static const struct spoke_filter filter = { .before_request = refuse };
	static const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = {
		.filters = filters,
		.filter_count = 1,
		.access_log = PATH,
	};

	(void)state;
	begin(&options);
	serve(1);
	rig_pass(2 * SECOND);
	assert_non_null(strstr(file(), "\"echo\" 6 EREFUSED 0.000\n"));
}

static void what_a_limit_refuses_has_a_line_too(void **state)
{
	unsigned missing;

	(void)state;
	rig.per_second = 2;
	begin(&to_file);
	serve(5);
	rig_pass(2 * SECOND);
	assert_int_equal(count_lines(&missing), 5);
	assert_non_null(strstr(file(), "EREFUSED"));
}

static void lines_are_written_together_once_a_second(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	for (unsigned i = 0; i < 50; i++) {
		serve(2);
		rig_pass(80 * MS);
	}
	rig_pass(2 * SECOND);
	assert_int_equal(count_lines(&missing), 100);
	assert_int_equal(missing, 0);
	assert_in_range(appends(), 5, 6);
	rig_pass(60 * SECOND);
	assert_in_range(appends(), 5, 6);
}

static void many_lines_do_not_wait(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	serve(800);
	assert_in_range(appends(), 1, 2);
	assert_true(count_lines(&missing) > 300);
	rig_pass(2 * SECOND);
	assert_int_equal(count_lines(&missing), 800);
	assert_int_equal(missing, 0);
}

static void what_cannot_be_written_is_said_once_and_counted(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	memfiles_fail(rig.world.files, MEMFILES_APPEND, 3, -ENOSPC);
	for (unsigned i = 0; i < 3; i++) {
		serve(4);
		rig_pass(SECOND);
	}
	assert_null(file());
	assert_int_equal(count_events("access log " PATH " cannot be written to"), 1);
	serve(5);
	rig_pass(3 * SECOND);
	assert_memory_equal(file(), "... 12 lines left out\n", 22);
	assert_int_equal(count_lines(&missing), 5);
	assert_int_equal(missing, 12);
	assert_int_equal(count_events("written to again"), 1);
	memfiles_fail(rig.world.files, MEMFILES_APPEND, 1, -EIO);
	serve(1);
	rig_pass(3 * SECOND);
	assert_int_equal(count_events("cannot be written to"), 2);
	assert_int_equal(count_lines(&missing), 5);
	assert_int_equal(missing, 13);
}

/* --- the end */

static void a_provider_that_is_freed_leaves_all_its_lines(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	serve(3);
	(void)rig_call(rig.later);
	rig_pass(10 * MS);
	assert_null(file());
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(10 * MS);
	assert_int_equal(count_lines(&missing), 4);
	assert_non_null(strstr(file(), "\"later\" 6 ECLOSED 10.000 abandoned\n"));
}

static void an_engine_that_is_freed_leaves_all_its_lines(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	serve(3);
	assert_null(file());
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_int_equal(count_lines(&missing), 3);
}

static void a_last_page_that_cannot_be_written_is_given_up(void **state)
{
	(void)state;
	begin(&to_file);
	serve(3);
	memfiles_fail(rig.world.files, MEMFILES_APPEND, 1000, -ENOSPC);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(SECOND);
	assert_int_equal(appends(), 1);
	assert_int_equal(count_events("cannot be written to"), 1);
}

static void an_engine_ends_though_nothing_can_be_written(void **state)
{
	(void)state;
	begin(&to_file);
	serve(3);
	memfiles_fail(rig.world.files, MEMFILES_APPEND, 1000, -ENOSPC);
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_null(file());
}

/* --- a pool whose threads are slow, or that is full */

static struct slow {
	struct spoke_loop loop;
	int (*offload)(void *loop, struct spoke_work *work);
	int error;
	struct spoke_work *work; /* that waits */
	unsigned tries;
} slow;

static int slow_offload(void *loop, struct spoke_work *work)
{
	(void)loop;
	slow.tries++;
	if (slow.error)
		return slow.error;
	assert_null(slow.work);
	slow.work = work;
	return 0;
}

/* From now on works wait for slow_work(). */
static void make_slow(void)
{
	memset(&slow, 0, sizeof(slow));
	slow.loop = *rig.faulty[SERVER].env.loop;
	rig.faulty[SERVER].env.loop = &slow.loop;
	slow.offload = slow.loop.offload;
	slow.loop.offload = slow_offload;
}

static void slow_work(int status)
{
	struct spoke_work *work = slow.work;

	assert_non_null(work);
	slow.work = NULL;
	if (status == 0)
		work->run(work);
	work->status = status;
	work->done(work);
}

static void while_a_page_is_written_another_one_is_filled(void **state)
{
	unsigned missing;
	unsigned lines;

	(void)state;
	begin(&to_file);
	make_slow();
	serve(1000);
	serve(1000);
	assert_int_equal(slow.tries, 1);
	slow_work(0);
	assert_in_range(count_lines(&missing), 300, 600);
	assert_int_equal(missing, 0);
	assert_int_equal(slow.tries, 2);
	slow_work(0);
	assert_int_equal(missing, 0);
	lines = count_lines(&missing);
	assert_in_range(lines, 1000, 1500);
	rig_pass(SECOND);
	slow_work(0);
	assert_int_equal(count_lines(&missing), lines);
	assert_int_equal(missing, 2000 - lines);
	serve(1);
	rig_pass(SECOND);
	slow_work(0);
	assert_int_equal(count_lines(&missing), lines + 1);
	assert_int_equal(missing, 2000 - lines);
}

static void while_the_pool_is_full_lines_wait(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	make_slow();
	slow.error = -EAGAIN;
	serve(3);
	rig_pass(5 * SECOND);
	assert_in_range(slow.tries, 4, 6);
	slow.error = 0;
	rig_pass(SECOND);
	slow_work(0);
	assert_int_equal(count_lines(&missing), 3);
	assert_int_equal(missing, 0);
	slow.error = -EAGAIN;
	serve(3);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(MS);
	assert_int_equal(count_lines(&missing), 6);
}

static void what_a_pool_that_ends_hands_back_is_written_all_the_same(void **state)
{
	unsigned missing;

	(void)state;
	begin(&to_file);
	make_slow();
	serve(3);
	rig_pass(SECOND);
	serve(2);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(MS);
	slow.error = -ECANCELED;
	slow_work(-ECANCELED);
	assert_int_equal(count_lines(&missing), 5);
	assert_int_equal(missing, 0);
}

/* --- the engine's log */

static char logged[4096];

static void keep_line(void *ctx, const struct spoke_log_line *line)
{
	size_t len = strlen(logged);

	(void)ctx;
	if (strcmp(line->module, "access") == 0)
		(void)snprintf(logged + len, sizeof(logged) - len, "%s\n", line->text);
}

static void true_is_the_engines_log(void **state)
{
	static const struct spoke_provider_options options = { .access_log = "true" };
	unsigned lines = 0;

	(void)state;
	memset(logged, 0, sizeof(logged));
	rig.faulty[SERVER].env.log = keep_line;
	begin(&options);
	serve(30); /* in one turn, and each is wanted */
	for (const char *at = logged; (at = strstr(at, "\"echo\" 6 OK 0.000\n")) != NULL; at++)
		lines++;
	assert_int_equal(lines, 30);
	rig_pass(2 * SECOND);
	assert_int_equal(appends(), 0);
}

/* --- making, and memory */

static void where_it_goes_has_to_be_said(void **state)
{
	static const struct spoke_provider_options options = { .access_log = "" };

	(void)state;
	assert_int_equal(rig_begin(&options), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access_log"));
	rig.faulty[SERVER].env.files = NULL;
	assert_int_equal(rig_begin(&to_file), SPOKE_EUNSUPPORTED);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access_log"));
}

static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(rig_set_up(NULL), 0);
	faulty_fail(&rig.faulty[SERVER], FAULTY_MEMORY, nth, -ENOMEM, false);
	if (rig_begin(&to_file) == 0) {
		(void)rig_try(rig.echo);
		(void)rig_try(rig.later);
		(void)rig_try(rig.pool);
		rig_pass(SECOND);
		rig_answer_all();
		rig_pass(40 * SECOND);
		if (rig_try(rig.echo)) {
			rig_pass(2 * SECOND);
			assert_non_null(strstr(file(), "\"echo\" 6 OK"));
		}
	}
	failed = rig.faulty[SERVER].failed[FAULTY_MEMORY] > 0;
	assert_int_equal(rig_tear_down(NULL), 0);
	return failed;
}

static void it_survives_the_want_of_memory(void **state)
{
	uint64_t nth = 1;

	(void)state;
	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_iso_8601),
		cmocka_unit_test(what_peers_say_is_escaped_and_cut),
		TEST(every_request_has_a_line),
		TEST(what_filters_refuse_has_a_line_too),
		TEST(what_a_limit_refuses_has_a_line_too),
		TEST(lines_are_written_together_once_a_second),
		TEST(many_lines_do_not_wait),
		TEST(what_cannot_be_written_is_said_once_and_counted),
		TEST(a_provider_that_is_freed_leaves_all_its_lines),
		TEST(an_engine_that_is_freed_leaves_all_its_lines),
		TEST(a_last_page_that_cannot_be_written_is_given_up),
		TEST(an_engine_ends_though_nothing_can_be_written),
		TEST(while_a_page_is_written_another_one_is_filled),
		TEST(while_the_pool_is_full_lines_wait),
		TEST(what_a_pool_that_ends_hands_back_is_written_all_the_same),
		TEST(true_is_the_engines_log),
		TEST(where_it_goes_has_to_be_said),
		cmocka_unit_test(it_survives_the_want_of_memory),
	};

	return cmocka_run_group_tests_name("access log", tests, NULL, NULL);
}
