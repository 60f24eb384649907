/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile bodies of codec 2: made of pieces, read, and compared with the expected error and the
 * memory that the reader may use. A failed check ends the test.
 */
#ifndef TESTS_TRANSPORT_CODEC_HOSTILE_H
#define TESTS_TRANSPORT_CODEC_HOSTILE_H

#include "tests/transport/dubbo_frames.h"

#define SCRATCH_MAX 65536u
#define SMALL 4096u /* bytes of scratch for a body of some bytes */
#define BODY_MAX 400000u

struct hostile_body {
	unsigned char bytes[BODY_MAX];
	size_t len;
};

extern struct hostile_body hostile_body;

/* Starts a body: a reply with a value. The setup of each test. */
int hostile_begin(void **state);

/* Appends a piece several times. */
void hostile_put(const char *piece, size_t len, size_t times);

#define PUT(piece, times) hostile_put(piece, sizeof(piece) - 1, times)

/* Reads the body. Checks the result, and that the scratch had at most this capacity. */
void hostile_ends(enum spokei_codec_part part, const struct spoke_value_limits *limits,
		  int expected, size_t scratch_max);

/* Does the same for a reply with default limits. A short body may use SMALL bytes. */
void hostile_refused(int expected);

#endif
