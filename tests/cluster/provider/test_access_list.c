/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peers that may connect to a provider and call it, and the names by which it knows them.
 */
#include "cluster/provider/parts.h"
#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void guests_pass(uint64_t ns);

/*
 * --- fixture: a provider with the services demo.Echo and demo.Other, and several consumers,
 * which connect from addresses and as users that the test sets. Each is a process of a virtual
 * world. Handlers note by which names they know their caller
 */

#define GUESTS_PORT "dubbo://10.0.0.1:20880"
#define GUESTS_PATH "unix:/run/x.sock"
#define GUESTS_FILE "a.conf"

enum {
	GUESTS = 4,
	GUESTS_TEXT = 512,
};

/* A consumer. */
struct guest {
	struct spokei_world_process process;
	struct spoke_engine *engine; /* NULL: there is none */
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	/* The last call. */
	unsigned ends;
	int error;
	int32_t code;
	char text[GUESTS_TEXT]; /* of the error */
};

struct guests {
	struct spokei_world world;
	struct spokei_world_process process; /* of the provider */
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_config *config; /* NULL: none */
	struct guest guest[GUESTS];
	char names[GUESTS_TEXT]; /* of the caller, separated by blanks, as handlers saw them */
	unsigned handled;
	struct spoke_request *held; /* by "later" */
};

/* --- the fixture of tests about callers: */

static struct guests guests;

/* --- handlers */

static void note_names(const struct spoke_request *request)
{
	size_t used = 0;
	char name[256];

	guests.names[0] = '\0';
	for (size_t i = 0; spoke_request_identity(request, i, name, sizeof(name)) > 0; i++)
		used += (size_t)snprintf(guests.names + used, sizeof(guests.names) - used, "%s%s",
					 i ? " " : "", name);
	guests.handled++;
}

static void handle_echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	note_names(request);
	SPOKE_REPLY(request, 1);
}

static void handle_later(struct spoke_request *request, void *arg)
{
	(void)arg;
	guests.handled++;
	guests.held = request;
}

/* --- the provider */

/* Loads the settings file, before guests_begin(). */
static void guests_configure(const char *text)
{
	spokei_vfiles_put(guests.world.files, GUESTS_FILE, text);
	assert_int_equal(spoke_config_load(&guests.faulty.env, GUESTS_FILE, NULL, NULL,
					   &guests.config),
			 SPOKE_OK);
}

/* Reloads it. Returns the result. */
static int guests_reload(const char *text)
{
	int error;

	spokei_vfiles_put(guests.world.files, GUESTS_FILE, text);
	error = spoke_config_reload(guests.config, NULL, NULL);
	guests_pass(10 * MS);
	return error;
}

/* Makes the provider. Returns the result of spoke_provider_new(). */
static int guests_try(const struct spoke_provider_options *options)
{
	static const struct spoke_service_options services[] = { { .name = "demo.Echo" },
								 { .name = "demo.Other" } };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = handle_echo },
		{ .method = "later", .handle = handle_later },
		{ .method = "pool", .handle = handle_echo, .flags = SPOKE_HANDLER_POOL },
	};
	struct spoke_provider_options with = { .config = NULL };
	int error;

	if (options)
		with = *options;
	with.config = guests.config;
	error = spoke_provider_new(guests.engine, &with, &guests.provider);
	for (unsigned i = 0; i < 2 && error == 0; i++)
		assert_int_equal(spoke_provider_add(guests.provider, &services[i], handlers, 3), 0);
	return error;
}

/* Makes the provider, which listens at these URLs, up to a NULL. */
static void guests_begin(const struct spoke_provider_options *options, const char *const *urls)
{
	assert_int_equal(guests_try(options), 0);
	for (; *urls; urls++)
		assert_int_equal(spoke_provider_listen(guests.provider, *urls), 0);
}

/* --- consumers */

/* Makes a consumer of a URL that connects from this address, e.g. "10.0.0.7:0"; NULL: that of this
 * machine. At a unix socket it is user `uid` of group `gid`. */
static void guests_enter(unsigned which, const char *url, const char *from, uint32_t uid,
			 uint32_t gid)
{
	struct guest *guest = &guests.guest[which];
	struct spoke_engine_options engine = { .env = &guest->process.env };
	struct spoke_consumer_options with = { .url = url };

	guest->process.user.from = from;
	guest->process.user.uid = uid;
	guest->process.user.gid = gid;
	guest->process.user.pid = 4711;
	assert_null(guest->engine);
	assert_int_equal(spoke_engine_new(&engine, &guest->engine), 0);
	assert_int_equal(spoke_consumer_new(guest->engine, &with, &guest->consumer), 0);
	guests_pass(10 * MS);
}

static void guests_leave(unsigned which)
{
	struct guest *guest = &guests.guest[which];

	spoke_consumer_free(guest->consumer);
	spoke_engine_free(guest->engine);
	guest->consumer = NULL;
	guest->engine = NULL;
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct guest *guest = arg;

	guest->ends++;
	guest->error = result->error;
	guest->code = result->error_code;
	(void)snprintf(guest->text, sizeof(guest->text), "%.*s", (int)result->error_text.len,
		       result->error_text.len ? (const char *)result->error_text.data : "");
}

/* Calls a method and returns its error. */
static int guests_call(unsigned which, const char *method)
{
	struct guest *guest = &guests.guest[which];
	struct spoke_method *made;
	unsigned ends = guest->ends;
	int error;

	assert_int_equal(spoke_consumer_method(guest->consumer, method, NULL, &made), 0);
	error = spoke_call_with(made, SPOKE_NO_ARGS, call_done, guest);
	if (error)
		return error;
	guests_pass(100 * MS);
	if (strcmp(method, "later") == 0)
		return SPOKE_OK;
	assert_int_equal(guest->ends, ends + 1);
	return guest->error;
}

static void guests_pass(uint64_t ns)
{
	spokei_world_run(&guests.world, guests.world.now_ns + ns);
}

static uint64_t guests_stat(enum spoke_stat stat)
{
	return spoke_stat_get(guests.engine, stat);
}

/* Counts the events of the provider's engine that contain the words. */
static unsigned guests_events(const char *words)
{
	return scene_events(guests.engine, words);
}

/* --- set-up */

STEP(guests_set_up)
{
	memset(&guests, 0, sizeof(guests));
	scene_open(&guests.world, 7);
	guests.engine = scene_engine(&guests.world, &guests.process, &guests.faulty, NULL);
	for (unsigned i = 0; i < GUESTS; i++)
		spokei_world_process_init(&guests.guest[i].process, &guests.world);
}

STEP(guests_tear_down)
{
	for (unsigned i = 0; i < GUESTS; i++)
		if (guests.guest[i].engine)
			guests_leave(i);
	spoke_provider_free(guests.provider);
	guests_pass(10 * MS);
	if (guests.held)
		SPOKE_REPLY(guests.held, 1);
	spoke_config_free(guests.config);
	scene_leave(&guests.process, &guests.faulty, &guests.engine);
	for (unsigned i = 0; i < GUESTS; i++)
		spokei_world_process_fini(&guests.guest[i].process);
	spokei_world_fini(&guests.world);
}

/* --- the peers that may connect to a provider */

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

	process->user.from = from;
	return scene_connect(&process->env, "10.0.0.1:20880");
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

/* --- the callers that a provider lets in, and reloads of its lists */

#define OTHER_PORT GUESTS_PORT "/demo.Other?timeout=1s&retries=0"

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
	for (unsigned i = 0; i < 3; i++)
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

/* --- the names by which a provider knows its callers */

static const char *const identity_everywhere[] = { GUESTS_PORT, "dubbo://[2001:db8::1]:20880",
						   GUESTS_PATH, NULL };

TEST(caller_is_known_by_its_address)
{
	guests_begin(NULL, identity_everywhere);
	guests_enter(0, GUESTS_PORT "/demo.Echo", "10.0.0.7:0", 0, 0);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "addr:10.0.0.7");
	guests_enter(1, "dubbo://[2001:db8::1]:20880/demo.Echo", "[2001:db8::7]:0", 0, 0);
	assert_int_equal(guests_call(1, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "addr:2001:db8::7");
}

TEST(caller_at_a_path_is_known_as_user_of_connect)
{
	guests_begin(NULL, identity_everywhere);
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
	guests_begin(NULL, identity_everywhere);
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

	guests_begin(&options, identity_everywhere);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 7, 7);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(seen, "uid:7");
}

TEST(identity_outlives_the_connection_with_its_request)
{
	char name[64];

	guests_begin(NULL, identity_everywhere);
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
	guests_begin(NULL, identity_everywhere);
	spokei_faults_fail(&guests.faulty, SPOKEI_FAULTS_CREDENTIALS, 1, -EPERM, true);
	guests_enter(0, GUESTS_PATH "?interface=demo.Echo", NULL, 1000, 100);
	assert_int_equal(guests_call(0, "echo"), SPOKE_OK);
	assert_string_equal(guests.names, "");
}

TEST(connection_without_memory_for_its_identity_is_closed)
{
	guests_begin(NULL, identity_everywhere);
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
