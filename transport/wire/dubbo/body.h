/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a body. One walk validates and counts them; afterwards they are read by position.
 * Also reads texts and the attachments with a meaning. All results point into the body. Stateless;
 * any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_BODY_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_BODY_H

#include "transport/codec/codec.h"
#include "transport/wire/hop.h"
#include "transport/wire/message.h"

/* The versions, the service, the method and the types: the values before the arguments. */
#define SPOKEI_DUBBO_NAMES 5u

struct spokei_dubbo_body {
	const struct spokei_wire_limits *limits;
	const unsigned char *at;
	const unsigned char *end;
	uint32_t depth_max;
	uint32_t items; /* number of values allowed */
	int bad;        /* the error for values of a wrong type */
	bool checked;   /* a codec of this library has made the values, within the limits */
	/* The places of all values if such a codec tells them, counted from `begin`; else NULL. */
	const struct spokei_codec_places *places;
	const unsigned char *begin;
	size_t passed; /* values before `at` */
	/* The results of the walk. */
	size_t count;
	size_t used; /* number of first values that were read */
	/* The starts of the first values, and the end of the last of them. Only pointers are
	 * stored, because reading back a value that was stored in two halves is slow. */
	const unsigned char *first[SPOKEI_DUBBO_NAMES + 1];
	const unsigned char *last; /* the start of the last value */
};

/* The attachments with a meaning; NONE if the key is absent. */
struct spokei_dubbo_marks {
	struct spoke_value path;
	struct spoke_value version;
	struct spoke_value group;
	struct spoke_value generic;
	struct spoke_value timeout;
	struct spoke_value countdown;
};

/* Returns whether settled limits allow `items` values in `len` bytes; each value has at least one
 * byte. */
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

/* Prepares the walk. `bad`: the error for values of a wrong type. Returns 0, or the error of the
 * limits or of the length. */
SPOKE_MUST_USE int spokei_dubbo_body_start(const struct spokei_wire_limits *limits,
					   struct spoke_span values, int bad,
					   struct spokei_dubbo_body *ret);

/* Validates all values from `at` on, unless they are checked, and stores the starts of the first
 * ones. Values with known places are not looked at. Returns 0 or an error of the validator. */
SPOKE_MUST_USE int spokei_dubbo_body_walk(struct spokei_dubbo_body *body);

/* Reads the next of the first values; false: there are no more. */
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

/* Reads the text of a value; null is the empty text if `may_be_null`. */
SPOKE_MUST_USE int spokei_dubbo_read_text(const struct spokei_dubbo_body *body,
					  struct spoke_value value, bool may_be_null,
					  struct spoke_span *ret);

/* Do the same with a limit for the length of names, the second for the next of the first values. */
SPOKE_MUST_USE int spokei_dubbo_read_name(const struct spokei_dubbo_body *body,
					  struct spoke_value value, bool may_be_null,
					  struct spoke_span *ret);
SPOKE_MUST_USE int spokei_dubbo_next_name(struct spokei_dubbo_body *body, bool may_be_null,
					  struct spoke_span *ret);

/* Reads the attachments of a message: a map with a bounded number of bounded keys, no two of them
 * equal. Sets the message's error text if a bound is exceeded. */
SPOKE_MUST_USE int spokei_dubbo_read_marks(const struct spokei_dubbo_body *body,
					   struct spokei_message *message,
					   struct spokei_dubbo_marks *ret_marks);

/* Returns the remaining time as in struct spokei_message. */
int64_t spokei_dubbo_time_left(const struct spokei_dubbo_marks *marks);

#endif
