/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 8 to 12 of the table of faults: the fields of a header. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/catalog.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
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

RUNNER(stage_run_rows);

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
		struct spokei_buffer frames;
		struct ending ending;

		if (status == 20)
			continue;
		stage_call(stage, stage->echo, "x", &ending, NULL);
		raw_frame(raw, &request);
		stage_mark(stage);
		frames_init(&frames);
		frames_reply(&frames, request.id, status, "why");
		raw_send_buffer(raw, &frames);
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
		frames_init(&frames);
		frames_raw(&frames, 0x3b, 20, request.id, "\xc0", 1);
		raw_send_buffer(raw, &frames);
	}
	assert_second_connection_works(stage);
}

ROW(row_09_a_reply_in_another_serialization_fails_its_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);

	for (unsigned codec = 0; codec < 32; codec++) {
		struct spokei_message request;
		struct spokei_buffer frames;
		struct ending ending;

		if (codec == MSGPACK)
			continue;
		stage_call(stage, stage->echo, "x", &ending, NULL);
		raw_frame(raw, &request);
		stage_mark(stage);
		frames_init(&frames);
		frames_raw(&frames, codec, 20, request.id, "\xac\xed\0\5sr", 6);
		raw_send_buffer(raw, &frames);
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
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_reply(&frames, 1, 20, "you asked?");
	raw_send_buffer(raw, &frames);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_a_reply_to_a_provider_in_msgpack_rpc_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	RAW_SEND(raw, "\x94\1\1\xc0\2");
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_reply_to_a_consumer_without_requests_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_reply(&frames, 1, 20, "you asked?");
	raw_send_buffer(raw, &frames);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_UNWANTED);
	assert_second_connection_works(stage);
}

ROW(row_10_request_to_consumer_without_handler_is_answered_60, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_buffer frames;
	struct spokei_message reply;

	frames_init(&frames);
	frames_request(&frames, 77, "echo", "push");
	raw_send_buffer(raw, &frames);
	assert_reply(raw, 77, 60, &reply);
	assert_true(reply.error_text.len > 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_UNWANTED, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
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
			assert_closed_mutely(raw);
			assert_closed_once(stage, SPOKE_STAT_CLOSED_LARGE);
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
	struct spokei_buffer frames;
	struct spokei_message answer;

	frames_init(&frames);
	frames_heartbeat(&frames, 4);
	raw_send_buffer(raw, &frames);
	raw_frame(raw, &answer);
	assert_int_equal(answer.kind, SPOKEI_PROBE_ANSWER);
	assert_int_equal(answer.id, 4);
	assert_int_equal(answer.event.len, 1);
	assert_counter_up_by(stage, SPOKE_STAT_PROBES_READ, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	struct spokei_buffer frames;
	struct ending ending;
	uint64_t id;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	id = request.id;
	frames_init(&frames);
	frames_raw(&frames, 0x9b, 0, id, ECHO_BODY, sizeof(ECHO_BODY) - 1);
	raw_send_buffer(raw, &frames);
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_UNWANTED, 1);
	frames_init(&frames);
	frames_reply(&frames, id, 20, "y");
	raw_send_buffer(raw, &frames);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_string_equal(ending.value, "\"y\"");
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}

ROW(row_09_unknown_serialization_is_refused_without_decoding, STAGE_ALL)
{
	static const char body[] = "\xac\xed\0\5sr\0\1x"; /* a serialized Java object */
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	for (unsigned codec = 0; codec < 32; codec++) {
		struct spokei_buffer frames;
		struct spokei_message reply;

		if (codec == 27)
			continue;
		stage_mark(stage);
		frames_init(&frames);
		frames_raw(&frames, 0xc0 | codec, 0, codec, body, sizeof(body) - 1);
		raw_send_buffer(raw, &frames);
		assert_reply(raw, codec, 40, &reply);
		assert_int_equal(reply.codec, codec);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
		/* Hessian 2 is decoded, and refused for its values. */
		if (stage->on != STAGE_ROUGH && codec != 2)
			assert_int_equal(stage_demands(stage), 0);
	}
	assert_int_equal(stage->handled, handled);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}
