/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A measurement consists of three processes: the benchmark, a server and a client; the latter two
 * are started for each measurement. They share memory, so that no message is sent during a
 * measurement.
 */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include "peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Results of a measurement; without an error the report is valid. */
enum stage_end {
	STAGE_OK,
	STAGE_DIED,   /* a process died, or was killed because it hung; stderr has details */
	STAGE_FAILED, /* calls failed */
};

/* Measures once. `plan` needs neither the server's port nor its process id. */
enum stage_end stage_measure(const struct rpc_peer *peer, const struct rpc_plan *plan,
			     struct rpc_report *ret_report);

/* Reports from the server's process, or from a child of it, that it listens at this port (0: unix
 * socket). */
void stage_ready(uint16_t port);

/* Main function of a child: runs the role that stage_measure() passed in argv. Returns the exit
 * status. */
int stage_play(const char *role, const struct rpc_peer *peer);

#define STAGE_SERVER "--serve"
#define STAGE_CLIENT "--drive"

#ifdef __cplusplus
}
#endif

#endif
