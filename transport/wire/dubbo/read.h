/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bodies of Dubbo messages. All results point into the body. Stateless but for the memo;
 * any thread. */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H

#include "transport/codec/codec.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/memo.h"
#include "transport/wire/message.h"
#include "transport/wire/skip.h"

/* --- the values of a body
 *
 * The values of a body. One walk validates and counts them; afterwards they are read by position.
 * Also reads texts and the attachments with a meaning. All results point into the body. Stateless;
 * any thread. */

/* The versions, the service, the method and the types: the values before the arguments. */
#define SPOKEI_DUBBO_NAMES 5u

struct spokei_dubbo_body {
	const struct spokei_wire_limits *limits;
	const unsigned char *at;
	const unsigned char *end;
	uint32_t depth_max;
	uint32_t items; /* number of values allowed */
	int bad;        /* the error for values of a wrong type */
	bool checked;   /* a codec of this library has made the values, within the limits */
	/* The places of all values if such a codec tells them, counted from `begin`; else NULL. */
	const struct spokei_codec_places *places;
	const unsigned char *begin;
	size_t passed; /* values before `at` */
	/* The results of the walk. */
	size_t count;
	size_t used; /* number of first values that were read */
	/* The starts of the first values, and the end of the last of them. Only pointers are
	 * stored, because reading back a value that was stored in two halves is slow. */
	const unsigned char *first[SPOKEI_DUBBO_NAMES + 1];
	const unsigned char *last; /* the start of the last value */
};

/* Returns whether settled limits allow `items` values in `len` bytes; each value has at least one
 * byte. */
static inline bool spokei_dubbo_allows(const struct spokei_wire_limits *limits, size_t len,
				       size_t items)
{
	const struct spoke_value_limits *value = &limits->value;

	if (SPOKEI_LIKELY(len <= limits->free_len))
		return true;
	return value->depth_max - 1 < SPOKE_VALUE_DEPTH_MAX && len <= value->bytes_max &&
	       items <= value->items_max &&
	       items <= value->object_bytes_max / SPOKE_VALUE_OBJECT_BYTES;
}

/* Reads the next of the first values; false: there are no more. */
static inline bool spokei_dubbo_next(struct spokei_dubbo_body *body, struct spoke_value *ret)
{
	const unsigned char *const *first = &body->first[body->used];

	if (body->used == SPOKEI_DUBBO_NAMES || body->used == body->count)
		return false;
	ret->data = first[0];
	ret->len = (size_t)(first[1] - first[0]);
	body->used++;
	return true;
}

SPOKE_MUST_USE int spokei_dubbo_next_name(struct spokei_dubbo_body *body, bool may_be_null,
					  struct spoke_span *ret);

/* --- the memo
 *
 * The memo as Dubbo's requests use it: the names before the arguments and the attachments after
 * them. In most requests of a connection both equal those of the previous one. Stateless except
 * for the memo; any thread. */

/* Fills in the names at the start of the body at `at`; the memo knows their bytes. */
static inline void spokei_dubbo_recall(const struct spokei_memo *memo, const unsigned char *at,
				       struct spokei_message *message)
{
	message->service = spokei_memo_span(at, memo->service);
	message->version = spokei_memo_span(at, memo->version);
	message->method = spokei_memo_span(at, memo->method);
	message->types = spokei_memo_span(at, memo->types);
	message->bare = memo->bare;
}

/* Does the same, and fills in the attachments at `tail`, which the memo also knows. `len`: the
 * length of the names. */
static inline void spokei_dubbo_recall_all(const struct spokei_memo *memo, size_t len,
					   const unsigned char *at, const unsigned char *tail,
					   struct spokei_message *message)
{
	struct spoke_span *name[3] = { &message->service, &message->version, &message->group };

	spokei_dubbo_recall(memo, at, message);
	for (unsigned i = 0; i < 3; i++)
		if (memo->said[i].at > 0 && (i > 0 || memo->said[i].len > 0))
			*name[i] = spokei_memo_span(tail - len, memo->said[i]);
	if (spokei_span_is(message->version, SPOKEI_DUBBO_NO_VERSION))
		message->version.len = 0;
	message->attachments = (struct spoke_value){ tail, memo->tail };
	message->timeout_ms = memo->timeout_ms;
	message->repeat = true;
}

/* --- messages
 *
 * Reads the values of a body into the fields of a message. After an error the fields are not
 * valid. Stateless; any thread. */

/* Returns 0, an error of the validator, SPOKE_EBADREQUEST, SPOKE_ETOOLARGE, or SPOKE_EUNSUPPORTED
 * for generic arguments in an unsupported form. Uses and updates the memo, if there is one; an
 * error leaves it unchanged. */
SPOKE_MUST_USE int spokei_dubbo_read_request(const struct spokei_wire_limits *limits,
					     struct spokei_memo *memo, struct spoke_span values,
					     struct spokei_message *message);

/* Does the same if it is decided already whether the names equal those of the memo. `places`: those
 * of the values, which a codec of this library has made; NULL: they must be looked for. */
SPOKE_MUST_USE int spokei_dubbo_read_named(const struct spokei_wire_limits *limits,
					   struct spokei_memo *memo, bool known,
					   const struct spokei_codec_places *places,
					   struct spoke_span values,
					   struct spokei_message *message);

/* The message already has its status. Returns 0, an error of the validator, SPOKE_EBADREPLY or
 * SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits, bool checked,
					   struct spoke_span values,
					   struct spokei_message *message);

#endif
