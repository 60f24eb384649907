/* SPDX-License-Identifier: Apache-2.0 */
/* Writes messages of MessagePack-RPC. Failed and unsupported messages leave nothing behind. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/stream.h"
#include "transport/wire/mprpc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SPAN(text)                                                                                 \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}
#define VALUE(text)                                                                                \
	{                                                                                          \
		(const unsigned char *)(text), sizeof(text) - 1                                    \
	}
#define ARGS(count, text) .args = SPAN(text), .arg_count = (count)
#define CALL(number, name)                                                                         \
	.kind = SPOKEI_REQUEST, .two_way = true, .id = (number), .method = SPAN(name)

struct bed {
	struct memory memory;
	struct spokei_buffer out;
	struct spokei_wire_limits limits;
};

/* Prepares a buffer that already contains bytes, which each test must keep. */
static int set_up(void **state)
{
	static struct bed bed;

	memory_init(&bed.memory);
	spokei_buffer_init(&bed.out, &bed.memory.env, 1u << 24);
	bed.limits = stream_limits;
	assert_int_equal(spokei_buffer_append(&bed.out, "\xff\xff\xff", 3), 0);
	*state = &bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	spokei_buffer_fini(&bed->out);
	assert_int_equal(bed->memory.bytes, 0);
	return 0;
}

FIXTURE(set_up, tear_down);

static int put(struct bed *bed, const struct spokei_message *message)
{
	return spokei_wire_mprpc.write(&bed->limits, message, &bed->out);
}

/* Returns the bytes written after the first three. */
static struct spoke_span written(const struct bed *bed)
{
	size_t len = spokei_buffer_len(&bed->out);
	const unsigned char *bytes = spokei_buffer_data(&bed->out);

	assert_true(len >= 3);
	assert_memory_equal(bytes, "\xff\xff\xff", 3);
	return spokei_span(bytes + 3, len - 3);
}

static void assert_written(const struct bed *bed, const char *hex)
{
	unsigned char bytes[256];
	char expected[512];
	char text[512];

	hex_text(spokei_span(bytes, hex_bytes(hex, bytes, sizeof(bytes))), expected,
		 sizeof(expected));
	hex_text(written(bed), text, sizeof(text));
	assert_string_equal(text, expected);
}

TEST(messages_use_shortest_encoding)
{
	static const struct {
		struct spokei_message message;
		const char *hex;
	} cases[] = {
		{ { CALL(0, "a") }, "94 00 00 a161 90" },
		{ { CALL(1, "a"), ARGS(2, "\x01\xa1x") }, "94 00 01 a161 92 01 a178" },
		{ { CALL(255, "a"), .service = SPAN("s") }, "94 00 ccff a3 732e61 90" },
		{ { CALL(UINT32_MAX, "m"), .service = SPAN("a.b") },
		  "94 00 ceffffffff a5 612e622e6d 90" },
		{ { CALL(1, "a.b") }, "94 00 01 a3 612e62 90" },
		{ { CALL(1, "a\0b\xff") }, "94 00 01 a4 610062ff 90" },
		{ { .kind = SPOKEI_REQUEST,
		    .id = UINT64_MAX,
		    .method = SPAN("n"),
		    ARGS(1, "\xc0") },
		  "93 02 a16e 91 c0" },
		{ { .kind = SPOKEI_REPLY, .id = 1, .value = VALUE("\x2a") }, "94 01 01 c0 2a" },
		{ { .kind = SPOKEI_REPLY, .id = 1 }, "94 01 01 c0 c0" },
		{ { .kind = SPOKEI_REPLY, .id = UINT32_MAX, .value = VALUE("\x92\x01\x02") },
		  "94 01 ceffffffff c0 92 01 02" },
		{ { .kind = SPOKEI_REPLY,
		    .id = 2,
		    .error = SPOKE_EREMOTE,
		    .error_code = 5,
		    .value = VALUE("\x2a"),
		    .error_text = SPAN("bad\xff") },
		  "94 01 02 a4 626164ff c0" },
		/* "the deadline had passed when the provider received the call" */
		{ { .kind = SPOKEI_REPLY, .id = 2, .error = SPOKE_EEXPIRED },
		  "94 01 02 d93b "
		  "74686520646561646c696e652068616420706173736564207768656e207468652070"
		  "726f76696465722072656365697665642074686520 63616c6c c0" },
		/* Fields without a representation are left out. */
		{ { CALL(1, "a"), .version = SPAN("1.0"), .group = SPAN("g"), .types = SPAN("I"),
		    .attachments = VALUE("\x81\xa1k\xa1v") },
		  "94 00 01 a161 90" },
	};
	struct bed *bed = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(put(bed, &cases[i].message), 0);
		assert_written(bed, cases[i].hex);
		spokei_buffer_truncate(&bed->out, 3);
	}
}

TEST(frames_are_appended_in_order)
{
	struct bed *bed = *state;
	struct spokei_message call = { CALL(1, "a") };
	struct spokei_message reply = { .kind = SPOKEI_REPLY, .id = 2 };

	assert_int_equal(put(bed, &call), 0);
	assert_int_equal(put(bed, &reply), 0);
	assert_int_equal(put(bed, &call), 0);
	assert_written(bed, "94 00 01 a161 90 94 01 02 c0 c0 94 00 01 a161 90");
}

TEST(unsupported_message_is_refused_without_output)
{
	static const struct {
		struct spokei_message message;
		int result;
	} cases[] = {
		{ { .kind = SPOKEI_PROBE }, SPOKE_EUNSUPPORTED },
		{ { .kind = SPOKEI_PROBE_ANSWER }, SPOKE_EUNSUPPORTED },
		{ { .kind = SPOKEI_READONLY }, SPOKE_EUNSUPPORTED },
		{ { .kind = SPOKEI_EVENT }, SPOKE_EUNSUPPORTED },
		{ { CALL(UINT32_MAX + UINT64_C(1), "a") }, SPOKE_EUNSUPPORTED },
		{ { .kind = SPOKEI_REPLY, .id = UINT64_MAX }, SPOKE_EUNSUPPORTED },
		{ { CALL(1, "") }, SPOKE_EUNSUPPORTED },
		{ { CALL(1, ""), .service = SPAN("s") }, SPOKE_EUNSUPPORTED },
		{ { CALL(1, "a.b"), .service = SPAN("s") }, SPOKE_EUNSUPPORTED },
		{ { CALL(1, "a.") }, SPOKE_EUNSUPPORTED },
		/* Values that do not match their count or their bytes. */
		{ { CALL(1, "a"), ARGS(2, "\x01") }, SPOKE_ETRUNCATED },
		{ { CALL(1, "a"), ARGS(1, "\x01\x02") }, SPOKE_ETRAILING },
		{ { CALL(1, "a"), ARGS(0, "\x01") }, SPOKE_ETRAILING },
		{ { CALL(1, "a"), ARGS(1, "\xc1") }, SPOKE_ECORRUPT },
		{ { CALL(1, "a"), ARGS(1, "\x92\x01") }, SPOKE_ETRUNCATED },
		{ { CALL(1, "a"), .arg_count = SPOKE_VALUE_ITEMS_MAX }, SPOKE_ETOOLARGE },
		{ { .kind = SPOKEI_REPLY, .value = VALUE("\x01\x02") }, SPOKE_ETRAILING },
	};
	struct bed *bed = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(put(bed, &cases[i].message), cases[i].result);
		assert_int_equal(written(bed).len, 0);
	}
}

/* Fills in `depth` nested arrays; the innermost is empty. */
static struct spokei_message deep_reply(unsigned char bytes[SPOKEI_VALIDATOR_KEPT_DEPTH],
					size_t depth)
{
	memset(bytes, 0x91, depth - 1);
	bytes[depth - 1] = 0x90;
	return (struct spokei_message){ .kind = SPOKEI_REPLY, .value = { bytes, depth } };
}

TEST(unreadable_message_is_not_written)
{
	struct bed *bed = *state;
	unsigned char bytes[SPOKEI_VALIDATOR_KEPT_DEPTH];
	struct spokei_message message = deep_reply(bytes, SPOKEI_VALIDATOR_KEPT_DEPTH - 1);

	assert_int_equal(put(bed, &message), 0);
	spokei_buffer_truncate(&bed->out, 3);
	message = deep_reply(bytes, SPOKEI_VALIDATOR_KEPT_DEPTH);
	assert_int_equal(put(bed, &message), SPOKE_EDEPTH);
	assert_int_equal(written(bed).len, 0);

	message = (struct spokei_message){ CALL(1, "a"), ARGS(3, "\x01\x02\x03") };
	bed->limits.value.items_max = 8;
	assert_int_equal(put(bed, &message), 0);
	spokei_buffer_truncate(&bed->out, 3);
	bed->limits.value.items_max = 7;
	assert_int_equal(put(bed, &message), SPOKE_ETOOLARGE);
	assert_int_equal(written(bed).len, 0);
}

TEST(limits_of_names_frames_and_buffers_are_exact)
{
	struct bed *bed = *state;
	struct spokei_message call = { CALL(1, "method"), .service = SPAN("service") };

	bed->limits.name_max = 7;
	assert_int_equal(put(bed, &call), 0); /* 19 bytes */
	bed->limits.name_max = 6;
	assert_int_equal(put(bed, &call), SPOKE_ETOOLARGE);
	bed->limits.name_max = 5;
	call.service.len = 0;
	assert_int_equal(put(bed, &call), SPOKE_ETOOLARGE);
	assert_int_equal(written(bed).len, 19);
	call.service.len = 7;
	bed->limits.name_max = 1024;

	bed->limits.frame_max = 19;
	assert_int_equal(put(bed, &call), 0);
	bed->limits.frame_max = 18;
	assert_int_equal(put(bed, &call), SPOKE_ETOOLARGE);
	assert_int_equal(written(bed).len, 2 * 19);

	bed->limits.frame_max = 1024;
	bed->out.max = 3 + 3 * 19;
	assert_int_equal(put(bed, &call), 0);
	assert_int_equal(put(bed, &call), SPOKE_ETOOLARGE);
	assert_int_equal(written(bed).len, 3 * 19);
}

TEST(write_recovers_after_enomem)
{
	static unsigned char large[70000];
	struct bed *bed = *state;
	struct spokei_message call = { CALL(1, "a"), .arg_count = 1 };
	unsigned fail_at = 0;
	int result;

	assert_int_equal(hex_bytes("c600011168", large, sizeof(large)), 5);
	call.args = spokei_span(large, 5 + 0x11168);
	assert_true(call.args.len <= sizeof(large));
	do {
		bed->memory.asked = 0;
		bed->memory.fail_at = ++fail_at;
		result = put(bed, &call);
		if (result != 0) {
			assert_int_equal(result, SPOKE_ENOMEM);
			assert_int_equal(written(bed).len, 0);
		}
	} while (result != 0);
	assert_true(fail_at > 1);
	assert_int_equal(written(bed).len, call.args.len + 6);
}
