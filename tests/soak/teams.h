/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The teams of a consumer process: consumers of the library that differ in policy, protocol, kind
 * of socket and balancer. Together they hold the process's share of the connections.
 */
#ifndef TESTS_SOAK_TEAMS_H
#define TESTS_SOAK_TEAMS_H

#include "board.h"

#include <spoke/consumer.h>

/* Methods that are called. */
enum team_kind {
	KIND_ECHO,
	KIND_TOIL, /* echo, in the provider's thread pool */
	KIND_DOZE, /* echo, with a delay */
	KIND_FAIL,
	KIND_NUDGE, /* echo, and the provider pushes */
	KINDS,
};

struct team {
	struct spoke_consumer *consumer;
	struct spoke_method *methods[KINDS];
	size_t len_max;       /* largest argument of its calls, in bytes */
	uint64_t attempts;    /* attempts of a call, at most */
	uint64_t deadline_ns; /* of its tickets; 0: no tickets */
	bool one_kind;        /* its protocol has only one kind of error */
};

/* Common options of all teams: the service for pushes and the callback for tickets. */
struct team_up {
	void (*handle)(struct spoke_request *request, void *arg);
	spoke_ticket_done_fn settled;
};

/* Creates all teams; `probes`: only with protocols that have heartbeats. Returns 0 or an error. */
int teams_open(struct spoke_engine *engine, const struct team_up *up, bool probes,
	       struct team *teams);

/* Returns the number of endpoints that are ready now. */
uint64_t teams_ready(const struct team *teams);

#endif
