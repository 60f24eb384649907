/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A codec translates the body of a message from one serialization into msgpack values and back. A
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

/* The part of a message to translate. The values stand in the order of Dubbo's msgpack bodies; see
 * transport/HESSIAN.md. */

/*
 * Few bytes can stand for many values: references repeat objects, and objects repeat names. So the
 * peer of a stream earns the bytes to be made of its own: GROWTH bytes for each byte of a body. A
 * value that a reference repeats counts as VALUE bytes at least, because its users need time for
 * it.
 */
#define SPOKEI_CODEC_GROWTH 32u
#define SPOKEI_CODEC_VALUE 8u

enum spokei_codec_part {
	SPOKEI_CODEC_REQUEST, /* a whole request: five texts, the arguments, the attachments */
	/* The first four of these texts, which begin each request of a method. Only written. */
	SPOKEI_CODEC_NAMES,
	/* The values after NAMES: the text of the types, the arguments, the attachments. Only
	 * written. */
	SPOKEI_CODEC_ARGS,
	/* A reply: the marker, then the value, or the class and the fields of an exception, then
	 * the attachments. */
	SPOKEI_CODEC_REPLY,
	/* The reply to a generic call, in which maps with a class stay maps. Only written. */
	SPOKEI_CODEC_GENERIC_REPLY,
	/* The body of a reply with an error status: one text, or null. Only read. */
	SPOKEI_CODEC_TEXT,
};

#define SPOKEI_CODEC_FIRST 6u

/* Where the values of a request begin, counted from the first one: the first values, and the last.
 */
struct spokei_codec_places {
	uint32_t first[SPOKEI_CODEC_FIRST];
	uint32_t last;
	uint32_t count; /* of all values */
};

struct spokei_codec {
	uint8_t id; /* at most 31 */
	const char *name;
	/* The bodies of events, which are compared byte by byte. */
	struct spoke_span null;     /* of a heartbeat */
	struct spoke_span readonly; /* "R" */
	struct spoke_span writable; /* "W" */
	/*
	 * Translates a body into msgpack values, one after another. The values lie in `body` or at
	 * the end of `scratch`, whose maximum bounds the bytes to be made, as above. The maximum
	 * falls by the bytes that were made, also after an error; to 0 if it was too low. The codec
	 * bounds depth and number of the values by `limits` while it reads.
	 *
	 * Returns 0, SPOKE_ETRUNCATED, SPOKE_ETRAILING, SPOKE_ECORRUPT, SPOKE_EDEPTH,
	 * SPOKE_ETOOLARGE, SPOKE_ENOMEM, or SPOKE_EUNSUPPORTED (a value that has no form in
	 * msgpack, e.g. a cycle). NULL: bodies in this serialization are not supported.
	 */
	int (*to_values)(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			 struct spoke_span body, struct spokei_buffer *scratch,
			 struct spoke_span *ret_values);
	/*
	 * Appends checked msgpack values in this serialization. Returns 0, SPOKE_ENOMEM,
	 * SPOKE_ETOOLARGE (the maximum of `out`), SPOKE_EDEPTH (too much lies too deep) or
	 * SPOKE_EUNSUPPORTED (the serialization cannot express the values). After an error the
	 * caller truncates `out`. NULL: as above.
	 */
	int (*from_values)(enum spokei_codec_part part, struct spoke_span values,
			   struct spokei_buffer *out);
	/* Appends a text as the body of a reply with an error status; the codec may shorten the
	 * text. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. Allocates nothing but room in `out`, so
	 * that refused requests cost no other memory. */
	int (*from_text)(struct spoke_span text, struct spokei_buffer *out);
};

extern const struct spokei_codec spokei_codec_hessian2;
extern const struct spokei_codec spokei_codec_msgpack;

/* Returns the codec with this id, or NULL. */
const struct spokei_codec *spokei_codec_find(uint8_t id);

#endif
