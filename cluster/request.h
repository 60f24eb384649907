/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request being served, from the message to its answer.
 */
#ifndef SPOKEI_REQUEST_H
#define SPOKEI_REQUEST_H

#include "cluster/consumer_parts.h"
#include "cluster/service.h"
#include "transport/conn.h"

#include <stdatomic.h>

struct spoke_request {
	struct spokei_serving serving; /* in the connection's keeping, once its handler returned */
	struct spoke_engine *engine;
	struct spokei_conn *conn;             /* inside the handler's call on the loop; else NULL */
	const struct spokei_message *message; /* what it says */
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	uint64_t deadline_ns; /* UINT64_MAX: none was told */
	void (*abandoned)(struct spoke_request *request, void *arg);
	void *abandoned_arg;
	struct spokei_copy *kept; /* the copy that `message` is, or NULL */
	struct spoke_address peer;
	struct spoke_peer from;
	bool answered;
	bool on_pool;     /* its handler runs there, or has */
	bool unrun;       /* it was too late when there was a thread for it */
	bool pool_done;   /* ... has, and the loop knows */
	bool delivered;   /* ... and its answer has come to the loop */
	atomic_bool gone; /* nobody is there to read the answer */
	struct spoke_work work;
	struct spoke_post post;     /* brings an answer of another thread to the loop */
	struct spokei_copy *answer; /* what it brings */
};

/* Serves a request of a connection: finds the handler and runs it, or refuses. *spare: memory of a
 * request that was answered, for the next; or NULL. */
void spokei_request_serve(const struct spokei_services *services, struct spokei_conn *conn,
			  const struct spokei_message *message, struct spoke_request **spare);

/* Gives that memory back; NULL is fine. */
void spokei_request_free(struct spoke_request *request);

/* The same for what a provider pushes to a consumer, which has one handler for all. */
void spokei_request_serve_pushed(struct spoke_consumer *consumer, struct spokei_conn *conn,
				 const struct spokei_message *message);

#endif
