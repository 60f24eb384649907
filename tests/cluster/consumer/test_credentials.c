/* SPDX-License-Identifier: Apache-2.0 */
/* What a consumer shows to providers: its own token, and signatures; and to which of them. */
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define MINUTE (60000 * MS)
#define NEAR "127.0.0.1:20880"
#define FAR "10.0.0.1:20880"
#define SECRET "correct-horse-1"
#define OTHER "battery-staple-2"
#define SIGNS "auth = accesskey\naccess.id = shop\naccess.secret.file = key\n"

static struct rig {
	struct spokei_world world;
	struct side {
		struct spokei_world_process process;
		struct spoke_engine *engine;
		struct spoke_config *config;
		char file[16];
	} provides, consumes;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	unsigned served;
	char attached[1024]; /* attachments of the last request, as text */
	unsigned ends;
	int error;
	int32_t code;
} rig;

static void handle(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.served++;
	(void)spoke_value_print(spoke_request_attachments(request), rig.attached,
				sizeof(rig.attached));
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* --- set-up */

static int begin_side(struct side *side, const char *file)
{
	side->engine = scene_engine(&rig.world, &side->process, NULL, NULL);
	(void)snprintf(side->file, sizeof(side->file), "%s", file);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	if (!spokei_world_init(&rig.world, 3) || begin_side(&rig.provides, "p.conf"))
		return -1;
	return begin_side(&rig.consumes, "c.conf");
}

static void end_side(struct side *side)
{
	spoke_engine_free(side->engine);
	spoke_config_free(side->config);
	scene_leave(&side->process, NULL, NULL);
}

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

STEP(tear_down)
{
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	pass(10 * MS);
	end_side(&rig.consumes);
	end_side(&rig.provides);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static struct spoke_config *load(struct side *side, const char *text)
{
	spokei_vfiles_put(rig.world.files, side->file, text);
	assert_int_equal(spoke_config_load(&side->process.env, side->file, NULL, NULL,
					   &side->config),
			 0);
	return side->config;
}

static int reload(struct side *side, const char *text)
{
	spokei_vfiles_put(rig.world.files, side->file, text);
	return spoke_config_reload(side->config, NULL, NULL);
}

static void provide(const char *at, const char *text)
{
	const struct spoke_service_options services[] = {
		{ .name = "it.Api" },
		{ .name = "it.Old", .version = "1.0", .group = "blue" },
	};
	const struct spoke_handler handlers[] = { { .method = "get", .handle = handle },
						  { .method = "put", .handle = handle } };
	const struct spoke_provider_options options = { .config = load(&rig.provides, text) };
	char url[64];

	assert_int_equal(spoke_provider_new(rig.provides.engine, &options, &rig.provider), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(spoke_provider_add(rig.provider, &services[i], handlers, 2), 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s", at);
	assert_int_equal(spoke_provider_listen(rig.provider, url), 0);
}

static int consume(const char *url, struct spoke_consumer_options with, const char *text)
{
	int error;

	with.url = url;
	if (text)
		with.config = load(&rig.consumes, text);
	error = spoke_consumer_new(rig.consumes.engine, &with, &rig.consumer);
	pass(20 * MS);
	return error;
}

static const struct spoke_consumer_options nothing;

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ends++;
	rig.error = result->error;
	rig.code = result->error_code;
}

/* Returns the error of a call. */
static int call_of(const char *name, const struct spoke_method_options *options)
{
	struct spoke_method *method;
	unsigned ends = rig.ends;
	int error;

	rig.attached[0] = '\0';
	assert_int_equal(spoke_consumer_method(rig.consumer, name, options, &method), 0);
	error = spoke_call_with(method, SPOKE_NO_ARGS, done, NULL);
	if (error)
		return error;
	pass(100 * MS);
	assert_int_equal(rig.ends, ends + 1);
	return rig.error;
}

static int call(void)
{
	return call_of("get", NULL);
}

static bool has_sent(const char *text)
{
	return strstr(rig.attached, text) != NULL;
}

static unsigned count_events(const char *words)
{
	return scene_events(rig.consumes.engine, words);
}

/* --- tokens */

TEST(own_token_is_sent_with_each_request)
{
	const struct spoke_consumer_options with = { .token = SECRET };

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", with, NULL), 0);
	assert_int_equal(call(), 0);
	assert_int_equal(call(), 0);
	assert_true(has_sent("\"token\": \"" SECRET "\""));
}

TEST(consumer_without_it_is_told_that_it_is_forbidden)
{
	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing, NULL), 0);
	assert_int_equal(call(), SPOKE_EFORBIDDEN);
	assert_int_equal(rig.code, SPOKE_FORBIDDEN_UNPROVEN);
	assert_int_equal(spoke_stat_get(rig.consumes.engine, SPOKE_STAT_RETRIES), 0);
	assert_int_equal(rig.served, 0);
}

TEST(own_token_replaces_that_of_the_url)
{
	const struct spoke_consumer_options with = { .token = SECRET };

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api?token=" OTHER, with, NULL), 0);
	assert_int_equal(call(), 0);
}

TEST(token_of_the_service_comes_before_that_of_all)
{
	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing,
				 "[consumer]\ntoken = " OTHER "\n[service.it.Api]\ntoken = " SECRET
				 "\n"),
			 0);
	assert_int_equal(call(), 0);
}

TEST(token_changes_with_a_reload)
{
	provide(NEAR, "[provider]\ntoken = " SECRET "," OTHER "\n");
	spokei_vfiles_put(rig.world.files, "token", SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing,
				 "[consumer]\ntoken.file = token\n"),
			 0);
	assert_int_equal(call(), 0);
	assert_true(has_sent(SECRET));
	spokei_vfiles_put(rig.world.files, "token", OTHER "\n");
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken.file = token\n"), 0);
	assert_int_equal(call(), 0);
	assert_true(has_sent(OTHER));
	spokei_vfiles_put(rig.world.files, "token", "short\n");
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken.file = token\n"), SPOKE_EINVAL);
	assert_int_equal(call(), 0);
	assert_true(has_sent(OTHER));
}

TEST(changed_token_file_is_sent_within_a_minute_without_a_reload)
{
	const struct spoke_consumer_options with = { .token_file = "token" };

	provide(NEAR, "[provider]\ntoken = " SECRET "," OTHER "\n");
	spokei_vfiles_put(rig.world.files, "token", SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", with, NULL), 0);
	assert_int_equal(call(), 0);
	assert_true(has_sent(SECRET));
	spokei_vfiles_put(rig.world.files, "token", OTHER "\n");
	pass(MINUTE + 1000 * MS);
	assert_int_equal(call(), 0);
	assert_true(has_sent(OTHER));
}

TEST(consumer_has_one_token_and_no_random_one)
{
	static const char *const bad[] = { SECRET "," OTHER, "true", "short", "with a blank" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct spoke_consumer_options with = { .token = bad[i] };

		assert_int_equal(consume("dubbo://" NEAR "/it.Api", with, NULL), SPOKE_EINVAL);
		assert_null(strstr(spoke_engine_why(rig.consumes.engine), bad[i]));
		rig.consumer = NULL;
	}
}

/* --- wires without attachments */

TEST(token_is_shown_once_on_a_connection_of_messagepack_rpc)
{
	const struct spoke_consumer_options with = { .token = SECRET };
	uint64_t before;

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", with, NULL), 0);
	before = spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ);
	assert_int_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ) - before, 2);
	assert_int_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ) - before, 3);
	assert_int_equal(rig.served, 2);
}

TEST(token_goes_before_calls_that_wait_for_their_connection)
{
	const struct spoke_consumer_options with = { .url = "msgpack-rpc://" NEAR "/it.Api",
						     .token = SECRET };

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(spoke_consumer_new(rig.consumes.engine, &with, &rig.consumer), 0);
	assert_int_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_REFUSED_CREDENTIALS), 0);
}

TEST(changed_token_is_shown_in_place_of_the_first)
{
	provide(NEAR, "[provider]\ntoken = " SECRET "," OTHER "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", nothing,
				 "[consumer]\ntoken = " SECRET "\n"),
			 0);
	assert_int_equal(call(), 0);
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(call(), 0);
	assert_int_equal(reload(&rig.provides, "[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_DRAINED_CALLER), 0);
	assert_int_equal(call(), 0);
}

TEST(new_connection_of_messagepack_rpc_shows_the_token_again)
{
	const struct spoke_consumer_options with = { .token = SECRET };

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", with, NULL), 0);
	assert_int_equal(call(), 0);
	spoke_provider_free(rig.provider);
	pass(100 * MS);
	spoke_config_free(rig.provides.config);
	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	pass(MINUTE);
	assert_int_equal(call(), 0);
	assert_int_equal(rig.served, 2);
}

TEST(token_that_was_refused_is_shown_again)
{
	const struct spoke_consumer_options with = { .token = SECRET };

	provide(NEAR, "[provider]\ntoken = " OTHER "\nauth.failures.max = 100\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", with, NULL), 0);
	/* However often that happens. */
	for (unsigned i = 0; i < 6; i++) {
		assert_int_not_equal(call(), 0);
		pass(SECOND);
	}
	assert_int_equal(reload(&rig.provides, "[provider]\ntoken = " SECRET "," OTHER
					       "\nauth.failures.max = 100\n"),
			 0);
	assert_int_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_ACCEPTED), 1);
}

TEST(refused_token_is_shown_once_a_second)
{
	const struct spoke_consumer_options with = { .token = SECRET };
	uint64_t before;

	provide(NEAR, "[provider]\ntoken = " OTHER "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", with, NULL), 0);
	before = spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ);
	assert_int_not_equal(call(), 0);
	assert_int_not_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ) - before, 3);
	pass(SECOND);
	assert_int_not_equal(call(), 0);
	assert_int_equal(spoke_stat_get(rig.provides.engine, SPOKE_STAT_MESSAGES_READ) - before, 5);
}

TEST(token_takes_no_place_of_a_call)
{
	const struct spoke_consumer_options with = { .token = SECRET, .pending_max = 1 };

	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api", with, NULL), 0);
	assert_int_equal(call(), 0);
	assert_int_equal(call(), 0);
}

TEST(token_of_the_url_is_shown_too)
{
	provide(NEAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("msgpack-rpc://" NEAR "/it.Api?token=" SECRET, nothing, NULL), 0);
	assert_int_equal(call(), 0);
}

/* --- where a token may go */

TEST(token_for_another_machine_over_plain_tcp_is_refused)
{
	static const char *const far[] = { "dubbo://" FAR "/it.Api", "dubbo://shop.test/it.Api",
					   "dubbo://[2001:db8::1]/it.Api" };
	const struct spoke_consumer_options with = { .token = SECRET };

	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		assert_int_equal(consume(far[i], with, NULL), SPOKE_EINVAL);
		assert_non_null(
			strstr(spoke_engine_why(rig.consumes.engine), "token.plain = true"));
		assert_null(strstr(spoke_engine_why(rig.consumes.engine), SECRET));
		rig.consumer = NULL;
	}
}

TEST(token_goes_to_this_machine)
{
	static const char *const near[] = { "dubbo://localhost/it.Api", "dubbo://[::1]/it.Api",
					    "dubbo://127.1.2.3/it.Api",
					    "dubbo://[::ffff:127.0.0.1]/it.Api" };
	const struct spoke_consumer_options with = { .token = SECRET };

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		assert_int_equal(consume(near[i], with, NULL), 0);
		spoke_consumer_free(rig.consumer);
		rig.consumer = NULL;
		pass(10 * MS);
	}
}

TEST(token_goes_elsewhere_if_that_is_wanted)
{
	provide(FAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" FAR "/it.Api", nothing,
				 "[consumer]\ntoken = " SECRET "\ntoken.plain = true\n"),
			 0);
	assert_int_equal(call(), 0);
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken = " SECRET "\n"), 0);
	assert_int_equal(call(), SPOKE_EUNSUPPORTED);
	assert_int_equal(call(), SPOKE_EUNSUPPORTED);
	assert_int_equal(count_events("token.plain = true"), 1);
	assert_int_equal(reload(&rig.consumes,
				"[consumer]\ntoken = " SECRET "\ntoken.plain = true\n"),
			 0);
	assert_int_equal(call(), 0);
}

TEST(token_that_the_url_has_anyway_is_no_secret)
{
	provide(FAR, "[provider]\ntoken = " SECRET "\n");
	assert_int_equal(consume("dubbo://" FAR "/it.Api?token=" SECRET, nothing, NULL), 0);
	assert_int_equal(call(), 0);
}

/* --- signatures */

static void sign_both(const char *more)
{
	char text[256];

	spokei_vfiles_put(rig.world.files, "key", "s3cret-key\n");
	(void)snprintf(text, sizeof(text), "[provider]\n" SIGNS "%s", more);
	provide(NEAR, text);
}

TEST(consumer_signs_and_provider_checks)
{
	sign_both("");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing,
				 "[consumer]\n" SIGNS "application = till\n"),
			 0);
	for (unsigned i = 0; i < 3; i++) {
		pass(10 * MINUTE);
		assert_int_equal(call(), 0);
		assert_int_equal(call_of("put", NULL), 0);
	}
	assert_true(has_sent("\"ak\": \"shop\""));
	assert_true(has_sent("\"consumer\": \"till\""));
	assert_true(has_sent("\"timestamp\": \""));
	assert_true(has_sent("\"signature\": \""));
	assert_false(has_sent("s3cret-key"));
}

TEST(version_and_group_are_signed_as_the_provider_has_them)
{
	sign_both("");
	assert_int_equal(consume("dubbo://" NEAR "/it.Old?version=1.0&group=blue", nothing,
				 "[service.it.Old]\n" SIGNS),
			 0);
	assert_int_equal(call(), 0);
}

TEST(generic_calls_sign_the_real_method)
{
	const struct spoke_method_options generic = { .generic = true };

	sign_both("");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing, "[consumer]\n" SIGNS), 0);
	assert_int_equal(call_of("get", &generic), 0);
}

TEST(calls_of_unsigned_or_wrongly_signed_requests_are_forbidden)
{
	sign_both("");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing, "[consumer]\ntimeout = 1s\n"),
			 0);
	assert_int_equal(call(), SPOKE_EFORBIDDEN);
	assert_int_equal(rig.code, SPOKE_FORBIDDEN_UNPROVEN);
	spokei_vfiles_put(rig.world.files, "key", "another-key\n");
	assert_int_equal(reload(&rig.consumes, "[consumer]\n" SIGNS), 0);
	assert_int_equal(call(), SPOKE_EFORBIDDEN);
	assert_int_equal(rig.served, 0);
}

TEST(token_and_signature_are_both_needed_if_both_are_asked_for)
{
	sign_both("token = " SECRET "\n");
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing, "[consumer]\n" SIGNS), 0);
	assert_int_equal(call(), SPOKE_EFORBIDDEN);
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken = " SECRET "\n"), 0);
	assert_int_equal(call(), SPOKE_EFORBIDDEN);
	assert_int_equal(reload(&rig.consumes, "[consumer]\ntoken = " SECRET "\n" SIGNS), 0);
	assert_int_equal(call(), 0);
}

TEST(signing_without_a_key_is_refused)
{
	assert_int_equal(consume("dubbo://" NEAR "/it.Api", nothing,
				 "[consumer]\nauth = accesskey\naccess.id = shop\n"),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(rig.consumes.engine), "access.secret.file"));
	rig.consumer = NULL;
}
