/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Dubbo frames at the end of a buffer, in msgpack or by the codec of the message. The values
 * of the message must have been checked. All functions return 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE or
 * SPOKE_EUNSUPPORTED, or an error of the codec; after an error nothing is appended. Room is
 * reserved generously for msgpack: the maximum of the buffer takes effect up to 256 bytes early, or
 * more for exceptions; frame_max exactly. Only values in msgpack are lent. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H

#include "core/base/error.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/put.h"

/* Without types in the message, the descriptor is derived from the arguments; see describe(). */
SPOKE_MUST_USE int spokei_dubbo_write_request(const struct spokei_wire_limits *limits,
					      const struct spokei_message *message,
					      struct spokei_buffer *out);

/* Implements prefix() of the wire. */
SPOKE_MUST_USE int spokei_dubbo_write_prefix(const struct spokei_wire_limits *limits,
					     const struct spokei_message *message,
					     struct spokei_buffer *out);

/*
 * If the status of the message is 0, it follows from the error. A status other than OK makes the
 * body a text. OK with an error makes it an exception: see exception.h.
 */
SPOKE_MUST_USE int spokei_dubbo_write_reply(const struct spokei_wire_limits *limits,
					    const struct spokei_message *message,
					    struct spokei_buffer *out);

/* Ignores the length in `head`. */
SPOKE_MUST_USE int spokei_dubbo_write_event(const struct spokei_wire_limits *limits,
					    const struct spokei_dubbo_head *head,
					    struct spoke_span body, struct spokei_buffer *out);

#endif
