/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw echo: frames of fixed size that contain only a payload at the end. One read into a large
 * buffer, all complete frames, one write. The peer provides the wait.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include "meter.h"
#include "peer.h"

#include <stddef.h>

struct echo_link {
	int fd;
	bool is_blocked; /* the socket did not accept all output */
	const struct rpc_plan *plan;
	struct meter *meter; /* NULL: the server's side */
	const uint8_t *payload;
	const uint8_t *head; /* beginning of a request; NULL: any bytes */
	uint64_t *begun_ns;  /* start times of the calls in flight, a ring */
	uint32_t oldest;     /* index in the ring */
	uint8_t *in;         /* room for all frames in flight, or for one read */
	size_t in_size;
	size_t in_len;
	uint8_t *out; /* twice the room for all frames in flight */
	size_t out_size;
	size_t out_from;
	size_t out_to;
};

/* Returns a non-blocking listening socket of the plan, and its port. */
int echo_listen(const struct rpc_plan *plan, uint16_t *ret_port);

/* Returns the next connection of a listening socket, non-blocking, or -1. */
int echo_accept_socket(int listener, const struct rpc_plan *plan);

/* Returns a connection to the server of the plan, non-blocking. Ends the program if it fails. */
int echo_connect_socket(const struct rpc_plan *plan);

/* Returns the next connection of a listening socket, or NULL. */
struct echo_link *echo_accept(int listener, const struct rpc_plan *plan);

/*
 * Connects to the server of the plan and begins the calls of the connection. Ends the program if
 * the connection fails. `request`, borrowed while the link exists, is a complete request, for a
 * server that parses more than the payload at its end; NULL: any bytes.
 */
struct echo_link *echo_connect(const struct rpc_plan *plan, struct meter *meter,
			       const uint8_t *request);

/* Serves a link that is ready. Returns false if the peer has closed it. */
bool echo_turn(struct echo_link *link, bool is_readable);

void echo_close(struct echo_link *link);

#endif
