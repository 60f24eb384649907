/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: blocking calls through a consumer on an engine with a thread of its own. Threads that
 * ask are counted, so that the end of the client can wait for them.
 */
#include "cluster/client/parts.h"
#include "cluster/consumer/consumer.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/future.h>
#include <spoke/host.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

/* --- the beginning */

/* Keeps the first sentence. */
static void keep_sentence(void *arg, const char *sentence)
{
	struct spoke_client *client = arg;

	if (client->why[0] == '\0')
		(void)snprintf(client->why, sizeof(client->why), "%s", sentence);
}

static int make_engine(struct spoke_client *client, const struct spoke_client_options *with)
{
	struct spoke_engine_options options = { .env = client->env, .log = with->log };
	int error = SPOKE_OK;

	if (client->env->threads == NULL) {
		keep_sentence(client, "client: this environment has no threads; use spoke_call()");
		return SPOKE_EUNSUPPORTED;
	}
	if (client->env->threads->open(client->env->ctx, &client->left))
		return SPOKE_ENOMEM;
	if (with->config)
		error = spoke_config_load(client->env, with->config, keep_sentence, client,
					  &client->config);
	if (error)
		return error;
	if (client->config)
		spoke_config_engine(client->config, &options);
	return spoke_engine_new(&options, &client->engine);
}

static int make_consumer(struct spoke_client *client, const char *url,
			 const struct spoke_client_options *with)
{
	const struct spoke_consumer_options options = {
		.url = url,
		.registry = with->registry,
		.config = client->config,
	};
	int error = spoke_consumer_new(client->engine, &options, &client->consumer);

	if (error)
		keep_sentence(client, spoke_engine_why(client->engine));
	return error;
}

/* Frees the engine and all that is on it. */
static void end_engine(struct spoke_client *client)
{
	spoke_engine_free(client->engine);
	client->engine = NULL;
	spoke_config_free(client->config);
	client->config = NULL;
}

int spoke_dial_with(const char *url, const struct spoke_client_options *options,
		    struct spoke_client **ret_client)
{
	static const struct spoke_client_options defaults;
	const struct spoke_client_options *with = options ? options : &defaults;
	const struct spoke_env *env = with->env ? with->env : spoke_host_env();
	struct spoke_client *client = spokei_alloc(env, 1, sizeof(*client));
	int error;

	*ret_client = client;
	if (client == NULL)
		return SPOKE_ENOMEM;
	client->env = env;
	error = make_engine(client, with);
	if (error == SPOKE_OK)
		error = make_consumer(client, url, with);
	if (error == SPOKE_OK)
		error = spoke_engine_start(client->engine);
	if (error) {
		keep_sentence(client, spoke_strerror(error));
		end_engine(client);
	}
	client->error = error;
	return error;
}

int spoke_dial(const char *url, struct spoke_client **ret_client)
{
	return spoke_dial_with(url, NULL, ret_client);
}

const char *spoke_client_why(const struct spoke_client *client)
{
	return client ? client->why : spoke_strerror(SPOKE_ENOMEM);
}

/* --- the methods that a client has asked: found without a lock, because the list only grows, at
 * its head, and only on the engine's thread */

/* A method that another thread waits for; on that thread's stack. */
struct making {
	struct spoke_post post;
	struct spoke_client *client;
	const char *name;
	char *why;
	void *made; /* parker */
	struct spoke_method *method;
	int error;
};

static struct spoke_method *find(struct spoke_client *client, const char *name)
{
	struct spokei_client_method *known = atomic_load_explicit(&client->methods,
								  memory_order_acquire);

	while (known && strcmp(known->name, name) != 0)
		known = known->next;
	return known ? known->method : NULL;
}

/* Makes a method. The engine's thread. */
static int make(struct spoke_client *client, const char *name, struct spoke_method **ret_method)
{
	size_t name_size = strlen(name) + 1;
	size_t size = sizeof(struct spokei_client_method) + name_size;
	struct spokei_client_method *known;
	int error;

	if (client->methods_count == SPOKE_CLIENT_METHODS_MAX) {
		spokei_event(client->engine, SPOKE_ELIMIT,
			     "client: asks at most %u different methods; use another client",
			     SPOKE_CLIENT_METHODS_MAX);
		return SPOKE_ELIMIT;
	}
	known = spokei_alloc_unset(client->env, size);
	if (known == NULL)
		return SPOKE_ENOMEM;
	error = spoke_consumer_method(client->consumer, name, NULL, &known->method);
	if (error) {
		spokei_free(client->env, known, 1, size);
		return error;
	}
	known->size = size;
	memcpy(known->name, name, name_size);
	known->next = atomic_load_explicit(&client->methods, memory_order_relaxed);
	atomic_store_explicit(&client->methods, known, memory_order_release);
	client->methods_count++;
	*ret_method = known->method;
	return SPOKE_OK;
}

static void make_arrived(struct spoke_post *post)
{
	struct making *making = spoke_container_of(post, struct making, post);
	struct spoke_client *client = making->client;
	const struct spoke_threads *threads = client->env->threads;
	uint64_t events = client->engine->events.last;

	making->method = find(client, making->name); /* another thread may have been faster */
	if (making->method == NULL)
		making->error = make(client, making->name, &making->method);
	if (making->error && client->engine->events.last != events)
		(void)snprintf(making->why, sizeof(client->why), "%s",
			       spoke_engine_why(client->engine));
	threads->unpark(making->made);
}

/* Finds the method, or has the engine's thread make it and waits for that; blocks. `why` is as in
 * the client. Any thread that is inside. */
static int find_or_make(struct spoke_client *client, const char *name, char *why,
			struct spoke_method **ret_method)
{
	const struct spoke_env *env = client->env;
	struct making making = {
		.post.run = make_arrived, .client = client, .name = name, .why = why
	};

	*ret_method = find(client, name);
	if (*ret_method)
		return SPOKE_OK;
	if (env->threads->open(env->ctx, &making.made))
		return SPOKE_ENOMEM;
	spoke_engine_post(client->engine, &making.post);
	(void)env->threads->park(making.made, UINT64_MAX);
	env->threads->close(making.made);
	*ret_method = making.method;
	return making.error;
}

/* Frees all methods of a client, whose thread has ended. */
static void free_methods(struct spoke_client *client)
{
	struct spokei_client_method *known = atomic_load_explicit(&client->methods,
								  memory_order_relaxed);

	while (known) {
		struct spokei_client_method *next = known->next;

		spokei_free(client->env, known, 1, known->size);
		known = next;
	}
}

/* --- calls */

/* Counts the calling thread; false: the client is being freed. */
static bool enter(struct spoke_client *client)
{
	size_t inside = atomic_load_explicit(&client->inside, memory_order_relaxed);

	do {
		if (inside & SPOKEI_CLIENT_CLOSED)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&client->inside, &inside,
							inside + SPOKEI_CLIENT_ONE,
							memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/* The last thread to leave lets the client be freed, and must not touch it any more. */
static void leave(struct spoke_client *client)
{
	const struct spoke_threads *threads = client->env->threads;
	void *left = client->left;

	if (atomic_fetch_sub_explicit(&client->inside, SPOKEI_CLIENT_ONE, memory_order_acq_rel) ==
	    (SPOKEI_CLIENT_ONE | SPOKEI_CLIENT_CLOSED))
		threads->unpark(left);
}

static void explain(struct spoke_answer *answer, int error)
{
	const struct spoke_result *result = answer->future ? spoke_future_result(answer->future)
							   : NULL;

	answer->error = error;
	if (error == SPOKE_OK && result)
		answer->value = result->value;
	else if (result && result->error == error)
		(void)spoke_result_print(result, answer->why, sizeof(answer->why));
	else if (answer->why[0] == '\0')
		(void)snprintf(answer->why, sizeof(answer->why), "%s", spoke_strerror(error));
}

static int ask(struct spoke_client *client, const char *name, struct spoke_args args,
	       const struct spoke_call_options *options, struct spoke_answer *answer)
{
	struct spoke_method *method;
	int error;

	if (name == NULL)
		return SPOKE_EINVAL;
	if (spokei_engine_forked(client->engine))
		return SPOKE_EFORKED;
	if (spokei_engine_here(client->engine))
		return SPOKE_ETHREAD;
	if (!enter(client))
		return SPOKE_ECLOSED;
	error = find_or_make(client, name, answer->why, &method);
	if (error == SPOKE_OK)
		error = spoke_call_wait_args(method, args, options, &answer->future);
	leave(client);
	return error;
}

int spoke_ask_with(struct spoke_client *client, const char *method, struct spoke_args args,
		   const struct spoke_call_options *options, struct spoke_answer *ret_answer)
{
	struct spoke_answer dropped;
	struct spoke_answer *answer = ret_answer ? ret_answer : &dropped;
	int error;

	*answer = (struct spoke_answer){ 0 };
	if (client && client->error == SPOKE_OK) {
		error = ask(client, method, args, options, answer);
	} else {
		error = client ? client->error : SPOKE_ENOMEM;
		(void)snprintf(answer->why, sizeof(answer->why), "%s", spoke_client_why(client));
	}
	explain(answer, error);
	if (ret_answer == NULL)
		spoke_answer_free(&dropped);
	return error;
}

int spoke_answer_read(struct spoke_answer *answer, struct spoke_into into)
{
	struct spoke_reader reader = spoke_reader_of(answer->value);
	int error;

	if (answer->error)
		return answer->error;
	error = spoke_read(&reader, &into, 1);
	if (error)
		(void)spoke_reader_why(&reader, answer->why, sizeof(answer->why));
	return error;
}

void spoke_answer_free(struct spoke_answer *answer)
{
	spoke_future_free(answer->future);
	answer->future = NULL;
	answer->value = (struct spoke_value){ NULL, 0 };
}

/* --- the end */

/* Ends all calls; methods and consumer stay for the threads that are inside. */
static void close_arrived(struct spoke_post *post)
{
	struct spoke_client *client = spoke_container_of(post, struct spoke_client, close);

	spokei_consumer_close(client->consumer);
}

/* Waits for the threads that ask. A forked child does not have them. */
static void wait_for_askers(struct spoke_client *client)
{
	if (client->engine == NULL || client->error || spokei_engine_forked(client->engine))
		return;
	if (atomic_fetch_or_explicit(&client->inside, SPOKEI_CLIENT_CLOSED, memory_order_acq_rel) ==
	    0)
		return;
	client->close.run = close_arrived;
	spoke_engine_post(client->engine, &client->close);
	(void)client->env->threads->park(client->left, UINT64_MAX);
}

void spoke_client_free(struct spoke_client *client)
{
	if (client == NULL)
		return;
	if (client->engine && spokei_engine_here(client->engine)) {
		spokei_event(client->engine, SPOKE_ETHREAD,
			     "client: cannot be freed in a log hook; free it on another thread");
		return;
	}
	wait_for_askers(client);
	end_engine(client);
	free_methods(client);
	if (client->left)
		client->env->threads->close(client->left);
	spokei_free(client->env, client, 1, sizeof(*client));
}
