/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and options rejected before anything is sent, and their messages. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include <string.h>

RUNNER(stage_run);

TEST(a_generic_call_has_as_many_arguments_as_types)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method_options options = { .generic = true, .type_names = "int,int" };
	struct spoke_method *method = stage_method_with(stage, "echo", &options);

	assert_int_equal(stage_try(stage, method, stage_text(stage, "x"), NULL), SPOKE_EINVAL);
}

static int try_attachments(struct stage *stage, const char *const *keys, size_t count)
{
	unsigned char memory[256];
	struct spoke_builder builder;
	struct spoke_call_options options = { 0 };

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, count);
	for (size_t i = 0; i < count; i++) {
		spoke_pack_text(&builder, keys[i]);
		spoke_pack_text(&builder, "value");
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return stage_try(stage, stage_method(stage, "echo"), stage_text(stage, "x"), &options);
}

TEST(attachments_must_be_unique_texts_without_timeout_key)
{
	static const char *const twice[] = { "a", "b", "a" };
	static const char *const timeout[] = { "timeout" };
	static const char *const to[] = { "_TO" };
	struct stage *stage = stage_begin(state);

	assert_int_equal(try_attachments(stage, twice, 3), SPOKE_EEXIST);
	assert_int_equal(try_attachments(stage, timeout, 1), SPOKE_EINVAL);
	assert_int_equal(try_attachments(stage, to, 1), SPOKE_EINVAL);
	assert_int_equal(try_attachments(stage, twice, 2),
			 stage->setting->dubbo ? SPOKE_OK : SPOKE_EUNSUPPORTED);
	stage_end_all(stage);
}

TEST(version_without_field_on_wire_is_rejected)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method_options options = { .version = "1.0" };
	struct spoke_method *method = stage_method_with(stage, "echo", &options);

	assert_int_equal(stage_try(stage, method, stage_text(stage, "x"), NULL),
			 stage->setting->dubbo ? SPOKE_OK : SPOKE_EUNSUPPORTED);
	stage_end_all(stage);
}

static int try_consumer(struct stage *stage, const struct spoke_consumer_options *options,
			const char *words)
{
	struct spoke_consumer *consumer = NULL;
	int error = spoke_consumer_new(stage->client_engine, options, &consumer);

	assert_null(consumer);
	assert_non_null(strstr(spoke_engine_why(stage->client_engine), words));
	return error;
}

TEST(every_url_of_a_consumer_is_looked_at)
{
	static const char *const bad_value[] = { "dubbo://127.0.0.1:2/S?timeout=soon" };
	static const char *const bad_key[] = { "dubbo://127.0.0.1:2/S?tmeout=1s" };
	static const char *const other[] = { "dubbo://127.0.0.1:2/T" };
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S", .more_count = 1 };
	struct stage *stage = stage_begin(state);

	assert_int_equal(try_consumer(stage, &options, "more_urls"), SPOKE_EINVAL);
	options.more_urls = bad_value;
	assert_int_equal(try_consumer(stage, &options, "timeout"), SPOKE_ESYNTAX);
	options.more_urls = bad_key;
	assert_int_equal(try_consumer(stage, &options, "timeout"), SPOKE_EINVAL);
	options.more_urls = other;
	assert_int_equal(try_consumer(stage, &options, "names another service"), SPOKE_EINVAL);
	options.more_count = 0;
	options.frame_max = (64u << 20) + 1;
	assert_int_equal(try_consumer(stage, &options, "frame.max"), SPOKE_ERANGE);
	options.frame_max = 0;
	options.values_max = SPOKE_VALUE_ITEMS_MAX + 1;
	assert_int_equal(try_consumer(stage, &options, "values.max"), SPOKE_ERANGE);
}

TEST(an_interval_is_10_ms_at_least_or_off)
{
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S",
						  .heartbeat_ns = 10 * MS - 1 };
	struct spoke_provider_options serving = { .heartbeat_ns = 1 };
	struct stage *stage = stage_begin(state);
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;

	assert_int_equal(try_consumer(stage, &options, "heartbeat"), SPOKE_ERANGE);
	options.heartbeat_ns = 0;
	options.url = "dubbo://127.0.0.1:1/S?heartbeat=9ms";
	assert_int_equal(try_consumer(stage, &options,
				      "heartbeat=9ms: too small; it goes from 10ms"),
			 SPOKE_ERANGE);
	options.url = "dubbo://127.0.0.1:1/S?idle.close=1ms";
	assert_int_equal(try_consumer(stage, &options, "idle.close"), SPOKE_ERANGE);
	options.url = "dubbo://127.0.0.1:1/S?heartbeat=0&idle.close=10ms";
	assert_int_equal(spoke_consumer_new(stage->client_engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
	assert_int_equal(spoke_provider_new(stage->server_engine, &serving, &provider),
			 SPOKE_ERANGE);
	serving.heartbeat_ns = SPOKE_OFF;
	assert_int_equal(spoke_provider_new(stage->server_engine, &serving, &provider), SPOKE_OK);
	spoke_provider_free(provider);
}

TEST(invalid_listen_options_are_refused)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} cases[] = {
		{ "dubbo://127.0.0.1:0?heartbeat=1s", SPOKE_EINVAL, "heartbeat" },
		{ "dubbo://127.0.0.1:0?hartbeat=1s", SPOKE_EINVAL, "hartbeat" },
		{ "http://127.0.0.1:0", SPOKE_EUNSUPPORTED, "http" },
	};
	struct stage *stage = stage_begin(state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(spoke_provider_listen(stage->provider, cases[i].url),
				 cases[i].error);
		assert_non_null(strstr(spoke_engine_why(stage->server_engine), cases[i].words));
	}
}

TEST(further_urls_must_match_first_url)
{
	static const char *const other[] = { "dubbo://127.0.0.1:2/S?heartbeat=2s" };
	static const char *const same[] = { "dubbo://127.0.0.1:2/S?heartbeat=1000" };
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S?heartbeat=1s",
						  .more_urls = other,
						  .more_count = 1 };
	struct stage *stage = stage_begin(state);
	struct spoke_consumer *consumer;

	assert_int_equal(try_consumer(stage, &options, "heartbeat applies to"), SPOKE_EINVAL);
	options.more_urls = same;
	assert_int_equal(spoke_consumer_new(stage->client_engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
}

TEST(a_method_needs_a_service_where_the_wire_names_it)
{
	struct stage *stage = stage_begin(state);
	struct spoke_consumer_options dubbo = { .url = "dubbo://127.0.0.1:1" };
	struct spoke_consumer_options mprpc = { .url = "msgpack-rpc://127.0.0.1:1" };
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_new(stage->client_engine, &dubbo, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(stage->client_engine), "no service"));
	spoke_consumer_free(consumer);
	assert_int_equal(spoke_consumer_new(stage->client_engine, &mprpc, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), SPOKE_OK);
	spoke_consumer_free(consumer);
}
