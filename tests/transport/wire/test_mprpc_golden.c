/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded traffic of a real Neovim, row by row. Each message is built from typed values, equals
 * the message read from the row, and is written as the row's bytes. Neovim's own errors, an array
 * of a type and a text, are packed by the builder, because spoke writes errors as texts. Invalid
 * requests sent to Neovim get the error that wire/mprpc.h documents.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/stream.h"
#include "transport/wire/mprpc.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The kind of a row. */
enum maker {
	CALL,   /* a request, or a notification if the id is -1 */
	RESULT, /* a reply */
	FAULT,  /* a reply whose error is a text */
	NEOVIM, /* a reply whose error has Neovim's form */
	BAD,    /* invalid; `cut` and `read` are the expected errors */
	CLOSED, /* Neovim closed the connection */
};

struct row {
	const char *sender; /* Neovim's role, and whether it is the sender */
	enum maker maker;
	int64_t id;
	const char *text; /* method name, or error text */
	void (*pack)(struct spoke_builder *values, const struct row *row);
	size_t count; /* number of arguments */
	const char *string;
	int64_t number;
	int cut;
	int read;
};

static void pack_string(struct spoke_builder *values, const struct row *row)
{
	spoke_pack_text(values, row->string);
}

static void pack_number(struct spoke_builder *values, const struct row *row)
{
	spoke_pack_i64(values, row->number);
}

static void pack_nil(struct spoke_builder *values, const struct row *row)
{
	(void)row;
	spoke_pack_nil(values);
}

static void pack_1_2_39(struct spoke_builder *values, const struct row *row)
{
	(void)row;
	spoke_pack_i64(values, 1);
	spoke_pack_i64(values, 2);
	spoke_pack_i64(values, 39);
}

static void pack_map(struct spoke_builder *values, const struct row *row)
{
	(void)row;
	spoke_pack_map(values, 2);
	spoke_pack_text(values, "b");
	spoke_pack_array(values, 3);
	for (int i = 1; i <= 3; i++)
		spoke_pack_i64(values, i);
	spoke_pack_text(values, "a");
	spoke_pack_i64(values, 1);
}

/* {'a':[1,2.5,v:null,v:true],'b':0zDEADBEEF}: Neovim sends a blob as a str. */
static void pack_vim_values(struct spoke_builder *values, const struct row *row)
{
	(void)row;
	spoke_pack_map(values, 2);
	spoke_pack_text(values, "a");
	spoke_pack_array(values, 4);
	spoke_pack_i64(values, 1);
	spoke_pack_double(values, 2.5);
	spoke_pack_nil(values);
	spoke_pack_bool(values, true);
	spoke_pack_text(values, "b");
	spoke_pack_str(values, "\xde\xad\xbe\xef", 4);
}

/* Packs the handle of a buffer. */
static void pack_handle(struct spoke_builder *values, const struct row *row)
{
	(void)row;
	spoke_pack_ext(values, 0, "\x01", 1);
}

#define VIM_VALUES "{'a':[1,2.5,v:null,v:true],'b':0zDEADBEEF}"
#define PAYLOAD                                                                                    \
	"Invalid msgpack payload. This error can also happen when deserializing an object with "   \
	"high level of nesting"
#define REQUEST_SIZE "Request array size must be 4 (request) or 3 (notification)"
#define ARGS(values, of_them) .pack = pack_##values, .count = (of_them)
#define STRING(text) ARGS(string, 1), .string = (text)
#define NUMBER(value) ARGS(number, 1), .number = (value)
#define TO "server to-neovim"
#define FROM "server from-neovim"

static const struct row rows[] = {
	{ "client from-neovim", CALL, 1, "echo", STRING("h\xc3\xa9llo") },
	{ "client to-neovim", RESULT, 1, NULL, STRING("h\xc3\xa9llo") },
	{ "client from-neovim", CALL, 2, "sum", ARGS(1_2_39, 3) },
	{ "client to-neovim", RESULT, 2, NULL, NUMBER(42) },
	{ "client from-neovim", CALL, 3, "echo", NUMBER(4294967296) },
	{ "client to-neovim", RESULT, 3, NULL, NUMBER(4294967296) },
	{ "client from-neovim", CALL, 4, "echo", ARGS(map, 1) },
	{ "client to-neovim", RESULT, 4, NULL, ARGS(map, 1) },
	{ "client from-neovim", CALL, 5, "echo", ARGS(nil, 1) },
	{ "client to-neovim", RESULT, 5, NULL, ARGS(nil, 1) },
	{ "client from-neovim", CALL, 6, "nope", NUMBER(1) },
	{ "client to-neovim", FAULT, 6, "no such method: nope", .count = 0 },
	{ "client from-neovim", CALL, -1, "note", STRING("fire-and-forget") },
	{ "client from-neovim", CALL, 7, "back", .count = 0 },
	{ "client from-neovim", RESULT, 77, NULL, NUMBER(42) },
	{ TO, CALL, 1, "nvim_eval", STRING("1+41") },
	{ FROM, RESULT, 1, NULL, NUMBER(42) },
	{ TO, CALL, 2, "nvim_eval", STRING("nosuch(") },
	{ FROM, NEOVIM, 2, "Vim:E116: Invalid arguments for function nosuch", .count = 0 },
	{ TO, CALL, 3, "no_such_method", .count = 0 },
	{ FROM, NEOVIM, 3, "Invalid method: no_such_method", .count = 0 },
	{ TO, CALL, 4, "nvim_eval", STRING(VIM_VALUES) },
	{ FROM, RESULT, 4, NULL, ARGS(vim_values, 1) },
	{ TO, CALL, 4294967295, "nvim_eval", STRING("repeat('x',10)") },
	{ FROM, RESULT, 4294967295, NULL, STRING("xxxxxxxxxx") },
	{ TO, CALL, 10, "nvim_eval", STRING("g:zz") },
	{ FROM, RESULT, 10, NULL, NUMBER(7) },
	{ TO, CALL, 11, "nvim_get_current_buf", .count = 0 },
	{ FROM, RESULT, 11, NULL, ARGS(handle, 1) },
	{ TO, CALL, 12, "nvim_get_api_info", .count = 0 },
	/* Neovim replies to invalid messages with id 0. */
	{ TO, BAD, .cut = SPOKE_EPROTOCOL },
	{ FROM, NEOVIM, 0, PAYLOAD, .count = 0 },
	{ TO, BAD, .id = 1, .read = SPOKE_EBADREQUEST },
	{ FROM, NEOVIM, 0, REQUEST_SIZE, .number = 1 },
	{ TO, BAD, .cut = SPOKE_EPROTOCOL },
	{ FROM, NEOVIM, 0, "Message is not an array", .number = 1 },
	{ TO, BAD, .read = SPOKE_EPROTOCOL },
	{ FROM, NEOVIM, 0, "Unknown message type", .number = 1 },
	{ TO, RESULT, 4242, NULL, NUMBER(1) },
	{ FROM, CLOSED, .id = 0 },
};

/* Makes the message of a row; its values are packed into `values`. */
static struct spokei_message make_message(const struct row *row, struct spoke_builder *values)
{
	struct spokei_message message = { .codec = 27, .id = row->id < 0 ? 0 : (uint64_t)row->id };
	struct spoke_span text = { row->text, row->text ? strlen(row->text) : 0 };
	struct spoke_span packed;

	if (row->pack)
		row->pack(values, row);
	assert_int_equal(spoke_builder_finish(values, &packed), 0);
	if (row->maker == CALL) {
		message.kind = SPOKEI_REQUEST;
		message.two_way = row->id >= 0;
		message.method = text;
		message.args = packed;
		message.arg_count = row->count;
		return message;
	}
	message.kind = SPOKEI_REPLY;
	message.status = 20;
	if (row->maker == RESULT) {
		message.value = (struct spoke_value){ packed.data, packed.len };
	} else {
		message.error = SPOKE_EREMOTE;
		message.error_text = text;
		message.error_code = (int32_t)row->number;
	}
	return message;
}

/* Packs a reply with an error in Neovim's form. */
static void pack_neovim_error(struct spoke_builder *frame, const struct row *row)
{
	spoke_pack_array(frame, 4);
	spoke_pack_i64(frame, 1);
	spoke_pack_i64(frame, row->id);
	spoke_pack_array(frame, 2);
	spoke_pack_i64(frame, row->number);
	spoke_pack_text(frame, row->text);
	spoke_pack_nil(frame);
}

static void assert_made(const struct row *row, const struct spokei_message *message,
			struct spoke_span bytes)
{
	struct memory memory;
	struct spokei_buffer out;
	struct spoke_builder frame;
	struct spoke_span made;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, 4096);
	spoke_builder_init(&frame, &memory.env, NULL);
	if (row->maker == NEOVIM) {
		pack_neovim_error(&frame, row);
		assert_int_equal(spoke_builder_finish(&frame, &made), 0);
	} else {
		assert_int_equal(spokei_wire_mprpc.write(&stream_limits, message, &out), 0);
		made = spokei_span(spokei_buffer_data(&out), spokei_buffer_len(&out));
	}
	assert_int_equal(made.len, bytes.len);
	assert_memory_equal(made.data, bytes.data, made.len);
	spoke_builder_fini(&frame);
	spokei_buffer_fini(&out);
	assert_int_equal(memory.bytes, 0);
}

static void assert_row(const struct row *row, const char *hex)
{
	unsigned char bytes[512];
	unsigned char packed[512];
	struct stream stream = { &spokei_wire_mprpc,
				 &stream_limits,
				 { bytes, hex_bytes(hex, bytes, sizeof(bytes)) } };
	struct spoke_builder values;
	struct spokei_message message;
	struct stream_event event;

	assert_int_equal(stream_whole(&stream, &event, 1), 1);
	assert_int_equal(event.cut, row->cut);
	if (event.cut != 0)
		return;
	assert_int_equal(event.len, stream.bytes.len);
	assert_int_equal(event.read, row->read);
	if (row->maker == BAD) {
		assert_int_equal(event.message.id, row->id);
		return;
	}
	spoke_builder_init_fixed(&values, packed, sizeof(packed), NULL);
	message = make_message(row, &values);
	if (messages_differ(&event.message, &message))
		fail_msg("%s: %s", hex, messages_differ(&event.message, &message));
	assert_made(row, &message, stream.bytes);
}

TEST(neovim_messages_are_read_and_rewritten)
{
	FILE *file = fopen(SPOKE_GOLDEN "/msgpack-rpc.tsv", "r");
	char line[1024];
	size_t count = 0;

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file)); /* the header */
	while (fgets(line, sizeof(line), file)) {
		const struct row *row = &rows[count];
		char *hex = strrchr(line, '\t');

		assert_true(count++ < COUNT(rows) && hex);
		*hex++ = '\0';
		hex[strcspn(hex, "\n")] = '\0';
		*strchr(line, '\t') = ' ';
		assert_string_equal(line, row->sender);
		if (row->maker == CLOSED)
			assert_string_equal(hex, "EOF");
		else
			assert_row(row, hex);
	}
	assert_int_equal(count, COUNT(rows));
	assert_int_equal(fclose(file), 0);
}
