/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of balancer tests: see balancerrig.h. */
#include "tests/cluster/balancer/balancerrig.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

static void renew(struct balancerrig *rig)
{
	spokei_balancer_state_fini(&rig->state, spoke_host_env());
	rig->candidates.able_count = rig->candidates.count;
	rig->candidates.room = rig->candidates.count;
	rig->changes.version++;
}

void balancerrig_begin(struct balancerrig *rig, const struct spoke_balancer *balancer, size_t count)
{
	assert_in_range(count, 1, RIG_PLACES_MAX);
	*rig = (struct balancerrig){ .seed = 1 };
	spokei_balancer_state_init(&rig->state, balancer);
	rig->candidates = (struct spoke_balancer_candidates){
		.count = count,
		.able = rig->able,
		.weights = rig->weights,
		.actives = rig->actives,
		.means_ns = rig->means_ns,
		.successes = rig->successes,
		.chosen_ns = rig->chosen_ns,
		.names = rig->names,
	};
	rig->changes = (struct spokei_changes){
		.version = 1,
		.moved = { .places = rig->moved, .mask = RIG_MOVES - 1 },
		.placed = { .places = rig->placed, .mask = RIG_MOVES - 1 },
	};
	rig->choice.now_ns = RIG_NOW_NS;
	rig->choice.timeout_ns = RIG_TIMEOUT_NS;
	for (size_t i = 0; i < count; i++) {
		rig->able[i] = 1;
		rig->weights[i] = 100;
		rig->successes[i] = 65536;
		rig->names[i] = rig->texts[i];
		(void)snprintf(rig->texts[i], sizeof(rig->texts[i]), "10.0.%zu.%zu:20880", i / 250,
			       i % 250 + 1);
	}
	renew(rig);
}

void balancerrig_end(struct balancerrig *rig)
{
	spokei_balancer_state_fini(&rig->state, spoke_host_env());
}

void balancerrig_changed(struct balancerrig *rig)
{
	rig->candidates.able_count = 0;
	for (size_t i = 0; i < rig->candidates.count; i++)
		rig->candidates.able_count += rig->able[i];
	rig->changes.version++;
}

void balancerrig_moved(struct balancerrig *rig, size_t place)
{
	spokei_moves_note(&rig->changes.moved, place);
}

void balancerrig_place(struct balancerrig *rig, size_t place, const char *name)
{
	rig->names[place] = name;
	rig->able[place] = 1;
	spokei_moves_note(&rig->changes.placed, place);
	balancerrig_changed(rig);
}

void balancerrig_rename(struct balancerrig *rig, const size_t *from, size_t count)
{
	static const char *names[RIG_PLACES_MAX];

	for (size_t i = 0; i < count; i++)
		names[i] = rig->names[from[i]];
	memcpy(rig->names, names, count * sizeof(names[0]));
	rig->candidates.count = count;
	renew(rig);
}

size_t balancerrig_pick(struct balancerrig *rig)
{
	size_t place;

	rig->choice.dice = dice_roll(&rig->seed);
	place = spokei_balancer_state_pick(&rig->state, spoke_host_env(), &rig->candidates,
					   &rig->changes, &rig->choice);
	if (place != SPOKE_NO_ENDPOINT) {
		assert_true(place < rig->candidates.count);
		assert_int_equal(rig->able[place], 1);
	}
	return place;
}

size_t balancerrig_pick_by(struct balancerrig *rig, const void *key, size_t len)
{
	rig->choice.key = (struct spoke_span){ key, len };
	return balancerrig_pick(rig);
}

void balancerrig_count(struct balancerrig *rig, size_t picks, uint32_t *ret_counts)
{
	memset(ret_counts, 0, rig->candidates.count * sizeof(*ret_counts));
	for (size_t i = 0; i < picks; i++)
		ret_counts[balancerrig_pick(rig)]++;
}

void balancerrig_assert_share(uint32_t count, size_t picks, double share)
{
	double expected = (double)picks * share;

	if (count < 0.97 * expected || count > 1.03 * expected)
		fail_msg("%u of %zu, not %.0f", (unsigned)count, picks, expected);
}
