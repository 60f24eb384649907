/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack-RPC. Reading walks over the frame's few fields and takes the last one as what is left
 * of the frame, so that arguments and results are skimmed once, by cut, and not walked over again.
 * Stateless but for the cut of a connection.
 */
#include "transport/wire/mprpc.h"

#include "core/pack.h"
#include "transport/wire/codecs.h"

/* The first field of a frame, and how many there are. */
enum {
	TYPE_REQUEST = 0,
	TYPE_REPLY = 1,
	TYPE_NOTIFICATION = 2,
	REQUEST_FIELDS = 4,
	REPLY_FIELDS = 4,
	NOTIFICATION_FIELDS = 3,
};

#define ID_MAX UINT32_MAX
#define STATUS_OK 20 /* of the Dubbo header: an answer, also that of a handler which failed */

/* --- finding the end */

static bool mprpc_knows(unsigned char first)
{
	return first == 0x93 || first == 0x94 || first == 0xdc || first == 0xdd;
}

/* The limits of a frame, which is one value. */
static struct spoke_value_limits frame_limits(const struct spokei_wire_limits *limits)
{
	struct spoke_value_limits frame = limits->value;

	if (frame.bytes_max > limits->frame_max)
		frame.bytes_max = limits->frame_max;
	return frame;
}

static bool is_array(unsigned char first)
{
	return (first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd;
}

static int mprpc_cut(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		     struct spoke_span bytes, size_t *ret_len)
{
	const unsigned char *at = bytes.data;
	struct spokei_skim *skim = &cut->skim;
	int result;

	if (bytes.len == 0) {
		*ret_len = 1;
		return SPOKEI_CUT_MORE;
	}
	if (!cut->started) {
		struct spoke_value_limits frame = frame_limits(limits);

		if (!is_array(*at))
			return SPOKE_EPROTOCOL;
		spokei_skim_start_stream(skim, &frame);
		cut->started = true;
	}
	SPOKE_ASSERT(bytes.len >= skim->seen);
	result = spokei_skim_feed(skim, at + skim->seen, bytes.len - skim->seen);
	if (result == SPOKEI_SKIM_MORE) {
		*ret_len = skim->seen + (skim->content > 0 ? skim->content : 1);
		return SPOKEI_CUT_MORE;
	}
	if (result == 0) {
		*ret_len = skim->seen;
		cut->started = false;
	}
	return result;
}

/* --- reading */

static bool next_u64(struct spoke_cursor *fields, uint64_t *ret)
{
	struct spoke_value field;

	return spoke_cursor_next(fields, &field) && spoke_value_u64(field, ret) == 0;
}

/* All that the cursor has not read yet, as the one value that it is. */
static struct spoke_value last_field(const struct spoke_cursor *fields)
{
	struct spoke_span rest = spoke_cursor_rest(fields);

	return (struct spoke_value){ rest.data, rest.len };
}

/* Splits a name at its last dot. False: there is no method, or a part is too long. */
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

/* Reads method and params. */
static int read_call(const struct spokei_wire_limits *limits, struct spoke_cursor *fields,
		     struct spokei_message *message)
{
	struct spoke_value field;
	struct spoke_span name;
	struct spoke_cursor params;

	if (!spoke_cursor_next(fields, &field) || spoke_value_str(field, &name) != 0 ||
	    !split_name(limits, name, message))
		return SPOKE_EBADREQUEST;
	if (spoke_cursor_array(last_field(fields), &params) != 0)
		return SPOKE_EBADREQUEST;
	message->args = spoke_cursor_rest(&params);
	message->arg_count = (size_t)params.left;
	return 0;
}

/* Takes from an error, which may be any object, what can be shown of it. */
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
	for (int i = 0; i < 2 && spoke_cursor_next(&parts, &part); i++) {
		if (spoke_value_i32(part, &code) == 0)
			message->error_code = code;
		else if (spoke_value_bytes(part, &text) == 0)
			message->error_text = text;
	}
}

static int read_reply(struct spoke_cursor *fields, struct spokei_message *message)
{
	struct spoke_value error;

	if (!spoke_cursor_next(fields, &error))
		return SPOKE_EBADREPLY;
	if (spoke_value_is_nil(error))
		message->value = last_field(fields);
	else
		read_error(error, message);
	return 0;
}

static int mprpc_read(const struct spokei_wire_limits *limits, struct spoke_span frame,
		      struct spokei_message *ret_message)
{
	struct spoke_value array = { frame.data, frame.len };
	struct spokei_message message = { .codec = SPOKEI_CODEC_MSGPACK };
	struct spoke_cursor fields;
	uint64_t count;
	uint64_t type;
	int result;

	if (spoke_cursor_array(array, &fields) != 0)
		return SPOKE_EPROTOCOL;
	count = fields.left;
	if (!next_u64(&fields, &type) || type > TYPE_NOTIFICATION)
		return SPOKE_EPROTOCOL;
	if (type != TYPE_NOTIFICATION && (!next_u64(&fields, &message.id) || message.id > ID_MAX))
		return SPOKE_EPROTOCOL;
	if (type == TYPE_REPLY) {
		message.kind = SPOKEI_REPLY;
		message.status = STATUS_OK;
		result = count == REPLY_FIELDS ? read_reply(&fields, &message) : SPOKE_EBADREPLY;
	} else {
		message.kind = SPOKEI_REQUEST;
		message.two_way = type == TYPE_REQUEST;
		result = count == (message.two_way ? REQUEST_FIELDS : NOTIFICATION_FIELDS)
				 ? read_call(limits, &fields, &message)
				 : SPOKE_EBADREQUEST;
	}
	*ret_message = message;
	return result;
}

/* --- writing */

/* What would be read as another name, or as none, cannot be said. */
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

/* Packs service and method as one str. */
static void pack_name(struct spoke_builder *builder, struct spoke_span service,
		      struct spoke_span method)
{
	size_t prefix_len = service.len > 0 ? service.len + 1 : 0;
	unsigned char *text = spokei_pack_str_room(builder, prefix_len + method.len);

	if (text == NULL)
		return;
	if (prefix_len > 0) {
		memcpy(text, service.data, service.len);
		text[service.len] = '.';
	}
	memcpy(text + prefix_len, method.data, method.len);
}

static void write_request(const struct spokei_message *message, struct spoke_builder *builder)
{
	spoke_pack_array(builder, message->two_way ? REQUEST_FIELDS : NOTIFICATION_FIELDS);
	spoke_pack_u64(builder, message->two_way ? TYPE_REQUEST : TYPE_NOTIFICATION);
	if (message->two_way)
		spoke_pack_u64(builder, message->id);
	pack_name(builder, message->service, message->method);
	spoke_pack_array(builder, message->arg_count);
	spoke_pack_raw(builder, message->args);
}

static void pack_error(struct spoke_builder *builder, const struct spokei_message *message)
{
	if (message->error_text.len > 0)
		spoke_pack_str(builder, message->error_text.data, message->error_text.len);
	else
		spoke_pack_text(builder, spoke_strerror(message->error));
}

static void write_reply(const struct spokei_message *message, struct spoke_builder *builder)
{
	struct spoke_span value = { message->value.data, message->value.len };

	spoke_pack_array(builder, REPLY_FIELDS);
	spoke_pack_u64(builder, TYPE_REPLY);
	spoke_pack_u64(builder, message->id);
	if (message->error != 0)
		pack_error(builder, message);
	else
		spoke_pack_nil(builder);
	if (message->error != 0 || value.len == 0)
		spoke_pack_nil(builder);
	else
		spoke_pack_raw(builder, value);
}

static int mprpc_write(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	struct spoke_value_limits frame = frame_limits(limits);
	bool is_request = message->kind == SPOKEI_REQUEST;
	bool has_id = !is_request || message->two_way;
	int result = is_request ? check_name(limits, message) : 0;
	struct spoke_builder builder;
	struct spoke_value written;

	if (!is_request && message->kind != SPOKEI_REPLY)
		return SPOKE_EUNSUPPORTED;
	if (has_id && message->id > ID_MAX)
		return SPOKE_EUNSUPPORTED;
	if (result != 0)
		return result;
	spokei_builder_init_buffer(&builder, out, &frame);
	if (is_request)
		write_request(message, &builder);
	else
		write_reply(message, &builder);
	return spoke_builder_finish_value(&builder, &written);
}

const struct spokei_wire spokei_wire_mprpc = {
	.name = "msgpack-rpc",
	.knows = mprpc_knows,
	.cut = mprpc_cut,
	.read = mprpc_read,
	.write = mprpc_write,
};
