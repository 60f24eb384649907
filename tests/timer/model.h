/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a wheel and a sorted list side by side with the operations that a source of choices asks
 * for, from outside and from inside callbacks, and compares them after each. The list is the model:
 * slow, short and plainly right.
 */
#ifndef TESTS_TIMER_MODEL_H
#define TESTS_TIMER_MODEL_H

#include <spoke/wheel.h>

/* Where choices come from: a seeded generator, or the bytes of a fuzzer. */
struct choices {
	/* A number with so many random bits (at most 64). */
	uint64_t (*bits)(struct choices *choices, unsigned count);
	/* False: the source is used up, and the run ends. */
	bool (*more)(struct choices *choices);
};

struct model;

/* Makes a wheel with these options, which must be good, and its model. NULL: out of memory. */
struct model *model_new(const struct spoke_wheel_options *options);
void model_free(struct model *model);

/*
 * Does operations until there have been `operations` or the choices end; derives the wheel's
 * invariants anew every `check_every` operations (0: never). Returns NULL, or a sentence that says
 * how wheel and model differ; the model is of no use then.
 */
const char *model_run(struct model *model, struct choices *choices, uint64_t operations,
		      uint64_t check_every);

/* Ends what is left by a stop and compares all counts. Returns like model_run(). */
const char *model_finish(struct model *model);

/* Operations that were done, and how many timers have fired: a run that fires none tests little. */
uint64_t model_operations(const struct model *model);
uint64_t model_fired(const struct model *model);

#endif
