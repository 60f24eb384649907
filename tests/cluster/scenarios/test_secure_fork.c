/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child that frees links with TLS leaves those of its parent alone. */
#define _POSIX_C_SOURCE 200809L

#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static struct {
	struct spoke_engine *engine; /* of both sides */
	struct spoke_consumer *consumer;
	struct spoke_provider *provider;
	struct spoke_method *echo;
	unsigned ended;
	int error; /* of the last call */
} rig;

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error;
}

/* Calls, and waits for the end: its deadline bounds the time. */
static void call(void)
{
	const struct spoke_call_options options = { .timeout_ns = 20 * SECOND };
	unsigned before = rig.ended;

	assert_int_equal(spoke_call(rig.echo, (struct spoke_span){ NULL, 0 }, &options, note_end,
				    NULL, NULL),
			 0);
	while (rig.ended == before)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	assert_int_equal(rig.error, SPOKE_OK);
}

static void make(const struct secure *secure)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	const struct spoke_provider_options serving = { .tls = &secure->provider };
	struct spoke_consumer_options calling = { .tls = &secure->consumer };
	char address[128];
	char url[256];

	assert_int_equal(spoke_engine_new(NULL, &rig.engine), 0);
	assert_int_equal(spoke_provider_new(rig.engine, &serving, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://127.0.0.1:0"), 0);
	assert_true(spoke_provider_address(rig.provider, 0, address, sizeof(address)) > 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s/demo.Echo", address);
	calling.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

TEST(links_outlive_a_child_that_frees_them)
{
	char folder[] = "/tmp/spoke-test-fork-XXXXXX";
	struct secure secure;
	int status = 1;
	pid_t child;

	assert_non_null(mkdtemp(folder));
	assert_true(secure_begin(&secure, NULL, folder));
	make(&secure);
	call();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		spoke_engine_free(rig.engine);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	call();
	call();
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_HANDSHAKES), 1);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_CLOSED), 0);
	spoke_engine_free(rig.engine);
	secure_end(&secure);
	assert_int_equal(rmdir(folder), 0);
}
