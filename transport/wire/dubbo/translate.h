/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dubbo's bodies in other serializations than msgpack. A body that is written is made in msgpack
 * first and then translated by its codec; a body that was read is translated into msgpack and then
 * read. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H

#include "transport/wire/message.h"

/* Translates the body of a message whose head was read. The values lie in `scratch` or in `body`.
 * Returns 0, SPOKE_EUNSUPPORTED (no codec can read this body) or an error of the codec. */
SPOKE_MUST_USE int spokei_dubbo_translate_body(const struct spokei_wire_limits *limits,
					       const struct spokei_message *message,
					       struct spoke_span body,
					       struct spokei_buffer *scratch,
					       struct spoke_span *ret_values);

/* These append a frame, or a prefix, in the codec of the message. Each returns what the function
 * of write.h with a similar name returns, SPOKE_EUNSUPPORTED (no codec can write this) or an error
 * of the codec. Nothing stays appended then. Nothing is lent. */
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
