/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers on the engine's pool, where they may block. */
#ifndef SPOKEI_CLUSTER_SERVE_POOL_H
#define SPOKEI_CLUSTER_SERVE_POOL_H

struct spoke_request;
struct spokei_conn;

/* Has a thread of the pool run the handler, or refuses the request. */
void spokei_request_run_on_pool(struct spoke_request *request, struct spokei_conn *conn);

#endif
