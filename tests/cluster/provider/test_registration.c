/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider publishes, and where. */
#include "cluster/discovery/provider_url.h"
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/provider.h>
#include <spoke/tls.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the registration of a provider: its URLs, and when it is published and withdrawn */

#define HERE "dubbo://127.0.0.1:20880"

static struct spoke_provider *registered;

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
	registered = NULL;
	return spoke_provider_new(keeperrig.engine, &with, &registered);
}

static void provide(const struct spoke_provider_options *options)
{
	assert_int_equal(try_provider(options), 0);
}

static void add(const char *name, const char *version, const char *group)
{
	const struct spoke_service_options service = { name, version, group };

	assert_int_equal(spoke_provider_add(registered, &service, handlers, 2), 0);
}

static void listen_at(const char *url)
{
	assert_int_equal(spoke_provider_listen(registered, url), 0);
}

static void free_provider(void)
{
	spoke_provider_free(registered);
	registered = NULL;
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

TEST(offline_provider_is_withdrawn_and_warms_up_again)
{
	size_t wanted;
	char before[512];

	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	(void)snprintf(before, sizeof(before), "%s", fakereg_first(ECHO));
	assert_int_equal(spoke_provider_offline(registered), SPOKE_OK);
	add("demo.More", NULL, NULL);
	keeperrig_pass(3 * SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg_listed("demo.More"), 0);
	assert_int_equal(spoke_provider_registered(registered, &wanted), 0);
	assert_int_equal(wanted, 0);
	assert_int_equal(spoke_provider_online(registered), SPOKE_OK);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(fakereg_listed("demo.More"), 1);
	assert_string_not_equal(fakereg_first(ECHO), before);
	assert_non_null(strstr(fakereg_first(ECHO), "timestamp=176722560401"));
	assert_int_equal(spoke_provider_registered(registered, &wanted), 2);
	assert_int_equal(wanted, 2);
}

TEST(provider_that_comes_back_at_once_is_listed_once)
{
	provide(NULL);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(spoke_provider_offline(registered), SPOKE_OK);
		assert_int_equal(spoke_provider_online(registered), SPOKE_OK);
		keeperrig_pass(i * MS);
	}
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
}

TEST(provider_that_begins_offline_is_listed_when_online)
{
	const struct spoke_provider_options options = { .offline = true,
							.register_delay_ns = 10 * MS };

	provide(&options);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(spoke_provider_online(registered), SPOKE_OK);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
}

TEST(register_delay_postpones_publication)
{
	const struct spoke_provider_options options = { .register_delay_ns = 5 * SECOND };

	provide(&options);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(4 * SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	keeperrig_pass(2 * SECOND);
	assert_int_equal(fakereg_listed(ECHO), 1);
}

TEST(unset_options_are_omitted_or_default)
{
	const struct spoke_handler any[] = { { .handle = answer },
					     { .method = "echo", .handle = answer } };
	const struct spoke_service_options service = { .name = "demo.Any" };
	const struct spoke_service_options more = { .name = "demo.More" };
	const char *url;

	provide(NULL);
	assert_int_equal(spoke_provider_add(registered, &service, any, 1), 0);
	assert_int_equal(spoke_provider_add(registered, &more, any, 2), 0);
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

TEST(tag_is_published)
{
	const struct spoke_provider_options options = { .tag = "gray" };

	provide(&options);
	add(ECHO, NULL, NULL);
	listen_at(HERE);
	keeperrig_pass(10 * MS);
	assert_non_null(strstr(fakereg_first(ECHO), "&dubbo.tag=gray&"));
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
	assert_int_equal(spoke_provider_registered(registered, &wanted), 0);
	assert_int_equal(wanted, 0);
	listen_at(HERE);
	assert_int_equal(spoke_provider_registered(registered, &wanted), 0);
	assert_int_equal(wanted, 1);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(registered, NULL), 1);
	add(ECHO, "2", NULL);
	listen_at("unix:/run/echo.sock");
	add("demo.Other", NULL, NULL);
	listen_at("dubbo://[::1]:0");
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(registered, &wanted), 9);
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
	assert_int_equal(spoke_provider_listen(registered, "dubbo://0.0.0.0:20880"), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "advertise"));
	assert_int_equal(spoke_provider_listen(registered, "dubbo://[::]:20880"), SPOKE_EINVAL);
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
		{ { .advertise = ":" }, SPOKE_EINVAL, "advertise", ":: not a host" },
		{ { .advertise = "a:b" }, SPOKE_EINVAL, "advertise", "a:b: not a host" },
		{ { .advertise = "1.2.3.4:" }, SPOKE_EINVAL, "advertise", "1.2.3.4:: not a host" },
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

	assert_int_equal(spoke_provider_new(keeperrig.engine, &options, &registered), SPOKE_EINVAL);
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
	assert_int_equal(spoke_provider_registered(registered, &wanted), 0);
	assert_int_equal(wanted, 1);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(spoke_provider_registered(registered, NULL), 1);
	fakereg_lose_all();
	assert_int_equal(spoke_provider_registered(registered, NULL), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_provider_registered(registered, NULL), 1);
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
	assert_int_equal(spoke_provider_registered(registered, NULL), 0);
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
	assert_null(registered);
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
	assert_int_equal(spoke_provider_add(registered, &service, many, COUNT), 0);
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
	assert_int_equal(spoke_provider_registered(registered, &wanted), 1024);
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
	assert_int_equal(spoke_provider_registered(registered, NULL), 2);
	assert_int_equal(fakereg_listed_with("&version=1%202&"), 1);
}

TEST(service_is_published_later_after_lack_of_memory)
{
	for (unsigned nth = 1; nth < 60; nth++) {
		const struct spoke_service_options service = { .name = ECHO };

		spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		if (try_provider(NULL) == 0) {
			bool whole = spoke_provider_add(registered, &service, handlers, 2) == 0 &&
				     spoke_provider_listen(registered, HERE) == 0;

			keeperrig_pass(2 * RETRY_NS);
			assert_int_equal(fakereg_listed(ECHO), whole);
			assert_int_equal(spoke_provider_registered(registered, NULL), whole);
		}
		spokei_faults_heal(&keeperrig.faulty);
		free_provider();
		keeperrig_pass(SECOND);
		assert_int_equal(fakereg_listed(ECHO), 0);
	}
	assert_in_range(keeperrig.faulty.failed[SPOKEI_FAULTS_MEMORY], 8, 50);
}

/* --- the address of the page in a provider's URL: valid options, and how it is published */

static int shown_at_try_provider(const char *admin, struct spoke_provider **ret_provider)
{
	const struct spoke_provider_options options = {
		.registry = "fake://here",
		.registry_kind = &fakereg_kind,
		.admin = admin,
	};

	return spoke_provider_new(keeperrig.engine, &options, ret_provider);
}

/* Makes a provider that listens there; the caller frees it. */
static struct spoke_provider *listed(const char *admin, const char *place)
{
	static const struct spoke_service_options service = { .name = ECHO };
	static const struct spoke_handler handler = { .method = "echo", .handle = answer };
	struct spoke_provider *provider;

	assert_int_equal(shown_at_try_provider(admin, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, place), 0);
	keeperrig_pass(10 * MS);
	return provider;
}

static void assert_listed(const char *admin, const char *place, const char *text)
{
	struct spoke_provider *provider = listed(admin, place);

	if (strstr(fakereg_first(ECHO), text) == NULL)
		fail_msg("no %s in %s", text, fakereg_first(ECHO));
	spoke_provider_free(provider);
	keeperrig_pass(10 * MS);
}

static void assert_not_listed(const char *admin, const char *place)
{
	struct spoke_provider *provider = listed(admin, place);

	assert_null(strstr(fakereg_first(ECHO), "admin="));
	spoke_provider_free(provider);
	keeperrig_pass(10 * MS);
}

FIXTURE(keeperrig_set_up, keeperrig_tear_down);

TEST(admin_address_is_published)
{
	assert_listed("[::1]:9090", "dubbo://127.0.0.1:20880", "?admin=%5B::1%5D:9090&anyhost=");
}

TEST(admin_wildcard_is_published_as_the_host)
{
	assert_listed("0.0.0.0:9090", "dubbo://127.0.0.1:20880", "?admin=127.0.0.1:9090&");
	assert_listed("[::]:9090", "dubbo://127.0.0.1:20881", "?admin=127.0.0.1:9090&");
	assert_listed("[::]:9090", "dubbo://[::1]:20882", "?admin=%5B::1%5D:9090&");
	assert_not_listed("0.0.0.0:9090", "unix:/run/shown");
}

TEST(url_has_no_admin_without_option)
{
	assert_not_listed("", "dubbo://127.0.0.1:20880");
	assert_not_listed("unix:/run/page.sock", "dubbo://127.0.0.1:20881");
}

TEST(invalid_admin_address_is_rejected)
{
	static const char *const wrong[] = {
		"localhost", "h:9/x", "h:65536",  "h:0",        ":9",
		"h:",        "h:1a",  "[::1:9",   "::1:9",      "[]:9",
		"a b:9",     "u@h:9", "h:000080", "\xc3\xbc:9", "h\n:9"
	};
	struct spoke_provider *provider;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (shown_at_try_provider(wrong[i], &provider) != SPOKE_EINVAL)
			fail_msg("%s", wrong[i]);
		assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "option admin, "));
		assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "use HOST:PORT"));
	}
}

TEST(long_admin_address_is_rejected)
{
	char text[SPOKEI_PROVIDER_URL_ADMIN + 1];

	memset(text, 'a', sizeof(text));
	memcpy(text + SPOKEI_PROVIDER_URL_ADMIN - 3, ":9", 3);
	assert_true(spokei_provider_url_is_admin(text));
	text[SPOKEI_PROVIDER_URL_ADMIN - 3] = 'a';
	memcpy(text + SPOKEI_PROVIDER_URL_ADMIN - 2, ":9", 3);
	assert_false(spokei_provider_url_is_admin(text));
	assert_true(spokei_provider_url_is_admin("h:1"));
	assert_true(spokei_provider_url_is_admin("a-b.c:65535"));
	assert_true(spokei_provider_url_is_admin("[fe80::1:2.3.4.5]:80"));
}

/*
 * --- the path of a unix socket that a provider publishes with its ports, and when it does not
 */

#define PORT "dubbo://127.0.0.1:20880"
#define PATH "unix:/run/echo.sock"
#define HOST "&spoke.host=00005907e0000001&"
#define LOCAL "&spoke.local=" PATH "&"
#define OWN_ENTRY "dubbo+" PATH "?"

static struct spoke_config *config;

static void provide_with(struct spoke_provider_options options)
{
	const struct spoke_handler handler = { .method = "echo", .handle = answer };
	const struct spoke_service_options service = { .name = ECHO };

	options.registry = "fake://here";
	options.registry_kind = &fakereg_kind;
	assert_int_equal(spoke_provider_new(keeperrig.engine, &options, &registered), 0);
	assert_int_equal(spoke_provider_add(registered, &service, &handler, 1), 0);
}

static void local_provide(void)
{
	provide_with((struct spoke_provider_options){ .weight = 0 });
}

static void listen_at_both(void)
{
	listen_at(PORT);
	listen_at(PATH);
	keeperrig_pass(10 * MS);
}

static int local_tear_down(void **state)
{
	int result;

	spoke_provider_free(registered);
	registered = NULL;
	result = keeperrig_tear_down(state);
	spoke_config_free(config);
	config = NULL;
	return result;
}

FIXTURE(keeperrig_set_up, local_tear_down);

/* Asserts that the path is published with the port only. */
static void assert_with_port(void)
{
	size_t wanted;

	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(fakereg_listed_with(PORT "/"), 1);
	assert_int_equal(fakereg_listed_with(HOST), 1);
	assert_int_equal(fakereg_listed_with(LOCAL), 1);
	assert_int_equal(spoke_provider_registered(registered, &wanted), 1);
	assert_int_equal(wanted, 1);
}

/* Asserts that port and path have an entry each. */
static void assert_apart(void)
{
	size_t wanted;

	assert_int_equal(fakereg_listed(ECHO), 2);
	assert_int_equal(fakereg_listed_with("spoke.local="), 0);
	assert_int_equal(fakereg_listed_with("spoke.host="), 0);
	assert_int_equal(fakereg_listed_with(OWN_ENTRY), 1);
	assert_int_equal(spoke_provider_registered(registered, &wanted), 2);
	assert_int_equal(wanted, 2);
}

TEST(path_is_published_with_the_port)
{
	local_provide();
	listen_at_both();
	assert_with_port();
	assert_int_equal(fakereg.publishes, 1);
}

TEST(keys_of_the_url_stay_sorted)
{
	local_provide();
	listen_at_both();
	assert_int_equal(fakereg_listed_with("&side=provider" HOST "spoke.local=" PATH
					     "&spoke.serialization=msgpack&"),
			 1);
}

TEST(order_of_listening_does_not_matter)
{
	local_provide();
	listen_at(PORT);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with("spoke.local="), 0);
	listen_at(PATH);
	keeperrig_pass(20 * MS);
	assert_with_port();
}

TEST(entry_of_the_path_is_withdrawn_when_a_port_comes)
{
	local_provide();
	listen_at(PATH);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with(OWN_ENTRY), 1);
	listen_at(PORT);
	keeperrig_pass(20 * MS);
	assert_with_port();
}

TEST(every_port_names_the_first_path)
{
	local_provide();
	listen_at(PATH);
	listen_at("unix:/run/other.sock");
	listen_at(PORT);
	listen_at("dubbo://[::1]:20881");
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 3);
	assert_int_equal(fakereg_listed_with(LOCAL), 2);
	assert_int_equal(fakereg_listed_with("dubbo+unix:/run/other.sock?"), 1);
}

TEST(unknown_host_publishes_apart)
{
	keeperrig.process.host_id = 0;
	local_provide();
	listen_at_both();
	assert_apart();
}

TEST(local_path_off_publishes_apart)
{
	static const char text[] = "[provider]\nlocal.path = off\n";

	assert_int_equal(spoke_config_parse(&keeperrig.process.env, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 0);
	provide_with((struct spoke_provider_options){ .config = config });
	listen_at_both();
	assert_apart();
}

TEST(list_of_callers_that_asks_for_addresses_publishes_apart)
{
	provide_with((struct spoke_provider_options){
		.allow_callers = "uid:0,addr:10.0.0.0/8",
	});
	listen_at_both();
	assert_apart();
}

TEST(list_of_callers_without_addresses_changes_nothing)
{
	provide_with((struct spoke_provider_options){ .allow_callers = "uid:0,dns:a.test" });
	listen_at_both();
	assert_with_port();
}

TEST(host_that_cannot_be_read_later_stays_the_same)
{
	local_provide();
	listen_at_both();
	assert_with_port();
	keeperrig.process.host_id = 0;
	listen_at("dubbo://127.0.0.1:20881");
	keeperrig_pass(20 * MS);
	assert_int_equal(fakereg_listed_with(LOCAL), 2);
	assert_int_equal(fakereg_listed(ECHO), 2);
}
