/* SPDX-License-Identifier: Apache-2.0 */
/* Values to write as Hessian 2, put together piece by piece. A failed check ends the test. */
#ifndef TESTS_TRANSPORT_CODEC_HESSIANBED_H
#define TESTS_TRANSPORT_CODEC_HESSIANBED_H

#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"

#define TYPED SPOKE_EXT_TYPED
#define REF SPOKE_EXT_REF

/* Values to write, and the buffer that receives them. */
struct bed {
	unsigned char values[1u << 20];
	size_t len;
	struct memory memory;
	struct spokei_buffer out;
};

int bed_set_up(void **state);
int bed_tear_down(void **state);

void add_bytes(struct bed *bed, const void *bytes, size_t len);

#define ADD(bed, text) add_bytes(bed, text, sizeof(text) - 1)

/* Makes an ext of the values from `start` on. */
void wrap(struct bed *bed, size_t start, int type);

#define ADD_EXT(bed, type, text)                                                                   \
	do {                                                                                       \
		size_t wrap_start = (bed)->len;                                                    \
                                                                                                   \
		ADD(bed, text);                                                                    \
		wrap(bed, wrap_start, type);                                                       \
	} while (0)

/* Writes the values into the empty buffer. */
int write_all(struct bed *bed, enum spokei_codec_part part);

/* Asserts that the values are written as these bytes, and removes the values. */
void written_is(struct bed *bed, enum spokei_codec_part part, const void *bytes, size_t len);

#define WRITTEN(bed, part, bytes) written_is(bed, SPOKEI_CODEC_##part, bytes, sizeof(bytes) - 1)

/* Asserts that the values cannot be expressed, and removes them. */
void is_refused(struct bed *bed);

/* A text of declared types, the values, and the bytes of the arguments. */
struct row {
	const char *types;
	const char *value;
	size_t value_len;
	const char *bytes;
	size_t len;
};

#define ROW(types, value, bytes)                                                                   \
	{                                                                                          \
		types, value, sizeof(value) - 1, bytes, sizeof(bytes) - 1                          \
	}

/* Asserts that the arguments of each row are written as its bytes. */
void all_are(struct bed *bed, const struct row *rows, size_t count);

#endif
