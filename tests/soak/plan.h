/* SPDX-License-Identifier: Apache-2.0 */
/* How long, how much, and by which dice. */
#ifndef TESTS_SOAK_PLAN_H
#define TESTS_SOAK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct plan {
	double minutes;
	uint64_t rate; /* calls a second in all, at most */
	uint64_t seed;
	uint64_t warm_ns;  /* the first part of the run, which no slope is made of */
	uint64_t rest_ns;  /* between two rests */
	uint64_t end_ns;   /* how long it takes in all, but for the end itself */
	uint64_t calls;    /* to be reached */
	const char *table; /* a file for the table in Markdown; NULL: none */
	bool calm;         /* nobody is harmed */
	bool plain;        /* malloc is as it comes */
};

enum plan_verdict {
	PLAN_GO,
	PLAN_HELPED,
	PLAN_WRONG
};

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret_plan);

#endif
