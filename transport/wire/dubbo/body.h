/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body as values: they are checked and counted in one walk, and then read by their places. Texts,
 * and the attachments that mean something. Everything points into the body. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_BODY_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_BODY_H

#include "transport/wire/hop.h"
#include "transport/wire/message.h"

/* The versions, the service, the method and the types. */
#define SPOKEI_DUBBO_NAMES 5u

struct spokei_dubbo_body {
	const struct spokei_wire_limits *limits;
	const unsigned char *at;
	const unsigned char *end;
	uint32_t depth_max;
	uint32_t items; /* that there may be */
	int bad;        /* the error for values that are not as they should be */
	/* What the walk has found. */
	size_t count;
	size_t used; /* of the first values, those that were read */
	/* Where the first values begin, and what follows the last of them; pointers alone, for a
	 * value that is written in halves is slow to be read as a whole. */
	const unsigned char *first[SPOKEI_DUBBO_NAMES + 1];
	const unsigned char *last; /* where the last value begins */
};

/* The attachments that mean something here; NONE where there is no such key. */
struct spokei_dubbo_marks {
	struct spoke_value path;
	struct spoke_value version;
	struct spoke_value group;
	struct spoke_value generic;
	struct spoke_value timeout;
	struct spoke_value countdown;
};

/* Do the limits, which have to be settled, allow so many values in so many bytes? None has less
 * than a byte. */
static inline bool spokei_dubbo_allows(const struct spokei_wire_limits *limits, size_t len,
				       size_t items)
{
	const struct spoke_value_limits *value = &limits->value;

	if (SPOKEI_LIKELY(len <= limits->free_len))
		return true;
	return value->depth_max - 1 < SPOKE_VALUE_DEPTH_MAX && len <= value->bytes_max &&
	       items <= value->items_max &&
	       items <= value->object_bytes_max / SPOKE_VALUE_OBJECT_BYTES;
}

/* Before the walk; `bad`: the error for a value that is not as it should be. Returns 0, or what is
 * wrong with the limits or the length. */
SPOKE_MUST_USE int spokei_dubbo_body_start(const struct spokei_wire_limits *limits,
					   struct spoke_span values, int bad,
					   struct spokei_dubbo_body *ret);

/* Checks all values from `at` on, and keeps where the first ones begin. Returns 0 or a skim's
 * error. */
SPOKE_MUST_USE int spokei_dubbo_body_walk(struct spokei_dubbo_body *body);

/* The next one of the first values. */
static inline bool spokei_dubbo_next(struct spokei_dubbo_body *body, struct spoke_value *ret)
{
	const unsigned char *const *first = &body->first[body->used];

	if (body->used == SPOKEI_DUBBO_NAMES || body->used == body->count)
		return false;
	ret->data = first[0];
	ret->len = (size_t)(first[1] - first[0]);
	body->used++;
	return true;
}

/* The text of a value, null being the empty one if that may be. */
SPOKE_MUST_USE int spokei_dubbo_read_text(const struct spokei_dubbo_body *body,
					  struct spoke_value value, bool may_be_null,
					  struct spoke_span *ret);

/* One that is not too long for a name; and the same of the next one of the first values. */
SPOKE_MUST_USE int spokei_dubbo_read_name(const struct spokei_dubbo_body *body,
					  struct spoke_value value, bool may_be_null,
					  struct spoke_span *ret);
SPOKE_MUST_USE int spokei_dubbo_next_name(struct spokei_dubbo_body *body, bool may_be_null,
					  struct spoke_span *ret);

/* Reads a map of a bounded number of bounded keys, no two of them equal. */
SPOKE_MUST_USE int spokei_dubbo_read_marks(const struct spokei_dubbo_body *body,
					   struct spoke_value map,
					   struct spokei_dubbo_marks *ret_marks);

/* The time that remains, as a message has it. */
int64_t spokei_dubbo_time_left(const struct spokei_dubbo_marks *marks);

#endif
