/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the bodies of Dubbo messages between msgpack and other serializations. */
#include "transport/wire/dubbo/translate.h"

#include "transport/codec/hessian2/hessian2.h"
#include "transport/codec/hessian2/put.h"
#include "transport/codec/hessian2/short.h"
#include "transport/wire/codecs.h"
#include "transport/wire/dubbo/read.h"
#include "transport/wire/dubbo/write.h"
#include "transport/wire/skip.h"

/* --- shortcuts
 *
 * Translates the most frequent messages between msgpack and Hessian 2 without the codec. */

#define ARGS_MAX 16u      /* number of arguments to read */
#define ARGS_LEN_MAX 512u /* and their bytes */
#define NUMBER_MAX SPOKEI_HESSIAN_NUMBER_MAX

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
	struct spokei_hessian_put put = { .at = at, .end = at + NUMBER_MAX };
	int32_t narrow;
	int64_t wide;
	double number;

	if (type == 'I' && spoke_value_i32(value, &narrow) == 0)
		spokei_hessian_put_int(&put, narrow);
	else if (type == 'J' && spoke_value_i64(value, &wide) == 0)
		spokei_hessian_put_long(&put, wide);
	else if (type == 'D' && value.data[0] == 0xcb && spoke_value_double(value, &number) == 0)
		spokei_hessian_put_double(&put, number);
	else if (type == 'Z' && spoke_value_type(value) == SPOKE_VALUE_BOOL)
		spokei_hessian_put_byte(&put, value.data[0] == 0xc3 ? 'T' : 'F');
	else
		return NULL;
	return put.at;
}

/* Writes the types and the argument of a request. Returns NULL if the codec has to. */
static inline unsigned char *put_arg(unsigned char *at, const struct spokei_message *message)
{
	struct spoke_value arg = { message->args.data, message->args.len };
	unsigned char *next;

	if (SPOKEI_LIKELY(spokei_hessian_is_short(*arg.data) && is_text(message->types))) {
		memcpy(at, text_type, sizeof(text_type) - 1);
		return spokei_hessian_put_short(at + sizeof(text_type) - 1, arg.data);
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
			: spokei_hessian_put_short(next, arg.data);
}

/* Writes a value without a declared type, like an argument whose type is derived. */
static inline unsigned char *put_value(unsigned char *at, struct spoke_value value)
{
	unsigned char types[1 + sizeof(struct spokei_dubbo_type)];
	unsigned char *next = spokei_hessian_put_short(at, value.data);

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
static inline bool finish_frame(const struct spokei_wire_limits *limits, struct spokei_buffer *out,
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
	return finish_frame(limits, out, start, at, head);
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
	return at != NULL && finish_frame(limits, out, start, at, head);
}

/* --- reading */

/* Reads one scalar; see spokei_hessian_take_short(). */
static inline const unsigned char *take(const unsigned char *from, const unsigned char *end,
					unsigned char *to, unsigned char **ret_to)
{
	const unsigned char *next = spokei_hessian_take_short(from, end, to, ret_to);

	if (SPOKEI_LIKELY(next != NULL))
		return next;
	if (*from == 'T' || *from == 'F') {
		*to = *from == 'T' ? 0xc3 : 0xc2;
		*ret_to = to + 1;
		return from + 1;
	}
	return spokei_hessian_take_number(from, end, to, ret_to);
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
			*at = SPOKEI_HESSIAN_MEDIUM;
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
	unsigned char unused[SPOKEI_HESSIAN_SHORT_MAX + NUMBER_MAX];

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

/*
 * Surround the reading of a translated request with a memo, which may be NULL: the first function
 * makes the memo one of `body`'s names in msgpack and returns whether it knows them. The second one
 * makes it one of the untranslated bytes again; `values`: the translated body, of which the memo
 * now has the names.
 */
static bool direct_begin(struct spokei_memo *memo, struct spoke_span body)
{
	if (memo == NULL || memo->raw == 0 || memo->raw > body.len ||
	    memcmp(memo->bytes, body.data, memo->raw) != 0)
		return false;
	memo->len = memo->raw;
	return true;
}

static void direct_end(struct spokei_memo *memo, bool known, struct spoke_span body,
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

/* --- by a codec
 *
 * Translates bodies between msgpack and other serializations. A body to write is first made in a
 * buffer of its own, which is bounded by the maximum of a frame and freed before the function
 * returns. */

#define NAMES 4u /* number of texts in a prefix */

#define SWOLLEN                                                                                    \
	"the body repeats too much: its values may have 32 times its bytes, and references may "   \
	"repeat 4 values for each byte"

_Static_assert(SPOKEI_CODEC_GROWTH == 32 && SPOKEI_CODEC_VALUE == 8, "see the text");

/* --- reading */

static enum spokei_codec_part part_of(const struct spokei_message *message)
{
	if (message->kind == SPOKEI_REQUEST)
		return SPOKEI_CODEC_REQUEST;
	return message->status == SPOKEI_DUBBO_OK ? SPOKEI_CODEC_REPLY : SPOKEI_CODEC_TEXT;
}

/* Adds the bytes that a body earns to those that earlier ones have left. */
static void earn(const struct spokei_wire_limits *limits, size_t len, struct spokei_buffer *scratch)
{
	size_t most = limits->value.bytes_max ? limits->value.bytes_max : SPOKE_VALUE_BYTES_MAX;
	size_t spare = scratch->max < limits->spare_max ? scratch->max : limits->spare_max;

	scratch->max = most;
	if (spare < most && len < (most - spare) / SPOKEI_CODEC_GROWTH)
		scratch->max = spare + len * SPOKEI_CODEC_GROWTH;
}

static void begin(const struct spokei_wire_limits *limits, size_t len,
		  struct spokei_buffer *scratch)
{
	spokei_buffer_truncate(scratch, 0); /* the last message is no longer used */
	earn(limits, len, scratch);
}

/* Explains an error of the codec to the peer if its body stands for too much. */
static int end(int error, const struct spokei_buffer *scratch, struct spokei_message *message)
{
	if (error == SPOKE_ETOOLARGE && scratch->max == 0)
		message->swollen = SWOLLEN;
	return error;
}

/* Returns the values of a body. */
static int translate(const struct spokei_wire_limits *limits, const struct spokei_codec *codec,
		     struct spokei_message *message, struct spoke_span body,
		     struct spokei_buffer *scratch, struct spoke_span *ret_values)
{
	if (codec == NULL || codec->to_values == NULL)
		return SPOKE_EUNSUPPORTED;
	begin(limits, body.len, scratch);
	return end(codec->to_values(&limits->value, part_of(message), body, scratch, ret_values),
		   scratch, message);
}

/* Reads a request in Hessian 2; the memo has names in that serialization. */
static int read_hessian2(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			 struct spoke_span body, struct spokei_buffer *scratch,
			 struct spokei_message *message)
{
	struct spokei_codec_places places;
	struct spoke_span values;
	bool known;
	int result;

	begin(limits, body.len, scratch);
	result = end(spokei_hessian_read_request(&limits->value, body, scratch, &values, &places),
		     scratch, message);
	if (result)
		return result;
	known = direct_begin(memo, body);
	result = spokei_dubbo_read_named(limits, memo, known, &places, values, message);
	direct_end(memo, known, body, result == 0 ? message : NULL);
	return result;
}

int spokei_dubbo_translate_body(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
				struct spoke_span body, struct spokei_buffer *scratch,
				struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	struct spoke_span values;
	int result;

	if (message->kind == SPOKEI_REQUEST && codec == &spokei_codec_hessian2)
		return read_hessian2(limits, memo, body, scratch, message);
	result = translate(limits, codec, message, body, scratch, &values);
	if (result)
		return result;
	if (message->kind == SPOKEI_REQUEST)
		return spokei_dubbo_read_request(limits, memo, values, message);
	return spokei_dubbo_read_reply(limits, codec == &spokei_codec_hessian2, values, message);
}

/* --- writing */

/* Returns the message without the prefix and without lent bytes, to be written in msgpack. */
static struct spokei_message plain_of(const struct spokei_message *message)
{
	struct spokei_message plain = *message;

	plain.prefix = spokei_span(NULL, 0);
	plain.lent = NULL;
	return plain;
}

/* Returns the values of a request after its names. */
static struct spoke_span after_names(struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value name;

	for (unsigned i = 0; i < NAMES && spokei_skip_next(&cursor, &name); i++)
		continue;
	return spoke_cursor_rest(&cursor);
}

/* Writes the head of the frame that begins after `before` bytes and returns 0. After an error,
 * removes the frame and returns the error. */
static int end_frame(const struct spokei_wire_limits *limits, struct spokei_dubbo_head head,
		     int error, size_t before, struct spokei_buffer *out)
{
	size_t len = spokei_buffer_len(out) - before;

	if (error == 0 && len > limits->frame_max)
		error = SPOKE_ETOOLARGE;
	if (error) {
		spokei_buffer_truncate(out, before);
		return error;
	}
	SPOKE_ASSERT(out->bytes != NULL);
	head.body_len = len - SPOKEI_DUBBO_HEAD_LEN;
	spokei_dubbo_head_write(head, spokei_buffer_data(out) + before);
	return 0;
}

static int begin_frame(struct spokei_buffer *out)
{
	static const unsigned char head[SPOKEI_DUBBO_HEAD_LEN];

	return spokei_buffer_append(out, head, sizeof(head));
}

/* Returns the content of a buffer, which is not empty. */
static struct spoke_span content_of(const struct spokei_buffer *buffer)
{
	SPOKE_ASSERT(buffer->bytes != NULL);
	return spokei_span(buffer->bytes + buffer->start, spokei_buffer_len(buffer));
}

/* Appends the msgpack frame `made` in another codec; `prefix`, if not empty, replaces the names. */
static int append_frame(const struct spokei_wire_limits *limits, const struct spokei_codec *codec,
			const struct spokei_buffer *made, enum spokei_codec_part part,
			struct spoke_span prefix, struct spokei_buffer *out)
{
	struct spoke_span frame = content_of(made);
	struct spokei_dubbo_head head = spokei_dubbo_head_take(frame.data);
	struct spoke_span values = spokei_span_after(frame, SPOKEI_DUBBO_HEAD_LEN);
	size_t before = spokei_buffer_len(out);
	int error = begin_frame(out);

	if (error == 0 && prefix.len > 0) {
		part = SPOKEI_CODEC_ARGS;
		values = after_names(values);
		error = spokei_buffer_append(out, prefix.data, prefix.len);
	}
	if (error == 0)
		error = codec->from_values(part, values, out);
	head.flags = (uint8_t)((head.flags & ~SPOKEI_DUBBO_CODEC) | codec->id);
	return end_frame(limits, head, error, before, out);
}

/* Returns the codec for the bodies of a message, or NULL. */
static const struct spokei_codec *writer_of(const struct spokei_wire_limits *limits,
					    const struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);

	return codec && codec->from_values ? codec : NULL;
}

int spokei_dubbo_translate_request(const struct spokei_wire_limits *limits,
				   const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	struct spokei_buffer made;
	int error;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_request(limits, &plain, &made);
	if (error == 0)
		error = append_frame(limits, codec, &made, SPOKEI_CODEC_REQUEST,
				     message->generic ? plain.prefix : message->prefix, out);
	spokei_buffer_fini(&made);
	return error;
}

int spokei_dubbo_translate_prefix(const struct spokei_wire_limits *limits,
				  const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	size_t before = spokei_buffer_len(out);
	struct spokei_buffer made;
	int error;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	/* The codec looks for the name of the generic call among the values of a whole body. */
	if (message->generic || spokei_dubbo_is_generic(message->method))
		return 0;
	plain.types = spokei_span(NULL, 0);
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_prefix(limits, &plain, &made);
	if (error == 0)
		error = codec->from_values(SPOKEI_CODEC_NAMES, content_of(&made), out);
	if (error)
		spokei_buffer_truncate(out, before);
	spokei_buffer_fini(&made);
	return error;
}

/* Appends a reply with an error status. Its body is empty in an unknown codec: the peer cannot read
 * the error, but its call fails at once. */
static int write_text(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      uint8_t status, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	const struct spokei_dubbo_head head = {
		.flags = message->codec,
		.status = status,
		.id = message->id,
	};
	size_t before = spokei_buffer_len(out);
	int error = begin_frame(out);

	if (error == 0 && codec)
		error = codec->from_text(message->error_text, out);
	return end_frame(limits, head, error, before, out);
}

int spokei_dubbo_translate_reply(const struct spokei_wire_limits *limits,
				 const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct spokei_message plain = plain_of(message);
	enum spokei_codec_part part = message->generic ? SPOKEI_CODEC_GENERIC_REPLY
						       : SPOKEI_CODEC_REPLY;
	uint8_t status = spokei_dubbo_reply_status(message);
	struct spokei_buffer made;
	int error;

	if (!spokei_dubbo_status_known(status))
		return SPOKE_EUNSUPPORTED;
	if (status != SPOKEI_DUBBO_OK)
		return write_text(limits, message, status, out);
	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	spokei_buffer_init(&made, out->env, SIZE_MAX);
	error = spokei_dubbo_write_reply(limits, &plain, &made);
	if (error == 0)
		error = append_frame(limits, codec, &made, part, plain.prefix, out);
	spokei_buffer_fini(&made);
	return error;
}
