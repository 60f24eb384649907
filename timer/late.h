/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The longest lateness of a class of timers: ever, and recently. The recent past is divided into
 * slices of time; the wheel ends a slice when it advances.
 */
#ifndef SPOKEI_TIMER_LATE_H
#define SPOKEI_TIMER_LATE_H

#include <spoke/base.h>

#include <string.h>

#define SPOKEI_LATE_SLICES 8u /* ended ones that count as recent */

struct spokei_late {
	uint64_t slice_ns[SPOKEI_LATE_SLICES + 1]; /* the present slice first */
	uint64_t ever_ns;                          /* without the present slice */
};

static inline void spokei_late_note(struct spokei_late *late, uint64_t late_ns)
{
	if (late_ns > late->slice_ns[0])
		late->slice_ns[0] = late_ns;
}

static inline uint64_t spokei_late_ever(const struct spokei_late *late)
{
	return late->slice_ns[0] > late->ever_ns ? late->slice_ns[0] : late->ever_ns;
}

static inline uint64_t spokei_late_recent(const struct spokei_late *late)
{
	uint64_t most_ns = 0;

	for (unsigned i = 0; i <= SPOKEI_LATE_SLICES; i++)
		most_ns = late->slice_ns[i] > most_ns ? late->slice_ns[i] : most_ns;
	return most_ns;
}

/* Ends `slices` slices, and begins an empty one. */
static inline void spokei_late_turn(struct spokei_late *late, uint64_t slices)
{
	late->ever_ns = spokei_late_ever(late);
	for (; slices > 0 && spokei_late_recent(late) > 0; slices--) {
		memmove(&late->slice_ns[1], &late->slice_ns[0],
			SPOKEI_LATE_SLICES * sizeof(late->slice_ns[0]));
		late->slice_ns[0] = 0;
	}
}

#endif
