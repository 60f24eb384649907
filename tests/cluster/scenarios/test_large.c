/* SPDX-License-Identifier: Apache-2.0 */
/* Messages above the default of frame.max, which both sides may raise, and above the limit. */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1048576)
#define LARGE (40 * MIB)
#define INTEGERS 66000u

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned ends;
	int error;
	size_t len;         /* of the value */
	char text[200];     /* of the error */
	unsigned char *bin; /* LARGE bytes with a head */
	size_t give;        /* bytes that the provider replies; 0: an echo */
} rig;

static struct spoke_span bin(size_t len)
{
	size_t rest = len - 5;

	rig.bin[0] = 0xc6;
	for (int i = 0; i < 4; i++)
		rig.bin[1 + i] = (unsigned char)(rest >> (24 - 8 * i));
	return (struct spoke_span){ rig.bin, len };
}

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { NULL, 0 };

	(void)arg;
	if (!spoke_cursor_next(&args, &value))
		value.len = 0;
	if (rig.give > 0)
		value = (struct spoke_value){ bin(rig.give).data, rig.give };
	spoke_reply(request, value);
}

static void begin(size_t providers_max, size_t consumers_max)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	const struct spoke_provider_options serving = { .frame_max = providers_max };
	const struct spoke_consumer_options calling = {
		.url = "dubbo://" LINKRIG_AT "/demo.Echo",
		.frame_max = consumers_max,
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
	};
	const struct spoke_engine_options options = { .env = &rig.process.env };

	memset(&rig, 0, sizeof(rig));
	rig.bin = calloc(1, LARGE);
	assert_non_null(rig.bin);
	assert_int_equal(spoke_provider_new(linkrig.engine, &serving, &linkrig.provider), 0);
	assert_int_equal(spoke_provider_add(linkrig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(linkrig.provider, "dubbo://" LINKRIG_AT), 0);
	spokei_world_process_init(&rig.process, &linkrig.world);
	assert_int_equal(spoke_engine_new(&options, &rig.engine), 0);
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
	linkrig_pass(10 * TICK);
}

static void finish(void)
{
	spoke_engine_free(rig.engine);
	spokei_world_process_fini(&rig.process);
	free(rig.bin);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ends++;
	rig.error = result->error;
	rig.len = result->value.len;
	(void)snprintf(rig.text, sizeof(rig.text), "%.*s", (int)result->error_text.len,
		       result->error_text.len ? (const char *)result->error_text.data : "");
}

static int try(struct spoke_span args)
{
	const struct spoke_call_options options = { .timeout_ns = 600 * SECOND };
	unsigned ends = rig.ends;
	int error = spoke_call(rig.echo, args, &options, note_end, NULL, NULL);

	for (unsigned i = 0; error == 0 && rig.ends == ends && i < 100000; i++)
		linkrig_pass(10 * TICK);
	return error;
}

FIXTURE(linkrig_set_up, linkrig_tear_down);

TEST(both_sides_may_raise_the_largest_frame)
{
	begin(64 * MIB, 64 * MIB);
	assert_int_equal(try(bin(LARGE)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, LARGE);
	finish();
}

TEST(arguments_in_a_line_may_be_as_large_as_the_frame)
{
	const struct spoke_call_options options = { .timeout_ns = 600 * SECOND };
	const size_t lens[] = { 9 * MIB, 65 * MIB };
	char *text = malloc(lens[1] + 1);

	assert_non_null(text);
	begin(64 * MIB, 64 * MIB);
	for (size_t i = 0; i < 2; i++) {
		int error;

		memset(text, 'x', lens[i]);
		text[lens[i]] = '\0';
		error = spoke_call_args(rig.echo, SPOKE_ARGS(text, 1), &options, note_end, NULL,
					NULL);
		assert_int_equal(error, i == 0 ? SPOKE_OK : SPOKE_ETOOLARGE);
		for (unsigned turns = 0; rig.ends == 0 && turns < 100000; turns++)
			linkrig_pass(10 * TICK);
		assert_int_equal(rig.error, SPOKE_OK);
		assert_int_equal(rig.len, 5 + lens[0]);
	}
	assert_non_null(strstr(spoke_engine_why(rig.engine), "call of echo refused: too large"));
	free(text);
	finish();
}

static void reply_in_a_line(struct spoke_request *request, void *arg)
{
	SPOKE_REPLY(request, (const char *)arg);
}

TEST(reply_in_a_line_may_be_as_large_as_the_frame)
{
	static const struct spoke_service_options service = { .name = "demo.Large" };
	const struct spoke_method_options at = { .service = "demo.Large" };
	struct spoke_handler handler = { .method = "echo", .handle = reply_in_a_line };
	char *text = malloc(9 * MIB + 1);

	assert_non_null(text);
	memset(text, 'x', 9 * MIB);
	text[9 * MIB] = '\0';
	handler.arg = text;
	begin(64 * MIB, 64 * MIB);
	assert_int_equal(spoke_provider_add(linkrig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &at, &rig.echo), 0);
	assert_int_equal(try((struct spoke_span){ NULL, 0 }), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, 5 + 9 * MIB);
	free(text);
	finish();
}

TEST(many_integers_fit_by_default)
{
	unsigned char *list;

	begin(0, 0);
	list = calloc(1, 5 + INTEGERS);
	assert_non_null(list);
	list[0] = 0xdd;
	list[2] = INTEGERS >> 16 & 0xff;
	list[3] = INTEGERS >> 8 & 0xff;
	list[4] = INTEGERS & 0xff;
	assert_int_equal(try((struct spoke_span){ list, 5 + INTEGERS }), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, 5 + INTEGERS);
	free(list);
	finish();
}

TEST(call_that_is_too_large_names_limit_and_key)
{
	begin(0, 0);
	assert_int_equal(try(bin(9 * MIB)), SPOKE_ETOOLARGE);
	assert_non_null(strstr(spoke_engine_why(rig.engine), "9437184 bytes"));
	assert_non_null(strstr(spoke_engine_why(rig.engine), "frame.max allows 8388608"));
	finish();
}

TEST(call_before_its_connection_names_limit_and_key)
{
	struct spoke_consumer_options options = { .url = "dubbo://" LINKRIG_AT "/demo.Echo" };
	struct spoke_consumer *consumer;

	begin(0, 0);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &rig.echo), 0);
	/* The length of the frame is known when the connection is open. */
	assert_int_equal(try(bin(8 * MIB - 2)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_ETOOLARGE);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608 bytes"));
	finish();
}

TEST(provider_names_its_limit_for_a_request)
{
	begin(0, 64 * MIB);
	assert_int_equal(try(bin(9 * MIB)), SPOKE_OK);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608"));
	finish();
}

TEST(provider_names_its_limit_for_a_reply)
{
	begin(0, 64 * MIB);
	rig.give = 9 * MIB;
	assert_int_equal(try(bin(10)), SPOKE_OK);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_non_null(strstr(rig.text, "9437184 bytes"));
	assert_non_null(strstr(rig.text, "provider's frame.max allows 8388608"));
	finish();
}

TEST(consumer_names_its_limit_for_a_reply)
{
	begin(64 * MIB, 0);
	rig.give = 9 * MIB;
	assert_int_equal(try(bin(10)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_ETOOLARGE);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608"));
	finish();
}
