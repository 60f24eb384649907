/* SPDX-License-Identifier: Apache-2.0 */
/* Where a provider's process shows itself: what may be said, and how it is listed. */
#include "cluster/listing.h"
#include "tests/cluster/keeperrig.h"

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

static void it_is_listed(void **state)
{
	static const struct spoke_service_options service = { .name = ECHO };
	static const struct spoke_handler handler = { .method = "echo", .handle = answer };
	struct spoke_provider *provider;

	(void)state;
	assert_int_equal(try_provider("[::1]:9090", &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:20880"), 0);
	keeperrig_pass(10 * MS);
	assert_non_null(strstr(fakereg_first(ECHO), "?admin=%5B::1%5D:9090&anyhost="));
	spoke_provider_free(provider);
}

static void who_does_not_say_is_listed_without(void **state)
{
	static const struct spoke_service_options service = { .name = ECHO };
	static const struct spoke_handler handler = { .method = "echo", .handle = answer };
	struct spoke_provider *provider;

	(void)state;
	assert_int_equal(try_provider("", &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:20880"), 0);
	keeperrig_pass(10 * MS);
	assert_null(strstr(fakereg_first(ECHO), "admin="));
	spoke_provider_free(provider);
}

static void what_is_no_place_is_refused(void **state)
{
	static const char *const wrong[] = {
		"localhost", "h:9/x", "h:65536",  "h:0",        ":9",
		"h:",        "h:1a",  "[::1:9",   "::1:9",      "[]:9",
		"a b:9",     "u@h:9", "h:000080", "\xc3\xbc:9", "h\n:9"
	};
	struct spoke_provider *provider;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (try_provider(wrong[i], &provider) != SPOKE_EINVAL)
			fail_msg("%s", wrong[i]);
		assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "option admin, "));
		assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "write HOST:PORT"));
	}
}

static void its_length_has_an_end(void **state)
{
	char text[SPOKEI_LISTING_ADMIN + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text + SPOKEI_LISTING_ADMIN - 3, ":9", 3);
	assert_true(spokei_listing_is_admin(text));
	text[SPOKEI_LISTING_ADMIN - 3] = 'a';
	memcpy(text + SPOKEI_LISTING_ADMIN - 2, ":9", 3);
	assert_false(spokei_listing_is_admin(text));
	assert_true(spokei_listing_is_admin("h:1"));
	assert_true(spokei_listing_is_admin("a-b.c:65535"));
	assert_true(spokei_listing_is_admin("[fe80::1:2.3.4.5]:80"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, keeperrig_set_up, keeperrig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_listed),
		TEST(who_does_not_say_is_listed_without),
		TEST(what_is_no_place_is_refused),
		TEST(its_length_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
