/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unsent requests: values that a connection has not taken yet, because it is not open, the peer has
 * blocked, or the request is guarded. Once a request is in the output buffer, it cannot be
 * withdrawn. A guarded one can until its first byte is written, and stays unsent until then. On the
 * engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_UNSENT_H
#define SPOKEI_TRANSPORT_CONN_UNSENT_H

#include "transport/conn/conn.h"

/* Owned by its call. */
struct spokei_unsent {
	struct spokei_message message; /* the spans that may change point into `bytes` */
	size_t size;                   /* of this struct, with `bytes` */
	spokei_conn_guard_fn guard;    /* NULL: none */
	int error;                     /* that the request ends with; 0: none yet */
	unsigned char bytes[];
};

/* Makes the request of a call an unsent one, with copies of its values. They count like queued
 * bytes, so there is room when they are queued. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_unsent_keep(struct spokei_conn *conn, struct spokei_pending *pending,
				      const struct spokei_message *message);

/* Frees the unsent request of a call, if it has one. */
void spokei_unsent_free(struct spokei_pending *pending);

#endif
