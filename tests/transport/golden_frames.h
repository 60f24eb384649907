/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded Hessian 2 frames of Dubbo, and what they contain according to an independent reader:
 * tests/golden/hessian2-frames.tsv. A failed check ends the test.
 */
#ifndef TESTS_TRANSPORT_GOLDEN_FRAMES_H
#define TESTS_TRANSPORT_GOLDEN_FRAMES_H

#include "transport/wire/message.h"

#define GOLDEN_FRAMES 318u

struct golden_frame {
	const char *name; /* recording and number */
	const char *kind; /* request, reply, probe, answer or event */
	const char *said; /* the method of a request, the marker of a reply */
	const char *types;
	const char *arg_count;
	const char *values; /* the values of the body in hexadecimal, or their hash */
	unsigned char *bytes;
	size_t len;
};

/* Reads all frames; golden_frames_free() frees them. */
struct golden_frame *golden_frames_read(void);
void golden_frames_free(struct golden_frame *frames);

/* Returns the body of a frame. */
struct spoke_span golden_body(const struct golden_frame *frame);

/* Returns whether the values are those that the file lists for the frame. */
bool golden_frame_has(const struct golden_frame *frame, struct spoke_span values);

#endif
