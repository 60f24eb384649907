/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a wing's tests:
 *
 *     transport_conn_tests                          each file in a process of its own
 *     transport_trust_tests test_callers            the tests of trust/test_callers.c
 *     transport_conn_tests test_callers 'names_*'   those with such a name
 *     transport_conn_tests --list
 *
 * It ends with 0, with 1 after a failure, or with 77 if the only file is skipped.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FAILED = 1,
	WRONG_USE = 2,
	SKIPPED = TEST_SKIPPED,
};

static struct test_entry *entries;
static struct test_part *parts;
static size_t entry_count;

void test_add(struct test_entry *entry)
{
	entry->next = entries;
	entries = entry;
	entry_count++;
}

void test_add_part(struct test_part *part)
{
	part->next = parts;
	parts = part;
}

/* Constructors run in any order. */
static int compare(const void *a, const void *b)
{
	const struct test_entry *const *x = a;
	const struct test_entry *const *y = b;
	int order = strcmp((*x)->file, (*y)->file);

	return order ? order : (*x)->line - (*y)->line;
}

/* Returns whether the entry of the list is of the same file as the first one; NULL ends the list.
 */
static bool is_of_same_file(struct test_entry *const *sorted, size_t i)
{
	return sorted[i] && strcmp(sorted[i]->file, sorted[0]->file) == 0;
}

/* Returns whether the path of a source ends with the name, which has no ".c". */
static bool is_file(const char *path, const char *name)
{
	size_t len = strlen(path) - strlen(".c");
	size_t tail = strlen(name);

	return len > tail && path[len - tail - 1] == '/' &&
	       strncmp(path + len - tail, name, tail) == 0;
}

static struct test_part part_of(const char *file)
{
	struct test_part all = { .file = file };

	for (const struct test_part *part = parts; part; part = part->next) {
		if (strcmp(part->file, file) != 0)
			continue;
		if (part->begin || part->end) {
			all.begin = part->begin;
			all.end = part->end;
		}
		if (part->absent)
			all.absent = part->absent;
		if (part->run)
			all.run = part->run;
	}
	return all;
}

/* Returns the last fixture before the test, or the first one of the file. */
static struct test_part fixture_of(const struct test_entry *entry)
{
	struct test_part found = { .file = entry->file };

	for (const struct test_part *part = parts; part; part = part->next) {
		bool is_after = part->line > entry->line;

		if (part->line == 0 || strcmp(part->file, entry->file) != 0)
			continue;
		if (found.line == 0 ||
		    (found.line > entry->line ? part->line < found.line
					      : !is_after && part->line > found.line))
			found = *part;
	}
	return found;
}

/* Runs the tests of the first file. Returns an exit status. */
static int run_file(struct test_entry *const *sorted)
{
	struct test_part part = part_of(sorted[0]->file);
	const char *name = strstr(part.file, "tests/");
	struct CMUnitTest *tests;
	size_t count = 0;
	int failed = part.absent ? part.absent() : 0;

	if (failed)
		return failed;
	tests = calloc(entry_count, sizeof(*tests));
	if (tests == NULL)
		return FAILED;
	for (; is_of_same_file(sorted, count); count++) {
		const struct test_entry *entry = sorted[count];
		struct test_part fixture = fixture_of(entry);
		bool own = entry->bare || entry->set_up || entry->tear_down;

		tests[count] = (struct CMUnitTest){ entry->name, entry->run,
						    own ? entry->set_up : fixture.set_up,
						    own ? entry->tear_down : fixture.tear_down,
						    entry->initial };
	}
	name = name ? name : part.file;
	failed = part.run ? part.run(name, tests, count)
			  : _cmocka_run_group_tests(name, tests, count, part.begin, part.end);
	free(tests);
	return failed ? FAILED : EXIT_SUCCESS;
}

/* Runs each file in a child. Returns the exit status, also in the child. */
static int run_all(struct test_entry *const *sorted)
{
	int result = EXIT_SUCCESS;

	for (size_t i = 0; i < entry_count; i++) {
		int status;
		pid_t child;

		if (i && is_of_same_file(sorted + i - 1, 1))
			continue;
		(void)fflush(NULL);
		child = fork();
		if (child == 0)
			return run_file(sorted + i);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		    (WEXITSTATUS(status) != EXIT_SUCCESS && WEXITSTATUS(status) != SKIPPED))
			result = FAILED;
	}
	return result;
}

static int run_named(struct test_entry *const *sorted, const char *name)
{
	for (size_t i = 0; i < entry_count; i++)
		if (is_file(sorted[i]->file, name))
			return run_file(sorted + i);
	(void)fprintf(stderr, "there is no file %s.c in this program\n", name);
	return WRONG_USE;
}

static int list(struct test_entry *const *sorted)
{
	for (size_t i = 0; i < entry_count; i++)
		(void)printf("%s:%d: %s\n", sorted[i]->file, sorted[i]->line, sorted[i]->name);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct test_entry **sorted = calloc(entry_count + 1, sizeof(struct test_entry *));
	size_t i = 0;
	int status;

	if (sorted == NULL)
		return FAILED;
	for (struct test_entry *entry = entries; entry; entry = entry->next)
		sorted[i++] = entry;
	qsort(sorted, entry_count, sizeof(struct test_entry *), compare);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc < 2)
		status = run_all(sorted);
	else if (strcmp(argv[1], "--list") == 0)
		status = list(sorted);
	else
		status = run_named(sorted, argv[1]);
	free(sorted);
	return status;
}
