/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of codec 2. transport/HESSIAN.md describes the form that the values of Hessian 2 take
 * in msgpack. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITE_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITE_H

#include "transport/codec/codec.h"

/*
 * Translates as in struct spokei_codec, with the bytes that Java's writer makes of these values.
 * The memory of the tables is bounded and on the stack, so only `out` allocates. Nothing of a
 * reference or a type gets lost when a table is full: it is written in full again.
 */
SPOKE_MUST_USE int spokei_hessian2_from_values(enum spokei_codec_part part,
					       struct spoke_span values, struct spokei_buffer *out);

#endif
