/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 1 to 12 of the table of faults: beginnings, lengths and headers of frames. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"
#include "transport/wire/dubbo/head.h"

#include <string.h>

/* --- rows 1 to 7 of the table of faults: beginnings and lengths of frames */

#define HEAD SPOKEI_DUBBO_HEAD_LEN
#define CLOSES_SOON (20 * MS) /* of virtual time, within which no timer expires */
/* Checks that the connection is closed at once, without waiting for a timer. */
static void assert_closed_at_once(struct raw *raw, uint64_t sent_ns)
{
	assert_closed_mutely(raw);
	if (stage_is_virtual(raw->stage))
		assert_true(raw->ended_ns - sent_ns <= CLOSES_SOON);
}

RUNNER(stage_run_rows);

ROW(row_01_incomplete_frame_closes_after_the_frame_time, STAGE_ALL)
{
	static const char frame[] = "\xda\xbb\xdb\0\0\0\0\0\0\0\0\7\0\0\0\x64\2452.0.2";
	struct raw *raws[sizeof(frame) - 1];
	uint64_t sent_ns;

	stage_set_provider(stage, NULL);
	stage_shorten(stage);
	for (size_t i = 0; i < LENGTH(raws); i++)
		raws[i] = raw_connect(stage);
	stage_mark(stage);
	sent_ns = stage_now(stage);
	for (size_t i = 0; i < LENGTH(raws); i++)
		raw_send(raws[i], frame, i + 1);
	assert_second_connection_works(stage);
	for (size_t i = 0; i < LENGTH(raws); i++) {
		assert_closed_mutely(raws[i]);
		assert_true(raws[i]->ended_ns - sent_ns >= stage->limits->frame_ns);
		if (stage_is_virtual(stage))
			assert_true(raws[i]->ended_ns - sent_ns <=
				    stage->limits->frame_ns + CLOSES_SOON);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_FRAME_TIME, LENGTH(raws));
	assert_second_connection_works(stage);
}

ROW(row_01_an_unfinished_array_closes_after_the_frame_time, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	uint64_t sent_ns = stage_now(stage);

	stage_shorten(stage);
	RAW_SEND(raw, "\x94\0\1\244ec");
	assert_second_connection_works(stage);
	assert_closed_mutely(raw);
	assert_true(raw->ended_ns - sent_ns >= stage->limits->frame_ns);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
}

ROW(row_01_an_unfinished_reply_closes_the_consumers_connection, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending ending;

	stage_shorten(stage);
	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	stage_mark(stage);
	RAW_SEND(raw, "\xda\xbb\x1b\x14\0\0");
	assert_second_connection_works(stage);
	assert_ends(stage, &ending, SPOKE_EPROTOCOL);
	assert_true(ending.written);
	assert_refused(raw, SPOKE_STAT_CLOSED_FRAME_TIME);
	assert_second_connection_works(stage);
}

/* Single bytes do not extend the time limit of a frame. */
ROW(row_02_frame_in_single_bytes_has_the_same_time_limit, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	uint64_t begun_ns = stage_now(stage);
	uint64_t step_ns;
	unsigned sent = HEAD;

	stage_shorten(stage);
	step_ns = stage->limits->frame_ns / 100;
	say_head(raw, 0xdb, 0, 7, 100000);
	while (!raw->ended) {
		stage_pass(stage, step_ns);
		if (sent % 20 == 0)
			assert_second_connection_works(stage);
		(void)raw_pull(raw);
		if (raw->ended || !RAW_TRY_SEND(raw, "\0"))
			break;
		sent++;
		assert_true(sent < 10000);
	}
	assert_closed_mutely(raw);
	assert_true(raw->ended_ns - begun_ns >= stage->limits->frame_ns);
	if (stage_is_virtual(stage))
		assert_true(raw->ended_ns - begun_ns <= stage->limits->frame_ns + 2 * step_ns);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
}

/* A sequence of frames in pieces may take longer than the limit of one frame; each of them does
 * not. */
ROW(row_02_each_frame_has_a_time_of_its_own, STAGE_VIRTUAL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	const unsigned char *bytes;
	size_t len;
	size_t sent = HEAD;

	frames_init(&frames);
	for (uint64_t id = 0; id < 5; id++)
		frames_request(&frames, id, "echo", "slow");
	bytes = spokei_buffer_data(&frames);
	len = spokei_buffer_len(&frames) / 5;
	raw_send(raw, bytes, sent);
	for (uint64_t id = 0; id < 4; id++) {
		stage_pass(stage, stage->limits->frame_ns * 3 / 4);
		assert_second_connection_works(stage);
		raw_send(raw, bytes + sent, len);
		sent += len;
		assert_reply(raw, id, SPOKEI_DUBBO_OK, NULL);
	}
	raw_send(raw, bytes + sent, 5 * len - sent);
	assert_reply(raw, 4, SPOKEI_DUBBO_OK, NULL);
	spokei_buffer_fini(&frames);
	stage_pass(stage, 3 * stage->limits->frame_ns);
	assert_nothing_closed(stage);
	assert_raw_lives(raw);
}

ROW(row_03_invalid_frame_closes_at_once_without_a_reply, STAGE_ALL)
{
	static const struct {
		const char *bytes;
		size_t len;
	} strangers[] = {
		{ "get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35 },
		{ "\x16\3\1\2\0\1\0\1\xfc\3\3", 11 }, /* ClientHello of TLS */
		{ "SSH-2.0-OpenSSH_9.2\r\n", 21 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38 },
		{ "\xda\xbc\xdb\0\0\0\0\0\0\0\0\7\0\0\0\0", 16 },
		{ "\xbb\xda\xdb\0", 4 },
		{ "\x95\0\1\244echo\220\300", 10 },
		{ "\x94\3\1\244echo\220", 9 },                    /* no type of a frame */
		{ "\x94\0\xcf\0\0\0\1\0\0\0\0\244echo\220", 17 }, /* no id */
		{ "\x94\0\xff\244echo\220", 9 },
		{ "\0", 1 },
		{ "\n", 1 },
	};

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(strangers); i++) {
		struct raw *raw = raw_connect(stage);
		unsigned handled = stage->handled;
		uint64_t sent_ns = stage_now(stage);

		stage_mark(stage);
		raw_send(raw, strangers[i].bytes, strangers[i].len);
		assert_closed_at_once(raw, sent_ns);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
		assert_int_equal(stage->handled, handled);
		assert_second_connection_works(stage);
	}
}

ROW(row_03_no_byte_after_an_invalid_one_is_interpreted, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	unsigned handled = stage->handled;

	frames_init(&frames);
	frames_request(&frames, 1, "echo", "before");
	assert_int_equal(spokei_buffer_append(&frames, "\xda\xbb\xff\xff", 4), 0);
	frames_request(&frames, 2, "echo", "behind");
	(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	(void)raw_wait_end(raw);
	assert_int_equal(stage->handled, handled + 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
	assert_second_connection_works(stage);
}

ROW(row_04_a_length_over_the_limit_closes_before_allocating, STAGE_ALL)
{
	static const uint32_t lengths[] = { 0xffffffff, 0x80000000, 0x90000000 };

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		struct raw *raw = raw_connect(stage);
		uint64_t sent_ns = stage_now(stage);
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_head(&frames, 0xdb, 0, 7, lengths[i]);
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		assert_closed_at_once(raw, sent_ns);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_LARGE);
		/* The bytes that have arrived are kept. */
		if (stage->on != STAGE_ROUGH)
			assert_int_equal(stage_demands(stage), 0);
		assert_true(stage->faulty.largest <= 4096);
		assert_second_connection_works(stage);
	}
}

ROW(row_04_msgpack_length_over_limit_closes_before_allocating, STAGE_ALL)
{
	static const struct {
		const char *bytes;
		size_t len;
	} claims[] = {
		{ "\x94\0\1\xdb\xff\xff\xff\xff", 8 }, /* str */
		{ "\x94\0\1\244echo\xdd\xff\xff\xff\xff", 13 },
		{ "\x94\0\1\244echo\x91\xdf\x80\0\0\0", 14 },
		{ "\x94\0\1\244echo\x91\xc6\x80\0\0\0", 14 },
		{ "\x94\0\1\244echo\x91\xc9\x80\0\0\0\1", 15 },
		{ "\xdd\xff\xff\xff\xff\0\1", 7 },
	};

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(claims); i++) {
		struct raw *raw = raw_connect(stage);

		stage_mark(stage);
		raw_send(raw, claims[i].bytes, claims[i].len);
		assert_refused(raw, SPOKE_STAT_CLOSED_LARGE);
		assert_true(stage->faulty.largest <= 4096);
		assert_second_connection_works(stage);
	}
}

ROW(row_04_a_reply_over_the_limit_ends_the_consumers_calls_once, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending endings[3];

	for (size_t i = 0; i < LENGTH(endings); i++)
		stage_call(stage, stage->echo, "x", &endings[i], NULL);
	for (size_t i = 0; i < LENGTH(endings); i++)
		raw_frame(raw, &request);
	stage_mark(stage);
	say_head(raw, 0x1b, 20, request.id, 0xffffffff);
	for (size_t i = 0; i < LENGTH(endings); i++)
		assert_ends(stage, &endings[i], SPOKE_EPROTOCOL);
	assert_refused(raw, SPOKE_STAT_CLOSED_LARGE);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_LOST, LENGTH(endings));
	assert_true(stage->faulty.largest <= 4096);
	assert_second_connection_works(stage);
}

/* Sends a request of exactly this many bytes by choosing the length of its argument. */
static void send_request_of(struct raw *raw, uint64_t id, size_t len)
{
	static const char names[] = BODY_ECHO(BODY_OBJECT);
	struct spokei_buffer frames;
	size_t fixed = HEAD + sizeof(names) - 1 + 5 + 1; /* the bin's head, the attachments */
	uint32_t content = (uint32_t)(len - fixed);
	unsigned char bin[5] = { 0xc6, (unsigned char)(content >> 24),
				 (unsigned char)(content >> 16), (unsigned char)(content >> 8),
				 (unsigned char)content };
	unsigned char *room;

	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, id, (uint32_t)(len - HEAD));
	assert_int_equal(spokei_buffer_append(&frames, names, sizeof(names) - 1), 0);
	assert_int_equal(spokei_buffer_append(&frames, bin, sizeof(bin)), 0);
	room = spokei_buffer_reserve(&frames, content);
	assert_non_null(room);
	memset(room, 'x', content);
	spokei_buffer_commit(&frames, content);
	assert_int_equal(spokei_buffer_append(&frames, "\x80", 1), 0);
	assert_int_equal(spokei_buffer_len(&frames), len);
	raw_send_buffer(raw, &frames);
}

ROW(row_05_a_frame_as_long_as_it_may_be_is_accepted, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message reply;
	size_t before = stage->faulty.bytes;

	send_request_of(raw, 9, SPOKEI_FRAME_MAX);
	assert_second_connection_works(stage);
	assert_reply(raw, 9, SPOKEI_DUBBO_OK, &reply);
	assert_int_equal(reply.value.len,
			 SPOKEI_FRAME_MAX - HEAD - 1 - (sizeof(BODY_ECHO(BODY_OBJECT)) - 1));
	/* The frame, its answer, and the old half of a buffer while it is moved. */
	assert_true(stage->faulty.bytes_peak - before <= 3 * (size_t)SPOKEI_FRAME_MAX);
	assert_nothing_closed(stage);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

ROW(row_05_a_reply_as_long_as_it_may_be_is_accepted, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	uint32_t content = SPOKEI_FRAME_MAX - HEAD - 6;
	unsigned char bin[6] = { 1,
				 0xc6,
				 (unsigned char)(content >> 24),
				 (unsigned char)(content >> 16),
				 (unsigned char)(content >> 8),
				 (unsigned char)content };
	struct spokei_message request;
	struct spokei_buffer frames;
	struct ending ending;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	frames_init(&frames);
	frames_head(&frames, 0x1b, 20, request.id, SPOKEI_FRAME_MAX - HEAD);
	assert_int_equal(spokei_buffer_append(&frames, bin, sizeof(bin)), 0);
	assert_non_null(spokei_buffer_reserve(&frames, content));
	memset(spokei_buffer_reserve(&frames, content), 0, content);
	spokei_buffer_commit(&frames, content);
	raw_send_buffer(raw, &frames);
	assert_second_connection_works(stage);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_nothing_closed(stage);
	assert_consumer_lives(raw);
}

ROW(row_06_a_request_without_a_body_is_a_bad_request, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	say_head(raw, 0xdb, 0, 8, 0);
	assert_reply(raw, 8, 40, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
	assert_raw_lives(raw);
	assert_undisturbed(stage);
}

ROW(row_06_a_heartbeat_without_a_body_is_answered, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message answer;

	say_head(raw, 0xfb, 0, 8, 0);
	raw_frame(raw, &answer);
	assert_int_equal(answer.kind, SPOKEI_PROBE_ANSWER);
	assert_int_equal(answer.id, 8);
	assert_counter_up_by(stage, SPOKE_STAT_PROBES_READ, 1);
	assert_raw_lives(raw);
	assert_undisturbed(stage);
}

ROW(row_06_a_reply_without_a_body_fails_its_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending ending;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	say_head(raw, 0x1b, 20, request.id, 0);
	assert_ends(stage, &ending, SPOKE_EBADREPLY);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REPLIES, 1);
	assert_consumer_lives(raw);
	assert_undisturbed(stage);
}

#define CLAIMERS 1000u

ROW(row_07_a_thousand_claims_of_8_mib_cost_what_was_sent, STAGE_SMOOTH)
{
	struct spoke_provider_options options = { .connections_per_peer_max = CLAIMERS + 10 };
	static struct raw *raws[CLAIMERS];
	struct spokei_buffer frames;
	size_t before;

	stage_set_provider(stage, &options);
	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, 7, SPOKEI_FRAME_MAX - HEAD);
	assert_int_equal(spokei_buffer_append(&frames, "\245", 1), 0);
	before = stage->faulty.bytes;
	stage_mark(stage);
	for (unsigned i = 0; i < CLAIMERS; i++) {
		raws[i] = raw_connect(stage);
		raw_send(raws[i], spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	}
	stage_until_read(stage, CLAIMERS * spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	assert_true(stage->faulty.bytes_peak - before < 64u << 20);
	assert_true(stage->faulty.largest <= 65536);
	assert_undisturbed(stage);
	for (unsigned i = 0; i < CLAIMERS; i++)
		raw_close(raws[i]);
}

/* --- rows 8 to 12 of the table of faults: the fields of a header */

#define ECHO_BODY BODY_ECHO(BODY_OBJECT) "\242hi\x80"
#define MSGPACK 27
/* Reactions of a provider to a frame. */
enum outcome {
	BROKEN,   /* closes: invalid frame */
	UNWANTED, /* closes: a reply without a request */
	ANSWERED, /* runs the handler and answers */
	RUN,      /* runs the handler */
	BAD,      /* answers: bad request */
	DROPPED,  /* a bad one-way request: no answer */
	PROBED,   /* answers a heartbeat */
	HEARD,    /* accepts the answer to a heartbeat */
	IGNORED,  /* ignores another event */
};

static enum outcome request_outcome(unsigned flags)
{
	bool two_way = (flags & 0x40) != 0;

	if (flags & 0x20)
		return two_way ? PROBED : IGNORED;
	if ((flags & 0x1f) == MSGPACK)
		return two_way ? ANSWERED : RUN;
	return two_way ? BAD : DROPPED;
}

/* Derived from the protocol's documents (facts/dubbo.md 7 and WIRE.md), not from the code. */
static enum outcome outcome_of(unsigned flags, unsigned status)
{
	static const unsigned known[] = { 20, 25, 30, 31, 35, 40, 50, 60, 70, 80, 90, 100 };

	if (flags & 0x80)
		return status == 0 ? request_outcome(flags) : BROKEN;
	if (flags & 0x40)
		return BROKEN;
	for (size_t i = 0; i < LENGTH(known); i++)
		if (status == known[i])
			return flags & 0x20 ? HEARD : UNWANTED;
	return BROKEN;
}

static const struct {
	bool closes;
	bool answers;
	unsigned status;
	enum spoke_stat stat;
} outcomes[] = {
	[BROKEN] = { .closes = true, .stat = SPOKE_STAT_CLOSED_PROTOCOL },
	[UNWANTED] = { .closes = true, .stat = SPOKE_STAT_CLOSED_UNWANTED },
	[ANSWERED] = { .answers = true, .status = 20, .stat = SPOKE_STAT_REQUESTS_OK },
	[RUN] = { .stat = SPOKE_STAT_REQUESTS_OK },
	[BAD] = { .answers = true, .status = 40, .stat = SPOKE_STAT_BAD_REQUESTS },
	[DROPPED] = { .stat = SPOKE_STAT_BAD_REQUESTS },
	[PROBED] = { .answers = true, .status = 20, .stat = SPOKE_STAT_PROBES_READ },
	[HEARD] = { .stat = SPOKE_STAT_PROBE_ANSWERS_READ },
	[IGNORED] = { .stat = SPOKE_STAT_EVENTS_IGNORED },
};

/* Sends one frame, and a good request if the connection stays open. Returns whether it does. */
static bool throw_head(struct raw *raw, unsigned flags, unsigned status)
{
	enum outcome outcome = outcome_of(flags, status);
	struct stage *stage = raw->stage;
	struct spokei_buffer frames;
	struct spokei_message answer;
	bool is_event = (flags & 0x20) != 0;

	frames_init(&frames);
	frames_raw(&frames, flags, status, 5, ECHO_BODY, is_event ? 0 : sizeof(ECHO_BODY) - 1);
	stage_mark(stage);
	(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	if (outcomes[outcome].closes) {
		assert_closed_mutely(raw);
		assert_closed_once(stage, outcomes[outcome].stat);
		return false;
	}
	if (outcomes[outcome].answers) {
		raw_frame(raw, &answer);
		assert_int_equal(answer.kind, is_event ? SPOKEI_PROBE_ANSWER : SPOKEI_REPLY);
		assert_int_equal(answer.id, 5);
		assert_int_equal(answer.codec, flags & 0x1f);
		assert_int_equal(answer.status, outcomes[outcome].status);
		assert_counter_up_by(stage, outcomes[outcome].stat, 1);
	}
	assert_raw_lives(raw);
	/* The good request counts too. */
	assert_counter_up_by(stage, outcomes[outcome].stat,
			     outcomes[outcome].stat == SPOKE_STAT_REQUESTS_OK ? 2 : 1);
	assert_nothing_closed(stage);
	return true;
}

static void throw_heads(struct stage *stage, unsigned flags_step, unsigned status_step)
{
	struct raw *raw = NULL;

	for (unsigned flags = 0; flags < 256; flags += flags_step) {
		for (unsigned status = 0; status < 256; status += status_step) {
			if (raw == NULL)
				raw = raw_connect(stage);
			if (throw_head(raw, flags, status))
				continue;
			raw_close(raw);
			raw = NULL;
		}
		if (flags % 64 == 0)
			assert_second_connection_works(stage);
	}
}

ROW(row_08_every_flag_byte_is_valid_or_closes, STAGE_SMOOTH)
{
	stage_set_provider(stage, NULL);
	throw_heads(stage, 1, 20);
}

ROW(row_08_every_status_is_valid_or_closes, STAGE_SMOOTH)
{
	stage_set_provider(stage, NULL);
	throw_heads(stage, MSGPACK, 1);
}

/* Returns the error of a call that gets a reply with this status; 0: the connection is closed. */
static int status_error(unsigned status)
{
	switch (status) {
	case 25:
	case 50:
		return SPOKE_EBADREPLY;
	case 30:
	case 31:
		return SPOKE_EEXPIRED;
	case 40:
		return SPOKE_EBADREQUEST;
	case 60:
		return SPOKE_ENOSERVICE;
	case 35:
	case 70:
	case 80:
	case 90:
		return SPOKE_ESERVER;
	case 100:
		return SPOKE_EREFUSED;
	default:
		return 0;
	}
}

ROW(row_08_every_status_ends_a_consumers_call_or_closes, STAGE_MEMORY)
{
	struct raw *raw = stage_raw_to_consumer(stage);

	for (unsigned status = 0; status < 256; status++) {
		struct spokei_message request;
		struct ending ending;

		if (status == 20)
			continue;
		stage_call(stage, stage->echo, "x", &ending, NULL);
		raw_frame(raw, &request);
		stage_mark(stage);
		say_reply(raw, request.id, status, "why");
		if (status_error(status)) {
			assert_ends(stage, &ending, status_error(status));
			assert_string_equal(ending.text, "why");
			assert_counter_up_by(stage, SPOKE_STAT_CALLS_REMOTE, 1);
			assert_nothing_closed(stage);
			continue;
		}
		assert_ends(stage, &ending, SPOKE_EPROTOCOL);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
		raw_close(raw);
		raw = raw_accept(stage);
		raw_frame(raw, &request); /* its heartbeat */
		say_raw(raw, 0x3b, 20, request.id, "\xc0", 1);
	}
	assert_second_connection_works(stage);
}

ROW(row_09_a_reply_in_another_serialization_fails_its_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);

	for (unsigned codec = 0; codec < 32; codec++) {
		struct spokei_message request;
		struct ending ending;

		if (codec == MSGPACK)
			continue;
		stage_call(stage, stage->echo, "x", &ending, NULL);
		raw_frame(raw, &request);
		stage_mark(stage);
		say_raw(raw, codec, 20, request.id, "\xac\xed\0\5sr", 6);
		assert_ends(stage, &ending, SPOKE_EBADREPLY);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REPLIES, 1);
		assert_nothing_closed(stage);
	}
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
}

ROW(row_10_a_reply_to_a_provider_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	say_reply(raw, 1, 20, "you asked?");
	assert_refused(raw, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_a_reply_to_a_provider_in_msgpack_rpc_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	RAW_SEND(raw, "\x94\1\1\xc0\2");
	assert_refused(raw, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_reply_to_a_consumer_without_requests_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);

	say_reply(raw, 1, 20, "you asked?");
	assert_refused(raw, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_request_to_consumer_without_handler_is_answered_60, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message reply;

	say_request(raw, 77, "echo", "push");
	assert_reply(raw, 77, 60, &reply);
	assert_true(reply.error_text.len > 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_UNWANTED, 1);
	assert_consumer_lives(raw);
	assert_undisturbed(stage);
}

ROW(row_11_an_event_is_ignored_up_to_64_bytes_and_closes_beyond, STAGE_ALL)
{
	static const size_t lengths[] = { 1, 2, 63, 64, 65, 65536 };
	static const unsigned char body[65536] = { 1 };

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		struct raw *raw = raw_connect(stage);
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_raw(&frames, 0xfb, 0, 3, body, lengths[i]);
		stage_mark(stage);
		(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
		spokei_buffer_fini(&frames);
		if (lengths[i] > 64) {
			assert_refused(raw, SPOKE_STAT_CLOSED_LARGE);
			assert_true(stage->faulty.largest <= 4096);
		} else {
			assert_raw_lives(raw);
			assert_counter_up_by(stage, SPOKE_STAT_EVENTS_IGNORED, 1);
			assert_nothing_closed(stage);
		}
		assert_second_connection_works(stage);
	}
}

ROW(row_11_a_heartbeat_of_one_byte_is_answered_in_kind, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message answer;

	say_heartbeat(raw, 4);
	raw_frame(raw, &answer);
	assert_int_equal(answer.kind, SPOKEI_PROBE_ANSWER);
	assert_int_equal(answer.id, 4);
	assert_int_equal(answer.event.len, 1);
	assert_counter_up_by(stage, SPOKE_STAT_PROBES_READ, 1);
	assert_undisturbed(stage);
}

ROW(row_12_one_way_request_with_an_id_in_flight_gets_no_reply, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	unsigned handled = stage->handled;

	frames_init(&frames);
	frames_request(&frames, 5, "later", "slow");
	frames_raw(&frames, 0x9b, 0, 5, ECHO_BODY, sizeof(ECHO_BODY) - 1);
	raw_send_buffer(raw, &frames);
	assert_raw_lives(raw);
	assert_int_equal(stage->handled, handled + 3);
	assert_nothing_closed(stage);
	stage_answer_later(stage);
	assert_reply(raw, 5, 20, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

/* MessagePack-RPC clients start ids at 0, and a notification has no id. */
ROW(row_12_a_notification_does_not_take_the_id_of_a_request, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	raw->wire = spokei_catalog_wire("msgpack-rpc");
	RAW_SEND(raw, "\x94\0\0\245later\x91\1"
		      "\x93\2\244echo\x91\2"
		      "\x94\0\1\244echo\x91\3");
	assert_reply(raw, 1, 20, NULL);
	assert_int_equal(stage->handled, handled + 3);
	assert_nothing_closed(stage);
	stage_answer_later(stage);
	assert_reply(raw, 0, 20, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_second_connection_works(stage);
}

ROW(row_12_a_one_way_push_with_the_id_of_a_call_does_not_end_it, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending ending;
	uint64_t id;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	id = request.id;
	say_raw(raw, 0x9b, 0, id, ECHO_BODY, sizeof(ECHO_BODY) - 1);
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_UNWANTED, 1);
	say_reply(raw, id, 20, "y");
	assert_ends(stage, &ending, SPOKE_OK);
	assert_string_equal(ending.value, "\"y\"");
	assert_undisturbed(stage);
}

ROW(row_09_unknown_serialization_is_refused_without_decoding, STAGE_ALL)
{
	static const char body[] = "\xac\xed\0\5sr\0\1x"; /* a serialized Java object */
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	for (unsigned codec = 0; codec < 32; codec++) {
		struct spokei_message reply;

		if (codec == 27)
			continue;
		stage_mark(stage);
		say_raw(raw, 0xc0 | codec, 0, codec, body, sizeof(body) - 1);
		assert_reply(raw, codec, 40, &reply);
		assert_int_equal(reply.codec, codec);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
		/* Hessian 2 is decoded, and refused for its values. */
		/* The first answer takes memory for output. */
		if (stage->on != STAGE_ROUGH && codec != 2 && codec > 0)
			assert_int_equal(stage_demands(stage), 0);
	}
	assert_int_equal(stage->handled, handled);
	assert_raw_lives(raw);
	assert_undisturbed(stage);
}
