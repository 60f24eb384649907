/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of spoke serve, and its injected faults. */
#ifndef COMMAND_SERVE_FAULTS_H
#define COMMAND_SERVE_FAULTS_H

#include <spoke/provider.h>
#include <spoke/signals.h>

struct faults {
	struct spoke_engine *engine;
	uint64_t delay_ns;        /* of every answer */
	double drop_share;        /* share of requests that are never answered, 0 to 1 */
	uint64_t freeze_requests; /* the process stops after this many; 0: never */
	uint64_t freeze_ns;       /* ... or after this time */
	uint64_t requests;        /* received so far */
	uint64_t random;          /* state of the random numbers */
	struct spoke_alarm freeze;
	struct spoke_signal terms;
	struct spoke_signal ints;
	struct later *laters; /* delayed or unanswered requests */
};

SPOKE_MUST_USE int serve_faults_begin(struct faults *faults);

/* Frees the delayed requests; call after the engine is freed. */
void serve_faults_end(struct faults *faults);

/* Handlers; `arg` is the struct faults. */
void serve_echo(struct spoke_request *request, void *arg);
void serve_sleep(struct spoke_request *request, void *arg);
void serve_fail(struct spoke_request *request, void *arg);
void serve_drop(struct spoke_request *request, void *arg);

#endif
