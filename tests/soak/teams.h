/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The teams of a consumer process: consumers of the library, each with a policy, a wire, a kind of
 * socket and a balancer of its own, which together hold its share of the connections.
 */
#ifndef TESTS_SOAK_TEAMS_H
#define TESTS_SOAK_TEAMS_H

#include "board.h"

#include <spoke/consumer.h>

/* What is called. */
enum team_kind {
	KIND_ECHO,
	KIND_TOIL, /* echo, on the provider's pool */
	KIND_DOZE, /* echo, later */
	KIND_FAIL,
	KIND_NUDGE, /* echo, and the provider pushes */
	KINDS,
};

struct team {
	struct spoke_consumer *consumer;
	struct spoke_method *methods[KINDS];
	size_t len_max;       /* bytes that its calls carry */
	uint64_t attempts;    /* of a call, at most */
	uint64_t deadline_ns; /* of its tickets; 0: it has none */
	bool one_kind;        /* its wire has errors of one kind */
};

/* Of all teams: what serves the providers' pushes, and what is told of tickets. */
struct team_up {
	void (*handle)(struct spoke_request *request, void *arg);
	spoke_ticket_done_fn settled;
};

/* Makes them all; `probes`: on wires with heartbeats only. Returns 0 or an error. */
int teams_open(struct spoke_engine *engine, const struct team_up *up, bool probes,
	       struct team *teams);

/* How many of their endpoints can be called now. */
uint64_t teams_ready(const struct team *teams);

#endif
