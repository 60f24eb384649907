/* SPDX-License-Identifier: Apache-2.0 */
/* Leases at a real Redis, with a record of all that they report; see redisrig.h. */
#define _GNU_SOURCE
#include "tests/integration/redisrig.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS MS
#define SETTLE_NAME "settle"

struct redisrig redisrig;
struct redisserver redis;

/* --- the environment */

static void log_line(void *ctx, const struct spoke_log_line *line)
{
	size_t room = sizeof(redisrig.log) - redisrig.log_len;
	int len;

	(void)ctx;
	if (line->level > SPOKE_LOG_WARN)
		return;
	redisrig.log_lines++;
	len = snprintf(redisrig.log + redisrig.log_len, room, "%s: %s\n", line->module, line->text);
	redisrig.log_len += len > 0 && (size_t)len < room ? (size_t)len : 0;
}

unsigned redisrig_logged(const char *words)
{
	const char *at = redisrig.log;
	unsigned count = 0;

	while ((at = strstr(at, words)) != NULL) {
		at += strlen(words);
		count++;
	}
	return count;
}

/* --- callbacks */

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct asked *asked = arg;

	assert_int_equal(asked->told, 1);
	assert_int_equal(asked->error, SPOKE_OK);
	assert_int_equal(asked->released, 0);
	assert_int_equal(spoke_lease_left(lease), 0);
	assert_int_equal(lease.handle, asked->lease.handle);
	asked->lost++;
	asked->why = why;
	asked->lost_ns = rig_now();
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct asked *asked = arg;

	asked->told++;
	asked->told_ns = rig_now();
	asked->error = answer->error;
	asked->busy_ns = answer->left_ns;
	asked->fence = answer->fence;
	asked->valid_ns = spoke_lease_left(lease);
	(void)snprintf(asked->text, sizeof(asked->text), "%.*s", (int)answer->text.len,
		       (const char *)answer->text.data);
	if (answer->error)
		return;
	assert_true(asked->valid_ns > 0);
	assert_int_equal(spoke_lease_fence(lease), answer->fence);
	assert_true(answer->fence > 0);
}

static void released(void *arg, int error)
{
	struct asked *asked = arg;

	asked->released++;
	asked->release_error = error;
}

/* --- leases */

void redisrig_open(const struct spoke_leases_options *options)
{
	struct spoke_leases_options all = *options;
	char url[128];

	(void)snprintf(url, sizeof(url), "redis+unix://%s", redisrelay_path());
	if (all.store == NULL)
		all.store = url;
	assert_int_equal(spoke_leases_new(redisrig.engine, &all, &redisrig.leases), 0);
}

static bool is_connected(void)
{
	struct spoke_leases_look look;

	spoke_leases_look(redisrig.leases, &look);
	return look.connected;
}

void redisrig_open_ttl(uint64_t ttl_ns)
{
	redisrig_open(&(struct spoke_leases_options){ .ttl_ns = ttl_ns });
	redisrig_until(is_connected());
}

void redisrig_open_direct(uint64_t ttl_ns)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "redis+unix://%s", redis.path);
	redisrig_open(&(struct spoke_leases_options){ .ttl_ns = ttl_ns, .store = url });
	redisrig_until(is_connected());
}

void redisrig_free(void)
{
	spoke_leases_free(redisrig.leases);
	redisrig.leases = NULL;
}

struct asked *redisrig_ask_at(struct spoke_leases *leases, const char *name,
			      const struct spoke_lease_options *options)
{
	struct asked *asked = &redisrig.asks[redisrig.ask_count++];
	struct spoke_lease_options all = *options;

	assert_true(redisrig.ask_count <= REDISRIG_ASKS_MAX);
	(void)snprintf(asked->name, sizeof(asked->name), "%s", name);
	all.lost = lost;
	all.arg = asked;
	assert_int_equal(spoke_lease_ask(leases, name, &all, told, &asked->lease), 0);
	assert_int_equal(asked->told, 0);
	return asked;
}

struct asked *redisrig_ask(const char *name, uint64_t wait_ns)
{
	return redisrig_ask_at(redisrig.leases, name,
			       &(struct spoke_lease_options){ .wait_ns = wait_ns });
}

int redisrig_answer(const struct asked *asked)
{
	redisrig_until(asked->told > 0);
	return asked->error;
}

struct asked *redisrig_hold(const char *name)
{
	struct asked *asked = redisrig_ask(name, SPOKE_LEASE_FOREVER);

	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	return asked;
}

void redisrig_begin_release(struct asked *asked)
{
	assert_int_equal(spoke_lease_release(asked->lease, released, asked), 0);
	assert_int_equal(asked->released, 0);
	assert_int_equal(spoke_lease_left(asked->lease), 0);
	asked->is_cancelled = true;
}

int redisrig_release(struct asked *asked)
{
	redisrig_begin_release(asked);
	redisrig_until(asked->released > 0);
	return asked->release_error;
}

enum spoke_lease_loss redisrig_loss(const struct asked *asked)
{
	redisrig_until(asked->lost > 0);
	return asked->why;
}

uint64_t redisrig_left(const struct asked *asked)
{
	return spoke_lease_left(asked->lease);
}

void redisrig_until_renewed(const struct asked *asked)
{
	int64_t before = stranger_number("PTTL", asked->name);
	int64_t after = before;

	while (after <= before) {
		before = after;
		redisrig_turn();
		after = stranger_number("PTTL", asked->name);
		assert_true(after > 0);
	}
}

void redisrig_settle(void)
{
	assert_int_equal(redisrig_release(redisrig_hold(SETTLE_NAME)), SPOKE_OK);
}

static bool is_subscribed(const char *name)
{
	char channel[REDISPEER_NAME];

	redispeer_channel(name, channel);
	return strcmp(stranger("PUBSUB", "NUMSUB", channel) + 1 + strlen(channel), " 1]") == 0;
}

void redisrig_until_waiting(const char *name)
{
	redisrig_until(is_subscribed(name));
	/* Reads the reply to the subscription, and the answer to the try that follows. */
	redisrig_settle();
	redisrig_settle();
}

/* --- looks */

static unsigned calls_of(const char *command)
{
	const char *text = stranger("INFO", "commandstats");
	char key[64];
	const char *at;

	(void)snprintf(key, sizeof(key), "cmdstat_%s:calls=", command);
	at = strstr(text, key);
	return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : 0;
}

unsigned redisrig_scripts(void)
{
	return calls_of("eval") + calls_of("evalsha");
}

/* --- time */

static void nothing_due(struct spoke_alarm *alarm)
{
	(void)alarm;
}

void redisrig_turn(void)
{
	struct spoke_alarm alarm = { 0 };

	assert_int_equal(spoke_alarm_after(redisrig.engine, &alarm, TURN_NS, nothing_due), 0);
	assert_int_equal(spoke_engine_turn(redisrig.engine, true), 0);
	(void)spoke_alarm_cancel(&alarm);
	redisrelay_pump();
}

void redisrig_turn_until(uint64_t end_ns, const char *what, const char *file, int line)
{
	if (rig_now() > end_ns)
		fail_msg("%s:%d: did not become true in time: %s; log:\n%s", file, line, what,
			 redisrig.log);
	redisrig_turn();
}

/* --- life */

RIG_STEP(redisrig_set_up_all)
{
	redisserver_make(&redis, 0, "");
}

RIG_STEP(redisrig_tear_down_all)
{
	redisserver_unmake(&redis);
}

/* A failed test may have left the server in a state in which it refuses commands. */
static void empty_server(void)
{
	redisserver_rouse(&redis);
	stranger_goes_to(redis.path);
	if (strcmp(stranger("FLUSHALL"), "OK") == 0)
		return;
	redisserver_kill(&redis);
	redisserver_rouse(&redis);
}

RIG_STEP(redisrig_set_up)
{
	memset(&redisrig, 0, sizeof(redisrig));
	spokei_faults_init(&redisrig.faulty, spoke_host_env());
	redisrig.env = redisrig.faulty.env;
	redisrig.env.log = log_line;
	empty_server();
	assert_string_equal(stranger("CONFIG", "RESETSTAT"), "OK");
	redisrelay_open(redis.path);
	assert_int_equal(spoke_engine_new(&(struct spoke_engine_options){ .env = &redisrig.env },
					  &redisrig.engine),
			 0);
}

/* Each ask is told once; a held lease ends once, and what was released is told so once. */
static void assert_ended_once(const struct asked *asked)
{
	assert_int_equal(asked->told, 1);
	assert_int_equal(asked->released, asked->is_cancelled);
	if (asked->error == SPOKE_OK)
		assert_int_equal(asked->lost + asked->released, 1);
	else
		assert_int_equal(asked->lost, 0);
}

RIG_STEP(redisrig_tear_down)
{
	redisrig_free();
	spoke_engine_free(redisrig.engine);
	redisrelay_close();
	stranger_leaves();
	for (size_t i = 0; i < redisrig.ask_count; i++)
		assert_ended_once(&redisrig.asks[i]);
	assert_int_equal(redisrig.faulty.blocks, 0);
	assert_int_equal(redisrig.faulty.fds, 0);
}
