/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output of the rig's processes and sends them commands. */
#define _GNU_SOURCE
#include "tests/integration/rig_parts.h"

#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 16u
#define LOOK_MS 20 /* interval of checks of a process without output */
#define TAIL 40u   /* last lines of each process that a failure prints */

/* --- lines */

static void add_line(struct rig_process *process, const char *text)
{
	struct rig_line *line;
	char *rest;

	if (process->line_count == RIG_LINES_MAX)
		fail_msg("%s prints too many lines", process->name);
	line = &process->lines[process->line_count];
	line->at_ns = strtoull(text, &rest, 10);
	line->text = strdup(rest + (*rest == ' '));
	assert_non_null(line->text);
	process->line_count++;
}

static void take_lines(struct rig_process *process)
{
	char *at = process->part;
	char *end;

	while ((end = memchr(at, '\n', process->part_len)) != NULL) {
		*end = '\0';
		add_line(process, at);
		process->part_len -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(process->part, at, process->part_len);
	assert_true(process->part_len < sizeof(process->part));
}

/* Reads all pending output of a process. */
void rig_hear(struct rig_process *process)
{
	ssize_t got = 1;

	while (got > 0 && process->from >= 0) {
		got = read(process->from, process->part + process->part_len,
			   sizeof(process->part) - process->part_len);
		if (got > 0) {
			process->part_len += (size_t)got;
			take_lines(process);
		} else if (got == 0) {
			(void)close(process->from);
			process->from = -1;
		}
	}
}

/* Waits a short time for output of any process and reads all of it, so that no pipe fills up. */
void rig_hear_all(void)
{
	struct pollfd fds[PROCESSES_MAX];
	nfds_t count = 0;

	for (struct rig_process *process = rig_processes; process; process = process->next)
		if (process->from >= 0 && count < PROCESSES_MAX)
			fds[count++] = (struct pollfd){ process->from, POLLIN, 0 };
	(void)poll(fds, count, LOOK_MS);
	for (struct rig_process *process = rig_processes; process; process = process->next)
		rig_hear(process);
}

void rig_show(const struct rig_process *process)
{
	size_t from = process->line_count > TAIL ? process->line_count - TAIL : 0;

	for (size_t i = from; i < process->line_count; i++) {
		print_message("%llu.%06llu %s: %s\n",
			      (unsigned long long)(process->lines[i].at_ns / SECOND),
			      (unsigned long long)(process->lines[i].at_ns % SECOND / 1000),
			      process->name, process->lines[i].text);
	}
}

const struct rig_line *rig_wait(struct rig_process *process, const char *pattern)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	for (;;) {
		bool is_over = process->from < 0;

		while (process->heard < process->line_count) {
			const struct rig_line *line = &process->lines[process->heard++];

			if (fnmatch(pattern, line->text, 0) == 0)
				return line;
		}
		if (is_over)
			fail_msg("%s ended without printing \"%s\"", process->name, pattern);
		if (rig_now() > end_ns)
			fail_msg("%s did not print \"%s\" in time", process->name, pattern);
		rig_hear_all();
	}
}

void rig_skip(struct rig_process *process)
{
	rig_hear(process);
	process->heard = process->line_count;
}

size_t rig_count_between(struct rig_process *process, const char *pattern, uint64_t from_ns,
			 uint64_t to_ns)
{
	size_t count = 0;

	rig_hear(process);
	for (size_t i = 0; i < process->line_count; i++)
		count += process->lines[i].at_ns >= from_ns && process->lines[i].at_ns <= to_ns &&
			 fnmatch(pattern, process->lines[i].text, 0) == 0;
	return count;
}

size_t rig_count(struct rig_process *process, const char *pattern)
{
	return rig_count_between(process, pattern, 0, UINT64_MAX);
}

const char *rig_address(struct rig_process *provider)
{
	return rig_wait(provider, "listens *")->text + strlen("listens ");
}

/* --- commands */

void rig_tell(struct rig_process *process, const char *format, ...)
{
	char line[RIG_LINE_SIZE];
	va_list list;
	size_t len;

	va_start(list, format);
	(void)vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	len = strlen(line);
	line[len] = '\n';
	assert_int_equal(write(process->to, line, len + 1), len + 1);
}

uint64_t rig_stat(struct rig_process *process, const char *name)
{
	const struct rig_line *line;
	uint64_t value = 0;
	size_t len = strlen(name);

	rig_tell(process, "stats");
	do {
		line = rig_wait(process, "stat *");
		if (strncmp(line->text + 5, name, len) == 0 && line->text[5 + len] == ' ')
			value = strtoull(line->text + 5 + len, NULL, 10);
	} while (strcmp(line->text, "stat end") != 0);
	return value;
}

void rig_until_stat(struct rig_process *process, const char *name, uint64_t least)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	while (rig_stat(process, name) < least) {
		if (rig_now() > end_ns)
			fail_msg("%s: counter %s did not reach %llu in time", process->name, name,
				 (unsigned long long)least);
		rig_sleep(LOOK_MS * MS);
	}
}

void rig_until(struct rig_process *process, const char *question, const char *answer)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;
	char pattern[64];

	(void)snprintf(pattern, sizeof(pattern), "%s *", question);
	for (;;) {
		rig_tell(process, "%s", question);
		if (strcmp(rig_wait(process, pattern)->text, answer) == 0)
			return;
		if (rig_now() > end_ns)
			fail_msg("%s did not answer \"%s\" in time", process->name, answer);
		rig_sleep(LOOK_MS * MS);
	}
}

void rig_until_ready(struct rig_process *consumer, unsigned count)
{
	char wanted[32];

	(void)snprintf(wanted, sizeof(wanted), "ready %u", count);
	rig_until(consumer, "ready", wanted);
}

static unsigned number_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	return (unsigned)strtoul(at + strlen(name), NULL, 10);
}

struct rig_table rig_table(struct rig_process *consumer)
{
	const char *text;

	rig_tell(consumer, "table");
	text = rig_wait(consumer, "table *")->text;
	return (struct rig_table){
		.taken = number_after(text, " taken "),
		.ok = number_after(text, " ok "),
		.wrong = number_after(text, " wrong "),
		.timeouts = number_after(text, " timeouts "),
		.lost = number_after(text, " lost "),
		.refused = number_after(text, " refused "),
		.other = number_after(text, " other "),
		.twice = number_after(text, " twice "),
		.not_taken = number_after(text, " not_taken "),
	};
}

struct rig_table assert_all_ended_once(struct rig_process *consumer)
{
	struct rig_table table;

	rig_tell(consumer, "rest");
	table = rig_table(consumer);
	assert_int_equal(table.twice, 0);
	assert_int_equal(table.wrong, 0);
	assert_int_equal(table.other, 0);
	assert_int_equal(table.ok + table.timeouts + table.lost + table.refused, table.taken);
	return table;
}

/* A provider that was just thawed cannot know how long a request lay in its socket, and may reject
 * those of its first turn as expired. Then a later call counts. */
void assert_call_works(struct rig_process *consumer)
{
	static unsigned number = 1000000;

	for (unsigned tries = 0;; tries++) {
		char pattern[64];

		number++;
		rig_tell(consumer, "echo %u", number);
		(void)snprintf(pattern, sizeof(pattern), "end echo %u *", number);
		if (strstr(rig_wait(consumer, pattern)->text, " OK "))
			return;
		(void)snprintf(pattern, sizeof(pattern), "end echo %u EEXPIRED *", number);
		assert_true(tries < 5 && rig_count(consumer, pattern) == 1);
		rig_sleep(LOOK_MS * MS);
	}
}
