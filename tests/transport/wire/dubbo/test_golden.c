/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that real Dubbo peers have sent. Each kind is built from typed values. Every msgpack frame
 * must equal one of them byte by byte, with its id, and be read as the values it was built from. Of
 * Hessian 2 frames, heads and events are read.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_shapes.h"
#include "tests/transport/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 8192
#define COLUMNS 8
#define SERVICE "spoke.interop.EchoService"

static const struct spokei_wire_limits limits = {
	.frame_max = 8388608,
	.name_max = 1024,
	.event_max = 64,
	.value = { .cycles = true },
};

/* --- a message of a shape */

/* A message and the memory to which it points. */
struct built {
	struct spokei_message message;
	struct spoke_builder builders[3];
	struct memory memory;
	char text[400];
};

static struct spoke_span build(struct built *built, unsigned which, pack_fn *pack)
{
	struct spoke_builder *builder = &built->builders[which];
	struct spoke_span span;

	spoke_builder_init(builder, &built->memory.env, NULL);
	if (pack)
		pack(builder);
	assert_int_equal(spoke_builder_finish(builder, &span), 0);
	return span;
}

static void pack_pair(struct spoke_builder *to, const char *key, const char *value)
{
	spoke_pack_text(to, key);
	spoke_pack_text(to, value);
}

/* Packs the attachments in the order of Java's map. */
static struct spoke_span build_attachments(struct built *built, const struct shape *shape)
{
	struct spoke_builder *to = &built->builders[1];
	struct spoke_span span;

	spoke_builder_init(to, &built->memory.env, NULL);
	spoke_pack_map(to, shape->from == FIRST_K1 ? 5 : 4);
	pack_pair(to, "path", SERVICE);
	pack_pair(to, "remote.application",
		  shape->from == CONSUMER_2 ? "interop-consumer2" : "interop-consumer");
	if (shape->from == FIRST_K1)
		pack_pair(to, "k1", "v1");
	pack_pair(to, "interface", SERVICE);
	pack_pair(to, "version", shape->version ? shape->version : "0.0.0");
	assert_int_equal(spoke_builder_finish(to, &span), 0);
	return span;
}

static struct spoke_value as_value(struct spoke_span span)
{
	return (struct spoke_value){ span.data, span.len };
}

static void build_request(struct built *built, const struct shape *shape)
{
	struct spokei_message *message = &built->message;

	message->two_way = !shape->one_way;
	message->service = span_of(SERVICE);
	message->method = span_of(shape->method);
	message->types = span_of(shape->types);
	message->version = span_of(shape->version ? shape->version : "");
	message->group = span_of(shape->group ? shape->group : "");
	message->args = build(built, 0, shape->pack);
	message->arg_count = shape->arg_count;
	message->attachments = as_value(build_attachments(built, shape));
	message->generic = shape->type_names != NULL;
	message->type_names = as_value(build(built, 2, shape->type_names));
}

#define REFUSAL                                                                                    \
	"Server side(127.0.0.1,20880) thread pool is exhausted, detail msg:Thread pool is "        \
	"EXHAUSTED! Thread Name: DubboServerHandler-loop:20880, Pool Size: 1 (active: 1, "         \
	"core: 1, max: 1, largest: 1), Task: %u (completed: %u), Executor "                        \
	"status:(isShutdown:false, isTerminated:false, isTerminating:false), in "                  \
	"dubbo://127.0.0.1:20880!"

static void build_reply(struct built *built, const struct shape *shape)
{
	struct spokei_message *message = &built->message;

	message->value = as_value(build(built, 0, shape->pack));
	if (shape->error_class) {
		message->error = SPOKE_EREMOTE;
		message->error_class = span_of(shape->error_class);
	}
	if (shape->completed) {
		(void)snprintf(built->text, sizeof(built->text), REFUSAL, shape->completed + 1,
			       shape->completed);
		message->error = SPOKE_EREFUSED;
		message->error_text = span_of(built->text);
	}
}

static void build_shape(struct built *built, const struct shape *shape, uint64_t id)
{
	memset(built, 0, sizeof(*built));
	memory_init(&built->memory);
	built->message.kind = shape->kind;
	built->message.codec = 27;
	built->message.id = id;
	built->message.two_way = shape->kind == SPOKEI_PROBE;
	if (shape->kind == SPOKEI_REQUEST)
		build_request(built, shape);
	else if (shape->kind == SPOKEI_REPLY)
		build_reply(built, shape);
}

static void drop_shape(struct built *built)
{
	for (unsigned i = 0; i < LENGTH(built->builders); i++)
		spoke_builder_fini(&built->builders[i]);
	assert_int_equal(built->memory.bytes, 0);
}

/* --- the frames */

struct golden {
	unsigned flags;
	unsigned status;
	uint64_t id;
	unsigned char bytes[LINE_MAX_BYTES / 2];
	size_t len;
};

static unsigned hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	assert_non_null(at);
	return (unsigned)(at - digits);
}

/* Reads the next line: capture, number, direction, flags, status, id, length of the body, bytes. */
static bool next_golden(FILE *file, struct golden *ret)
{
	char line[LINE_MAX_BYTES];
	char *column[COLUMNS];

	if (fgets(line, sizeof(line), file) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	column[0] = line;
	for (unsigned i = 1; i < COLUMNS; i++) {
		column[i] = strchr(column[i - 1], '\t');
		assert_non_null(column[i]);
		*column[i]++ = '\0';
	}
	ret->flags = (unsigned)strtoul(column[3], NULL, 16);
	ret->status = (unsigned)strtoul(column[4], NULL, 10);
	ret->id = strtoull(column[5], NULL, 10);
	ret->len = 0;
	for (const char *hex = column[7]; *hex; hex += 2)
		ret->bytes[ret->len++] = (unsigned char)(hex_digit(hex[0]) << 4 |
							 hex_digit(hex[1]));
	return true;
}

static FILE *open_golden(void)
{
	char line[LINE_MAX_BYTES];
	FILE *file = fopen(SPOKE_GOLDEN "/dubbo-frames.tsv", "r");

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	return file;
}

static void read_golden(const struct golden *golden, struct spokei_buffer *scratch,
			struct spokei_message *ret)
{
	struct spoke_span frame = spokei_span(golden->bytes, golden->len);
	struct spokei_cut cut = { 0 };
	size_t len;

	assert_int_equal(wire_cut(&spokei_wire_dubbo, &limits, &cut, frame, &len), 0);
	assert_int_equal(len, golden->len);
	assert_int_equal(wire_read(&spokei_wire_dubbo, &limits, NULL, frame, scratch, ret), 0);
	assert_true(ret->id == golden->id);
	assert_int_equal(ret->codec, golden->flags & 31);
	assert_int_equal(ret->status, golden->status);
}

static bool produces(const struct built *built, const struct golden *golden)
{
	struct spokei_buffer buffer;
	struct memory memory;
	bool same;

	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 65536);
	assert_int_equal(spokei_wire_dubbo.write(&limits, &built->message, &buffer), 0);
	same = spokei_buffer_len(&buffer) == golden->len &&
	       memcmp(spokei_buffer_data(&buffer), golden->bytes, golden->len) == 0;
	spokei_buffer_fini(&buffer);
	return same;
}

static void same_span(struct spoke_span a, struct spoke_span b)
{
	is_bytes(a, b.data, b.len);
}

static void same_value(struct spoke_value a, struct spoke_value b)
{
	if (b.len == 0 || spoke_value_is_nil(b))
		assert_true(a.len == 0 || spoke_value_is_nil(a));
	else
		is_bytes(spokei_span(a.data, a.len), b.data, b.len);
}

/* Asserts that the attachments begin with those of the shape. The wire adds its own after them. */
static void attachments_begin_with(struct spoke_value read, struct spoke_value made)
{
	struct spoke_cursor all;
	struct spoke_cursor first;
	struct spoke_value left;
	struct spoke_value right;

	if (made.len == 0)
		return;
	assert_int_equal(spoke_cursor_map(read, &all), 0);
	assert_int_equal(spoke_cursor_map(made, &first), 0);
	while (spoke_cursor_next(&first, &right)) {
		assert_true(spoke_cursor_next(&all, &left));
		assert_true(spoke_value_equal(left, right));
	}
}

static void is_understood(const struct golden *golden, const struct spokei_message *made)
{
	struct spokei_message read;
	struct spoke_value field;
	struct spoke_span said;

	read_golden(golden, NULL, &read);
	assert_int_equal(read.kind, made->kind);
	assert_int_equal(read.two_way, made->two_way);
	assert_int_equal(read.error, made->error);
	assert_int_equal(read.generic, made->generic);
	assert_int_equal(read.arg_count, made->arg_count);
	assert_false(read.bare);
	same_span(read.service, made->service);
	same_span(read.version, made->version);
	same_span(read.group, made->group);
	same_span(read.method, made->method);
	same_span(read.types, made->types);
	same_span(read.args, made->args);
	same_span(read.error_class, made->error_class);
	same_value(read.type_names, made->type_names);
	same_value(read.value, made->value);
	attachments_begin_with(read.attachments, made->attachments);
	if (made->error == SPOKE_EREMOTE) {
		assert_int_equal(spoke_value_get(made->value, "message", &field), 0);
		assert_int_equal(spoke_value_str(field, &said), 0);
		same_span(read.error_text, said);
	} else {
		same_span(read.error_text, made->error_text);
	}
}

/* Returns the shape that produces the frame. */
static size_t find_shape(const struct golden *golden)
{
	size_t found = SHAPES;

	for (size_t i = 0; i < SHAPES; i++) {
		struct built built;

		build_shape(&built, &shapes[i], golden->id);
		if (produces(&built, golden)) {
			assert_int_equal(found, SHAPES);
			found = i;
			is_understood(golden, &built.message);
		}
		drop_shape(&built);
	}
	return found;
}

TEST(golden_msgpack_frames_are_written_and_read)
{
	unsigned uses[SHAPES] = { 0 };
	FILE *file = open_golden();
	struct golden golden;
	unsigned frames = 0;

	while (next_golden(file, &golden)) {
		size_t shape;

		if ((golden.flags & 31) != 27)
			continue;
		shape = find_shape(&golden);
		assert_true(shape < SHAPES);
		uses[shape]++;
		frames++;
	}
	(void)fclose(file);
	assert_int_equal(frames, 131);
	for (size_t i = 0; i < SHAPES; i++)
		assert_int_equal(uses[i], shapes[i].uses);
}

TEST(golden_hessian2_frames_are_read)
{
	static const struct {
		unsigned flags;
		enum spokei_kind kind;
		unsigned frames;
	} rows[] = {
		{ 0x02, SPOKEI_REPLY, 37 },   { 0x22, SPOKEI_PROBE_ANSWER, 5 },
		{ 0x82, SPOKEI_REQUEST, 1 },  { 0xa2, SPOKEI_READONLY, 1 },
		{ 0xc2, SPOKEI_REQUEST, 41 }, { 0xe2, SPOKEI_PROBE, 5 },
	};
	unsigned frames[LENGTH(rows)] = { 0 };
	FILE *file = open_golden();
	struct golden golden;
	struct memory memory;
	struct spokei_buffer scratch;

	memory_init(&memory);
	while (next_golden(file, &golden)) {
		for (size_t i = 0; i < LENGTH(rows); i++) {
			struct spokei_message message;

			if (golden.flags != rows[i].flags)
				continue;
			/* The status of an error counts without its text. */
			spokei_buffer_init(&scratch, &memory.env, 65536);
			read_golden(&golden, &scratch, &message);
			assert_int_equal(message.kind, rows[i].kind);
			assert_int_equal(message.two_way, (golden.flags & 0x40) != 0);
			spokei_buffer_fini(&scratch);
			frames[i]++;
		}
	}
	(void)fclose(file);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(frames[i], rows[i].frames);
}
