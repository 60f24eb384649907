/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of spoke serve, and what it does wrong on purpose. */
#ifndef COMMAND_SERVE_FAULTS_H
#define COMMAND_SERVE_FAULTS_H

#include <spoke/provider.h>
#include <spoke/signals.h>

struct faults {
	struct spoke_engine *engine;
	uint64_t delay_ns;        /* of every answer */
	double drop_share;        /* of requests that are never answered, 0 to 1 */
	uint64_t freeze_requests; /* after so many the process stops itself; 0: never */
	uint64_t freeze_ns;       /* ... or after so long */
	uint64_t requests;        /* that came */
	uint64_t dice;            /* state of the dice */
	struct spoke_alarm freeze;
	struct spoke_signal terms;
	struct spoke_signal ints;
	struct later *laters; /* requests that are answered later, or never */
};

SPOKE_MUST_USE int serve_faults_begin(struct faults *faults);

/* Frees what waited; after the engine. */
void serve_faults_end(struct faults *faults);

/* Handlers; `arg` is the struct faults. */
void serve_echo(struct spoke_request *request, void *arg);
void serve_sleep(struct spoke_request *request, void *arg);
void serve_fail(struct spoke_request *request, void *arg);
void serve_drop(struct spoke_request *request, void *arg);

#endif
