/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of future tests: see futurerig.h. */
#define _GNU_SOURCE
#include "futurerig.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct spoke_call_options rig_patient = { .timeout_ns = RIG_TIMEOUT_NS };

/* --- memory */

static atomic_size_t blocks;
static _Thread_local int fail_at;

static void *counted_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	const struct spoke_env *host = spoke_host_env();

	if (len && fail_at > 0 && --fail_at == 0)
		return NULL;
	if (memory == NULL && len)
		atomic_fetch_add(&blocks, 1);
	if (memory && len == 0)
		atomic_fetch_sub(&blocks, 1);
	return host->resize(ctx, memory, old_len, len);
}

int futurerig_fail_memory(int nth)
{
	int left = fail_at;

	fail_at = nth;
	return left;
}

/* --- threads */

void *futurerig_thread(void (*run)(void *arg), void *arg)
{
	const struct spoke_env *env = spoke_host_env();
	void *thread;

	assert_int_equal(env->threads->start(env->ctx, run, arg, &thread), 0);
	return thread;
}

void futurerig_join(void *thread)
{
	spoke_host_env()->threads->join(thread);
}

uintptr_t futurerig_self(void)
{
	const struct spoke_env *env = spoke_host_env();

	return env->threads->self(env->ctx);
}

/* --- the provider's handlers, on its thread except for those of the pool */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text = { NULL, 0 };

	(void)arg;
	if (spoke_cursor_next(&args, &text))
		spoke_reply_with(request, text, spoke_request_attachments(request));
	else
		spoke_reply_error(request, 1, "echo: argument missing");
}

static void refuse(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 7, "it failed");
}

static void answer_held(struct rig *rig, size_t i)
{
	struct spoke_request *request = rig->held[i];

	rig->held[i] = rig->held[--rig->held_count];
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void forget_held(struct spoke_request *request, void *arg)
{
	struct rig *rig = arg;

	for (size_t i = 0; i < rig->held_count; i++) {
		if (rig->held[i] == request) {
			answer_held(rig, i);
			return;
		}
	}
}

static void hold(struct spoke_request *request, void *arg)
{
	struct rig *rig = arg;

	if (rig->held_count == RIG_HELD) {
		spoke_reply_error(request, 1, "too many are held");
		return;
	}
	rig->held[rig->held_count++] = request;
	spoke_request_on_abandoned(request, forget_held, rig);
	if (rig->held_count == rig->held_wanted)
		rig->env.threads->unpark(rig->held_parker);
}

static void release(struct spoke_request *request, void *arg)
{
	struct rig *rig = arg;

	while (rig->held_count > 0)
		answer_held(rig, 0);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* --- set-up */

static void make_provider(struct rig *rig, enum rig_place place)
{
	static const struct spoke_service_options service = { .name = "demo.Future" };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "pool", .handle = echo, .flags = SPOKE_HANDLER_POOL },
		{ .method = "hold", .handle = hold, .arg = rig },
		{ .method = "release", .handle = release, .arg = rig },
		{ .method = "fail", .handle = refuse },
	};
	struct spoke_engine_options options = { .env = &rig->env };
	char at[128] = "dubbo://127.0.0.1:0";
	char address[128];

	if (place == RIG_UNIX)
		(void)snprintf(at, sizeof(at), "unix:%s/sock", rig->folder);
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	assert_int_equal(spoke_provider_new(rig->engine, NULL, &rig->provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(rig->provider, &service, handlers,
					    sizeof(handlers) / sizeof(handlers[0])),
			 SPOKE_OK);
	assert_int_equal(spoke_provider_listen(rig->provider, at), SPOKE_OK);
	assert_true(spoke_provider_address(rig->provider, 0, address, sizeof(address)) > 0);
	if (place == RIG_UNIX)
		(void)snprintf(rig->url, sizeof(rig->url), "%s?interface=demo.Future", address);
	else
		(void)snprintf(rig->url, sizeof(rig->url), "dubbo://%s/demo.Future", address);
	assert_int_equal(spoke_engine_start(rig->engine), SPOKE_OK);
}

static struct spoke_method *method_of(struct spoke_consumer *consumer, const char *name)
{
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(consumer, name, NULL, &method), SPOKE_OK);
	return method;
}

void futurerig_client_init(struct rig *rig, struct rig_client *client, const char *url)
{
	struct spoke_engine_options engine = { .env = &rig->client_env };
	struct spoke_consumer_options consumer = { .url = url ? url : rig->url };

	assert_int_equal(spoke_engine_new(&engine, &client->engine), SPOKE_OK);
	assert_int_equal(spoke_consumer_new(client->engine, &consumer, &client->consumer),
			 SPOKE_OK);
	client->echo = method_of(client->consumer, "echo");
	client->pool = method_of(client->consumer, "pool");
	client->hold = method_of(client->consumer, "hold");
	client->release = method_of(client->consumer, "release");
	client->fail = method_of(client->consumer, "fail");
}

void futurerig_set_up(struct rig *rig, enum rig_place place)
{
	*rig = (struct rig){ .env = *spoke_host_env(), .folder = "/tmp/spoke-future-XXXXXX" };
	rig->env.resize = counted_resize;
	rig->env.forks = NULL;
	rig->client_env = rig->env;
	rig->client_env.forks = &rig->forks;
	atomic_store(&blocks, 0);
	assert_non_null(mkdtemp(rig->folder));
	make_provider(rig, place);
	futurerig_client_init(rig, &rig->client, NULL);
}

void futurerig_tear_down(struct rig *rig)
{
	spoke_engine_free(rig->client.engine);
	spoke_engine_free(rig->engine);
	assert_int_equal(rmdir(rig->folder), 0);
	assert_int_equal(atomic_load(&blocks), 0);
}

/* --- calls */

struct spoke_span futurerig_text(const char *text)
{
	static _Thread_local unsigned char memory[128];
	struct spoke_builder builder;
	struct spoke_span args = { NULL, 0 };

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, text);
	/* This may be any thread, where an assertion must not fail. Without arguments the call
	 * fails. */
	if (spoke_builder_finish(&builder, &args))
		args.len = 0;
	return args;
}

bool futurerig_is_text(const struct spoke_result *result, const char *text)
{
	struct spoke_span span;

	return result && result->error == SPOKE_OK &&
	       spoke_value_str(result->value, &span) == SPOKE_OK && span.len == strlen(text) &&
	       memcmp(span.data, text, span.len) == 0;
}

struct spoke_future *futurerig_start(struct spoke_method *method, const char *text)
{
	struct spoke_future *future;

	assert_int_equal(spoke_future_start(method, futurerig_text(text), &rig_patient, &future),
			 SPOKE_OK);
	return future;
}

void futurerig_release(struct rig *rig)
{
	assert_int_equal(spoke_call_wait(rig->client.release, futurerig_text(""), &rig_patient,
					 NULL),
			 SPOKE_OK);
}

/* --- callbacks */

void futurerig_told_init(struct rig_told *told)
{
	const struct spoke_env *env = spoke_host_env();

	*told = (struct rig_told){ 0 };
	assert_int_equal(env->threads->open(env->ctx, &told->parker), 0);
}

void futurerig_told_done(void *arg, const struct spoke_result *result)
{
	struct rig_told *told = arg;

	told->error = result->error;
	told->thread = futurerig_self();
	told->count++;
	spoke_host_env()->threads->unpark(told->parker);
}

void futurerig_told_wait(struct rig_told *told)
{
	const struct spoke_threads *threads = spoke_host_env()->threads;

	assert_int_equal(threads->park(told->parker, UINT64_MAX), 0);
	threads->close(told->parker);
}
