/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is not answered yet, as its connection sees it. */
#ifndef SPOKEI_TRANSPORT_CONN_SERVING_H
#define SPOKEI_TRANSPORT_CONN_SERVING_H

#include <spoke/base.h>

#include <stdbool.h>
#include <stdint.h>

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
	/* The connection is closed; `conn` is NULL already. */
	void (*abandoned)(struct spokei_serving *serving);
};

#endif
