/* SPDX-License-Identifier: Apache-2.0 */
/* The callers that a provider lets in, and reloads of its lists. */
#include "tests/cluster/provider/guests.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define ECHO_PORT GUESTS_PORT "/demo.Echo?timeout=1s&retries=0"
#define OTHER_PORT GUESTS_PORT "/demo.Other?timeout=1s&retries=0"
#define ECHO_PATH GUESTS_PATH "?interface=demo.Echo&timeout=1s&retries=0"

static const char *const everywhere[] = { GUESTS_PORT, GUESTS_PATH, NULL };

FIXTURE(guests_set_up, guests_tear_down);

TEST(only_listed_callers_may_call)
{
	const struct spoke_provider_options options = {
		.allow_callers = "uid:1000, addr:10.0.0.0/24"
	};
	struct guest *guest = &guests.guest[2];

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PATH, NULL, 1000, 7);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_call(0, "pool"), SPOKE_OK);
	guests_enter(1, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	guests_enter(2, ECHO_PORT, "10.0.1.7:0", 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(guests_call(2, i == 1 ? "pool" : "echo"), SPOKE_EFORBIDDEN);
		assert_int_equal(guest->code, SPOKE_FORBIDDEN_CALLER);
		assert_string_equal(guest->text, "demo.Echo does not let addr:10.0.1.7 call it");
	}
	guests_enter(3, ECHO_PATH, NULL, 1001, 7);
	assert_int_equal(guests_call(3, "$echo"), SPOKE_EFORBIDDEN);
	assert_string_equal(guests.guest[3].text, "demo.Echo does not let uid:1001 call it");
	assert_int_equal(guests.handled, 3);
	assert_int_equal(guests_stat(SPOKE_STAT_REFUSED_CALLER), 4);
}

TEST(list_of_a_service_narrows_that_of_the_provider)
{
	guests_configure(
		"[provider]\nallow.callers = addr:10.0.0.0/16\n"
		"[service.demo.Other]\nallow.callers = addr:10.0.1.0/24, addr:10.1.0.0/16\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, OTHER_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_EFORBIDDEN);
	assert_string_equal(guests.guest[1].text, "demo.Other does not let addr:10.0.0.7 call it");
	guests_enter(2, OTHER_PORT, "10.0.1.7:0", 0, 0);
	assert_int_equal(guests_call(2, "echo"), SPOKE_OK);
	guests_enter(3, OTHER_PORT, "10.1.0.7:0", 0, 0);
	assert_int_equal(guests_call(3, "echo"), SPOKE_EFORBIDDEN);
}

TEST(service_alone_may_have_a_list)
{
	guests_configure("[service.demo.Other]\nallow.callers = uid:1\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, OTHER_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_EFORBIDDEN);
}

TEST(unknown_services_are_told_to_listed_callers_only)
{
	const struct spoke_provider_options options = { .allow_callers = "addr:10.0.0.7" };

	guests_begin(&options, everywhere);
	guests_enter(0, GUESTS_PORT "/demo.Nothing?retries=0", "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_ENOSERVICE);
	guests_enter(1, GUESTS_PORT "/demo.Nothing?retries=0", "10.0.0.8:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_EFORBIDDEN);
	assert_string_equal(guests.guest[1].text,
			    "demo.Nothing does not let addr:10.0.0.8 call it");
	guests_enter(2, ECHO_PORT, "10.0.0.8:0", 0, 0);
	assert_int_equal(guests_call(2, "none"), SPOKE_EFORBIDDEN);
}

static struct spoke_filter_verdict count_calls(void *arg, const struct spoke_request *request)
{
	(void)request;
	++*(unsigned *)arg;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void count_ends(void *arg, const struct spoke_request *request,
		       const struct spoke_filter_answer *answer)
{
	(void)request;
	(void)answer;
	++*((unsigned *)arg + 1);
}

TEST(filters_do_not_see_callers_that_are_not_let_in)
{
	unsigned seen[2] = { 0, 0 };
	const struct spoke_filter filter = { .before_request = count_calls,
					     .after_request = count_ends,
					     .arg = seen };
	const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = { .filters = filters,
							.filter_count = 1,
							.allow_callers = "addr:10.0.0.7" };

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.8:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_EFORBIDDEN);
	assert_int_equal(seen[0], 0);
	guests_enter(1, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 1);
}

TEST(caller_is_judged_once_a_connection)
{
	const struct spoke_provider_options options = { .allow_callers = "addr:10.0.0.7" };
	uint64_t asked;

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	asked = guests.faulty.calls[SPOKEI_FAULTS_MEMORY];
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests.faulty.calls[SPOKEI_FAULTS_MEMORY], asked);
}

TEST(caller_is_judged_without_memory_too)
{
	const struct spoke_provider_options options = { .allow_callers = "addr:10.0.0.7" };

	guests_begin(&options, everywhere);
	for (unsigned nth = 1; nth < 8; nth++) {
		guests_enter(0, ECHO_PORT, "10.0.0.8:0", 0, 0);
		spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		assert_int_not_equal(guests_call(0, "echo"), SPOKE_OK);
		spokei_faults_heal(&guests.faulty);
		guests_leave(0);
		guests_enter(0, ECHO_PORT, "10.0.0.8:0", 0, 0);
		assert_int_equal(guests_call(0, "echo"), SPOKE_EFORBIDDEN);
		guests_leave(0);
	}
	assert_int_equal(guests.handled, 0);
	guests_enter(1, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
}

/* --- reload */

TEST(reload_changes_lists_and_drains_connections_they_forbid)
{
	guests_configure("[provider]\nallow.from = 10.0.0.0/16\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	guests_enter(1, ECHO_PORT, "10.0.1.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_int_equal(spoke_provider_connections(guests.provider), 2);
	assert_int_equal(guests_reload("[provider]\nallow.from = 10.0.0.0/24\n"), SPOKE_OK);
	guests_pass(10 * SECOND);
	assert_int_equal(guests_stat(SPOKE_STAT_DRAINED_CALLER), 1);
	assert_int_equal(guests_events("1 connections are drained"), 1);
	assert_int_equal(spoke_provider_connections(guests.provider), 1);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_not_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_int_equal(guests_reload("[provider]\n"), SPOKE_OK);
	guests_pass(120 * SECOND);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
}

TEST(reload_judges_users_and_callers_anew)
{
	guests_configure("[provider]\nallow.users = 1, 2\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PATH, NULL, 1, 1);
	guests_enter(1, ECHO_PATH, NULL, 2, 2);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_int_equal(guests_reload("[provider]\nallow.users = 1\n"), SPOKE_OK);
	assert_int_equal(guests_stat(SPOKE_STAT_DRAINED_CALLER), 1);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_reload("[provider]\nallow.callers = uid:2\n"), SPOKE_OK);
	assert_int_equal(guests_stat(SPOKE_STAT_DRAINED_CALLER), 2);
	assert_int_equal(guests_reload("[provider]\nallow.callers = uid:1\n"
				       "[service.demo.Echo]\nallow.callers = uid:2\n"),
			 SPOKE_OK);
	guests_pass(300 * SECOND);
	assert_int_equal(guests_call(0, "echo"), SPOKE_EFORBIDDEN);
	assert_int_equal(guests_reload("[provider]\nallow.callers = uid:1\n"), SPOKE_OK);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_int_equal(guests_call(1, "echo"), SPOKE_EFORBIDDEN);
}

TEST(call_under_way_is_answered_before_its_connection_is_drained)
{
	guests_configure("[provider]\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, GUESTS_PORT "/demo.Echo?timeout=10s", "10.0.0.7:0", 0, 0);
	(void)guests_call(0, "later");
	assert_int_equal(guests_reload("[provider]\ndeny.from = 10.0.0.7\n"), SPOKE_OK);
	guests_pass(SECOND);
	SPOKE_REPLY(guests.held, 1);
	guests.held = NULL;
	guests_pass(SECOND);
	assert_int_equal(guests.guest[0].ends, 1);
	assert_int_equal(guests.guest[0].error, SPOKE_OK);
	assert_int_equal(spoke_provider_connections(guests.provider), 0);
}

TEST(wrong_entry_in_a_file_keeps_the_old_lists)
{
	guests_configure("[provider]\nallow.from = 10.0.0.7\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_reload("[provider]\ndeny.from = 10.0.0.7\n"
				       "allow.from = 10.0.0.0/8, 10.0.0.300\n"),
			 SPOKE_ESYNTAX);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, ECHO_PORT, "10.0.0.8:0", 0, 0);
	assert_int_not_equal(guests_call(1, "echo"), SPOKE_OK);
}

TEST(reload_without_memory_keeps_all_old_lists)
{
	static const char next[] = "[provider]\nallow.from = 10.0.0.8\nallow.callers = uid:1\n"
				   "[service.demo.Echo]\nallow.callers = uid:1\n"
				   "[service.demo.Other]\nallow.callers = uid:1\n";
	unsigned kept = 0;

	guests_configure("[provider]\nallow.from = 10.0.0.7\n");
	guests_begin(NULL, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	for (unsigned nth = 1;; nth++) {
		int error;

		spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = guests_reload(next);
		if (guests_stat(SPOKE_STAT_DRAINED_CALLER) > 0)
			break;
		spokei_faults_heal(&guests.faulty);
		kept += error == SPOKE_ENOMEM;
		assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	}
	spokei_faults_heal(&guests.faulty);
	/* Also for the file itself. */
	assert_in_range(kept, 5, 20);
	/* The rules, and three lists of callers. */
	assert_int_equal(guests_events("the old lists stay: out of memory"), 4);
}

TEST(reload_that_opens_the_provider_says_so)
{
	guests_configure("[provider]\nallow.from = 10.0.0.7\n");
	guests_begin(NULL, everywhere);
	assert_int_equal(guests_reload("[provider]\nallow.from = 10.0.0.8\n"), SPOKE_OK);
	assert_int_equal(guests_events("all hosts that reach"), 0);
	assert_int_equal(guests_reload(""), SPOKE_OK);
	assert_int_equal(guests_events("all hosts that reach"), 1);
	assert_int_equal(guests_reload(""), SPOKE_OK);
	assert_int_equal(guests_events("all hosts that reach"), 1);
}

TEST(options_are_not_changed_by_a_reload)
{
	const struct spoke_provider_options options = { .allow_from = "10.0.0.7" };

	guests_configure("[provider]\nallow.from = 10.0.0.8\n");
	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_reload("[provider]\nallow.from = 10.0.0.9\n"), SPOKE_OK);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
}
