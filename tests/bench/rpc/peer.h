/* SPDX-License-Identifier: Apache-2.0 */
/* What an RPC peer brings to the benchmark: a server and a client, each in a process of its own. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "host.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
	uint64_t warm_ns; /* before it */
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
	/* Of its library, as that says itself; NULL when it is not installed. */
	const char *(*version)(void);
	const char *note; /* what a reader of its rows has to know; NULL: nothing */
	bool spins;       /* compared with others that spin, and with nobody else */
	/* The client is the benchmark's own and counts for nothing; the server's is another
	 * program, whose system calls are not seen. */
	bool is_server_alone;
};

extern const struct rpc_peer rpc_spoke;
extern const struct rpc_peer rpc_raw_libev;
extern const struct rpc_peer rpc_raw_epoll;
extern const struct rpc_peer rpc_grpc;
extern const struct rpc_peer rpc_nng;
extern const struct rpc_peer rpc_zeromq;
extern const struct rpc_peer rpc_capnp;
extern const struct rpc_peer rpc_redis;

#ifdef __cplusplus
}
#endif

#endif
