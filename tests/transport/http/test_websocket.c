/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of WebSocket frames on every row of websocket.tsv: whole, byte by byte, cut at each
 * place, and in pieces. And the writers of a server's frames.
 */
#include "tests/support/test.h"
#include "transport/http/websocket.h"

#include "tests/transport/http/wsrig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MIN 370u       /* the rows of websocket.tsv, lest the file is cut */
#define BYTEWISE_MAX 70000u /* bytes of rows that are read byte by byte */
#define EVERY_CUT_MAX 2048u /* bytes: longer rows are cut near their ends only */
#define NEAR 24u
#define PAIRS_MAX 40u /* bytes of rows that are cut at each pair of places */

static void compare(const struct wsrow *row, const struct wsreader *reader, const char *how,
		    size_t place)
{
	char expected[256];
	char found[256];

	if (wslist_is_same(&row->verdicts, &reader->verdicts))
		return;
	fail_msg("%s, %s %zu: %s, not %s", row->id, how, place,
		 wslist_print(&reader->verdicts, found, sizeof(found)),
		 wslist_print(&row->verdicts, expected, sizeof(expected)));
}

/* Reads a row in two or three pieces. */
static void read_cut(const struct wsrow *row, size_t first, size_t second)
{
	struct wsreader reader;

	wsreader_init(&reader, row->limit, row->len);
	wsreader_feed(&reader, row->sent, first);
	wsreader_feed(&reader, row->sent + first, second - first);
	wsreader_feed(&reader, row->sent + second, row->len - second);
	compare(row, &reader, "cut at", first);
	wsreader_fini(&reader);
}

/* Reads a row in pieces of equal size; `row->len`: whole. */
static void read_pieces(const struct wsrow *row, size_t size)
{
	struct wsreader reader;

	wsreader_init(&reader, row->limit, row->len);
	for (size_t at = 0; at < row->len; at += size)
		wsreader_feed(&reader, row->sent + at, row->len - at < size ? row->len - at : size);
	compare(row, &reader, "in pieces of", size);
	wsreader_fini(&reader);
}

static void use_whole(const struct wsrow *row, void *arg)
{
	(void)arg;
	if (row->len > 0)
		read_pieces(row, row->len);
}

TEST(rows_get_their_verdicts)
{
	assert_true(wsrows_each(use_whole, NULL) >= ROWS_MIN);
}

static void use_pieces(const struct wsrow *row, void *arg)
{
	static const size_t sizes[] = { 2, 3, 7, 64, 997, 2048, 65537 };

	(void)arg;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (row->len <= BYTEWISE_MAX || sizes[i] >= 64)
			read_pieces(row, sizes[i]);
}

TEST(pieces_get_the_verdicts_of_the_whole)
{
	(void)wsrows_each(use_pieces, NULL);
}

/* Byte by byte it is also known where the verdict falls. */
static void use_bytes(const struct wsrow *row, void *arg)
{
	struct wsreader reader;

	(void)arg;
	if (row->len > BYTEWISE_MAX)
		return;
	wsreader_init(&reader, row->limit, row->len);
	for (size_t at = 0; at < row->len; at++)
		wsreader_feed(&reader, row->sent + at, 1);
	compare(row, &reader, "byte by byte", 1);
	for (size_t i = 0; i < row->verdicts.count; i++) {
		size_t at = row->verdicts.items[i].at;

		if (at > 0 && reader.verdicts.items[i].at != at)
			fail_msg("%s fails after %zu bytes, not %zu", row->id,
				 reader.verdicts.items[i].at, at);
	}
	wsreader_fini(&reader);
}

TEST(failure_is_found_at_the_first_wrong_byte)
{
	(void)wsrows_each(use_bytes, NULL);
}

static void use_cuts(const struct wsrow *row, void *arg)
{
	(void)arg;
	if (row->len > BYTEWISE_MAX)
		return;
	for (size_t cut = 0; cut <= row->len; cut++)
		if (row->len <= EVERY_CUT_MAX || cut < NEAR || row->len - cut < NEAR)
			read_cut(row, cut, cut);
	for (size_t first = 0; row->len <= PAIRS_MAX && first < row->len; first++)
		for (size_t second = first; second < row->len; second++)
			read_cut(row, first, second);
}

TEST(cut_stream_gets_the_verdicts_of_the_whole)
{
	(void)wsrows_each(use_cuts, NULL);
}

TEST(ended_reader_drops_all_bytes)
{
	static const char *const ends[] = { "\x88\x80zzzz", "\xff" };
	unsigned char bytes[] = "\x81\x80zzzz";
	struct spokei_websocket_input input = { .bytes = bytes, .end = 6 };
	struct spokei_websocket_event event;

	for (size_t i = 0; i < 2; i++) {
		struct wsreader reader;

		wsreader_init(&reader, 0, strlen(ends[i]));
		assert_false(spokei_websocket_has_ended(&reader.websocket));
		wsreader_feed(&reader, (const unsigned char *)ends[i], strlen(ends[i]));
		assert_true(spokei_websocket_has_ended(&reader.websocket));
		assert_int_equal(reader.websocket.kept, 0);
		input.at = 0;
		assert_int_equal(spokei_websocket_read(&reader.websocket, &input, 0, &event),
				 SPOKEI_WEBSOCKET_MORE);
		assert_int_equal(input.at, 6);
		wsreader_fini(&reader);
	}
}

/* An attacker who sends empty fragments gets no verdicts, so the caller counts frames. */
TEST(reader_counts_frames_without_verdicts)
{
	unsigned char bytes[] = "\x01\x80zzzz\x00\x80zzzz\x00\x80zzzz\x8a";
	struct spokei_websocket websocket = { 0 };
	struct spokei_websocket_input input = { .bytes = bytes, .end = 19 };
	struct spokei_websocket_event event;

	assert_int_equal(spokei_websocket_read(&websocket, &input, 0, &event),
			 SPOKEI_WEBSOCKET_MORE);
	assert_int_equal(input.frames, 4);
}

TEST(event_of_close_names_code_and_answer)
{
	unsigned char coded[] = "\x88\x84\0\0\0\0\x0f\xa1no";
	unsigned char bare[] = "\x88\x80\0\0\0\0";
	struct spokei_websocket websocket = { 0 };
	struct spokei_websocket_input input = { .bytes = coded, .end = 10 };
	struct spokei_websocket_event event;

	assert_int_equal(spokei_websocket_read(&websocket, &input, 0, &event),
			 SPOKEI_WEBSOCKET_GIVES_CLOSE);
	assert_int_equal(event.code, 4001);
	assert_int_equal(event.answer, 4001);
	assert_int_equal(event.data.len, 2);
	assert_memory_equal(event.data.data, "no", 2);
	websocket = (struct spokei_websocket){ 0 };
	input = (struct spokei_websocket_input){ .bytes = bare, .end = 6 };
	assert_int_equal(spokei_websocket_read(&websocket, &input, 0, &event),
			 SPOKEI_WEBSOCKET_GIVES_CLOSE);
	assert_int_equal(event.code, SPOKEI_WEBSOCKET_NO_CODE);
	assert_int_equal(event.answer, SPOKEI_WEBSOCKET_NO_CODE);
}

TEST(state_of_reader_has_20_bytes)
{
	assert_int_equal(sizeof(struct spokei_websocket), 20);
}

TEST(head_has_the_shortest_length)
{
	static const struct {
		uint64_t len;
		const char *head;
		size_t size;
	} rows[] = {
		{ 0, "\x81\x00", 2 },
		{ 125, "\x81\x7d", 2 },
		{ 126, "\x81\x7e\x00\x7e", 4 },
		{ 65535, "\x81\x7e\xff\xff", 4 },
		{ 65536, "\x81\x7f\0\0\0\0\0\x01\0\0", 10 },
		{ 0x123456789a, "\x81\x7f\0\0\0\x12\x34\x56\x78\x9a", 10 },
	};
	unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(spokei_websocket_head(SPOKEI_WEBSOCKET_OP_TEXT, rows[i].len, head),
				 rows[i].size);
		assert_memory_equal(head, rows[i].head, rows[i].size);
	}
	(void)spokei_websocket_head(SPOKEI_WEBSOCKET_OP_BINARY, 0, head);
	assert_int_equal(head[0], 0x82);
}

TEST(pong_repeats_the_payload_of_a_ping)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	unsigned char data[SPOKEI_WEBSOCKET_CONTROL_MAX];

	memset(data, 7, sizeof(data));
	assert_int_equal(spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PONG, data, sizeof(data),
						  frame),
			 sizeof(frame));
	assert_memory_equal(frame, "\x8a\x7d", 2);
	assert_memory_equal(frame + 2, data, sizeof(data));
	assert_int_equal(spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PING, NULL, 0, frame), 2);
	assert_memory_equal(frame, "\x89\x00", 2);
}

TEST(close_has_its_code_and_reason)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];

	assert_int_equal(spokei_websocket_close(SPOKEI_WEBSOCKET_RESTART, "retry=1000", frame), 14);
	assert_memory_equal(frame, "\x88\x0c\x03\xf4retry=1000", 14);
	assert_int_equal(spokei_websocket_close(SPOKEI_WEBSOCKET_NORMAL, NULL, frame), 4);
	assert_memory_equal(frame, "\x88\x02\x03\xe8", 4);
	assert_int_equal(spokei_websocket_close(SPOKEI_WEBSOCKET_NO_CODE, "left out", frame), 2);
	assert_memory_equal(frame, "\x88\x00", 2);
}

/* The reason has room for 123 bytes: 122 letters, and no half of a character of two bytes. */
TEST(reason_ends_before_character_that_does_not_fit)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	char reason[140];

	memset(reason, 'a', 122);
	memcpy(reason + 122, "\xc3\xa4", 3);
	assert_int_equal(spokei_websocket_close(4001, reason, frame), 4 + 122);
	memset(reason, 'a', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	assert_int_equal(spokei_websocket_close(4001, reason, frame), 4 + 123);
	assert_int_equal(spokei_websocket_close(4001, "ok\xff no", frame), 4 + 2);
	assert_int_equal(spokei_websocket_close(4001, "ok\xc3", frame), 4 + 2);
}

TEST(close_codes_are_those_of_the_registry)
{
	for (unsigned code = 0; code <= 70000; code++) {
		bool is_code = (code > 999 && code < 1015 && code != 1004 && code != 1005 &&
				code != 1006) ||
			       (code / 1000 == 3 || code / 1000 == 4);

		assert_int_equal(spokei_websocket_is_code(code), is_code);
	}
}
