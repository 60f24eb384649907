/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a provider asks for: which callers are let in, over each wire. */
#include "tests/cluster/provider/proofrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

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
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(proofrig.engine, event.number + 1, &event) == SPOKE_OK)
		count += strstr(event.text, words) != NULL;
	return count;
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
