/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the timing wheel of the status. */
#include "cluster/admin/status_parts.h"
#include "core/engine/engine.h"

#include <spoke/wheel.h>

/* Shows the classes of timers in a slot. Returns the number of rows. */
static uint32_t show_slot(struct spokei_json *json, const struct spoke_wheel *wheel, uint32_t level,
			  uint32_t slot)
{
	uint32_t of_class[SPOKE_WHEEL_CLASSES_MAX];
	uint32_t rows = 0;

	if (spoke_wheel_occupancy(wheel, level, slot, SPOKEI_STATUS_COUNT_MAX, of_class) == 0)
		return 0;
	for (uint32_t i = 0; i < SPOKE_WHEEL_CLASSES_MAX; i++) {
		if (of_class[i] == 0)
			continue;
		spokei_json_u64(json, slot);
		spokei_json_u64(json, of_class[i]);
		spokei_json_u64(json, i);
		rows++;
	}
	return rows;
}

/* Shows the occupied slots of a level, from the cursor on. */
static void show_level(struct spokei_json *json, const struct spoke_wheel *wheel,
		       const struct spoke_wheel_shape *shape, uint32_t level)
{
	uint32_t rows = 0;

	spokei_json_open(json, '[');
	for (uint32_t i = 0; i < shape->slots && rows < SPOKEI_STATUS_SLOTS; i++) {
		uint32_t slot = (shape->cursor[level] + i) & (shape->slots - 1);

		rows += show_slot(json, wheel, level, slot);
	}
	spokei_json_close(json, ']');
}

static void show_slots(struct spokei_json *json, const struct spoke_wheel *wheel)
{
	struct spoke_wheel_shape shape;

	spoke_wheel_shape(wheel, &shape);
	spokei_json_put_u64(json, "tick_ns", shape.tick_ns);
	spokei_json_put_u64(json, "tick", shape.tick);
	spokei_json_put_u64(json, "slots", shape.slots);
	spokei_json_put_u64(json, "levels", shape.levels);
	spokei_json_open_member(json, "cursor", '[');
	for (uint32_t level = 0; level < shape.levels; level++)
		spokei_json_u64(json, shape.cursor[level]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "occupied", '[');
	for (uint32_t level = 0; level < shape.levels; level++)
		show_level(json, wheel, &shape, level);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "count_max", SPOKEI_STATUS_COUNT_MAX);
}

static void show_counts(struct spokei_json *json, const struct spoke_wheel_counts *counts)
{
	spokei_json_put_u64(json, "pending", counts->pending);
	spokei_json_put_u64(json, "scheduled", counts->scheduled);
	spokei_json_put_u64(json, "fired", counts->fired);
	spokei_json_put_u64(json, "cancelled", counts->cancelled);
	spokei_json_put_u64(json, "rescheduled", counts->rescheduled);
	spokei_json_put_u64(json, "late_max_ns", counts->late_max_ns);
	spokei_json_put_u64(json, "late_recent_ns", counts->late_recent_ns);
}

void spokei_status_wheel(struct spokei_json *json, const struct spoke_engine *engine)
{
	const struct spoke_wheel *wheel = engine->wheel;
	uint64_t next_ns = spoke_wheel_next(wheel);
	struct spoke_wheel_counts counts;
	const char *name;

	if (next_ns != SPOKE_WHEEL_NEVER)
		next_ns = next_ns > engine->begin_ns ? next_ns - engine->begin_ns : 0;
	spokei_json_open_member(json, "wheel", '{');
	show_slots(json, wheel);
	spokei_json_put_ms(json, "next_in_ms", next_ns);
	spoke_wheel_counts(wheel, &counts);
	show_counts(json, &counts);
	spokei_json_open_member(json, "classes", '[');
	for (unsigned i = 0; spoke_wheel_class_counts(wheel, i, &counts, &name) == SPOKE_WHEEL_OK;
	     i++) {
		spokei_json_open(json, '{');
		spokei_json_put_text(json, "name", name);
		show_counts(json, &counts);
		spokei_json_close(json, '}');
	}
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}
