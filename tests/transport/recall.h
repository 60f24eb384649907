/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading with a memo, compared with reading without: the results must be equal, and a reported
 * repeat must match a record of the last request.
 */
#ifndef TESTS_TRANSPORT_RECALL_H
#define TESTS_TRANSPORT_RECALL_H

#include "tests/core/memory.h"
#include "transport/wire/memo.h"

#define RECALL_NAMES 5 /* service, version, group, method, types */

struct recall {
	const struct spokei_wire *wire;          /* borrowed, like the limits */
	const struct spokei_wire_limits *limits; /* the same for all frames of a memo */
	struct spokei_memo memo;
	struct memory memory;
	struct spokei_buffer scratch[2]; /* without and with the memo */
	bool any;                        /* a request has been read */
	unsigned char *names[RECALL_NAMES];
	size_t lens[RECALL_NAMES];
	bool repeat; /* the last frame was a repeat */
	int result;  /* of the last read */
};

void recall_init(struct recall *recall, const struct spokei_wire *wire,
		 const struct spokei_wire_limits *limits);
void recall_fini(struct recall *recall);

/* Reads a frame found by cut both ways, from a copy that ends with its allocation. Returns NULL, or
 * a sentence about the difference. */
const char *recall_read(struct recall *recall, struct spoke_span frame);

#endif
