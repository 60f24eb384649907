/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of calls, named payload-connections x calls in flight per connection. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* The kinds of connections, each with its row of results. */
enum route {
	ROUTE_TCP, /* with the kernel's default of congestion control */
	ROUTE_UNIX,
	ROUTE_CUBIC, /* TCP with this congestion control on both sides */
	ROUTE_BBR,
	ROUTE_SHM, /* memory is shared over a unix socket */
	ROUTES,
};

#define ROUTE_BIT(route) (1u << (route))

struct pattern {
	const char *names[ROUTES];
	uint32_t payload; /* bytes */
	uint32_t connections;
	uint32_t outstanding; /* on each connection */
	bool is_quick;        /* part of a quick run */
	bool is_spun;         /* ... with peers that use a busy poll, or none */
	unsigned routes;      /* bits of routes that a full run measures in addition to TCP */
};

#define PATTERNS 12

extern const struct pattern patterns[PATTERNS];

/* Returns the congestion control that a route demands of its sockets, or NULL. */
const char *route_congestion(enum route route);

/* Returns the length of the frames of an echo of `payload` bytes in Dubbo's format
 * (transport/WIRE.md). Used where spoke itself was not measured. */
uint32_t pattern_request_len(uint32_t payload);
uint32_t pattern_reply_len(uint32_t payload);

#endif
