/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A codec reads the body of a message into msgpack values, and writes msgpack values as a body. A
 * new codec is a file in this folder and a line in catalog.c. Codecs are stateless; any thread may
 * use them.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_CODEC_H
#define SPOKEI_TRANSPORT_CODEC_CODEC_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

/* Dubbo's ids of serializations. */
#define SPOKEI_CODEC_HESSIAN2 2
#define SPOKEI_CODEC_MSGPACK 27
#define SPOKEI_CODEC_IDS 32 /* ids are below */

/*
 * Few bytes can stand for many values: references repeat objects, and objects repeat names. So the
 * peer of a stream earns the bytes to be made of its own: GROWTH bytes for each byte of a body. A
 * value that a reference repeats counts as VALUE bytes at least, because its users need time for
 * it.
 */
#define SPOKEI_CODEC_GROWTH 32u
#define SPOKEI_CODEC_VALUE 8u

/* The contents of a body that is read, or of a part of it. */
enum spokei_codec_part {
	SPOKEI_CODEC_REQUEST, /* a whole request: five texts, the arguments, the attachments */
	SPOKEI_CODEC_ARGS,    /* a request without its texts: the arguments, the attachments */
	SPOKEI_CODEC_VALUES,  /* the arguments alone */
	/* A reply: the marker, then the value, or the class and the fields of an exception, then
	 * the attachments. */
	SPOKEI_CODEC_REPLY,
	SPOKEI_CODEC_TEXT, /* a reply with an error status: one text, or null */
};

#define SPOKEI_CODEC_TEXTS 5u /* the texts of a request: the names, and the types */

/* The values that were made of a body, one after another, and where they begin. */
struct spokei_codec_values {
	/* Set by the caller: values, and their bytes, that count against the limits, too. */
	uint32_t items_before;
	uint32_t bytes_before;
	struct spoke_span values;
	uint32_t first[SPOKEI_CODEC_TEXTS + 1]; /* the first values, counted from the first one */
	uint32_t last;                          /* ... the last value */
	uint32_t count;
	/* For a memo: where the value after the texts, and the last value, begin in the body.
	 * NOWHERE: the same bytes may have another meaning after others. */
	uint32_t body_args;
	uint32_t body_last;
};

#define SPOKEI_CODEC_NOWHERE UINT32_MAX
#define SPOKEI_CODEC_SCALARS 16u /* values that are read without state */
#define SPOKEI_CODEC_ROOM 256u   /* bytes that they may be longer in msgpack */

/* A message to write, part after part. All values are checked msgpack, one after another. */
struct spokei_codec_body {
	size_t room;              /* bytes to leave free before the body, for a header */
	struct spoke_span prefix; /* bytes that this codec has written of `first` before */
	/* Requests: the names and the text of the types, unless they are in the prefix; replies:
	 * the marker. */
	struct spoke_span first;
	/* The arguments, or the value, or the class and the fields of an exception. */
	struct spoke_span values;
	/* The descriptors of the types that the arguments are written as; empty: as they are. */
	struct spoke_span types;
	/* The pairs of the attachments, in two pieces. */
	struct spoke_span pairs[2];
	/* The classes of the last objects that one side wrote, each after its length, as far as
	 * they fit: the codec writes further objects of them in less time. NULL: none are kept. */
	struct spokei_buffer *plans;
	bool attached; /* there are attachments, maybe an empty map */
	bool thrown;   /* the values are those of an exception */
	bool generic;  /* of a generic call: maps with a class stay maps */
};

/* The bytes around the parts of a message that the wire writes itself. A text of ASCII has the
 * same bytes in each serialization, after its head. */
struct spokei_codec_heads {
	unsigned char text;      /* of a text below 32 bytes, plus its length */
	unsigned char long_text; /* of another below 256 bytes, before its length */
	unsigned char map;       /* before the pairs of a map ... */
	unsigned char map_end;   /* ... and after them */
	unsigned char value;     /* the marker of a reply without attachments that has a value */
};

struct spokei_codec {
	uint8_t id;
	const char *name;
	/* The bodies of events, which are compared byte by byte. */
	struct spoke_span null;     /* of a heartbeat */
	struct spoke_span readonly; /* "R" */
	struct spoke_span writable; /* "W" */
	struct spoke_span cancel;   /* "C" */
	/*
	 * Reads a body into msgpack values. The values lie in `body` or at the end of `scratch`,
	 * whose maximum bounds the bytes to be made, as above. The maximum falls by the bytes that
	 * were made, also after an error; to 0 if it was too low. The codec bounds depth and number
	 * of the values by `limits` while it reads.
	 *
	 * Returns 0, SPOKE_ETRUNCATED, SPOKE_ETRAILING, SPOKE_ECORRUPT, SPOKE_EDEPTH,
	 * SPOKE_ETOOLARGE, SPOKE_ENOMEM, or SPOKE_EUNSUPPORTED (a value that has no form in
	 * msgpack, e.g. a cycle). NULL: bodies in this serialization are not supported, or, in
	 * msgpack, are read and written by the wire alone.
	 */
	int (*to_values)(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			 struct spoke_span body, struct spokei_buffer *scratch,
			 struct spokei_codec_values *ret);
	/*
	 * Appends a message in this serialization. Returns 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE (the
	 * maximum of `out`), SPOKE_EDEPTH (too much lies too deep) or SPOKE_EUNSUPPORTED (the
	 * serialization cannot express the values). After an error the caller truncates `out`.
	 * NULL: as above.
	 */
	int (*from_values)(const struct spokei_codec_body *body, struct spokei_buffer *out);
	/*
	 * Does the same with scalars: null, bools, numbers and short texts, which most messages
	 * consist of. They need no state, so that a message is written in registers. Writes up to
	 * `limit` and returns the next byte; NULL: there is another value, or too little room.
	 */
	unsigned char *(*put_scalars)(unsigned char *to, const unsigned char *limit,
				      struct spoke_span values);
	/*
	 * Reads a body, or a part of one, that consists of scalars alone, and writes them at `to`,
	 * where there is room for ROOM bytes more than the body has. Returns the next byte; NULL:
	 * there is another value, or more than SCALARS.
	 */
	unsigned char *(*take_scalars)(struct spoke_span body, unsigned char *to,
				       uint32_t *ret_count);
	struct spokei_codec_heads heads; /* of the serialization of these scalars */
	/* Appends a text as the body of a reply with an error status; the codec may shorten the
	 * text. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. Allocates nothing but room in `out`, so
	 * that refused requests cost no other memory. */
	int (*from_text)(struct spoke_span text, struct spokei_buffer *out);
};

extern const struct spokei_codec spokei_codec_hessian2;
extern const struct spokei_codec spokei_codec_msgpack;

/* The codecs, by id; NULL: there is none with this id. */
extern const struct spokei_codec *const spokei_codecs[SPOKEI_CODEC_IDS];

#endif
