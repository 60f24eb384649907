/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heads of lists, maps, objects and references. The content follows. Owned by one function
 * call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_HEADS_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_HEADS_H

#include "transport/codec/hessian2/state.h"

/* Write the heads of a list and a map; without a name they are untyped. The values follow; a map is
 * ended by write_map_end(). */
void spokei_hessian2_list_head(struct spokei_hessian2_writer *writer,
			       const struct spokei_hessian2_name *name, size_t count);
void spokei_hessian2_map_head(struct spokei_hessian2_writer *writer,
			      const struct spokei_hessian2_name *name);
void spokei_hessian2_map_end(struct spokei_hessian2_writer *writer);

/* Writes the definition of the class, unless it is known, and the head of an object. The values of
 * the fields follow. */
void spokei_hessian2_object_head(struct spokei_hessian2_writer *writer,
				 const struct spokei_hessian2_class *class);

/* Writes a reference to the container with this number. */
void spokei_hessian2_reference(struct spokei_hessian2_writer *writer, uint32_t number);

#endif
