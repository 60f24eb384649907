/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes arguments as the declared types of a method demand: an integer as int, long or double, an
 * array as an array, list or set, a map as a map or an object of a class. A value that the type
 * does not fit is written as without a type. Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_STEER_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_STEER_H

#include "transport/codec/hessian2/writer.h"

/* The type of an argument, as its descriptor declares it. */
struct spokei_hessian2_type {
	unsigned dims;          /* dimensions of an array; 0: none */
	char kind;              /* the letter of a primitive type, or 'L' */
	struct spoke_span name; /* of a class, with slashes */
};

/* Cuts the first descriptor off the text of the types. Returns false at the end, and if the text is
 * no descriptor; then `types` is empty. */
SPOKE_MUST_USE bool spokei_hessian2_next_type(struct spoke_span *types,
					      struct spokei_hessian2_type *ret);

/* Writes the next value as this type. */
void spokei_hessian2_write_as(struct spokei_hessian2_writer *writer,
			      const struct spokei_hessian2_type *type);

#endif
