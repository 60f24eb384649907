/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input buffer: converts the bytes of a stream to messages. The first byte determines the wire
 * of the peer. The messages do not depend on the pieces in which the stream arrives. A complete
 * frame is read in place; only an incomplete one is copied, and its buffer grows with the received
 * bytes, never with the announced length. A frame above the limit whose length is known is reported
 * when its header has arrived, and its body is skipped without being kept. Pure: no clock, no
 * socket. Owned by one connection.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_INTAKE_H
#define SPOKEI_TRANSPORT_WIRE_INTAKE_H

#include "transport/wire/message.h"

enum spokei_intake_result {
	SPOKEI_INTAKE_MORE,     /* all bytes are consumed and there is no further message */
	SPOKEI_INTAKE_MESSAGE,  /* a message */
	SPOKEI_INTAKE_BAD_BODY, /* a message of which only kind, id, two_way and codec are valid */
	SPOKEI_INTAKE_BROKEN,   /* the stream is broken; later bytes have no meaning */
};

struct spokei_intake {
	const struct spokei_wire *wire; /* NULL before the first byte */
	/* Frames are read from the caller's bytes, and nothing has to be done before the next one.
	 */
	bool direct;
	bool broken;               /* permanently */
	bool over;                 /* the last request was read; later bytes are dropped */
	bool no_http;              /* set by the owner: the wires that can be off are off */
	bool serves;               /* a request has arrived since the last heartbeat */
	size_t given;              /* bytes of `kept` that contain the last message */
	size_t skip;               /* bytes of a too long frame that are still to come */
	size_t too_long;           /* after BAD_BODY: the length of a too long frame; else 0 */
	struct spokei_buffer kept; /* the beginning of an incomplete frame */
	/* Its error says why the body is bad or the stream is broken; it has a memo from the second
	 * request on, if there is memory. */
	struct spokei_reader reader;
};

void spokei_intake_init(struct spokei_intake *intake, const struct spoke_env *env,
			const struct spokei_wire_limits *limits);
void spokei_intake_fini(struct spokei_intake *intake);

/* Frees the memo of the last request and the scratch, because the peer is idle. The last message is
 * no longer used. */
void spokei_intake_slim(struct spokei_intake *intake);

/*
 * Returns the next message. `bytes` are the bytes read since MORE. The function consumes bytes from
 * their start, and the caller passes the rest again until it returns MORE. The message points into
 * `bytes` or into this struct and is valid until the next call. `repeat` of a request refers to the
 * last request that was returned as MESSAGE; a caller that caches results for it must notice when
 * they become stale. After BAD_BODY and BROKEN, the reader's error is the reason.
 */
enum spokei_intake_result spokei_intake_next(struct spokei_intake *intake, struct spoke_span *bytes,
					     struct spokei_message *ret_message);

/* Returns whether an incomplete frame has begun; the caller bounds the time of such a frame. */
static inline bool spokei_intake_begun(const struct spokei_intake *intake)
{
	return spokei_buffer_len(&intake->kept) > intake->given || intake->skip > 0;
}

#endif
