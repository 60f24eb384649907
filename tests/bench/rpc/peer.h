/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of an RPC peer: a server and a client, each in a process of its own. */
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
	char address[96];     /* an IPv4 address, or the path of a unix socket */
	uint16_t port;        /* set for the client; the server chooses it */
	bool is_unix;         /* socket */
	bool is_shm;          /* ... over which memory is shared */
	uint32_t payload;     /* bytes */
	uint32_t connections; /* from the one client */
	uint32_t outstanding; /* calls, on each connection */
	uint32_t request_len; /* bytes of a frame, for raw peers: as long as spoke's */
	uint32_t reply_len;
	uint64_t spin_ns;    /* busy poll of the peer */
	uint32_t pause_us;   /* between the end of a call and the next one, of spoke */
	bool is_idle;        /* one call of spoke, before the measurement */
	char congestion[16]; /* congestion control of TCP; "": the kernel's default */
	char certs[96];      /* the folder of certificates; "": calls are plain */
	uint64_t warm_ns;    /* before the measurement */
	uint64_t span_ns;
	int server_pid;
	int server_cpu;
	int client_cpu;
};

/* The client's results, from the end of the warm-up on. */
struct rpc_report {
	uint64_t elapsed_ns;
	uint64_t calls;
	uint64_t failed;
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t server_cpu_ns;
	uint64_t client_cpu_ns;
	bool is_server_alone;
	double foreign; /* share of all CPUs that other processes used */
	struct host_calls server;
	struct host_calls client;
};

struct rpc_peer {
	const char *name;
	/* Calls stage_ready() when the server listens, and never returns. */
	void (*serve)(const struct rpc_plan *plan);
	/* Keeps the calls of the plan in flight until the meter is over. */
	void (*drive)(const struct rpc_plan *plan, struct meter *meter);
	/* Busy poll of both sides before they sleep; 0: none, or the peer's own. */
	uint64_t spin_ns;
	/* Returns the version of the library, or NULL if it is not installed. */
	const char *(*version)(void);
	const char *note; /* a note for readers of its rows; NULL: none */
	/* The client is part of the benchmark and is not measured; the server is another program,
	 * whose system calls are not counted. */
	bool is_server_alone;
	bool has_tls; /* serves and drives plans with certificates */
	/* Takes part only in patterns where busy polls are compared (pattern.is_spun). */
	bool is_spun_only;
	bool has_shm; /* serves and drives plans with shared memory */
	bool is_shm_only;
};

#define RPC_SPIN_NS UINT64_C(50000)

extern const struct rpc_peer rpc_spoke;
extern const struct rpc_peer rpc_thin; /* the limit of the others */
extern const struct rpc_peer rpc_thin_spin;
extern const struct rpc_peer rpc_raw_epoll; /* the kernel's share of a call */
extern const struct rpc_peer rpc_spoke_spin;
extern const struct rpc_peer rpc_spoke_sleep;
extern const struct rpc_peer rpc_spoke_object; /* Hessian 2 */
extern const struct rpc_peer rpc_raw_shm_spin;
extern const struct rpc_peer rpc_spoke_early; /* writes early in each turn */
extern const struct rpc_peer rpc_spoke_late;  /* ... in none */
extern const struct rpc_peer rpc_grpc;
extern const struct rpc_peer rpc_nng;
extern const struct rpc_peer rpc_zeromq;
extern const struct rpc_peer rpc_capnp;
extern const struct rpc_peer rpc_redis;

/* The client of the raw echo on epoll, also for servers that accept frames of fixed size; `request`
 * as for echo_connect(). */
void raw_epoll_drive(const struct rpc_plan *plan, struct meter *meter, const uint8_t *request);

#ifdef __cplusplus
}
#endif

#endif
