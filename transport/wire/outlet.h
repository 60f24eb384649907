/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output buffer: converts messages to bytes, in order, heartbeats and their answers first. It
 * counts the bytes that the stream has taken, so that the connection knows of each request whether
 * it was written. Pure: no clock, no socket. Owned by one connection.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_OUTLET_H
#define SPOKEI_TRANSPORT_WIRE_OUTLET_H

#include "core/memory/buffer.h"
#include "transport/wire/message.h"

#define SPOKEI_OUTLET_PARTS 3

struct spokei_outlet {
	struct spokei_buffer out;     /* frames in order */
	struct spokei_buffer control; /* frames that are written first, between two of `out` */
	uint64_t sent;                /* bytes of `out` that the stream has taken in total */
	size_t cut; /* bytes that are missing of the partly written frame at the front of `out` */
};

/* Initialises an output buffer for at most `max` bytes of frames. */
void spokei_outlet_init(struct spokei_outlet *outlet, const struct spoke_env *env, size_t max);
void spokei_outlet_fini(struct spokei_outlet *outlet);

/* Returns the mark of the next message; spokei_outlet_passed() is true once its first byte is
 * written. */
static inline uint64_t spokei_outlet_mark(const struct spokei_outlet *outlet)
{
	return outlet->sent + spokei_buffer_len(&outlet->out);
}

static inline bool spokei_outlet_passed(const struct spokei_outlet *outlet, uint64_t mark)
{
	return outlet->sent > mark;
}

/* Returns the number of waiting bytes. */
static inline size_t spokei_outlet_len(const struct spokei_outlet *outlet)
{
	return spokei_buffer_len(&outlet->out) + spokei_buffer_len(&outlet->control);
}

/* The slow path of spokei_outlet_put(): there was no room for the largest possible frame. Nothing
 * is lent. */
SPOKE_MUST_USE int spokei_outlet_put_aside(struct spokei_buffer *queue,
					   const struct spokei_wire *wire,
					   const struct spokei_wire_limits *limits,
					   const struct spokei_message *message);

/*
 * Appends the frame of a message. Returns the result of wire->write(), with one difference:
 * SPOKE_ETOOLARGE means that the message can never be sent, SPOKE_ELIMIT that too many bytes are
 * waiting. After an error nothing is appended.
 */
SPOKE_MUST_USE static inline int spokei_outlet_put(struct spokei_outlet *outlet,
						   const struct spokei_wire *wire,
						   const struct spokei_wire_limits *limits,
						   const struct spokei_message *message)
{
	int error = wire->write(limits, message, &outlet->out);

	if (SPOKEI_UNLIKELY(error == SPOKE_ETOOLARGE))
		return spokei_outlet_put_aside(&outlet->out, wire, limits, message);
	return error;
}

/* Does the same for a frame that precedes the others; at most 4 KiB of them wait.
 * SPOKE_EUNSUPPORTED: the wire has no heartbeats. */
SPOKE_MUST_USE int spokei_outlet_put_control(struct spokei_outlet *outlet,
					     const struct spokei_wire *wire,
					     const struct spokei_wire_limits *limits,
					     const struct spokei_message *message);

/* Returns the parts to write next, in order, and their number; 0: nothing waits. */
int spokei_outlet_front(const struct spokei_outlet *outlet,
			struct iovec parts[SPOKEI_OUTLET_PARTS]);

/* Removes the `len` bytes that the stream has taken. The wire is that of the queued frames. */
void spokei_outlet_took(struct spokei_outlet *outlet, const struct spokei_wire *wire, size_t len);

#endif
