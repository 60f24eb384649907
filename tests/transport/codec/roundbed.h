/* SPDX-License-Identifier: Apache-2.0 */
/* Writes values as Hessian 2 and reads them back. A failed check ends the test. */
#ifndef TESTS_TRANSPORT_CODEC_ROUNDBED_H
#define TESTS_TRANSPORT_CODEC_ROUNDBED_H

#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"

struct roundbed {
	struct memory memory;
	struct spokei_buffer out;     /* what was written last */
	struct spokei_buffer scratch; /* ... read */
};

extern struct roundbed roundbed;

int roundbed_set_up(void **state);
int roundbed_tear_down(void **state);

/* Returns the bytes of these values. */
struct spoke_span roundbed_written(enum spokei_codec_part part, struct spoke_span values);

/* Does the same with a reply to a generic call. */
struct spoke_span roundbed_written_generic(struct spoke_span values);

/* Returns the values of the bytes that were written last; cycles are allowed. */
struct spoke_span roundbed_read(enum spokei_codec_part part);

/* Asserts that the bytes that were written last are read as these values. */
void roundbed_read_is(enum spokei_codec_part part, struct spoke_span values);

/* Asserts that the values are read back as they are written. */
void roundbed_is_same(enum spokei_codec_part part, struct spoke_span values);

#endif
