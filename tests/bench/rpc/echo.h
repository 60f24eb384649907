/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw echo: frames of fixed size, nothing in them but the payload at the end. One read into a
 * large buffer, all whole frames of it, one write. How to wait is the peer's.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include "meter.h"
#include "peer.h"

#include <stddef.h>

struct echo_link {
	int fd;
	bool is_blocked; /* the kernel did not take all output: wait until it is writable */
	const struct rpc_plan *plan;
	struct meter *meter; /* NULL: the server's side */
	const uint8_t *payload;
	uint64_t *begun_ns; /* of the outstanding calls, a ring */
	uint32_t oldest;    /* in it */
	uint32_t calls;     /* its size */
	struct echo_link *next_idle;
	uint8_t *in; /* what can be outstanding, or as much as is read at a time */
	size_t in_size;
	size_t in_len;
	uint8_t *out; /* twice what can be outstanding */
	size_t out_size;
	size_t out_from;
	size_t out_to;
};

/* A listening socket as the plan says, and its port. Does not block. */
int echo_listen(const struct rpc_plan *plan, uint16_t *ret_port);

/* The next connection of a listening socket, or NULL. */
struct echo_link *echo_accept(int listener, const struct rpc_plan *plan);

/*
 * A connection to the server of the plan, with its calls begun. Of a plan with a total each has its
 * share of that; those that come away with none wait, and the next call is made on the one that
 * has waited longest. Ends the program if there is none.
 */
struct echo_link *echo_connect(const struct rpc_plan *plan, struct meter *meter);

/* Serves a link that is ready. Returns false when the peer has closed it. */
bool echo_turn(struct echo_link *link, bool is_readable);

void echo_close(struct echo_link *link);

#endif
