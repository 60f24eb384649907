/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of calls, named payload-connections x outstanding calls per connection. */
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
	bool is_spun;         /* ... of one of peers that spin */
	bool has_unix;        /* a full run measures both kinds of sockets */
};

#define PATTERNS 8

extern const struct pattern patterns[PATTERNS];

/* Bytes of the frames that carry an echo of `payload` bytes in Dubbo's format (transport/WIRE.md),
 * by the book; used where spoke itself was not measured. */
uint32_t pattern_request_len(uint32_t payload);
uint32_t pattern_reply_len(uint32_t payload);

#endif
