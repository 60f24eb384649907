/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the writer: the output, the next value, and the types, classes and containers that
 * the body has so far. Owned by one function call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_STATE_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_STATE_H

#include "core/value/java.h"
#include "transport/codec/hessian2/put.h"
#include "transport/codec/hessian2/tables.h"

/* The last pair of a map tells whether it is an object, so a value is passed once for each map
 * around it. This many times the length of all values may be passed, and as many bytes in any case.
 */
#define SPOKEI_HESSIAN2_PASSES 32u
#define SPOKEI_HESSIAN2_PASSES_MIN ((size_t)32 << 20)

struct spokei_hessian2_writer {
	struct spokei_hessian2_put put;
	const unsigned char *at;              /* the next value */
	const unsigned char *end;             /* the end of all values */
	bool generic;                         /* objects become maps with "class" */
	size_t passes;                        /* bytes inside maps that may still be passed */
	uint32_t depth;                       /* number of open containers and exts */
	uint32_t open[SPOKEI_HESSIAN2_DEPTH]; /* numbers of the open containers */
	struct spokei_hessian2_tables tables;
};

/* Reports that the values cannot be expressed. */
static inline void spokei_hessian2_refuse(struct spokei_hessian2_writer *writer)
{
	spokei_hessian2_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
}

/* Returns whether there is another value, and no error. */
static inline bool spokei_hessian2_more(const struct spokei_hessian2_writer *writer)
{
	return writer->at < writer->end && writer->put.error == 0;
}

/* Returns the type of the next value by its first byte: an ext is an ext with any content. */
static inline unsigned spokei_hessian2_type(const struct spokei_hessian2_writer *writer)
{
	return writer->at < writer->end ? spokei_shapes[*writer->at].type : SPOKE_VALUE_NONE;
}

/* Returns the next value and leaves it to be written. The view reaches to the end of all values. */
static inline struct spoke_value spokei_hessian2_peek(const struct spokei_hessian2_writer *writer)
{
	return (struct spoke_value){ writer->at, (size_t)(writer->end - writer->at) };
}

/* Takes the next value without writing it. Returns false after an error. */
SPOKE_MUST_USE static inline bool spokei_hessian2_take(struct spokei_hessian2_writer *writer,
						       struct spoke_value *ret)
{
	struct spoke_cursor cursor = { writer->at, writer->end, UINT64_MAX };

	if (!spoke_cursor_next(&cursor, ret)) {
		spokei_hessian2_refuse(writer);
		return false;
	}
	writer->at = cursor.at;
	return true;
}

#endif
