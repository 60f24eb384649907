/* SPDX-License-Identifier: Apache-2.0 */
/* How connections and gateways end: kicks, drains, and frees. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		count++;
	}
	return count;
}

static int open_many(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		char query[32];

		(void)snprintf(query, sizeof(query), "user=u%d", i);
		fds[i] = cometrig_events(query, NULL);
		(void)cometrig_read(fds[i], NULL);
	}
	return count;
}

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(kick_closes_all_connections_of_a_user)
{
	int socket = cometrig_socket("user=ann");
	int events = cometrig_events("user=ann", NULL);
	int other = cometrig_socket("user=bob");
	char query[96];
	int poll;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	poll = cometrig_poll(query);
	(void)cometrig_frames(socket);
	(void)cometrig_read(events, NULL);
	(void)cometrig_frames(other);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), "logged out"),
			 3);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), NULL), 0);
	assert_string_equal(cometrig_frames(socket), "close 4004 logged out\nend\n");
	assert_string_equal(cometrig_stream(events),
			    "- closed {\"code\":4004,\"reason\":\"logged out\"}\nend\n");
	assert_has(cometrig_read(poll, NULL),
		   ",\"messages\":[{\"id\":\"\",\"event\":\"closed\",\"data\":"
		   "\"{\\\"code\\\":4004,\\\"reason\\\":\\\"logged out\\\"}\"}]}");
	assert_string_equal(cometrig_frames(other), "");
	assert_string_equal(cometrig.changes, "+ann +bob -ann ");
}

/* Returns the texts that pages of the three ways get for this reason, one after the other. */
static const char *kick_for(const char *reason)
{
	static char texts[4096];
	int socket = cometrig_socket("user=ann");
	int events = cometrig_events("user=ann", NULL);
	char query[96];
	int poll;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	poll = cometrig_poll(query);
	(void)cometrig_frames(socket);
	(void)cometrig_read(events, NULL);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), reason), 3);
	(void)snprintf(texts, sizeof(texts), "%s", cometrig_frames(socket));
	(void)snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s",
		       cometrig_read(events, NULL));
	(void)snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s",
		       cometrig_read(poll, NULL));
	return texts;
}

TEST(reason_of_a_kick_is_json_in_events_and_polls)
{
	const char *texts = kick_for("a \"b\" \\c");

	assert_has(texts, "close 4004 a \"b\" \\c\nend\n");
	assert_has(texts, "data: {\"code\":4004,\"reason\":\"a \\\"b\\\" \\\\c\"}\n\n");
	assert_has(texts, "\\\"reason\\\":\\\"a \\\\\\\"b\\\\\\\" \\\\\\\\c\\\"}\"}]}");
	assert_has(kick_for(NULL), "data: {\"code\":4004,\"reason\":\"\"}\n\n");
}

/* A character takes at most 7 bytes in the JSON of a poll. */
TEST(longest_reason_of_a_kick_ends_alike_in_all_ways)
{
	char long_reason[201];
	char shown[6 * 123 + 1] = "";
	const char *texts;

	memset(long_reason, 1, 200);
	long_reason[200] = '\0';
	for (size_t i = 0; i < 123; i++)
		memcpy(shown + 6 * i, "\\u0001", 6);
	texts = kick_for(long_reason);
	assert_has(texts, shown);
	assert_int_equal(count_of(texts, "\001"), 123);
	assert_int_equal(count_of(texts, "\\u0001"), 2 * 123);
	assert_has(texts, "\\\\u0001\\\"}\"}]}");
}

TEST(drain_spreads_reconnects_and_ends)
{
	enum {
		COUNT = 100
	};
	static int fds[COUNT];
	unsigned open = COUNT;
	unsigned early = 0;
	unsigned steps = 0;

	open_many(fds, COUNT);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	while (open > 0 && steps++ < 30) {
		cometrig_run(SECOND / 2);
		open = 0;
		for (int i = 0; i < COUNT; i++) {
			bool ended;

			if (fds[i] < 0)
				continue;
			(void)cometrig_read(fds[i], &ended);
			if (ended) {
				assert_int_equal(count_of(cometrig.got, "event: reconnect\n"), 1);
				cometrig_hang_up(fds[i]);
				fds[i] = -1;
			} else {
				open++;
			}
		}
		if (steps == 5)
			early = open;
	}
	assert_int_equal(open, 0);
	assert_in_range(early, 10, 90);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_DRAIN), COUNT);
	cometrig_run(3 * SECOND);
	assert_true(cometrig.engine->drained);
}

TEST(poll_in_a_drain_is_told_when_to_come_again)
{
	char query[96];
	int fd;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	fd = cometrig_poll(query);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(10 * SECOND + MS);
	assert_has(cometrig_read(fd, NULL), "\"again\":1000}");
}

TEST(drained_gateway_accepts_no_more)
{
	int fd = cometrig_events("user=ann", NULL);
	const struct spoke_env *env = &cometrig.client.env;
	int late = cometrig_connect();
	bool ended;

	(void)cometrig_read(fd, NULL);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(MS);
	cometrig_send(late, "GET /spoke/events?user=bob HTTP/1.1\r\n" COMETRIG_HOST "\r\n");
	assert_has(cometrig_read(late, &ended), "\r\n\r\nretry: ");
	assert_true(ended);
	assert_int_equal(env->net->finish(env->ctx, cometrig_connect()), -111);
}

TEST(drain_ends_although_the_last_client_finds_no_memory)
{
	int late = cometrig_connect();

	cometrig_run(MS);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_send(late, "GET /spoke/socket?user=bob HTTP/1.1\r\n");
	cometrig_run(MS);
	assert_false(cometrig.engine->drained);
	spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, 1, -12, true);
	cometrig_send(late, COMETRIG_HOST COMETRIG_ORIGIN COMETRIG_UPGRADE "\r\n");
	cometrig_run(MS);
	spokei_faults_heal(&cometrig.faulty);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_MEMORY), 1);
	assert_true(cometrig.engine->drained);
}

TEST(free_with_connections_leaves_nothing)
{
	int fds[10];
	bool ended;

	open_many(fds, 10);
	(void)cometrig_connect();
	(void)cometrig_push(NULL, "e", "x");
	spoke_comet_free(cometrig.comet);
	(void)cometrig_read(fds[0], &ended);
	assert_true(ended);
	assert_string_equal(strstr(cometrig.changes, "-") ? "told" : "quiet", "quiet");
}

static void free_gateway(struct cometrig *rig)
{
	spoke_comet_free(rig->comet);
	rig->then = NULL;
}

TEST(gateway_may_be_freed_in_a_callback)
{
	cometrig.then = free_gateway;
	(void)cometrig_events("user=ann", NULL);
	cometrig_run(SECOND);
	assert_null(cometrig.then);
	assert_string_equal(cometrig.changes, "+ann ");
}
