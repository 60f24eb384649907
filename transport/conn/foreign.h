/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises programs that speak another protocol, by the first bytes that they send. Pure; any
 * thread. */
#ifndef SPOKEI_TRANSPORT_CONN_FOREIGN_H
#define SPOKEI_TRANSPORT_CONN_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum spokei_foreign {
	SPOKEI_FOREIGN_UNKNOWN,
	SPOKEI_FOREIGN_TLS,
	/* Servers; clients begin with other bytes. */
	SPOKEI_FOREIGN_HTTP,
	SPOKEI_FOREIGN_HTTP2,
	SPOKEI_FOREIGN_REDIS,
	SPOKEI_FOREIGN_SSH,
	SPOKEI_FOREIGN_MAIL,
};

/* Returns the protocol whose first bytes these are. `accepted`: the peer has connected to this
 * side. */
enum spokei_foreign spokei_foreign_find(const void *bytes, size_t len, bool accepted);

/* Returns a sentence about it; NULL: UNKNOWN. */
const char *spokei_foreign_sentence(enum spokei_foreign foreign, bool accepted);

#endif
