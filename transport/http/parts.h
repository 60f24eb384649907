/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of an HTTP connection, and what the files of this wing use of one another: life.c has
 * its state and its end, write.c the responses, read.c the requests and timeouts, server.c the
 * server. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_PARTS_H
#define SPOKEI_TRANSPORT_HTTP_PARTS_H

#include "core/memory/buffer.h"
#include "transport/stream/stream.h"

#include <spoke/wheel.h>

#include <errno.h>

struct spokei_http_server;

enum spokei_http_state {
	SPOKEI_HTTP_READING,    /* the request is incomplete */
	SPOKEI_HTTP_SERVING,    /* the user has the request, and has not responded yet */
	SPOKEI_HTTP_RESPONDING, /* the rest of the response waits to be written */
	SPOKEI_HTTP_STREAMING,  /* the user appends to the response until it ends the stream */
	SPOKEI_HTTP_LINGERING,  /* all is written; the peer closes first, because closing a socket
				 * with unread input would destroy the response */
	SPOKEI_HTTP_CLOSED,     /* freed when the turn ends */
};

struct spokei_http_conn {
	struct spoke_list node; /* of the server */
	struct spokei_http_server *server;
	struct spokei_stream stream;
	struct spoke_timer timer; /* of the state; not armed while a stream has no output */
	struct spoke_address peer;
	struct spokei_buffer in;
	size_t body_max; /* of the server, when the connection was accepted */
	size_t whole;    /* bytes of the request; 0: its head is incomplete */
	struct spokei_buffer out;
	enum spokei_http_state state;
	bool open;      /* the stream is */
	bool head_only; /* the request is a HEAD: its response has no body */
	bool inside;    /* up->request() is running: the response is written when it returns */
	bool ended;     /* the peer sends no more */
	bool surplus;   /* the peer has sent more than the request */
	bool continued; /* status 100 was given for the body */
	struct spokei_task bury;
	max_align_t user[]; /* server->up->user_size bytes */
};

static inline struct spokei_http_conn *spokei_http_conn_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_http_conn, node);
}

/* Must the operation be repeated when the loop reports readiness? */
static inline bool spokei_http_waits(ssize_t got)
{
	return got == -EAGAIN || got == -EINTR;
}

/* --- life.c */

/* Arms the timer, or moves it. Returns false if the wheel has no room. */
bool spokei_http_arm(struct spokei_http_conn *conn, uint64_t delay_ns);

void spokei_http_disarm(struct spokei_http_conn *conn);

/* Opens the stream, or goes on to do so. Returns whether it is open. May close. */
bool spokei_http_open(struct spokei_http_conn *conn);

/* Waits for input until the peer has ended its side; for output where there is some. */
void spokei_http_watch(struct spokei_http_conn *conn, bool output);

/* Returns the bytes of a connection's memory. */
size_t spokei_http_size(const struct spokei_http_server *server);

/* Frees a connection; the function of conn->bury. */
void spokei_http_bury(struct spokei_task *task);

/* Closes a connection because of its peer, counts the reason and reports it. */
void spokei_http_blame(struct spokei_http_conn *conn, enum spoke_stat stat, int error);

/* Takes a connection off the lists of its server. */
void spokei_http_leave(struct spokei_http_conn *conn);

/* Closes without calling up->closed(). */
void spokei_http_shut_down(struct spokei_http_conn *conn);

/* --- write.c */

/* Writes the output that waits. May close. */
void spokei_http_flush(struct spokei_http_conn *conn);

/* Does output wait to be written? */
bool spokei_http_has_output(const struct spokei_http_conn *conn);

/* --- read.c */

/* The functions of the stream's watch, and of the timer's class. */
void spokei_http_ready(struct spoke_watch *watch, unsigned io);
void spokei_http_due(struct spoke_timer *timer, void *arg);

#endif
