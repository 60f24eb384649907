/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the Host, Origin and Authorization headers. */
#include "tests/support/test.h"
#include "transport/http/guard.h"

#include <stdio.h>
#include <string.h>

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, text ? strlen(text) : 0 };
}

TEST(host_guard_accepts_own_names_only)
{
	static const struct {
		const char *host;
		const char *local;
		bool may;
	} rows[] = {
		{ "localhost", "127.0.0.1:9090", true },
		{ "LocalHost:1", "127.0.0.1:9090", true },
		{ "127.0.0.1:9090", "127.0.0.1:9090", true },
		{ "127.255.0.7", "127.0.0.1:9090", true },
		{ "[::1]:9090", "127.0.0.1:9090", true },
		{ "10.1.2.3:80", "10.1.2.3:9090", true },
		{ "[2001:db8::1]", "[2001:db8::1]:9090", true },
		{ "anything", "unix:/run/x", true },
		{ NULL, "127.0.0.1:9090", true },
		{ "", "127.0.0.1:9090", false },
		{ ":9090", "127.0.0.1:9090", false },
		{ "evil.example", "127.0.0.1:9090", false },
		{ "127.0.0.1.evil.example", "127.0.0.1:9090", false },
		{ "127.evil", "127.0.0.1:9090", false },
		{ "127.0.0", "127.0.0.1:9090", false },
		{ "127.0.0.0.1", "127.0.0.1:9090", false },
		{ "127.0.0.256", "127.0.0.1:9090", false },
		{ "127..0.1", "127.0.0.1:9090", false },
		{ "127.0.0.01", "127.0.0.1:9090", false },
		{ "[127.0.0.1]", "127.0.0.1:9090", false },
		{ "::1", "127.0.0.1:9090", false },
		{ "localhost.evil.example", "127.0.0.1:9090", false },
		{ "xlocalhost", "127.0.0.1:9090", false },
		{ "[::1", "127.0.0.1:9090", false },
		{ "10.1.2.4", "10.1.2.3:9090", false },
		{ "0.0.0.0:9090", "127.0.0.1:9090", true },
		{ "[::]:9090", "[::1]:9090", true },
		{ "0.0.0.0.evil.example", "127.0.0.1:9090", false },
		{ "orders:9090", "10.1.2.3:9090", true },
		{ "Orders.Example", "10.1.2.3:9090", true },
		/* A socket for both families. */
		{ "10.1.2.3:80", "[::ffff:10.1.2.3]:9090", true },
		{ "10.1.2.3", "[::ffff:10.1.2.3]:9090", true },
		{ "[::ffff:10.1.2.3]:9090", "[::ffff:10.1.2.3]:9090", true },
		{ "[::ffff:10.1.2.3]:9090", "10.1.2.3:9090", true },
		{ "10.1.2.4", "[::ffff:10.1.2.3]:9090", false },
		{ "[::ffff:10.1.2.4]", "[::ffff:10.1.2.3]:9090", false },
		{ "[::ffff:10.1.2.3", "[::ffff:10.1.2.3]:9090", false },
		{ "[::ffff:]", "[::ffff:10.1.2.3]:9090", false },
		{ "::ffff:10.1.2.3", "[::ffff:10.1.2.3]:9090", false },
		{ "[2001:db8::1]", "[::ffff:10.1.2.3]:9090", false },
		{ "order", "10.1.2.3:9090", false },
		{ "orders.", "10.1.2.3:9090", false },
		{ "orders,orders.example", "10.1.2.3:9090", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (spokei_guard_host(span(rows[i].host), rows[i].local,
				      ",orders,orders.example,") != rows[i].may)
			fail_msg("%s at %s", rows[i].host, rows[i].local);
	}
}

TEST(origin_guard_accepts_own_origin_only)
{
	assert_true(spokei_guard_origin(span(NULL), span("a:1")));
	assert_true(spokei_guard_origin(span("http://a:1"), span("a:1")));
	assert_false(spokei_guard_origin(span("http://a:2"), span("a:1")));
	assert_false(spokei_guard_origin(span("https://a:1"), span("a:1")));
	assert_false(spokei_guard_origin(span("null"), span("a:1")));
	assert_false(spokei_guard_origin(span(""), span("a:1")));
	assert_false(spokei_guard_origin(span("http://"), span("")));
	assert_false(spokei_guard_origin(span("http://a"), span(NULL)));
}

TEST(lists_of_origins_and_names_may_have_blanks)
{
	static const char origins[] = "https://a, https://b:1 ,https://c";

	assert_int_equal(spokei_guard_listed(span("https://a"), origins), 1);
	assert_int_equal(spokei_guard_listed(span("https://b:1"), origins), 2);
	assert_int_equal(spokei_guard_listed(span("https://c"), origins), 3);
	assert_int_equal(spokei_guard_listed(span("https://b"), origins), 0);
	assert_int_equal(spokei_guard_listed(span(""), origins), 0);
	assert_int_equal(spokei_guard_listed(span("https://a"), ""), 0);
	assert_int_equal(spokei_guard_origin_of(origins, 2).len, strlen("https://b:1"));
	assert_null(spokei_guard_origin_of(origins, 4).data);
	assert_true(spokei_guard_digits(span("b.example:80"), "a.example, b.example"));
	assert_false(spokei_guard_digits(span("example"), "a.example, b.example"));
}

TEST(addresses_in_digits_are_hosts_of_every_place)
{
	static const char *const good[] = { "10.0.0.1",  "10.0.0.1:20880", "[::1]:1",
					    "[fe80::1]", "localhost",      "LOCALHOST:1" };
	static const char *const bad[] = { "10.0.0.1.evil", "10.0.0", "10.0.0.256", "[evil]", "[]",
					   "evil",          "1" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(spokei_guard_digits(span(good[i]), ""));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(spokei_guard_digits(span(bad[i]), ""));
	assert_true(spokei_guard_digits(span(NULL), ""));
}

TEST(token_guard_accepts_exact_token_only)
{
	assert_true(spokei_guard_token(span("Bearer abc"), "abc"));
	assert_true(spokei_guard_token(span("bEARER abc"), "abc"));
	assert_false(spokei_guard_token(span(NULL), "abc"));
	assert_false(spokei_guard_token(span(""), "abc"));
	assert_false(spokei_guard_token(span("abc"), "abc"));
	assert_false(spokei_guard_token(span("Bearer "), "abc"));
	assert_false(spokei_guard_token(span("Bearer ab"), "abc"));
	assert_false(spokei_guard_token(span("Bearer abcd"), "abc"));
	assert_false(spokei_guard_token(span("Bearer abd"), "abc"));
	assert_false(spokei_guard_token(span("Bearer bbc"), "abc"));
	assert_false(spokei_guard_token(span("Basic  abc"), "abc"));
}

/* Asserts that a sentence is about this item, or that there is none. */
static void assert_told(const char *why, const char *odd)
{
	char quoted[64];

	if (odd == NULL) {
		assert_null(why);
		return;
	}
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", odd);
	assert_non_null(why);
	assert_non_null(strstr(why, quoted));
}

TEST(odd_origins_are_found)
{
	static const struct {
		const char *list;
		const char *odd; /* NULL: there is none */
	} rows[] = {
		{ "", NULL },
		{ "https://shop.example", NULL },
		{ "http://localhost:3000, https://shop.example,", NULL },
		{ "http://[::1]:8080", NULL },
		{ "https://a.example:80", NULL },
		{ "chrome-extension://abcdef", NULL },
		{ "null", "null" },
		{ "https://a.example,null", "null" },
		{ "*", "*" },
		{ "https://*.example", "https://*.example" },
		{ "shop.example", "shop.example" },
		{ "https://", "https://" },
		{ "://a", "://a" },
		{ "1://a", "1://a" },
		{ "https:/a", "https:/a" },
		{ "https://shop.example/", "https://shop.example/" },
		{ "https://Shop.example", "https://Shop.example" },
		{ "https://shop.example:443", "https://shop.example:443" },
		{ "http://shop.example:80", "http://shop.example:80" },
		{ "https://shop.example:", "https://shop.example:" },
		{ "https://me@shop.example", "https://me@shop.example" },
	};
	char why[SPOKEI_GUARD_WHY];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_told(spokei_guard_check_origins(rows[i].list, why), rows[i].odd);
}

TEST(odd_names_are_found)
{
	static const struct {
		const char *list;
		const char *odd; /* NULL: there is none */
	} rows[] = {
		{ "", NULL },
		{ "shop.example", NULL },
		{ "a, b.example,", NULL },
		{ "[fe80::1]", NULL },
		{ "a,shop.example:80", "shop.example:80" },
		{ "[::1]:80", "[::1]:80" },
		{ "https://shop.example", "https://shop.example" },
		{ "a b", "a b" },
	};
	char why[SPOKEI_GUARD_WHY];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_told(spokei_guard_check_names(rows[i].list, why), rows[i].odd);
}

TEST(long_items_are_cut_in_the_sentence)
{
	char list[400];
	char why[SPOKEI_GUARD_WHY];

	memset(list, ':', sizeof(list));
	list[sizeof(list) - 1] = '\0';
	assert_in_range(strlen(spokei_guard_check_origins(list, why)), 100, sizeof(why) - 2);
	assert_in_range(strlen(spokei_guard_check_names(list, why)), 100, sizeof(why) - 2);
}

TEST(site_is_own_or_none)
{
	assert_true(spokei_guard_site(span(NULL)));
	assert_true(spokei_guard_site(span("none")));
	assert_true(spokei_guard_site(span("same-origin")));
	assert_false(spokei_guard_site(span("same-site")));
	assert_false(spokei_guard_site(span("cross-site")));
	assert_false(spokei_guard_site(span("")));
}
