/* SPDX-License-Identifier: Apache-2.0 */
/* Scales the weights of candidates for balancers. */
#include "cluster/balancer/weights.h"

#include <string.h>

/* Returns the weight of an able place before scaling: 1 if all of them have 0. */
static uint32_t plain_of(const struct spoke_balancer_candidates *candidates, size_t place,
			 bool flat)
{
	if (!candidates->able[place])
		return 0;
	return flat ? 1 : candidates->weights[place];
}

static uint64_t sum_of(const struct spoke_balancer_candidates *candidates)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < candidates->count; i++)
		sum += candidates->able[i] ? candidates->weights[i] : 0;
	return sum;
}

void spokei_weights_set(struct spokei_weights *weights,
			const struct spoke_balancer_candidates *candidates)
{
	uint64_t sum = sum_of(candidates);
	unsigned shift = 0;
	uint32_t *who;

	/* Half the maximum, because the rest is rounded up. */
	while (sum >> shift >= SPOKEI_WEIGHTS_MAX / 2)
		shift++;
	*weights = (struct spokei_weights){
		.places = (uint32_t)candidates->count,
		.even = true,
	};
	who = weights->of + 2 * candidates->count;
	for (size_t i = 0; i < candidates->count; i++) {
		uint32_t plain = plain_of(candidates, i, sum == 0);
		uint32_t weight = plain >> shift;

		if (plain > 0 && weight == 0)
			weight = 1;
		weights->of[i] = weight;
		if (weight == 0)
			continue;
		who[weights->able++] = (uint32_t)i;
		weights->total += weight;
		weights->even = weights->even && weight == weights->of[who[0]];
	}
}

const uint32_t *spokei_weights_untried(struct spokei_weights *weights,
				       const struct spoke_balancer_choice *choice)
{
	uint32_t *rest = weights->of + weights->places;
	uint32_t left = weights->able;

	memcpy(rest, weights->of, weights->places * sizeof(*rest));
	for (size_t i = 0; i < choice->tried_count; i++) {
		size_t place = choice->tried[i];

		if (place >= weights->places || rest[place] == 0)
			continue;
		rest[place] = 0;
		left--;
	}
	return left > 0 ? rest : weights->of;
}
