/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer in the virtual world that is no engine: its sockets are moved by hand. It writes frames
 * and any other bytes, in pieces, and reads what comes as messages.
 */
#ifndef TESTS_CLUSTER_PEER_H
#define TESTS_CLUSTER_PEER_H

#include "core/virtual/world.h"
#include "transport/wire/intake.h"

struct peer {
	struct spokei_world_process process;
	struct spokei_wire_limits limits; /* the defaults */
};

/* One of its connections. */
struct peer_conn {
	struct peer *peer;
	int fd;      /* -1: none */
	bool ended;  /* nothing comes any more */
	bool broken; /* what came is no stream of its wire */
	const struct spokei_wire *wire;
	struct spokei_intake in;
	struct spokei_buffer out;
};

void peer_init(struct peer *peer, struct spokei_world *world);

/* All connections are closed. */
void peer_fini(struct peer *peer);

/* Descriptors, or a negative errno. */
int peer_listen(struct peer *peer, const char *at);
int peer_accept(struct peer *peer, int listener);
int peer_connect(struct peer *peer, const char *to);

/* Takes over a descriptor. */
void peer_open(struct peer *peer, struct peer_conn *conn, int fd, const struct spokei_wire *wire);
void peer_close(struct peer_conn *conn);

/* Puts a frame, or bytes, behind what is to be written. A frame that cannot be written is left out.
 */
void peer_put(struct peer_conn *conn, const struct spokei_message *message);
void peer_put_bytes(struct peer_conn *conn, struct spoke_span bytes);

/* Writes up to `max` bytes of that. Returns how many are left. */
size_t peer_write(struct peer_conn *conn, size_t max);

/* Reads what is there; `take` is told of each message, which is borrowed for the call. */
void peer_read(struct peer_conn *conn,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg);

/* The same with bytes that were read already. */
void peer_take(struct peer_conn *conn, struct spoke_span bytes,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg);

#endif
