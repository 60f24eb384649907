/* SPDX-License-Identifier: Apache-2.0 */
/* The log on the standard error output: its lines, its levels, and readers that do not read. */
#define _GNU_SOURCE

#include "core/engine/engine.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pipe in place of stderr. */
struct pipe {
	int saved;
	int out;
};

static void begin(struct pipe *into)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	into->saved = dup(STDERR_FILENO);
	into->out = ends[0];
	assert_true(into->saved >= 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[1]);
}

/* Restores stderr, and returns the lines that have been written. */
static void end(struct pipe *from, char *text, size_t size)
{
	ssize_t len = 0;

	assert_int_equal(dup2(from->saved, STDERR_FILENO), STDERR_FILENO);
	close(from->saved);
	if (from->out >= 0) {
		len = read(from->out, text, size - 1);
		close(from->out);
	}
	text[len > 0 ? len : 0] = '\0';
}

/* Makes an engine that logs two events. Returns the error of spoke_engine_new(). */
static int log_two_events(const char *option, const char *variable, char *text, size_t size)
{
	struct spoke_engine_options options = { .log = option };
	struct spoke_engine *engine = NULL;
	struct pipe pipe;
	int error;

	if (variable)
		assert_int_equal(setenv("SPOKE_LOG", variable, 1), 0);
	else
		assert_int_equal(unsetenv("SPOKE_LOG"), 0);
	begin(&pipe);
	error = spoke_engine_new(&options, &engine);
	if (error == SPOKE_OK) {
		spokei_event(engine, SPOKE_OK, "fine");
		spokei_event(engine, SPOKE_ELOST, "broken");
	}
	spoke_engine_free(engine);
	end(&pipe, text, size);
	return error;
}

TEST(engine_logs_warnings_without_option_and_variable)
{
	static const char *const unset[] = { NULL, "" };
	char text[1024];

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(log_two_events(NULL, unset[i], text, sizeof(text)), 0);
		assert_null(strstr(text, "fine"));
		assert_non_null(strstr(text, "Z warn broken: "));
	}
	assert_int_equal(log_two_events(NULL, "off", text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

TEST(variable_sets_the_level)
{
	char text[1024];

	assert_int_equal(log_two_events(NULL, "info", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "Z info fine\n"));
	assert_non_null(strstr(text, "Z warn broken: "));
	assert_int_equal(log_two_events(NULL, "warn", text, sizeof(text)), 0);
	assert_null(strstr(text, "fine"));
	assert_non_null(strstr(text, "Z warn broken: "));
	assert_int_equal(log_two_events(NULL, "error", text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

TEST(option_overrides_the_variable)
{
	char text[1024];

	assert_int_equal(log_two_events("off", "info", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(log_two_events("info", "off", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "Z info fine\n"));
}

TEST(unknown_level_is_an_error_or_counts_as_info)
{
	char text[1024];

	assert_int_equal(log_two_events("loud", NULL, text, sizeof(text)), SPOKE_EINVAL);
	assert_int_equal(log_two_events(NULL, "loud", text, sizeof(text)), 0);
	assert_non_null(
		strstr(text, "SPOKE_LOG: not a level; use error, warn, info, debug or off"));
	assert_non_null(strstr(text, "Z info fine\n"));
}

TEST(line_begins_with_utc_time_and_counts_dropped_lines)
{
	const struct spoke_env *env = spoke_host_env();
	const struct spoke_log_line line = { SPOKE_LOG_WARN, "x", "text", 7 };
	unsigned year = 0;
	struct pipe pipe;
	char text[256];

	begin(&pipe);
	env->print(env->ctx, &line);
	end(&pipe, text, sizeof(text));
	assert_int_equal(sscanf(text, "%4u-", &year), 1);
	assert_true(year >= 2020);
	assert_string_equal(text + strlen("2026-01-01T00:00:00.000"),
			    "Z warn text (7 similar lines dropped)\n");
}

TEST(full_pipe_drops_lines_without_waiting)
{
	const struct spoke_env *env = spoke_host_env();
	const struct spoke_log_line line = { SPOKE_LOG_INFO, "x", "many", 0 };
	struct pipe pipe;
	char text[256];

	begin(&pipe);
	for (int i = 0; i < 10000; i++) /* more than any pipe holds */
		env->print(env->ctx, &line);
	end(&pipe, text, sizeof(text));
	assert_non_null(strstr(text, " info many\n"));
}

TEST(closed_reader_does_not_end_the_program)
{
	const struct spoke_env *env = spoke_host_env();
	const struct spoke_log_line line = { SPOKE_LOG_INFO, "x", "lost", 0 };
	const struct sigaction deadly = { .sa_handler = SIG_DFL };
	struct pipe pipe;
	sigset_t pending;
	char text[16];

	assert_int_equal(sigaction(SIGPIPE, &deadly, NULL), 0);
	begin(&pipe);
	close(pipe.out);
	pipe.out = -1;
	for (int i = 0; i < 3; i++)
		env->print(env->ctx, &line);
	assert_int_equal(sigpending(&pending), 0);
	end(&pipe, text, sizeof(text));
	assert_false(sigismember(&pending, SIGPIPE));
}
