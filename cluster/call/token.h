/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the token of a consumer on wires without attachments. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_CALL_TOKEN_H
#define SPOKEI_CLUSTER_CALL_TOKEN_H

#include <spoke/value.h>

struct spokei_conn;

/* Has a connection show this token before its next request, unless it has. `service` is the one
 * that is called. Returns 0, or an error of spokei_conn_call(). */
SPOKE_MUST_USE int spokei_token_show(struct spokei_conn *conn, struct spoke_span service,
				     const char *token);

#endif
