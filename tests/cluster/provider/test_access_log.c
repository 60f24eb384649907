/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: its lines, when they are written, failing writes, and its end. */
#include "cluster/serve/access_log.h"
#include "core/virtual/files.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the fixture of the filter tests with an access log in a file */

#define LOG_PATH "access"
/* --- the fixture of the access log: */

/* Makes a provider with the access log. */
static const struct spoke_provider_options log_to_file = { .access_log = LOG_PATH };

static unsigned checks; /* calls for nothing, at the begin */

static void log_begin(const struct spoke_provider_options *options)
{
	assert_int_equal(filterrig_begin(options), 0);
	checks = spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_APPEND);
}

/* Returns the contents of the file, or NULL, and the number of writes to it. */
static const char *log_file(void)
{
	return spokei_vfiles_get(rig.world.files, LOG_PATH);
}

static unsigned log_appends(void)
{
	return spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_APPEND) - checks;
}

/* Counts the lines, and the lines reported as left out. */
static unsigned log_count_lines(unsigned *ret_missing)
{
	const char *at = log_file();
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

/* Counts the events that contain the words. */
static unsigned log_count_events(const char *words)
{
	return scene_events(rig.engines[SERVER], words);
}

/* Serves `count` requests. */
static void log_serve(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)filterrig_call(rig.echo);
	filterrig_pass(20 * MS);
}

/* --- the format of a line of the access log */

FIXTURE(NULL, NULL);

TEST(time_is_printed_as_iso_8601)
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

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spokei_access_print_time(cases[i].second * SECOND + 7999999, text);
		assert_string_equal(text, cases[i].text);
	}
	spokei_access_print_time(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709Z");
}

TEST(text_from_peers_is_escaped_and_cut)
{
	char name[2000];
	char long_name[2000];
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

	len = spokei_access_print_line(&line, text);
	assert_string_equal(text, "T \"p\" \"a\\\"b\\x0ac d\" \"\" \"\" \"\" 3 EREFUSED 12.345 "
				  "abandoned");
	assert_int_equal(len, strlen(text));
	line.identity = "dns:a\"b";
	(void)spokei_access_print_line(&line, text);
	assert_non_null(strstr(text, " abandoned as \"dns:a\\\"b\""));
	memset(name, '\1', sizeof(name));
	memset(long_name, '\1', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
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
		.identity = long_name,
	};
	len = spokei_access_print_line(&line, text);
	assert_int_equal(len, strlen(text));
	assert_in_range(len, 600, SPOKEI_ACCESS_LINE - 2);
}

/* A peer chooses all these texts: none may end its quotes or the line. */
TEST(each_text_of_a_line_is_escaped)
{
	static const char hostile[] = "a\"b\\c\nT \"p\" \r\x1b[2J\x7f\xff";
	const struct spoke_span text = { hostile, sizeof(hostile) - 1 };

	for (unsigned field = 0; field < 5; field++) {
		struct spokei_access_line line = { .time = "T", .peer = "" };
		struct spokei_access_line plain = line;
		char made[SPOKEI_ACCESS_LINE];
		char usual[SPOKEI_ACCESS_LINE];
		unsigned quotes = 0;

		if (field == 0)
			line.peer = hostile;
		else
			*(struct spoke_span *[]){ &line.service, &line.version, &line.group,
						  &line.method }[field - 1] = text;
		(void)spokei_access_print_line(&plain, usual);
		(void)spokei_access_print_line(&line, made);
		for (const char *at = made; *at; at++) {
			assert_in_range(*at, 0x20, 0x7e);
			quotes += *at == '"' && at[-1] != '\\';
		}
		assert_int_equal(quotes, 10);
		assert_non_null(strstr(made, "\"a\\\"b\\\\c\\x0aT \\\"p\\\" \\x0d\\x1b[2J\\x7f"));
		assert_true(strlen(made) > strlen(usual));
	}
}

/* --- the access log: its contents, when it is written, and failing writes */

FIXTURE(filterrig_set_up, filterrig_tear_down);

TEST(request_gets_one_line)
{
	char expected[512];
	const char *peer;

	log_begin(&log_to_file);
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.fail);
	(void)filterrig_call(rig.pool);
	(void)filterrig_call(rig.later);
	filterrig_pass(100 * MS);
	filterrig_answer(0);
	assert_null(log_file());
	filterrig_pass(SECOND);
	peer = strstr(log_file(), "\"127.0.0.1:");
	assert_non_null(peer);
	(void)snprintf(expected, sizeof(expected), "\"127.0.0.1:%.*s\"",
		       (int)strcspn(peer + 11, "\""), peer + 11);
	for (const char *at = log_file(); *at; at = strchr(at, '\n') + 1) {
		bool later = strncmp(strchr(at, 'S') + 12, "\"later", 6) == 0;

		assert_memory_equal(at,
				    later ? "2026-01-01T00:00:01.110Z "
					  : "2026-01-01T00:00:01.010Z ",
				    25);
		assert_memory_equal(at + 25, expected, strlen(expected));
		assert_memory_equal(at + 25 + strlen(expected), " \"S\" \"1.0\" \"\" \"", 15);
	}
	assert_non_null(strstr(log_file(), "\"echo\" 6 OK 0.000\n"));
	assert_non_null(strstr(log_file(), "\"fail\" 6 EREMOTE 0.000\n"));
	assert_non_null(strstr(log_file(), "\"pool\" 6 OK 0.000\n"));
	assert_non_null(strstr(log_file(), "\"later\" 6 OK 100.000\n"));
}

static struct spoke_filter_verdict refuse(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_REFUSE };
}

TEST(request_refused_by_filter_gets_a_line)
{
	static const struct spoke_filter filter = { .before_request = refuse };
	static const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = {
		.filters = filters,
		.filter_count = 1,
		.access_log = LOG_PATH,
	};

	log_begin(&options);
	log_serve(1);
	filterrig_pass(2 * SECOND);
	assert_non_null(strstr(log_file(), "\"echo\" 6 EREFUSED 0.000\n"));
}

TEST(request_refused_by_limit_gets_a_line)
{
	unsigned missing;

	rig.per_second = 2;
	log_begin(&log_to_file);
	log_serve(5);
	filterrig_pass(2 * SECOND);
	assert_int_equal(log_count_lines(&missing), 5);
	assert_non_null(strstr(log_file(), "EREFUSED"));
}

/* Sends a request over HTTP and reads the head of its answer. */
static void get(const char *text, const char *answer)
{
	const struct spoke_env *env = &rig.processes[CLIENT].env;
	int fd = scene_connect(env, "127.0.0.1:20880");
	char got[512];
	bool ended;
	size_t len;

	filterrig_pass(MS);
	scene_write(env, fd, text, strlen(text));
	filterrig_pass(10 * MS);
	len = scene_read(env, fd, got, sizeof(got) - 1, &ended);
	got[len] = '\0';
	assert_non_null(strstr(got, answer));
	scene_hang_up(env, fd);
}

TEST(request_that_is_not_served_gets_a_line)
{
	const struct spoke_method_options other = { .service = "None" };
	struct spoke_method *methods[2];
	unsigned missing;

	log_begin(&log_to_file);
	assert_int_equal(spoke_consumer_method(rig.consumer, "absent", NULL, &methods[0]), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &other, &methods[1]), 0);
	(void)filterrig_call(methods[0]);
	(void)filterrig_call(methods[1]);
	filterrig_pass(20 * MS);
	get("GET /x HTTP/1.1\r\nHost: 127.0.0.1:20880\r\n\r\n", "HTTP/1.1 404 ");
	get("GET /%zz HTTP/1.1\r\nHost: 127.0.0.1:20880\r\n\r\n", "HTTP/1.1 400 ");
	get("POST /S/absent HTTP/1.1\r\nHost: 127.0.0.1:20880\r\n"
	    "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
	    "HTTP/1.1 404 ");
	filterrig_pass(2 * SECOND);
	assert_non_null(strstr(log_file(), " \"S\" \"1.0\" \"\" \"absent\" 6 ENOSERVICE 0.000\n"));
	assert_non_null(strstr(log_file(), " \"None\" \"1.0\" \"\" \"echo\" 6 ENOSERVICE 0.000\n"));
	assert_non_null(strstr(log_file(), " \"\" \"\" \"\" \"\" 0 EBADREQUEST 0.000\n"));
	assert_non_null(strstr(log_file(), " \"S\" \"\" \"\" \"absent\" 0 ENOSERVICE 0.000\n"));
	assert_non_null(strstr(log_file(), " \"x\" \"\" \"\" \"$methods\" 0 ENOSERVICE 0.000\n"));
	assert_int_equal(log_count_lines(&missing), 5);
}

TEST(request_over_the_limit_of_all_gets_a_line)
{
	const struct spoke_provider_options options = { .access_log = LOG_PATH, .requests_max = 1 };
	unsigned missing;

	log_begin(&options);
	(void)filterrig_call(rig.later);
	(void)filterrig_call(rig.later);
	filterrig_pass(20 * MS);
	filterrig_answer(0);
	filterrig_pass(2 * SECOND);
	assert_int_equal(log_count_lines(&missing), 2);
	assert_non_null(strstr(log_file(), "\"later\" 6 EREFUSED 0.000\n"));
}

TEST(lines_are_written_together_every_second)
{
	unsigned missing;

	log_begin(&log_to_file);
	for (unsigned i = 0; i < 50; i++) {
		log_serve(2);
		filterrig_pass(80 * MS);
	}
	filterrig_pass(2 * SECOND);
	assert_int_equal(log_count_lines(&missing), 100);
	assert_int_equal(missing, 0);
	assert_in_range(log_appends(), 5, 6);
	filterrig_pass(60 * SECOND);
	assert_in_range(log_appends(), 5, 6);
}

TEST(half_full_page_is_written_at_once)
{
	unsigned missing;

	log_begin(&log_to_file);
	log_serve(800);
	assert_in_range(log_appends(), 1, 2);
	assert_true(log_count_lines(&missing) > 300);
	filterrig_pass(2 * SECOND);
	assert_int_equal(log_count_lines(&missing), 800);
	assert_int_equal(missing, 0);
}

TEST(failed_writes_report_one_event_and_count_lost_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 3, -ENOSPC);
	for (unsigned i = 0; i < 3; i++) {
		log_serve(4);
		filterrig_pass(SECOND);
	}
	assert_null(log_file());
	assert_int_equal(log_count_events("access log " LOG_PATH " cannot be written"), 1);
	log_serve(5);
	filterrig_pass(3 * SECOND);
	assert_memory_equal(log_file(), "... 12 lines left out\n", 22);
	assert_int_equal(log_count_lines(&missing), 5);
	assert_int_equal(missing, 12);
	assert_int_equal(log_count_events("can be written again"), 1);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1, -EIO);
	log_serve(1);
	filterrig_pass(3 * SECOND);
	assert_int_equal(log_count_events("cannot be written"), 2);
	assert_int_equal(log_count_lines(&missing), 5);
	assert_int_equal(missing, 13);
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

TEST(option_true_writes_to_engine_log)
{
	static const struct spoke_provider_options options = { .access_log = "true" };
	unsigned lines = 0;

	memset(logged, 0, sizeof(logged));
	rig.faulty[SERVER].env.log = keep_line;
	assert_int_equal(spoke_engine_log(rig.engines[SERVER], "info"), 0);
	log_begin(&options);
	log_serve(30); /* in one turn, and each line is logged */
	for (const char *at = logged; (at = strstr(at, "\"echo\" 6 OK 0.000\n")) != NULL; at++)
		lines++;
	assert_int_equal(lines, 30);
	filterrig_pass(2 * SECOND);
	assert_int_equal(log_appends(), 0);
}

/* --- making, and memory */

TEST(empty_path_is_rejected)
{
	static const struct spoke_provider_options options = { .access_log = "" };

	assert_int_equal(filterrig_begin(&options), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access.log"));
	rig.faulty[SERVER].env.files = NULL;
	assert_int_equal(filterrig_begin(&log_to_file), SPOKE_EUNSUPPORTED);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access.log"));
}

TEST(path_that_cannot_be_written_is_rejected)
{
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1, -ENOENT);
	assert_int_equal(filterrig_begin(&log_to_file), SPOKE_ESYSTEM);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]),
			       "option access.log=" LOG_PATH
			       ": cannot be written: No such file or directory"));
	assert_null(log_file());
	assert_int_equal(filterrig_begin(&log_to_file), 0);
	assert_null(log_file());
}

static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(filterrig_set_up(NULL), 0);
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
	if (filterrig_begin(&log_to_file) == 0) {
		(void)filterrig_try(rig.echo);
		(void)filterrig_try(rig.later);
		(void)filterrig_try(rig.pool);
		filterrig_pass(SECOND);
		filterrig_answer_all();
		filterrig_pass(40 * SECOND);
		if (filterrig_try(rig.echo)) {
			filterrig_pass(2 * SECOND);
			assert_non_null(strstr(log_file(), "\"echo\" 6 OK"));
		}
	}
	failed = rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY] > 0;
	assert_int_equal(filterrig_tear_down(NULL), 0);
	return failed;
}

TEST(access_log_survives_failing_allocations, .bare = true)
{
	uint64_t nth = 1;

	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}

/* --- the access log: the end of its provider, and a thread pool that is slow, full or gone */

/* --- the end */

TEST(freed_provider_writes_all_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	log_serve(3);
	(void)filterrig_call(rig.later);
	filterrig_pass(10 * MS);
	assert_null(log_file());
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	assert_int_equal(log_count_lines(&missing), 4);
	assert_non_null(strstr(log_file(), "\"later\" 6 ECLOSED 10.000 abandoned\n"));
}

TEST(freed_engine_writes_all_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	log_serve(3);
	assert_null(log_file());
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_int_equal(log_count_lines(&missing), 3);
}

TEST(last_page_is_dropped_when_write_fails)
{
	log_begin(&log_to_file);
	log_serve(3);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1000, -ENOSPC);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(SECOND);
	assert_int_equal(log_appends(), 1);
	assert_int_equal(log_count_events("cannot be written"), 1);
}

TEST(engine_ends_when_writes_fail)
{
	log_begin(&log_to_file);
	log_serve(3);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1000, -ENOSPC);
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_null(log_file());
}

/* --- a slow or full thread pool */

static struct slow {
	struct spoke_loop loop;
	int (*offload)(void *loop, struct spoke_work *work);
	int error;
	struct spoke_work *work; /* the work that waits */
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

/* Makes the work of the pool wait for slow_work(). */
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

TEST(second_page_fills_while_first_is_written)
{
	unsigned missing;
	unsigned lines;

	log_begin(&log_to_file);
	make_slow();
	log_serve(1000);
	log_serve(1000);
	assert_int_equal(slow.tries, 1);
	slow_work(0);
	assert_in_range(log_count_lines(&missing), 300, 600);
	assert_int_equal(missing, 0);
	assert_int_equal(slow.tries, 2);
	slow_work(0);
	assert_int_equal(missing, 0);
	lines = log_count_lines(&missing);
	assert_in_range(lines, 1000, 1500);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), lines);
	assert_int_equal(missing, 2000 - lines);
	log_serve(1);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), lines + 1);
	assert_int_equal(missing, 2000 - lines);
}

static void fail_many(unsigned count, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		(void)filterrig_call_with(rig.fail, text, NULL);
	filterrig_pass(20 * MS);
}

/*
 * Here a line of "fail" has 79 bytes, 80 with long arguments, and a line of "echo" 74. After a
 * dropped line a shorter line would fit, but must wait until the number of dropped lines is
 * written.
 */
TEST(missing_lines_are_counted_before_later_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	fail_many(415, "hello");
	assert_int_equal(slow.tries, 1);
	fail_many(779, "hello");
	fail_many(49, "hello, you");
	fail_many(1, "hello");
	log_serve(1);
	slow_work(0);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 415 + 779 + 49);
	assert_int_equal(strlen(log_file()), (415 + 779) * 79 + 49 * 80);
	assert_int_equal(missing, 0);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 415 + 779 + 49);
	assert_int_equal(missing, 2);
}

TEST(lines_wait_while_pool_is_full)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	slow.error = -EAGAIN;
	log_serve(3);
	filterrig_pass(5 * SECOND);
	assert_in_range(slow.tries, 4, 6);
	slow.error = 0;
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 3);
	assert_int_equal(missing, 0);
	slow.error = -EAGAIN;
	log_serve(3);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(MS);
	assert_int_equal(log_count_lines(&missing), 6);
}

TEST(page_returned_by_ending_pool_is_written)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	log_serve(3);
	filterrig_pass(SECOND);
	log_serve(2);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(MS);
	slow.error = -ECANCELED;
	slow_work(-ECANCELED);
	assert_int_equal(log_count_lines(&missing), 5);
	assert_int_equal(missing, 0);
}
