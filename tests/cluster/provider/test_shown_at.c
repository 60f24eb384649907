/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the page in a provider's URL: valid options, and how it is published. */
#include "cluster/discovery/provider_url.h"
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <string.h>

#include <spoke/provider.h>

static int try_provider(const char *admin, struct spoke_provider **ret_provider)
{
	const struct spoke_provider_options options = {
		.registry = "fake://here",
		.registry_kind = &fakereg_kind,
		.admin = admin,
	};

	return spoke_provider_new(keeperrig.engine, &options, ret_provider);
}

static void answer(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* Makes a provider that listens there; the caller frees it. */
static struct spoke_provider *listed(const char *admin, const char *place)
{
	static const struct spoke_service_options service = { .name = ECHO };
	static const struct spoke_handler handler = { .method = "echo", .handle = answer };
	struct spoke_provider *provider;

	assert_int_equal(try_provider(admin, &provider), 0);
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
		if (try_provider(wrong[i], &provider) != SPOKE_EINVAL)
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
