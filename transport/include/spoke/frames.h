/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a stream of bytes into messages, for tools that inspect traffic. This is the parser of
 * spoke's own connections, with the same limits: both refuse the same streams.
 */
#ifndef SPOKE_FRAMES_H
#define SPOKE_FRAMES_H

#include <spoke/env.h>
#include <spoke/error.h>
#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_frames;

/* Kinds of messages. */
enum spoke_frame_kind {
	SPOKE_FRAME_REQUEST,
	SPOKE_FRAME_ONEWAY, /* a request without a reply */
	SPOKE_FRAME_REPLY,
	SPOKE_FRAME_HEARTBEAT,
	SPOKE_FRAME_HEARTBEAT_ANSWER,
	SPOKE_FRAME_READONLY, /* the sender takes no more requests */
	SPOKE_FRAME_WRITABLE, /* the sender takes requests again */
	SPOKE_FRAME_EVENT,    /* an event of another kind */
	SPOKE_FRAME_CANCEL,   /* the sender waits no more for the reply with this id */
};

/* Returns the name in lower case, e.g. "heartbeat-answer"; NULL for other numbers. */
SPOKE_API const char *spoke_frame_kind_name(enum spoke_frame_kind kind);

/* One message. All views are borrowed until the next call of a function of the same reader. Fields
 * that a kind does not have are { } or 0. Values are validated; texts are unchanged from the peer.
 */
struct spoke_frame {
	enum spoke_frame_kind kind;
	const char *wire; /* "dubbo", "msgpack-rpc" or "http" */
	uint64_t id;      /* of HTTP: the number of the request or of its reply, from 1 on */
	unsigned codec;   /* Dubbo's number of the serialization; 27 is msgpack */
	/* The whole message as on the wire; of a Dubbo frame above 8 MiB, its first bytes. */
	struct spoke_span bytes;
	/* Of requests. For a generic call ($invoke), the service method and arguments inside it. */
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span types; /* of the arguments, as JVM type descriptors */
	struct spoke_span args;  /* a sequence of values */
	size_t arg_count;
	int64_t timeout_ms; /* remaining time sent along; 0: none sent; below 0: expired */
	/* Of replies. */
	struct spoke_span value;       /* the result, or the content of an exception; one value */
	struct spoke_span text;        /* text of an error */
	struct spoke_span error_class; /* Java class of an exception */
	int code;                      /* code of an exception */
	int status;                    /* number on the wire; 20 is success in Dubbo, 200 in HTTP */
	/* Of both. */
	struct spoke_span attachments; /* a map */
	/* SPOKE_OK, or the error of the reply. With `bad` set: the reason why the body could not be
	 * decoded; then only kind, id, codec and bytes are valid, and reading can continue. */
	int error;
	bool bad;
};

/* Makes a reader for one direction of a connection. `env` is borrowed for its life; NULL: the
 * host's. One thread at a time. Returns 0 or ENOMEM. Free it with spoke_frames_free(). */
SPOKE_API SPOKE_MUST_USE int spoke_frames_new(const struct spoke_env *env,
					      struct spoke_frames **ret_frames);

/* Frees a reader; NULL is allowed. */
SPOKE_API void spoke_frames_free(struct spoke_frames *frames);

/* Makes two readers those of one connection, once. The reader of HTTP replies then learns which of
 * them have no body, because they answer a HEAD. Feed it with a reply after the other reader has
 * returned the request. */
SPOKE_API void spoke_frames_pair(struct spoke_frames *frames, struct spoke_frames *other);

/* Adds received bytes, in pieces of any size, which are copied. Returns 0, ENOMEM, or ETOOLARGE
 * (more than 8 MiB would wait for spoke_frames_next()); after an error nothing was added. Bytes
 * after a stream error are dropped. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_feed(struct spoke_frames *frames, const void *bytes,
					       size_t len);

/* Reads the next message. Returns 0, ETRUNCATED (more bytes are needed), or the error of the
 * stream. After a stream error every later call returns the same error. */
SPOKE_API SPOKE_MUST_USE int spoke_frames_next(struct spoke_frames *frames,
					       struct spoke_frame *ret_frame);

/* Returns the number of bytes of an incomplete message. */
SPOKE_API size_t spoke_frames_waiting(const struct spoke_frames *frames);

SPOKE_END_DECLS

#endif
