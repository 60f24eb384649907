/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers and providers that have ended but are not freed, and their last events. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include <string.h>

RUNNER(stage_run);

STAGE_TEST(drained_consumer_refuses_calls_until_freed)
{
	struct spoke_method *echo = stage_method(stage, "echo");

	stage_until_ready(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	stage_pass(stage, 50 * MS);
	assert_int_equal(spoke_consumer_ready(stage->consumer), 0);
	assert_int_equal(stage_try(stage, echo, stage_text(stage, "x"), NULL), SPOKE_ECLOSED);
	stage_free_consumer(stage);
	stage_pass(stage, 50 * MS);
}

STAGE_TEST(drained_provider_does_not_listen_until_freed)
{
	char text[64];

	stage_until_ready(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10 * SECOND), 0);
	/* On real sockets it takes as long as the machine is busy. */
	for (unsigned i = 0; i < 100 && spoke_provider_connections(stage->provider) > 0; i++)
		stage_pass(stage, 50 * MS);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
	assert_int_equal(spoke_provider_address(stage->provider, 0, text, sizeof(text)), 0);
	assert_int_equal(spoke_provider_listen(stage->provider, "dubbo://127.0.0.1:0"),
			 SPOKE_ECLOSED);
	stage_free_provider(stage);
	stage_pass(stage, 50 * MS);
}

STAGE_TEST(drained_members_are_freed_with_engine)
{
	stage_until_ready(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10 * SECOND), 0);
	stage_pass(stage, 50 * MS);
	stage_free_client(stage);
	stage_free_server(stage);
}

STAGE_TEST(member_closed_by_drain_stays_until_freed)
{
	struct spoke_method *never = stage_method(stage, "later");
	struct stage_call *call = stage_call(stage, never, stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->client_engine, 20 * MS), 0);
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECLOSED);
	stage_pass(stage, 50 * MS);
	assert_int_equal(stage_try(stage, never, stage_no_args(), NULL), SPOKE_ECLOSED);
	stage_free_consumer(stage);
	stage_answer(stage, 0);
}

/* Only the Dubbo wire has heartbeats, by which a provider recognises a consumer of spoke. With TLS
 * an end without a close_notify is a loss. */
STAGE_TEST(vanished_consumer_is_noticed_at_once_if_it_is_known)
{
	bool known = stage->setting->dubbo || stage_is_secure(stage);

	if (!stage->setting->in_memory)
		return;
	(void)stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
	stage_until_held(stage, 1);
	stage_pass(stage, SECOND); /* all input has been read, so the close is no reset */
	stage_free_consumer(stage);
	stage_pass(stage, SECOND);
	assert_int_equal(stage->abandoned, known);
	stage_pass(stage, 58 * SECOND);
	assert_int_equal(stage->abandoned, known);
	stage_pass(stage, 2 * SECOND);
	assert_int_equal(stage->abandoned, 1);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
	stage_answer(stage, 0);
}

STAGE_TEST(engine_event_names_wrong_option)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} cases[] = {
		{ NULL, SPOKE_EINVAL, "missing" },
		{ "dubbo://127.0.0.1:1:2/x", SPOKE_ESYNTAX, "URL" },
		{ "dubbo://127.0.0.1:0/x", SPOKE_ERANGE, "port 0" },
		{ "http://127.0.0.1:80/x", SPOKE_EUNSUPPORTED, "http" },
		{ "dubbo://127.0.0.1:1/x?timeuot=1s", SPOKE_EINVAL, "timeout" },
		{ "dubbo://127.0.0.1:1/x?timeout=soon", SPOKE_ESYNTAX, "timeout" },
		{ "dubbo://127.0.0.1:1/x?timeout=0", SPOKE_ERANGE, "timeout" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_consumer_options options = { .url = cases[i].url };
		struct spoke_consumer *consumer = NULL;

		assert_int_equal(spoke_consumer_new(stage->client_engine, &options, &consumer),
				 cases[i].error);
		assert_null(consumer);
		assert_non_null(strstr(spoke_engine_why(stage->client_engine), cases[i].words));
	}
	assert_int_equal(spoke_provider_listen(stage->provider, "dubbo://some.name:1"),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(stage->server_engine), "numeric"));
}
