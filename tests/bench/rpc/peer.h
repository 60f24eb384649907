/* SPDX-License-Identifier: Apache-2.0 */
/* What an RPC peer brings to the benchmark: a server and a client, each in a process of its own. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "host.h"

#include <stdbool.h>
#include <stdint.h>

struct meter;

/* One measurement. */
struct rpc_plan {
	char address[96];     /* of IPv4, or the path of a unix socket */
	uint16_t port;        /* for the client; the server chooses */
	bool is_unix;         /* socket */
	uint32_t payload;     /* bytes */
	uint32_t connections; /* from the one client */
	uint32_t outstanding; /* calls, on each connection */
	uint32_t request_len; /* bytes of a frame, for raw peers: as long as spoke's */
	uint32_t reply_len;
	uint64_t spin_ns; /* the peer's */
	/* What the benchmark of growth lets grow; 0 elsewhere. */
	uint32_t total;     /* calls outstanding on all connections, whatever `outstanding` says */
	uint32_t endpoints; /* of the one consumer, a connection to each */
	uint32_t kept;      /* calls that wait for an answer that does not come soon */
	uint32_t parked;    /* failback calls that wait for their next attempt */
	char balancer[24];  /* that chooses an endpoint */
	uint64_t setup_ns;  /* that a client may take before the warm-up */
	uint64_t warm_ns;   /* before it */
	uint64_t span_ns;
	int server_pid;
	int server_cpu;
	int client_cpu;
};

/* What the client saw from the end of the warm-up on. */
struct rpc_report {
	uint64_t elapsed_ns;
	uint64_t calls;
	uint64_t failed;
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t server_cpu_ns;
	uint64_t client_cpu_ns;
	double foreign; /* share of all CPUs that others used */
	struct host_calls server;
	struct host_calls client;
};

struct rpc_peer {
	const char *name;
	/* Calls stage_ready() when it listens, and never returns. */
	void (*serve)(const struct rpc_plan *plan);
	/* Keeps the calls of the plan outstanding until the meter is over. */
	void (*drive)(const struct rpc_plan *plan, struct meter *meter);
	/* Both look for so long before they sleep; 0: they sleep at once. */
	uint64_t spin_ns;
};

#define RPC_SPIN_NS UINT64_C(50000)

extern const struct rpc_peer rpc_spoke;
extern const struct rpc_peer rpc_raw_libev;
extern const struct rpc_peer rpc_raw_epoll;
extern const struct rpc_peer rpc_spoke_spin;
extern const struct rpc_peer rpc_raw_epoll_spin;

#endif
