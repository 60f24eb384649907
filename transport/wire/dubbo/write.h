/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Dubbo frames in msgpack at the end of a buffer. The codec of the message, into which the
 * frame may be translated, matters only for the form of exceptions. The values of the message must
 * have been checked. All functions return 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE or SPOKE_EUNSUPPORTED;
 * after an error nothing is appended. Room is reserved generously: the maximum of the buffer takes
 * effect up to 256 bytes early, or more for exceptions; frame_max exactly. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_WRITE_H

#include "core/base/error.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/put.h"

/* --- types of arguments
 *
 * The JVM descriptors of the argument types of a request, as one text. Stateless; any thread. */

/* A descriptor, in a size that is copied at once. */
struct spokei_dubbo_type {
	unsigned char len;
	char text[23];
};

/* Bytes after the types that the put functions may overwrite. */
#define SPOKEI_DUBBO_TYPES_BEYOND 23u

/* Does the same for one argument. Returns NULL for an object, whose type has no bound. */
unsigned char *spokei_dubbo_types_put_one(unsigned char *at, struct spoke_span arg);

/* --- frames */

/* Without types in the message, the descriptor is derived from the arguments; see describe(). */
SPOKE_MUST_USE int spokei_dubbo_write_request(const struct spokei_wire_limits *limits,
					      const struct spokei_message *message,
					      struct spokei_buffer *out);

/* Writes a positive number as a short str of digits. Returns the address of the next byte. */
unsigned char *spokei_dubbo_put_digits(unsigned char *at, int64_t number);

/* Implements prefix() of the wire. */
SPOKE_MUST_USE int spokei_dubbo_write_prefix(const struct spokei_wire_limits *limits,
					     const struct spokei_message *message,
					     struct spokei_buffer *out);

/* Returns the status of a reply: its own, or that of its error. An error of the handler, and the
 * refusal of a caller, are exceptions, which have the status OK. */
static inline uint8_t spokei_dubbo_reply_status(const struct spokei_message *message)
{
	if (message->status != 0)
		return message->status;
	if (SPOKEI_LIKELY(message->error == SPOKE_OK))
		return SPOKEI_DUBBO_OK;
	return spokei_error_of(message->error)->dubbo_status;
}

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
