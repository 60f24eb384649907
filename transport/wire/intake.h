/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a stream to messages: finds out by the first byte which wire the peer speaks, cuts
 * frames, reads them. However the stream is cut into pieces, the same messages come out. What is
 * complete is read where it lies; only a frame that lacks bytes is copied, and its buffer grows
 * with what has come, never with what was announced. A decider: no clock, no socket. Owned by one
 * connection.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_INTAKE_H
#define SPOKEI_TRANSPORT_WIRE_INTAKE_H

#include "transport/wire/message.h"

enum spokei_intake_result {
	SPOKEI_INTAKE_MORE,     /* all bytes are taken in, no message is left */
	SPOKEI_INTAKE_MESSAGE,  /* a message */
	SPOKEI_INTAKE_BAD_BODY, /* a message of which only kind, id, two_way and codec are good */
	SPOKEI_INTAKE_BROKEN,   /* the stream is; no later byte has a meaning */
};

struct spokei_intake {
	const struct spokei_wire_limits *limits; /* borrowed for its life */
	const struct spokei_wire *wire;          /* NULL before the first byte */
	struct spokei_cut cut;
	struct spokei_buffer kept; /* the start of a frame that is not complete */
	size_t given;              /* bytes of kept that the last message lies in */
	bool broken;               /* for good */
	bool serves;               /* a request has come, since the last heartbeat */
	int error;                 /* why the body is bad, or the stream is broken */
	struct spokei_memo *memo;  /* from the second request on; NULL: none, or no memory for it */
	struct spokei_buffer scratch; /* what a codec made of the last message's body */
};

void spokei_intake_init(struct spokei_intake *intake, const struct spoke_env *env,
			const struct spokei_wire_limits *limits);
void spokei_intake_fini(struct spokei_intake *intake);

/* Forgets the last request: the peer is silent. Messages do not point into what is forgotten. */
void spokei_intake_slim(struct spokei_intake *intake);

/*
 * The next message. `bytes` is what was read since MORE; the intake takes from its start, and wants
 * the rest again until it says MORE. The message points into `bytes` or into the intake, and lives
 * until the next call. A request may be marked as a repeat of the last one that was a MESSAGE; who
 * keeps what he found for it has to know when that is out of date. After BAD_BODY and BROKEN
 * `error` says why.
 */
enum spokei_intake_result spokei_intake_next(struct spokei_intake *intake, struct spoke_span *bytes,
					     struct spokei_message *ret_message);

/* Has a frame begun that is not complete? A peer may not let it wait for ever. */
static inline bool spokei_intake_begun(const struct spokei_intake *intake)
{
	return spokei_buffer_len(&intake->kept) > intake->given;
}

#endif
