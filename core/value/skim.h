/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says whether bytes are msgpack within limits, before anybody decodes them. Allocates nothing and
 * does not recurse. It may be given the bytes piece by piece, as they come, and looks at each byte
 * once; all cuts give the same answer. What a header claims is compared with the bytes that can
 * still follow at once, so that a claim alone costs nothing.
 *
 * It accepts what msgpack-c's msgpack_unpack_next() accepts, but for the limits. Owned by whoever
 * embeds it; nothing to undo.
 */
#ifndef SPOKEI_CORE_VALUE_SKIM_H
#define SPOKEI_CORE_VALUE_SKIM_H

#include <spoke/value.h>

/* The answer when all is well so far and the bytes are at an end; errors are negative. */
#define SPOKEI_SKIM_MORE 1

/* As many values as there are. */
#define SPOKEI_SKIM_ALL SIZE_MAX

struct spokei_skim {
	size_t seen;    /* bytes looked at; when it is done, the bytes of the values */
	size_t end;     /* bytes there are, or may be */
	size_t content; /* bytes of a str, bin or number that are still to come */
	size_t wanted;  /* values asked for */
	size_t count;   /* ... and found */
	int result;     /* MORE, or the answer */
	int beyond;     /* the answer to whatever goes beyond the end */
	uint32_t items; /* values that may still be announced */
	uint32_t left;  /* values that the innermost container lacks */
	uint32_t depth;
	uint32_t depth_max;
	uint8_t head_len; /* bytes of a head that was cut */
	unsigned char head[5];
	uint32_t open[SPOKE_VALUE_DEPTH_MAX]; /* left, of the containers around it */
};

/* What is left of limits when those that are 0 stand at their default: SPOKE_EINVAL or 0. */
SPOKE_MUST_USE int spokei_limits_settle(const struct spoke_value_limits *limits,
					struct spoke_value_limits *ret);

/* The items that the limits allow, from the count and from the memory of a tree. */
uint32_t spokei_limits_items(const struct spoke_value_limits *limits);

/*
 * Starts on a body of `len` bytes, which has to be exactly `count` values, or any number of them
 * (SPOKEI_SKIM_ALL). `limits` are taken as they are: 0 is 0. Truncation is found at once.
 */
void spokei_skim_start_body(struct spokei_skim *skim, const struct spoke_value_limits *limits,
			    size_t len, size_t count);

/* Starts on one value of a stream, whose end nobody knows but itself. */
void spokei_skim_start_stream(struct spokei_skim *skim, const struct spoke_value_limits *limits);

/*
 * Looks at the `len` bytes that follow those looked at before. Returns 0 when the values are
 * complete (of a stream: `seen` says where the next one begins), MORE, or SPOKE_ETRUNCATED,
 * SPOKE_ETRAILING, SPOKE_ECORRUPT, SPOKE_EDEPTH, SPOKE_ETOOLARGE. Once the answer is not MORE it
 * stays.
 */
SPOKE_MUST_USE int spokei_skim_feed(struct spokei_skim *skim, const void *bytes, size_t len);

#endif
