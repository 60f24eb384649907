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
	SPOKE_FRAME_WRITABLE, /* ... it does so again */
	SPOKE_FRAME_EVENT,    /* of another kind */
};

/* The name in small letters, as "heartbeat-answer"; NULL for none. */
SPOKE_API const char *spoke_frame_kind_name(enum spoke_frame_kind kind);

/* One message; everything is borrowed, until the next call of a function of the same reader. What a
 * kind does not have is { } or 0. Values are validated; texts are as the peer has sent them. */
struct spoke_frame {
	enum spoke_frame_kind kind;
	const char *wire; /* "dubbo" or "msgpack-rpc" */
	uint64_t id;
	unsigned codec;          /* Dubbo's number of the serialization; 27 is msgpack */
	struct spoke_span bytes; /* all of it, as it is on the wire */
	/* Of requests; those of a generic call ($invoke) are those that it means. */
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span types; /* of the arguments, as the JVM has them */
	struct spoke_span args;  /* values one after another */
	size_t arg_count;
	int64_t timeout_ms; /* left for it, as the sender says; 0: not told; below 0: it ran out */
	/* Of replies. */
	struct spoke_span value;       /* the result, or what an exception contains; one value */
	struct spoke_span text;        /* of an error */
	struct spoke_span error_class; /* Java's, of an exception */
	int code;                      /* of an exception */
	int status;                    /* the wire's number; 20 is well (Dubbo's) */
	/* Of both. */
	struct spoke_span attachments; /* a map */
	/* SPOKE_OK; what the reply means; or with `bad` why the body cannot be understood: then
	 * kind, id, codec and bytes are good, and the next message can be read. */
	int error;
	bool bad;
};

/* A reader of one direction, for one thread at a time. Returns 0 or ENOMEM. `env`: borrowed; NULL:
 * the host's. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_new(const struct spoke_env *env,
					      struct spoke_frames **ret_frames);

/* NULL is fine. */
SPOKE_API void spoke_frames_free(struct spoke_frames *frames);

/* Takes bytes as they come, in pieces of any size; copied. Returns 0, ENOMEM, or ETOOLARGE: what
 * was fed and not read by spoke_frames_next() would be more than 8 MiB; nothing was taken then.
 * Behind what has broken the stream nothing is kept. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_feed(struct spoke_frames *frames, const void *bytes,
					       size_t len);

/* The next message. Returns 0; ETRUNCATED: it wants more bytes; or what is wrong with the stream,
 * which cannot be read any further then, and says so again. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_next(struct spoke_frames *frames,
					       struct spoke_frame *ret_frame);

/* Bytes of a message that is not complete yet. */
SPOKE_API size_t spoke_frames_waiting(const struct spoke_frames *frames);

SPOKE_END_DECLS

#endif
