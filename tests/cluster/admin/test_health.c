/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of probes: /live, /ready and /ready/consumers. */
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define rig adminrig
#define PLACE "dubbo://127.0.0.1:20880"
#define URL PLACE "/demo.Echo"
#define SOON MS

static void expect(const char *path, int status, const char *sentence)
{
	char request[128];
	const char *answer;
	const char *body;
	char head[32];

	(void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" ADMINRIG_HOST "\r\n", path);
	answer = adminrig_ask(request);
	body = strstr(answer, "\r\n\r\n");
	assert_non_null(body);
	(void)snprintf(head, sizeof(head), "HTTP/1.1 %d ", status);
	assert_memory_equal(answer, head, strlen(head));
	assert_string_equal(body + 4, sentence);
}

static void hold(struct spoke_request *request, void *arg)
{
	struct spoke_request **held = arg;

	*held = request;
}

static struct spoke_provider *make_provider(struct spoke_request **held)
{
	const struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handler = { .method = "hold", .handle = hold, .arg = held };
	struct spoke_provider *provider;

	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), SPOKE_OK);
	return provider;
}

static struct spoke_consumer *make_consumer(const char *url)
{
	const struct spoke_consumer_options options = { .url = url };
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	return consumer;
}

FIXTURE(adminrig_set_up, adminrig_tear_down);

TEST(empty_engine_is_alive_and_ready)
{
	expect("/live", 200, "alive\n");
	expect("/ready", 200, "ready\n");
	expect("/ready/consumers", 200, "ready\n");
	assert_int_equal(adminrig_status("POST /ready HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 405);
	assert_int_equal(adminrig_status("GET /ready HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
	assert_int_equal(adminrig_status("GET /ready/ HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 404);
	assert_null(strstr(adminrig_ask("HEAD /live HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), "alive"));
}

TEST(provider_is_ready_once_it_listens)
{
	struct spoke_provider *provider = make_provider(NULL);

	expect("/ready", 503, "provider 1 does not listen\n");
	expect("/live", 200, "alive\n");
	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	expect("/ready", 200, "ready\n");
	provider = make_provider(NULL);
	expect("/ready", 503, "provider 2 does not listen\n");
	spoke_provider_free(provider);
	expect("/ready", 200, "ready\n");
}

TEST(draining_engine_is_alive_but_not_ready)
{
	struct spoke_request *held = NULL;
	struct spoke_provider *provider = make_provider(&held);
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	consumer = make_consumer(URL);
	assert_int_equal(spoke_consumer_method(consumer, "hold", NULL, &method), SPOKE_OK);
	assert_int_equal(spoke_call(method, (struct spoke_span){ "\xc0", 1 }, NULL, NULL, NULL,
				    NULL),
			 SPOKE_OK);
	adminrig_run(10 * SOON);
	assert_non_null(held);
	expect("/ready", 200, "ready\n");
	assert_int_equal(spoke_engine_drain(rig.engine, UINT64_MAX), SPOKE_OK);
	expect("/ready", 503, "the engine drains\n");
	expect("/live", 200, "alive\n");
	SPOKE_REPLY(held, true);
}

TEST(consumer_is_checked_only_on_request)
{
	struct spoke_provider *provider;

	(void)make_consumer(URL);
	expect("/ready", 200, "ready\n");
	expect("/ready/consumers", 503, "consumer 1 (demo.Echo) has no ready endpoint\n");
	provider = make_provider(NULL);
	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	adminrig_run(60 * SECOND);
	expect("/ready/consumers", 200, "ready\n");
	spoke_provider_free(provider);
	adminrig_run(60 * SECOND);
	expect("/ready/consumers", 503, "consumer 1 (demo.Echo) has no ready endpoint\n");
	expect("/ready", 200, "ready\n");
}

TEST(endpoint_that_the_next_call_connects_is_ready)
{
	(void)make_consumer(URL "?lazy=true");
	expect("/ready/consumers", 200, "ready\n");
}
