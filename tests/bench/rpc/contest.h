/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program of this benchmark is: who takes part, how long it may take, and what it says at
 * the end. Each program has one, by the name `contest`; all the rest they have in common.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "peer.h"

#include <stddef.h>
#include <stdio.h>

#define CONTEST_PEERS_MAX 16

struct contest_entry {
	const char *name;
	const struct rpc_peer *peer; /* NULL: its library was missing when this was built */
	const char *package;         /* of Debian, that has it */
};

struct contest {
	const struct contest_entry *entries; /* in the order of the report */
	size_t count;                        /* of them, CONTEST_PEERS_MAX at most */
	uint32_t reps;
	uint32_t quick_reps;
	uint64_t span_ms;
	uint64_t quick_span_ms;
	uint64_t budget_s; /* no measurement is repeated later than this after the start */
	uint64_t quick_budget_s;
	bool is_mixed; /* those that spin take part unless the others are left out; else only then
			*/
	/* After all patterns: what came of it, as a chapter in Markdown. */
	void (*print)(FILE *out);
};

extern const struct contest contest;

/* The peers that take part. */
struct contest_cast {
	const struct rpc_peer *peers[CONTEST_PEERS_MAX];
	size_t count;
};

/* `only`, when it is not NULL, is the one that takes part; `spin`: nobody who does not. Says on
 * stdout, in comments, who is left out and what has to be known of the others. */
struct contest_cast contest_gather(const char *only, bool spin);

/* Whether there is one of that name, installed or not, built in or not. */
bool contest_has(const char *name);

/* The peer of that name that was built in, installed or not; NULL: there is none. */
const struct rpc_peer *contest_find(const char *name);

#endif
