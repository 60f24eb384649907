/* SPDX-License-Identifier: Apache-2.0 */
/* The precedence of settings: for each pair of sources in the table below, the lower row wins. */
#include "cluster/call/method.h"
#include "cluster/consumer/settings.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>

enum place {
	IN_PROVIDED, /* a provider's URL in the registry */
	IN_FILE,
	IN_URL, /* the consumer's URL, which names one service */
	IN_OPTIONS,
	IN_METHOD_OPTIONS,
	PLACES,
};

/* In order of increasing precedence. Each source sets a number of its own. */
static const struct source {
	enum place place;
	const char *before;
} sources[] = {
	{ IN_PROVIDED, "&" },
	{ IN_FILE, "[consumer]\n" },
	{ IN_FILE, "[service.demo.Echo]\n" },
	{ IN_URL, "&" },
	{ IN_OPTIONS, "" },
	{ IN_PROVIDED, "&echo." },
	{ IN_FILE, "[method.echo]\n" },
	{ IN_FILE, "[method.demo.Echo.echo]\n" },
	{ IN_URL, "&echo." },
	{ IN_METHOD_OPTIONS, "" },
};

#define SOURCES (sizeof(sources) / sizeof(sources[0]))
#define NOBODY SOURCES

static struct spokei_world world;
static struct spokei_world_process process;
static struct spoke_engine *engine;

STEP(set_up)
{
	scene_open(&world, 3);
	engine = scene_engine(&world, &process, NULL, NULL);
}

STEP(tear_down)
{
	scene_leave(&process, NULL, &engine);
	spokei_world_fini(&world);
}

FIXTURE(set_up, tear_down);

/* The settings of each source, by its kind. */
struct said {
	char texts[PLACES][256];
	struct spoke_consumer_options options;
	struct spoke_method_options method;
};

static void say(struct said *said, const char *key, size_t source, unsigned number,
		const char *unit)
{
	const struct source *by = &sources[source];
	char *text = said->texts[by->place];
	size_t len = strlen(text);

	(void)snprintf(text + len, sizeof(said->texts[0]) - len, "%s%s=%u%s\n", by->before, key,
		       number, unit);
	/* Only a file has lines. */
	if (by->place != IN_FILE)
		text[strlen(text) - 1] = '\0';
}

static struct spoke_config *config_of(const char *text)
{
	struct spoke_config *config = NULL;

	assert_int_equal(spoke_config_parse(&process.env, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 SPOKE_OK);
	return config;
}

/* Returns the resulting call settings of the method. */
static struct spokei_call_settings settle(struct said *said)
{
	static const struct spokei_method_name echo = { { "demo.Echo", 9 }, "echo" };
	struct spokei_key_values values;
	struct spokei_consumer_settings settings;
	struct spokei_call_settings calls;
	char url[512];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:1/demo.Echo?side=consumer%s",
		       said->texts[IN_URL]);
	said->options.url = url;
	said->options.config = config_of(said->texts[IN_FILE]);
	assert_int_equal(spokei_settings_consumer(engine, &said->options, NULL, &settings), 0);
	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:1/demo.Echo?side=consumer%s",
		       said->texts[IN_PROVIDED]);
	assert_int_equal(spoke_url_parse(&process.env, url, strlen(url), &settings.provided, NULL),
			 0);
	assert_int_equal(spokei_settings_method_values(&settings, &echo, &said->method, &values),
			 0);
	spokei_call_settings_fill(&values, &calls);
	spokei_settings_consumer_fini(&process.env, &settings);
	spoke_config_free(said->options.config);
	return calls;
}

static uint64_t timeout_of(size_t one, size_t other)
{
	const size_t both[] = { one, other };
	struct said said = { 0 };

	for (size_t i = 0; i < 2; i++) {
		uint64_t *option = NULL;

		if (both[i] == NOBODY)
			continue;
		if (sources[both[i]].place == IN_OPTIONS)
			option = &said.options.timeout_ns;
		if (sources[both[i]].place == IN_METHOD_OPTIONS)
			option = &said.method.timeout_ns;
		if (option)
			*option = (10 + both[i]) * SECOND;
		else
			say(&said, "timeout", both[i], (unsigned)(10 + both[i]), "s");
	}
	return settle(&said).timeout_ns / SECOND;
}

static uint32_t retries_of(size_t one, size_t other)
{
	const size_t both[] = { one, other };
	struct said said = { 0 };

	for (size_t i = 0; i < 2; i++) {
		uint32_t *option = NULL;

		if (both[i] == NOBODY)
			continue;
		if (sources[both[i]].place == IN_OPTIONS)
			option = &said.options.retries;
		if (sources[both[i]].place == IN_METHOD_OPTIONS)
			option = &said.method.retries;
		if (option)
			*option = (uint32_t)(10 + both[i]);
		else
			say(&said, "retries", both[i], (unsigned)(10 + both[i]), "");
	}
	return settle(&said).retries;
}

TEST(later_source_overrides_earlier_one)
{
	assert_int_equal(timeout_of(NOBODY, NOBODY), 1);
	assert_int_equal(retries_of(NOBODY, NOBODY), SPOKEI_RETRIES_OF_POLICY);
	for (size_t i = 0; i < SOURCES; i++) {
		assert_int_equal(timeout_of(i, NOBODY), 10 + i);
		assert_int_equal(retries_of(NOBODY, i), 10 + i);
		for (size_t j = i + 1; j < SOURCES; j++) {
			assert_int_equal(timeout_of(i, j), 10 + j);
			assert_int_equal(timeout_of(j, i), 10 + j);
			assert_int_equal(retries_of(i, j), 10 + j);
		}
	}
}

static const char *const policies[SOURCES] = {
	"failfast",  "failsafe",  "failback", "forking",  "",
	"broadcast", "available", "failfast", "failsafe", ""
};

static const char *policy_of(size_t one, size_t other)
{
	const size_t both[] = { one, other };
	static struct spoke_policy own[2] = { { .name = "own" }, { .name = "own of method" } };
	struct said said = { 0 };

	for (size_t i = 0; i < 2; i++) {
		const struct source *by = &sources[both[i]];
		char *text = said.texts[by->place];
		size_t len = strlen(text);

		own[i].next = spoke_policy_failover.next;
		if (by->place == IN_OPTIONS)
			said.options.policy = &own[0];
		else if (by->place == IN_METHOD_OPTIONS)
			said.method.policy = &own[1];
		else
			(void)snprintf(text + len, sizeof(said.texts[0]) - len, "%scluster=%s%s",
				       by->before, policies[both[i]],
				       by->place == IN_FILE ? "\n" : "");
	}
	return settle(&said).policy->name;
}

TEST(later_source_overrides_names_and_tables)
{
	for (size_t i = 0; i < SOURCES; i++) {
		for (size_t j = i + 1; j < SOURCES; j++) {
			const char *expected = policies[j];

			if (sources[j].place == IN_OPTIONS)
				expected = "own";
			if (sources[j].place == IN_METHOD_OPTIONS)
				expected = "own of method";
			assert_string_equal(policy_of(i, j), expected);
		}
	}
}

TEST(other_services_and_methods_are_unaffected)
{
	struct said said = { .texts[IN_FILE] = "[service.demo.Other]\ntimeout=2s\n"
					       "[method.other]\ntimeout=3s\n"
					       "[method.demo.Other.echo]\ntimeout=4s\n"
					       "[method.demo.Echo.other]\ntimeout=5s\n"
					       "[method.Echo.echo]\ntimeout=6s\n" };

	assert_int_equal(settle(&said).timeout_ns, SECOND);
}
