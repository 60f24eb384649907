/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of one lease: those of all, changed by the options of its ask. */
#include "cluster/lease/settings.h"
#include "tests/support/test.h"

#include <spoke/call.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static const struct spokei_lease_settings all = {
	.ttl_ns = 10 * SECOND,
	.wait_ns = 5 * SECOND,
	.guard_ns = SECOND,
};

static struct spokei_lease_terms terms_of(const struct spoke_lease_options *options)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	struct spokei_lease_terms terms = { 0 };

	assert_int_equal(spokei_lease_terms(&all, options, &terms, why), SPOKE_OK);
	return terms;
}

TEST(ask_without_options_has_the_terms_of_all)
{
	static const struct spoke_lease_options none;

	for (unsigned i = 0; i < 2; i++) {
		struct spokei_lease_terms terms = terms_of(i ? &none : NULL);

		assert_int_equal(terms.ttl_ns, 10 * SECOND);
		assert_int_equal(terms.wait_ns, 5 * SECOND);
	}
}

TEST(options_of_an_ask_override_the_terms_of_all)
{
	struct spokei_lease_terms terms = terms_of(&(struct spoke_lease_options){
		.wait_ns = SPOKE_LEASE_FOREVER, .ttl_ns = 60 * SECOND + 7 });

	assert_int_equal(terms.wait_ns, SPOKE_LEASE_FOREVER);
	assert_int_equal(terms.ttl_ns, 60 * SECOND);
}

TEST(terms_out_of_range_are_refused)
{
	static const struct {
		struct spoke_lease_options options;
		const char *sentence;
	} rows[] = {
		{ { .ttl_ns = 1 }, "option lease.ttl=1ns: not between 100ms and 24h" },
		{ { .ttl_ns = UINT64_MAX },
		  "option lease.ttl=18446744073709551615ns: not between 100ms and 24h" },
		{ { .ttl_ns = 2 * SECOND },
		  "lease.guard=1s: not less than half of the time to live, which is 2s" },
	};
	char why[SPOKEI_LEASE_WHY_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_lease_terms terms = { .ttl_ns = 77 };

		assert_int_equal(spokei_lease_terms(&all, &rows[i].options, &terms, why),
				 SPOKE_ERANGE);
		assert_string_equal(why, rows[i].sentence);
		assert_int_equal(terms.ttl_ns, 77);
	}
}
