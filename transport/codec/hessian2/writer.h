/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes msgpack values as Hessian 2, one after another. The rooms that write a part of a message,
 * steered arguments and exceptions stand on these functions. Owned by one function call; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITER_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITER_H

#include "transport/codec/hessian2/object.h"

/* Begins at the first of the values. */
void spokei_hessian2_writer_start(struct spokei_hessian2_writer *writer, struct spoke_span values,
				  struct spokei_buffer *out);

/* Writes the next value, with all values inside. */
void spokei_hessian2_write_value(struct spokei_hessian2_writer *writer);

/* Writes the next value, an array or map, as a list or map of a type; NULL: untyped. `value` is
 * where references to it point: the next value, or an ext around it. */
void spokei_hessian2_write_container(struct spokei_hessian2_writer *writer,
				     const unsigned char *value,
				     const struct spokei_hessian2_name *name);

/* Returns the number of values in the array or map that comes next, and moves to the first one. */
size_t spokei_hessian2_open_next(struct spokei_hessian2_writer *writer);

/* Opens a container whose value begins at `value`. Returns false if it is too deep. Each one that
 * was opened is closed after its last value. */
SPOKE_MUST_USE bool spokei_hessian2_open(struct spokei_hessian2_writer *writer,
					 const unsigned char *value);
static inline void spokei_hessian2_close(struct spokei_hessian2_writer *writer)
{
	writer->depth--;
}

/* Writes the next value, a map, as an object. */
void spokei_hessian2_write_object(struct spokei_hessian2_writer *writer,
				  const struct spokei_hessian2_object *object);

#endif
