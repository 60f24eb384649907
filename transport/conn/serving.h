/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is not answered yet, as its connection sees it, and its peer. */
#ifndef SPOKEI_TRANSPORT_CONN_SERVING_H
#define SPOKEI_TRANSPORT_CONN_SERVING_H

#include <spoke/base.h>
#include <spoke/env.h>

#include <stdbool.h>

struct spokei_conn;
struct spokei_link;

/* Embedded in the request that is being served. Zero-initialised. */
struct spokei_serving {
	struct spokei_conn *conn; /* NULL: none, or it is closed */
	struct spokei_link *link; /* the link of a closed connection, which counts the request */
	struct spoke_list node;   /* in the list of the connection, or of the link's orphans */
	uint64_t id;
	uint8_t codec;
	bool bare;
	bool two_way;
	bool cancelled; /* its caller does not wait any more */
	/* The caller has cancelled the request; or the connection is closed, and `conn` is NULL.
	 * May be called once for each of the two. */
	void (*abandoned)(struct spokei_serving *serving);
};

/* The peer of requests that may outlive their connection, which share it. References are counted on
 * the engine's thread. The content never changes, so a handler on the pool may read it. */
struct spokei_sender {
	const struct spoke_env *env;
	uint64_t handle; /* of the connection, as spokei_conn has it */
	uint32_t shares;
	struct spoke_address peer;
};

/* Takes a reference to the sender of a connection; NULL: no memory, and the link has none to spare.
 */
struct spokei_sender *spokei_conn_sender(struct spokei_conn *conn);

/* Makes the spare sender of a link, before a handler runs that may not answer at once. Returns
 * whether there is one. */
bool spokei_link_spare_sender(struct spokei_link *link);

/* Drops a reference; NULL is fine. */
void spokei_sender_drop(struct spokei_sender *sender);

#endif
