/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The neutral message, which every wire reads from bytes and writes to bytes, and the table that a
 * wire fills in. A message that was read owns nothing: its spans and values point into
 * the frame, or into the codec's scratch, and live as long as those. Deciders all: no clock, no
 * socket.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MESSAGE_H
#define SPOKEI_TRANSPORT_WIRE_MESSAGE_H

#include "core/memory/buffer.h"
#include "core/value/skim.h"

#include <spoke/value.h>

enum spokei_kind {
	SPOKEI_REQUEST,      /* a call, two-way or one-way */
	SPOKEI_REPLY,        /* the answer to one */
	SPOKEI_PROBE,        /* a heartbeat that wants an answer */
	SPOKEI_PROBE_ANSWER, /* that answer */
	SPOKEI_READONLY,     /* the sender takes no new calls, and makes none */
	SPOKEI_WRITABLE,     /* ... it does so again */
	SPOKEI_EVENT,        /* another event; not understood, and ignored */
};

struct spokei_codec;

/* What a side accepts; settled once, of all connections of that side. */
struct spokei_wire_limits {
	size_t frame_max; /* bytes of a frame, with its header; at most INT32_MAX */
	size_t name_max;  /* bytes of a service's or method's name, and so on */
	size_t event_max; /* bytes of an event's body */
	struct spoke_value_limits value;
	/* Bytes of a body that has not enough of them to exceed those limits, whatever it says, but
	 * the depth; 0: nobody knows. */
	size_t free_len;
	/* The codec of the calls and heartbeats of this side; NULL: msgpack. It is found by its id
	 * before those that are built in. */
	const struct spokei_codec *codec;
};

/* Bytes of args or a value that are long: they need not be copied. */
#define SPOKEI_LENT_MIN 49152u

/* Args or a value that are not copied into the frame: it has room for them, to be filled by who
 * lends this, or to be passed over as the frame is written. */
struct spokei_lent {
	unsigned char *at; /* the room; NULL: they were copied */
	struct spoke_span bytes;
};

/* The fields are in the order of what belongs together. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct spokei_message {
	enum spokei_kind kind;
	uint64_t id;
	bool two_way;  /* requests: an answer is wanted */
	uint8_t codec; /* id of the serialization (Dubbo's low five bits) */

	/* Requests. */
	struct spoke_span service; /* as "demo.EchoService"; empty: the wire has none */
	struct spoke_span version; /* empty: none */
	struct spoke_span group;   /* empty: none */
	struct spoke_span method;
	struct spoke_span types; /* JVM descriptors of the arguments; empty: derive them */
	struct spoke_span args;  /* values one after another */
	size_t arg_count;
	bool generic;                  /* decoded from $invoke; types are empty then */
	struct spoke_value type_names; /* of a generic call: Java's names of the types, or none */
	int64_t timeout_ms; /* left for it, rounded up; 0: not told; below 0: it had run out */

	/*
	 * Requests that are written: what the wire's prefix() made of this service, version, method
	 * and types; empty: none. It spares the wire to look at them again. Without types it is
	 * good for arguments of any types, which are derived each time.
	 */
	struct spoke_span prefix;
	/* Messages that are written: where to say that args or value were not copied, as they are
	 * long; NULL: they are. Valid until the buffer is next written to. */
	struct spokei_lent *lent;

	/*
	 * Requests that were read with a memo: service, version, group, method and types are those
	 * of the request before it that the memo knows, the last one that was read without error.
	 */
	bool repeat;

	/* Replies. */
	uint8_t status;           /* of the Dubbo header; other wires use the nearest */
	int error;                /* 0, or the neutral SPOKE_E... that the status or marker means */
	struct spoke_value value; /* result, NIL or none: null; of an exception: its fields */
	struct spoke_span error_text;  /* for people; may be empty */
	struct spoke_span error_class; /* Java class of an exception; may be empty */
	int32_t error_code;            /* of an exception; 0: none */

	/* Both. */
	struct spoke_value attachments; /* a map, or none */
	bool bare; /* of a request: replies to it have no attachments; of a reply: it has none */

	/* Events. */
	struct spoke_span event; /* the body, in its codec; a probe's answer bears the same */
};

/* Where cutting stands in a stream. */
struct spokei_cut {
	bool started; /* not before the first byte, and not after a frame: the rest means nothing
			 then */
	struct spokei_skim skim; /* of wires without a length */
};

#define SPOKEI_CUT_MORE 1

/* What the last request of a stream said; see memo.h. */
struct spokei_memo;

struct spokei_wire {
	const char *name;
	uint64_t id_first; /* of the calls that spoke makes ... */
	uint64_t id_max;   /* ... and the last one that fits */
	bool probes;       /* has heartbeats, events and announcements of going away */
	bool deadlines;    /* can say how much time remains */
	bool attachments;  /* can say attachments, versions and groups */
	/* Does a connection that begins with this byte speak it? */
	bool (*knows)(unsigned char first);
	/*
	 * Finds the end of the frame at the start of `bytes`, of which earlier calls saw a prefix.
	 * Returns 0 and its length, CUT_MORE when more bytes are needed (*ret_len: how many in all,
	 * as far as is known), or SPOKE_EPROTOCOL / SPOKE_ETOOLARGE / a skim's error: the stream is
	 * broken, and no later byte has a meaning. Nothing is allocated and no body is decoded.
	 */
	int (*cut)(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		   struct spoke_span bytes, size_t *ret_len);
	/*
	 * Reads a whole frame, which cut has found. Returns 0, or an error when its body is broken;
	 * kind, id and two_way are good then too, so that the sender can be told and the connection
	 * kept. SPOKE_EPROTOCOL: not even they are known; the stream is broken.
	 *
	 * `memo` is the stream's own, of one wire and one set of limits; NULL: none. But for
	 * `repeat` it makes no difference to what is read, only to how fast.
	 *
	 * `scratch` is where a codec puts what it makes of the body: the message may point into it.
	 * Its maximum bounds that; SPOKE_ENOMEM: there is no memory for it.
	 */
	int (*read)(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
		    struct spoke_span frame, struct spokei_buffer *scratch,
		    struct spokei_message *ret_message);
	/*
	 * Appends what stands in each request of this service, version, method and types between
	 * the id and the arguments, for the message's field `prefix`. Of a generic call, of which
	 * there is none, nothing. Returns what write() would say of these, or 0.
	 */
	int (*prefix)(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      struct spokei_buffer *out);
	/*
	 * Appends the frame of a message, whose values somebody has checked: those that a builder
	 * made are, others the caller checks once. Returns 0, ENOMEM, ETOOLARGE (over the buffer's
	 * maximum or frame_max), EUNSUPPORTED: the wire cannot say this, or EDEPTH and ETOOLARGE
	 * for values beyond what it can carry; nothing stays appended then.
	 *
	 * With a prefix, service, version and method are not looked at, and of types only whether
	 * there are any, as there were when the prefix was made.
	 */
	int (*write)(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		     struct spokei_buffer *out);
};

static inline struct spoke_span spokei_span(const void *data, size_t len)
{
	return (struct spoke_span){ data, len };
}

/* All fields to zero, in steps for which compilers have nothing slower than stores: of all that is
 * done for a small message this would take the most time. */
static inline void spokei_message_clear(struct spokei_message *message)
{
	unsigned char *at = (unsigned char *)message;

	_Static_assert(sizeof(*message) > 256 && sizeof(*message) <= 320, "five steps");
	memset(at, 0, 64);
	memset(at + 64, 0, 64);
	memset(at + 128, 0, 64);
	memset(at + 192, 0, 64);
	memset(at + sizeof(*message) - 64, 0, 64);
}

/* Is the span this text? */
static inline bool spokei_span_is(struct spoke_span span, const char *text)
{
	size_t len = strlen(text);

	return span.len == len && memcmp(span.data, text, len) == 0;
}

#endif
