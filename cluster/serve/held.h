/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose handler has not answered at once: registers it at its connection, learns that its
 * caller has gone, and frees it. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_HELD_H
#define SPOKEI_CLUSTER_SERVE_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct spoke_request;
struct spokei_conn;
struct spokei_message;

/* The text of a refusal. */
extern const char spokei_request_no_memory[];

/* Registers the request at its connection. Returns false when the connection is closed, or there is
 * no memory, which closes it. Then the callback may have answered the request, and freed it. */
bool spokei_request_hand_over(struct spoke_request *request, struct spokei_conn *conn,
			      const struct spokei_message *message);

/* Notes when a request came that will be answered later, and its peer, because its connection may
 * close first, and its message may be gone. */
void spokei_request_note_origin(struct spoke_request *request, const struct spokei_conn *conn);

/* Frees a request that no handler has seen, and that is answered or cannot be. On the loop's
 * thread. */
void spokei_request_forget(struct spoke_request *request, int error);

/* Notes a request of request->peer if it was slow. `took_ns`: in the handler. */
void spokei_request_note_slow(const struct spoke_request *request, uint64_t took_ns, int error);

/* Frees the memory of a request; NULL is fine. */
void spokei_request_free(struct spoke_request *request);

#endif
