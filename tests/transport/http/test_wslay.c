/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of WebSocket frames beside that of libwslay: both read the rows of websocket.tsv, and
 * streams with random faults, and must agree on all messages and on the code of a failure.
 */
#include "tests/support/test.h"
#include "tests/transport/dice.h"
#include "tests/transport/http/wsrig.h"

#include <wslay/wslay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 60000u
#define STREAM_MAX 4096u

/* One run of wslay on a stream. */
struct oracle {
	const unsigned char *bytes;
	size_t len;
	size_t at;
	struct wslist verdicts;
};

static ssize_t receive(wslay_event_context_ptr context, uint8_t *buffer, size_t len, int flags,
		       void *arg)
{
	struct oracle *oracle = arg;
	size_t there = oracle->len - oracle->at;

	(void)flags;
	if (there == 0) {
		wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	len = len < there ? len : there;
	memcpy(buffer, oracle->bytes + oracle->at, len);
	oracle->at += len;
	return (ssize_t)len;
}

static ssize_t transmit(wslay_event_context_ptr context, const uint8_t *data, size_t len, int flags,
			void *arg)
{
	(void)context;
	(void)data;
	(void)flags;
	(void)arg;
	return (ssize_t)len;
}

static void take_message(wslay_event_context_ptr context,
			 const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	struct oracle *oracle = arg;
	const char *kinds = "-tb-----cpo";
	bool is_close = message->opcode == WSLAY_CONNECTION_CLOSE;
	size_t skipped = is_close && message->msg_length >= 2 ? 2 : 0;

	(void)context;
	wslist_add(&oracle->verdicts, kinds[message->opcode],
		   !is_close              ? 0
		   : message->status_code ? message->status_code
					  : SPOKEI_WEBSOCKET_NO_CODE,
		   message->msg + skipped, message->msg_length - skipped);
}

/* wslay ends frames that it cannot cut without a code; the RFC has 1002 for them. */
static void run_oracle(struct oracle *oracle, uint32_t limit)
{
	const struct wslay_event_callbacks callbacks = { .recv_callback = receive,
							 .send_callback = transmit,
							 .on_msg_recv_callback = take_message };
	wslay_event_context_ptr context;
	unsigned code;
	int result;

	assert_int_equal(wslay_event_context_server_init(&context, &callbacks, oracle), 0);
	wslay_event_config_set_max_recv_msg_length(context,
						   limit ? limit : SPOKEI_WEBSOCKET_MESSAGE_MAX);
	result = wslay_event_recv(context);
	assert_true(result == 0 || result == WSLAY_ERR_CALLBACK_FAILURE);
	assert_int_equal(wslay_event_send(context), 0);
	code = result ? SPOKEI_WEBSOCKET_PROTOCOL : wslay_event_get_status_code_sent(context);
	if (wslay_event_get_close_sent(context) && !wslay_event_get_close_received(context))
		wslist_add(&oracle->verdicts, 'f', code, NULL, 0);
	wslay_event_context_free(context);
}

/*
 * Rows on which wslay 1.1.1 has another verdict. It takes a payload of one byte for a close without
 * a code, does not know the codes 1012 to 1014 of the registry, looks at the reason before the
 * code, and applies the limit of messages to control frames too.
 */
static const struct {
	const char *id;
	const char *verdicts;
} differences[] = {
	{ "7.3.2", "c1005(1)@0 " },
	{ "close.1012", "f1002(0)@0 " },
	{ "close.1013", "f1002(0)@0 " },
	{ "close.1014", "f1002(0)@0 " },
	{ "close.bad.code.first", "f1007(0)@0 " },
	{ "limit.not.of.control", "f1009(0)@0 " },
};

#define DIFFERENCES (sizeof(differences) / sizeof(differences[0]))

static const char *find_difference(const char *id)
{
	for (size_t i = 0; i < DIFFERENCES; i++)
		if (strcmp(differences[i].id, id) == 0)
			return differences[i].verdicts;
	return NULL;
}

static void use_row(const struct wsrow *row, void *arg)
{
	struct oracle oracle = { .bytes = row->sent, .len = row->len };
	const char *difference = find_difference(row->id);
	unsigned *different = arg;
	char found[256];

	run_oracle(&oracle, row->limit);
	(void)wslist_print(&oracle.verdicts, found, sizeof(found));
	if (difference != NULL) {
		assert_string_equal(found, difference);
		++*different;
	} else if (!wslist_is_same(&oracle.verdicts, &row->verdicts)) {
		fail_msg("%s: wslay has %s", row->id, found);
	}
	wslist_fini(&oracle.verdicts);
}

TEST(rows_get_the_verdicts_of_wslay)
{
	unsigned different = 0;

	(void)wsrows_each(use_row, &different);
	assert_int_equal(different, DIFFERENCES);
}

/* --- random streams */

struct made {
	unsigned char bytes[STREAM_MAX];
	size_t len;
	uint64_t dice;
};

static size_t make_text(struct made *made, unsigned char *out, size_t max)
{
	static const char *const parts[] = {
		"a",        "hello", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\xe2\x82", "\x98",  "\xff"
	};
	size_t len = 0;

	for (size_t words = dice_below(&made->dice, 6); words > 0; words--) {
		/* The last three are valid only by chance, across fragments. */
		size_t which = dice_below(&made->dice, dice_below(&made->dice, 8) ? 5 : 8);
		size_t size = strlen(parts[which]);

		if (len + size > max)
			break;
		memcpy(out + len, parts[which], size);
		len += size;
	}
	return len;
}

/* Avoids the closes on which wslay differs. */
static size_t make_close(struct made *made, unsigned char *out)
{
	static const unsigned codes[] = { 1000, 1001, 1003, 1007, 1011, 3000, 4999 };
	static const unsigned wrong[] = { 0, 999, 1004, 1005, 1006, 1015, 2999, 5000 };
	bool is_wrong = dice_below(&made->dice, 2) == 0;
	unsigned code = is_wrong ? wrong[dice_below(&made->dice, 8)]
				 : codes[dice_below(&made->dice, 7)];

	if (dice_below(&made->dice, 4) == 0)
		return 0;
	out[0] = (unsigned char)(code >> 8);
	out[1] = (unsigned char)code;
	return 2 + (is_wrong ? 0 : make_text(made, out + 2, 100));
}

static unsigned make_first(struct made *made, bool *inside)
{
	unsigned opcode = dice_below(&made->dice, 3) == 0 ? 9 + (unsigned)dice_below(&made->dice, 2)
			  : *inside                       ? 0
				    : 1 + (unsigned)dice_below(&made->dice, 2);
	bool fin = opcode > 8 || dice_below(&made->dice, 2) == 0;

	if (dice_below(&made->dice, 12) == 0)
		opcode = 8;
	if (opcode < 8)
		*inside = !fin;
	if (dice_below(&made->dice, 30) == 0)
		return (unsigned)dice_below(&made->dice, 256);
	return (fin || opcode == 8 ? 0x80u : 0) | opcode;
}

static void make_frame(struct made *made, bool *inside)
{
	unsigned first = make_first(made, inside);
	unsigned char payload[300];
	unsigned char mask[4];
	size_t len = (first & 15) == 8 ? make_close(made, payload)
				       : make_text(made, payload, sizeof(payload));
	unsigned form = wsclient_form(len);

	for (size_t i = 0; i < sizeof(mask); i++)
		mask[i] = (unsigned char)dice_throw(&made->dice);
	if (dice_below(&made->dice, 12) == 0) {
		size_t grown = dice_below(&made->dice, sizeof(payload));

		memset(payload + len, 'x', grown > len ? grown - len : 0);
		len = grown > len ? grown : len;
		form = wsclient_form(len);
		if (len == 1 || ((first & 15) == 8 && len > 2))
			len = form = 0;
	}
	if (dice_below(&made->dice, 40) == 0)
		form = form == 0 ? 2 : 8;
	made->len += wsclient_head(first, len, form, dice_below(&made->dice, 60) ? mask : NULL,
				   made->bytes + made->len);
	for (size_t i = 0; i < len; i++)
		made->bytes[made->len++] = payload[i] ^ mask[i % 4];
}

/* Pongs at the end let wslay, which judges a head when it is whole, see every fault. */
static void make_stream(struct made *made)
{
	static const unsigned char pong[] = "\x8a\x80\0\0\0\0";
	bool inside = false;

	made->len = 0;
	for (size_t frames = dice_below(&made->dice, 10); frames > 0; frames--)
		make_frame(made, &inside);
	for (unsigned i = 0; i < 3; i++) {
		memcpy(made->bytes + made->len, pong, sizeof(pong) - 1);
		made->len += sizeof(pong) - 1;
	}
}

TEST(faulty_streams_get_the_verdicts_of_wslay)
{
	struct made made = { .dice = 1 };
	unsigned failures = 0;

	for (unsigned i = 0; i < STREAMS; i++) {
		uint32_t limit = i % 3 ? 0 : 200;
		struct wsreader reader;
		struct oracle oracle;
		char ours[256];
		char theirs[256];

		make_stream(&made);
		oracle = (struct oracle){ .bytes = made.bytes, .len = made.len };
		run_oracle(&oracle, limit);
		wsreader_init(&reader, limit, made.len);
		wsreader_feed(&reader, made.bytes, made.len);
		if (!wslist_is_same(&oracle.verdicts, &reader.verdicts))
			fail_msg("stream %u: %s, wslay has %s", i,
				 wslist_print(&reader.verdicts, ours, sizeof(ours)),
				 wslist_print(&oracle.verdicts, theirs, sizeof(theirs)));
		failures += reader.verdicts.count > 0 &&
			    reader.verdicts.items[reader.verdicts.count - 1].kind == 'f';
		wsreader_fini(&reader);
		wslist_fini(&oracle.verdicts);
	}
	assert_in_range(failures, STREAMS / 8, STREAMS - STREAMS / 8);
}
