/* SPDX-License-Identifier: Apache-2.0 */
/* The Dubbo wire as a whole: headers, events, and serializations without a codec. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* --- headers */

static bool status_is_known(unsigned status)
{
	static const unsigned char known[] = { 20, 25, 30, 31, 35, 40, 50, 60, 70, 80, 90, 100 };

	return memchr(known, (int)status, sizeof(known)) != NULL;
}

/* Returns whether a peer may send it; independent of the code under test. */
static bool is_possible(unsigned flags, unsigned status)
{
	bool request = flags & 0x80;
	bool two_way = flags & 0x40;

	if (request)
		return status == 0;
	return !two_way && status_is_known(status);
}

TEST(flag_and_status_are_valid_or_break_stream)
{
	unsigned valid = 0;

	for (unsigned both = 0; both < 0x10000; both++) {
		unsigned flags = both >> 8;
		unsigned status = both & 0xff;
		bool possible = is_possible(flags, status);
		struct spokei_message message;
		struct frame frame;
		size_t len;

		frame_init(&frame, flags, status, "\xc0", 1);
		valid += possible;
		assert_int_equal(cut_bytes(frame.bytes, frame.len, &len),
				 possible ? 0 : SPOKE_EPROTOCOL);
		if (!possible)
			continue; /* read() is called only after cut() */
		(void)read_frame(&frame, &message);
		assert_int_equal(message.id, 7);
		assert_int_equal(message.codec, flags & 31);
		assert_int_equal(message.two_way, (flags & 0x40) != 0);
		assert_int_equal(message.status, status);
	}
	assert_int_equal(valid, 128 + 64 * 12);
}

TEST(upper_flags_determine_kind)
{
	static const struct {
		unsigned flags;
		unsigned status;
		enum spokei_kind kind;
		bool two_way;
	} rows[] = {
		{ 0x00, 20, SPOKEI_REPLY, false },  { 0x20, 20, SPOKEI_PROBE_ANSWER, false },
		{ 0x80, 0, SPOKEI_REQUEST, false }, { 0xa0, 0, SPOKEI_EVENT, false },
		{ 0xc0, 0, SPOKEI_REQUEST, true },  { 0xe0, 0, SPOKEI_PROBE, true },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		(void)READ(rows[i].flags | 27, rows[i].status, "\xc0", &message);
		assert_int_equal(message.kind, rows[i].kind);
		assert_int_equal(message.two_way, rows[i].two_way);
	}
}

TEST(id_uses_all_bits_both_ways)
{
	static const unsigned char id[] = { 0xf2, 0xb1, 0x66, 0x6c, 0x4a, 0x37, 0x44, 0xf8 };
	struct spokei_message message;
	struct frame frame;
	struct frame back;

	frame_init(&frame, 0xfb, 0, "\xc0", 1);
	memcpy(frame.bytes + 4, id, sizeof(id));
	assert_int_equal(read_frame(&frame, &message), 0);
	assert_true(message.id == UINT64_C(0xf2b1666c4a3744f8));
	assert_int_equal(write_frame(&message, &back), 0);
	is_bytes(spokei_span(back.bytes, back.len), frame.bytes, frame.len);
}

TEST(status_maps_to_one_error)
{
	static const struct {
		unsigned status;
		int error;
	} rows[] = {
		{ 25, SPOKE_EBADREPLY },  { 30, SPOKE_EEXPIRED },    { 31, SPOKE_EEXPIRED },
		{ 35, SPOKE_ESERVER },    { 40, SPOKE_EBADREQUEST }, { 50, SPOKE_EBADREPLY },
		{ 60, SPOKE_ENOSERVICE }, { 70, SPOKE_ESERVER },     { 80, SPOKE_ESERVER },
		{ 90, SPOKE_ESERVER },    { 100, SPOKE_EREFUSED },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(READ(0x1b, rows[i].status, "\xa2no", &message), 0);
		assert_int_equal(message.error, rows[i].error);
		is_text(message.error_text, "no");
		WRITES(&message, 0x1b, rows[i].status, "\xa2no");
		assert_int_equal(READ(0x1b, rows[i].status, "\xc0", &message), 0);
		assert_int_equal(message.error_text.len, 0);
	}
}

TEST(bad_header_is_rejected_at_first_wrong_byte)
{
	static const struct {
		const char *bytes;
		size_t wrong; /* offset of the first invalid byte */
	} rows[] = {
		{ "GET / HTTP/1.1\r\n", 0 },
		{ "\x16\x03\x01\x02", 0 }, /* TLS */
		{ "\xda\xbc\xdb", 1 },
		{ "\xda\xbb\x5b\x14", 2 }, /* a reply with the two-way flag */
		{ "\xda\xbb\x7b\x14", 2 },
		{ "\xda\xbb\xdb\x14", 3 }, /* a request with a status */
		{ "\xda\xbb\x1b\x15", 3 },
	};
	size_t len;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t wrong = rows[i].wrong;

		assert_int_equal(cut_bytes(rows[i].bytes, wrong, &len), SPOKEI_NEXT_MORE);
		assert_int_equal(cut_bytes(rows[i].bytes, wrong + 1, &len), SPOKE_EPROTOCOL);
	}
	assert_true(spokei_wire_dubbo.knows(0xda));
	for (unsigned first = 0; first < 256; first++)
		assert_int_equal(spokei_wire_dubbo.knows((unsigned char)first), first == 0xda);
}

TEST(too_long_frame_is_rejected_at_header)
{
	static const struct {
		size_t len;
		int result;
	} rows[] = {
		{ 0xffffffff, SPOKE_ETOOLARGE },
		{ 0x80000000, SPOKE_ETOOLARGE },
		{ 0x7fffffff, SPOKEI_NEXT_SKIP },
		{ FRAME_MAX - HEAD + 1, SPOKEI_NEXT_SKIP },
	};
	struct frame frame;
	size_t len;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		frame_init(&frame, 0xdb, 0, NULL, rows[i].len);
		assert_int_equal(cut_bytes(frame.bytes, HEAD - 1, &len), SPOKEI_NEXT_MORE);
		assert_int_equal(cut_bytes(frame.bytes, HEAD, &len), rows[i].result);
		if (rows[i].result == SPOKEI_NEXT_SKIP)
			assert_int_equal(len, HEAD + rows[i].len);
	}
	frame_init(&frame, 0xdb, 0, NULL, FRAME_MAX - HEAD);
	assert_int_equal(cut_bytes(frame.bytes, HEAD, &len), SPOKEI_NEXT_MORE);
	assert_int_equal(len, FRAME_MAX);
	memset(frame.bytes + HEAD, 0xc0, FRAME_MAX - HEAD);
	assert_int_equal(cut_bytes(frame.bytes, FRAME_MAX, &len), 0);
	assert_int_equal(len, FRAME_MAX);
}

TEST(too_long_event_is_rejected_at_header)
{
	static const unsigned flags[] = { 0xfb, 0xbb, 0x3b, 0xe2, 0x22 };
	struct frame frame;
	size_t len;

	for (size_t i = 0; i < LENGTH(flags); i++) {
		unsigned status = flags[i] & 0x80 ? 0 : 20;

		frame_init(&frame, flags[i], status, NULL, 64);
		assert_int_equal(cut_bytes(frame.bytes, HEAD, &len), SPOKEI_NEXT_MORE);
		assert_int_equal(len, HEAD + 64);
		frame_init(&frame, flags[i], status, NULL, 65);
		assert_int_equal(cut_bytes(frame.bytes, HEAD, &len), SPOKE_ETOOLARGE);
	}
}

TEST(prefix_of_frame_needs_more)
{
	struct frame frame;
	size_t len;

	frame_init(&frame, 0xdb, 0, NAMED("\xa0") "\x80", sizeof(NAMED("\xa0") "\x80") - 1);
	memcpy(frame.bytes + frame.len, "\xda\xbb\xff", 3); /* must not be read */
	for (size_t cut = 0; cut < frame.len; cut++) {
		unsigned char *prefix = malloc(cut + 1);

		assert_non_null(prefix);
		memcpy(prefix, frame.bytes, cut);
		assert_int_equal(cut_bytes(prefix, cut, &len), SPOKEI_NEXT_MORE);
		assert_int_equal(len, cut < HEAD ? HEAD : frame.len);
		free(prefix);
	}
	for (size_t more = 0; more <= 3; more++) {
		assert_int_equal(cut_bytes(frame.bytes, frame.len + more, &len), 0);
		assert_int_equal(len, frame.len);
	}
}

/* --- events */

TEST(heartbeat_is_read_in_every_serialization)
{
	for (unsigned codec = 0; codec < 32; codec++) {
		const char *null = codec == 27 ? "\xc0" : codec == 2 ? "\x4e" : "null";
		struct spokei_message message;

		assert_int_equal(read_body(0xe0 | codec, 0, null, strlen(null), &message), 0);
		assert_int_equal(message.kind, SPOKEI_PROBE);
		message.kind = SPOKEI_PROBE_ANSWER;
		writes(&message, 0x20 | codec, 20, null, strlen(null));
		assert_int_equal(read_body(0x20 | codec, 20, null, strlen(null), &message), 0);
		assert_int_equal(message.kind, SPOKEI_PROBE_ANSWER);
		message.kind = SPOKEI_PROBE;
		writes(&message, 0xe0 | codec, 0, null, strlen(null));
	}
}

TEST(heartbeat_without_body_is_answered_with_body)
{
	struct spokei_message message;

	assert_int_equal(READ(0xfb, 0, "", &message), 0);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	is_text(message.event, "\xc0");
	message.kind = SPOKEI_PROBE_ANSWER;
	WRITES(&message, 0x3b, 20, "\xc0");
	assert_int_equal(READ(0xe2, 0, "", &message), 0);
	message.kind = SPOKEI_PROBE_ANSWER;
	WRITES(&message, 0x22, 20, "\x4e");
	assert_int_equal(READ(0xe6, 0, "", &message), 0);
	message.kind = SPOKEI_PROBE_ANSWER;
	WRITES(&message, 0x26, 20, "");
	message = (struct spokei_message){ .kind = SPOKEI_PROBE, .id = 7, .codec = 27 };
	WRITES(&message, 0xfb, 0, "\xc0");
}

TEST(readonly_is_known_and_other_events_are_ignored)
{
	static const struct {
		const char *body;
		unsigned flags;
		enum spokei_kind kind;
	} rows[] = {
		{ "\xa1R", 0xbb, SPOKEI_READONLY }, { "\xa1R", 0xfb, SPOKEI_READONLY },
		{ "\x01R", 0xa2, SPOKEI_READONLY }, { "\xa1W", 0xbb, SPOKEI_WRITABLE },
		{ "\x01R", 0xbb, SPOKEI_EVENT },    { "\xa1R", 0xa2, SPOKEI_EVENT },
		{ "\"R\"", 0xa6, SPOKEI_EVENT },    { "\xc0", 0xbb, SPOKEI_EVENT },
		{ "x", 0xfb, SPOKEI_EVENT },        { "\x4e", 0xfb, SPOKEI_EVENT },
		{ "\xa1RR", 0xbb, SPOKEI_EVENT },   { "\xc1", 0xbb, SPOKEI_EVENT },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *body = rows[i].body;
		struct spokei_message message;

		assert_int_equal(read_body(rows[i].flags, 0, body, strlen(body), &message), 0);
		assert_int_equal(message.kind, rows[i].kind);
		writes(&message, rows[i].flags, 0, body, strlen(body));
	}
}

TEST(readonly_is_unsupported_in_unknown_serialization)
{
	struct spokei_message message = { .kind = SPOKEI_READONLY, .codec = 6, .id = 7 };
	struct frame frame;

	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
	message.codec = 27;
	WRITES(&message, 0xbb, 0, "\xa1R");
	message.codec = 32;
	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
}

/* --- other serializations */

TEST(unknown_serialization_is_refused_with_valid_head)
{
	for (unsigned codec = 0; codec < 32; codec++) {
		struct spokei_message message;

		if (codec == 2 || codec == 27)
			continue;
		assert_int_equal(READ(0xc0 | codec, 0, NAMED("\xa0") "\x80", &message),
				 SPOKE_EUNSUPPORTED);
		assert_int_equal(message.kind, SPOKEI_REQUEST);
		assert_true(message.two_way);
		assert_int_equal(message.id, 7);
		assert_int_equal(message.codec, codec);
		assert_int_equal(message.method.len, 0);
		assert_int_equal(READ(codec, 40, "\xa2no", &message), 0);
		assert_int_equal(message.kind, SPOKEI_REPLY);
		assert_int_equal(message.error, SPOKE_EBADREQUEST);
	}
}

TEST(refusal_uses_serialization_of_request)
{
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.id = 7,
		.codec = 2,
		.status = 40,
		.error_text = span_of("n\xc3\xb6"),
	};
	struct frame frame;
	char large[2000];

	WRITES(&message, 0x02, 40, "\x02n\xc3\xb6");
	message.error_text = span_of("this text is somewhat longer, 35 b.");
	WRITES(&message, 0x02, 40, "\x30\x23this text is somewhat longer, 35 b.");
	memset(large, 'x', sizeof(large));
	message.error_text = spokei_span(large, sizeof(large));
	assert_int_equal(write_frame(&message, &frame), 0);
	assert_int_equal(frame.len, HEAD + 2 + 1023);
	assert_memory_equal(frame.bytes + HEAD, "\x33\xff", 2);
	message.codec = 6;
	WRITES(&message, 0x06, 40, "");
	message.status = 20;
	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
	message = (struct spokei_message){ .kind = SPOKEI_REQUEST, .codec = 6 };
	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
}
