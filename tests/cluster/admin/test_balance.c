/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls and requests end in all ways, and the figures balance at each step: counters of methods add
 * up to those of their engine, everything that has begun has ended or is under way, and at the end
 * all that the metrics show of the present is as it was before.
 */
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/balance.h"
#include "tests/support/test.h"

#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig
#define TIMEOUT (200 * MS)

static struct spoke_method *echo;
static struct spoke_method *pool;

static bool seen[SPOKEI_FIGURES_COUNTERS];

static struct rig_provider *it(void)
{
	return &rig.providers[0];
}

static void serve_in_pool(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void start_provider(void)
{
	static const struct spoke_service_options service = { .name = "demo.Pool" };
	static const struct spoke_handler handler = { .handle = serve_in_pool,
						      .flags = SPOKE_HANDLER_POOL };

	if (it()->engine == NULL)
		clusterrig_start(0);
	assert_int_equal(spoke_provider_add(it()->provider, &service, &handler, 1), 0);
	it()->engine->env->loop->pool_limit(it()->engine->loop, 1, 2);
}

static void start_consumer(void)
{
	const struct spoke_method_options options = { .service = "demo.Pool" };

	clusterrig_consume("cluster=failfast&eject.failures=0&timeout=200ms&wait.ready=true", NULL);
	echo = clusterrig_method("echo", NULL);
	pool = clusterrig_method("work", &options);
}

static int set_up(void **state)
{
	if (statusrig_set_up(state))
		return -1;
	clusterrig_provide(1);
	start_provider();
	start_consumer();
	return 0;
}

FIXTURE(set_up, statusrig_tear_down);

/* --- what has to balance */

static void balance(struct spoke_engine *engine, uint64_t calls, uint64_t requests)
{
	char text[BALANCE_TEXT];
	const char *wrong = balance_wrong(engine, calls, requests, text);

	if (wrong)
		fail_msg("%s", wrong);
}

/* Lets some time pass, and checks both engines. */
static void pass(uint64_t ns)
{
	clusterrig_pass(ns);
	balance(rig.engine, rig.call_count - rig.ended, 0);
	if (it()->engine)
		balance(it()->engine, 0, it()->provider->link->serving_count);
}

static void call(struct spoke_method *method, int error)
{
	const struct rig_call *made = clusterrig_call(method);

	for (unsigned i = 0; i < 100 && made->ends == 0; i++)
		pass(TIMEOUT / 20);
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, error);
}

/* Notes the ends that were counted, before an engine goes. */
static void note_seen(void)
{
	for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++)
		if (clusterrig_stat(balance_stat(i)) > 0 ||
		    spoke_stat_get(it()->engine, balance_stat(i)) > 0)
			seen[i] = true;
}

/* --- all ways to end */

static void answer_held(void)
{
	while (it()->held_count > 0)
		spoke_reply(it()->held[--it()->held_count], (struct spoke_value){ NULL, 0 });
	pass(10 * MS);
}

static void end_at_the_provider(void)
{
	static const struct {
		enum rig_manner manner;
		int error;
	} ways[] = {
		{ RIG_ERROR, SPOKE_EREMOTE },     { RIG_REFUSE, SPOKE_EREFUSED },
		{ RIG_FORBID, SPOKE_EFORBIDDEN }, { RIG_SLOW, SPOKE_OK },
		{ RIG_SILENT, SPOKE_ETIMEOUT },   { RIG_ECHO, SPOKE_OK },
	};
	const struct spoke_method_options nowhere = { .service = "demo.None" };
	const struct spoke_call_options one_way = { .one_way = true };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		it()->manner = ways[i].manner;
		call(echo, ways[i].error);
	}
	answer_held(); /* late */
	call(clusterrig_method("echo", &nowhere), SPOKE_ENOSERVICE);
	(void)clusterrig_call_with(echo, &one_way);
	pass(10 * MS);
}

static void release_pool(void)
{
	it()->process.pool_is_busy = false;
	call(echo, SPOKE_OK); /* it turns */
	pass(10 * MS);
}

static void end_in_the_pool(void)
{
	const struct spoke_call_options one_way = { .one_way = true };

	call(pool, SPOKE_OK);
	/* It has room for two. The first one's deadline passes while it waits. */
	it()->process.pool_is_busy = true;
	(void)clusterrig_call(pool);
	(void)clusterrig_call_with(pool, &one_way);
	pass(10 * MS);
	call(pool, SPOKE_EREFUSED);
	pass(2 * TIMEOUT);
	release_pool();
}

/* The connection goes while requests wait for the pool, for their handlers, and for answers. */
static void end_with_the_connection(void)
{
	it()->process.pool_is_busy = true;
	it()->manner = RIG_SILENT;
	(void)clusterrig_call(pool);
	(void)clusterrig_call(echo);
	pass(10 * MS);
	clusterrig_free_consumer();
	pass(100 * MS);
	assert_int_equal(rig.ended, rig.call_count);
	answer_held();
	it()->manner = RIG_ECHO;
	start_consumer();
	release_pool();
}

static void end_at_the_consumer(void)
{
	static const unsigned char nil = 0xc0;
	const struct spoke_method_options falls_back = { .fallback = { &nil, 1 } };
	const struct spoke_call_options failback = { .policy = &spoke_policy_failback };
	static const unsigned char no_value = 0xc1;
	struct spoke_method *safe = clusterrig_method("safe", &falls_back);
	struct rig_call *made;

	it()->manner = RIG_SILENT;
	call(safe, SPOKE_OK);
	made = clusterrig_call(echo);
	pass(10 * MS);
	assert_true(spoke_call_cancel(rig.consumer, made->name));
	pass(10 * MS);
	made = clusterrig_call_with(echo, &failback);
	pass(2 * TIMEOUT);
	assert_int_equal(made->error, SPOKE_EDEFERRED);
	assert_true(spoke_ticket_cancel(rig.consumer, made->ticket));
	assert_int_not_equal(spoke_call(echo, (struct spoke_span){ &no_value, 1 }, NULL, NULL, NULL,
					NULL),
			     SPOKE_OK);
	answer_held();
}

static void end_with_the_provider(void)
{
	(void)clusterrig_call(echo);
	(void)clusterrig_call(pool);
	pass(10 * MS);
	note_seen();
	clusterrig_kill(0);
	pass(100 * MS);
	call(echo, SPOKE_ETIMEOUT_UNSENT);
	start_provider();
	for (unsigned i = 0; i < 100 && spoke_consumer_ready(rig.consumer) == 0; i++)
		pass(100 * MS);
}

/* Compares all present numbers of the metrics but times with those of before. Returns how many
 * there are. */
static unsigned compare(const char *before, const char *after)
{
	unsigned count = 0;
	bool gauge = false;
	size_t len;

	for (const char *line = before; *line; line += len + (line[len] != '\0')) {
		char text[256];

		len = strcspn(line, "\n");
		assert_true(len + 2 < sizeof(text));
		(void)snprintf(text, sizeof(text), "\n%.*s\n", (int)len, line);
		if (*line == '#') {
			gauge = strstr(text, " gauge\n") && !strstr(text, "_seconds ");
			continue;
		}
		if (!gauge)
			continue;
		count++;
		if (strstr(after, text) == NULL)
			fail_msg("no longer so: %s", text + 1);
	}
	return count;
}

TEST(figures_balance_however_calls_end)
{
	static char before[1 << 18];

	call(echo, SPOKE_OK);
	call(pool, SPOKE_OK);
	(void)snprintf(before, sizeof(before), "%s", statusrig_metrics(it()->engine));
	end_at_the_provider();
	end_in_the_pool();
	end_with_the_connection();
	end_at_the_consumer();
	assert_true(compare(before, statusrig_metrics(it()->engine)) > 10);
	end_with_the_provider();
	note_seen();
	for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++)
		if (balance_stat(i) != SPOKE_STAT_CALLS_FAILED && !seen[i])
			fail_msg("no %s", spoke_stat_name(balance_stat(i)));
}
