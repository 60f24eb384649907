/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes frames by hand: room for the largest that this can become is reserved, the body is put
 * behind the place of the header, and what it has become is judged and committed. Each put function
 * returns where the next byte goes.
 */
#include "transport/wire/dubbo_write.h"

#include "transport/wire/codecs.h"

#define HEAD_MAX 5u /* bytes before the content of a str, array or map */
#define INT_MAX_LEN 9u
#define DIGITS_MAX 20u

/* Hessian 2 writes texts up to here with a head of two bytes. */
#define HESSIAN_TEXT_MAX 1023u
#define HESSIAN_SHORT_MAX 31u

struct frame {
	const struct spokei_wire_limits *limits;
	struct spokei_buffer *out;
	unsigned char *start;
	unsigned char *at; /* where the next byte of the body goes */
};

/* The attachments: the caller's, and what is added. */
struct extras {
	struct spoke_span pairs; /* the caller's, packed */
	size_t count;            /* of all */
	bool group;
	bool timeout;
	bool generic;
	bool version; /* of the protocol, in replies */
};

static struct spoke_span text_of(const char *text)
{
	return spokei_span(text, strlen(text));
}

/* --- putting values */

static unsigned char *put_number(unsigned char *at, uint64_t number, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		at[i] = (unsigned char)(number >> (8 * (width - 1 - i)));
	return at + width;
}

static unsigned char *put_raw(unsigned char *at, struct spoke_span bytes)
{
	if (bytes.len > 0)
		memcpy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

static unsigned char *put_str_head(unsigned char *at, size_t len)
{
	if (len < 32) {
		*at = (unsigned char)(0xa0 | len);
		return at + 1;
	}
	*at = len <= UINT8_MAX ? 0xd9 : len <= UINT16_MAX ? 0xda : 0xdb;
	return put_number(at + 1, len, len <= UINT8_MAX ? 1 : len <= UINT16_MAX ? 2 : 4);
}

static unsigned char *put_str(unsigned char *at, struct spoke_span text)
{
	return put_raw(put_str_head(at, text.len), text);
}

static unsigned char *put_text(unsigned char *at, const char *text)
{
	return put_str(at, text_of(text));
}

/* An array (0x90) or a map (0x80) begins. */
static unsigned char *put_container(unsigned char *at, unsigned char fixed, size_t count)
{
	unsigned char wide = fixed == 0x80 ? 0xde : 0xdc;

	if (count < 16) {
		*at = (unsigned char)(fixed | count);
		return at + 1;
	}
	*at = (unsigned char)(count <= UINT16_MAX ? wide : wide + 1);
	return put_number(at + 1, count, count <= UINT16_MAX ? 2 : 4);
}

static unsigned char *put_code(unsigned char *at, int32_t code)
{
	bool negative = code < 0;
	uint32_t size = negative ? ~(uint32_t)code : (uint32_t)code;
	unsigned shift = negative ? 1 : 0; /* a byte for the sign's bit, or all for the number */

	if (size < (negative ? 32u : 128u)) {
		*at = (unsigned char)code;
		return at + 1;
	}
	if (size <= (uint32_t)UINT8_MAX >> shift) {
		*at = negative ? 0xd0 : 0xcc;
		return put_number(at + 1, (uint64_t)(int64_t)code, 1);
	}
	if (size <= (uint32_t)UINT16_MAX >> shift) {
		*at = negative ? 0xd1 : 0xcd;
		return put_number(at + 1, (uint64_t)(int64_t)code, 2);
	}
	*at = negative ? 0xd2 : 0xce;
	return put_number(at + 1, (uint64_t)(int64_t)code, 4);
}

static unsigned char *put_digits(unsigned char *at, int64_t number)
{
	char digits[DIGITS_MAX];
	size_t first = sizeof(digits);
	uint64_t rest = (uint64_t)number;

	do {
		digits[--first] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	return put_str(at, spokei_span(digits + first, sizeof(digits) - first));
}

/* --- frames */

/* Makes room for a body of at most `body_max` bytes, of which `slack` may not be needed. */
static int begin_frame(struct frame *frame, const struct spokei_wire_limits *limits,
		       struct spokei_buffer *out, size_t body_max, size_t slack)
{
	size_t len = SPOKEI_DUBBO_HEAD_LEN + body_max;

	if (len > limits->frame_max && len - limits->frame_max > slack)
		return SPOKE_ETOOLARGE;
	frame->limits = limits;
	frame->out = out;
	frame->start = spokei_buffer_reserve(out, len);
	if (frame->start == NULL) {
		size_t held = spokei_buffer_len(out);

		return held > out->max || len > out->max - held ? SPOKE_ETOOLARGE : SPOKE_ENOMEM;
	}
	frame->at = frame->start + SPOKEI_DUBBO_HEAD_LEN;
	return 0;
}

static int end_frame(const struct frame *frame, unsigned flags, uint8_t status, uint64_t id)
{
	size_t len = (size_t)(frame->at - frame->start);
	struct spokei_dubbo_head head = {
		.flags = (uint8_t)flags,
		.status = status,
		.id = id,
		.body_len = len - SPOKEI_DUBBO_HEAD_LEN,
	};

	if (len > frame->limits->frame_max || head.body_len > INT32_MAX)
		return SPOKE_ETOOLARGE;
	spokei_dubbo_head_write(&head, frame->start);
	spokei_buffer_commit(frame->out, len);
	return 0;
}

/* --- attachments */

/* Opens the caller's attachments; null and none are an empty map. */
static int open_extras(struct spoke_value attachments, struct extras *ret)
{
	struct spoke_cursor pairs;

	*ret = (struct extras){ 0 };
	if (attachments.len == 0 || spoke_value_is_nil(attachments))
		return 0;
	if (spoke_cursor_map(attachments, &pairs) != 0)
		return SPOKE_EUNSUPPORTED;
	ret->count = (size_t)pairs.left / 2;
	ret->pairs = spoke_cursor_rest(&pairs);
	return 0;
}

static bool has_key(struct spoke_value attachments, const char *key)
{
	struct spoke_value value;

	return attachments.len > 0 && spoke_value_get(attachments, key, &value) == 0;
}

/* What the caller attached himself under such a name stays. */
static int plan_request(const struct spokei_message *message, struct extras *ret)
{
	struct spoke_value map = message->attachments;
	int result = open_extras(map, ret);

	ret->group = message->group.len > 0 && !has_key(map, "group");
	ret->timeout = message->timeout_ms > 0 && !has_key(map, "_TO") && !has_key(map, "timeout");
	ret->generic = message->generic && !has_key(map, "generic");
	ret->count += (size_t)ret->group + ret->timeout + ret->generic;
	if (result == 0 && ret->count > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return SPOKE_ETOOLARGE;
	return result;
}

static int plan_reply(const struct spokei_message *message, struct extras *ret)
{
	int result = open_extras(message->attachments, ret);

	ret->version = !has_key(message->attachments, "dubbo");
	ret->count += ret->version;
	if (result == 0 && ret->count > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return SPOKE_ETOOLARGE;
	return result;
}

/* The names and heads of all that may be added, and the digits of a time. */
#define EXTRAS_SLACK 96u

static unsigned char *put_extras(unsigned char *at, const struct extras *extras,
				 const struct spokei_message *message)
{
	at = put_container(at, 0x80, extras->count);
	at = put_raw(at, extras->pairs);
	if (extras->group)
		at = put_str(put_text(at, "group"), message->group);
	if (extras->timeout)
		at = put_digits(put_text(at, "timeout"), message->timeout_ms);
	if (extras->generic)
		at = put_text(put_text(at, "generic"), "true");
	if (extras->version)
		at = put_text(put_text(at, "dubbo"), SPOKEI_DUBBO_VERSION);
	return at;
}

/* --- requests */

/*
 * The type that a value is sent as when nobody told: the one its class of values has in most
 * interfaces. An integer is the narrowest of int, long and BigInteger that holds it.
 */
static const char *describe(struct spoke_value value)
{
	int64_t wide;
	int32_t narrow;

	switch (spoke_value_type(value)) {
	case SPOKE_VALUE_BOOL:
		return "Z";
	case SPOKE_VALUE_INT:
		if (spoke_value_i32(value, &narrow) == 0)
			return "I";
		return spoke_value_i64(value, &wide) == 0 ? "J" : "Ljava/math/BigInteger;";
	case SPOKE_VALUE_DOUBLE:
		return value.data[0] == 0xca ? "F" : "D";
	case SPOKE_VALUE_STR:
		return "Ljava/lang/String;";
	case SPOKE_VALUE_BIN:
		return "[B";
	case SPOKE_VALUE_ARRAY:
		return "Ljava/util/List;";
	case SPOKE_VALUE_MAP:
		return "Ljava/util/Map;";
	case SPOKE_VALUE_NIL:
	case SPOKE_VALUE_EXT:
	case SPOKE_VALUE_NONE:
		break;
	}
	return "Ljava/lang/Object;";
}

static size_t descriptor_len(struct spoke_span args)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(args);
	struct spoke_value value;
	size_t len = 0;

	while (spoke_cursor_next(&cursor, &value))
		len += strlen(describe(value));
	return len;
}

/* `len`: of the derived one, or 0. */
static unsigned char *put_descriptor(unsigned char *at, const struct spokei_message *message,
				     size_t len)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(message->args);
	struct spoke_value value;

	if (len == 0)
		return put_str(at, message->types);
	at = put_str_head(at, len);
	while (spoke_cursor_next(&cursor, &value))
		at = put_raw(at, text_of(describe(value)));
	return at;
}

static unsigned char *put_call(unsigned char *at, const struct spokei_message *message,
			       size_t derived_len)
{
	if (!message->generic) {
		at = put_descriptor(put_str(at, message->method), message, derived_len);
		return put_raw(at, message->args);
	}
	at = put_text(at, SPOKEI_DUBBO_GENERIC);
	at = put_text(at, SPOKEI_DUBBO_GENERIC_TYPES);
	at = put_str(at, message->method);
	if (message->type_names.len > 0)
		at = put_raw(at, spokei_span(message->type_names.data, message->type_names.len));
	else
		*at++ = 0xc0;
	at = put_container(at, 0x90, message->arg_count);
	return put_raw(at, message->args);
}

/* What the heads and fixed texts of a request take at most. */
#define REQUEST_SLACK (8 * HEAD_MAX + 96u + EXTRAS_SLACK)

int spokei_dubbo_write_request(const struct spokei_wire_limits *limits,
			       const struct spokei_message *message, struct spokei_buffer *out)
{
	unsigned flags = SPOKEI_DUBBO_REQUEST | message->codec;
	size_t derived_len = 0;
	size_t body_max;
	struct extras extras;
	struct frame frame;
	int result = plan_request(message, &extras);

	if (message->codec != SPOKEI_CODEC_MSGPACK)
		return SPOKE_EUNSUPPORTED;
	if (message->types.len == 0 && !message->generic)
		derived_len = descriptor_len(message->args);
	body_max = REQUEST_SLACK + derived_len + message->service.len + message->version.len +
		   message->method.len + message->types.len + message->type_names.len +
		   message->args.len + message->group.len + extras.pairs.len;
	if (result == 0)
		result = begin_frame(&frame, limits, out, body_max,
				     REQUEST_SLACK + message->group.len);
	if (result != 0)
		return result;
	frame.at = put_text(frame.at, SPOKEI_DUBBO_VERSION);
	frame.at = put_str(frame.at, message->service);
	if (message->version.len > 0)
		frame.at = put_str(frame.at, message->version);
	else
		frame.at = put_text(frame.at, SPOKEI_DUBBO_NO_VERSION);
	frame.at = put_call(frame.at, message, derived_len);
	frame.at = put_extras(frame.at, &extras, message);
	if (message->two_way)
		flags |= SPOKEI_DUBBO_TWO_WAY;
	return end_frame(&frame, flags, 0, message->id);
}

/* --- replies */

static unsigned char *put_exception(unsigned char *at, const struct spokei_message *message)
{
	bool own = message->error_class.len == 0;
	bool code;

	at = own ? put_text(at, SPOKEI_DUBBO_EXCEPTION) : put_str(at, message->error_class);
	if (spoke_value_type(message->value) == SPOKE_VALUE_MAP)
		return put_raw(at, spokei_span(message->value.data, message->value.len));
	/* Other classes need not have a code, and then cannot be made of fields that have. */
	code = own || message->error_code != 0 ||
	       spokei_span_is(message->error_class, SPOKEI_DUBBO_EXCEPTION);
	at = put_container(at, 0x80, code ? 2 : 1);
	at = put_str(put_text(at, "message"), message->error_text);
	if (code)
		at = put_code(put_text(at, "code"), message->error_code);
	return at;
}

#define REPLY_SLACK (4 * HEAD_MAX + INT_MAX_LEN + 64u + EXTRAS_SLACK)

static int write_marked(const struct spokei_wire_limits *limits,
			const struct spokei_message *message, struct spokei_buffer *out)
{
	bool null = message->value.len == 0 || spoke_value_is_nil(message->value);
	unsigned marker = message->error ? 0 : null ? 2 : 1;
	size_t body_max;
	size_t slack;
	struct extras extras = { 0 };
	struct frame frame;
	int result = message->bare ? 0 : plan_reply(message, &extras);

	if (message->codec != SPOKEI_CODEC_MSGPACK)
		return SPOKE_EUNSUPPORTED;
	body_max = REPLY_SLACK + message->value.len + message->error_class.len +
		   message->error_text.len + extras.pairs.len;
	slack = REPLY_SLACK + message->error_text.len;
	if (result == 0)
		result = begin_frame(&frame, limits, out, body_max, slack);
	if (result != 0)
		return result;
	*frame.at++ = (unsigned char)(marker + (message->bare ? 0 : 3));
	if (marker == 0)
		frame.at = put_exception(frame.at, message);
	else if (marker == 1)
		frame.at = put_raw(frame.at, spokei_span(message->value.data, message->value.len));
	if (!message->bare)
		frame.at = put_extras(frame.at, &extras, message);
	return end_frame(&frame, message->codec, SPOKEI_DUBBO_OK, message->id);
}

/* As Hessian 2 has it, whose bytes are not UTF-8: what is not ASCII becomes a question mark. */
static unsigned char *put_hessian_text(unsigned char *at, struct spoke_span text)
{
	size_t len = text.len < HESSIAN_TEXT_MAX ? text.len : HESSIAN_TEXT_MAX;
	const unsigned char *from = text.data;

	if (len > HESSIAN_SHORT_MAX)
		*at++ = (unsigned char)(0x30 | len >> 8);
	*at++ = (unsigned char)len;
	for (size_t i = 0; i < len; i++)
		*at++ = from[i] < 0x80 ? from[i] : '?';
	return at;
}

/* A text, so that also a peer whose serialization is not built in is told. Where nothing is known
 * of it the body is empty: the peer sees an error it cannot read, and its call fails at once. */
static int write_text(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      uint8_t status, struct spokei_buffer *out)
{
	struct spoke_span text = message->error_text;
	struct frame frame;
	int result = begin_frame(&frame, limits, out, HEAD_MAX + text.len, HEAD_MAX + text.len);

	if (result != 0)
		return result;
	if (message->codec == SPOKEI_CODEC_MSGPACK)
		frame.at = put_str(frame.at, text);
	else if (message->codec == SPOKEI_CODEC_HESSIAN2)
		frame.at = put_hessian_text(frame.at, text);
	return end_frame(&frame, message->codec, status, message->id);
}

int spokei_dubbo_write_reply(const struct spokei_wire_limits *limits,
			     const struct spokei_message *message, struct spokei_buffer *out)
{
	uint8_t status = message->status;

	if (status == 0 && message->error != SPOKE_EREMOTE)
		status = spokei_dubbo_error_status(message->error);
	if (status == 0 || status == SPOKEI_DUBBO_OK)
		return write_marked(limits, message, out);
	if (!spokei_dubbo_status_known(status))
		return SPOKE_EUNSUPPORTED;
	return write_text(limits, message, status, out);
}

/* --- events */

int spokei_dubbo_write_event(const struct spokei_wire_limits *limits,
			     const struct spokei_dubbo_head *head, struct spoke_span body,
			     struct spokei_buffer *out)
{
	struct frame frame;
	int result = begin_frame(&frame, limits, out, body.len, 0);

	if (result != 0)
		return result;
	frame.at = put_raw(frame.at, body);
	return end_frame(&frame, head->flags, head->status, head->id);
}
