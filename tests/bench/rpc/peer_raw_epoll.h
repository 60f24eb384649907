/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the raw echo, for servers of other peers that accept frames of fixed size. */
#ifndef BENCH_PEER_RAW_EPOLL_H
#define BENCH_PEER_RAW_EPOLL_H

#include "peer.h"

/* Implements rpc_peer.drive; `request` as for echo_connect(). */
void raw_epoll_drive(const struct rpc_plan *plan, struct meter *meter, const uint8_t *request);

#endif
