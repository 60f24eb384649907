/* SPDX-License-Identifier: Apache-2.0 */
/* Dubbo's bodies in other serializations than msgpack. Any thread. */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_TRANSLATE_H

#include "transport/wire/memo.h"
#include "transport/wire/message.h"

/* --- shortcuts
 *
 * Shortcuts for the most frequent messages in Hessian 2, as write.h and memo.h have them for
 * msgpack: requests and replies with a few scalars are translated in one step, without the codec.
 * The results equal those of the codec. All functions return false for any other message, with
 * nothing changed except `scratch`; the codec has to translate it. Stateless except for the memo;
 * any thread. */

/* Appends the frame of a request with a prefix, at most one argument, and no attachments of the
 * caller; or of a reply without attachments. */
bool spokei_dubbo_direct_write_request(const struct spokei_wire_limits *limits,
				       const struct spokei_message *message,
				       struct spokei_buffer *out);

bool spokei_dubbo_direct_write_reply(const struct spokei_wire_limits *limits,
				     const struct spokei_message *message,
				     struct spokei_buffer *out);

/* Reads a request whose names and attachments equal those of the memo. */
bool spokei_dubbo_direct_read_request(const struct spokei_memo *memo, struct spoke_span body,
				      struct spokei_buffer *scratch,
				      struct spokei_message *message);

/* Reads a reply without attachments, or with those that Java sends. */
bool spokei_dubbo_direct_read_reply(const struct spokei_wire_limits *limits, struct spoke_span body,
				    struct spokei_buffer *scratch, struct spokei_message *message);

/* --- by a codec
 *
 * Dubbo's bodies in other serializations than msgpack. A body to write is made in msgpack and then
 * translated by the codec; a received body is translated into msgpack and then read. Stateless;
 * any thread. */

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
