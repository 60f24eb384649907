/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading with a memo beside reading without: the same has to come out, and what is called a repeat
 * has to be one, by a record of the last request that was read.
 */
#ifndef TESTS_TRANSPORT_RECALL_H
#define TESTS_TRANSPORT_RECALL_H

#include "transport/wire/memo.h"

#define RECALL_NAMES 5 /* service, version, group, method, types */

struct recall {
	const struct spokei_wire *wire;          /* borrowed, as are the limits */
	const struct spokei_wire_limits *limits; /* the same for all frames of a memo */
	struct spokei_memo memo;
	bool any; /* a request has been read */
	unsigned char *names[RECALL_NAMES];
	size_t lens[RECALL_NAMES];
	bool repeat; /* the last frame was one */
	int result;  /* of reading it */
};

void recall_init(struct recall *recall, const struct spokei_wire *wire,
		 const struct spokei_wire_limits *limits);
void recall_fini(struct recall *recall);

/* Reads a frame, which cut has found, in both ways, in memory that ends with it. NULL, or what is
 * wrong. */
const char *recall_read(struct recall *recall, struct spoke_span frame);

#endif
