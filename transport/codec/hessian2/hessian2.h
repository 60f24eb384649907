/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec 2: messages in Hessian 2. transport/HESSIAN.md describes the form that their values take in
 * msgpack. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_HESSIAN2_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_HESSIAN2_H

#include "transport/codec/codec.h"

/* Translates as in struct spokei_codec. A body in which an object refers to a container around it
 * is SPOKE_ECYCLE, unless the limits allow cycles. An exception of a reply needs room twice. */
SPOKE_MUST_USE int spokei_hessian_to_values(const struct spoke_value_limits *limits,
					    enum spokei_codec_part part, struct spoke_span body,
					    struct spokei_buffer *scratch,
					    struct spoke_span *ret_values);

/* Does the same with a request. The places of its values spare the caller a walk over them. */
SPOKE_MUST_USE int spokei_hessian_read_request(const struct spoke_value_limits *limits,
					       struct spoke_span body,
					       struct spokei_buffer *scratch,
					       struct spoke_span *ret_values,
					       struct spokei_codec_places *ret_places);

/*
 * Translates as in struct spokei_codec, with the bytes that Java's writer makes of these values.
 * The memory of the tables is bounded and on the stack, so only `out` allocates. Nothing of a
 * reference or a type gets lost when a table is full: it is written in full again.
 */
SPOKE_MUST_USE int spokei_hessian_from_values(enum spokei_codec_part part, struct spoke_span values,
					      struct spokei_buffer *out);

#endif
