/* SPDX-License-Identifier: Apache-2.0 */
/* Row 60 of the table of faults: misbehaving peers do not fill the log. */
#include "core/base/log.h"
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <ctype.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define PEERS 3000u
#define RATE 10u /* lines per second and class, and largest burst */

/* Recorded lines of the log. */
static struct {
	unsigned lines;
	unsigned bad; /* lines with bytes that could hurt a reader */
	uint64_t suppressed;
	bool said_why;
} heard;

static void hear(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	heard.lines++;
	heard.suppressed += line->suppressed;
	heard.said_why = heard.said_why || strstr(line->text, "protocol");
	for (const char *at = line->text; *at; at++)
		heard.bad += !isprint((unsigned char)*at);
	heard.bad += strlen(line->text) >= SPOKEI_LOG_TEXT_MAX;
}

/* Records the log of the engine under test from here on. */
static void listen_to_log(struct stage *stage)
{
	stage->faulty.env.log = hear;
	memset(&heard, 0, sizeof(heard));
}

/* Checks that each class has kept its rate limit since then. */
static void assert_quiet(struct stage *stage, uint64_t begun_ns, unsigned classes)
{
	uint64_t seconds = (stage_now(stage) - begun_ns) / SECOND + 1;

	assert_true(heard.lines <= classes * RATE * (seconds + 1));
	assert_int_equal(heard.bad, 0);
}

RUNNER(stage_run_rows);

ROW(row_60_peers_that_break_the_protocol_do_not_fill_the_log, STAGE_ALL)
{
	static const char *const noises[] = { "get / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\n\x7f",
					      "\xda\xbb\x00\xff\r\n\x1b[2J............",
					      "\x94\x07\x01\xc0\x02" };
	unsigned peers = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	uint64_t begun_ns;

	stage_set_provider(stage, NULL);
	listen_to_log(stage);
	begun_ns = stage_now(stage);
	stage_mark(stage);
	for (unsigned i = 0; i < peers; i++) {
		const char *noise = noises[i % LENGTH(noises)];
		struct raw *raw = raw_connect(stage);

		(void)raw_try_send(raw, noise, i % LENGTH(noises) == 2 ? 20 : strlen(noise));
		(void)raw_wait_end(raw);
		raw_close(raw);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_PROTOCOL, peers);
	assert_quiet(stage, begun_ns, 1);
	assert_true(heard.lines > 0 && heard.said_why);
	assert_true(heard.suppressed + heard.lines <= peers);
	assert_second_connection_works(stage);
}

/* All other errors of a peer are answered, counted, and logged within the rate limit. */
ROW(row_60_bad_requests_do_not_fill_the_log, STAGE_ALL)
{
	unsigned requests = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	struct raw *raw = stage_raw_to_provider(stage);
	uint64_t begun_ns = stage_now(stage);

	listen_to_log(stage);
	for (unsigned i = 0; i < requests; i++) {
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_raw(&frames, 0xdb, 0, 1, "\xc1", 1);
		frames_request(&frames, 2, "no\nsuch\x1bmethod", "x");
		frames_raw(&frames, 0xc2, 0, 3, "\xac\xed", 2);
		raw_send_buffer(raw, &frames);
		for (uint64_t id = 1; id <= 3; id++)
			assert_reply(raw, id, id == 2 ? 60 : 40, NULL);
	}
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, (uint64_t)requests * 2);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_NO_SERVICE, requests);
	assert_quiet(stage, begun_ns, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}

ROW(row_60_rejected_connections_do_not_fill_the_log, STAGE_ALL)
{
	const struct spoke_provider_options options = { .connections_max = 2 };
	unsigned peers = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	struct spokei_buffer frames;
	struct raw *taken;
	uint64_t begun_ns;

	stage_set_provider(stage, &options);
	taken = raw_connect(stage);
	frames_init(&frames); /* a connection without a byte would give way */
	frames_request(&frames, 1, "no such method", "x");
	raw_send_buffer(taken, &frames);
	assert_reply(taken, 1, 60, NULL);
	listen_to_log(stage);
	begun_ns = stage_now(stage);
	stage_mark(stage);
	for (unsigned i = 0; i < peers; i++) {
		struct raw *raw = raw_start(stage);

		assert_closed_mutely(raw);
		raw_close(raw);
	}
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, peers);
	assert_quiet(stage, begun_ns, 1);
	assert_true(heard.lines > 0);
	assert_second_connection_works(stage);
}

/* A provider that keeps sending replies without requests. */
ROW(row_60_unsolicited_replies_do_not_fill_the_log, STAGE_ALL)
{
	unsigned rounds = stage_is_virtual(stage) ? 300 : 3;
	struct raw *raw = stage_raw_to_consumer(stage);
	uint64_t begun_ns = stage_now(stage);

	listen_to_log(stage);
	for (unsigned i = 0; i < rounds; i++) {
		struct spokei_message probe;
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_heartbeat(&frames, 1); /* so that the consumer reconnects soon */
		frames_raw(&frames, 0xff, 0xff, 1, "", 0);
		(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
		spokei_buffer_fini(&frames);
		(void)raw_wait_end(raw);
		raw_close(raw);
		raw = raw_accept(stage);
		raw_frame(raw, &probe);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_PROTOCOL, rounds);
	assert_quiet(stage, begun_ns, 3); /* closed, reconnecting, connected */
	assert_second_connection_works(stage);
}
