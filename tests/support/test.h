/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that register themselves. The files of a wing are one program, whose main() is in test.c.
 *
 *     FIXTURE(set_up, tear_down);
 *
 *     TEST(closed_peer_gets_no_bytes)
 *     {
 *             struct rig *rig = *state;
 *             ...
 *     }
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct test_entry {
	const char *file;
	int line;
	const char *name;
	CMUnitTestFunction run;
	CMFixtureFunction set_up;
	CMFixtureFunction tear_down;
	void *initial; /* the state that set_up receives */
	bool bare;     /* has nothing of the fixture of its file */
	struct test_entry *next;
};

/* Runs the tests of a file in its own way, for example each of them in several settings. Returns
 * the number of failures. */
typedef int test_runner(const char *group, const struct CMUnitTest *tests, size_t count);

/* What one of the macros below says about the tests of a file. */
struct test_part {
	const char *file;
	int line; /* of a fixture */
	CMFixtureFunction set_up;
	CMFixtureFunction tear_down;
	CMFixtureFunction begin;
	CMFixtureFunction end;
	int (*absent)(void);
	test_runner *run;
	struct test_part *next;
};

/* Called before main(). */
void test_add(struct test_entry *entry);
void test_add_part(struct test_part *part);

/*
 * Defines a test: TEST(rule, .set_up = ..., .tear_down = ..., .initial = ..., .bare = true). All
 * but the rule may be left out. With set_up, tear_down or bare, the test has nothing of the fixture
 * of its file.
 */
#define TEST(...) TEST_OF(__VA_ARGS__, .line = __LINE__)
#define TEST_OF(rule, ...)                                                                         \
	static void rule(void **state);                                                            \
	TEST_ENTRY(#rule, rule, .run = (rule), __VA_ARGS__);                                       \
	static void rule(__attribute__((unused)) void **state)

/* A test with a parameter, which is made of `state`. Rigs define a macro of their own by it:
 *
 *     #define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)
 */
#define TEST_WITH(...) TEST_WITH_OF(__VA_ARGS__, .line = __LINE__)
#define TEST_WITH_OF(parameter, value, rule, ...)                                                  \
	static void rule##_with(parameter);                                                        \
	TEST_OF(rule, __VA_ARGS__)                                                                 \
	{                                                                                          \
		rule##_with(value);                                                                \
	}                                                                                          \
	static void rule##_with(parameter)

/* The same test in another case; its name is "rule: which". */
#define TEST_AGAIN(rule, which, ...)                                                               \
	TEST_ENTRY(#rule ": " #which, rule##_##which, .run = (rule), .line = __LINE__, __VA_ARGS__)

/* Around each test of the file, up to the next fixture; each of the two may be NULL. */
#define FIXTURE(before, after) FIXTURE_AT(before, after, __LINE__)
#define FIXTURE_AT(before, after, at) FIXTURE_OF(before, after, at)
#define FIXTURE_OF(before, after, at)                                                              \
	TEST_PART(fixture_##at, .set_up = (before), .tear_down = (after), .line = (at))

/* Define a function for FIXTURE() or GROUP() that fails by its assertions only; the second one is
 * external. */
#define STEP(function) STEP_OF(static, function)
#define RIG_STEP(function) STEP_OF(, function)
#define STEP_OF(linkage, function)                                                                 \
	static void function##_with(void **state);                                                 \
	linkage int function(void **state)                                                         \
	{                                                                                          \
		function##_with(state);                                                            \
		return 0;                                                                          \
	}                                                                                          \
	static void function##_with(__attribute__((unused)) void **state)

/* Before the first test of the file, and after the last one; each of the two may be NULL. */
#define GROUP(before, after) TEST_PART(group, .begin = (before), .end = (after))

/* Of a file whose peers may not be installed: the function returns 0 if they are, or the exit
 * status after it has printed what is missing. */
#define NEEDS(function) TEST_PART(needs, .absent = (function))
#define TEST_SKIPPED 77 /* the exit status of a file that is skipped */

/* The runner of the file's tests, which has no use for a fixture or a group. */
#define RUNNER(function) TEST_PART(runner, .run = (function))

#define TEST_ENTRY(title, tag, ...)                                                                \
	TEST_ADDED(test_entry, entry_of_##tag, test_add, .name = title, __VA_ARGS__)
#define TEST_PART(tag, ...) TEST_ADDED(test_part, tag##_of_file, test_add_part, __VA_ARGS__)
#define TEST_ADDED(type, variable, add, ...)                                                       \
	static struct type variable;                                                               \
	__attribute__((constructor)) static void add_##variable(void)                              \
	{                                                                                          \
		add(&(variable));                                                                  \
	}                                                                                          \
	static struct type variable = { .file = __BASE_FILE__, __VA_ARGS__ }

#endif
