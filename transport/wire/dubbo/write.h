/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Dubbo's wire in msgpack, whatever the codec of the message, at the end of a buffer: in
 * one pass, the header last. All return 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE or SPOKE_EUNSUPPORTED, and
 * append nothing unless it is 0. They are for messages whose values are checked. Room is asked for
 * generously: the buffer's maximum is felt up to 256 bytes early, frame_max to the byte. Stateless;
 * any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H

#include "transport/wire/dubbo/head.h"

/* Without types in the message, the descriptor is derived from the arguments: see describe(). */
SPOKE_MUST_USE int spokei_dubbo_write_request(const struct spokei_wire_limits *limits,
					      const struct spokei_message *message,
					      struct spokei_buffer *out);

/* The table's prefix(). */
SPOKE_MUST_USE int spokei_dubbo_write_prefix(const struct spokei_wire_limits *limits,
					     const struct spokei_message *message,
					     struct spokei_buffer *out);

/* The status of a reply: its own, or the one that its error means. An error of the handler is an
 * exception, which has the status OK. */
static inline uint8_t spokei_dubbo_reply_status(const struct spokei_message *message)
{
	if (message->status != 0)
		return message->status;
	return message->error == SPOKE_EREMOTE ? SPOKEI_DUBBO_OK
					       : spokei_dubbo_error_status(message->error);
}

/*
 * With status 0 in the message, the status follows from its error. A status that is not OK makes a
 * text of the reply; OK with an error makes an exception: of error_class with the fields in value,
 * or, where these are absent, Dubbo's own exception with {message, code}.
 */
SPOKE_MUST_USE int spokei_dubbo_write_reply(const struct spokei_wire_limits *limits,
					    const struct spokei_message *message,
					    struct spokei_buffer *out);

/* The length in `head` is not read. */
SPOKE_MUST_USE int spokei_dubbo_write_event(const struct spokei_wire_limits *limits,
					    const struct spokei_dubbo_head *head,
					    struct spoke_span body, struct spokei_buffer *out);

#endif
