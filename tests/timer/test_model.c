/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a wheel with a sorted list under random operations, for each geometry.
 * SPOKE_MODEL_OPS sets the number of operations per geometry, SPOKE_MODEL_SEED the seed. A failure
 * prints both.
 */
#include "tests/support/test.h"
#include "tests/timer/model.h"
#include "tests/timer/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_OPERATIONS 20000
#define RUN_OPERATIONS 20000 /* operations before a new wheel is made */

struct dice {
	struct choices choices;
	uint64_t state;
};

static uint64_t throw_dice(struct choices *choices, unsigned count)
{
	struct dice *dice = spoke_container_of(choices, struct dice, choices);

	dice->state ^= dice->state << 13;
	dice->state ^= dice->state >> 7;
	dice->state ^= dice->state << 17;
	return count == 0 ? 0 : dice->state * UINT64_C(0x2545f4914f6cdd1d) >> (64 - count);
}

static bool dice_have_more(struct choices *choices)
{
	(void)choices;
	return true;
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);
	char *end;
	unsigned long long number;

	if (text == NULL)
		return otherwise;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || end == text || *end != '\0' || number == 0)
		fail_msg("%s=%s: not a positive number", variable, text);
	return number;
}

/* Ticks and caps vary with the run; the group sets slots and levels. */
static struct spoke_wheel_options options_for(const struct geometry *on, uint64_t run)
{
	static const uint64_t ticks[] = { 1000000, 1, 1000, 30000000, 7 };
	static const uint64_t caps[] = { 1000, 40, 1000, 5 };

	return (struct spoke_wheel_options){ .tick_ns = ticks[run % 5],
					     .slots = on->slots,
					     .levels = on->levels,
					     .pending_max = caps[run % 4] };
}

static void run_model(const struct spoke_wheel_options *options, uint64_t operations, uint64_t seed)
{
	struct dice dice = { { throw_dice, dice_have_more }, seed * UINT64_C(0x9e3779b97f4a7c15) };
	struct model *model = model_new(options);
	const char *broken;

	assert_non_null(model);
	/* A check costs as much as many operations, so only every tenth wheel is checked often. */
	broken = model_run(model, &dice.choices, operations, seed % 10 == 1 ? 13 : 1000);
	if (broken == NULL)
		broken = model_finish(model);
	if (broken) {
		fail_msg("%ux%u tick %llu seed %llu, operation %llu: %s", options->slots,
			 options->levels, (unsigned long long)options->tick_ns,
			 (unsigned long long)seed, (unsigned long long)model_operations(model),
			 broken);
	}
	assert_true(model_fired(model) > operations / 100);
	model_free(model);
}

static const struct geometry *geometry_of(const struct rig *rig)
{
	for (size_t i = 0; i < rig_geometry_count; i++) {
		const struct geometry *on = &rig_geometries[i];

		if (on->levels == rig->levels && on->slots == rig->slots)
			return on;
	}
	fail_msg("no such geometry");
	return NULL;
}

RUNNER(rig_run);

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

RIG_TEST(the_wheel_behaves_like_a_sorted_list)
{
	const struct geometry *on = geometry_of(rig);
	uint64_t left = number_from("SPOKE_MODEL_OPS", DEFAULT_OPERATIONS);
	uint64_t seed = number_from("SPOKE_MODEL_SEED", 1);

	for (uint64_t run = 0; left > 0; run++) {
		struct spoke_wheel_options options = options_for(on, run);
		uint64_t operations = left < RUN_OPERATIONS ? left : RUN_OPERATIONS;

		run_model(&options, operations, seed + run);
		left -= operations;
	}
}
