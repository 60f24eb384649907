/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes read as messages, for tools that look at what two ends say to each other. It is
 * the reader of spoke's own connections, with the same limits: what it refuses, they refuse.
 */
#ifndef SPOKE_FRAMES_H
#define SPOKE_FRAMES_H

#include <spoke/env.h>
#include <spoke/error.h>
#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_frames;

enum spoke_frame_kind {
	SPOKE_FRAME_REQUEST,
	SPOKE_FRAME_ONEWAY, /* a request that wants no answer */
	SPOKE_FRAME_REPLY,
	SPOKE_FRAME_HEARTBEAT,
	SPOKE_FRAME_HEARTBEAT_ANSWER,
	SPOKE_FRAME_READONLY, /* the sender takes no more requests */
	SPOKE_FRAME_EVENT,    /* of another kind */
};

/* The name in small letters, as "heartbeat-answer"; NULL for none. */
SPOKE_API const char *spoke_frame_kind_name(enum spoke_frame_kind kind);

/* One message; everything is borrowed, until the next call of a function of the same reader. What a
 * kind does not have is { } or 0. Values are validated. */
struct spoke_frame {
	enum spoke_frame_kind kind;
	const char *wire; /* "dubbo" or "msgpack-rpc" */
	uint64_t id;
	size_t len; /* bytes on the wire */
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span args;        /* values one after another */
	struct spoke_span attachments; /* a map */
	struct spoke_span value;       /* of a reply that is well */
	struct spoke_span text;        /* of an error */
	int status;                    /* of a reply: the wire's number; 20 is well (Dubbo's) */
	int error;                     /* SPOKE_OK, what the reply means, or why the body cannot be
					* understood: then the frame is good, and the next one is
					* read */
};

/* A reader of one direction. Returns 0 or ENOMEM. `env` NULL: the host's. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_new(const struct spoke_env *env,
					      struct spoke_frames **ret_frames);
SPOKE_API void spoke_frames_free(struct spoke_frames *frames);

/* Takes bytes as they come, in pieces of any size; copied. Returns 0 or ENOMEM. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_feed(struct spoke_frames *frames, const void *bytes,
					       size_t len);

/* The next message. Returns 0; ETRUNCATED: it wants more bytes; or what is wrong with the stream,
 * which cannot be read any further then, and says so again. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_next(struct spoke_frames *frames,
					       struct spoke_frame *ret_frame);

SPOKE_END_DECLS

#endif
