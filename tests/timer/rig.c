/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the wheel's tests: see rig.h. */
#include "tests/timer/rig.h"

#include <stdio.h>
#include <stdlib.h>

const struct geometry rig_geometries[] = {
	{ 512, 1 }, { 32, 1 }, { 2, 1 },    { 64, 4 },   { 256, 4 },
	{ 16, 5 },  { 2, 8 },  { 4096, 2 }, { 4096, 4 },
};
const size_t rig_geometry_count = sizeof(rig_geometries) / sizeof(rig_geometries[0]);

static void item_due(struct spoke_timer *timer, void *arg)
{
	struct item *item = spoke_container_of(timer, struct item, timer);
	struct rig *rig = arg;

	assert_ptr_equal(item->rig, rig);
	assert_false(spoke_timer_armed(timer));
	item->fired++;
	item->fired_at = (spoke_wheel_now(rig->wheel) - RIG_ORIGIN_NS) / RIG_TICK_NS;
	assert_in_range(rig->logged, 0, 4 * RIG_ITEMS - 1);
	rig->log[rig->logged++] = item->id;
	if (item->then)
		item->then(item);
}

void rig_init(struct rig *rig, const struct spoke_wheel_options *options)
{
	size_t size = 0;

	*rig = (struct rig){ .slots = options->slots, .levels = options->levels };
	assert_int_equal(spoke_wheel_size(options, &size), SPOKE_WHEEL_OK);
	rig->memory = malloc(size);
	assert_non_null(rig->memory);
	assert_int_equal(spoke_wheel_init(rig->memory, size, options, RIG_ORIGIN_NS, &rig->wheel),
			 SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_add_class(rig->wheel, "item", item_due, rig,
					       &rig->timer_class),
			 SPOKE_WHEEL_OK);
	for (int id = 0; id < RIG_ITEMS; id++)
		rig->items[id] = (struct item){ .rig = rig, .id = id };
}

void rig_fini(struct rig *rig)
{
	rig_check(rig);
	(void)spoke_wheel_stop(rig->wheel, NULL, NULL);
	rig_check(rig);
	free(rig->memory);
}

void rig_schedule(struct rig *rig, int id, uint64_t tick)
{
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[id].timer, rig->timer_class,
					      rig_ns(tick)),
			 SPOKE_WHEEL_OK);
}

void rig_advance(struct rig *rig, uint64_t tick)
{
	rig_check(rig);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(tick), SPOKE_WHEEL_NO_BUDGET),
			 SPOKE_WHEEL_OK);
	rig_check(rig);
}

struct spoke_wheel_counts rig_counts(const struct rig *rig)
{
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(rig->wheel, &counts);
	return counts;
}

struct spoke_wheel_work rig_work(const struct rig *rig)
{
	struct spoke_wheel_work work;

	spoke_wheel_work(rig->wheel, &work);
	return work;
}

void rig_check(const struct rig *rig)
{
	const char *broken = spoke_wheel_check(rig->wheel);

	if (broken)
		fail_msg("%s", broken);
}

static int set_up(void **state)
{
	const struct geometry *geometry = *state;
	struct spoke_wheel_options options = {
		.tick_ns = RIG_TICK_NS,
		.slots = geometry->slots,
		.levels = geometry->levels,
	};
	struct rig *rig = malloc(sizeof(*rig));

	if (rig == NULL)
		return -1;
	rig_init(rig, &options);
	*state = rig;
	return 0;
}

STEP(tear_down)
{
	rig_fini(*state);
	free(*state);
}

int rig_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
	enum {
		NAME_MAX_LEN = 120,
		CASES_MAX = 1024
	};
	static char names[CASES_MAX][NAME_MAX_LEN];
	static struct CMUnitTest cases[CASES_MAX];
	size_t made = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t g = 0; g < rig_geometry_count; g++, made++) {
			const struct geometry *on = &rig_geometries[g];

			if (made == CASES_MAX)
				return 1;
			(void)snprintf(names[made], NAME_MAX_LEN, "%s %ux%u", tests[i].name,
				       (unsigned)on->slots, (unsigned)on->levels);
			cases[made] = (struct CMUnitTest){ names[made], tests[i].test_func, set_up,
							   tear_down, (void *)(uintptr_t)on };
		}
	}
	return _cmocka_run_group_tests(group, cases, made, NULL, NULL);
}
