/* SPDX-License-Identifier: Apache-2.0 */
/* Leases in the status, as JSON and as text, and in the metrics. */
#include "cluster/admin/status.h"
#include "core/engine/engine.h"
#include "core/memory/buffer.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/lease/leaserig.h"
#include "tests/core/json/jsonread.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define EXPECT_TEXT(status, path, text) assert_string_equal(jsonread_text(status, path), text)
#define EXPECT(status, path, number) assert_int_equal(jsonread_u64(status, path), number)

static struct spokei_buffer out;
static struct spokei_history history;
static struct spokei_status_of of = { .name = "test", .number = 1, .history = &history };

static int set_up(void **state)
{
	if (leaserig_set_up(state))
		return -1;
	spokei_buffer_init(&out, &leaserig.one.faulty.env, 1u << 20);
	spokei_engine_refresh(leaserig.one.engine);
	spokei_history_init(&history, leaserig.one.engine);
	return 0;
}

static int tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return leaserig_tear_down(state);
}

FIXTURE(set_up, tear_down);

/* Writes with one of the functions, and returns the text. */
static const char *write_with(int (*write)(const struct spoke_engine *engine,
					   const struct spokei_status_of *of,
					   struct spokei_buffer *out))
{
	const char *text;

	spokei_engine_refresh(leaserig.one.engine);
	spokei_buffer_truncate(&out, 0);
	assert_int_equal(write(leaserig.one.engine, &of, &out), 0);
	assert_int_equal(spokei_buffer_append(&out, "", 1), 0);
	text = (const char *)spokei_buffer_data(&out);
	return text ? text : "";
}

static struct jsonread look(void)
{
	const char *text = write_with(spokei_status_write);
	const char *wrong;
	size_t at;

	wrong = jsonread_check(text, strlen(text), &at);
	if (wrong)
		fail_msg("%s, at %zu: %.60s", wrong, at, text + at);
	return jsonread_of(text, strlen(text));
}

static void expect_metric(const char *name, double value)
{
	const char *text = write_with(spokei_metrics_write);
	char sample[128];
	const char *wrong;
	unsigned line;
	double is;

	wrong = promread_check(text, strlen(text), &line);
	if (wrong)
		fail_msg("line %u: %s", line, wrong);
	(void)snprintf(sample, sizeof(sample), "%s{leases=\"1\",store=\"" LEASERIG_AT "\"}", name);
	is = promread_value(text, sample);
	if (is < value - 1e-6 || is > value + 1e-6)
		fail_msg("%s is %f, not %f", sample, is, value);
}

TEST(held_and_waiting_leases_are_shown)
{
	struct jsonread status;

	(void)leaserig_hold("reports");
	(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	status = look();
	EXPECT_TEXT(status, "leases[0].store", LEASERIG_AT);
	EXPECT(status, "leases[0].held", 1);
	EXPECT(status, "leases[0].asked", 1);
	EXPECT(status, "leases[0].more", 0);
	EXPECT(status, "leases_more", 0);
	EXPECT_TEXT(status, "leases[0].shown[0].name", "reports");
	EXPECT_TEXT(status, "leases[0].shown[0].state", "held");
	EXPECT(status, "leases[0].shown[0].fence", 1);
	EXPECT_TEXT(status, "leases[0].shown[1].state", "waiting");
	EXPECT(status, "leases[0].shown[1].fence", 0);
	assert_in_range(jsonread_u64(status, "leases[0].shown[0].left_ms"),
			(LEASERIG_TTL - LEASERIG_GUARD - 2 * SECOND) / MS,
			(LEASERIG_TTL - LEASERIG_GUARD - SECOND) / MS);
	EXPECT(status, "stats.leases_held", 1);
	expect_metric("spoke_leases_connected", 1);
	expect_metric("spoke_leases_held", 1);
	expect_metric("spoke_leases_asked", 1);
}

TEST(without_leases_the_list_is_empty)
{
	spoke_leases_free(leaserig.one.leases);
	leaserig.one.leases = NULL;
	leaserig_pass(SECOND);
	assert_int_equal(jsonread_count(jsonread_get(look(), "leases")), 0);
	assert_null(strstr(write_with(spokei_metrics_write), "spoke_leases_held{"));
}

TEST(of_many_leases_a_part_is_shown)
{
	struct jsonread status;
	char name[32];

	for (unsigned i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "lease %u", i);
		(void)leaserig_wait(name);
	}
	leaserig_pass(SECOND);
	status = look();
	EXPECT(status, "leases[0].held", 500);
	EXPECT(status, "leases[0].more", 500 - SPOKEI_STATUS_ROWS);
	expect_metric("spoke_leases_held", 500);
}

TEST(a_store_that_is_away_is_shown_as_such)
{
	(void)leaserig_hold("reports");
	fakeredis_kill(&leaserig.server);
	leaserig_pass(SECOND);
	assert_false(jsonread_is_true(look(), "leases[0].connected"));
	expect_metric("spoke_leases_connected", 0);
	leaserig_pass(LEASERIG_TTL);
	expect_metric("spoke_leases_held", 0);
	expect_metric("spoke_leases_left_min_seconds", 0);
}
