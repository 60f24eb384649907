/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: its contents, when it is written, and failing writes. */
#include "tests/cluster/provider/logrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	struct iovec part = { (void *)(uintptr_t)text, strlen(text) };
	struct spoke_address address;
	char got[512];
	ssize_t len;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, "127.0.0.1:20880", &address), 0);
	(void)env->net->connect(env->ctx, &address, &fd);
	filterrig_pass(MS);
	assert_int_equal(env->net->write(env->ctx, fd, &part, 1), (ssize_t)part.iov_len);
	filterrig_pass(10 * MS);
	len = env->net->read(env->ctx, fd, got, sizeof(got) - 1);
	assert_true(len > 0);
	got[len] = '\0';
	assert_non_null(strstr(got, answer));
	env->net->close(env->ctx, fd);
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
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access_log"));
	rig.faulty[SERVER].env.files = NULL;
	assert_int_equal(filterrig_begin(&log_to_file), SPOKE_EUNSUPPORTED);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "access_log"));
}

TEST(path_that_cannot_be_written_is_rejected)
{
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1, -ENOENT);
	assert_int_equal(filterrig_begin(&log_to_file), SPOKE_ESYSTEM);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]),
			       "option access_log: " LOG_PATH
			       " cannot be written: No such file or directory"));
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
