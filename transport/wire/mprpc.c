/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MessagePack-RPC wire. Reading walks over the few fields of a frame and takes the rest of the
 * frame as the last one. cut() validates arguments and results; they are not walked over again.
 * Stateless except for the cut state of a connection.
 */
#include "transport/wire/mprpc.h"

#include "transport/codec/codec.h"
#include "transport/wire/memo.h"
#include "transport/wire/put.h"
#include "transport/wire/skip.h"

/* The first field of a frame, and the number of fields. */
enum {
	TYPE_REQUEST = 0,
	TYPE_REPLY = 1,
	TYPE_NOTIFICATION = 2,
	REQUEST_FIELDS = 4,
	REPLY_FIELDS = 4,
	NOTIFICATION_FIELDS = 3,
};

#define ID_MAX UINT32_MAX
/* The status of a Dubbo header for a reply, including one with an error of the handler. */
#define STATUS_OK 20

/* --- finding the end */

static bool mprpc_knows(unsigned char first)
{
	return first == 0x93 || first == 0x94 || first == 0xdc || first == 0xdd;
}

/* Returns the limits of a frame, which is one value. Each connection keeps the state of its
 * validator, so the depth is less than that of Dubbo's values. */
static struct spoke_value_limits frame_limits(const struct spokei_wire_limits *limits)
{
	struct spoke_value_limits frame = limits->value;

	if (frame.depth_max > SPOKEI_VALIDATOR_KEPT_DEPTH)
		frame.depth_max = SPOKEI_VALIDATOR_KEPT_DEPTH;
	if (frame.bytes_max > limits->frame_max)
		frame.bytes_max = limits->frame_max;
	return frame;
}

static bool is_array(unsigned char first)
{
	return (first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd;
}

/* Returns the length of a frame of small values if it is complete and within the limits; else 0. */
static size_t skip_frame(const struct spoke_value_limits *frame, struct spoke_span bytes)
{
	const unsigned char *at = bytes.data;
	uint32_t items;
	size_t len = spokei_skip_small(at, at + bytes.len, spokei_skip_containers(frame->depth_max),
				       &items);

	return len > 0 && len <= frame->bytes_max && items <= spokei_limits_items(frame) ? len : 0;
}

/* Validates a complete frame once more, because it has exts that may contain values. */
static SPOKEI_NOINLINE int check_exts(const struct spokei_wire_limits *limits,
				      struct spoke_span bytes, size_t len)
{
	struct spoke_value_limits frame = frame_limits(limits);
	struct spokei_validator validator;

	spokei_validator_start_body(&validator, &frame, len, 1);
	return spokei_validate(&validator, bytes.data, len);
}

static int mprpc_cut(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		     struct spoke_span bytes, size_t *ret_len)
{
	const unsigned char *at = bytes.data;
	struct spokei_validator validator;
	int result;

	if (bytes.len == 0) {
		*ret_len = 1;
		return SPOKEI_NEXT_MORE;
	}
	if (!cut->started) {
		struct spoke_value_limits frame = frame_limits(limits);

		if (!is_array(*at))
			return SPOKE_EPROTOCOL;
		*ret_len = skip_frame(&frame, bytes);
		if (*ret_len > 0)
			return 0;
		spokei_validator_start_stream(&validator, &frame);
		cut->started = true;
	} else {
		spokei_validator_restore(&validator, &cut->validator);
	}
	SPOKE_ASSERT(bytes.len >= validator.seen);
	result = spokei_validate(&validator, at + validator.seen, bytes.len - validator.seen);
	if (result == 0) {
		*ret_len = validator.seen;
		cut->started = false;
		return SPOKEI_UNLIKELY(validator.exts) ? check_exts(limits, bytes, validator.seen)
						       : 0;
	}
	spokei_validator_keep(&cut->validator, &validator);
	if (result != SPOKEI_VALIDATOR_MORE)
		return result;
	*ret_len = validator.seen + (validator.content > 0 ? validator.content : 1);
	return SPOKEI_NEXT_MORE;
}

/* --- reading */

static bool next_u64(struct spoke_cursor *fields, uint64_t *ret)
{
	struct spoke_value field;

	return spokei_skip_next(fields, &field) && spokei_skip_u64(field, ret) == 0;
}

/* Returns the unread rest as one value. */
static struct spoke_value last_field(const struct spoke_cursor *fields)
{
	return (struct spoke_value){ fields->at, (size_t)(fields->end - fields->at) };
}

/* Splits a name at its last dot. Returns false if the method is missing or a part is too long. */
static bool split_name(const struct spokei_wire_limits *limits, struct spoke_span name,
		       struct spokei_message *message)
{
	const char *text = name.data;
	size_t at = name.len;

	while (at > 0 && text[at - 1] != '.')
		at--;
	message->service = spokei_span(text, at > 0 ? at - 1 : 0);
	message->method = spokei_span(text + at, name.len - at);
	return message->method.len > 0 && message->method.len <= limits->name_max &&
	       message->service.len <= limits->name_max;
}

/* Reads the name of the method, unless the request begins like the previous one. */
static int read_name(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
		     struct spoke_cursor *fields, struct spokei_message *message)
{
	const unsigned char *at = fields->at;
	struct spoke_value field;
	struct spoke_span name;

	if (fields->left > 0 &&
	    spokei_memo_knows(memo, SPOKEI_CODEC_MSGPACK, spoke_cursor_rest(fields))) {
		message->service = spokei_memo_span(at, memo->service);
		message->method = spokei_memo_span(at, memo->method);
		message->repeat = true;
		fields->at += memo->len;
		fields->left--;
		return 0;
	}
	if (!spokei_skip_next(fields, &field) || spokei_skip_str(field, &name) != 0)
		return SPOKE_EBADREQUEST;
	return split_name(limits, name, message) ? 0 : SPOKE_EBADREQUEST;
}

/* Reads method and params. */
static int read_call(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
		     struct spoke_cursor *fields, struct spokei_message *message)
{
	const unsigned char *at = fields->at;
	struct spoke_cursor params;
	size_t len;
	int result = read_name(limits, memo, fields, message);

	if (result != 0)
		return result;
	len = (size_t)(fields->at - at);
	if (spokei_skip_array(last_field(fields), &params) != 0)
		return SPOKE_EBADREQUEST;
	message->args = spokei_span(params.at, (size_t)(params.end - params.at));
	message->arg_count = (size_t)params.left;
	if (memo && !message->repeat && spokei_memo_begin(memo, SPOKEI_CODEC_MSGPACK, at, len)) {
		memo->service = spokei_memo_part(at, message->service);
		memo->method = spokei_memo_part(at, message->method);
	}
	return 0;
}

/* Takes a text and a code from an error, which may be any value. */
static void read_error(struct spoke_value error, struct spokei_message *message)
{
	struct spoke_cursor parts;
	struct spoke_value part;
	struct spoke_span text;
	int32_t code;

	message->error = SPOKE_EREMOTE;
	if (spoke_value_bytes(error, &message->error_text) == 0 ||
	    spoke_cursor_array(error, &parts) != 0)
		return;
	for (int i = 0; i < 2 && spokei_skip_next(&parts, &part); i++) {
		if (spoke_value_i32(part, &code) == 0)
			message->error_code = code;
		else if (spoke_value_bytes(part, &text) == 0)
			message->error_text = text;
	}
}

static int read_reply(struct spoke_cursor *fields, struct spokei_message *message)
{
	struct spoke_value error;

	if (!spokei_skip_next(fields, &error))
		return SPOKE_EBADREPLY;
	if (error.data[0] == 0xc0)
		message->value = last_field(fields);
	else
		read_error(error, message);
	return 0;
}

static void read_head(uint64_t type, uint64_t id, struct spokei_message *message)
{
	spokei_message_clear(message);
	message->kind = type == TYPE_REPLY ? SPOKEI_REPLY : SPOKEI_REQUEST;
	message->two_way = type == TYPE_REQUEST;
	message->codec = SPOKEI_CODEC_MSGPACK;
	message->status = type == TYPE_REPLY ? STATUS_OK : 0;
	message->id = id;
}

static int mprpc_read(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
		      struct spoke_span frame, struct spokei_message *ret_message)
{
	static const unsigned lengths[] = { REQUEST_FIELDS, REPLY_FIELDS, NOTIFICATION_FIELDS };
	struct spoke_value array = { frame.data, frame.len };
	struct spoke_cursor fields;
	uint64_t count;
	uint64_t type;
	uint64_t id = 0;
	int result;

	if (spokei_skip_array(array, &fields) != 0)
		return SPOKE_EPROTOCOL;
	count = fields.left;
	if (!next_u64(&fields, &type) || type > TYPE_NOTIFICATION)
		return SPOKE_EPROTOCOL;
	if (type != TYPE_NOTIFICATION && (!next_u64(&fields, &id) || id > ID_MAX))
		return SPOKE_EPROTOCOL;
	read_head(type, id, ret_message);
	if (count != lengths[type])
		return type == TYPE_REPLY ? SPOKE_EBADREPLY : SPOKE_EBADREQUEST;
	if (type == TYPE_REPLY)
		result = read_reply(&fields, ret_message);
	else
		result = read_call(limits, memo, &fields, ret_message);
	if (result != 0)
		read_head(type, id, ret_message); /* the other fields are not valid */
	return result;
}

static int mprpc_next(struct spokei_reader *reader, struct spoke_span bytes,
		      struct spokei_message *ret_message)
{
	int status = mprpc_cut(reader->limits, &reader->cut, bytes, &reader->len);

	if (status != 0)
		return status;
	bytes.len = reader->len;
	return spokei_wire_read(reader,
				mprpc_read(reader->limits, reader->memo, bytes, ret_message));
}

/* --- writing */

/* Rejects names that would be read as a different name or as none. */
static int check_name(const struct spokei_wire_limits *limits, const struct spokei_message *message)
{
	const struct spoke_span *service = &message->service;
	const struct spoke_span *method = &message->method;

	if (method->len == 0 || ((const char *)method->data)[method->len - 1] == '.' ||
	    (service->len > 0 && memchr(method->data, '.', method->len)))
		return SPOKE_EUNSUPPORTED;
	if (service->len > limits->name_max || method->len > limits->name_max)
		return SPOKE_ETOOLARGE;
	return 0;
}

static size_t name_len(const struct spokei_message *message)
{
	size_t service_len = message->service.len;

	return (service_len > 0 ? service_len + 1 : 0) + message->method.len;
}

/* Writes service and method as one str. */
static unsigned char *put_name(unsigned char *at, const struct spokei_message *message)
{
	at = spokei_encode_str(at, name_len(message));
	if (message->service.len > 0) {
		at = spokei_put_raw(at, message->service.data, message->service.len);
		*at++ = '.';
	}
	return spokei_put_raw(at, message->method.data, message->method.len);
}

/*
 * Checks `count` values in a frame at depth `depth` with `items` other values. Their builder may
 * have had other limits than the frame.
 */
static int check_values(const struct spoke_value_limits *frame, uint32_t depth, uint32_t items,
			struct spoke_span values, size_t count)
{
	const unsigned char *at = values.data;
	const unsigned char *end = at ? at + values.len : NULL;
	uint32_t items_max = spokei_limits_items(frame);
	struct spoke_value_limits inside = *frame;
	struct spokei_validator validator;
	size_t left = count;

	if (depth > frame->depth_max)
		return SPOKE_EDEPTH;
	if (items > items_max || count > items_max - items)
		return SPOKE_ETOOLARGE;
	if (at == NULL && values.len > 0)
		return SPOKE_EINVAL;
	inside.depth_max -= depth;
	items_max -= items;
	for (; left > 0 && at < end; left--) {
		uint32_t taken;
		size_t len = spokei_skip_small(at, end, spokei_skip_containers(inside.depth_max),
					       &taken);

		if (len == 0 || taken > items_max)
			break;
		at += len;
		items_max -= taken;
	}
	if (left == 0 && at == end)
		return 0;
	inside.items_max = items_max;
	inside.object_bytes_max = SIZE_MAX;
	inside.bytes_max = SIZE_MAX;
	spokei_validator_start_body(&validator, &inside, (size_t)(end - at), left);
	return spokei_validate(&validator, at, (size_t)(end - at));
}

/* Reserves room for a frame of exactly this length. */
static int begin_frame(const struct spoke_value_limits *frame, struct spokei_buffer *out,
		       size_t len_max, unsigned char **ret)
{
	size_t held = spokei_buffer_len(out);

	if (len_max > frame->bytes_max || held > out->max || len_max > out->max - held)
		return SPOKE_ETOOLARGE;
	*ret = spokei_buffer_reserve(out, len_max);
	return *ret ? 0 : SPOKE_ENOMEM;
}

/* Return the length of an encoded number, or of the head of a str or array. */
static size_t u32_len(uint64_t number)
{
	return number < 0x80 ? 1 : number <= UINT8_MAX ? 2 : number <= UINT16_MAX ? 3 : 5;
}

static size_t str_head_len(size_t len)
{
	return len < 32 ? 1 : len <= UINT8_MAX ? 2 : len <= UINT16_MAX ? 3 : 5;
}

static size_t array_head_len(size_t count)
{
	return count < 16 ? 1 : count <= UINT16_MAX ? 3 : 5;
}

static int write_request(const struct spokei_wire_limits *limits,
			 const struct spokei_message *message, struct spokei_buffer *out)
{
	struct spoke_value_limits frame = frame_limits(limits);
	unsigned fields = message->two_way ? REQUEST_FIELDS : NOTIFICATION_FIELDS;
	struct spoke_span prefix = message->prefix;
	size_t len = 2 + array_head_len(message->arg_count);
	unsigned char *at;
	int result = prefix.len > 0 ? 0 : check_name(limits, message);

	if (result == 0)
		result = check_values(&frame, 2, 1 + fields, message->args, message->arg_count);
	if (result != 0)
		return result;
	len += prefix.len > 0 ? prefix.len : str_head_len(name_len(message)) + name_len(message);
	len += message->two_way ? u32_len(message->id) : 0;
	result = begin_frame(&frame, out, len + message->args.len, &at);
	if (result != 0)
		return result;
	*at++ = (unsigned char)(0x90 | fields);
	*at++ = message->two_way ? TYPE_REQUEST : TYPE_NOTIFICATION;
	if (message->two_way)
		at = spokei_encode_u32(at, (uint32_t)message->id);
	at = prefix.len > 0 ? spokei_put_raw(at, prefix.data, prefix.len) : put_name(at, message);
	at = spokei_encode_array(at, message->arg_count);
	(void)spokei_put_body(at, message->lent, message->args);
	spokei_buffer_commit(out, len + message->args.len);
	return 0;
}

static int write_reply(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	struct spoke_value_limits frame = frame_limits(limits);
	struct spoke_span text = message->error_text;
	struct spoke_span value = spokei_span("\xc0", 1);
	size_t error_len = 1;
	unsigned char *at;
	size_t len;
	int result;

	if (message->error != 0 && text.len == 0) {
		text.data = spoke_strerror(message->error);
		text.len = strlen(text.data);
	}
	if (message->error != 0)
		error_len = str_head_len(text.len) + text.len;
	else if (message->value.len > 0)
		value = spokei_span(message->value.data, message->value.len);
	result = check_values(&frame, 1, REPLY_FIELDS, value, 1);
	if (result != 0)
		return result;
	len = 2 + u32_len(message->id) + error_len + value.len;
	result = begin_frame(&frame, out, len, &at);
	if (result != 0)
		return result;
	*at++ = 0x90 | REPLY_FIELDS;
	*at++ = TYPE_REPLY;
	at = spokei_encode_u32(at, (uint32_t)message->id);
	if (message->error != 0)
		at = spokei_put_str(at, text);
	else
		*at++ = 0xc0;
	(void)spokei_put_body(at, message->lent, value);
	spokei_buffer_commit(out, len);
	return 0;
}

static int mprpc_prefix(const struct spokei_wire_limits *limits,
			const struct spokei_message *message, struct spokei_buffer *out)
{
	struct spoke_value_limits frame = frame_limits(limits);
	size_t len = str_head_len(name_len(message)) + name_len(message);
	unsigned char *at;
	int result = check_name(limits, message);

	if (result == 0)
		result = begin_frame(&frame, out, len, &at);
	if (result != 0)
		return result;
	(void)put_name(at, message);
	spokei_buffer_commit(out, len);
	return 0;
}

static int mprpc_write(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	bool is_request = message->kind == SPOKEI_REQUEST;

	if (!is_request && message->kind != SPOKEI_REPLY)
		return SPOKE_EUNSUPPORTED;
	if ((!is_request || message->two_way) && message->id > ID_MAX)
		return SPOKE_EUNSUPPORTED;
	return is_request ? write_request(limits, message, out) : write_reply(limits, message, out);
}

const struct spokei_wire spokei_wire_mprpc = {
	.name = "msgpack-rpc",
	.id_first = 1, /* Neovim answers unreadable requests with id 0 */
	.id_max = ID_MAX,
	.knows = mprpc_knows,
	.next = mprpc_next,
	.prefix = mprpc_prefix,
	.write = mprpc_write,
};
