/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer in the virtual world without an engine. The test controls its sockets: it writes frames
 * and arbitrary bytes in pieces, and reads messages.
 */
#ifndef TESTS_CLUSTER_PEER_H
#define TESTS_CLUSTER_PEER_H

#include "core/virtual/world.h"
#include "transport/wire/intake.h"

struct peer {
	struct spokei_world_process process;
	struct spokei_wire_limits limits; /* default limits */
};

/* A connection of the peer. */
struct peer_conn {
	struct peer *peer;
	int fd;      /* -1: closed */
	bool ended;  /* the other side has closed it */
	bool broken; /* the bytes received are invalid on its wire */
	const struct spokei_wire *wire;
	struct spokei_intake in;
	struct spokei_buffer out;
};

void peer_init(struct peer *peer, struct spokei_world *world);

/* Closes all connections. */
void peer_fini(struct peer *peer);

/* Return descriptors, or a negative errno. */
int peer_listen(struct peer *peer, const char *at);
int peer_accept(struct peer *peer, int listener);
int peer_connect(struct peer *peer, const char *to);

/* Makes a connection of a descriptor and owns it. */
void peer_open(struct peer *peer, struct peer_conn *conn, int fd, const struct spokei_wire *wire);
void peer_close(struct peer_conn *conn);

/* Append a frame or bytes to the output. A frame that cannot be encoded is left out. */
void peer_put(struct peer_conn *conn, const struct spokei_message *message);
void peer_put_bytes(struct peer_conn *conn, struct spoke_span bytes);

/* Writes up to `max` bytes of the output. Returns the number of bytes left. */
size_t peer_write(struct peer_conn *conn, size_t max);

/* Reads the available bytes. Calls `take` with each message, which is borrowed for that call. */
void peer_read(struct peer_conn *conn,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg);

/* Does the same with bytes that were read already. */
void peer_take(struct peer_conn *conn, struct spoke_span bytes,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg);

#endif
