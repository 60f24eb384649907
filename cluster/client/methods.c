/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods that a client has asked. They are found without a lock: the list only grows, at its
 * head, and only on the engine's thread.
 */
#include "cluster/client/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"

#include <spoke/consumer.h>
#include <spoke/stats.h>

#include <stdio.h>

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
	uint64_t events = client->engine->events->last;

	making->method = find(client, making->name); /* another thread may have been faster */
	if (making->method == NULL)
		making->error = make(client, making->name, &making->method);
	if (making->error && client->engine->events->last != events)
		(void)snprintf(making->why, sizeof(client->why), "%s",
			       spoke_engine_why(client->engine));
	threads->unpark(making->made);
}

int spokei_client_method(struct spoke_client *client, const char *name, char *why,
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

void spokei_client_methods_free(struct spoke_client *client)
{
	struct spokei_client_method *known = atomic_load_explicit(&client->methods,
								  memory_order_relaxed);

	while (known) {
		struct spokei_client_method *next = known->next;

		spokei_free(client->env, known, 1, known->size);
		known = next;
	}
}
