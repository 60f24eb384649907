/* SPDX-License-Identifier: Apache-2.0 */
/* The registration of a provider: its URLs, and when it is published and withdrawn. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spoke/provider.h>
#include <spoke/tls.h>

#define HERE "dubbo://127.0.0.1:20880"

static struct spoke_provider *provider;

static void answer(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static const struct spoke_handler handlers[] = {
	{ .method = "echo", .handle = answer },
	{ .method = "upper", .handle = answer },
};

static int try_provider(const struct spoke_provider_options *options)
{
	struct spoke_provider_options with = { 0 };

	if (options)
		with = *options;
	if (with.registry == NULL)
		with.registry = "fake://here";
	with.registry_kind = &fakereg_kind;
	provider = NULL;
	return spoke_provider_new(keeperrig.engine, &with, &provider);
}

static void provide(const struct spoke_provider_options *options)
{
	assert_int_equal(try_provider(options), 0);
}

static void add(const char *name, const char *version, const char *group)
{
	const struct spoke_service_options service = { name, version, group };

	assert_int_equal(spoke_provider_add(provider, &service, handlers, 2), 0);
}

static void listen_at(const char *url)
{
	assert_int_equal(spoke_provider_listen(provider, url), 0);
}

static void free_provider(void)
{
	spoke_provider_free(provider);
	provider = NULL;
}

static int tear_down(void **state)
{
	if (keeperrig.engine)
		free_provider();
	return keeperrig_tear_down(state);
}

FIXTURE(keeperrig_set_up, tear_down);

TEST(service_url_has_the_form_of_dubbo)
{
	const struct spoke_provider_options options = {
		.application = "shop",
		.weight = 50,
		.warmup_ns = 1500 * MS,
	};
	char expected[512];

	provide(&options);
	add(ECHO, "1.2.3", "g1");
	listen_at(HERE);
	assert_int_equal(fakereg.publishes, 0);
	keeperrig_pass(10 * MS);
	(void)snprintf(expected, sizeof(expected),
		       HERE "/" ECHO
			    "?anyhost=false&application=shop&dubbo=2.0.2&dynamic=true&generic=false"
			    "&group=g1&interface=" ECHO "&methods=echo,upper"
			    "&prefer.serialization=hessian2,msgpack&serialization=hessian2"
			    "&side=provider&spoke.serialization=msgpack&timestamp=%llu&version=1.2."
			    "3&warmup=1500&weight=50",
		       1767225600000ULL + 1000);
	assert_string_equal(fakereg_first(ECHO), expected);
}

TEST(unset_options_are_omitted_or_default)
{
	const struct spoke_handler any[] = { { .handle = answer },
					     { .method = "echo", .handle = answer } };
	const struct spoke_service_options service = { .name = "demo.Any" };
	const struct spoke_service_options more = { .name = "demo.More" };
	const char *url;

	provide(NULL);
	assert_int_equal(spoke_provider_add(provider, &service, any, 1), 0);
	assert_int_equal(spoke_provider_add(provider, &more, any, 2), 0);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	url = fakereg_first("demo.Any");
	assert_non_null(strstr(url, "application=spoke&"));
	assert_non_null(strstr(url, "methods=*&"));
	assert_int_equal(fakereg_listed_with("methods=*&"), 2);
	assert_non_null(strstr(url, "warmup=600000&weight=100"));
	assert_null(strstr(url, "group="));
	assert_null(strstr(url, "version="));
}

TEST(weight_and_warmup_can_be_none)
{
	const struct spoke_provider_options options = { .weight = SPOKE_NONE,
							.warmup_ns = SPOKE_OFF };

	provide(&options);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	assert_non_null(strstr(fakereg_first(ECHO), "warmup=0&weight=0"));
}

TEST(each_service_is_published_at_each_address)
{
	size_t wanted;

	keeperrig.process.host_id = 0; /* else the path is published with the ports */
	provide(NULL);
	add(ECHO, NULL, NULL);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 0);
	assert_int_equal(wanted, 0);
	listen_at(HERE);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 0);
	assert_int_equal(wanted, 1);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, NULL), 1);
	add(ECHO, "2", NULL);
	listen_at("unix:/run/echo.sock");
	add("demo.Other", NULL, NULL);
	listen_at("dubbo://[::1]:0");
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 9);
	assert_int_equal(wanted, 9);
	assert_int_equal(fakereg_listed(ECHO), 6);
	assert_int_equal(fakereg_listed("demo.Other"), 3);
	assert_int_equal(fakereg_listed_with("dubbo+unix:/run/echo.sock?anyhost="), 3);
	assert_int_equal(fakereg_listed_with("interface=demo.Other"), 3);
	assert_int_equal(fakereg_listed_with("dubbo://[::1]:"), 3);
	assert_int_equal(fakereg_listed_with(":0/"), 0);
	assert_int_equal(fakereg_listed_with("timestamp=1767225601010&"), 9);
	assert_int_equal(fakereg.publishes, 9);
}

TEST(advertise_replaces_the_host)
{
	static const char *const cases[][2] = {
		{ "Echo.test", "dubbo://echo.test:20880/" },
		{ "::2", "dubbo://[::2]:20880/" },
		{ "[::2]", "dubbo://[::2]:20880/" },
		{ "10.0.0.1", "dubbo://10.0.0.1:20880/" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spoke_provider_options options = { .advertise = cases[i][0] };

		provide(&options);
		add(ECHO, NULL, NULL);
		listen_at("dubbo://0.0.0.0:20880");
		keeperrig_pass(10 * MS);
		assert_int_equal(fakereg_listed(ECHO), 1);
		assert_int_equal(fakereg_listed_with(cases[i][1]), 1);
		free_provider();
		keeperrig_pass(10 * MS);
		assert_int_equal(fakereg_listed(ECHO), 0);
	}
}

TEST(wildcard_address_is_not_published)
{
	provide(NULL);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://0.0.0.0:20880"), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "advertise"));
	assert_int_equal(spoke_provider_listen(provider, "dubbo://[::]:20880"), SPOKE_EINVAL);
	listen_at(HERE);
}

TEST(invalid_options_are_rejected_with_a_message)
{
	static const struct spoke_tls_options tls = { .handshakes_max = 65537 };
	static const struct {
		struct spoke_provider_options options;
		int error;
		const char *option;
		const char *value;
	} cases[] = {
		{ { .registry = "fake:// here\n" }, SPOKE_ESYNTAX, "option registry", "" },
		{ { .advertise = "a b" }, SPOKE_EINVAL, "advertise", "a b" },
		{ { .advertise = "host:1" }, SPOKE_EINVAL, "advertise", "host:1" },
		{ { .advertise = "host/x" }, SPOKE_EINVAL, "advertise", "host/x" },
		{ { .advertise = "host?x=y" }, SPOKE_EINVAL, "advertise", "host?x=y" },
		{ { .advertise = "u@host" }, SPOKE_EINVAL, "advertise", "u@host" },
		{ { .advertise = "0.0.0.0" }, SPOKE_EINVAL, "advertise", "0.0.0.0" },
		{ { .advertise = "[::]" }, SPOKE_EINVAL, "advertise", "[::]" },
		{ { .application = "a\nb" }, SPOKE_EINVAL, "application", "a\\x0ab" },
		{ { .weight = 3000000000u }, SPOKE_ERANGE, "weight", "3000000000" },
		{ { .warmup_ns = UINT64_MAX - 1 }, SPOKE_ERANGE, "warmup", "551614" },
		{ { .registry_retry_ns = 5 }, SPOKE_ERANGE, "registry.retry.period", "" },
		{ { .connections_max = UINT32_MAX }, SPOKE_ERANGE, "connections.max", "" },
		{ { .tls = &tls }, SPOKE_ERANGE, "handshakes.max", "65537" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why;

		assert_int_equal(try_provider(&cases[i].options), cases[i].error);
		why = spoke_engine_why(keeperrig.engine);
		assert_non_null(strstr(why, cases[i].option));
		assert_non_null(strstr(why, cases[i].value));
	}
	fakereg.wrong = SPOKE_ESYNTAX;
	assert_int_equal(try_provider(NULL), SPOKE_ESYNTAX);
}

TEST(registry_kind_without_registry_is_rejected)
{
	const struct spoke_provider_options options = { .registry_kind = &fakereg_kind };

	assert_int_equal(spoke_provider_new(keeperrig.engine, &options, &provider), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "registry_kind"));
}

TEST(provider_serves_while_registry_fails)
{
	size_t wanted;

	fakereg.fails = SPOKE_ECONNECT;
	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 0);
	assert_int_equal(wanted, 1);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(spoke_provider_registered(provider, NULL), 1);
	fakereg_lose_all();
	assert_int_equal(spoke_provider_registered(provider, NULL), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, NULL), 1);
	assert_int_equal(fakereg_listed(ECHO), 1);
}

TEST(registry_retries_follow_options)
{
	const struct spoke_provider_options options = { .registry_retry_ns = SECOND,
							.registry_retries = 3 };

	fakereg.fails = SPOKE_ECONNECT;
	provide(&options);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(1300 * MS);
	assert_int_equal(fakereg.publishes, 2);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(fakereg.publishes, 4);
}

TEST(drain_withdraws_before_it_closes)
{
	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_engine_drain(keeperrig.engine, 10 * SECOND), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(spoke_provider_registered(provider, NULL), 0);
	add("demo.Other", NULL, NULL);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
}

TEST(free_withdraws_the_provider)
{
	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	add(ECHO, "2", NULL);
	free_provider();
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(fakereg.closes, 1);
}

TEST(registry_callback_can_free_provider)
{
	fakereg.in_begin = free_provider;
	provide(NULL);
	add(ECHO, NULL, NULL);
	add("demo.Other", NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(SECOND);
	assert_null(provider);
	assert_int_equal(fakereg_listed(ECHO) + fakereg_listed("demo.Other"), 0);
	assert_int_equal(fakereg.closes, 1);
}

TEST(engine_end_withdraws_the_provider)
{
	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	spoke_engine_free(keeperrig.engine);
	keeperrig.engine = NULL;
	assert_int_equal(fakereg.withdraws, 1);
	assert_int_equal(fakereg.closes, 1);
}

TEST(long_list_of_methods_is_omitted)
{
	enum {
		COUNT = 1000,
		NAME = 64,
	};
	static char names[COUNT][NAME];
	struct spoke_handler *many = calloc(COUNT, sizeof(*many));
	const struct spoke_service_options service = { .name = ECHO };

	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(names[i], NAME, "method%056d", i);
		many[i] = (struct spoke_handler){ .method = names[i], .handle = answer };
	}
	provide(NULL);
	assert_int_equal(spoke_provider_add(provider, &service, many, COUNT), 0);
	free(many);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with("methods=*&"), 1);
}

TEST(too_many_entries_report_an_event)
{
	size_t wanted;
	char text[64];

	provide(NULL);
	for (int i = 0; i < 60; i++) {
		(void)snprintf(text, sizeof(text), "demo.Service%d", i);
		add(text, NULL, NULL);
	}
	for (int i = 1; i <= 18; i++) {
		(void)snprintf(text, sizeof(text), "dubbo://127.0.0.1:%d", i);
		listen_at(text);
	}
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 1024);
	assert_int_equal(wanted, 1080);
	assert_int_equal(keeperrig_events("too many services and addresses"), 1);
}

TEST(names_are_percent_encoded)
{
	provide(NULL);
	add("demo\nEcho", NULL, NULL);
	add("demo Echo?x=y&z", "1 2", "\xc3\xa4");
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(provider, NULL), 2);
	assert_int_equal(fakereg_listed_with("&version=1%202&"), 1);
}

TEST(service_is_published_later_after_lack_of_memory)
{
	for (unsigned nth = 1; nth < 60; nth++) {
		const struct spoke_service_options service = { .name = ECHO };

		spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		if (try_provider(NULL) == 0) {
			bool whole = spoke_provider_add(provider, &service, handlers, 2) == 0 &&
				     spoke_provider_listen(provider, HERE) == 0;

			keeperrig_pass(2 * RETRY_NS);
			assert_int_equal(fakereg_listed(ECHO), whole);
			assert_int_equal(spoke_provider_registered(provider, NULL), whole);
		}
		spokei_faults_heal(&keeperrig.faulty);
		free_provider();
		keeperrig_pass(SECOND);
		assert_int_equal(fakereg_listed(ECHO), 0);
	}
	assert_in_range(keeperrig.faulty.failed[SPOKEI_FAULTS_MEMORY], 8, 50);
}
