/* SPDX-License-Identifier: Apache-2.0 */
/* Writes frames, in msgpack and by the codecs, and the types of arguments. */
#include "transport/wire/dubbo/write.h"

#include "core/value/java.h"
#include "transport/wire/codecs.h"
#include "transport/wire/dubbo/exception.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/put.h"
#include "transport/wire/skip.h"

/* --- types of arguments
 *
 * Derives the types of arguments, and writes them as a text: JVM descriptors. */

/* A descriptor, in a size that is copied at once. */
struct type {
	unsigned char len;
	bool matters; /* a codec may write a value in another way because it is of this type */
	char text[22];
};

#define TYPES_BEYOND 22u /* bytes after the types that the put functions may overwrite */
#define TYPES_KEPT 255u  /* bytes of derived types that are kept */

/* The types of a message as a text. Those that were derived are kept while they are short, so that
 * arguments are examined once. */
struct types {
	const char *text; /* a descriptor, or kept or told; NULL: too long to keep */
	size_t len;
	bool at_once; /* BEYOND bytes of the text can be copied, and it has no more */
	bool told;
	bool matter; /* a codec writes an argument in another way because of its type */
};

/* Room for types that are derived. */
struct kept {
	char text[TYPES_KEPT + TYPES_BEYOND];
};

/* From INT on, the value decides. */
enum {
	OBJECT,
	BOOLEAN,
	STRING,
	BYTES,
	LIST,
	INT,
	LONG,
	BIG,
	FLOAT,
	DOUBLE,
	MAP,
	EXT,
	DATE,
	CLASS, /* of the value: of an object */
};

#define TYPE(text)                                                                                 \
	{                                                                                          \
		sizeof(text) - 1, false, text                                                      \
	}
#define TYPE_THAT_MATTERS(text)                                                                    \
	{                                                                                          \
		sizeof(text) - 1, true, text                                                       \
	}

static const struct type types_known[] = {
	[OBJECT] = TYPE("Ljava/lang/Object;"),
	[BOOLEAN] = TYPE("Z"),
	[INT] = TYPE("I"),
	[LONG] = TYPE("J"),
	[BIG] = TYPE_THAT_MATTERS("Ljava/math/BigInteger;"),
	[FLOAT] = TYPE("F"),
	[DOUBLE] = TYPE("D"),
	[STRING] = TYPE("Ljava/lang/String;"),
	[BYTES] = TYPE("[B"),
	[LIST] = TYPE("Ljava/util/List;"),
	[MAP] = TYPE_THAT_MATTERS("Ljava/util/Map;"),
	[EXT] = TYPE("Ljava/lang/Object;"),
	[DATE] = TYPE("Ljava/util/Date;"),
	[CLASS] = TYPE_THAT_MATTERS(""),
};

/* An integer that is packed in 8 bytes is a long: codecs pack those of Java so. */
static int describe_int(struct spoke_value value)
{
	int64_t wide;
	int32_t narrow;

	if (value.len < 9 && spoke_value_i32(value, &narrow) == 0)
		return INT;
	return spoke_value_i64(value, &wide) == 0 ? LONG : BIG;
}

/* A map may be an object of a class, and an ext a date or a typed map. An object whose class is no
 * name of Java counts as a map: a peer may have sent the class, and other characters, e.g. a
 * semicolon, could add types to a descriptor. */
static int describe_java(struct spoke_value value, int usual, struct spoke_span *ret_class)
{
	int64_t seconds;
	uint32_t ns;

	if (usual != MAP && spoke_value_time(value, &seconds, &ns) == 0)
		return DATE;
	if ((usual == MAP || spoke_value_type(value) == SPOKE_VALUE_MAP) &&
	    spoke_value_class(value, ret_class) == 0)
		return spokei_java_identifiers(*ret_class) > 0 ? CLASS : MAP;
	return usual;
}

static SPOKEI_NOINLINE int describe_further(struct spoke_value value, int usual,
					    struct spoke_span *ret_class)
{
	if (usual == INT)
		return value.len > 3 ? describe_int(value) : INT;
	if (usual == DOUBLE)
		return value.data[0] == 0xca ? FLOAT : DOUBLE;
	return describe_java(value, usual, ret_class);
}

/*
 * Returns the type that most interfaces use for this kind of value, for calls without given types.
 * An integer is the narrowest of int, long and BigInteger, but no int if it is packed in 8 bytes.
 * CLASS has an empty descriptor, and the class is written.
 */
static inline const struct type *describe(struct spoke_value value, struct spoke_span *ret_class)
{
	static const unsigned char usual[] = {
		[SPOKE_VALUE_NONE] = OBJECT,   [SPOKE_VALUE_NIL] = OBJECT,
		[SPOKE_VALUE_BOOL] = BOOLEAN,  [SPOKE_VALUE_INT] = INT,
		[SPOKE_VALUE_DOUBLE] = DOUBLE, [SPOKE_VALUE_STR] = STRING,
		[SPOKE_VALUE_BIN] = BYTES,     [SPOKE_VALUE_ARRAY] = LIST,
		[SPOKE_VALUE_MAP] = MAP,       [SPOKE_VALUE_EXT] = EXT,
	};
	unsigned type = usual[spokei_shapes[value.data[0]].type];

	if (type >= INT)
		type = (unsigned)describe_further(value, (int)type, ret_class);
	return &types_known[type];
}

/* Writes a descriptor, of an object: L, the class with slashes, a semicolon. */
static unsigned char *put_type(unsigned char *at, const struct type *type, struct spoke_span class)
{
	if (SPOKEI_LIKELY(type->len > 0)) {
		memcpy(at, type->text, sizeof(type->text));
		return at + type->len;
	}
	*at++ = 'L';
	for (size_t i = 0; i < class.len; i++) {
		unsigned char c = ((const unsigned char *)class.data)[i];

		*at++ = c == '.' ? '/' : c;
	}
	*at++ = ';';
	return at;
}

/* Derives the types of arguments, and keeps them if there is room. */
static SPOKEI_NOINLINE struct types types_derive(struct spoke_span args, struct kept *kept)
{
	const unsigned char *at = args.data;
	const unsigned char *end = at + args.len;
	struct types types = { .text = kept->text };
	struct spoke_span class;

	while (at && at < end) {
		size_t short_len = spokei_shape_len(at, end);
		const unsigned char *next = short_len > 0 ? at + short_len
							  : spokei_shape_skip(at, end);
		const struct type *type = describe((struct spoke_value){ at, (size_t)(next - at) },
						   &class);
		size_t len = type->len > 0 ? type->len : class.len + 2;

		types.matter |= type->matters;
		if (len > TYPES_KEPT - types.len)
			types.text = NULL;
		if (types.text)
			(void)put_type((unsigned char *)kept->text + types.len, type, class);
		types.len += len;
		at = next;
	}
	types.at_once = types.text && types.len <= TYPES_BEYOND;
	return types;
}

/* Determines the types of a message; generic calls have none here. */
static inline struct types types_plan(const struct spokei_message *message, struct kept *kept)
{
	bool told = message->types.len > 0;
	struct spoke_value one = { message->args.data, message->args.len };
	struct spoke_span class;
	const struct type *type;

	if (told || message->generic)
		return (struct types){ message->types.data, message->types.len, false, told, told };
	if (SPOKEI_LIKELY(message->arg_count == 1)) {
		type = describe(one, &class);
		if (SPOKEI_LIKELY(type->len > 0))
			return (struct types){ type->text, type->len, true, false, type->matters };
	}
	return types_derive(message->args, kept);
}

/* Writes the text of the types; `args` are those of the message. Returns the address of the next
 * byte; up to BEYOND bytes after it are overwritten. */
static inline unsigned char *types_put_text(unsigned char *at, const struct types *types,
					    struct spoke_span args)
{
	struct spoke_cursor cursor;
	struct spoke_value value;
	struct spoke_span class;

	if (SPOKEI_LIKELY(types->at_once)) {
		memcpy(at, types->text, TYPES_BEYOND);
		return at + types->len;
	}
	if (types->text)
		return spokei_put_raw(at, types->text, types->len);
	cursor = spoke_cursor_bytes(args);
	while (spokei_skip_next(&cursor, &value)) {
		const struct type *type = describe(value, &class);

		at = put_type(at, type, class);
	}
	return at;
}

/* Does the same as a str. */
static inline unsigned char *types_put(unsigned char *at, const struct types *types,
				       struct spoke_span args)
{
	return types_put_text(spokei_encode_str(at, types->len), types, args);
}

/* --- frames
 *
 * Writes frames in msgpack. Room is reserved for the largest possible frame, the body is written
 * after the place of the header, then the length is checked and the frame committed. Each put
 * function returns the address of the next byte. */

struct frame {
	const struct spokei_wire_limits *limits;
	struct spokei_buffer *out;
	unsigned char *start;
	unsigned char *at; /* the next byte of the body */
};

/* The attachments: those of the caller, and those added here. */
struct extras {
	struct spoke_span pairs; /* of the caller, packed */
	size_t count;            /* of all attachments */
	bool group;
	bool timeout;
	bool generic;
	bool version; /* of the protocol, in replies */
};

/* --- putting values */

static inline unsigned char *put_digit(unsigned char *at, unsigned number)
{
	*at = (unsigned char)('0' + number);
	return at + 1;
}

/* Writes a number below 100 with two digits. */
static inline unsigned char *put_two(unsigned char *at, unsigned number)
{
	static const char digits[] = "0001020304050607080910111213141516171819"
				     "2021222324252627282930313233343536373839"
				     "4041424344454647484950515253545556575859"
				     "6061626364656667686970717273747576777879"
				     "8081828384858687888990919293949596979899";

	memcpy(at, digits + 2 * (size_t)number, 2);
	return at + 2;
}

/* Writes the digits of a number from 10,000 on, without the last four. */
static SPOKEI_NOINLINE unsigned char *put_high_digits(unsigned char *at, uint64_t number)
{
	uint64_t unit = 10000;

	while (number / unit >= 10)
		unit *= 10;
	for (; unit >= 10000; unit /= 10)
		at = put_digit(at, (unsigned)(number / unit % 10));
	return at;
}

#define STR_HEAD 0xa0u /* of a short str in msgpack, plus its length */

/* Writes a positive number as a short text of digits, whose head is `text` plus the length. Most
 * have four digits, which do not depend on each other. */
static unsigned char *put_digits(unsigned char *at, unsigned text, int64_t number)
{
	unsigned char *head = at++;
	uint64_t rest = (uint64_t)number;
	unsigned low = (unsigned)rest;

	if (SPOKEI_UNLIKELY(rest >= 10000)) {
		at = put_high_digits(at, rest);
		low = (unsigned)(rest % 10000);
	}
	if (SPOKEI_LIKELY(rest >= 1000))
		at = put_two(put_two(at, low / 100), low % 100);
	else if (rest >= 100)
		at = put_two(put_digit(at, low / 100), low % 100);
	else if (rest >= 10)
		at = put_two(at, low);
	else
		at = put_digit(at, low);
	*head = (unsigned char)(text | (unsigned)(at - head - 1));
	return at;
}

/* --- frames */

/* Returns why the buffer had no room for this many bytes. */
static inline int no_room(const struct spokei_buffer *out, size_t len)
{
	size_t held = spokei_buffer_len(out);

	return held > out->max || len > out->max - held ? SPOKE_ETOOLARGE : SPOKE_ENOMEM;
}

/* Reserves room for a body of at most `body_max` bytes; up to `slack` of them may stay unused. */
static inline int begin_frame(struct frame *frame, const struct spokei_wire_limits *limits,
			      struct spokei_buffer *out, size_t body_max, size_t slack)
{
	size_t len = SPOKEI_DUBBO_HEAD_LEN + body_max;

	*frame = (struct frame){ .limits = limits, .out = out };
	if (len > limits->frame_max && len - limits->frame_max > slack)
		return SPOKE_ETOOLARGE;
	frame->start = spokei_buffer_reserve(out, len);
	if (frame->start == NULL)
		return no_room(out, len);
	frame->at = frame->start + SPOKEI_DUBBO_HEAD_LEN;
	return 0;
}

static inline int end_frame(const struct frame *frame, unsigned flags, uint8_t status, uint64_t id)
{
	size_t len = (size_t)(frame->at - frame->start);
	struct spokei_dubbo_head head = {
		.flags = (uint8_t)flags,
		.status = status,
		.id = id,
		.body_len = len - SPOKEI_DUBBO_HEAD_LEN,
	};

	if (len > frame->limits->frame_max)
		return SPOKE_ETOOLARGE;
	spokei_dubbo_head_write(head, frame->start);
	spokei_buffer_commit(frame->out, len);
	return 0;
}

/* --- attachments */

#define KEY(text)                                                                                  \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}

/* Opens the caller's attachments; null and none are an empty map. *ret_found: which of these keys
 * the caller has set, one bit per key in order; these are not replaced. */
static int open_extras(struct spoke_value attachments, const struct spoke_span *keys,
		       unsigned key_count, struct extras *ret, unsigned *ret_found)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span text;

	*ret = (struct extras){ 0 };
	*ret_found = 0;
	if (attachments.len == 0 || attachments.data[0] == 0xc0)
		return 0;
	if (spokei_skip_map(attachments, &pairs) != 0)
		return SPOKE_EUNSUPPORTED;
	ret->count = (size_t)pairs.left / 2;
	ret->pairs = spoke_cursor_rest(&pairs);
	while (spokei_skip_next(&pairs, &key) && spokei_skip_next(&pairs, &value)) {
		if (spokei_skip_str(key, &text) != 0)
			continue;
		for (unsigned i = 0; i < key_count; i++)
			if (text.len == keys[i].len &&
			    memcmp(text.data, keys[i].data, text.len) == 0)
				*ret_found |= 1u << i;
	}
	return 0;
}

static inline int plan_request(const struct spokei_message *message, struct extras *ret)
{
	static const struct spoke_span keys[] = { KEY("group"), KEY("generic"), KEY("_TO"),
						  KEY("timeout") };
	unsigned found = 0;
	int result = 0;

	*ret = (struct extras){ 0 };
	if (message->attachments.len > 0)
		result = open_extras(message->attachments, keys, 4, ret, &found);
	ret->group = message->group.len > 0 && !(found & 1);
	ret->generic = message->generic && !(found & 2);
	ret->timeout = message->timeout_ms > 0 && !(found & (4 | 8));
	ret->count += (size_t)ret->group + ret->timeout + ret->generic;
	if (result == 0 && ret->count > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return SPOKE_ETOOLARGE;
	return result;
}

static int plan_reply(const struct spokei_message *message, struct extras *ret)
{
	static const struct spoke_span keys[] = { KEY("dubbo") };
	unsigned found;
	int result = open_extras(message->attachments, keys, 1, ret, &found);

	ret->version = found == 0;
	ret->count += ret->version;
	if (result == 0 && ret->count > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return SPOKE_ETOOLARGE;
	return result;
}

/* The names and heads of all attachments that may be added, and the digits of a time. */
#define EXTRAS_SLACK 96u

/* Writes the most frequent map: the timeout alone. */
static unsigned char *put_timeout(unsigned char *at, int64_t timeout_ms)
{
	static const unsigned char head[] = "\x81\xa7timeout";

	return put_digits(spokei_put_raw(at, head, sizeof(head) - 1), STR_HEAD, timeout_ms);
}

/* Writes the pairs that are added here. */
static unsigned char *put_added(unsigned char *at, const struct extras *extras,
				const struct spokei_message *message)
{
	if (extras->group)
		at = spokei_put_str(spokei_put_text(at, "group"), message->group);
	if (extras->timeout)
		at = put_digits(spokei_put_text(at, "timeout"), STR_HEAD, message->timeout_ms);
	if (extras->generic)
		at = spokei_put_text(spokei_put_text(at, "generic"), "true");
	if (extras->version)
		at = spokei_put_text(spokei_put_text(at, "dubbo"), SPOKEI_DUBBO_VERSION);
	return at;
}

static unsigned char *put_extras(unsigned char *at, const struct extras *extras,
				 const struct spokei_message *message)
{
	at = spokei_encode_map(at, extras->count);
	at = spokei_put_raw(at, extras->pairs.data, extras->pairs.len);
	return put_added(at, extras, message);
}

/* --- requests */

/* Writes versions, service and method. */
static unsigned char *put_names(unsigned char *at, const struct spokei_message *message)
{
	at = spokei_put_text(at, SPOKEI_DUBBO_VERSION);
	at = spokei_put_str(at, message->service);
	if (message->version.len > 0)
		at = spokei_put_str(at, message->version);
	else
		at = spokei_put_text(at, SPOKEI_DUBBO_NO_VERSION);
	return message->generic ? spokei_put_text(at, SPOKEI_DUBBO_GENERIC)
				: spokei_put_str(at, message->method);
}

/* Writes the first values of $invoke. */
static unsigned char *put_generic(unsigned char *at, const struct spokei_message *message)
{
	at = spokei_put_str(at, message->method);
	if (message->type_names.len > 0)
		at = spokei_put_raw(at, message->type_names.data, message->type_names.len);
	else
		*at++ = 0xc0;
	return spokei_encode_array(at, message->arg_count);
}

/* Writes everything before the arguments. */
static unsigned char *put_call(unsigned char *at, const struct spokei_message *message,
			       const struct types *types)
{
	if (message->generic)
		return put_generic(spokei_put_text(put_names(at, message),
						   SPOKEI_DUBBO_GENERIC_TYPES),
				   message);
	if (message->prefix.len == 0)
		return types_put(put_names(at, message), types, message->args);
	at = spokei_put_raw(at, message->prefix.data, message->prefix.len);
	return types->told ? at : types_put(at, types, message->args);
}

/* The largest length of the heads and fixed texts before the arguments. */
#define CALL_SLACK (7 * SPOKEI_PUT_HEAD_MAX + TYPES_BEYOND + 96u)
#define REQUEST_SLACK (SPOKEI_PUT_HEAD_MAX + CALL_SLACK + EXTRAS_SLACK)

/* Returns the largest length of put_call(). */
static size_t call_max(const struct spokei_message *message, size_t types_len)
{
	size_t names = message->service.len + message->version.len + message->method.len +
		       message->type_names.len;

	if (message->prefix.len > 0 && !message->generic)
		names = message->prefix.len;
	return CALL_SLACK + names + types_len;
}

static int end_request(const struct frame *frame, const struct spokei_message *message)
{
	unsigned flags = SPOKEI_DUBBO_REQUEST | SPOKEI_CODEC_MSGPACK;

	return end_frame(frame, message->two_way ? flags | SPOKEI_DUBBO_TWO_WAY : flags, 0,
			 message->id);
}

/* Writes any request. */
static SPOKEI_NOINLINE int write_planned(const struct spokei_wire_limits *limits,
					 const struct spokei_message *message,
					 struct spokei_buffer *out)
{
	struct types types;
	struct kept kept;
	size_t body_max;
	struct extras extras;
	struct frame frame;
	int result = plan_request(message, &extras);

	if (result != 0)
		return result;
	types = types_plan(message, &kept);
	body_max = call_max(message, types.len) + message->args.len + SPOKEI_PUT_HEAD_MAX +
		   EXTRAS_SLACK + message->group.len + extras.pairs.len;
	result = begin_frame(&frame, limits, out, body_max,
			     REQUEST_SLACK + types.len + message->group.len);
	if (result != 0)
		return result;
	frame.at = put_call(frame.at, message, &types);
	frame.at = spokei_put_body(frame.at, message->lent, message->args);
	frame.at = put_extras(frame.at, &extras, message);
	return end_request(&frame, message);
}

/* Writes a request with a prefix and without attachments of the caller. */
static SPOKEI_NOINLINE int write_prefixed(const struct spokei_wire_limits *limits,
					  const struct spokei_message *message,
					  struct spokei_buffer *out)
{
	const bool group = message->group.len > 0;
	struct types types;
	struct kept kept;
	size_t slack = EXTRAS_SLACK + 3 * SPOKEI_PUT_HEAD_MAX + TYPES_BEYOND;
	bool untold = message->types.len == 0;
	struct frame frame;
	int result;

	if (SPOKEI_LIKELY(untold)) {
		types = types_plan(message, &kept);
		slack += types.len;
	}
	result = begin_frame(&frame, limits, out,
			     message->prefix.len + message->args.len + message->group.len + slack,
			     slack);
	if (result != 0)
		return result;
	frame.at = spokei_put_raw(frame.at, message->prefix.data, message->prefix.len);
	if (SPOKEI_LIKELY(untold))
		frame.at = types_put(frame.at, &types, message->args);
	frame.at = spokei_put_body(frame.at, message->lent, message->args);
	if (SPOKEI_LIKELY(!group && message->timeout_ms > 0)) {
		frame.at = put_timeout(frame.at, message->timeout_ms);
	} else {
		struct extras extras = { .group = group, .timeout = message->timeout_ms > 0 };

		extras.count = (size_t)group + extras.timeout;
		frame.at = put_extras(frame.at, &extras, message);
	}
	return end_request(&frame, message);
}

/* Writes the prefix in msgpack. */
static int write_names(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	size_t len = call_max(message, message->types.len);
	unsigned char *start;
	unsigned char *at;

	if (len > limits->frame_max)
		return SPOKE_ETOOLARGE;
	start = spokei_buffer_reserve(out, len);
	if (start == NULL)
		return no_room(out, len);
	at = put_names(start, message);
	if (message->types.len > 0)
		at = spokei_put_str(at, message->types);
	spokei_buffer_commit(out, (size_t)(at - start));
	return 0;
}

/* --- replies */

/* Returns the status of a reply: its own, or that of its error. An error of the handler, and the
 * refusal of a caller, are exceptions, which have the status OK. */
static uint8_t reply_status(const struct spokei_message *message)
{
	if (message->status != 0)
		return message->status;
	if (SPOKEI_LIKELY(message->error == SPOKE_OK))
		return SPOKEI_DUBBO_OK;
	return spokei_error_of(message->error)->dubbo_status;
}

#define REPLY_SLACK (4 * SPOKEI_PUT_HEAD_MAX + SPOKEI_ENCODE_MAX + 64u + EXTRAS_SLACK)

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

	slack = REPLY_SLACK + (message->error ? spokei_dubbo_exception_max(message) : 0);
	body_max = slack + message->value.len + extras.pairs.len;
	if (message->error_class.len > limits->name_max)
		result = SPOKE_ETOOLARGE; /* the peer would not read it */
	if (result == 0)
		result = begin_frame(&frame, limits, out, body_max, slack);
	if (result != 0)
		return result;
	*frame.at++ = (unsigned char)(marker + (message->bare ? 0 : 3));
	if (marker == 0)
		frame.at = spokei_dubbo_put_exception(frame.at, message);
	else if (marker == 1)
		frame.at = spokei_put_body(frame.at, message->lent,
					   spokei_span(message->value.data, message->value.len));
	if (!message->bare)
		frame.at = put_extras(frame.at, &extras, message);
	return end_frame(&frame, SPOKEI_CODEC_MSGPACK, SPOKEI_DUBBO_OK, message->id);
}

static int write_text(const struct spokei_wire_limits *limits, const struct spokei_message *message,
		      uint8_t status, struct spokei_buffer *out)
{
	struct spoke_span text = message->error_text;
	struct frame frame;
	int result = begin_frame(&frame, limits, out, SPOKEI_PUT_HEAD_MAX + text.len,
				 SPOKEI_PUT_HEAD_MAX + text.len);

	if (result != 0)
		return result;
	frame.at = spokei_put_str(frame.at, text);
	return end_frame(&frame, SPOKEI_CODEC_MSGPACK, status, message->id);
}

/* Writes the marker and the value. */
static SPOKEI_NOINLINE int write_plain(const struct spokei_wire_limits *limits,
				       const struct spokei_message *message,
				       struct spokei_buffer *out)
{
	struct frame frame;
	int result = begin_frame(&frame, limits, out, 1 + message->value.len, 0);

	if (result != 0)
		return result;
	*frame.at++ = 1;
	frame.at = spokei_put_body(frame.at, message->lent,
				   spokei_span(message->value.data, message->value.len));
	return end_frame(&frame, SPOKEI_CODEC_MSGPACK, SPOKEI_DUBBO_OK, message->id);
}

/* --- other serializations
 *
 * A codec writes the body after the place of the header, from the values of the message. Values
 * that the message lacks are packed here before: added attachments, an exception, the arguments of
 * $invoke. */

#define MADE_LOCAL 512u /* bytes that need no memory */

/* Room for values that are packed here. */
struct made {
	unsigned char local[MADE_LOCAL];
	struct spokei_buffer more;
	bool has_more;
};

/* Returns the room, or NULL if there is no memory. Undo with made_fini(). */
static inline unsigned char *made_init(struct made *made, const struct spoke_env *env, size_t len)
{
	made->has_more = len > MADE_LOCAL;
	if (SPOKEI_LIKELY(!made->has_more))
		return made->local;
	spokei_buffer_init(&made->more, env, SIZE_MAX);
	return spokei_buffer_reserve(&made->more, len);
}

static inline void made_fini(struct made *made)
{
	if (SPOKEI_UNLIKELY(made->has_more))
		spokei_buffer_fini(&made->more);
}

/* Returns the codec for the bodies of a message, or NULL. */
static const struct spokei_codec *writer_of(const struct spokei_wire_limits *limits,
					    const struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);

	return codec && codec->from_values ? codec : NULL;
}

/* Writes the head of the frame that begins after `before` bytes and returns 0. After an error,
 * removes the frame and returns the error. */
static inline int end_by_codec(const struct spokei_wire_limits *limits,
			       struct spokei_dubbo_head head, int error, size_t before,
			       struct spokei_buffer *out)
{
	size_t len = spokei_buffer_len(out) - before;

	head.body_len = len - SPOKEI_DUBBO_HEAD_LEN;
	if (SPOKEI_LIKELY(error == 0 && len <= limits->frame_max)) {
		spokei_dubbo_head_write(head, out->bytes + out->start + before);
		return 0;
	}
	spokei_buffer_truncate(out, before);
	return error ? error : SPOKE_ETOOLARGE;
}

/* Packs the values before the arguments, unless they are in the prefix, and the arguments of
 * $invoke. Returns the address of the next byte. */
static unsigned char *make_call(unsigned char *at, const struct spokei_message *message,
				const struct types *types, struct spokei_codec_body *body)
{
	const unsigned char *start = at;

	if (body->prefix.len == 0)
		at = put_names(at, message);
	if (message->generic) {
		body->types = spokei_span(SPOKEI_DUBBO_GENERIC_TYPES,
					  sizeof(SPOKEI_DUBBO_GENERIC_TYPES) - 1);
		at = spokei_put_str(at, body->types);
		body->first = spokei_span(start, (size_t)(at - start));
		body->values.data = at;
		at = put_generic(at, message);
		at = spokei_put_raw(at, message->args.data, message->args.len);
		body->values.len = (size_t)(at - (const unsigned char *)body->values.data);
		return at;
	}
	if (body->prefix.len == 0 || !types->told)
		at = types_put(at, types, message->args);
	body->first = spokei_span(start, (size_t)(at - start));
	if (types->told)
		body->types = message->types;
	else if (types->matter)
		body->types = spokei_span(at - types->len, types->len);
	return at;
}

/* Returns whether a value is an array, a map or an ext, by its first byte. */
static inline bool is_container(unsigned char head)
{
	return spokei_shapes[head].each != 0 || spokei_shapes[head].type == SPOKE_VALUE_EXT;
}

/* Completes a frame that was written without state. Returns false if it is too long. */
static inline bool end_scalars(const struct spokei_wire_limits *limits, unsigned char *start,
			       const unsigned char *end, struct spokei_dubbo_head head,
			       struct spokei_buffer *out)
{
	size_t len = (size_t)(end - start);

	if (len > limits->frame_max)
		return false;
	head.body_len = len - SPOKEI_DUBBO_HEAD_LEN;
	spokei_dubbo_head_write(head, start);
	spokei_buffer_commit(out, len);
	return true;
}

#define TIMEOUT_MAX 40u /* bytes of put_timeout_as() */
#define SCALARS_SLACK                                                                              \
	(SPOKEI_DUBBO_HEAD_LEN + TYPES_KEPT + TYPES_BEYOND + SPOKEI_PUT_HEAD_MAX + TIMEOUT_MAX)

/* Writes the most frequent attachments, the timeout alone, in another serialization. */
static inline unsigned char *put_timeout_as(unsigned char *at,
					    const struct spokei_codec_heads *heads,
					    int64_t timeout_ms)
{
	static const char key[] = "timeout";

	*at++ = heads->map;
	*at++ = (unsigned char)(heads->text | (sizeof(key) - 1));
	at = put_digits(spokei_put_raw(at, key, sizeof(key) - 1), heads->text, timeout_ms);
	*at = heads->map_end;
	return at + 1;
}

/* Writes a request of scalars with a prefix and without attachments of the caller. Returns false
 * for any other, with nothing appended. */
static bool write_scalars(const struct spokei_wire_limits *limits, const struct spokei_codec *codec,
			  const struct spokei_message *message, const struct types *types,
			  struct spokei_buffer *out)
{
	size_t len = message->prefix.len + message->args.len + message->args.len / 8 +
		     SCALARS_SLACK;
	struct spokei_dubbo_head head = { .id = message->id };
	unsigned flags = SPOKEI_DUBBO_REQUEST | message->codec;
	unsigned char *start;
	unsigned char *at;

	if (codec->put_scalars == NULL || message->prefix.len == 0 || message->generic ||
	    message->attachments.len > 0 || message->group.len > 0 || message->timeout_ms <= 0 ||
	    message->args.len == 0 || types->matter || types->text == NULL)
		return false;
	start = spokei_buffer_reserve(out, len);
	if (start == NULL)
		return false;
	at = spokei_put_raw(start + SPOKEI_DUBBO_HEAD_LEN, message->prefix.data,
			    message->prefix.len);
	if (types->len >= 32)
		*at++ = codec->heads.long_text;
	*at++ = (unsigned char)(types->len < 32 ? codec->heads.text | types->len : types->len);
	at = types_put_text(at, types, message->args);
	at = codec->put_scalars(at, start + len - TIMEOUT_MAX, message->args);
	if (at == NULL)
		return false;
	at = put_timeout_as(at, &codec->heads, message->timeout_ms);
	head.flags = (uint8_t)(message->two_way ? flags | SPOKEI_DUBBO_TWO_WAY : flags);
	return end_scalars(limits, start, at, head, out);
}

static SPOKEI_NOINLINE int write_any_request(const struct spokei_wire_limits *limits,
					     const struct spokei_codec *codec,
					     const struct spokei_message *message,
					     const struct types *types, struct spokei_buffer *out)
{
	size_t before = spokei_buffer_len(out);
	struct spokei_codec_body body = {
		.room = SPOKEI_DUBBO_HEAD_LEN,
		.values = message->args,
		.plans = limits->plans,
		.attached = true,
	};
	unsigned two_way = message->two_way ? SPOKEI_DUBBO_TWO_WAY : 0;
	const struct spokei_dubbo_head head = {
		.flags = (uint8_t)(SPOKEI_DUBBO_REQUEST | two_way | message->codec),
		.id = message->id,
	};
	struct extras extras;
	struct made made;
	unsigned char *at;
	int result;

	result = plan_request(message, &extras);
	if (result != 0)
		return result;
	if (!message->generic)
		body.prefix = message->prefix;
	body.generic = body.prefix.len == 0 &&
		       (message->generic || spokei_dubbo_is_generic(message->method));
	at = made_init(&made, out->env,
		       (body.prefix.len > 0 ? types->len + CALL_SLACK
					    : call_max(message, types->len)) +
			       (message->generic ? message->args.len : 0) + SPOKEI_PUT_HEAD_MAX +
			       EXTRAS_SLACK + message->group.len);
	if (at == NULL)
		return SPOKE_ENOMEM;
	at = make_call(at, message, types, &body);
	body.pairs[0] = extras.pairs;
	body.pairs[1].data = at;
	body.pairs[1].len = (size_t)(put_added(at, &extras, message) - at);
	result = codec->from_values(&body, out);
	made_fini(&made);
	return end_by_codec(limits, head, result, before, out);
}

static int write_prefix_by_codec(const struct spokei_wire_limits *limits,
				 const struct spokei_message *message, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	size_t before = spokei_buffer_len(out);
	struct spokei_codec_body body = { 0 };
	struct spokei_buffer names;
	int result;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	/* The codec writes objects in another way in such a call. */
	if (spokei_dubbo_is_generic(message->method))
		return 0;
	spokei_buffer_init(&names, out->env, SIZE_MAX);
	result = write_names(limits, message, &names);
	body.first = spokei_span(spokei_buffer_data(&names), spokei_buffer_len(&names));
	if (result == 0)
		result = codec->from_values(&body, out);
	if (result != 0)
		spokei_buffer_truncate(out, before);
	spokei_buffer_fini(&names);
	return result;
}

/* Writes a reply with an error status. Its body is empty in an unknown codec: the peer cannot read
 * the error, but its call fails at once. */
static int write_text_by_codec(const struct spokei_wire_limits *limits,
			       const struct spokei_message *message, uint8_t status,
			       struct spokei_buffer *out)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	const struct spokei_dubbo_head head = {
		.flags = message->codec,
		.status = status,
		.id = message->id,
	};
	size_t before = spokei_buffer_len(out);
	int error = 0;

	if (spokei_buffer_reserve(out, SPOKEI_DUBBO_HEAD_LEN) == NULL)
		return no_room(out, SPOKEI_DUBBO_HEAD_LEN);
	spokei_buffer_commit(out, SPOKEI_DUBBO_HEAD_LEN);
	if (codec)
		error = codec->from_text(message->error_text, out);
	return end_by_codec(limits, head, error, before, out);
}

static SPOKEI_NOINLINE int write_reply_by_codec(const struct spokei_wire_limits *limits,
						const struct spokei_message *message,
						uint8_t status, struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	const struct spokei_dubbo_head head = {
		.flags = message->codec,
		.status = status,
		.id = message->id,
	};
	bool null = message->value.len == 0 || spoke_value_is_nil(message->value);
	unsigned marker = message->error ? 0 : null ? 2 : 1;
	size_t before = spokei_buffer_len(out);
	struct spokei_codec_body body = {
		.room = SPOKEI_DUBBO_HEAD_LEN,
		.plans = limits->plans,
		.attached = !message->bare,
		.thrown = message->error != 0,
		.generic = message->generic,
	};
	struct extras extras = { 0 };
	struct made made;
	unsigned char *at;
	int result = message->bare ? 0 : plan_reply(message, &extras);

	if (status != SPOKEI_DUBBO_OK)
		return write_text_by_codec(limits, message, status, out);
	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	if (message->error_class.len > limits->name_max)
		result = SPOKE_ETOOLARGE; /* the peer would not read it */
	if (result != 0)
		return result;
	at = made_init(&made, out->env,
		       1 + EXTRAS_SLACK +
			       (message->error ? spokei_dubbo_exception_max(message) : 0));
	if (at == NULL)
		return SPOKE_ENOMEM;
	body.first = spokei_span(at, 1);
	*at++ = (unsigned char)(marker + (message->bare ? 0 : 3));
	if (marker == 0) {
		body.values.data = at;
		at = spokei_dubbo_put_exception(at, message);
		body.values.len = (size_t)(at - (const unsigned char *)body.values.data);
	} else if (marker == 1) {
		body.values = spokei_span(message->value.data, message->value.len);
	}
	body.pairs[0] = extras.pairs;
	body.pairs[1] = spokei_span(at, (size_t)(put_added(at, &extras, message) - at));
	result = codec->from_values(&body, out);
	made_fini(&made);
	return end_by_codec(limits, head, result, before, out);
}

/* --- messages */

/* Writes any reply. */
static SPOKEI_NOINLINE int write_any_reply(const struct spokei_wire_limits *limits,
					   const struct spokei_message *message,
					   struct spokei_buffer *out)
{
	uint8_t status = reply_status(message);

	if (!spokei_dubbo_status_known(status))
		return SPOKE_EUNSUPPORTED;
	if (message->codec != SPOKEI_CODEC_MSGPACK)
		return write_reply_by_codec(limits, message, status, out);
	if (status == SPOKEI_DUBBO_OK)
		return write_marked(limits, message, out);
	return write_text(limits, message, status, out);
}

/* Writes the marker and the value in another serialization, without state if it is a scalar. */
static SPOKEI_NOINLINE int write_plain_by_codec(const struct spokei_wire_limits *limits,
						const struct spokei_message *message,
						struct spokei_buffer *out)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	const struct spokei_dubbo_head head = {
		.flags = message->codec,
		.status = SPOKEI_DUBBO_OK,
		.id = message->id,
	};
	struct spoke_span value = { message->value.data, message->value.len };
	size_t len = value.len + value.len / 8 + SCALARS_SLACK;
	unsigned char *start = NULL;
	unsigned char *at = NULL;

	if (codec && codec->put_scalars && !is_container(*message->value.data))
		start = spokei_buffer_reserve(out, len);
	if (start) {
		at = start + SPOKEI_DUBBO_HEAD_LEN;
		*at++ = codec->heads.value;
		at = codec->put_scalars(at, start + len, value);
	}
	if (SPOKEI_LIKELY(at && end_scalars(limits, start, at, head, out)))
		return 0;
	return write_any_reply(limits, message, out);
}

/* Writes a request in another serialization. */
static SPOKEI_NOINLINE int write_request_by_codec(const struct spokei_wire_limits *limits,
						  const struct spokei_message *message,
						  struct spokei_buffer *out)
{
	const struct spokei_codec *codec = writer_of(limits, message);
	struct types types;
	struct kept kept;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	types = types_plan(message, &kept);
	if (SPOKEI_LIKELY(write_scalars(limits, codec, message, &types, out)))
		return 0;
	return write_any_request(limits, codec, message, &types, out);
}

int spokei_dubbo_write_request(const struct spokei_wire_limits *limits,
			       const struct spokei_message *message, struct spokei_buffer *out)
{
	if (SPOKEI_UNLIKELY(message->codec != SPOKEI_CODEC_MSGPACK))
		return write_request_by_codec(limits, message, out);
	if (SPOKEI_LIKELY(message->prefix.len > 0 && message->attachments.len == 0 &&
			  !message->generic))
		return write_prefixed(limits, message, out);
	return write_planned(limits, message, out);
}

int spokei_dubbo_write_prefix(const struct spokei_wire_limits *limits,
			      const struct spokei_message *message, struct spokei_buffer *out)
{
	if (message->generic)
		return 0;
	if (message->codec != SPOKEI_CODEC_MSGPACK)
		return write_prefix_by_codec(limits, message, out);
	return write_names(limits, message, out);
}

int spokei_dubbo_write_reply(const struct spokei_wire_limits *limits,
			     const struct spokei_message *message, struct spokei_buffer *out)
{
	uint8_t status = message->status;

	if (SPOKEI_UNLIKELY((status != 0 && status != SPOKEI_DUBBO_OK) || message->error != 0 ||
			    !message->bare || message->value.len == 0 ||
			    message->value.data[0] == 0xc0))
		return write_any_reply(limits, message, out);
	if (SPOKEI_UNLIKELY(message->codec != SPOKEI_CODEC_MSGPACK))
		return write_plain_by_codec(limits, message, out);
	return write_plain(limits, message, out);
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
	frame.at = spokei_put_raw(frame.at, body.data, body.len);
	return end_frame(&frame, head->flags, head->status, head->id);
}
