/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a wheel with a sorted list: both get the same operations, from outside and from
 * callbacks, as a source of choices asks for them. The list is the model: slow, short and obviously
 * correct.
 */
#ifndef TESTS_TIMER_MODEL_H
#define TESTS_TIMER_MODEL_H

#include <spoke/wheel.h>

/* A source of choices: a seeded generator or the bytes of a fuzzer. */
struct choices {
	/* Returns a number of `count` random bits, at most 64. */
	uint64_t (*bits)(struct choices *choices, unsigned count);
	/* Returns false when the source is used up, which ends the run. */
	bool (*more)(struct choices *choices);
};

struct model;

/* Makes a wheel with these options, which must be valid, and its model. Returns NULL if there is no
 * memory. */
struct model *model_new(const struct spoke_wheel_options *options);
void model_free(struct model *model);

/*
 * Does at most `operations` operations, fewer if the choices end. Checks the wheel's invariants
 * every `check_every` operations; 0 means never. Returns NULL, or a sentence that describes the
 * difference between wheel and model, which cannot be used any more then.
 */
const char *model_run(struct model *model, struct choices *choices, uint64_t operations,
		      uint64_t check_every);

/* Stops the wheel and compares all counters. Returns the same values as model_run(). */
const char *model_finish(struct model *model);

/* Return the number of operations done and of timers fired. A run that fires no timer tests little.
 */
uint64_t model_operations(const struct model *model);
uint64_t model_fired(const struct model *model);

#endif
