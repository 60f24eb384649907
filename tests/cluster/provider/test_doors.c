/* SPDX-License-Identifier: Apache-2.0 */
/* The peers that may connect to a provider. */
#include "tests/cluster/provider/guests.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define ECHO_PORT GUESTS_PORT "/demo.Echo?timeout=1s&retries=0"
#define ECHO_PATH GUESTS_PATH "?interface=demo.Echo&timeout=1s&retries=0"

static const char *const everywhere[] = { GUESTS_PORT, GUESTS_PATH, NULL };

/* --- addresses */

FIXTURE(guests_set_up, guests_tear_down);

TEST(only_listed_addresses_may_connect)
{
	const struct spoke_provider_options options = { .allow_from = "10.0.0.0/24, 10.7.0.1" };

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, ECHO_PORT, "10.0.1.7:0", 0, 0);
	assert_int_not_equal(guests_call(1, "echo"), SPOKE_OK);
	guests_enter(2, ECHO_PATH, NULL, 0, 0);
	assert_int_not_equal(guests_call(2, "echo"), SPOKE_OK);
	assert_int_equal(guests.handled, 1);
	assert_int_equal(guests_stat(SPOKE_STAT_ACCEPTED), 1);
	assert_true(guests_stat(SPOKE_STAT_REFUSED_ADDRESS) >= 2);
}

TEST(denied_addresses_come_before_allowed_ones)
{
	const struct spoke_provider_options options = { .allow_from = "10.0.0.0/8,unix",
							.deny_from = "10.0.0.8/29" };

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, ECHO_PORT, "10.0.0.8:0", 0, 0);
	assert_int_not_equal(guests_call(1, "echo"), SPOKE_OK);
	guests_enter(2, ECHO_PATH, NULL, 0, 0);
	assert_int_equal(guests_call(2, "echo"), SPOKE_OK);
}

TEST(mapped_address_is_judged_as_ipv4)
{
	static const char *const urls[] = { "dubbo://[2001:db8::1]:20880", NULL };
	const struct spoke_provider_options options = { .deny_from = "10.0.0.0/8" };

	guests_begin(&options, urls);
	guests_enter(0, "dubbo://[2001:db8::1]:20880/demo.Echo", "[::ffff:10.0.0.7]:0", 0, 0);
	assert_int_not_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, "dubbo://[2001:db8::1]:20880/demo.Echo", "[::ffff:11.0.0.7]:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
}

TEST(each_address_to_listen_at_has_lists_of_its_own)
{
	static const char *const urls[] = {
		"dubbo://10.0.0.1:20880?allow.from=10.0.0.0/24",
		"dubbo://10.0.0.1:20881?deny.from=10.0.0.0/24",
		NULL,
	};
	const struct spoke_provider_options options = { .deny_from = "10.0.0.66" };

	guests_begin(&options, urls);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, "dubbo://10.0.0.1:20881/demo.Echo", "10.0.0.7:0", 0, 0);
	assert_int_not_equal(guests_call(1, "echo"), SPOKE_OK);
	guests_enter(2, "dubbo://10.0.0.1:20881/demo.Echo", "10.0.1.7:0", 0, 0);
	assert_int_equal(guests_call(2, "echo"), SPOKE_OK);
	guests_enter(3, ECHO_PORT, "10.0.0.66:0", 0, 0);
	assert_int_not_equal(guests_call(3, "echo"), SPOKE_OK);
}

/* Connects as a bare socket. Returns the descriptor. */
static int connect_from(const char *from)
{
	struct spokei_world_process *process = &guests.guest[3].process;
	struct spoke_address at;
	int fd;

	process->user.from = from;
	assert_int_equal(process->env.net->parse(process->env.ctx, "10.0.0.1:20880", &at), 0);
	assert_int_equal(process->env.net->connect(process->env.ctx, &at, &fd), -EINPROGRESS);
	return fd;
}

TEST(denied_connection_costs_no_byte_and_no_memory)
{
	const struct spoke_provider_options options = { .deny_from = "10.0.1.0/24" };
	const struct spoke_env *env = &guests.guest[3].process.env;
	uint64_t asked;
	char byte;
	int fd;

	guests_begin(&options, everywhere);
	guests_pass(10 * MS);
	asked = guests.faulty.calls[SPOKEI_FAULTS_MEMORY];
	for (unsigned i = 0; i < 10; i++) {
		fd = connect_from("10.0.1.7:0");
		guests_pass(10 * MS);
		assert_int_equal(env->net->read(env->ctx, fd, &byte, 1), 0);
		env->net->close(env->ctx, fd);
	}
	assert_int_equal(guests.faulty.calls[SPOKEI_FAULTS_MEMORY], asked);
	assert_int_equal(guests_stat(SPOKE_STAT_REFUSED_ADDRESS), 10);
}

static struct {
	unsigned lines;
	uint64_t suppressed;
	bool user; /* a line names the one that is not let in */
	char text[256];
} logged;

static void note_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (strstr(line->text, "may not") == NULL)
		return;
	logged.lines++;
	logged.suppressed += line->suppressed;
	logged.user |= strstr(line->text, "(uid:1001) may not connect: allow.users") != NULL;
	(void)strncpy(logged.text, line->text, sizeof(logged.text) - 1);
}

/* Begins with an engine whose lines are noted. */
static void begin_logged(const struct spoke_provider_options *options)
{
	struct spoke_engine_options with = { .env = &guests.faulty.env };

	spoke_engine_free(guests.engine);
	memset(&logged, 0, sizeof(logged));
	guests.faulty.env.log = note_line;
	assert_int_equal(spoke_engine_new(&with, &guests.engine), 0);
	guests_begin(options, everywhere);
}

TEST(flood_of_denied_peers_writes_ten_lines_a_second)
{
	const struct spoke_provider_options options = { .deny_from = "10.0.1.0/24" };
	const struct spoke_env *env = &guests.guest[3].process.env;
	unsigned seconds = 3;

	begin_logged(&options);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	for (unsigned i = 0; i < seconds * 1000; i++) {
		for (unsigned j = 0; j < 10; j++)
			env->net->close(env->ctx, connect_from("10.0.1.7:0"));
		guests_pass(MS);
	}
	assert_int_equal(guests_stat(SPOKE_STAT_REFUSED_ADDRESS), seconds * 10000);
	assert_in_range(logged.lines, 10, 10 * (seconds + 1));
	assert_in_range(logged.suppressed + logged.lines, 10000, seconds * 10000);
	assert_non_null(strstr(logged.text, "10.0.1.7:"));
	assert_non_null(strstr(logged.text, "deny.from"));
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
}

TEST(wrong_entry_refuses_the_option_with_a_sentence)
{
	static const struct {
		struct spoke_provider_options options;
		const char *why;
	} rows[] = {
		{ { .allow_from = "10.0.0.0/8, 10.0.0.1/8" },
		  "option allow.from: entry 2, 10.0.0.1/8: the address has bits beyond" },
		{ { .deny_from = "a\x01" }, "deny.from: entry 1, a\\x01: not an address" },
		{ { .allow_from = "" }, "allow.from: the list is empty" },
		{ { .allow_users = "root" }, "allow.users: entry 1, root: not a number" },
		{ { .allow_users = "1,01" }, "allow.users: entry 2, 01: not a number" },
		{ { .allow_users = "4294967295" }, "not a number" },
		{ { .allow_users = "gid:" }, "not a number" },
		{ { .allow_callers = "uid:1, x" }, "allow.callers: entry 2, x: unknown; write" },
		{ { .allow_callers = "dns:*" }, "allow.callers: entry 1, dns:*: not a host" },
		{ { .allow_callers = "" }, "allow.callers: the list is empty" },
		{ { .http_origins = "https://a.example,null" },
		  "option http.origins: no page of one site has the origin \"null\"" },
		{ { .http_hosts = "a:80" }, "option http.hosts: \"a:80\" is no host" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(guests_try(&rows[i].options), SPOKE_EINVAL);
		if (strstr(spoke_engine_why(guests.engine), rows[i].why) == NULL)
			fail_msg("%s", spoke_engine_why(guests.engine));
	}
}

TEST(list_of_64_entries_is_the_largest)
{
	static const char entry[] = "10.0.0.7,";
	char text[65 * sizeof(entry)] = "";
	struct spoke_provider_options options = { .allow_from = text };

	for (unsigned i = 0; i < 64; i++)
		memcpy(text + i * strlen(entry), entry, sizeof(entry));
	text[64 * strlen(entry) - 1] = '\0';
	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_leave(0);
	spoke_provider_free(guests.provider);
	guests_pass(SECOND);
	guests.provider = NULL;
	text[64 * strlen(entry) - 1] = ',';
	memcpy(text + 64 * strlen(entry), entry, strlen(entry) - 1);
	text[65 * strlen(entry) - 1] = '\0';
	assert_int_equal(guests_try(&options), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(guests.engine), "at most 64"));
}

/* --- users */

TEST(only_listed_users_may_connect_to_a_path)
{
	const struct spoke_provider_options options = { .allow_users = "1000, gid:100" };

	guests_begin(&options, everywhere);
	guests_enter(0, ECHO_PATH, NULL, 1000, 7);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	guests_enter(1, ECHO_PATH, NULL, 7, 100);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	guests_enter(2, ECHO_PATH, NULL, 100, 1000);
	assert_int_not_equal(guests_call(2, "echo"), SPOKE_OK);
	guests_leave(2);
	guests_enter(2, ECHO_PATH, NULL, 0, 0);
	assert_int_not_equal(guests_call(2, "echo"), SPOKE_OK);
	guests_enter(3, ECHO_PORT, "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(3, "echo"), SPOKE_OK);
}

TEST(user_without_credentials_is_not_let_in)
{
	const struct spoke_provider_options options = { .allow_users = "1000" };

	guests_begin(&options, everywhere);
	spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_CREDENTIALS, 1, -EPERM, true);
	guests_enter(0, ECHO_PATH, NULL, 1000, 7);
	assert_int_not_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_true(guests_stat(SPOKE_STAT_REFUSED_ADDRESS) > 0);
}

TEST(mode_of_a_path_must_be_octal_and_belong_to_a_path)
{
	static const char *const wrong[] = {
		"unix:/run/y.sock?mode=",   "unix:/run/y.sock?mode=8",
		"unix:/run/y.sock?mode=99", "unix:/run/y.sock?mode=01660",
		"unix:/run/y.sock?mode=rw", "dubbo://10.0.0.1:1?mode=0660",
	};

	assert_int_equal(guests_try(NULL), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_not_equal(spoke_provider_listen(guests.provider, wrong[i]), SPOKE_OK);
		if (strstr(spoke_engine_why(guests.engine), "mode") == NULL)
			fail_msg("%s", spoke_engine_why(guests.engine));
	}
	assert_int_equal(spoke_provider_listen(guests.provider, "unix:/run/y.sock?mode=0660"),
			 SPOKE_OK);
}

/* --- what is said */

TEST(user_that_is_not_let_in_is_named_in_the_log)
{
	const struct spoke_provider_options options = { .allow_users = "1000" };

	begin_logged(&options);
	guests_enter(0, ECHO_PATH, NULL, 1001, 7);
	assert_int_not_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_true(logged.user);
}

TEST(open_provider_says_so_once)
{
	static const char *const urls[] = { GUESTS_PATH, "dubbo://127.0.0.1:20880",
					    "dubbo://[::1]:20880", NULL };

	guests_begin(NULL, urls);
	assert_int_equal(guests_events("all hosts that reach"), 0);
	assert_int_equal(spoke_provider_listen(guests.provider, GUESTS_PORT), 0);
	assert_int_equal(spoke_provider_listen(guests.provider, "dubbo://10.0.0.1:20881"), 0);
	assert_int_equal(guests_events("all hosts that reach 10.0.0.1:20880 may call"), 1);
	assert_int_equal(guests_events("all hosts that reach"), 1);
}

/* Lists about unix sockets, and ranges of all addresses, let every host in. */
TEST(provider_whose_lists_shut_out_no_host_says_so)
{
	static const struct spoke_provider_options rows[] = {
		{ .allow_users = "1000" },
		{ .deny_from = "unix" },
		{ .allow_from = "0.0.0.0/0, ::/0" },
		{ .allow_callers = "addr:0.0.0.0/0" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		guests_begin(&rows[i], everywhere);
		assert_int_equal(guests_events("10.0.0.1:20880 may call, in plain text; set tls"),
				 i + 1);
		spoke_provider_free(guests.provider);
		guests_pass(10 * MS);
		guests.provider = NULL;
	}
}

TEST(service_that_every_host_may_call_is_named)
{
	static const struct {
		const char *file;
		const char *event;
	} rows[] = {
		{ "[provider]\ntoken = correct-horse-1\n[service.demo.Other]\ntoken = false\n",
		  "may call demo.Other, in plain text" },
		{ "[service.demo.Echo]\ntoken = correct-horse-1\n",
		  "may call demo.Other, in plain text" },
		{ "[service.demo.Other]\nallow.callers = uid:1\n",
		  "may call demo.Echo, in plain text" },
		{ "[provider]\ntoken = correct-horse-1\n[service.demo.Echo]\ntoken = false\n"
		  "[service.demo.Other]\ntoken = false\n",
		  "may call demo.Echo, in plain text" },
		{ "[service.demo.Echo]\ntoken = correct-horse-1\n"
		  "[service.demo.Other]\nallow.callers = uid:1\n",
		  NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *event = rows[i].event ? rows[i].event : "all hosts that reach";
		unsigned before = guests_events(event);

		guests_configure(rows[i].file);
		guests_begin(NULL, everywhere);
		assert_int_equal(guests_events(event) - before, rows[i].event != NULL);
		spoke_provider_free(guests.provider);
		guests_pass(10 * MS);
		spoke_config_free(guests.config);
		guests.provider = NULL;
		guests.config = NULL;
	}
}

TEST(open_service_that_is_added_later_is_named)
{
	static const struct spoke_service_options service = { .name = "demo.Late" };

	guests_configure("[provider]\ntoken = correct-horse-1\n"
			 "[service.demo.Late]\ntoken = false\n");
	guests_begin(NULL, everywhere);
	assert_int_equal(guests_events("all hosts that reach"), 0);
	assert_int_equal(spoke_provider_add(guests.provider, &service, NULL, 0), SPOKE_OK);
	assert_int_equal(guests_events("may call demo.Late"), 1);
}

TEST(provider_with_a_token_or_list_against_hosts_says_nothing)
{
	static const struct spoke_provider_options rows[] = {
		{ .allow_from = "10.0.0.0/8" },
		{ .deny_from = "10.0.0.0/8" },
		{ .allow_callers = "uid:1" },
		{ .token = "true" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		guests_begin(&rows[i], everywhere);
		assert_int_equal(guests_events("all hosts that reach"), 0);
		spoke_provider_free(guests.provider);
		guests_pass(10 * MS);
		guests.provider = NULL;
	}
}
