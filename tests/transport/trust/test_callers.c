/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of callers: what is read as an entry, and whom it fits. */
#include "tests/support/test.h"
#include "transport/trust/caller.h"

#include <spoke/host.h>

#include <string.h>

static const struct spoke_env *env;

static struct spokei_callers *list_of(const char *text)
{
	char why[SPOKEI_CALLERS_WHY];
	struct spokei_callers *callers;

	assert_int_equal(spokei_callers_new(env, text, 1, &callers, why), SPOKE_OK);
	return callers;
}

static struct spoke_address address_of(const char *text)
{
	struct spoke_address address;

	assert_int_equal(env->net->parse(env->ctx, text, &address), 0);
	return address;
}

/* Returns whether the list lets in a caller with this name of a certificate. */
static bool fits_name(const char *text, const char *name, size_t len)
{
	struct spoke_address peer = address_of("10.0.0.7:1");
	const struct spoke_span names[] = { { "dns:first.test", 14 }, { name, len } };
	const struct spokei_identity_of of = { .names = names, .name_count = 2 };
	struct spokei_identity *identity = spokei_identity_new(env, &of);
	struct spokei_callers *callers = list_of(text);
	bool fits;

	assert_non_null(identity);
	fits = spokei_callers_fit(callers, env, identity, &peer);
	assert_false(spokei_callers_fit(callers, env, NULL, &peer));
	spokei_callers_free(env, callers);
	spokei_identity_drop(identity);
	return fits;
}

TEST(names_of_certificates_are_compared_whole)
{
	static const struct {
		const char *list;
		const char *name;
		bool fits;
	} rows[] = {
		{ "dns:a.pay.test", "dns:a.pay.test", true },
		{ "dns:a.pay.test", "dns:A.Pay.TEST", true },
		{ "dns:A.pay.test", "dns:a.pay.test", true },
		{ "dns:a.pay.test", "dns:a.pay.test.evil", false },
		{ "dns:a.pay.test", "dns:xa.pay.test", false },
		{ "dns:a.pay.test", "uri:a.pay.test", false },
		{ "dns:a.pay.test", "a.pay.test", false },
		{ "dns:*.pay.test", "dns:a.pay.test", true },
		{ "dns:*.pay.test", "dns:a-1_b.PAY.test", true },
		{ "dns:*.pay.test", "dns:pay.test", false },
		{ "dns:*.pay.test", "dns:.pay.test", false },
		{ "dns:*.pay.test", "dns:a.b.pay.test", false },
		{ "dns:*.pay.test", "dns:a.xpay.test", false },
		{ "dns:*.pay.test", "dns:*.pay.test", false },
		{ "dns:*.pay.test", "uri:a.pay.test", false },
		{ "uri:spiffe://x/y", "uri:spiffe://x/y", true },
		{ "uri:spiffe://x/y", "uri:spiffe://x/Y", false },
		{ "uri:spiffe://x/y", "uri:spiffe://x/y/z", false },
		{ "uri:spiffe://x/*", "uri:spiffe://x/y/z", true },
		{ "uri:spiffe://x/*", "uri:spiffe://x/", false },
		{ "uri:spiffe://x/*", "uri:spiffe://xy/z", false },
		{ "ip:10.0.0.7", "ip:10.0.0.7", true },
		{ "ip:10.0.0.7", "ip:10.0.0.8", false },
		{ "ip:2001:DB8::0:1", "ip:2001:db8::1", true },
		{ "ip:2001:db8::1", "ip:2001:db8::2", false },
		{ "ip:2001:db8::1", "dns:2001:db8::1", false },
		{ "uid:1, gid:2, token, addr:unix, dns:a.test", "dns:a.test", true },
		{ "uid:1, gid:2, token, addr:unix", "dns:a.test", false },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(fits_name(rows[i].list, rows[i].name, strlen(rows[i].name)),
				 rows[i].fits);
}

TEST(nul_inside_a_name_ends_nothing)
{
	assert_false(fits_name("dns:a.test", "dns:a.test\0.evil", 16));
	assert_false(fits_name("dns:*.pay.test", "dns:evil\0.pay.test", 18));
	assert_false(fits_name("uri:x", "uri:x\0", 6));
}

TEST(users_groups_addresses_and_tokens_are_compared)
{
	static const struct {
		const char *list;
		uint32_t uid;
		uint32_t gid;
		bool token;
		bool fits;
	} rows[] = {
		{ "uid:1000", 1000, 7, false, true },
		{ "uid:1000", 7, 1000, false, false },
		{ "gid:1000", 7, 1000, false, true },
		{ "gid:1000", 1000, 7, false, false },
		{ "uid:0", 0, 1, false, true },
		{ "token", 0, 0, true, true },
		{ "token", 0, 0, false, false },
		{ "addr:10.0.0.0/8", 0, 0, false, true },
		{ "addr:11.0.0.0/8, addr:10.0.0.7", 0, 0, false, true },
		{ "addr:11.0.0.0/8, addr:unix", 0, 0, false, false },
	};
	struct spoke_address peer = address_of("10.0.0.7:1");

	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct spokei_identity_user user = { rows[i].uid, rows[i].gid, 1 };
		const struct spokei_identity_of of = { .user = &user };
		struct spokei_identity *identity = spokei_identity_new(env, &of);
		struct spokei_callers *callers = list_of(rows[i].list);

		assert_non_null(identity);
		if (rows[i].token)
			spokei_identity_prove(identity, 1);
		assert_int_equal(spokei_callers_fit(callers, env, identity, &peer), rows[i].fits);
		assert_int_equal(spokei_callers_fit(callers, env, NULL, &peer),
				 rows[i].fits && strncmp(rows[i].list, "addr", 4) == 0);
		spokei_callers_free(env, callers);
		spokei_identity_drop(identity);
	}
}

TEST(user_zero_needs_a_user)
{
	static const struct spokei_identity_of nothing;
	struct spoke_address peer = address_of("10.0.0.7:1");
	struct spokei_identity *identity = spokei_identity_new(env, &nothing);
	struct spokei_callers *callers = list_of("uid:0,gid:0");

	assert_non_null(identity);
	assert_false(spokei_callers_fit(callers, env, identity, &peer));
	spokei_callers_free(env, callers);
	spokei_identity_drop(identity);
}

TEST(text_that_is_no_entry_is_refused_with_its_number)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
		{ "", "the list is empty" },
		{ "x", "entry 1, x: unknown" },
		{ "token, tokens", "entry 2, tokens: unknown" },
		{ "TOKEN", "unknown" },
		{ "a.pay.test", "unknown" },
		{ "dns:", "not a host" },
		{ "dns:*", "not a host" },
		{ "dns:*.", "not a host" },
		{ "dns:.a", "not a host" },
		{ "dns:a.", "not a host" },
		{ "dns:a..b", "not a host" },
		{ "dns:a.*.b", "not a host" },
		{ "dns:a*.b", "not a host" },
		{ "dns:**.b", "not a host" },
		{ "dns:a b", "not a host" },
		{ "uri:", "not a URI" },
		{ "uri:*", "not a URI" },
		{ "uri:spiffe://x/y*", "not a URI" },
		{ "uri:spiffe://*/y", "not a URI" },
		{ "ip:10.0.0.0/8", "not an address" },
		{ "ip:", "not an address" },
		{ "token, all", "entry 2, all: unknown" },
		{ "all,all", "entry 1, all: unknown" },
		{ "uid:", "not a number" },
		{ "uid:x", "not a number" },
		{ "uid:-1", "not a number" },
		{ "uid:01", "not a number" },
		{ "uid:4294967295", "not a number" },
		{ "uid:99999999999999999999", "not a number" },
		{ "gid:1x", "not a number" },
		{ "addr:", "not an address" },
		{ "addr:10.0.0.1/8", "beyond its prefix" },
	};
	char why[SPOKEI_CALLERS_WHY];

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_callers *callers = NULL;

		assert_int_equal(spokei_callers_new(env, rows[i].text, 1, &callers, why),
				 SPOKE_EINVAL);
		assert_null(callers);
		if (strstr(why, rows[i].why) == NULL)
			fail_msg("%s: %s", rows[i].text, why);
	}
}

TEST(list_of_all_is_no_list)
{
	assert_null(list_of("all"));
	spokei_callers_free(env, NULL);
}

STEP(set_up)
{
	env = spoke_host_env();
}

GROUP(set_up, NULL);
