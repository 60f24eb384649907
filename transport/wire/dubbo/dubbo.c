/* SPDX-License-Identifier: Apache-2.0 */
/* The Dubbo wire as a table of functions: the header, whole frames, and events. */
#include "transport/wire/dubbo/dubbo.h"

#include "transport/wire/codecs.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/dubbo/read.h"
#include "transport/wire/dubbo/write.h"

/* --- the header
 *
 * Reads Dubbo's header by two tables, one of flags and one of statuses. */

/* The largest length of a body, which Java reads as a signed number. */
#define SKIP_MAX ((size_t)INT32_MAX)

/* Indexed by the upper three bits. A reply cannot require a reply; peers send all other
 * combinations. */
static const bool flags_known[8] = {
	[0x00u >> 5] = true, /* reply */
	[0x20u >> 5] = true, /* answer to an event */
	[0x80u >> 5] = true, /* one-way call */
	[0xa0u >> 5] = true, /* one-way event */
	[0xc0u >> 5] = true, /* call */
	[0xe0u >> 5] = true, /* event */
};

/*
 * The statuses of replies. Java peers use 35 and 90 only internally, so from outside they have no
 * particular meaning. Java also answers 70 for an unknown version or group.
 */
static const struct {
	uint8_t status;
	int error;
} statuses[] = {
	{ SPOKEI_DUBBO_OK, 0 },    { 25, SPOKE_EBADREPLY }, /* the result cannot be serialized */
	{ 30, SPOKE_EEXPIRED },                             /* timeout on the caller's side */
	{ 31, SPOKE_EEXPIRED },                             /* timeout on the provider's side */
	{ 35, SPOKE_ESERVER },                              /* connection inactive */
	{ 40, SPOKE_EBADREQUEST },                          /* bad request */
	{ 50, SPOKE_EBADREPLY },                            /* bad reply */
	{ 60, SPOKE_ENOSERVICE },                           /* no such service */
	{ 70, SPOKE_ESERVER },                              /* error of the service */
	{ 80, SPOKE_ESERVER },                              /* error of the server */
	{ 90, SPOKE_ESERVER },                              /* error of the client */
	{ 100, SPOKE_EREFUSED },                            /* no thread available */
};

static const size_t statuses_len = sizeof(statuses) / sizeof(statuses[0]);

bool spokei_dubbo_status_known(uint8_t status)
{
	for (size_t i = 0; i < statuses_len; i++)
		if (statuses[i].status == status)
			return true;
	return false;
}

/* Returns the SPOKE_E... of a status, 0 for OK. */
static int status_error(uint8_t status)
{
	for (size_t i = 0; i < statuses_len; i++)
		if (statuses[i].status == status)
			return statuses[i].error;
	return SPOKE_EPROTOCOL;
}

/* Checks magic, flags and status, as far as they have arrived. */
static bool prefix_is_known(const unsigned char *at, size_t len)
{
	if (len > 0 && at[0] != SPOKEI_DUBBO_MAGIC)
		return false;
	if (len > 1 && at[1] != SPOKEI_DUBBO_MAGIC_2)
		return false;
	if (len > 2 && !flags_known[at[2] >> 5])
		return false;
	if (len > 3 && at[2] & SPOKEI_DUBBO_REQUEST)
		return at[3] == 0;
	return len <= 3 || spokei_dubbo_status_known(at[3]);
}

/* The first bytes of a two-way call and of a reply with status OK, in any serialization. */
#define FIRST_MASK UINT64_C(0xffffe0ff00000000)
#define FIRST_CALL UINT64_C(0xdabbc00000000000)
#define FIRST_REPLY UINT64_C(0xdabb001400000000)

/* Returns whether the beginning of a frame is that of a header, which may be incomplete. */
static inline bool begins_well(struct spoke_span bytes)
{
	uint64_t first;

	if (SPOKEI_UNLIKELY(bytes.len < SPOKEI_DUBBO_HEAD_LEN))
		return prefix_is_known(bytes.data, bytes.len);
	first = spokei_get_64(bytes.data) & FIRST_MASK;
	return SPOKEI_LIKELY(first == FIRST_CALL || first == FIRST_REPLY) ||
	       prefix_is_known(bytes.data, SPOKEI_DUBBO_HEAD_LEN);
}

/* --- the wire
 *
 * The Dubbo wire as a table of functions: whole frames, and events. The bodies of events are
 * compared as bytes with those of the codec. */

static bool same_bytes(struct spoke_span a, struct spoke_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool dubbo_knows(unsigned char first)
{
	return first == SPOKEI_DUBBO_MAGIC;
}

static size_t dubbo_length(struct spoke_span bytes)
{
	SPOKE_ASSERT(bytes.len >= SPOKEI_DUBBO_HEAD_LEN);
	return SPOKEI_DUBBO_HEAD_LEN + spokei_dubbo_head_take(bytes.data).body_len;
}

static bool is_cancel(const struct spokei_codec *known, struct spoke_span body)
{
	return known && body.len > 0 && same_bytes(body, known->cancel);
}

/* Returns the kind of an event. In an unknown serialization, every two-way event is a heartbeat,
 * because no other event requires an answer. */
static enum spokei_kind kind_of_event(const struct spokei_codec *known, bool two_way,
				      struct spoke_span body)
{
	if (known && same_bytes(body, known->readonly))
		return SPOKEI_READONLY;
	if (known && same_bytes(body, known->writable))
		return SPOKEI_WRITABLE;
	if (!two_way)
		return is_cancel(known, body) ? SPOKEI_CANCEL : SPOKEI_EVENT;
	if (known && body.len > 0 && !same_bytes(body, known->null))
		return SPOKEI_EVENT;
	return SPOKEI_PROBE;
}

static SPOKEI_NOINLINE void read_event(const struct spokei_wire_limits *limits,
				       const struct spokei_dubbo_head *head, struct spoke_span body,
				       struct spokei_message *message)
{
	const struct spokei_codec *known = spokei_wire_codec(limits, message->codec);

	message->kind = SPOKEI_PROBE_ANSWER;
	message->cancels = is_cancel(known, body);
	if (head->flags & SPOKEI_DUBBO_REQUEST)
		message->kind = kind_of_event(known, message->two_way, body);
	/* Some peers send a heartbeat without a body, but do not recognise an answer without one.
	 */
	message->event = known && body.len == 0 ? known->null : body;
}

static void read_head(const struct spokei_dubbo_head *head, struct spokei_message *message)
{
	spokei_message_clear(message);
	message->kind = head->flags & SPOKEI_DUBBO_REQUEST ? SPOKEI_REQUEST : SPOKEI_REPLY;
	message->id = head->id;
	message->two_way = (head->flags & SPOKEI_DUBBO_TWO_WAY) != 0;
	message->codec = head->flags & SPOKEI_DUBBO_CODEC;
	message->status = head->status;
	if (message->kind == SPOKEI_REPLY && head->status != SPOKEI_DUBBO_OK)
		message->error = status_error(head->status);
}

/* Ends the reading of a bad body: only the fields of the header are valid, whether it is swollen,
 * and the text that explains a bad request. A status counts without its text, which may be in an
 * unknown serialization. */
static SPOKEI_NOINLINE int end_bad(struct spoke_span bytes, int error,
				   struct spokei_message *message)
{
	struct spokei_dubbo_head head = spokei_dubbo_head_take(bytes.data);
	struct spoke_span why = message->error_text;
	const char *swollen = message->swollen;

	read_head(&head, message);
	if (message->error)
		return 0;
	message->swollen = swollen;
	if (message->kind == SPOKEI_REQUEST)
		message->error_text = why;
	return error;
}

/* Begins a frame that is longer than the limits allow. Events are not skipped, and lengths above
 * 2 GiB are none. */
static SPOKEI_NOINLINE int begin_long(const struct spokei_dubbo_head *head,
				      struct spokei_message *message)
{
	if (head->flags & SPOKEI_DUBBO_EVENT || head->body_len > SKIP_MAX)
		return SPOKE_ETOOLARGE;
	read_head(head, message);
	return SPOKEI_NEXT_SKIP;
}

static int dubbo_next(struct spokei_reader *reader, struct spoke_span bytes,
		      struct spokei_message *ret_message)
{
	const struct spokei_wire_limits *limits = reader->limits;
	struct spokei_dubbo_head head;
	struct spoke_span body;
	int error;

	reader->len = SPOKEI_DUBBO_HEAD_LEN;
	if (SPOKEI_UNLIKELY(!begins_well(bytes)))
		return SPOKE_EPROTOCOL;
	if (SPOKEI_UNLIKELY(bytes.len < SPOKEI_DUBBO_HEAD_LEN))
		return SPOKEI_NEXT_MORE;
	head = spokei_dubbo_head_take(bytes.data);
	reader->len += head.body_len;
	if (SPOKEI_UNLIKELY((uint64_t)head.body_len + SPOKEI_DUBBO_HEAD_LEN > limits->frame_max ||
			    (head.flags & SPOKEI_DUBBO_EVENT && head.body_len > limits->event_max)))
		return begin_long(&head, ret_message);
	if (SPOKEI_UNLIKELY(bytes.len < reader->len))
		return SPOKEI_NEXT_MORE;
	body = spokei_span((const unsigned char *)bytes.data + SPOKEI_DUBBO_HEAD_LEN,
			   head.body_len);
	read_head(&head, ret_message);
	if (SPOKEI_UNLIKELY(head.flags & SPOKEI_DUBBO_EVENT)) {
		read_event(limits, &head, body, ret_message);
		return 0;
	}
	error = spokei_dubbo_read_body(limits, reader->memo, body, &reader->scratch, ret_message);
	if (SPOKEI_UNLIKELY(error != 0))
		error = end_bad(bytes, error, ret_message);
	return spokei_wire_read(reader, error);
}

/* Returns the body of an event to write: that of the message, or that of its kind in the codec. */
static int event_body(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      struct spoke_span *ret)
{
	const struct spokei_codec *known = spokei_wire_codec(limits, message->codec);

	*ret = message->event;
	if (message->kind == SPOKEI_READONLY || message->kind == SPOKEI_WRITABLE) {
		if (known == NULL)
			return SPOKE_EUNSUPPORTED;
		*ret = message->kind == SPOKEI_READONLY ? known->readonly : known->writable;
	} else if (known && known->cancel.len > 0 &&
		   (message->kind == SPOKEI_CANCEL || message->cancels)) {
		*ret = known->cancel;
	} else if (ret->len == 0 && known) {
		*ret = known->null;
	}
	return 0;
}

static SPOKEI_NOINLINE int write_event(const struct spokei_wire_limits *limits,
				       const struct spokei_message *message,
				       struct spokei_buffer *out)
{
	struct spokei_dubbo_head head = {
		.flags = (uint8_t)(SPOKEI_DUBBO_EVENT | message->codec),
		.id = message->id,
	};
	struct spoke_span body;
	int result = event_body(limits, message, &body);

	if (result != 0)
		return result;
	if (body.len > limits->event_max)
		return SPOKE_ETOOLARGE;
	if (message->kind == SPOKEI_PROBE_ANSWER)
		head.status = SPOKEI_DUBBO_OK;
	else
		head.flags |= SPOKEI_DUBBO_REQUEST;
	if (message->kind == SPOKEI_PROBE ||
	    (message->kind != SPOKEI_PROBE_ANSWER && message->two_way))
		head.flags |= SPOKEI_DUBBO_TWO_WAY;
	return spokei_dubbo_write_event(limits, &head, body, out);
}

static int dubbo_write(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	if (SPOKEI_UNLIKELY(message->codec > SPOKEI_DUBBO_CODEC))
		return SPOKE_EUNSUPPORTED;
	if (message->kind == SPOKEI_REQUEST)
		return spokei_dubbo_write_request(limits, message, out);
	if (message->kind == SPOKEI_REPLY)
		return spokei_dubbo_write_reply(limits, message, out);
	return write_event(limits, message, out);
}

const struct spokei_wire spokei_wire_dubbo = {
	.name = "dubbo",
	.id_first = 0,
	.id_max = UINT64_MAX,
	.probes = true,
	.deadlines = true,
	.attachments = true,
	.knows = dubbo_knows,
	.length = dubbo_length,
	.next = dubbo_next,
	.prefix = spokei_dubbo_write_prefix,
	.write = dubbo_write,
};
