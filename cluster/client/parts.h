/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a client, for client.c and its tests. */
#ifndef SPOKEI_CLUSTER_CLIENT_PARTS_H
#define SPOKEI_CLUSTER_CLIENT_PARTS_H

#include <spoke/client.h>
#include <spoke/engine.h>

#include <stdatomic.h>

#define SPOKEI_CLIENT_CLOSED 1u
#define SPOKEI_CLIENT_ONE 2u

struct spoke_config;
struct spoke_consumer;
struct spoke_method;

/* A method that was asked before. Made by the engine's thread, read by any. */
struct spokei_client_method {
	struct spokei_client_method *next;
	struct spoke_method *method; /* the consumer's */
	size_t size;                 /* of this, with the name */
	char name[];
};

struct spoke_client {
	const struct spoke_env *env;
	struct spoke_config *config; /* NULL: none */
	struct spoke_engine *engine; /* on its own thread; NULL: it could not be made */
	struct spoke_consumer *consumer;
	_Atomic(struct spokei_client_method *) methods; /* the latest first */
	size_t methods_count;                           /* of the engine's thread */
	_Atomic(size_t) inside; /* twice the number of threads that ask; odd: being freed */
	void *left;             /* parker: the last of them has left */
	struct spoke_post close;
	int error; /* of spoke_dial() */
	char why[sizeof(((struct spoke_answer *)NULL)->why)];
};

#endif
