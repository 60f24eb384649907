/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about peers that may connect: order, copies, and verdicts that follow from no list. */
#include "core/virtual/faults.h"
#include "tests/support/test.h"
#include "transport/listen/rules.h"

#include <spoke/host.h>

#include <errno.h>
#include <string.h>

static struct spokei_faults faulty;

static struct spokei_machine machine_of(const char *text)
{
	struct spokei_machine machine = { .kind = SPOKEI_MACHINE_UNIX };

	if (strcmp(text, "unix") == 0)
		return machine;
	if (!spokei_machine_read((struct spoke_span){ text, strlen(text) }, &machine))
		machine.kind = SPOKEI_MACHINE_OTHER;
	return machine;
}

static struct spokei_rules *make(const char *deny, const char *allow, const char *users)
{
	const struct spokei_rules_of of = { deny, allow, users };
	struct spokei_rules *rules;
	char why[SPOKEI_RULES_WHY];

	assert_int_equal(spokei_rules_new(&faulty.env, &of, &rules, why), SPOKE_OK);
	return rules;
}

TEST(first_list_that_applies_gives_the_verdict)
{
	static const struct {
		const char *deny;
		const char *allow;
		const char *machine;
		enum spokei_rules_verdict verdict;
	} rows[] = {
		{ "10.0.0.0/8", NULL, "10.0.0.1", SPOKEI_RULES_DENY_FROM },
		{ "10.0.0.0/8", NULL, "11.0.0.1", SPOKEI_RULES_ADMIT },
		{ "10.0.0.0/8", NULL, "unix", SPOKEI_RULES_ADMIT },
		{ "10.0.0.0/8", NULL, "mem", SPOKEI_RULES_ADMIT },
		{ NULL, "10.0.0.0/8", "10.0.0.1", SPOKEI_RULES_ADMIT },
		{ NULL, "10.0.0.0/8", "11.0.0.1", SPOKEI_RULES_ALLOW_FROM },
		{ NULL, "10.0.0.0/8", "unix", SPOKEI_RULES_ALLOW_FROM },
		{ NULL, "10.0.0.0/8", "mem", SPOKEI_RULES_ALLOW_FROM },
		{ NULL, "::/0,0.0.0.0/0,unix", "mem", SPOKEI_RULES_ALLOW_FROM },
		{ "10.0.0.1", "10.0.0.0/8", "10.0.0.1", SPOKEI_RULES_DENY_FROM },
		{ "10.0.0.0/8", "10.0.0.1", "10.0.0.1", SPOKEI_RULES_DENY_FROM },
		{ "unix", "::/0, 0.0.0.0/0, unix", "unix", SPOKEI_RULES_DENY_FROM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_rules *rules = make(rows[i].deny, rows[i].allow, NULL);
		struct spokei_machine machine = machine_of(rows[i].machine);

		assert_int_equal(spokei_rules_judge(rules, &machine), rows[i].verdict);
		spokei_rules_free(&faulty.env, rules);
	}
}

TEST(absent_lists_are_no_rules_and_admit_all)
{
	struct spokei_machine machine = machine_of("10.0.0.1");

	assert_null(make(NULL, NULL, NULL));
	assert_null(make("none", "all", "all"));
	assert_int_equal(spokei_rules_judge(NULL, &machine), SPOKEI_RULES_ADMIT);
	spokei_rules_free(&faulty.env, NULL);
}

TEST(users_and_groups_are_numbers_of_their_own)
{
	struct spokei_rules *rules = make(NULL, NULL, "0,uid:5, gid:7 ,4294967294");

	assert_int_equal(rules->user_count, 4);
	assert_int_equal(spokei_rules_judge_user(rules, 0, 9), SPOKEI_RULES_ADMIT);
	assert_int_equal(spokei_rules_judge_user(rules, 5, 9), SPOKEI_RULES_ADMIT);
	assert_int_equal(spokei_rules_judge_user(rules, 9, 7), SPOKEI_RULES_ADMIT);
	assert_int_equal(spokei_rules_judge_user(rules, UINT32_MAX - 1, 9), SPOKEI_RULES_ADMIT);
	assert_int_equal(spokei_rules_judge_user(rules, 7, 5), SPOKEI_RULES_ALLOW_USERS);
	assert_int_equal(spokei_rules_judge_user(rules, 9, 0), SPOKEI_RULES_ALLOW_USERS);
	spokei_rules_free(&faulty.env, rules);
}

TEST(word_for_an_absent_list_is_no_entry)
{
	static const struct spokei_rules_of wrong[] = {
		{ .deny_from = "all" },
		{ .allow_from = "none" },
		{ .allow_from = "10.0.0.1, all" },
		{ .deny_from = "none,10.0.0.1" },
		{ .allow_users = "0,all" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct spokei_rules *rules;
		char why[SPOKEI_RULES_WHY];

		assert_int_equal(spokei_rules_new(&faulty.env, &wrong[i], &rules, why),
				 SPOKE_EINVAL);
		assert_null(rules);
	}
}

TEST(copy_outlives_its_original)
{
	struct spokei_rules *rules = make("10.0.0.1", "10.0.0.0/8", "5");
	struct spokei_machine denied = machine_of("10.0.0.1");
	struct spokei_machine allowed = machine_of("10.0.0.2");
	struct spokei_rules *copy;

	assert_int_equal(spokei_rules_copy(&faulty.env, rules, &copy), SPOKE_OK);
	spokei_rules_free(&faulty.env, rules);
	assert_int_equal(spokei_rules_judge(copy, &denied), SPOKEI_RULES_DENY_FROM);
	assert_int_equal(spokei_rules_judge(copy, &allowed), SPOKEI_RULES_ADMIT);
	assert_int_equal(spokei_rules_judge_user(copy, 5, 0), SPOKEI_RULES_ADMIT);
	spokei_rules_free(&faulty.env, copy);
	assert_int_equal(spokei_rules_copy(&faulty.env, NULL, &copy), SPOKE_OK);
	assert_null(copy);
}

TEST(rules_without_memory_are_not_made)
{
	const struct spokei_rules_of of = { .allow_from = "10.0.0.0/8" };
	struct spokei_rules *rules = make("10.0.0.1", NULL, NULL);
	struct spokei_rules *other;
	char why[SPOKEI_RULES_WHY];

	spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, true);
	assert_int_equal(spokei_rules_new(&faulty.env, &of, &other, why), SPOKE_ENOMEM);
	assert_null(other);
	assert_int_equal(spokei_rules_copy(&faulty.env, rules, &other), SPOKE_ENOMEM);
	assert_null(other);
	spokei_faults_heal(&faulty);
	spokei_rules_free(&faulty.env, rules);
}

STEP(set_up)
{
	spokei_faults_init(&faulty, spoke_host_env());
}

STEP(tear_down)
{
	assert_int_equal(faulty.blocks, 0);
}

FIXTURE(set_up, tear_down);
