/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of leases: a Redis in memory; with sentinels a primary, a replica and one sentinel. The
 * oracle sees each connection to it and each script that it runs, and so knows each grant.
 */
#ifndef TESTS_SIM_STORE_H
#define TESTS_SIM_STORE_H

#include "tests/sim/oracle.h"
#include "tests/support/redis/redis.h"

#include <spoke/fence.h>

enum {
	SIM_GRANTS = 4096,  /* most grants that are remembered, the last ones */
	SIM_HOLDERS = 8192, /* room of the table of holders */
	SIM_HOLDER = 64,    /* bytes of a holder, with the NUL */
};

/* A connection to the store. */
struct sim_line {
	struct sim_end ends[2]; /* that of the client first; they have no stream, but `line` */
	struct sim_line *next;  /* in the list of all, the newest first */
	struct sim_process *process;
	struct fakeredis *server; /* NULL: not accepted */
	unsigned number;          /* counts the connections of the world */
	unsigned client;          /* which leases of the consumer */
	uint64_t hole_until_ns;
};

/* A grant in the store. */
struct sim_grant {
	unsigned name;
	uint64_t fence;
	char holder[SIM_HOLDER];
	uint64_t over;    /* sequence number of its end for its holder; 0: not yet */
	bool lost;        /* the store has lost it since, or gave it away */
	bool failed_over; /* ... or may have */
};

/* What the oracle knows of a name, as of the present primary. */
struct sim_name {
	char text[16];
	char holder[SIM_HOLDER]; /* of the last grant; empty: none */
	uint64_t fence;          /* of the last grant */
	uint64_t told;           /* highest number that a worker was told, of what is not lost */
};

/* A holder that was seen. */
struct sim_holder {
	char text[SIM_HOLDER];
	unsigned name;
	bool counted;  /* its ACQUIRE has run */
	bool released; /* its RELEASE has run, and no ACQUIRE after it ... */
	unsigned line; /* ... on this connection */
};

struct sim_store {
	struct fakeredis servers[2];
	struct fakeredis sentinel;
	struct fakeredis *primary;
	struct sim_line *lines;
	unsigned line_count;
	uint64_t next_fault_ns;
	uint64_t phase_until_ns;
	uint64_t slow_until_ns;
	uint64_t back_ns; /* when the killed server starts; 0: it runs */
	bool wipes;       /* ... empty */
	uint64_t route_until_ns;
	uint64_t lag_until_ns;
	uint64_t demote_ns; /* when the old primary learns that it is a replica; 0: it knows */
	struct fakeredis *old;
	struct sim_name names[SIM_NAMES];
	struct sim_grant grants[SIM_GRANTS];
	uint64_t grant_count;
	struct sim_holder holders[SIM_HOLDERS];
	unsigned holder_count[SIM_CONSUMERS]; /* different ones of each consumer */
	uint64_t ask_count[SIM_CONSUMERS];
	const struct sim_line *newest[SIM_CONSUMERS]; /* the newest that has run a script */
};

/* --- oracle_store.c */

/* Sees what happens at an end of a connection to the store. */
void sim_line_observe(struct sim_end *end, const struct spokei_vnet_news *news);

/* Makes a connection; its begin was seen. */
struct sim_line *sim_line_new(struct sim_process *process, int fd);
void sim_lines_free(struct sim_world *world);

/* Sees each command that the store has run. */
void sim_store_ran(void *arg, struct fakeredis *server, const struct fakeredis_run *run);

/* All that was granted under the name may be lost from now on; UINT_MAX: under all names. */
void sim_store_lost(struct sim_world *world, unsigned name);
void sim_store_failed_over(struct sim_world *world);

/* --- oracle_leases.c */

void sim_lease_asked(struct sim_worker *worker);
void sim_lease_told(struct sim_worker *worker, const struct spoke_lease_answer *answer);
void sim_lease_lost(struct sim_worker *worker, enum spoke_lease_loss why);
void sim_lease_released(struct sim_worker *worker);

/* Records that the worker holds its lease no more. */
void sim_lease_over(struct sim_worker *worker);

/* Checks a request that was written whole, if it needs a lease. `begun` is the sequence number of
 * its first byte, `now` whether that was written at this time. */
void sim_lease_written(const struct sim_call *call, uint64_t begun, bool now);

/* Checks that a call may end with ELEASE. */
void sim_lease_denied(const struct sim_call *call);

/* The provider has read the call, and its fence number unless it refuses the call before that. */
void sim_lease_read(struct sim_provider *provider, const struct sim_call *call);

/* Returns whether the provider may refuse the call for its fence number. */
bool sim_lease_fenced(const struct sim_provider *provider, const struct sim_call *call);

/* Checks a request that a handler runs. */
void sim_lease_runs(struct sim_provider *provider, const struct spoke_request *request);

/* Checks the leases of a process; called in each callback but that of a loss. */
void sim_leases_look(struct sim_process *process);

/* Notes the ends of the leases after a turn. */
void sim_leases_turned(struct sim_consumer *consumer);

/* Checks all leases between turns. */
void sim_leases_check(struct sim_world *world);

/* Checks that nothing is owed to the workers of a process that has ended. */
void sim_leases_end(const struct sim_consumer *consumer);

#endif
