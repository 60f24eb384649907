/* SPDX-License-Identifier: Apache-2.0 */
/* Counts requests for which the pool is too small, and reports it. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_SERVE_BUSY_H
#define SPOKEI_CLUSTER_SERVE_BUSY_H

#include <stdint.h>

struct spoke_engine;

/* A request has waited this long for a thread of the pool. */
void spokei_busy_waited(struct spoke_engine *engine, uint64_t waited_ns);

/* A request is refused because the queue of the pool is full. */
void spokei_busy_full(struct spoke_engine *engine);

#endif
