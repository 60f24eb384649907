/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway in the status and the metrics of its engine. */
#include "cluster/admin/status.h"
#include "core/memory/buffer.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <string.h>

static struct spokei_buffer out;

/* Writes one of the page's documents; valid until the next call. */
static const char *write_with(int (*write)(const struct spoke_engine *engine,
					   const struct spokei_status_of *of,
					   struct spokei_buffer *out))
{
	static struct spokei_history history;
	const struct spokei_status_of of = { .name = "rig", .history = &history };

	spokei_buffer_fini(&out);
	spokei_buffer_init(&out, &cometrig.client.env, COMETRIG_READ_MAX);
	spokei_engine_refresh(cometrig.engine);
	assert_int_equal(write(cometrig.engine, &of, &out), SPOKE_OK);
	assert_int_equal(spokei_buffer_append(&out, "", 1), SPOKE_OK);
	return (const char *)spokei_buffer_data(&out);
}

static int tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return cometrig_tear_down(state);
}

FIXTURE(cometrig_set_up, tear_down);

TEST(status_has_all_figures)
{
	const char *text;

	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_socket("user=ann");
	text = write_with(spokei_status_write);
	assert_non_null(strstr(text, "\"gateways\":[{\"address\":\"" COMETRIG_AT
				     "\",\"draining\":false,\"users\":1,\"online\":1,\"events\":1,"
				     "\"sockets\":1,\"polls\":0,"));
}

TEST(metrics_have_all_figures)
{
	const char *text;
	unsigned line;

	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_push("ann", "e", "x");
	cometrig_run(MS);
	text = write_with(spokei_metrics_write);
	assert_null(promread_check(text, strlen(text), &line));
	assert_int_equal(promread_value(text, "spoke_comet_events{gateway=\"1\"}"), 1);
	assert_int_equal(promread_value(text, "spoke_comet_written_total{gateway=\"1\"}"), 1);
	assert_int_equal(promread_value(text, "spoke_comet_lost_total{gateway=\"1\"}"), 0);
}

TEST(engine_without_a_gateway_has_no_families)
{
	spoke_comet_free(cometrig.comet);
	cometrig_run(MS);
	assert_null(strstr(write_with(spokei_metrics_write), "spoke_comet"));
	assert_non_null(strstr(write_with(spokei_status_write), "\"gateways\":[]"));
}
