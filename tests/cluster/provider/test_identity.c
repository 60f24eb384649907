/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which a provider knows its callers. */
#include "cluster/provider/parts.h"
#include "tests/cluster/provider/guests.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"

#include <errno.h>
#include <string.h>

static const char *const everywhere[] = { GUESTS_PORT, "dubbo://[2001:db8::1]:20880", GUESTS_PATH,
					  NULL };

FIXTURE(guests_set_up, guests_tear_down);

TEST(caller_is_known_by_its_address)
{
	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PORT "/demo.Echo", "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "addr:10.0.0.7");
	guests_enter(1, "dubbo://[2001:db8::1]:20880/demo.Echo", "[2001:db8::7]:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "addr:2001:db8::7");
}

TEST(caller_at_a_path_is_known_as_user_of_connect)
{
	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	guests.guest[0].process.user.uid = 0;
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "uid:1000");
	assert_int_equal(guests_call(0, "pool"), SPOKE_OK);
	assert_string_equal(guests.names, "uid:1000");
}

/* Returns whether the bounds of peers without proof hold for the only connection. */
static bool is_bounded(void)
{
	struct spoke_list *node = guests.provider->link->conns.next;

	return spoke_container_of(node, struct spokei_conn, node)->unproven;
}

TEST(user_that_a_list_names_has_proof_enough)
{
	guests_configure("[provider]\ntoken = correct-horse-1\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	assert_true(is_bounded());
	guests_leave(0);
	guests_pass(SECOND);
	assert_int_equal(guests_reload("[provider]\ntoken = correct-horse-1\nallow.users = 1000\n"),
			 SPOKE_OK);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	assert_false(is_bounded());
	assert_int_equal(guests_call(0, "echo"), SPOKE_EFORBIDDEN); /* requests need the token */
	guests_leave(0);
	guests_pass(SECOND);
	guests_enter(0, GUESTS_PORT "/demo.Echo", "10.0.0.7:0", 0, 0);
	assert_true(is_bounded());
}

static struct spoke_filter_verdict see(void *arg, const struct spoke_request *request)
{
	(void)spoke_request_identity(request, 0, arg, 64);
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

TEST(filters_see_the_identity)
{
	char seen[64] = "";
	const struct spoke_filter filter = { .before_request = see, .arg = seen };
	const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };

	guests_begin(&options, everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 7, 7);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(seen, "uid:7");
}

TEST(identity_outlives_the_connection_with_its_request)
{
	char name[64];

	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	(void)guests_call(0, "later");
	guests_leave(0);
	guests_pass(120 * SECOND);
	assert_true(spoke_request_abandoned(guests.held));
	assert_int_equal(spoke_request_identity(guests.held, 0, name, sizeof(name)), 8);
	assert_string_equal(name, "uid:1000");
	assert_int_equal(spoke_request_identity(guests.held, 1, name, sizeof(name)), 0);
}

TEST(caller_without_credentials_has_no_name_at_a_path)
{
	guests_begin(NULL, everywhere);
	spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_CREDENTIALS, 1, -EPERM, true);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "");
}

TEST(connection_without_memory_for_its_identity_is_closed)
{
	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_leave(0);
	guests_pass(SECOND);
	for (unsigned nth = 1; nth < 8; nth++) {
		spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		guests_enter(1, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
		spokei_faults_heal(&guests.faulty);
		guests_pass(SECOND);
		assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
		assert_string_equal(guests.names, "uid:1000");
		guests_leave(1);
		guests_pass(SECOND);
	}
	assert_true(guests_stat(SPOKE_STAT_CLOSED_MEMORY) > 0);
}

/* --- the room */

TEST(names_are_copied_and_too_long_ones_left_out)
{
	static char longest[SPOKEI_IDENTITY_NAME];
	const struct spoke_span names[] = { { "dns:a.test", 10 },
					    { longest, SPOKEI_IDENTITY_NAME },
					    { "", 0 },
					    { longest, SPOKEI_IDENTITY_NAME - 1 } };
	const struct spokei_identity_user user = { .uid = UINT32_MAX - 1, .gid = 1, .pid = 2 };
	const struct spokei_identity_of of = { &user, names, 4 };
	struct spokei_identity *identity;
	struct spoke_address peer;
	char text[SPOKEI_IDENTITY_NAME];
	const struct spoke_env *env = &guests.faulty.env;

	memset(longest, 'x', sizeof(longest));
	assert_int_equal(env->net->parse(env->ctx, "10.0.0.7:1", &peer), 0);
	identity = spokei_identity_new(env, &of);
	assert_non_null(identity);
	assert_int_equal(spokei_identity_print(env, identity, &peer, 0, text, sizeof(text)), 10);
	assert_string_equal(text, "dns:a.test");
	assert_int_equal(spokei_identity_print(env, identity, &peer, 1, text, sizeof(text)),
			 SPOKEI_IDENTITY_NAME - 1);
	assert_memory_equal(text, longest, SPOKEI_IDENTITY_NAME - 1);
	(void)spokei_identity_print(env, identity, &peer, 2, text, sizeof(text));
	assert_string_equal(text, "uid:4294967294");
	(void)spokei_identity_print(env, identity, &peer, 3, text, sizeof(text));
	assert_string_equal(text, "addr:10.0.0.7");
	spokei_identity_prove(identity, 1);
	(void)spokei_identity_print(env, identity, &peer, 3, text, sizeof(text));
	assert_string_equal(text, "token");
	(void)spokei_identity_print(env, identity, &peer, 4, text, 6);
	assert_string_equal(text, "addr:");
	assert_int_equal(spokei_identity_print(env, identity, &peer, 5, text, sizeof(text)), 0);
	assert_ptr_equal(spokei_identity_share(identity), identity);
	spokei_identity_drop(identity);
	assert_int_equal(identity->name_count, 2);
	spokei_identity_drop(identity);
}

TEST(judgements_hold_for_their_list_until_a_proof)
{
	static const struct spokei_identity_of nothing;
	const uint64_t last = SPOKEI_IDENTITY_JUDGED + 1;
	struct spokei_identity *identity = spokei_identity_new(&guests.faulty.env, &nothing);

	assert_non_null(identity);
	assert_false(spokei_identity_is_known(identity));
	assert_null(spokei_identity_judged(identity, 1));
	for (uint64_t list = 1; list <= last; list++)
		spokei_identity_judge(identity, list, list % 2);
	assert_null(spokei_identity_judged(identity, 1));
	for (uint64_t list = 2; list <= last; list++)
		assert_int_equal(spokei_identity_judged(identity, list)->allowed, list % 2);
	spokei_identity_prove(identity, 1);
	assert_true(spokei_identity_is_known(identity));
	assert_null(spokei_identity_judged(identity, last));
	spokei_identity_judge(identity, last, true);
	spokei_identity_prove(identity, 1);
	assert_non_null(spokei_identity_judged(identity, last));
	spokei_identity_drop(identity);
}
