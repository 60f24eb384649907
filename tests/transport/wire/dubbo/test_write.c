/* SPDX-License-Identifier: Apache-2.0 */
/* Writes requests of the Dubbo wire. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "transport/wire/dubbo/write.h"

#include "tests/core/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct spokei_message echo_message(const char *args, size_t len, size_t count)
{
	return (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.id = 7,
		.two_way = true,
		.codec = 27,
		.service = span_of("demo.Echo"),
		.method = span_of("echo"),
		.args = spokei_span(args, len),
		.arg_count = count,
	};
}

static const struct {
	const char *value;
	size_t len;
	const char *type;
} derived[] = {
	{ "\xc0", 1, "Ljava/lang/Object;" },
	{ "\xc3", 1, "Z" },
	{ "\x01", 1, "I" },
	{ "\xff", 1, "I" },
	{ "\xce\x7f\xff\xff\xff", 5, "I" },
	{ "\xce\x80\x00\x00\x00", 5, "J" },
	{ "\xd2\x80\x00\x00\x00", 5, "I" },
	{ "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", 9, "J" },
	{ "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9, "J" },
	{ "\xd3\x00\x00\x00\x00\x00\x00\x00\x01", 9, "J" },
	{ "\xcf\x00\x00\x00\x00\x00\x00\x00\x01", 9, "J" },
	{ "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, "Ljava/math/BigInteger;" },
	{ "\xca\x00\x00\x00\x00", 5, "F" },
	{ "\xcb\x00\x00\x00\x00\x00\x00\x00\x00", 9, "D" },
	{ "\xa1x", 2, "Ljava/lang/String;" },
	{ "\xc4\x00", 2, "[B" },
	{ "\x90", 1, "Ljava/util/List;" },
	{ "\x80", 1, "Ljava/util/Map;" },
	{ "\xd4\x01\x00", 3, "Ljava/lang/Object;" },
	{ "\xd6\xff\x00\x00\x00\x01", 6, "Ljava/util/Date;" },
	{ "\x82\xa1x\x01\xa5"
	  "class\xa8it.Point",
	  19, "Lit/Point;" },
	{ "\x81\xa5"
	  "class\xb4java.math.BigDecimal",
	  28, "Ljava/math/BigDecimal;" },
	{ "\x81\xa5"
	  "class\xa5Point",
	  13, "Ljava/util/Map;" },
};

/* Objects as a codec reads them: the class is any text of the peer. */
TEST(only_java_names_are_derived_as_classes)
{
	static const struct {
		const char *class;
		const char *type;
	} rows[] = {
		{ "Point", "LPoint;" },
		{ "it.Out$In_2", "Lit/Out$In_2;" },
		{ "it.\xc3\xa9", "Lit/\xc3\xa9;" },
		{ "", "Ljava/util/Map;" },
		{ ".", "Ljava/util/Map;" },
		{ "it.", "Ljava/util/Map;" },
		{ ".Point", "Ljava/util/Map;" },
		{ "it..Point", "Ljava/util/Map;" },
		{ "it.2", "Ljava/util/Map;" },
		{ "it.A;I", "Ljava/util/Map;" },
		{ "it/A", "Ljava/util/Map;" },
		{ "[I", "Ljava/util/Map;" },
		{ "it.A(", "Ljava/util/Map;" },
		{ "it A", "Ljava/util/Map;" },
	};
	struct spokei_message message;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t len = strlen(rows[i].class);
		char args[64] = "\xde\0\1\xa5"
				"class";
		struct spokei_message sent = echo_message(args, 10 + len, 1);

		args[9] = (char)(0xa0 | len);
		memcpy(args + 10, rows[i].class, len);
		assert_int_equal(write_frame(&sent, &frame), 0);
		assert_int_equal(read_frame(&frame, &message), 0);
		is_text(message.types, rows[i].type);
	}
}

TEST(missing_types_are_derived_from_values)
{
	char all_args[400];
	char all_types[600];
	size_t all_len = 0;
	size_t types_len = 0;
	struct spokei_message message;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(derived); i++) {
		struct spokei_message sent = echo_message(derived[i].value, derived[i].len, 1);

		assert_int_equal(write_frame(&sent, &frame), 0);
		assert_int_equal(read_frame(&frame, &message), 0);
		is_text(message.types, derived[i].type);
		memcpy(all_args + all_len, derived[i].value, derived[i].len);
		all_len += derived[i].len;
		memcpy(all_types + types_len, derived[i].type, strlen(derived[i].type));
		types_len += strlen(derived[i].type);
	}
	/* Together the types are longer than a name may be, which only limits readers. */
	message = echo_message(all_args, all_len, LENGTH(derived));
	assert_int_equal(write_frame(&message, &frame), 0);
	assert_memory_equal(frame.bytes + HEAD + 6 + 10 + 6 + 5, "\xd9", 1);
	assert_memory_equal(frame.bytes + HEAD + 6 + 10 + 6 + 5 + 2, all_types, types_len);
	message.types = span_of("J");
	assert_int_equal(write_frame(&message, &frame), 0);
	assert_memory_equal(frame.bytes + HEAD + 6 + 10 + 6 + 5, "\xa1J", 2);
}

TEST(object_gives_its_class_among_other_types)
{
	static const char args[] = "\x01\x81\xa5"
				   "class\xa8it.Point\xa1x";
	struct spokei_message sent = echo_message(args, sizeof(args) - 1, 3);
	struct spokei_message message;
	struct frame frame;

	assert_int_equal(write_frame(&sent, &frame), 0);
	assert_int_equal(read_frame(&frame, &message), 0);
	is_text(message.types, "ILit/Point;Ljava/lang/String;");
}

TEST(only_attachments_with_content_are_added)
{
	struct spokei_message message = echo_message("", 0, 0);

	WRITES(&message, 0xdb, 0, NAMED("\xa0") "\x80");
	message.group = span_of("g");
	message.timeout_ms = 1500;
	WRITES(&message, 0xdb, 0, NAMED("\xa0") "\x82\xa5group\xa1g\xa7timeout\2441500");
	message.attachments = VALUE("\x81\xa1k\x01");
	WRITES(&message, 0xdb, 0, NAMED("\xa0") "\x83\xa1k\x01\xa5group\xa1g\xa7timeout\2441500");
	message.attachments = VALUE("\x82\xa5group\xa1h\xa3_TO\x01");
	WRITES(&message, 0xdb, 0, NAMED("\xa0") "\x82\xa5group\xa1h\xa3_TO\x01");
	message.attachments = VALUE("\xc0");
	message.timeout_ms = INT64_MAX;
	message.group.len = 0;
	message.version = span_of("1.0");
	WRITES(&message, 0xdb, 0,
	       "\2452.0.2\251demo.Echo\2431.0\244echo\xa0\x81\xa7timeout\2639223372036854775807");
}

TEST(too_many_attachments_are_not_sent)
{
	struct spokei_message message;
	struct frame frame;

	assert_int_equal(read_attached(256, false, &message), 0);
	message.timeout_ms = 0;
	assert_int_equal(write_frame(&message, &frame), 0);
	message.timeout_ms = 1;
	assert_int_equal(write_frame(&message, &frame), SPOKE_ETOOLARGE);
	message.attachments = VALUE("\x01");
	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
}

TEST(frame_may_have_exactly_frame_max)
{
	static char bytes[FRAME_MAX];
	const size_t around = HEAD + sizeof(NAMED("\xa1?") "\x80") - 1;
	struct spokei_message message = echo_message(bytes, FRAME_MAX - around, 1);
	struct frame frame;

	bytes[0] = (char)0xc5;
	bytes[1] = (char)((message.args.len - 3) >> 8);
	bytes[2] = (char)(message.args.len - 3);
	message.types = span_of("?");
	assert_int_equal(write_frame(&message, &frame), 0);
	assert_int_equal(frame.len, FRAME_MAX);
	message.types = span_of("??");
	assert_int_equal(write_frame(&message, &frame), SPOKE_ETOOLARGE);
	message.args.len = SIZE_MAX / 2;
	assert_int_equal(write_frame(&message, &frame), SPOKE_ETOOLARGE);
}

TEST(failed_write_appends_nothing)
{
	struct spokei_message message = echo_message("\x01", 1, 1);
	struct spokei_buffer buffer;
	struct memory memory;

	memory_init(&memory);
	memory.fail_at = 1;
	spokei_buffer_init(&buffer, &memory.env, 4096);
	assert_int_equal(spokei_wire_dubbo.write(&frame_limits, &message, &buffer), SPOKE_ENOMEM);
	assert_int_equal(spokei_buffer_len(&buffer), 0);
	spokei_buffer_init(&buffer, &memory.env, 20);
	assert_int_equal(spokei_wire_dubbo.write(&frame_limits, &message, &buffer),
			 SPOKE_ETOOLARGE);
	assert_int_equal(spokei_buffer_len(&buffer), 0);
	spokei_buffer_fini(&buffer);
}

/* Numbers of each length, with zeros in each group of digits. */
TEST(digits_of_a_time_are_those_of_its_number)
{
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.codec = 27,
		.service = span_of("s"),
		.method = span_of("m"),
	};

	for (int64_t unit = 1; unit <= INT64_MAX / 10; unit *= 10) {
		const int64_t numbers[] = { unit, unit + unit / 10, 9 * unit, 10 * unit - 1 };

		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			struct spokei_buffer buffer;
			struct memory memory;
			char text[32];
			size_t len;

			memory_init(&memory);
			spokei_buffer_init(&buffer, &memory.env, 4096);
			message.timeout_ms = numbers[i];
			assert_int_equal(spokei_wire_dubbo.write(&frame_limits, &message, &buffer),
					 0);
			len = (size_t)snprintf(text, sizeof(text), "%" PRId64, numbers[i]);
			assert_memory_equal(spokei_buffer_data(&buffer) +
						    spokei_buffer_len(&buffer) - len,
					    text, len);
			assert_int_equal(*(spokei_buffer_data(&buffer) +
					   spokei_buffer_len(&buffer) - len - 1),
					 0xa0 | len);
			spokei_buffer_fini(&buffer);
		}
	}
}
