/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dubbo's bodies in other serializations than msgpack. A body to write is made in msgpack and then
 * translated by the codec; a received body is translated into msgpack and then read. Stateless; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H

#include "transport/wire/message.h"

/* Reads a body in another serialization into a message whose head was read. The message may point
 * into `scratch`. Returns 0, SPOKE_EUNSUPPORTED, or an error of the codec or of read.h. */
SPOKE_MUST_USE int spokei_dubbo_translate_body(const struct spokei_wire_limits *limits,
					       struct spokei_memo *memo, struct spoke_span body,
					       struct spokei_buffer *scratch,
					       struct spokei_message *message);

/* Append a frame, or a prefix, in the codec of the message. Each returns the errors of its
 * counterpart in write.h, SPOKE_EUNSUPPORTED (no codec) or an error of the codec. After an error
 * nothing is appended. Nothing is lent. */
SPOKE_MUST_USE int spokei_dubbo_translate_request(const struct spokei_wire_limits *limits,
						  const struct spokei_message *message,
						  struct spokei_buffer *out);
SPOKE_MUST_USE int spokei_dubbo_translate_prefix(const struct spokei_wire_limits *limits,
						 const struct spokei_message *message,
						 struct spokei_buffer *out);
SPOKE_MUST_USE int spokei_dubbo_translate_reply(const struct spokei_wire_limits *limits,
						const struct spokei_message *message,
						struct spokei_buffer *out);

#endif
