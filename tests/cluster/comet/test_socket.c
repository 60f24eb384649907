/* SPDX-License-Identifier: Apache-2.0 */
/* Input of WebSockets: texts, control frames, close codes, limits, and how bytes may be cut. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static int open_socket(void)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_frames(fd);
	return fd;
}

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(texts_reach_the_program)
{
	static char large[10001];
	int fd = open_socket();

	memset(large, 'x', sizeof(large) - 1);
	cometrig_frame(fd, 0x81, "hello", 5);
	cometrig_frame(fd, 0x81, "", 0);
	cometrig_run(MS);
	assert_string_equal(cometrig.heard, "ann: hello\nann: \n");
	cometrig_frame(fd, 0x81, large, 1000);
	assert_string_equal(cometrig_frames(fd), "");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_RECEIVED), 3);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

TEST(frame_in_single_bytes_is_put_together)
{
	static const unsigned char frame[] = { 0x81, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o' };
	int fd = open_socket();

	for (size_t i = 0; i < sizeof(frame); i++) {
		assert_string_equal(cometrig.heard, "");
		cometrig_send_bytes(fd, frame + i, 1);
		cometrig_run(MS);
		assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES) > 0,
				 i + 1 < sizeof(frame));
	}
	assert_string_equal(cometrig.heard, "ann: hello\n");
	assert_null(spokei_comet_cell(cometrig.comet, 0)->more);
}

TEST(fragments_are_put_together_around_a_ping)
{
	int fd = open_socket();

	cometrig_frame(fd, 0x01, "hel", 3);
	cometrig_run(MS);
	cometrig_frame(fd, 0x89, "p", 1);
	assert_string_equal(cometrig_frames(fd), "pong p\n");
	cometrig_frame(fd, 0x80, "lo", 2);
	cometrig_run(MS);
	assert_string_equal(cometrig.heard, "ann: hello\n");
}

TEST(message_that_is_not_finished_in_time_is_closed_1008)
{
	int fd = open_socket();

	/* A whole message and a ping do not count for the one after them. */
	cometrig_frame(fd, 0x01, "a", 1);
	cometrig_run(20 * SECOND);
	cometrig_frame(fd, 0x80, "b", 1);
	cometrig_frame(fd, 0x01, "c", 1);
	cometrig_run(15 * SECOND);
	cometrig_frame(fd, 0x89, "p", 1);
	assert_string_equal(cometrig_frames(fd), "ping\npong p\n");
	cometrig_run(SECOND - MS);
	cometrig_frame(fd, 0x00, "d", 1);
	cometrig_run(13 * SECOND);
	assert_string_equal(cometrig_frames(fd), "");
	cometrig_run(SECOND);
	assert_string_equal(cometrig_frames(fd), "close 1008 a message takes too long\nend\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_SLOW), 1);
	cometrig_hang_up(fd);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

/* Frames that end, and frames that go on, cut at each place. */
TEST(long_message_in_small_parts_is_put_together, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	static const size_t steps[] = { 1, 7, 100, 1000, 3000 };
	static char text[3001];
	static unsigned char frame[8 + sizeof(text)];
	const size_t len = sizeof(text) - 1;

	options.frames_per_second = 250;
	cometrig_make(&options);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 26);
	memcpy(frame, "\x81\xfe\x0b\xb8\0\0\0\0", 8);
	memcpy(frame + 8, text, len);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int fd = open_socket();

		cometrig.heard[0] = '\0';
		for (size_t at = 0; at < len + 8; at += steps[i]) {
			size_t left = len + 8 - at;

			cometrig_send_bytes(fd, frame + at, left < steps[i] ? left : steps[i]);
			cometrig_run(MS);
		}
		assert_memory_equal(cometrig.heard, "ann: ", 5);
		assert_memory_equal(cometrig.heard + 5, text, len);
		assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
		cometrig_hang_up(fd);
	}
}

static void kick_ann(struct cometrig *rig)
{
	rig->then = NULL;
	assert_int_equal(spoke_comet_kick(rig->comet, spoke_comet_text("ann"), NULL), 1);
}

static void free_comet(struct cometrig *rig)
{
	rig->then = NULL;
	spoke_comet_free(rig->comet);
}

static void (*const endings[])(struct cometrig *rig) = { kick_ann, free_comet };

/* The text is in the connection's memory until the callback returns. */
TEST(program_may_end_the_connection_of_a_kept_message)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		int fd = open_socket();

		cometrig_frame(fd, 0x01, "hello", 5);
		cometrig_run(MS);
		cometrig.heard[0] = '\0';
		cometrig.then = endings[i];
		cometrig_frame(fd, 0x80, "", 0);
		cometrig_run(MS);
		assert_string_equal(cometrig.heard, "ann: hello\n");
	}
}

TEST(close_of_a_client_is_answered)
{
	int fd = open_socket();

	cometrig_frame(fd, 0x88,
		       "\x03\xe8"
		       "bye",
		       5);
	assert_string_equal(cometrig_frames(fd), "close 1000 \nend\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS), 0);
}

TEST(violations_have_their_codes)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *close;
	} rows[] = {
		{ "\x81\x01x", 3, "close 1002 " },                        /* not masked */
		{ "\xc1\x80\x01\x02\x03\x04", 6, "close 1002 " },         /* a reserved bit */
		{ "\x83\x80\x01\x02\x03\x04", 6, "close 1002 " },         /* a reserved opcode */
		{ "\x80\x80\x01\x02\x03\x04", 6, "close 1002 " },         /* continues nothing */
		{ "\x81\xfe\x00\x05\x01\x02\x03\x04", 8, "close 1002 " }, /* not minimal */
		{ "\x89\xfe\x00\x80\x01\x02\x03\x04", 8, "close 1002 " }, /* a long ping */
		{ "\x09\x80\x01\x02\x03\x04", 6, "close 1002 " },         /* a ping in parts */
		{ "\x81\x81\x00\x00\x00\x00\xff", 7, "close 1007 " },     /* not UTF-8 */
		{ "\x82\x81\x00\x00\x00\x00x", 7, "close 1003 " },        /* binary */
		{ "\x81\xfe\x40\x01\x00\x00\x00\x00", 8, "close 1009 " }, /* 16,385 bytes */
		{ "\x88\x81\x00\x00\x00\x00x", 7, "close 1002 " },        /* half a code */
		{ "\x88\x82\x00\x00\x00\x00\x03\xed", 8, "close 1002 " }, /* code 1005 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = open_socket();

		cometrig_send_bytes(fd, rows[i].bytes, rows[i].len);
		if (strncmp(cometrig_frames(fd), rows[i].close, strlen(rows[i].close)) != 0)
			fail_msg("row %zu: \"%s\"", i, cometrig.lines);
		assert_non_null(strstr(cometrig.lines, "end\n"));
		cometrig_hang_up(fd);
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_PROTOCOL), 12);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

TEST(eleventh_frame_of_a_second_is_closed_1008)
{
	int fd = open_socket();

	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	for (int i = 0; i < 10; i++)
		cometrig_frame(fd, 0x81, "x", 1);
	assert_string_equal(cometrig_frames(fd), "");
	cometrig_run(SECOND);
	for (int i = 0; i < 11; i++)
		cometrig_frame(fd, 0x8a, "", 0);
	assert_string_equal(cometrig_frames(fd), "close 1008 too many frames in a second\nend\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_RECEIVED), 10);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_RATE), 1);
}

TEST(text_without_a_taker_is_closed_1003, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fd;

	options.message = NULL;
	cometrig_make(&options);
	fd = open_socket();
	cometrig_frame(fd, 0x81, "x", 1);
	assert_string_equal(cometrig_frames(fd), "close 1003 texts are not wanted\nend\n");
}

static void kick_all(struct cometrig *rig)
{
	(void)spoke_comet_kick(rig->comet, spoke_comet_text("ann"), "enough");
	rig->then = NULL;
}

TEST(socket_may_be_closed_by_its_own_message)
{
	int fd = open_socket();

	cometrig.then = kick_all;
	cometrig_frame(fd, 0x81, "x", 1);
	cometrig_frame(fd, 0x81, "y", 1);
	assert_string_equal(cometrig_frames(fd), "close 4004 enough\nend\n");
	assert_string_equal(cometrig.heard, "ann: x\n");
}

TEST(gateway_may_be_freed_by_a_message)
{
	int fd = open_socket();
	bool ended;

	cometrig.then = cometrig_free_gateway;
	cometrig_frame(fd, 0x81, "x", 1);
	cometrig_frame(fd, 0x81, "y", 1);
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
	assert_string_equal(cometrig.heard, "ann: x\n");
}

static void echo(struct cometrig *rig)
{
	struct spoke_comet_message message = { .data = spoke_comet_text("echo") };

	assert_int_equal(spoke_comet_push(rig->comet, spoke_comet_text("ann"), &message, NULL),
			 SPOKE_OK);
}

TEST(message_may_push)
{
	int fd = open_socket();

	cometrig.then = echo;
	cometrig_frame(fd, 0x81, "x", 1);
	assert_non_null(strstr(cometrig_frames(fd), "\"data\":\"echo\"}\n"));
}
