/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a soak: duration, call rate, random seed. */
#ifndef TESTS_SOAK_PLAN_H
#define TESTS_SOAK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct plan {
	double minutes;
	uint64_t rate; /* calls per second of all processes, at most */
	uint64_t seed;
	uint64_t warm_ns;  /* first part of the run, which is excluded from slopes */
	uint64_t rest_ns;  /* between two rests */
	uint64_t end_ns;   /* duration of the run without its end */
	uint64_t calls;    /* number of calls to reach */
	const char *table; /* file for the table in Markdown; NULL: none */
	bool calm;         /* inject no faults */
	bool plain;        /* do not tune malloc */
};

enum plan_verdict {
	PLAN_GO,
	PLAN_HELPED,
	PLAN_WRONG
};

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret_plan);

#endif
