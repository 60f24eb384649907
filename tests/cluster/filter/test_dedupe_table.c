/* SPDX-License-Identifier: Apache-2.0 */
/* The memory for requests that bear an id: its decisions, its bounds, and its lack of memory. */
#include "cluster/filter/dedupe_table.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"
#include "transport/wire/message.h"

#include <spoke/host.h>

#include <errno.h>
#include <string.h>

#define KEEP (10 * SECOND)

static struct spokei_faults faulty;
static struct spokei_dedupe_table table;
static struct spokei_dedupe_method method;
static struct spokei_dedupe_entry *entry; /* of the last request */
static uint64_t now_ns;

STEP(set_up)
{
	now_ns = 100 * SECOND;
	memset(&method, 0, sizeof(method));
	spokei_faults_init(&faulty, spoke_host_env());
	spokei_dedupe_init(&table, &faulty.env);
	spokei_dedupe_bound(&table, 3, 1u << 20);
	spokei_dedupe_set(&table, &method, KEEP, false, now_ns);
}

STEP(tear_down)
{
	spokei_dedupe_fini(&table);
	assert_int_equal(faulty.blocks, 0);
}

FIXTURE(set_up, tear_down);

static struct spokei_dedupe_asked asked_of(const char *id)
{
	return (struct spokei_dedupe_asked){ .id = { id, strlen(id) }, .args = 1, .caller = 2 };
}

static enum spokei_dedupe_step ask(const struct spokei_dedupe_asked *asked)
{
	return spokei_dedupe_ask(&method, asked, now_ns, &entry);
}

/* Has a request run and be answered. */
static void run(const char *id)
{
	const struct spokei_dedupe_asked asked = asked_of(id);
	const struct spokei_message answer = { .kind = SPOKEI_REPLY };

	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_RUN);
	spokei_dedupe_end(entry, &answer, now_ns);
}

static enum spokei_dedupe_step repeat(const char *id)
{
	struct spokei_dedupe_asked asked = asked_of(id);

	asked.repeat = true;
	asked.instance = table.instance;
	asked.since_ns = now_ns - SECOND;
	return ask(&asked);
}

TEST(ids_with_one_beginning_differ)
{
	run("ab");
	run("ac");
	run("abc");
	assert_int_equal(table.ids.count, 3);
	assert_int_equal(repeat("ab"), SPOKEI_DEDUPE_REPLAY);
}

TEST(id_of_another_caller_is_refused)
{
	struct spokei_dedupe_asked asked = asked_of("a");

	run("a");
	asked.caller = 3;
	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_OTHER_CALLER);
	asked.caller = 0;
	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_OTHER_CALLER);
}

TEST(request_that_did_not_run_leaves_nothing)
{
	const struct spokei_dedupe_asked asked = asked_of("a");

	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_RUN);
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_WAIT);
	spokei_dedupe_drop(entry);
	assert_int_equal(table.bytes, 0);
	now_ns += 2 * SECOND;
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_RUN);
}

TEST(entries_are_forgotten_a_time_after_their_end)
{
	run("a");
	now_ns += SECOND;
	run("b");
	assert_int_equal(spokei_dedupe_expire(&table, now_ns), 100 * SECOND + KEEP);
	now_ns = 100 * SECOND + KEEP;
	assert_int_equal(spokei_dedupe_expire(&table, now_ns), 101 * SECOND + KEEP);
	assert_int_equal(table.ids.count, 1);
	assert_int_equal(repeat("b"), SPOKEI_DEDUPE_REPLAY);
	assert_int_equal(spokei_dedupe_expire(&table, now_ns + SECOND), UINT64_MAX);
	assert_int_equal(table.bytes, 0);
	assert_int_equal(table.early, 0);
}

/* Only requests that came no later than a forgotten one may be forgotten. */
TEST(repeat_runs_if_nothing_since_its_first_attempt_is_forgotten)
{
	run("a");
	now_ns += KEEP;
	(void)spokei_dedupe_expire(&table, now_ns);
	assert_int_equal(repeat("b"), SPOKEI_DEDUPE_RUN);
	spokei_dedupe_drop(entry);
	now_ns = 100 * SECOND + SECOND;
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_FORGOTTEN);
}

TEST(new_instance_knows_nothing_of_the_old_one)
{
	struct spokei_dedupe_asked asked = asked_of("b");

	asked.repeat = true;
	asked.instance = table.instance;
	asked.since_ns = now_ns + 1;
	run("a");
	spokei_dedupe_renew(&table);
	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_ELSEWHERE);
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_REPLAY);
}

TEST(method_that_is_turned_off_forgets)
{
	const struct spokei_dedupe_asked asked = asked_of("c");
	const struct spokei_message answer = { .kind = SPOKEI_REPLY };

	run("a");
	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_RUN);
	spokei_dedupe_set(&table, &method, 0, false, now_ns);
	spokei_dedupe_end(entry, &answer, now_ns);
	assert_int_equal(table.ids.count, 0);
	now_ns += SECOND;
	spokei_dedupe_set(&table, &method, KEEP, false, now_ns);
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_FORGOTTEN);
}

TEST(bytes_are_bounded)
{
	run("a");
	spokei_dedupe_bound(&table, 100, table.bytes + sizeof(struct spokei_dedupe_entry) - 1);
	run("b");
	assert_int_equal(table.ids.count, 1);
	assert_int_equal(table.early, 1);
	assert_int_equal(repeat("b"), SPOKEI_DEDUPE_REPLAY);
}

TEST(long_answers_are_bounded_and_kept_apart)
{
	const struct spokei_dedupe_asked asked = asked_of("a");
	const struct spokei_message answer = {
		.kind = SPOKEI_REPLY,
		.error = SPOKE_EREMOTE,
		.error_code = 7,
		.error_text = spokei_span_of("a text that is longer than the room of the entry, "
					     "so that it has a place of its own"),
		.error_class = spokei_span_of("a.B"),
	};
	struct spokei_message kept;

	assert_int_equal(ask(&asked), SPOKEI_DEDUPE_RUN);
	spokei_dedupe_end(entry, &answer, now_ns);
	assert_true(table.bytes > sizeof(*entry) + answer.error_text.len);
	assert_int_equal(repeat("a"), SPOKEI_DEDUPE_REPLAY);
	kept = spokei_dedupe_answer_of(entry);
	assert_int_equal(kept.error, SPOKE_EREMOTE);
	assert_int_equal(kept.error_code, 7);
	assert_true(spokei_span_is(kept.error_class, "a.B"));
	assert_int_equal(kept.error_text.len, answer.error_text.len);
	assert_memory_equal(kept.error_text.data, answer.error_text.data, kept.error_text.len);
	spokei_dedupe_bound(&table, 100, 4 * sizeof(*entry));
	run("b");
	assert_int_equal(repeat("b"), SPOKEI_DEDUPE_REPLAY);
	spokei_dedupe_bound(&table, 100, 256);
	assert_int_equal(repeat("b"), SPOKEI_DEDUPE_REPLAY);
}

TEST(lack_of_memory_leaves_nothing)
{
	const struct spokei_dedupe_asked asked = asked_of("a");

	for (unsigned i = 0; i < 2; i++) {
		spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, 1 + i, -ENOMEM, false);
		assert_int_equal(ask(&asked), SPOKEI_DEDUPE_NO_MEMORY);
		assert_int_equal(table.bytes, 0);
	}
	run("a");
}
