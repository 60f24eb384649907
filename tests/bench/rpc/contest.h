/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a program of this benchmark: its peers, its time budget, and its final report. Each
 * program defines one `contest`; the other files are shared.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "peer.h"

#include <stddef.h>
#include <stdio.h>

#define CONTEST_PEERS_MAX 16

struct contest_entry {
	const char *name;
	const struct rpc_peer *peer; /* NULL: its library was missing in the build */
	const char *package;         /* Debian package with its library */
};

struct contest {
	const struct contest_entry *entries; /* in the order of the report */
	size_t count;                        /* number of entries, CONTEST_PEERS_MAX at most */
	uint32_t reps;
	uint32_t quick_reps;
	uint64_t span_ms;
	uint64_t quick_span_ms;
	uint64_t budget_s; /* no measurement is repeated later than this after the start */
	uint64_t quick_budget_s;
	/* Prints the results of all patterns as a chapter in Markdown. */
	void (*print)(FILE *out);
};

extern const struct contest contest;

/* The peers that take part. */
struct contest_cast {
	const struct rpc_peer *peers[CONTEST_PEERS_MAX];
	size_t count;
};

/* Selects the peers. `only` selects one of them, unless it is NULL; `spin` leaves out those
 * without a busy poll; `tls` those that can use it. Prints comments about missing peers and notes
 * about the others to stdout. */
struct contest_cast contest_gather(const char *only, bool spin, bool tls);

/* Returns whether the table has a peer of that name, installed or not. */
bool contest_has(const char *name);

/* Returns the peer of that name that was built in, installed or not, or NULL. */
const struct rpc_peer *contest_find(const char *name);

#endif
