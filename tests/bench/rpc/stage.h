/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A measurement is three processes: the benchmark, a server and a client, the latter two started
 * anew each time. The stage is the memory they share, by which nothing has to be sent while
 * something is measured.
 */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include "peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong with a measurement; else the report is good. */
enum stage_end {
	STAGE_OK,
	STAGE_DIED,   /* a process, by itself or because it hung; stderr says more */
	STAGE_FAILED, /* calls did */
};

/* Measures once. `plan` needs no server's port or number. */
enum stage_end stage_measure(const struct rpc_peer *peer, const struct rpc_plan *plan,
			     struct rpc_report *ret_report);

/* In the server's process, or one that it has forked: it listens, at this port (0: unix socket). */
void stage_ready(uint16_t port);

/* The child's main(): plays the role that stage_measure() gave it in argv. Returns its status. */
int stage_play(const char *role, const struct rpc_peer *peer);

#define STAGE_SERVER "--serve"
#define STAGE_CLIENT "--drive"

#ifdef __cplusplus
}
#endif

#endif
