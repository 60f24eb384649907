/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of calls, named payload-connections x calls in flight per connection. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

struct pattern {
	const char *name;
	const char *unix_name; /* the same over a unix socket */
	uint32_t payload;      /* bytes */
	uint32_t connections;
	uint32_t outstanding; /* on each connection */
	bool is_quick;        /* part of a quick run */
	bool is_spun;         /* ... with peers that use a busy poll */
	bool has_unix;        /* a full run measures both kinds of sockets */
};

#define PATTERNS 12

extern const struct pattern patterns[PATTERNS];

/* Returns the length of the frames of an echo of `payload` bytes in Dubbo's format
 * (transport/WIRE.md). Used where spoke itself was not measured. */
uint32_t pattern_request_len(uint32_t payload);
uint32_t pattern_reply_len(uint32_t payload);

#endif
