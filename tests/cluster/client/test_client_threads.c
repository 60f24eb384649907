/* SPDX-License-Identifier: Apache-2.0 */
/* A client that many threads ask, also while it is freed. */
#include "tests/cluster/consumer/futurerig.h"
#include "tests/support/test.h"

#include "cluster/client/parts.h"

#include <spoke/host.h>

#include <stdio.h>

#define THREADS 8

struct asker {
	struct spoke_client *client;
	const char *method;
	unsigned number;
	unsigned good;
	int error; /* of the last call */
	char why[256];
};

static struct spoke_client *dial(struct rig *rig)
{
	struct spoke_client_options options = { .env = &rig->client_env };
	struct spoke_client *client;
	char url[256];

	(void)snprintf(url, sizeof(url), "%s%ctimeout=60s", rig->url,
		       strchr(rig->url, '?') ? '&' : '?');
	assert_int_equal(spoke_dial_with(url, &options, &client), SPOKE_OK);
	return client;
}

/* --- many threads */

static void ask_often(void *arg)
{
	struct asker *asker = arg;

	for (unsigned i = 0; i < 100; i++) {
		struct spoke_answer answer;
		unsigned number = 0;

		/* All threads ask for the same new methods at about the same time. */
		if (spoke_ask(asker->client, i % 2 ? "echo" : "pool",
			      SPOKE_ARGS(asker->number * 1000 + i), &answer) == 0 &&
		    SPOKE_READ_ANSWER(&answer, &number) == 0)
			asker->good += number == asker->number * 1000 + i;
		spoke_answer_free(&answer);
	}
}

static void ask_from_threads(enum rig_place place)
{
	struct asker askers[THREADS];
	void *threads[THREADS];
	struct spoke_client *client;
	struct rig rig;

	futurerig_set_up(&rig, place);
	client = dial(&rig);
	for (unsigned i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .client = client, .number = i };
		threads[i] = futurerig_thread(ask_often, &askers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		futurerig_join(threads[i]);
		assert_int_equal(askers[i].good, 100);
	}
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(each_thread_gets_its_own_answers)
{
	ask_from_threads(RIG_TCP);
	ask_from_threads(RIG_UNIX);
}

/* --- the end */

static void ask_once(void *arg)
{
	struct asker *asker = arg;
	struct spoke_answer answer;

	asker->error = spoke_ask(asker->client, asker->method, SPOKE_NO_ARGS, &answer);
	(void)snprintf(asker->why, sizeof(asker->why), "%s", answer.why);
	spoke_answer_free(&answer);
}

TEST(free_ends_calls_of_other_threads)
{
	const struct spoke_env *env;
	struct asker askers[THREADS];
	void *threads[THREADS];
	struct spoke_client *client;
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	env = &rig.env;
	assert_int_equal(env->threads->open(env->ctx, &rig.held_parker), 0);
	rig.held_wanted = THREADS;
	client = dial(&rig);
	for (unsigned i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .client = client, .method = "hold" };
		threads[i] = futurerig_thread(ask_once, &askers[i]);
	}
	assert_int_equal(env->threads->park(rig.held_parker, UINT64_MAX), 0);
	spoke_client_free(client);
	for (unsigned i = 0; i < THREADS; i++) {
		futurerig_join(threads[i]);
		assert_int_equal(askers[i].error, SPOKE_ECLOSED);
		assert_true(strlen(askers[i].why) > 0);
	}
	env->threads->close(rig.held_parker);
	futurerig_tear_down(&rig);
}

/* Waits until `count` threads are inside spoke_ask(). */
static void wait_inside(struct spoke_client *client, size_t count)
{
	const struct spoke_env *env = spoke_host_env();
	void *parker;

	assert_int_equal(env->threads->open(env->ctx, &parker), 0);
	while (atomic_load(&client->inside) != count * SPOKEI_CLIENT_ONE)
		(void)env->threads->park(parker, env->now(env->ctx) + MS);
	env->threads->close(parker);
}

/* There is no provider, and all calls wait for one; the threads may still be anywhere inside. */
TEST(free_ends_calls_that_are_not_written)
{
	struct asker askers[THREADS];
	void *threads[THREADS];
	struct rig rig;

	futurerig_set_up(&rig, RIG_UNIX);
	(void)snprintf(rig.url, sizeof(rig.url),
		       "unix:%s/none?interface=demo.Future&wait.ready=true", rig.folder);
	for (unsigned round = 0; round < 50; round++) {
		struct spoke_client *client = dial(&rig);

		for (unsigned i = 0; i < THREADS; i++) {
			askers[i] = (struct asker){ .client = client, .method = "echo" };
			threads[i] = futurerig_thread(ask_once, &askers[i]);
		}
		wait_inside(client, THREADS);
		spoke_client_free(client);
		for (unsigned i = 0; i < THREADS; i++) {
			futurerig_join(threads[i]);
			assert_int_equal(askers[i].error, SPOKE_ECLOSED);
		}
	}
	futurerig_tear_down(&rig);
}

/* A log hook runs on the engine's thread. */
static struct {
	_Atomic(struct spoke_client *) client;
	atomic_int error;
} hooked;

static void ask_in_hook(void *ctx, const struct spoke_log_line *line)
{
	struct spoke_client *client = atomic_load(&hooked.client);

	(void)ctx;
	(void)line;
	if (client == NULL || atomic_load(&hooked.error))
		return;
	spoke_client_free(client);
	atomic_store(&hooked.error, spoke_ask(client, "echo", SPOKE_NO_ARGS, NULL));
}

TEST(log_hook_can_neither_ask_nor_free)
{
	struct spoke_client *client;
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	rig.client_env.log = ask_in_hook;
	client = dial(&rig);
	atomic_store(&hooked.error, 0);
	atomic_store(&hooked.client, client);
	assert_int_equal(spoke_ask(client, "fail", SPOKE_NO_ARGS, NULL), SPOKE_EREMOTE);
	/* The end of the provider is an event, which is logged. */
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	while (atomic_load(&hooked.error) == 0)
		(void)spoke_ask(client, "echo", SPOKE_NO_ARGS, NULL);
	atomic_store(&hooked.client, NULL);
	assert_int_equal(atomic_load(&hooked.error), SPOKE_ETHREAD);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

/* --- calls for a request */

/* A provider between the caller and that of the rig: its handler on the pool asks for its request.
 */
struct between {
	struct spoke_engine *engine;
	struct spoke_client *client; /* of the rig's provider */
	void *asked;                 /* parker: the call has ended ... */
	int error;                   /* ... with this */
	char url[192];
};

static void ask_for_request(struct spoke_request *request, void *arg)
{
	const struct spoke_call_options options = { .parent = request };
	struct between *between = arg;

	between->error = spoke_ask_with(between->client, "hold", SPOKE_NO_ARGS, &options, NULL);
	spoke_reply_error(request, 1, "asked");
	spoke_host_env()->threads->unpark(between->asked);
}

static void stand_between(struct rig *rig, struct between *between)
{
	static const struct spoke_service_options service = { .name = "demo.Future" };
	const struct spoke_handler handler = { .handle = ask_for_request,
					       .arg = between,
					       .flags = SPOKE_HANDLER_POOL };
	const struct spoke_engine_options options = { .env = &rig->env };
	const struct spoke_env *env = &rig->env;
	struct spoke_provider *provider;
	char address[128];

	between->client = dial(rig);
	assert_int_equal(env->threads->open(env->ctx, &between->asked), 0);
	assert_int_equal(spoke_engine_new(&options, &between->engine), SPOKE_OK);
	assert_int_equal(spoke_provider_new(between->engine, NULL, &provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), SPOKE_OK);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:0"), SPOKE_OK);
	assert_true(spoke_provider_address(provider, 0, address, sizeof(address)) > 0);
	(void)snprintf(between->url, sizeof(between->url), "dubbo://%s/demo.Future", address);
	assert_int_equal(spoke_engine_start(between->engine), SPOKE_OK);
}

TEST(ask_of_a_pool_handler_ends_with_its_request)
{
	const struct spoke_env *env;
	struct between between = { .error = SPOKE_OK };
	struct rig_client caller;
	struct spoke_future *future;
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	env = &rig.env;
	assert_int_equal(env->threads->open(env->ctx, &rig.held_parker), 0);
	rig.held_wanted = 1;
	stand_between(&rig, &between);
	futurerig_client_init(&rig, &caller, between.url);
	assert_int_equal(spoke_engine_start(caller.engine), SPOKE_OK);
	future = futurerig_start(caller.echo, "");
	assert_int_equal(env->threads->park(rig.held_parker, UINT64_MAX), 0);
	spoke_future_cancel(future);
	assert_int_equal(env->threads->park(between.asked, UINT64_MAX), 0);
	assert_int_equal(between.error, SPOKE_ECANCELED);
	spoke_future_free(future);
	spoke_engine_free(caller.engine);
	spoke_engine_free(between.engine);
	spoke_client_free(between.client);
	env->threads->close(between.asked);
	env->threads->close(rig.held_parker);
	futurerig_tear_down(&rig);
}
