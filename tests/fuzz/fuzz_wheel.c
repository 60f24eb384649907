/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes sequences of calls of the wheel's API against a model. The first bytes select the options,
 * the rest the operations, outside and inside callbacks.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/timer/model.h"

#include <stdio.h>
#include <stdlib.h>

struct bytes {
	struct choices choices;
	const uint8_t *at;
	const uint8_t *end;
};

/* Takes as many bytes as the number needs; after the end of the input they are zero. */
static uint64_t take_bits(struct choices *choices, unsigned count)
{
	struct bytes *bytes = spoke_container_of(choices, struct bytes, choices);
	uint64_t value = 0;

	for (unsigned got = 0; got < count; got += 8)
		value = value << 8 | (bytes->at < bytes->end ? *bytes->at++ : 0);
	return count % 64 ? value & ((UINT64_C(1) << count % 64) - 1) : value;
}

static bool bytes_are_left(struct choices *choices)
{
	struct bytes *bytes = spoke_container_of(choices, struct bytes, choices);

	return bytes->at < bytes->end;
}

FUZZ(wheel)
{
	static const uint64_t ticks[] = { 1, 1000000, 1000, 7 };
	struct bytes bytes = { { take_bits, bytes_are_left }, data, data + size };
	uint64_t slots_bits = 1 + take_bits(&bytes.choices, 3);
	uint64_t levels = 1 + take_bits(&bytes.choices, 2);
	struct spoke_wheel_options options = {
		.slots = 1u << slots_bits,
		.levels = (uint32_t)levels,
		.tick_ns = ticks[take_bits(&bytes.choices, 2)],
		.pending_max = 1 + take_bits(&bytes.choices, 8),
	};
	struct model *model = model_new(&options);
	const char *broken;

	if (model == NULL)
		return 0;
	broken = model_run(model, &bytes.choices, UINT64_MAX, 16);
	if (broken == NULL)
		broken = model_finish(model);
	if (broken) {
		(void)fprintf(stderr, "%ux%u: %s\n", options.slots, options.levels, broken);
		abort();
	}
	model_free(model);
	return 0;
}
