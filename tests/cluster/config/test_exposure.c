/* SPDX-License-Identifier: Apache-2.0 */
/* Whether every host that reaches an address is let in there. */
#include "cluster/config/places.h"
#include "tests/support/test.h"
#include "transport/listen/rules.h"
#include "transport/trust/caller.h"

#include <spoke/host.h>

#include <string.h>

enum {
	NOT = SPOKEI_EXPOSED_NOT,
	PLAIN = SPOKEI_EXPOSED_PLAIN,
	NO_CA = SPOKEI_EXPOSED_NO_CA,
	UNVERIFIED = SPOKEI_EXPOSED_UNVERIFIED,
};

static const struct spoke_env *env;

STEP(set_up)
{
	env = spoke_host_env();
}

GROUP(set_up, NULL);

static struct spokei_rules *rules_of(const char *deny, const char *allow, const char *users)
{
	const struct spokei_rules_of of = { deny, allow, users };
	struct spokei_rules *rules;
	char why[SPOKEI_RULES_WHY];

	assert_int_equal(spokei_rules_new(env, &of, &rules, why), SPOKE_OK);
	return rules;
}

static struct spokei_callers *callers_of(const char *text)
{
	struct spokei_callers *callers = NULL;
	char why[SPOKEI_CALLERS_WHY];

	if (text)
		assert_int_equal(spokei_callers_new(env, text, 1, &callers, why), SPOKE_OK);
	return callers;
}

/* --- one thing at a time */

TEST(host_is_let_in_without_certificate_and_credentials)
{
	static const struct {
		struct spokei_exposure of;
		int exposed;
	} rows[] = {
		{ { .plain = true }, PLAIN },
		{ { .plain = true, .local = true }, NOT },
		{ { .plain = true, .asks = true }, NOT },
		/* Where the first byte decides, plain clients need no certificate. */
		{ { .plain = true, .verify = SPOKE_TLS_VERIFY_REQUIRED }, PLAIN },
		{ { .verify = SPOKE_TLS_VERIFY_DEFAULT }, NO_CA },
		{ { .verify = SPOKE_TLS_VERIFY_NONE }, UNVERIFIED },
		{ { .verify = SPOKE_TLS_VERIFY_OPTIONAL }, UNVERIFIED },
		{ { .verify = SPOKE_TLS_VERIFY_REQUIRED }, NOT },
		{ { .verify = SPOKE_TLS_VERIFY_DEFAULT, .local = true }, NOT },
		{ { .verify = SPOKE_TLS_VERIFY_NONE, .asks = true }, NOT },
		{ { .verify = SPOKE_TLS_VERIFY_OPTIONAL, .asks = true }, NOT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(spokei_exposure_judge(&rows[i].of), rows[i].exposed);
}

TEST(list_counts_if_it_shuts_out_any_host)
{
	static const struct {
		const char *deny;
		const char *allow;
		const char *users;
		int exposed;
	} rows[] = {
		{ NULL, NULL, NULL, PLAIN },
		{ "none", "all", "all", PLAIN },
		{ NULL, NULL, "1000", PLAIN },
		{ "unix", NULL, NULL, PLAIN },
		{ "unix", NULL, "gid:100", PLAIN },
		{ NULL, "0.0.0.0/0, ::/0", NULL, PLAIN },
		{ NULL, "0.0.0.0/0", NULL, PLAIN },
		{ NULL, "::/0", NULL, PLAIN },
		{ NULL, "::ffff:0:0/96", NULL, PLAIN },
		{ NULL, "unix, 10.0.0.1, 0.0.0.0/0", "1000", PLAIN },
		{ "unix", "0.0.0.0/0", NULL, PLAIN },
		{ "10.0.0.0/8", NULL, NULL, NOT },
		{ "unix, 10.0.0.1", NULL, NULL, NOT },
		{ "10.0.0.1", "0.0.0.0/0, ::/0", NULL, NOT },
		{ "0.0.0.0/0", "0.0.0.0/0", NULL, NOT },
		{ NULL, "10.0.0.0/8", NULL, NOT },
		{ NULL, "0.0.0.0/1", NULL, NOT },
		{ NULL, "128.0.0.0/1, ::/1", NULL, NOT },
		{ NULL, "unix", NULL, NOT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_rules *rules = rules_of(rows[i].deny, rows[i].allow, rows[i].users);
		const struct spokei_exposure of_owner = { .plain = true, .of_owner = rules };
		const struct spokei_exposure of_address = { .plain = true, .of_address = rules };

		assert_int_equal(spokei_exposure_judge(&of_owner), rows[i].exposed);
		assert_int_equal(spokei_exposure_judge(&of_address), rows[i].exposed);
		spokei_rules_free(env, rules);
	}
}

TEST(list_of_callers_counts_unless_it_has_all_addresses)
{
	static const struct {
		const char *text;
		int exposed;
	} rows[] = {
		{ NULL, NO_CA },
		{ "all", NO_CA },
		{ "addr:0.0.0.0/0", NO_CA },
		{ "uid:1000, addr:::/0", NO_CA },
		{ "addr:10.0.0.0/8", NOT },
		{ "addr:unix", NOT },
		{ "uid:1000", NOT },
		{ "dns:a.test", NOT },
		{ "token", NOT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_callers *callers = callers_of(rows[i].text);
		const struct spokei_exposure of_provider = { .of_provider = callers };
		const struct spokei_exposure of_service = { .of_service = callers };

		assert_int_equal(spokei_exposure_judge(&of_provider), rows[i].exposed);
		assert_int_equal(spokei_exposure_judge(&of_service), rows[i].exposed);
		spokei_callers_free(env, callers);
	}
}

TEST(sentence_names_the_first_remedy)
{
	assert_string_equal(spokei_exposed_why(SPOKEI_EXPOSED_NOT), "");
	assert_non_null(strstr(spokei_exposed_why(SPOKEI_EXPOSED_PLAIN), "set tls"));
	assert_non_null(strstr(spokei_exposed_why(SPOKEI_EXPOSED_NO_CA), "set tls.ca"));
	assert_non_null(
		strstr(spokei_exposed_why(SPOKEI_EXPOSED_UNVERIFIED), "set tls.verify = required"));
}
