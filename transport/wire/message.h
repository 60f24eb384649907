/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire-independent message, and the table of functions of a wire. A message that was read owns
 * nothing: its spans and values point into the frame or into the scratch of a codec, and are valid
 * as long as those. Wires are pure: no clock, no socket.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MESSAGE_H
#define SPOKEI_TRANSPORT_WIRE_MESSAGE_H

#include "core/base/span.h"
#include "core/memory/buffer.h"
#include "core/value/validator.h"

#include <spoke/value.h>

struct spokei_codec;

/* The key of the attachment with the id of a call, and the bytes of an id that spoke makes. */
#define SPOKEI_MESSAGE_ID "spoke.id"
#define SPOKEI_MESSAGE_ID_LEN 32u

enum spokei_kind {
	SPOKEI_REQUEST,      /* a call, two-way or one-way */
	SPOKEI_REPLY,        /* the reply to a request */
	SPOKEI_PROBE,        /* a heartbeat, which requires an answer */
	SPOKEI_PROBE_ANSWER, /* the answer to a heartbeat */
	SPOKEI_READONLY,     /* the sender accepts no new requests and sends none */
	SPOKEI_WRITABLE,     /* the sender accepts requests again */
	SPOKEI_CANCEL,       /* the sender does not wait for the reply to its request any more */
	SPOKEI_EVENT,        /* any other event; ignored */
	SPOKEI_QUESTION,     /* is answered by the wire itself, after earlier replies */
};

/* Which pages of browsers may use the HTTP wire. Lists separated by commas; "" is empty. */
struct spokei_http_rules {
	const char *origins; /* e.g. "https://shop.example"; at most 255 */
	const char *hosts;   /* names of this host, besides "localhost" and addresses in digits */
};

/* The limits of one side; they are the same for all its connections. */
struct spokei_wire_limits {
	size_t frame_max; /* bytes of a frame, with its header; at most INT32_MAX */
	size_t name_max;  /* bytes of a name, e.g. of a service or a method */
	size_t event_max; /* bytes of an event's body */
	struct spoke_value_limits value;
	/* Bytes that may be made of a body in another serialization beyond SPOKEI_CODEC_GROWTH for
	 * each of its bytes, if earlier bodies of the stream have left them. */
	size_t spare_max;
	/* A body below this length cannot exceed these limits, except the depth; 0: unknown. */
	size_t free_len;
	/* The codec of this side's calls and heartbeats; NULL: msgpack. Its id is looked up before
	 * the built-in ones. */
	const struct spokei_codec *codec;
	struct spokei_buffer *plans;          /* for codecs that write; NULL: none */
	const struct spokei_http_rules *http; /* NULL: no origins, no names */
};

/* Args or a value of at least this many bytes need not be copied. */
#define SPOKEI_LENT_MIN 49152u

/* Args or a value that the frame does not contain yet: the frame has room for them. The lender
 * copies the bytes there, or writes them to the stream from their own place. */
struct spokei_lent {
	unsigned char *at; /* the room in the frame; NULL: the bytes were copied */
	struct spoke_span bytes;
};

/* Fields are ordered by topic, but for small ones: four lines of a cache hold a message. */

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct spokei_message {
	enum spokei_kind kind;
	bool two_way;  /* requests: a reply is expected */
	uint8_t codec; /* id of the serialization: the low five bits of Dubbo's flags */
	bool bare;     /* requests: replies have no attachments; replies: this one has none */
	/* Decoded from $invoke; `types` is empty then. Replies that are written: to such a call. */
	bool generic;
	uint64_t id;
	struct spoke_value attachments; /* of requests and replies: a map, or none */

	/* Requests. */
	struct spoke_span args; /* values one after another */
	size_t arg_count;
	int64_t timeout_ms; /* remaining time, rounded up; 0: none given; below 0: expired */
	/*
	 * Requests that are written: the output of prefix() for this service, version, method and
	 * types in this codec; empty: none. It spares encoding them again. A prefix without types
	 * is valid for arguments of any types, which are derived for each request.
	 */
	union {
		struct spoke_span prefix;
		/* Events: the body in its codec; the answer to a heartbeat repeats it. */
		struct spoke_span event;
	};
	/* Messages that are written: set if long args or a long value may be left out of the frame,
	 * valid until the next write to the buffer. NULL: everything is copied. */
	struct spokei_lent *lent;
	/* May be served only by a method that changes nothing. Messages that are no calls: asks
	 * whether the method is such a one. */
	bool safe_only;
	/* The peer sends no more requests, and the connection ends with the reply. Replies that are
	 * written: the same. */
	bool last;
	/* Requests that were read with a memo: service, version, group, method and types equal
	 * those of the last request that was read without error. */
	bool repeat;
	uint8_t status; /* replies: of the Dubbo header; other wires use the nearest one */
	int error;      /* replies: 0, or the SPOKE_E... of the status or marker */
	/* The reason, if a body is bad because its bytes stand for too much; else NULL. */
	const char *swollen;
	struct spoke_span service; /* e.g. "demo.EchoService"; empty: the wire has no services */
	struct spoke_span version; /* empty: none */
	struct spoke_span group;   /* empty: none */
	struct spoke_span method;
	struct spoke_span types;       /* JVM descriptors of the arguments; empty: derived */
	struct spoke_value type_names; /* generic calls: array of Java type names, or none */

	/* Replies. */
	struct spoke_value value;      /* result; NIL or none: null; of an exception: its fields */
	struct spoke_span error_text;  /* readable text; may be empty */
	struct spoke_span error_class; /* Java class of an exception; may be empty */
	int32_t error_code;            /* of an exception; 0: none */
	bool foreign;   /* exceptions that are written: for a Dubbo consumer other than spoke */
	bool forbidden; /* replies that are written: a filter has refused the request */
	bool cancels;   /* answers to heartbeats: the sender understands CANCEL */
};

/* How far an HTTP request was cut. */
struct spokei_cut_http {
	size_t head_len;
	size_t body_len; /* 0 for chunks */
	size_t at;       /* offset in the body of the next chunk */
	size_t joined;   /* bytes of the chunks before it */
	bool chunked;
	bool expects; /* the peer waits for status 100 */
};

/* The state of cutting a stream into frames. */
struct spokei_cut {
	bool started; /* inside a frame; the union is valid only then */
	bool asked;   /* HTTP: status 100 was given for the next body */
	bool to_head; /* responses of HTTP, set by the owner: the next has no body */
	union {
		struct spokei_validator_kept
			validator; /* of wires whose frames have no length field */
		struct spokei_cut_http http;
	};
};

/* The last request of a stream; see memo.h. */
struct spokei_memo;

/* The state of reading a stream. */
struct spokei_reader {
	const struct spokei_wire_limits *limits; /* borrowed for the life of the stream */
	struct spokei_memo *memo;                /* NULL: none */
	size_t len; /* of the frame; after NEXT_MORE: bytes needed in all, as far as known */
	int error; /* why the body is bad, after NEXT_BAD; of the owner, why the stream is broken */
	struct spokei_buffer scratch; /* translated body of the last message */
	struct spokei_cut cut;        /* most streams do not need it */
};

#define SPOKEI_NEXT_MORE 1 /* the frame is not complete */
#define SPOKEI_NEXT_SKIP 2 /* the frame exceeds frame_max, but its end is known */
#define SPOKEI_NEXT_BAD 3  /* the frame is complete, but its body cannot be read */

struct spokei_wire {
	const char *name;
	uint64_t id_first; /* first id of this side's calls ... */
	uint64_t id_max;   /* ... and the largest id */
	bool probes;       /* the wire has heartbeats, events and READONLY */
	bool deadlines;    /* requests carry the remaining time */
	bool attachments;  /* messages carry attachments, versions and groups */
	bool in_order; /* requests are served one after the other, because replies have no ids */
	/* Silence after which a connection is closed if the user has set no time; 0: never. */
	uint64_t idle_ns;
	/* The wire to use where this one is turned off; NULL: it is always on. */
	const struct spokei_wire *off;
	/* Returns whether a connection that begins with this byte uses this wire. */
	bool (*knows)(unsigned char first);
	/* Returns the length of the frame at the start of `bytes`, which this side has written.
	 * NULL: the wire has no heartbeats, and so nothing that goes between frames. */
	size_t (*length)(struct spoke_span bytes);
	/*
	 * Reads the frame at the start of `bytes`; earlier calls saw a prefix of them. Returns 0,
	 * or NEXT_MORE, NEXT_SKIP or NEXT_BAD. In the last two cases kind, id and two_way are still
	 * valid, so that the sender gets an answer and the connection is kept; for a request
	 * error_text is the reason, or empty. NEXT_SKIP needs the header alone. Any other result is
	 * an error: the stream is broken and later bytes have no meaning.
	 *
	 * The memo belongs to the stream, with one wire and one set of limits. Apart from `repeat`
	 * it changes only the speed. Wires that serve in order get none.
	 *
	 * The scratch receives the body that a codec translates; the message may point into it. Its
	 * maximum is what translated bodies have left to later ones. The reason SPOKE_ENOMEM: there
	 * is no memory for it.
	 */
	int (*next)(struct spokei_reader *reader, struct spoke_span bytes,
		    struct spokei_message *ret_message);
	/*
	 * Appends the part between id and arguments that all requests with this service, version,
	 * method, types and codec have in common, for the field `prefix`. Generic calls have none:
	 * nothing is appended. Returns 0 or the error that write() would return for these fields.
	 */
	int (*prefix)(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      struct spokei_buffer *out);
	/*
	 * Appends the frame of a message. The values must have been checked; those of a builder are
	 * valid. Returns 0, ENOMEM, ETOOLARGE (above the maximum of the buffer or frame_max),
	 * EUNSUPPORTED (the wire or codec cannot express the message), or EDEPTH and ETOOLARGE for
	 * values above the limits of the wire. After an error nothing is appended.
	 *
	 * With a prefix, service, version and method are not read, and of types only whether there
	 * are any; that must be the same as for the prefix.
	 */
	int (*write)(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		     struct spokei_buffer *out);
};

/* Returns the result of next() for a complete frame whose body was read with this error, or 0. */
static inline int spokei_wire_read(struct spokei_reader *reader, int error)
{
	if (SPOKEI_LIKELY(error == 0))
		return 0;
	reader->error = error;
	return SPOKEI_NEXT_BAD;
}

/* Sets all fields to zero, in steps that compilers turn into plain stores: one large memset() would
 * be the most expensive part of a small message. */
static inline void spokei_message_clear(struct spokei_message *message)
{
	unsigned char *at = (unsigned char *)message;

	/* On machines of 32 bits they overlap. */
	_Static_assert(sizeof(*message) >= 128 && sizeof(*message) <= 256, "four steps");
	memset(at, 0, 64);
	memset(at + 64, 0, 64);
	memset(at + sizeof(*message) - 128, 0, 64);
	memset(at + sizeof(*message) - 64, 0, 64);
}

/* --- attachments
 *
 * Checks the attachments that a user passes: a map with text keys, no key twice, none of spoke's
 * own keys. Stateless; any thread. */

#define SPOKEI_ATTACHMENTS_MAX 256u /* of a call, or of a reply */

/* Returns 0, an error of the validator, SPOKE_ETYPE (not a map, or a key that is not a text),
 * SPOKE_EEXIST (duplicate key), SPOKE_EINVAL ("timeout" and "_TO", which carry the deadline) or
 * SPOKE_ELIMIT (too many). { 0 }, no attachments, is valid. Replies have no keys of spoke's own. */
SPOKE_MUST_USE int spokei_attachments_check(struct spoke_value attachments, bool of_reply);

/* --- copies
 *
 * A message with a copy of everything it points to, for uses that outlive the frame: a request
 * answered later, a reply from another thread. Created on any thread, owned by one object. */

struct spokei_copy {
	struct spokei_message message; /* points into `bytes` */
	size_t size;                   /* bytes of this struct with `bytes` */
	unsigned char bytes[];
};

/* Copies a request or a reply; NULL: no memory. */
struct spokei_copy *spokei_copy_new(const struct spoke_env *env,
				    const struct spokei_message *message);

/* NULL is allowed. */
void spokei_copy_free(const struct spoke_env *env, struct spokei_copy *copy);

#endif
