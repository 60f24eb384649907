/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that a provider asks for; peers that have not proven themselves; places of
 * connections.
 */
#include "cluster/provider/parts.h"
#include "tests/cluster/provider/proofrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"

#include <stdio.h>
#include <string.h>

/* --- tokens that a provider asks for: which callers are let in, over each wire */

/* --- tokens */

FIXTURE(proofrig_set_up, proofrig_tear_down);

TEST(caller_without_the_token_is_refused_with_code_13)
{
	static const char *const wrong[] = { NULL,
					     "",
					     "correct-horse-2",
					     "correct-horse-",
					     "correct-horse-11",
					     "Correct-horse-1",
					     OTHER };

	proofrig_provide(SECRET);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		proofrig_open(0, &spokei_wire_dubbo);
		proofrig_forbidden(0, proofrig_call(0, "demo.A", wrong[i]), "demo.A");
	}
	assert_int_equal(proofrig.served, 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS),
			 sizeof(wrong) / sizeof(wrong[0]));
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig.served, 1);
}

TEST(each_request_needs_the_token)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	proofrig_forbidden(0, proofrig_call(0, "demo.A", NULL), "demo.A");
	proofrig_forbidden(0, proofrig_call(0, "demo.B", "correct-horse-0"), "demo.B");
	assert_int_equal(proofrig_call(0, "demo.B", SECRET), 0);
	assert_int_equal(proofrig.served, 2);
}

TEST(both_tokens_are_good_while_they_are_changed)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", OTHER), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " OTHER ", " SECRET "\n"), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", OTHER), 0);
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(proofrig_call(0, "demo.A", OTHER), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), SPOKE_EFORBIDDEN);
}

TEST(token_of_one_service_does_not_open_another)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = " OTHER "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.B", OTHER), 0);
	proofrig_forbidden(0, proofrig_call(0, "demo.A", OTHER), "demo.A");
	proofrig_forbidden(0, proofrig_call(0, "demo.B", SECRET), "demo.B");
	assert_int_equal(proofrig.served, 2);
}

TEST(service_can_be_open_or_the_only_one_that_is_not)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = false\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig_reconfigure("[service.demo.B]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig_call(0, "demo.B", OTHER), 0);
}

TEST(tokens_come_from_a_file_that_only_its_owner_reads)
{
	const struct spoke_provider_options options = { .token_file = "tokens" };
	struct spoke_provider *refused;

	assert_int_equal(spoke_provider_new(proofrig.engine, &options, &refused), SPOKE_ESYSTEM);
	spokei_vfiles_put(proofrig.world.files, "tokens", "# of March\n" OTHER "\n" SECRET "\n");
	spokei_vfiles_expose(proofrig.world.files, "tokens", true);
	assert_int_equal(spoke_provider_new(proofrig.engine, &options, &refused), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(proofrig.engine), "chmod 600"));
	assert_null(strstr(spoke_engine_why(proofrig.engine), "horse"));
	spokei_vfiles_expose(proofrig.world.files, "tokens", false);
	proofrig_start(&options);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", OTHER), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
}

TEST(reload_with_a_bad_file_changes_no_token)
{
	static const char *const bad[] = { "", "short\n", OTHER "," SECRET "\n" };

	spokei_vfiles_put(proofrig.world.files, "tokens", SECRET "\n");
	proofrig_configure("[provider]\ntoken.file = tokens\n[service.demo.B]\ntoken = " SECRET
			   "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		spokei_vfiles_put(proofrig.world.files, "tokens", bad[i]);
		assert_int_equal(proofrig_reconfigure(
					 "[provider]\ntoken.file = tokens\n[service.demo.B]\n"
					 "token = " OTHER "\n"),
				 SPOKE_EINVAL);
		assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
		assert_int_equal(proofrig_call(0, "demo.B", SECRET), 0);
	}
	spokei_vfiles_put(proofrig.world.files, "tokens", OTHER "\n");
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken.file = tokens\n[service.demo.B]\n"
					      "token = " OTHER "\n"),
			 0);
	assert_int_equal(proofrig_call(0, "demo.A", OTHER), 0);
	assert_int_equal(proofrig_call(0, "demo.B", OTHER), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), SPOKE_EFORBIDDEN);
}

TEST(heartbeats_need_no_token)
{
	struct spokei_message probe = {
		.kind = SPOKEI_PROBE,
		.id = 77,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
	};

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 200; i++) {
		peer_put(&proofrig.conns[0], &probe);
		(void)proofrig_ask(0);
		assert_int_equal(proofrig.seen[0].probes, 1);
	}
	assert_false(proofrig.conns[0].ended);
}

/* Also by the methods that each service has. */
TEST(names_of_services_are_not_told_to_the_unproven)
{
	static const char *const methods[] = { "$echo", "$methods", "get", "none" };
	static const char *const services[] = { "demo.A", "demo.None" };

	proofrig_provide(SECRET);
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 2; j++) {
			proofrig_open(0, &spokei_wire_dubbo);
			proofrig_put(0, services[j], methods[i], NULL, 10);
			assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
		}
	}
}

TEST(unserved_names_are_told_to_the_proven_only)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_forbidden(0, proofrig_call(0, "demo.None", NULL), "demo.None");
	proofrig_put(0, "demo.A", "none", "correct-horse-3", 0);
	proofrig_forbidden(0, proofrig_ask(0), "demo.A");
	proofrig_put(0, "demo.A", "none", SECRET, 0);
	assert_int_equal(proofrig_ask(0), SPOKE_ENOSERVICE);
	assert_int_equal(proofrig_call(0, "demo.None", SECRET), SPOKE_ENOSERVICE);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.None", NULL), SPOKE_ENOSERVICE);
}

/* --- tokens that are withdrawn */

#define MINUTE (60000 * MS)

static unsigned count_events(const char *words)
{
	return scene_events(proofrig.engine, words);
}

TEST(connection_proven_by_a_withdrawn_token_is_drained)
{
	proofrig_configure("[provider]\ntoken = " SECRET ", " OTHER "\n");
	for (unsigned i = 0; i < 3; i++)
		proofrig_open(i, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(1, "demo.A", OTHER), 0); /* it has changed its token */
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_DRAINED_CALLER), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_READONLY_WRITTEN), 1);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), SPOKE_EFORBIDDEN);
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + 10000 * MS);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_call(1, "demo.A", OTHER), 0);
	assert_int_equal(proofrig_call(2, "demo.A", OTHER), 0);
}

TEST(changed_token_file_counts_within_a_minute_without_a_reload)
{
	spokei_vfiles_put(proofrig.world.files, "tokens", SECRET "\n");
	proofrig_configure("[service.demo.B]\ntoken.file = tokens\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.B", SECRET), 0);
	spokei_vfiles_put(proofrig.world.files, "tokens", "short\n");
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + 3 * MINUTE);
	assert_int_equal(proofrig_call(0, "demo.B", SECRET), 0);
	assert_int_equal(count_events("tokens and keys stay"), 1);
	spokei_vfiles_put(proofrig.world.files, "tokens", OTHER "\n");
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + MINUTE + 1000 * MS);
	assert_int_equal(proofrig_stat(SPOKE_STAT_DRAINED_CALLER), 1);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.B", SECRET), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig_call(0, "demo.B", OTHER), 0);
}

/* Asserts that the service is published once, with this token. */
static void assert_published(const char *service, const char *token)
{
	const char *line = strstr(spokei_vfiles_get(proofrig.world.files, "/run/providers"),
				  service);
	char text[512];
	char want[128];

	assert_non_null(line);
	assert_null(strstr(line + 1, service));
	(void)snprintf(text, sizeof(text), "%.*s&", (int)strcspn(line, "\n"), line);
	(void)snprintf(want, sizeof(want), "&token=%s&", token);
	assert_non_null(strstr(text, want));
}

/* By a reload, and by the look of each minute. */
TEST(each_changed_token_is_published_again)
{
	static const char *const files[] = { "a", "own" };
	static const char *const services[] = { "/demo.A?", "/demo.B?" };
	char tokens[2][32] = { SECRET, OTHER };

	spokei_vfiles_put(proofrig.world.files, "a", SECRET "\n");
	spokei_vfiles_put(proofrig.world.files, "own", OTHER "\n");
	proofrig_configure("[registry]\nurl = file:///run/providers\n[provider]\ntoken.file = own\n"
			   "[service.demo.A]\ntoken.file = a\n");
	for (unsigned i = 0; i < 4; i++) {
		unsigned which = i / 2;

		spokei_world_run(&proofrig.world, proofrig.world.now_ns + MINUTE + 1000 * MS);
		(void)snprintf(tokens[which], sizeof(tokens[which]), "token-number-%u", i);
		spokei_vfiles_put(proofrig.world.files, files[which], tokens[which]);
		if (i % 2)
			assert_int_equal(proofrig_reconfigure(NULL), 0);
		spokei_world_run(&proofrig.world, proofrig.world.now_ns + MINUTE + 1000 * MS);
		for (unsigned j = 0; j < 2; j++)
			assert_published(services[j], tokens[j]);
	}
}

TEST(withdrawn_token_is_no_caller_of_a_list_any_more)
{
	static const char lists[] = "allow.callers = token\n[service.demo.B]\ntoken = false\n";
	char text[256];

	(void)snprintf(text, sizeof(text), "[provider]\ntoken = %s\n%s", SECRET, lists);
	proofrig_configure(text);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), 0);
	(void)snprintf(text, sizeof(text), "[provider]\ntoken = %s\n%s", OTHER, lists);
	assert_int_equal(proofrig_reconfigure(text), 0);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig.seen[0].code, SPOKE_FORBIDDEN_CALLER);
	assert_int_equal(proofrig_stat(SPOKE_STAT_DRAINED_CALLER), 1);
}

TEST(provider_that_asks_for_nothing_any_more_drains_nothing)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(proofrig_reconfigure("[provider]\n"), 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_DRAINED_CALLER), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
}

/* --- MessagePack-RPC */

TEST(connection_of_messagepack_rpc_shows_its_token_once)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EREMOTE);
	assert_string_equal(proofrig.seen[0].text, "no or bad credentials for demo.A");
	assert_int_equal(proofrig_show(0, "correct-horse-"), SPOKE_EREMOTE);
	assert_string_equal(proofrig.seen[0].text, "no or bad credentials for demo.A");
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 2);
	assert_int_equal(proofrig_show(0, SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), 0);
	assert_int_equal(proofrig.served, 2);
}

TEST(shown_token_counts_where_it_is_good)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = " OTHER "\n");
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_show(0, OTHER), 0);
	assert_int_equal(proofrig_call(0, "demo.B", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EREMOTE);
	assert_int_equal(proofrig_show(0, SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_DRAINED_CALLER), 1);
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_show(0, SECRET), SPOKE_EREMOTE);
	assert_int_equal(proofrig_show(0, OTHER), 0);
}

TEST(token_is_taken_by_providers_that_need_none)
{
	proofrig_provide(NULL);
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_show(0, SECRET), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
}

TEST(token_that_cannot_be_noted_is_refused)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_mprpc);
	proofrig_put(0, "demo.A", "$token", NULL, 300);
	assert_int_equal(proofrig_ask(0), SPOKE_EREMOTE);
	proofrig_put(0, "demo.A", "$token", NULL, 0);
	assert_int_equal(proofrig_ask(0), SPOKE_EREMOTE);
}

/* --- HTTP */

/* Sends a request with these header lines. Returns the status. */
static int post(const char *path, const char *lines)
{
	const struct spoke_env *env = &proofrig.peer.process.env;
	static char text[4096];
	ssize_t len = 0;
	int status = 0;

	(void)snprintf(
		text, sizeof(text),
		"POST /demo.A/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: 2\r\n\r\n[]",
		path, lines);
	peer_put_bytes(&proofrig.conns[0], spokei_span(text, strlen(text)));
	proofrig_flush(0);
	len = env->net->read(env->ctx, proofrig.conns[0].fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	(void)sscanf(text, "HTTP/1.1 %d", &status);
	assert_int_equal(strstr(text, "WWW-Authenticate: Bearer\r\n") != NULL, status == 401);
	assert_null(strstr(text, SECRET));
	return status;
}

TEST(http_client_bears_its_token_in_a_header)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_http);
	assert_int_equal(post("get", ""), 401);
	assert_int_equal(post("get", "Authorization: Bearer correct-horse-2\r\n"), 401);
	assert_int_equal(post("get", "Authorization: Bearer " SECRET "\r\n"), 200);
	assert_int_equal(post("get", "Spoke-Attachment-token: " SECRET "\r\n"), 200);
	assert_int_equal(post("none", "Authorization: Bearer " SECRET "\r\n"), 404);
	assert_int_equal(post("get", ""), 401);
	assert_int_equal(proofrig.served, 2);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
}

/* --- callers without a good token: how long they may try, and the bounds until then */

/* --- bounds */

TEST(third_refusal_closes_the_connection)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_false(proofrig.conns[0].ended);
	}
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.lines, 1);
	assert_non_null(strstr(proofrig.line, "no or bad credentials for demo.A"));
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
}

TEST(limit_of_refusals_is_a_setting)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\nauth.failures.max = 1\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.None", NULL), SPOKE_EFORBIDDEN);
	assert_true(proofrig.conns[0].ended);
}

TEST(flood_of_bad_requests_gets_three_answers)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		proofrig_put(0, "demo.A", "get", "correct-horse-9", 0);
	(void)proofrig_ask(0);
	assert_true(proofrig.seen[0].count <= 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.served, 0);
}

/* Puts a request in Hessian 2 with these bytes as its body. */
static void put_hessian2(unsigned which, const unsigned char *body, size_t len)
{
	const unsigned char head[] = { 0xda,
				       0xbb,
				       0xc2,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       1,
				       0,
				       0,
				       (unsigned char)(len >> 8),
				       (unsigned char)len };

	peer_put_bytes(&proofrig.conns[which], spokei_span(head, sizeof(head)));
	peer_put_bytes(&proofrig.conns[which], spokei_span(body, len));
}

TEST(third_unread_request_closes_unproven_connection)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		put_hessian2(0, bad, sizeof(bad) - 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig.seen[0].count, 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_BAD_REQUESTS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.lines, 1);
	assert_non_null(strstr(proofrig.line, "no or bad credentials for this provider"));
}

/* That it is too late must not tell a stranger that the service exists. */
TEST(third_late_request_closes_unproven_connection)
{
	static const unsigned char late[] = "\0052.0.2\006demo.A\000\003get\022Ljava/lang/Object;N"
					    "H\003_TO\0010Z";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		put_hessian2(0, late, sizeof(late) - 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	assert_true(proofrig.seen[0].count <= 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REQUESTS_EXPIRED), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	put_hessian2(1, late, sizeof(late) - 1);
	assert_int_equal(proofrig_ask(1), SPOKE_EFORBIDDEN);
}

TEST(unread_requests_of_a_proven_peer_are_no_failures)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	for (unsigned i = 0; i < 10; i++) {
		put_hessian2(0, bad, sizeof(bad) - 1);
		assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	}
	assert_false(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
}

/* A list with one value, and lists that each refer twice to the one before. */
static size_t nest(unsigned char *body, size_t lists)
{
	static const char names[] = "\0052.0.2\006demo.A\000\003get\022Ljava/lang/Object;\127\170";
	size_t len = sizeof(names) - 1;

	memcpy(body, names, len);
	for (size_t i = 1; i < lists; i++) {
		const unsigned char twice[] = { 0x7a, 'Q', (unsigned char)(0x90 + i), 'Q',
						(unsigned char)(0x90 + i) };

		memcpy(body + len, twice, sizeof(twice));
		len += sizeof(twice);
	}
	body[len++] = 'Z';
	body[len++] = 'H';
	body[len++] = 'Z';
	return len;
}

TEST(references_of_unproven_peer_repeat_few_values)
{
	unsigned char body[400];
	size_t len = nest(body, 10);

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig_stat(SPOKE_STAT_BODIES_SWOLLEN), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 1);
}

TEST(references_repeat_what_the_bytes_of_a_peer_earn)
{
	unsigned char body[400];
	size_t len = nest(body, 10);

	proofrig_configure("[provider]\n");
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 100; i++)
		put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig.seen[0].count, 100);
	assert_in_range(proofrig_stat(SPOKE_STAT_BODIES_SWOLLEN), 90, 99);
	assert_non_null(strstr(proofrig.seen[0].text, "the body repeats too much"));
	/* A body that repeats little has as many bytes as it needs. */
	len = nest(body, 5);
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), 0);
	/* Later, bodies may repeat again. */
	len = nest(body, 10);
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + UINT64_C(125000000));
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(log_has_ten_lines_a_second)
{
	proofrig_provide(SECRET);
	for (unsigned i = 0; i < 30; i++) {
		proofrig_open(0, &spokei_wire_dubbo);
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	}
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 60);
	assert_true(proofrig.lines >= 10 && proofrig.lines < 30);
	assert_null(strstr(proofrig.line, SECRET));
}

TEST(unproven_peer_sends_short_frames_only)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 60000);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	proofrig_put(0, "demo.A", "get", SECRET, 65536);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig.seen[0].count, 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_LARGE), 1);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", SECRET, 60000);
	assert_int_equal(proofrig_ask(0), 0);
	proofrig_put(0, "demo.A", "get", SECRET, 120000);
	assert_int_equal(proofrig_ask(0), 0);
	assert_int_equal(proofrig.served, 2);
}

TEST(unproven_peer_of_each_wire_has_the_bound)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_mprpc);
	proofrig_put(0, "demo.A", "get", NULL, 65536);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_show(0, SECRET), 0);
	proofrig_put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(nothing_is_bounded_where_no_proof_is_asked)
{
	proofrig_configure("[service.demo.B]\ntoken = " SECRET "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(token_of_a_reload_bounds_connections_that_are_open)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_configure("[provider]\n");
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " SECRET "\n"), 0);
	for (unsigned i = 0; i < 3; i++)
		put_hessian2(0, bad, sizeof(bad) - 1);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	proofrig_put(1, "demo.A", "get", SECRET, 120000);
	assert_int_equal(proofrig_ask(1), 0);
}

/* The network takes 4 KiB in each direction. */
TEST(unproven_peer_that_does_not_read_is_not_read)
{
	const struct spokei_vnet_link narrow = { .capacity = 4096 };
	struct spoke_list *node;
	const struct spokei_conn *conn;

	proofrig_configure("[provider]\ntoken = " SECRET "\nauth.failures.max = 1000\n");
	spokei_vnet_set_all(proofrig.world.net, &narrow);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 400; i++)
		proofrig_put(0, "demo.A", "get", NULL, 100);
	proofrig_flush(0);
	node = proofrig.provider->link->conns.next;
	conn = spoke_container_of(node, struct spokei_conn, node);
	assert_true(conn->paused & SPOKEI_PAUSED_FULL);
	assert_true(spokei_outlet_len(&conn->out) < 1024 + 600);
	assert_true(spokei_buffer_len(&conn->held) <= 4096);
	assert_true(proofrig_stat(SPOKE_STAT_BYTES_READ) < 20000);
	assert_true(spokei_buffer_len(&proofrig.conns[0].out) > 20000);
	for (unsigned i = 0; i < 400; i++) {
		proofrig_flush(0);
		peer_read(&proofrig.conns[0], proofrig_take, &proofrig.seen[0]);
	}
	assert_int_equal(proofrig.seen[0].count, 400);
}

TEST(unproven_peer_gets_no_pushes)
{
	struct spoke_peer peers[2];

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	assert_int_equal(spoke_provider_peers(proofrig.provider, peers, 2), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(spoke_provider_peers(proofrig.provider, peers, 2), 1);
}

/* --- names */

/* A request of MessagePack-RPC without a name goes to the default service. */
TEST(unproven_caller_is_told_only_names_that_it_sent)
{
	static const char *const methods[] = { "get", "none", "$token" };

	proofrig_provide(SECRET);
	for (unsigned i = 0; i < 3; i++) {
		proofrig_open(i, &spokei_wire_mprpc);
		proofrig_put(i, "", methods[i], "correct-horse-9", 0);
		assert_int_equal(proofrig_ask(i), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "no or bad credentials for this provider");
	}
	assert_non_null(strstr(proofrig.line, "no or bad credentials for demo.A"));
}

TEST(caller_on_no_list_is_told_only_names_that_it_sent)
{
	static const char *const lists[] = { "[provider]\nallow.callers = uid:1\n",
					     "[service.demo.A]\nallow.callers = uid:1\n" };

	proofrig_configure("[provider]\n");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(proofrig_reconfigure(lists[i]), 0);
		proofrig_open(i, &spokei_wire_mprpc);
		assert_int_equal(proofrig_call(i, "", NULL), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "the provider does not let addr:127.0.0.1 call it");
		assert_int_equal(proofrig_call(i, "demo.A", NULL), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "demo.A does not let addr:127.0.0.1 call it");
	}
}

/* --- places of connections: who has them when all are taken, and who counts as one address */

static const struct spoke_provider_options three = { .connections_max = 3 };

/* Asserts which connections the provider has closed, as bits. */
static void ended(unsigned bits)
{
	for (unsigned i = 0; i < CONNS; i++) {
		peer_read(&proofrig.conns[i], proofrig_take, &proofrig.seen[i]);
		if (proofrig.conns[i].ended != (bits >> i & 1))
			fail_msg("connection %u is %s", i, bits >> i & 1 ? "open" : "closed");
	}
}

/* Returns how many connections the listeners count. */
static uint32_t counted(void)
{
	return spokei_listen_group_quota(proofrig.provider->listeners)->count;
}

TEST(longest_silent_connection_gives_way_to_a_new_one)
{
	proofrig_start(&three);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	proofrig_open(2, &spokei_wire_dubbo);
	assert_int_equal(counted(), 3);
	proofrig_open(3, &spokei_wire_dubbo);
	ended(1u << 1);
	assert_int_equal(counted(), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 0);
	assert_int_equal(proofrig_call(3, "demo.A", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	ended(1u << 2);
	assert_int_equal(counted(), 3);
}

TEST(connection_that_has_sent_a_byte_keeps_its_place)
{
	proofrig_start(&three);
	for (unsigned i = 0; i < 3; i++) {
		proofrig_open(i, &spokei_wire_dubbo);
		peer_put_bytes(&proofrig.conns[i], spokei_span("\xda", 1));
		proofrig_flush(i);
	}
	proofrig_open(3, &spokei_wire_dubbo);
	ended(1u << 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 0);
}

/* All of a turn, so that a flood of silent connections leaves a place for the last one. */
TEST(crowd_of_a_turn_finds_places)
{
	int fds[100];

	proofrig_start(&three);
	for (unsigned i = 0; i < 100; i++)
		fds[i] = peer_connect(&proofrig.peer, AT);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(counted(), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 98);
	for (unsigned i = 0; i < 100; i++)
		proofrig.peer.process.env.net->close(proofrig.peer.process.env.ctx, fds[i]);
	proofrig_pass();
	assert_int_equal(counted(), 1);
}

static void open_from(unsigned which, const char *from)
{
	proofrig.peer.process.user.from = from;
	proofrig_open(which, &spokei_wire_dubbo);
}

TEST(network_of_ipv6_has_the_places_of_one_address)
{
	const struct spoke_provider_options two = { .connections_per_peer_max = 2 };

	proofrig_start(&two);
	open_from(0, "[2001:db8::1]:0");
	open_from(1, "[2001:db8::2:0:0:2]:0");
	open_from(2, "[2001:db8::3]:0");
	open_from(3, "[2001:db8:0:1::1]:0");
	ended(1u << 2);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_PEER), 1);
}

TEST(prefix_of_ipv6_follows_file)
{
	proofrig_configure("[provider]\nconnections.per.peer.max = 1\n"
			   "connections.per.peer.prefix6 = 48\n");
	open_from(0, "[2001:db8:1:1::1]:0");
	open_from(1, "[2001:db8:1:2::1]:0");
	open_from(2, "[2001:db8:2:1::1]:0");
	open_from(3, "[2001:db8:3:1::1]:0");
	ended(1u << 1);
	assert_int_equal(proofrig_reconfigure("[provider]\nconnections.per.peer.max = 1\n"
					      "connections.per.peer.prefix6 = 128\n"),
			 0);
	open_from(1, "[2001:db8:1:1::2]:0");
	ended(0);
	/* Each leaves where it was counted in. */
	for (unsigned i = 0; i < CONNS; i++)
		peer_close(&proofrig.conns[i]);
	proofrig_pass();
	assert_int_equal(counted(), 0);
	assert_int_equal(spokei_listen_group_quota(proofrig.provider->listeners)->peers.count, 0);
	for (unsigned i = 0; i < CONNS; i++)
		proofrig.conns[i].fd = -1;
}
