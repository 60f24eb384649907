/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls over shared memory between real processes: addresses, peers that speak something else, and
 * peers that are killed or scribble over the memory. The provider is in this process.
 */
#define _GNU_SOURCE

#include "tests/support/test.h"
#include "transport/stream/shm/ring.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/error.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/value.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	char folder[64];
	char place[96];
	char plain[96];
	struct spoke_engine *server;
	struct spoke_provider *provider;
	struct spoke_engine *client;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned ended;
	int error;
	bool same;
} rig;

static char text[100000];

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

static void make_provider(void)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };

	assert_int_equal(spoke_engine_new(NULL, &rig.server), 0);
	assert_int_equal(spoke_provider_new(rig.server, NULL, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	memset(text, 'x', sizeof(text) - 1);
	(void)snprintf(rig.folder, sizeof(rig.folder), "/tmp/spoke-test-shared-XXXXXX");
	if (mkdtemp(rig.folder) == NULL)
		return -1;
	(void)snprintf(rig.place, sizeof(rig.place), "shm:%s/s", rig.folder);
	(void)snprintf(rig.plain, sizeof(rig.plain), "unix:%s/p", rig.folder);
	make_provider();
	assert_int_equal(spoke_provider_listen(rig.provider, rig.place), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, rig.plain), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(rig.client);
	spoke_engine_free(rig.server);
	return rmdir(rig.folder);
}

FIXTURE(set_up, tear_down);

static void turn_both(void)
{
	assert_int_equal(spoke_engine_turn(rig.server, false), 0);
	if (rig.client)
		assert_int_equal(spoke_engine_turn(rig.client, false), 0);
}

static void consume(const char *place, const char *query)
{
	char url[256];
	const struct spoke_consumer_options options = {
		.url = url,
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
	};

	(void)snprintf(url, sizeof(url), "%s?interface=demo.Echo%s", place, query);
	if (rig.client == NULL)
		assert_int_equal(spoke_engine_new(NULL, &rig.client), 0);
	assert_int_equal(spoke_consumer_new(rig.client, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	struct spoke_span got = { NULL, 0 };

	rig.ended++;
	rig.error = result->error;
	rig.same = result->error == 0 && spoke_value_str(result->value, &got) == 0 &&
		   got.len == *(size_t *)arg && memcmp(got.data, text, got.len) == 0;
}

/* Packs the arguments of a call: a text of this length. */
static void pack_text(struct spoke_builder *builder, size_t len, struct spoke_span *ret_args)
{
	spoke_builder_init(builder, spoke_host_env(), NULL);
	spoke_pack_str(builder, text, len);
	assert_int_equal(spoke_builder_finish(builder, ret_args), 0);
}

/* Calls with a text of this length. Its deadline bounds the time. */
static int call(size_t len)
{
	const struct spoke_call_options options = { .timeout_ns = 20 * SECOND };
	struct spoke_builder builder;
	struct spoke_span args;
	unsigned before = rig.ended;

	pack_text(&builder, len, &args);
	assert_int_equal(spoke_call(rig.echo, args, &options, note_end, &len, NULL), 0);
	spoke_builder_fini(&builder);
	while (rig.ended == before)
		turn_both();
	assert_true(rig.error || rig.same);
	return rig.error;
}

static uint64_t now(void)
{
	return spoke_host_env()->now(spoke_host_env()->ctx);
}

/* Turns until the provider has closed this many connections for that reason. */
static void await_stat(enum spoke_stat stat, uint64_t least)
{
	uint64_t until_ns = now() + 20 * SECOND;

	while (spoke_stat_get(rig.server, stat) < least) {
		assert_true(now() < until_ns);
		turn_both();
	}
}

TEST(calls_of_all_lengths_are_answered)
{
	consume(rig.place, "&shm.ring=4KiB");
	for (size_t len = 1; len < sizeof(text); len = len * 3 + 1)
		assert_int_equal(call(len), SPOKE_OK);
}

TEST(the_address_is_printed_as_it_was_written)
{
	char shown[128];

	assert_true(spoke_provider_address(rig.provider, 0, shown, sizeof(shown)) > 0);
	assert_string_equal(shown, rig.place);
	assert_true(spoke_provider_address(rig.provider, 1, shown, sizeof(shown)) > 0);
	assert_string_equal(shown, rig.plain);
}

/* Returns the first event of the engine that contains the text. */
static const char *event_with(const struct spoke_engine *engine, const char *part)
{
	static struct spoke_event event;

	event.number = 0;
	while (spoke_event_get(engine, event.number + 1, &event) == 0)
		if (strstr(event.text, part))
			return event.text;
	return NULL;
}

TEST(an_endpoint_is_named_as_it_was_written)
{
	struct spoke_endpoint_info info;
	const char *event;

	consume(rig.place, "");
	assert_int_equal(call(1), SPOKE_OK);
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, &info, 1), 1);
	assert_string_equal(info.name, rig.place);
	event = event_with(rig.client, "connected to");
	assert_non_null(event);
	assert_non_null(strstr(event, rig.place));
	assert_null(strstr(event, "unix:"));
}

TEST(a_failure_to_listen_names_the_place_as_it_was_written)
{
	assert_int_equal(spoke_provider_listen(rig.provider, "shm:/no/s"), SPOKE_ESYSTEM);
	assert_non_null(event_with(rig.server, "cannot listen at shm:/no/s"));
	assert_int_equal(spoke_provider_listen(rig.provider, "unix:/no/s"), SPOKE_ESYSTEM);
	assert_non_null(event_with(rig.server, "cannot listen at unix:/no/s"));
}

TEST(rings_out_of_bounds_are_refused)
{
	static const char *const queries[] = { "4095", "1MiB1", "2MiB", "0" };
	char url[256];
	struct spoke_consumer_options options = { .url = url };

	assert_int_equal(spoke_engine_new(NULL, &rig.client), 0);
	for (unsigned i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		(void)snprintf(url, sizeof(url), "%s?interface=demo.Echo&shm.ring=%s", rig.place,
			       queries[i]);
		assert_true(spoke_consumer_new(rig.client, &options, &rig.consumer) < 0);
	}
}

TEST(a_plain_client_is_told_apart)
{
	char plain[128];

	(void)snprintf(plain, sizeof(plain), "unix:%s/s", rig.folder);
	consume(plain, "&retries=0");
	(void)call(1);
	await_stat(SPOKE_STAT_CLOSED_HANDSHAKE, 1);
	assert_non_null(strstr(spoke_engine_why(rig.server), "no hello of shared memory"));
	assert_non_null(strstr(spoke_strerror(SPOKE_EHANDSHAKE), "handshake"));
	assert_null(strstr(spoke_strerror(SPOKE_EHANDSHAKE), "secure"));
}

TEST(a_plain_provider_is_told_apart)
{
	char place[128];
	uint64_t until_ns = now() + 20 * SECOND;

	(void)snprintf(place, sizeof(place), "shm:%s/p", rig.folder);
	consume(place, "");
	while (strstr(spoke_engine_why(rig.client), "may listen at unix:/PATH only") == NULL) {
		assert_true(now() < until_ns);
		turn_both();
	}
}

/* Starts a process that calls; it ends when it is killed. */
static pid_t start_caller(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	/* The engine of the parent does nothing here; this process only calls. */
	rig.client = NULL;
	{
		char url[256];
		const struct spoke_consumer_options options = { .url = url };

		(void)snprintf(url, sizeof(url), "%s?interface=demo.Echo", rig.place);
		if (spoke_engine_new(NULL, &rig.client) ||
		    spoke_consumer_new(rig.client, &options, &rig.consumer))
			_exit(1);
		(void)!spoke_engine_run(rig.client);
	}
	_exit(1);
}

/* Returns how many times memory of rings is mapped; *ret_last: where, the last time. */
static unsigned count_rings(void **ret_last)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/memfd:spoke") == NULL)
			continue;
		*ret_last = (void *)(uintptr_t)strtoull(line, NULL, 16);
		count++;
	}
	assert_int_equal(fclose(maps), 0);
	return count;
}

TEST(rings_of_a_killed_consumer_are_freed)
{
	pid_t pid = start_caller();
	void *last = NULL;
	int status;

	assert_true(pid > 0);
	assert_int_equal(count_rings(&last), 0);
	await_stat(SPOKE_STAT_PROBES_READ, 1);
	assert_int_equal(count_rings(&last), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	await_stat(SPOKE_STAT_CLOSED_BY_PEER, 1);
	assert_int_equal(count_rings(&last), 0);
	consume(rig.place, "");
	assert_int_equal(call(10), SPOKE_OK);
}

static void die(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	(void)kill(getpid(), SIGKILL);
}

/* Starts a process that provides at this place until it is killed, and one of its methods kills it.
 */
static pid_t start_provider(const char *place)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "die", .handle = die },
	};
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (spoke_engine_new(NULL, &engine) == 0 &&
	    spoke_provider_new(engine, NULL, &provider) == 0 &&
	    spoke_provider_add(provider, &service, handlers, 2) == 0 &&
	    spoke_provider_listen(provider, place) == 0)
		(void)!spoke_engine_run(engine);
	_exit(1);
}

static void note_loss(void *arg, const struct spoke_result *result)
{
	unsigned *lost = arg;

	rig.ended++;
	*lost += result->error == SPOKE_ELOST;
}

TEST(calls_end_when_a_provider_is_killed_and_go_to_its_successor)
{
	const struct spoke_call_options options = { .timeout_ns = 60 * SECOND };
	struct spoke_builder builder;
	struct spoke_method *death;
	struct spoke_span args;
	unsigned lost = 0;
	char place[96];
	pid_t pid;
	int status;

	(void)snprintf(place, sizeof(place), "shm:%s/k", rig.folder);
	pid = start_provider(place);
	assert_true(pid > 0);
	consume(place, "&retries=0&wait.ready=true");
	assert_int_equal(call(1000), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(rig.consumer, "die", NULL, &death), 0);
	pack_text(&builder, 10, &args);
	rig.ended = 0;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(spoke_call(i ? rig.echo : death, args, &options, note_loss, &lost,
					    NULL),
				 0);
	spoke_builder_fini(&builder);
	while (rig.ended < 10)
		turn_both();
	assert_int_equal(lost, 10);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid = start_provider(place);
	assert_true(pid > 0);
	assert_int_equal(call(1000), SPOKE_OK);
	assert_int_equal(call(sizeof(text) - 1), SPOKE_OK);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(unlink(place + strlen("shm:")), 0);
}

/* --- fork */

static void do_nothing(struct spoke_alarm *alarm)
{
	(void)alarm;
}

/* Has an engine sleep until an alarm. */
static void sleep_once(struct spoke_engine *engine)
{
	struct spoke_alarm alarm = { .engine = NULL };
	uint64_t until_ns = now() + 2 * MS;

	assert_int_equal(spoke_alarm_after(engine, &alarm, 2 * MS, do_nothing), 0);
	while (now() < until_ns)
		assert_int_equal(spoke_engine_turn(engine, true), 0);
	(void)spoke_alarm_cancel(&alarm);
}

/* Uses everything that its parent has, and ends. */
static void use_as_child(void)
{
	struct spoke_span args = { "\x90", 1 };
	bool refused = spoke_call(rig.echo, args, NULL, note_end, NULL, NULL) == SPOKE_EFORKED &&
		       spoke_engine_turn(rig.client, false) == SPOKE_EFORKED &&
		       spoke_engine_turn(rig.server, false) == SPOKE_EFORKED;

	spoke_engine_free(rig.client);
	spoke_engine_free(rig.server);
	_exit(refused ? 0 : 1);
}

/* Both sides sleep, so each access of the child would be seen. */
TEST(a_child_leaves_the_rings_of_its_parent_alone)
{
	static unsigned char before[SPOKEI_RING_AT + 2 * 4096];
	const struct spokei_ring_front *front;
	void *memory = NULL;
	int status = 1;
	pid_t child;

	consume(rig.place, "&shm.ring=4KiB");
	assert_int_equal(call(1000), SPOKE_OK);
	assert_int_equal(count_rings(&memory), 2);
	front = memory;
	do {
		sleep_once(rig.server);
		sleep_once(rig.client);
	} while (front->asleep[0].bits == 0 || front->asleep[1].bits == 0);
	memcpy(before, memory, sizeof(before));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		use_as_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_memory_equal(memory, before, sizeof(before));
	assert_int_equal(call(1000), SPOKE_OK);
	assert_int_equal(spoke_stat_get(rig.server, SPOKE_STAT_CLOSED), 0);
}

/* Writes anything anywhere, and rings, until it is killed. */
static void scribble(void)
{
	const struct spoke_env *env = spoke_host_env();
	unsigned char hello[16] = { 0xf5, 's', 'h', 'm', 1, 12 };
	struct iovec part = { hello, sizeof(hello) };
	struct spoke_address address;
	struct spoke_shared shared;
	char place[96];
	uint64_t dice = 1;
	int fd = -1;

	(void)snprintf(place, sizeof(place), "unix:%s/s", rig.folder);
	for (;;) {
		unsigned char *bytes;

		if (env->net->parse(env->ctx, place, &address) ||
		    env->net->connect(env->ctx, &address, &fd) ||
		    env->net->share(env->ctx, fd, &part, spokei_ring_memory(4096), &shared))
			_exit(1);
		bytes = shared.memory;
		for (unsigned i = 0; i < 2000; i++) {
			static const size_t words[] = { 0, 4, 128, 256, 260, 384, 512, 640 };
			uint32_t word;
			struct iovec bell = { hello, 1 };

			env->dice(env->ctx, &dice, sizeof(dice));
			word = (uint32_t)(dice >> 8) % (i % 4 == 0 ? UINT32_MAX : 5000);
			memcpy(bytes + words[dice % 8], &word, sizeof(word));
			env->dice(env->ctx, bytes + 4096 + dice % 8000, 64);
			(void)env->net->write(env->ctx, fd, &bell, 1);
		}
		env->net->unshare(env->ctx, &shared);
		env->net->close(env->ctx, fd);
	}
}

TEST(a_peer_that_scribbles_harms_nobody_else)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		scribble();
	assert_true(pid > 0);
	consume(rig.place, "");
	await_stat(SPOKE_STAT_CLOSED_PROTOCOL, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(call(1000), SPOKE_OK);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(call(sizeof(text) - 1), SPOKE_OK);
}

/* --- limits */

#define FLOOD 100u
#define FLOOD_LEN 500u

static void count_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error ? result->error : rig.error;
}

/* Calls often without a token, and sends all requests. */
static void flood(void)
{
	const struct spoke_call_options options = { .timeout_ns = 60 * SECOND };
	struct spoke_method *method;
	struct spoke_builder builder;
	struct spoke_span args;

	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &method), 0);
	pack_text(&builder, FLOOD_LEN, &args);
	for (unsigned i = 0; i < FLOOD; i++)
		assert_int_equal(spoke_call(method, args, &options, count_end, NULL, NULL), 0);
	spoke_builder_fini(&builder);
	assert_int_equal(spoke_engine_turn(rig.client, false), 0);
}

static void make_private_provider(void)
{
	static const char patient[] = "[provider]\nauth.failures.max = 1000\n";
	struct spoke_provider_options options = { .token = "correct-horse-1" };
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	char place[96];

	(void)snprintf(place, sizeof(place), "shm:%s/t", rig.folder);
	assert_int_equal(spoke_config_parse(NULL, "patient",
					    (struct spoke_span){ patient, sizeof(patient) - 1 },
					    NULL, NULL, &options.config),
			 0);
	assert_int_equal(spoke_provider_new(rig.server, &options, &rig.provider), 0);
	spoke_config_free(options.config);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, place), 0);
	consume(place, "&retries=0");
}

/* All answers would fit into the ring. */
TEST(an_unproven_peer_that_does_not_read_is_not_read)
{
	uint64_t before;

	make_private_provider();
	await_stat(SPOKE_STAT_PROBES_READ, 1);
	for (unsigned i = 0; i < 10; i++)
		turn_both();
	before = spoke_stat_get(rig.server, SPOKE_STAT_MESSAGES_WRITTEN);
	flood();
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(spoke_engine_turn(rig.server, false), 0);
	assert_in_range(spoke_stat_get(rig.server, SPOKE_STAT_MESSAGES_WRITTEN) - before, 1, 20);
	assert_true(spoke_stat_get(rig.server, SPOKE_STAT_READS_PAUSED) > 0);
	assert_int_equal(rig.ended, 0);
	while (rig.ended < FLOOD)
		turn_both();
	assert_int_equal(rig.error, SPOKE_EFORBIDDEN);
}
