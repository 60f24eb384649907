/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps that are objects of Java: their last pair names the class, and the others are the fields.
 * Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_OBJECT_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_OBJECT_H

#include "transport/codec/hessian2/state.h"

/* A map that a program or a reader made of an object. */
struct spokei_hessian2_object {
	struct spokei_hessian2_class class;
	const unsigned char *end; /* the end of the map */
};

/* Reads the next value as an object without a class, whose fields are all pairs. Returns false
 * unless it is a map, and all keys are str. */
SPOKE_MUST_USE bool spokei_hessian2_find_fields(struct spokei_hessian2_writer *writer,
						struct spokei_hessian2_object *ret);

/*
 * Returns whether the next value is a map whose last pair names its class. `any`: the class may
 * have any name, else it must look like one of Java unless a reader made the map; see
 * transport/HESSIAN.md.
 */
SPOKE_MUST_USE bool spokei_hessian2_find_object(struct spokei_hessian2_writer *writer, bool any,
						struct spokei_hessian2_object *ret);

#endif
