/* SPDX-License-Identifier: Apache-2.0 */
/* The serialization of requests: what the provider's URL asks for, and what the consumer sets. */
#include "cluster/call/method.h"
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <stdio.h>
#include <string.h>

#define HESSIAN2 SPOKEI_CODEC_HESSIAN2
#define MSGPACK SPOKEI_CODEC_MSGPACK

static const struct spoke_consumer_options presets;

/* Lists the provider with these parameters, and makes a call. Returns the codec of its request. */
static uint8_t codec_with(const char *parameters)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "%s%s", A, parameters);
	LIST(url);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	return dirrig.echo->request.codec;
}

static void start(const char *parameters, const struct spoke_consumer_options *options)
{
	dirrig_start(0);
	dirrig_consume(parameters, options);
	dirrig_beat(MS);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(requests_use_serialization_of_provider_url)
{
	static const struct row {
		const char *parameters;
		uint8_t codec;
	} rows[] = {
		{ "?serialization=hessian2", HESSIAN2 },
		{ "?serialization=msgpack", MSGPACK },
		{ "?serialization=hessian2&prefer.serialization=msgpack,hessian2", MSGPACK },
		{ "?prefer.serialization=hessian2,msgpack", HESSIAN2 },
		{ "?prefer.serialization=hessian2,msgpack&spoke.serialization=msgpack", MSGPACK },
		{ "?serialization=msgpack&prefer.serialization=hessian2", HESSIAN2 },
		{ "?prefer.serialization=fastjson2,hessian2", HESSIAN2 },
		{ "?prefer.serialization=hessian2,fastjson2", HESSIAN2 },
		{ "?prefer.serialization=kryo,%20msgpack", MSGPACK },
		{ "?prefer.serialization=fastjson2&serialization=msgpack", MSGPACK },
		{ "?prefer.serialization=,,&serialization=hessian2", HESSIAN2 },
	};

	start("", &presets);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (codec_with(rows[i].parameters) != rows[i].codec)
			fail_msg("%s: codec %u", rows[i].parameters, dirrig.echo->request.codec);
}

TEST(unknown_serializations_count_as_unset)
{
	static const char *const unknown[] = {
		"?serialization=fastjson2",
		"?serialization=auto",
		"?serialization=HESSIAN2",
		"?serialization=msgpackx&prefer.serialization=msg,hessian",
		"?prefer.serialization=",
	};

	start("", &presets);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(codec_with(unknown[i]), HESSIAN2);
}

TEST(requests_use_hessian2_where_nothing_is_set)
{
	const struct spoke_consumer_options direct = { .url = A };
	const struct spoke_span none = { NULL, 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;

	start("", &presets);
	assert_int_equal(codec_with(""), HESSIAN2);
	assert_int_equal(spoke_consumer_new(dirrig.engine, &direct, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), 0);
	assert_int_equal(spoke_call(echo, none, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(echo->request.codec, HESSIAN2);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_served(0), 2);
	spoke_consumer_free(consumer);
}

TEST(application_is_sent_in_hessian2_only)
{
	const struct spoke_consumer_options options = { .application = "shop" };

	start("", &options);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_non_null(strstr(dirrig.sides[0].attachments, "\"remote.application\": \"shop\""));
	assert_int_equal(codec_with("?serialization=msgpack"), MSGPACK);
	assert_null(strstr(dirrig.sides[0].attachments, "application"));
}

TEST(application_that_is_not_set_is_not_sent)
{
	start("", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_null(strstr(dirrig.sides[0].attachments, "application"));
}

TEST(setting_of_consumer_overrides_provider_url)
{
	start("?serialization=msgpack", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), MSGPACK);
	assert_int_equal(codec_with("?prefer.serialization=hessian2"), MSGPACK);
}

TEST(setting_of_method_overrides_that_of_consumer)
{
	start("?serialization=msgpack&echo.serialization=hessian2", &presets);
	assert_int_equal(codec_with("?serialization=msgpack"), HESSIAN2);
}

TEST(auto_of_method_follows_provider_again)
{
	start("?serialization=msgpack&echo.serialization=auto", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_int_equal(codec_with("?serialization=msgpack"), MSGPACK);
}

TEST(options_override_url)
{
	const struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_AUTO };
	const struct spoke_method_options method = { .serialization = SPOKE_SERIALIZATION_MSGPACK };

	start("?serialization=msgpack", &options);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_int_equal(spoke_consumer_method(dirrig.consumer, "echo", &method, &dirrig.echo), 0);
	assert_int_equal(codec_with("?serialization=hessian2"), MSGPACK);
}

TEST(options_outside_enum_are_rejected)
{
	const struct spoke_consumer_options options = {
		.url = A,
		.serialization = (enum spoke_serialization)99,
	};
	const struct spoke_method_options method = {
		.serialization = (enum spoke_serialization)99
	};
	struct spoke_consumer *consumer;
	struct spoke_method *echo;

	dirrig_consume("", &presets);
	assert_int_equal(spoke_consumer_new(dirrig.engine, &options, &consumer), SPOKE_EINVAL);
	assert_int_equal(spoke_consumer_method(dirrig.consumer, "echo", &method, &echo),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(dirrig.engine), "serialization=99"));
}

TEST(each_provider_gets_its_own_serialization)
{
	unsigned seen[32] = { 0 };

	dirrig_start(1);
	start("", &presets);
	LIST(A "?serialization=msgpack", B "?serialization=hessian2");
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(dirrig_call(), 0);
		seen[dirrig.echo->request.codec]++;
	}
	assert_int_equal(seen[MSGPACK], 2);
	assert_int_equal(seen[HESSIAN2], 2);
}
