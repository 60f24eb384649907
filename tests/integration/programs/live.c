/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, commands and output of the programs; see live.h. */
#define _GNU_SOURCE
#include "live.h"

#include <spoke/signals.h>
#include <spoke/stats.h>

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define WORD_BYTES 32

static struct live {
	struct spoke_engine *engine;
	void (*obey)(void *arg, const struct live_command *command);
	void *arg;
} live;

struct posted {
	struct spoke_post post;
	struct live_command command;
	char word[WORD_BYTES];
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

void live_say(const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	int len = snprintf(line, sizeof(line), "%llu ",
			   (unsigned long long)read_clock(CLOCK_MONOTONIC));
	va_list list;
	size_t end;

	va_start(list, format);
	(void)vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, list);
	va_end(list);
	end = strlen(line);
	line[end] = '\n';
	/* Shorter than PIPE_BUF, so the write is atomic. If the test has ended, stdin ends as well.
	 */
	(void)!write(STDOUT_FILENO, line, end + 1);
}

/* --- arguments */

const char *live_argument(char **argv, const char *name)
{
	size_t len = strlen(name);

	while (*++argv)
		if (strncmp(*argv, name, len) == 0 && (*argv)[len] == '=')
			return *argv + len + 1;
	return NULL;
}

uint64_t live_number(char **argv, const char *name, uint64_t preset)
{
	const char *text = live_argument(argv, name);

	return text ? strtoull(text, NULL, 10) : preset;
}

uint64_t live_time(char **argv, const char *name)
{
	const char *text = live_argument(argv, name);

	if (text && strcmp(text, "off") == 0)
		return SPOKE_OFF;
	return live_number(argv, name, 0) * LIVE_NS_PER_MS;
}

/* --- events */

void live_changed(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	live_say("link %s missed %u error %s attempt %u pause %llu name %s",
		 spoke_link_change_name(event->change), event->missed, spoke_errname(event->error),
		 (unsigned)event->attempt, (unsigned long long)(event->pause_ns / LIVE_NS_PER_MS),
		 event->name);
}

static void say_stats(void)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		uint64_t value = spoke_stat_get(live.engine, (enum spoke_stat)i);

		if (value > 0)
			live_say("stat %s %llu", spoke_stat_name((enum spoke_stat)i),
				 (unsigned long long)value);
	}
	live_say("stat end");
}

static void drain(uint64_t timeout_ns)
{
	int error = spoke_engine_drain(live.engine, timeout_ns);

	live_say("drain %s", spoke_errname(error));
}

static void block(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / UINT64_C(1000000000)),
				 .tv_nsec = (long)(ns % UINT64_C(1000000000)) };

	live_say("blocked");
	(void)nanosleep(&time, NULL);
	live_say("free again");
}

static void run_command(struct spoke_post *post)
{
	struct posted *posted = spoke_container_of(post, struct posted, post);
	struct live_command *command = &posted->command;

	command->word = posted->word;
	if (strcmp(command->word, "block") == 0)
		block(command->first * LIVE_NS_PER_MS);
	else if (strcmp(command->word, "stats") == 0)
		say_stats();
	else if (strcmp(command->word, "cpu") == 0)
		live_say("cpu %llu", (unsigned long long)read_clock(CLOCK_PROCESS_CPUTIME_ID));
	else if (strcmp(command->word, "drain") == 0)
		drain(command->first * LIVE_NS_PER_MS);
	else if (strcmp(command->word, "quit") == 0)
		spoke_engine_stop(live.engine);
	else
		live.obey(live.arg, command);
	free(posted);
}

/* --- reader thread */

static void post_command(const char *line)
{
	struct posted *posted = calloc(1, sizeof(*posted));
	char *numbers;
	size_t len = strcspn(line, " ");

	if (posted == NULL)
		abort();
	(void)snprintf(posted->word, sizeof(posted->word), "%.*s", (int)len, line);
	posted->command.first = strtoull(line + len, &numbers, 10);
	posted->command.second = strtoull(numbers, NULL, 10);
	posted->post.run = run_command;
	spoke_engine_post(live.engine, &posted->post);
}

/* Executes the complete lines; returns the number of bytes left. */
static size_t take_lines(char *bytes, size_t len)
{
	char *at = bytes;
	char *end;

	while ((end = memchr(at, '\n', len)) != NULL) {
		*end = '\0';
		post_command(at);
		len -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(bytes, at, len);
	return len;
}

static void *listen_to_test(void *arg)
{
	char bytes[LINE_MAX_BYTES];
	size_t len = 0;
	ssize_t got;

	(void)arg;
	while ((got = read(STDIN_FILENO, bytes + len, sizeof(bytes) - len)) > 0)
		len = take_lines(bytes, len + (size_t)got);
	post_command("quit");
	return NULL;
}

int live_run(struct spoke_engine *engine, uint64_t drain_ns,
	     void (*obey)(void *arg, const struct live_command *command), void *arg)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	pthread_t thread;
	int error = spoke_engine_drain_on_signals(engine, drain_ns);

	live = (struct live){ engine, obey, arg };
	(void)sigaction(SIGPIPE, &ignored, NULL);
	if (!error && pthread_create(&thread, NULL, listen_to_test, NULL))
		error = SPOKE_ESYSTEM;
	if (error)
		return error;
	/* The reader thread ends with the process; until then it waits for lines. */
	(void)pthread_detach(thread);
	return spoke_engine_run(engine);
}
