/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to bytes: what one connection has to write, in order, heartbeats and their answers
 * first. Tells how far the stream has got, so that it is known of every request whether it was
 * written. A decider: no clock, no socket. Owned by one connection.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_OUTLET_H
#define SPOKEI_TRANSPORT_WIRE_OUTLET_H

#include "core/memory/buffer.h"
#include "transport/wire/message.h"

#define SPOKEI_OUTLET_PARTS 3

struct spokei_outlet {
	struct spokei_buffer out;     /* frames in their order */
	struct spokei_buffer control; /* frames that go before those, at the next frame's start */
	uint64_t sent;                /* bytes of `out` that the stream has taken, ever */
	size_t cut; /* bytes left of the frame at the front of `out` that is partly written */
};

/* Holds up to `max` bytes of frames. */
void spokei_outlet_init(struct spokei_outlet *outlet, const struct spoke_env *env, size_t max);
void spokei_outlet_fini(struct spokei_outlet *outlet);

/* The mark of what is put next: it has begun to be written once spokei_outlet_passed(). */
static inline uint64_t spokei_outlet_mark(const struct spokei_outlet *outlet)
{
	return outlet->sent + spokei_buffer_len(&outlet->out);
}

static inline bool spokei_outlet_passed(const struct spokei_outlet *outlet, uint64_t mark)
{
	return outlet->sent > mark;
}

/* Bytes that wait. */
static inline size_t spokei_outlet_len(const struct spokei_outlet *outlet)
{
	return spokei_buffer_len(&outlet->out) + spokei_buffer_len(&outlet->control);
}

/* spokei_outlet_put(), when there was no room for the most that the frame might need. Nothing is
 * lent. */
SPOKE_MUST_USE int spokei_outlet_put_aside(struct spokei_buffer *queue,
					   const struct spokei_wire *wire,
					   const struct spokei_wire_limits *limits,
					   const struct spokei_message *message);

/*
 * Appends the frame of a message. Returns what wire->write() does; but SPOKE_ETOOLARGE is said only
 * of a message that can never be sent, and SPOKE_ELIMIT of one for which too much waits already.
 * Nothing stays appended then.
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

/* The same for what goes before the others, of which at most 4 KiB wait. SPOKE_EUNSUPPORTED: the
 * wire has no heartbeats. */
SPOKE_MUST_USE int spokei_outlet_put_control(struct spokei_outlet *outlet,
					     const struct spokei_wire *wire,
					     const struct spokei_wire_limits *limits,
					     const struct spokei_message *message);

/* What is to be written now, in order. Returns how many parts; 0: nothing waits. */
int spokei_outlet_front(const struct spokei_outlet *outlet,
			struct iovec parts[SPOKEI_OUTLET_PARTS]);

/* The stream has taken `len` bytes of that. Wire and limits are those of all that was put. */
void spokei_outlet_took(struct spokei_outlet *outlet, const struct spokei_wire *wire,
			const struct spokei_wire_limits *limits, size_t len);

#endif
