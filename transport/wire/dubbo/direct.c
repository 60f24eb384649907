/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the most frequent messages between msgpack and Hessian 2 without the codec. */
#include "transport/wire/dubbo/direct.h"

#include "transport/codec/codec.h"
#include "transport/codec/hessian2/put.h"
#include "transport/codec/hessian2/short.h"
#include "transport/wire/dubbo/memo.h"
#include "transport/wire/dubbo/types.h"
#include "transport/wire/dubbo/write.h"

#define ARGS_MAX 16u      /* number of arguments to read */
#define ARGS_LEN_MAX 512u /* and their bytes */
#define NUMBER_MAX SPOKEI_HESSIAN2_NUMBER_MAX

/* The types of a request with one text. */
static const char text_type[] = "\x12Ljava/lang/String;";

/* The markers of replies: small ints. */
#define MARKER_VALUE 0x91u
#define MARKER_NULL 0x92u
#define MARKER_ATTACHED 3u /* is added if attachments follow */

/* The attachments of Java's replies: {"dubbo": "2.0.2"}. */
static const unsigned char java_raw[] = "H\005dubbo\0052.0.2Z";
static const unsigned char java_map[] = "\xdf\0\0\0\1\245dubbo\2452.0.2";

#define JAVA_RAW_LEN (sizeof(java_raw) - 1)

/* --- writing */

/* Returns whether the types are those of one text, or are to be derived. */
static inline bool is_text(struct spoke_span types)
{
	return types.len == 0 || spokei_span_is(types, text_type + 1);
}

/* Writes a number or a bool as a value of this primitive type. Returns the address of the next
 * byte, or NULL if the codec has to decide. */
static SPOKEI_NOINLINE unsigned char *put_primitive(unsigned char *at, char type,
						    struct spoke_value value)
{
	struct spokei_hessian2_put put = { .at = at, .end = at + NUMBER_MAX };
	int32_t narrow;
	int64_t wide;
	double number;

	if (type == 'I' && spoke_value_i32(value, &narrow) == 0)
		spokei_hessian2_put_int(&put, narrow);
	else if (type == 'J' && spoke_value_i64(value, &wide) == 0)
		spokei_hessian2_put_long(&put, wide);
	else if (type == 'D' && value.data[0] == 0xcb && spoke_value_double(value, &number) == 0)
		spokei_hessian2_put_double(&put, number);
	else if (type == 'Z' && spoke_value_type(value) == SPOKE_VALUE_BOOL)
		spokei_hessian2_put_byte(&put, value.data[0] == 0xc3 ? 'T' : 'F');
	else
		return NULL;
	return put.at;
}

/* Writes the types and the argument of a request. Returns NULL if the codec has to. */
static inline unsigned char *put_arg(unsigned char *at, const struct spokei_message *message)
{
	struct spoke_value arg = { message->args.data, message->args.len };
	unsigned char *next;

	if (SPOKEI_LIKELY(spokei_hessian2_is_short(*arg.data) && is_text(message->types))) {
		memcpy(at, text_type, sizeof(text_type) - 1);
		return spokei_hessian2_put_short(at + sizeof(text_type) - 1, arg.data);
	}
	if (message->types.len > 1)
		return NULL;
	next = spokei_dubbo_types_put_one(at, message->args);
	if (next == NULL)
		return NULL;
	*at &= 0x1f; /* the head of a short str becomes that of a short text */
	if (message->types.len == 1) {
		*at = 1;
		at[1] = *(const unsigned char *)message->types.data;
		next = at + 2;
	}
	return *at == 1 ? put_primitive(next, (char)at[1], arg)
			: spokei_hessian2_put_short(next, arg.data);
}

/* Writes a value without a declared type, like an argument whose type is derived. */
static inline unsigned char *put_value(unsigned char *at, struct spoke_value value)
{
	unsigned char types[1 + sizeof(struct spokei_dubbo_type)];
	unsigned char *next = spokei_hessian2_put_short(at, value.data);

	if (SPOKEI_LIKELY(next != NULL))
		return next;
	if (spokei_dubbo_types_put_one(types, spokei_span(value.data, value.len)) == NULL)
		return NULL;
	return put_primitive(at, (char)types[1], value);
}

/* Writes the timeout as the only attachment. */
static inline unsigned char *put_timeout(unsigned char *at, int64_t timeout_ms)
{
	static const unsigned char head[] = "H\007timeout";
	unsigned char *digits = spokei_put_raw(at, head, sizeof(head) - 1);

	at = spokei_dubbo_put_digits(digits, timeout_ms);
	*digits &= 0x1f;
	*at = 'Z';
	return at + 1;
}

/* Completes a frame. */
static inline bool end_frame(const struct spokei_wire_limits *limits, struct spokei_buffer *out,
			     unsigned char *start, const unsigned char *end,
			     struct spokei_dubbo_head head)
{
	size_t len = (size_t)(end - start);

	if (len > limits->frame_max)
		return false;
	head.body_len = len - SPOKEI_DUBBO_HEAD_LEN;
	spokei_dubbo_head_write(head, start);
	spokei_buffer_commit(out, len);
	return true;
}

#define REQUEST_SLACK (SPOKEI_DUBBO_HEAD_LEN + SPOKEI_DUBBO_TYPES_BEYOND + 64u)

bool spokei_dubbo_direct_write_request(const struct spokei_wire_limits *limits,
				       const struct spokei_message *message,
				       struct spokei_buffer *out)
{
	unsigned flags = SPOKEI_DUBBO_REQUEST | SPOKEI_CODEC_HESSIAN2;
	struct spokei_dubbo_head head = { .id = message->id };
	unsigned char *start;
	unsigned char *at;

	if (message->prefix.len == 0 || message->generic || message->attachments.len > 0 ||
	    message->group.len > 0 || message->timeout_ms <= 0 || message->arg_count != 1 ||
	    message->args.len == 0)
		return false;
	start = spokei_buffer_reserve(out, message->prefix.len + message->args.len + REQUEST_SLACK);
	if (start == NULL)
		return false;
	at = spokei_put_raw(start + SPOKEI_DUBBO_HEAD_LEN, message->prefix.data,
			    message->prefix.len);
	at = put_arg(at, message);
	if (at == NULL)
		return false;
	at = put_timeout(at, message->timeout_ms);
	head.flags = (uint8_t)(message->two_way ? flags | SPOKEI_DUBBO_TWO_WAY : flags);
	return end_frame(limits, out, start, at, head);
}

bool spokei_dubbo_direct_write_reply(const struct spokei_wire_limits *limits,
				     const struct spokei_message *message,
				     struct spokei_buffer *out)
{
	struct spokei_dubbo_head head = {
		.flags = SPOKEI_CODEC_HESSIAN2,
		.status = SPOKEI_DUBBO_OK,
		.id = message->id,
	};
	bool null = message->value.len == 0 || message->value.data[0] == 0xc0;
	unsigned char *start;
	unsigned char *at;

	if (!message->bare || message->error != 0)
		return false;
	start = spokei_buffer_reserve(out,
				      SPOKEI_DUBBO_HEAD_LEN + 1 + message->value.len + NUMBER_MAX);
	if (start == NULL)
		return false;
	at = start + SPOKEI_DUBBO_HEAD_LEN;
	*at++ = null ? MARKER_NULL : MARKER_VALUE;
	if (!null)
		at = put_value(at, message->value);
	return at != NULL && end_frame(limits, out, start, at, head);
}

/* --- reading */

/* Reads one scalar; see spokei_hessian2_take_short(). */
static inline const unsigned char *take(const unsigned char *from, const unsigned char *end,
					unsigned char *to, unsigned char **ret_to)
{
	const unsigned char *next = spokei_hessian2_take_short(from, end, to, ret_to);

	if (SPOKEI_LIKELY(next != NULL))
		return next;
	if (*from == 'T' || *from == 'F') {
		*to = *from == 'T' ? 0xc3 : 0xc2;
		*ret_to = to + 1;
		return from + 1;
	}
	return spokei_hessian2_take_number(from, end, to, ret_to);
}

/* Reads all scalars up to `end`. Returns the end of their msgpack, or NULL. There is room for their
 * bytes and for ARGS_MAX numbers. */
static inline unsigned char *take_args(const unsigned char *from, const unsigned char *end,
				       unsigned char *to, size_t *ret_count)
{
	size_t count = 0;

	for (; from < end; count++) {
		if (count == ARGS_MAX)
			return NULL;
		from = take(from, end, to, &to);
		if (from == NULL)
			return NULL;
	}
	*ret_count = count;
	return to;
}

bool spokei_dubbo_direct_read_request(const struct spokei_memo *memo, struct spoke_span body,
				      struct spokei_buffer *scratch, struct spokei_message *message)
{
	const unsigned char *at = body.data;
	size_t len = body.len - memo->raw - memo->raw_tail;
	const unsigned char *tail;
	unsigned char *start;
	unsigned char *end;
	size_t count;

	if (memo->raw_tail == 0 || len > ARGS_LEN_MAX || memcmp(at, memo->bytes, memo->raw) != 0)
		return false;
	tail = at + memo->raw + len;
	if (memcmp(tail, memo->bytes + memo->used, memo->raw_tail) != 0)
		return false;
	spokei_buffer_clear(scratch); /* the last message is no longer used */
	start = spokei_buffer_reserve(scratch, len + (size_t)ARGS_MAX * NUMBER_MAX);
	if (start == NULL)
		return false;
	end = take_args(at + memo->raw, tail, start, &count);
	if (end == NULL || (size_t)(end - start) >= memo->free_len)
		return false;
	spokei_buffer_commit(scratch, (size_t)(end - start));
	message->args = spokei_span(start, (size_t)(end - start));
	message->arg_count = count;
	spokei_dubbo_recall_all(memo, memo->raw, at, memo->bytes + memo->raw, message);
	return true;
}

/* Returns whether the body ends with the attachments of Java. */
static bool is_from_java(struct spoke_span body)
{
	const unsigned char *end = (const unsigned char *)body.data + body.len;

	return body.len > JAVA_RAW_LEN && memcmp(end - JAVA_RAW_LEN, java_raw, JAVA_RAW_LEN) == 0;
}

/* Reads the value between the marker and the attachments; null has none. */
static bool read_value(struct spoke_span raw, struct spokei_buffer *scratch,
		       struct spoke_value *ret)
{
	const unsigned char *end = (const unsigned char *)raw.data + raw.len;
	unsigned char *start;
	unsigned char *stop;

	spokei_buffer_clear(scratch); /* the last message is no longer used */
	start = spokei_buffer_reserve(scratch, raw.len + NUMBER_MAX);
	if (start == NULL || take(raw.data, end, start, &stop) != end)
		return false;
	spokei_buffer_commit(scratch, (size_t)(stop - start));
	*ret = (struct spoke_value){ start, (size_t)(stop - start) };
	return true;
}

bool spokei_dubbo_direct_read_reply(const struct spokei_wire_limits *limits, struct spoke_span body,
				    struct spokei_buffer *scratch, struct spokei_message *message)
{
	static const struct spoke_value attached = { java_map, sizeof(java_map) - 1 };
	struct spoke_value value = { 0 };
	unsigned marker;
	bool bare;

	if (message->status != SPOKEI_DUBBO_OK || body.len == 0 || body.len > ARGS_LEN_MAX ||
	    body.len + NUMBER_MAX + attached.len > limits->free_len)
		return false;
	marker = *(const unsigned char *)body.data;
	bare = marker < MARKER_VALUE + MARKER_ATTACHED;
	if (!bare) {
		if (!is_from_java(body))
			return false;
		marker -= MARKER_ATTACHED;
		body.len -= JAVA_RAW_LEN;
	}
	body = spokei_span_after(body, 1);
	if (marker == MARKER_VALUE ? body.len == 0 || !read_value(body, scratch, &value)
				   : marker != MARKER_NULL || body.len > 0)
		return false;
	message->value = value;
	message->bare = bare;
	if (!bare)
		message->attachments = attached;
	return true;
}

/* --- the memo */

/* Converts the heads of the names from msgpack to Hessian 2. Returns false unless the result equals
 * the beginning of the body, so that each name has the same place and length in both. */
static bool convert_names(struct spokei_memo *memo, struct spoke_span body)
{
	unsigned char *at = memo->bytes;
	unsigned char *end = at + memo->len;

	while (at < end) {
		size_t len = *at & 0x1fu;

		if (*at == 0xc0) {
			*at++ = 'N';
		} else if (*at == 0xd9 && end - at > 1) {
			*at = SPOKEI_HESSIAN2_MEDIUM;
			at += 2 + (size_t)at[1];
		} else if ((*at & 0xe0) != 0xa0) {
			return false; /* a longer text has heads of different lengths */
		} else {
			*at = (unsigned char)len;
			at += 1 + len;
		}
	}
	return at == end && memo->len <= body.len && memcmp(memo->bytes, body.data, memo->len) == 0;
}

/* Keeps the attachments, if only scalars are before them. */
static void keep_tail(struct spokei_memo *memo, struct spoke_span body, size_t arg_count)
{
	const unsigned char *at = (const unsigned char *)body.data + memo->raw;
	const unsigned char *end = (const unsigned char *)body.data + body.len;
	unsigned char unused[SPOKEI_HESSIAN2_SHORT_MAX + NUMBER_MAX];

	memo->raw_tail = 0;
	for (size_t i = 0; i < arg_count && at != NULL && at < end; i++) {
		unsigned char *to;

		at = take(at, end, unused, &to);
	}
	if (memo->tail == 0 || at == NULL || (size_t)(end - at) > sizeof(memo->bytes) - memo->used)
		return;
	memo->raw_tail = (uint16_t)(end - at);
	memcpy(memo->bytes + memo->used, at, memo->raw_tail);
}

bool spokei_dubbo_direct_begin(struct spokei_memo *memo, struct spoke_span body)
{
	if (memo == NULL || memo->raw == 0 || memo->raw > body.len ||
	    memcmp(memo->bytes, body.data, memo->raw) != 0)
		return false;
	memo->len = memo->raw;
	return true;
}

void spokei_dubbo_direct_end(struct spokei_memo *memo, bool known, struct spoke_span body,
			     const struct spokei_message *message)
{
	if (memo == NULL || memo->len == 0 || (!known && message == NULL))
		return;
	if (!known && !convert_names(memo, body)) {
		spokei_memo_forget(memo);
		return;
	}
	memo->raw = memo->len;
	memo->len = 0;
	if (message)
		keep_tail(memo, body, message->arg_count);
}
