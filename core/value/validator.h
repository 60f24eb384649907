/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates msgpack against limits before it is decoded. The validator neither allocates nor
 * recurses. Input may arrive in pieces of any size; each byte is read once, and the result does not
 * depend on the pieces. Each announced length is compared at once with the bytes that can still
 * follow, so an announcement alone costs nothing.
 *
 * An ext of type SPOKE_EXT_TYPED or SPOKE_EXT_REF is one level of depth with two values inside, if
 * its payload has that form. Its values are counted only if the whole input is one piece. Otherwise
 * the field `exts` is set, and the caller validates the complete input once more.
 *
 * Apart from the limits, it accepts what msgpack_unpack_next() of msgpack-c accepts. Embedded in
 * its owner; nothing to free.
 */
#ifndef SPOKEI_CORE_VALUE_VALIDATOR_H
#define SPOKEI_CORE_VALUE_VALIDATOR_H

#include <spoke/value.h>

#include <stddef.h>
#include <string.h>

/* The result while everything is valid but incomplete. Errors are negative. */
#define SPOKEI_VALIDATOR_MORE 1

/* The number of values is not prescribed. */
#define SPOKEI_VALIDATOR_ALL SIZE_MAX

struct spokei_validator {
	size_t seen;    /* bytes validated so far; at the end, the length of the values */
	size_t end;     /* length of the input, or its maximum */
	size_t content; /* bytes of content that are still missing */
	size_t wanted;  /* values expected */
	size_t count;   /* ... and completed */
	int result;     /* MORE, or the final result */
	int beyond;     /* the result for input beyond `end` */
	uint32_t items; /* values that may still be announced */
	uint32_t left;  /* values that the innermost container still needs */
	uint32_t depth;
	uint32_t depth_max;
	bool whole;       /* the first piece is the whole input */
	bool exts;        /* exts that may contain values were not looked into */
	uint8_t head_len; /* bytes collected of an incomplete head */
	unsigned char head[5];
	uint32_t open[SPOKE_VALUE_DEPTH_MAX]; /* values that the outer containers still need */
};

/* A validator between two pieces, in less memory: the first `depth` numbers of `open` suffice. */
#define SPOKEI_VALIDATOR_KEPT_DEPTH 32u

struct spokei_validator_kept {
	size_t bytes[(offsetof(struct spokei_validator, open) +
		      (size_t)SPOKEI_VALIDATOR_KEPT_DEPTH * 4) /
		     sizeof(size_t)];
};

static inline size_t spokei_validator_kept_len(const struct spokei_validator *validator)
{
	return offsetof(struct spokei_validator, open) +
	       validator->depth * sizeof(validator->open[0]);
}

/* Keeps a validator whose limit of depth is at most SPOKEI_VALIDATOR_KEPT_DEPTH, and restores it.
 */
static inline void spokei_validator_keep(struct spokei_validator_kept *kept,
					 const struct spokei_validator *validator)
{
	memcpy(kept->bytes, validator, spokei_validator_kept_len(validator));
}

static inline void spokei_validator_restore(struct spokei_validator *validator,
					    const struct spokei_validator_kept *kept)
{
	memcpy(validator, kept->bytes, offsetof(struct spokei_validator, open));
	memcpy(validator, kept->bytes, spokei_validator_kept_len(validator));
}

/* Replaces each limit of 0 by its default. Returns 0 or SPOKE_EINVAL. */
SPOKE_MUST_USE int spokei_limits_settle(const struct spoke_value_limits *limits,
					struct spoke_value_limits *ret);

/* Returns whether no limit is 0 or above its maximum. Most are settled already. */
static inline bool spokei_limits_are_settled(const struct spoke_value_limits *limits)
{
	return limits->depth_max - 1 < SPOKE_VALUE_DEPTH_MAX && limits->items_max > 0 &&
	       limits->object_bytes_max > 0 && limits->bytes_max > 0;
}

/* Returns the allowed number of values: the smaller of items_max and what object_bytes_max allows.
 */
static inline uint32_t spokei_limits_items(const struct spoke_value_limits *limits)
{
	size_t objects = limits->object_bytes_max / SPOKE_VALUE_OBJECT_BYTES;

	return objects < limits->items_max ? (uint32_t)objects : limits->items_max;
}

/*
 * Starts to validate a body of `len` bytes that must contain exactly `count` values, or any number
 * (SPOKEI_VALIDATOR_ALL). `limits` must be settled: 0 means 0. Truncation is detected at once.
 */
void spokei_validator_start_body(struct spokei_validator *validator,
				 const struct spoke_value_limits *limits, size_t len, size_t count);

/* Starts to validate one value of a stream. The length of the value is not known in advance. */
void spokei_validator_start_stream(struct spokei_validator *validator,
				   const struct spoke_value_limits *limits);

/*
 * Validates the next `len` bytes. Returns 0 when the values are complete (`seen` is then the start
 * of the next value of a stream), MORE, or SPOKE_ETRUNCATED, SPOKE_ETRAILING, SPOKE_ECORRUPT,
 * SPOKE_EDEPTH, SPOKE_ETOOLARGE. A result other than MORE is final.
 */
SPOKE_MUST_USE int spokei_validate(struct spokei_validator *validator, const void *bytes,
				   size_t len);

/* Validates the value at the start of `len` bytes, also the values in its exts, and writes its
 * length. *items is the number of values allowed, and is reduced by those found. Returns 0 or an
 * error as above. */
SPOKE_MUST_USE int spokei_validator_first(const void *bytes, size_t len, uint32_t depth_max,
					  uint32_t *items, size_t *ret_len);

#endif
