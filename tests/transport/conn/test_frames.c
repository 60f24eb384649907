/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public frame reader, on recorded traffic of real peers in pieces of any size, and on invalid
 * input.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/stream.h"

#include <spoke/frames.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STREAM_MAX = 1 << 17,
	LOG_MAX = 1 << 18,
	LINE_MAX_BYTES = 1 << 16,
	CODEC_MSGPACK = 27,
};

/* The frames of a golden file, concatenated. */
struct golden {
	unsigned char bytes[STREAM_MAX];
	size_t len;
	size_t count;
};

/* Loads the last column, in hexadecimal, of the rows whose first columns equal `begin`. */
static void load(struct golden *golden, const char *path, const char *begin)
{
	static char line[LINE_MAX_BYTES];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	memset(golden, 0, sizeof(*golden));
	while (fgets(line, sizeof(line), file)) {
		char *hex = strrchr(line, '\t');

		if (strncmp(line, begin, strlen(begin)) != 0 || hex == NULL)
			continue;
		hex[strcspn(hex, "\n")] = '\0';
		golden->len += hex_bytes(hex + 1, golden->bytes + golden->len,
					 sizeof(golden->bytes) - golden->len);
		golden->count++;
	}
	(void)fclose(file);
	assert_true(golden->count > 0);
}

struct reader {
	struct memory memory;
	struct spoke_frames *frames;
	char *log; /* a line per message */
	size_t log_len;
	size_t count;
	size_t bytes; /* total of the messages */
	int last;
};

static void reader_begin(struct reader *reader)
{
	memset(reader, 0, sizeof(*reader));
	memory_init(&reader->memory);
	assert_int_equal(spoke_frames_new(&reader->memory.env, &reader->frames), SPOKE_OK);
	reader->log = calloc(1, LOG_MAX);
	assert_non_null(reader->log);
}

static void reader_end(struct reader *reader)
{
	free(reader->log);
	spoke_frames_free(reader->frames);
	assert_int_equal(reader->memory.bytes, 0);
}

static size_t count_values(struct spoke_span span)
{
	struct spoke_cursor cursor;
	size_t count;

	assert_int_equal(spoke_values_check(span.data, span.len, NULL, &cursor, &count), SPOKE_OK);
	return count;
}

static void note(struct reader *reader, const struct spoke_frame *frame)
{
	char value[256] = "";

	if (frame->value.len > 0)
		(void)spoke_value_print((struct spoke_value){ frame->value.data, frame->value.len },
					value, sizeof(value));
	assert_int_equal(count_values(frame->args), frame->arg_count);
	assert_int_equal(count_values(frame->attachments), frame->attachments.len > 0);
	reader->log_len += (size_t)snprintf(
		reader->log + reader->log_len, LOG_MAX - reader->log_len,
		"%s %s %llu %zu %.*s/%.*s:%.*s.%.*s(%.*s) %zu %lld %s %.*s %.*s %d %d %s %d\n",
		frame->wire, spoke_frame_kind_name(frame->kind), (unsigned long long)frame->id,
		frame->bytes.len, (int)frame->group.len, (const char *)frame->group.data,
		(int)frame->version.len, (const char *)frame->version.data, (int)frame->service.len,
		(const char *)frame->service.data, (int)frame->method.len,
		(const char *)frame->method.data, (int)frame->types.len,
		(const char *)frame->types.data, frame->arg_count, (long long)frame->timeout_ms,
		value, (int)frame->text.len, (const char *)frame->text.data,
		(int)frame->error_class.len, (const char *)frame->error_class.data, frame->code,
		frame->status, spoke_errname(frame->error), frame->bad);
	reader->count++;
	reader->bytes += frame->bytes.len;
}

/* Feeds a copy that ends with its allocation, so that a sanitizer detects overruns. */
static void give(struct reader *reader, const unsigned char *bytes, size_t len)
{
	unsigned char *piece = malloc(len ? len : 1);
	struct spoke_frame frame;

	assert_non_null(piece);
	memcpy(piece, bytes, len);
	assert_int_equal(spoke_frames_feed(reader->frames, piece, len), SPOKE_OK);
	free(piece);
	while ((reader->last = spoke_frames_next(reader->frames, &frame)) == SPOKE_OK)
		note(reader, &frame);
}

/* Asserts that pieces of any fixed size give the same messages. */
static void same_in_pieces(const struct golden *golden, const char *log)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 15, 16, 17, 199, 1024, 65536 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct reader reader;

		reader_begin(&reader);
		for (size_t at = 0; at < golden->len; at += pieces[i])
			give(&reader, golden->bytes + at,
			     golden->len - at < pieces[i] ? golden->len - at : pieces[i]);
		assert_string_equal(reader.log, log);
		assert_int_equal(reader.bytes, golden->len);
		assert_int_equal(spoke_frames_waiting(reader.frames), 0);
		reader_end(&reader);
	}
}

TEST(frames_of_dubbo_are_read)
{
	static struct golden golden;
	struct reader reader;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-");
	reader_begin(&reader);
	give(&reader, golden.bytes, golden.len);
	assert_int_equal(reader.count, golden.count);
	assert_int_equal(reader.bytes, golden.len);
	assert_int_equal(reader.last, SPOKE_ETRUNCATED);
	assert_non_null(strstr(reader.log, "dubbo request 0 215 /:spoke.interop.EchoService.echo("
					   "Ljava/lang/String;) 1"));
	assert_non_null(strstr(reader.log, "dubbo oneway "));
	assert_non_null(strstr(reader.log, "dubbo heartbeat "));
	assert_non_null(strstr(reader.log, "dubbo heartbeat-answer "));
	assert_non_null(strstr(reader.log, "dubbo readonly "));
	assert_non_null(strstr(reader.log, " 100 ")); /* the status of a busy provider */
	same_in_pieces(&golden, reader.log);
	reader_end(&reader);
}

/* Frames of Java in its own serialization, with their values. */
TEST(frames_of_hessian2_show_their_values)
{
	static struct golden golden;
	struct reader reader;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-2.7-hessian2-");
	reader_begin(&reader);
	give(&reader, golden.bytes, golden.len);
	assert_int_equal(reader.count, golden.count);
	assert_null(strstr(reader.log, " 1\n")); /* a bad body */
	assert_non_null(
		strstr(reader.log, "dubbo request 4 186 /:spoke.interop.EchoService.sum(II) 2"));
	assert_non_null(strstr(reader.log, " [4000000000, true, null, 3.5, \"two\", 1] "));
	assert_non_null(strstr(reader.log, " date(2023-11-15T22:13:20Z) "));
	/* The friend of this user is the user. */
	assert_non_null(strstr(reader.log, " {\"friend\": null, \"score\": 1.5, \"active\": true, "
					   "\"name\": \"ann\", \"id\": 8, "
					   "\"class\": \"spoke.interop.User\"} "));
	assert_non_null(strstr(reader.log, " thread pool is exhausted, "));
	same_in_pieces(&golden, reader.log);
	reader_end(&reader);
}

TEST(frames_of_neovim_are_read)
{
	static struct golden golden;
	struct reader reader;

	load(&golden, SPOKE_GOLDEN "/msgpack-rpc.tsv", "client\tfrom-neovim");
	reader_begin(&reader);
	give(&reader, golden.bytes, golden.len);
	assert_int_equal(reader.count, golden.count);
	assert_non_null(strstr(reader.log, "msgpack-rpc request 1 16 /:.echo() 1"));
	same_in_pieces(&golden, reader.log);
	reader_end(&reader);
}

TEST(every_cut_of_two_frames_gives_them)
{
	static struct golden golden;
	struct reader whole;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-");
	golden.len = 264; /* a request and its reply */
	reader_begin(&whole);
	give(&whole, golden.bytes, golden.len);
	assert_int_equal(whole.count, 2);
	for (size_t cut = 0; cut <= golden.len; cut++) {
		struct reader reader;

		reader_begin(&reader);
		give(&reader, golden.bytes, cut);
		assert_int_equal(spoke_frames_waiting(reader.frames) + reader.bytes, cut);
		give(&reader, golden.bytes + cut, golden.len - cut);
		assert_string_equal(reader.log, whole.log);
		reader_end(&reader);
	}
	reader_end(&whole);
}

TEST(broken_stream_returns_its_error_again)
{
	static struct golden golden;
	struct reader reader;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-");
	reader_begin(&reader);
	give(&reader, golden.bytes, 215);
	give(&reader, (const unsigned char *)"GET / HTTP/1.1\r\n\r\n", 18);
	assert_int_equal(reader.last, SPOKE_EPROTOCOL);
	assert_int_equal(reader.count, 1);
	for (int i = 0; i < 200; i++) {
		give(&reader, golden.bytes, golden.len);
		assert_int_equal(reader.last, SPOKE_EPROTOCOL);
	}
	assert_int_equal(reader.count, 1);
	assert_int_equal(spoke_frames_waiting(reader.frames), 0);
	reader_end(&reader);
}

TEST(a_bad_body_is_shown_and_the_next_message_read)
{
	static const unsigned char bad[] = { 0xda, 0xbb, 0xdb, 0, 0, 0, 0, 0,    0,
					     0,    0,    9,    0, 0, 0, 2, 0xc1, 0xc1 };
	static struct golden golden;
	struct spoke_frame frame;
	struct reader reader;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-");
	reader_begin(&reader);
	assert_int_equal(spoke_frames_feed(reader.frames, bad, sizeof(bad)), SPOKE_OK);
	assert_int_equal(spoke_frames_feed(reader.frames, golden.bytes, 215), SPOKE_OK);
	assert_int_equal(spoke_frames_next(reader.frames, &frame), SPOKE_OK);
	assert_true(frame.bad);
	assert_int_equal(frame.error, SPOKE_ECORRUPT);
	assert_int_equal(frame.id, 9);
	assert_int_equal(frame.codec, CODEC_MSGPACK);
	assert_int_equal(frame.bytes.len, sizeof(bad));
	assert_memory_equal(frame.bytes.data, bad, sizeof(bad));
	assert_int_equal(spoke_frames_next(reader.frames, &frame), SPOKE_OK);
	assert_false(frame.bad);
	assert_memory_equal(frame.bytes.data, golden.bytes, 215);
	reader_end(&reader);
}

TEST(more_than_one_may_hold_unread_is_refused)
{
	static const unsigned char zeroes[1 << 20];
	struct reader reader;

	reader_begin(&reader);
	for (int i = 0; i < 8; i++)
		assert_int_equal(spoke_frames_feed(reader.frames, zeroes, sizeof(zeroes)),
				 SPOKE_OK);
	assert_int_equal(spoke_frames_feed(reader.frames, zeroes, 1), SPOKE_ETOOLARGE);
	assert_int_equal(spoke_frames_waiting(reader.frames), 8 << 20);
	reader_end(&reader);
}

TEST(without_memory_nothing_is_lost_or_leaks)
{
	static struct golden golden;
	struct memory memory;
	int result;

	load(&golden, SPOKE_GOLDEN "/dubbo-frames.tsv", "dubbo-");
	for (unsigned at = 1;; at++) {
		struct spoke_frames *frames = NULL;
		struct spoke_frame frame;

		memory_init(&memory);
		memory.fail_at = at;
		result = spoke_frames_new(&memory.env, &frames);
		for (size_t i = 0; result == SPOKE_OK && i < 2000; i += 100) {
			result = spoke_frames_feed(frames, golden.bytes + i, 100);
			while (result == SPOKE_OK)
				result = spoke_frames_next(frames, &frame);
			if (result == SPOKE_ETRUNCATED)
				result = SPOKE_OK;
		}
		spoke_frames_free(frames);
		assert_int_equal(memory.bytes, 0);
		if (result == SPOKE_OK)
			break;
		assert_int_equal(result, SPOKE_ENOMEM);
	}
}

/* A client that waits for status 100 has sent no message yet. */
TEST(http_requests_are_read)
{
	static const char requests[] =
		"POST /demo.Echo/echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
		"Content-Length: 3\r\n\r\n[1]OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"POST /demo.Echo/echo HTTP/1.1\r\nHost: localhost\r\n"
		"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n[2]";
	static struct golden golden;
	struct reader whole;

	memcpy(golden.bytes, requests, sizeof(requests) - 1);
	golden.len = sizeof(requests) - 1;
	reader_begin(&whole);
	give(&whole, golden.bytes, golden.len);
	assert_int_equal(whole.count, 3);
	assert_non_null(strstr(whole.log, "demo.Echo"));
	same_in_pieces(&golden, whole.log);
	reader_end(&whole);
}

#define HEAD(status, len) "HTTP/1.1 " status "\r\nX: y\r\nContent-Length: " len "\r\n\r\n"

/* Reads requests, and then the replies to them in pieces of this size. */
static void read_both(const char *requests, const char *replies, size_t piece,
		      struct reader *ret_reader)
{
	struct reader asker;

	reader_begin(&asker);
	reader_begin(ret_reader);
	spoke_frames_pair(asker.frames, ret_reader->frames);
	give(&asker, (const unsigned char *)requests, strlen(requests));
	for (size_t at = 0; at < strlen(replies); at += piece)
		give(ret_reader, (const unsigned char *)replies + at,
		     strlen(replies) - at < piece ? strlen(replies) - at : piece);
	reader_end(&asker);
}

TEST(http_replies_are_read_in_any_pieces)
{
	static const char requests[] = "POST /a/b HTTP/1.1\r\nHost: localhost\r\n\r\n"
				       "HEAD /a/b HTTP/1.1\r\nHost: localhost\r\n\r\n"
				       "GET /a/b HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char replies[] = HEAD("200 OK", "4") "[1]\n" HEAD(
		"200 OK",
		"4") "HTTP/1.1 100 Continue\r\n\r\n" HEAD("500 No",
							  "61") "{\"error\":\"EREFUSED\",\"code\":"
								"7,\"text\":\"no\","
								"\"written\":true}    \n"
								"HTTP/1.1 200 "
								"OK\r\nspoke-attachment-a: "
								"b\r\nTransfer-Encoding: "
								"chunked\r\n\r\n"
								"3\r\n{\"a\r\n1;"
								"x\r\n\"\r\n0\r\n\r\n"
								"HTTP/1.1 204\r\n\r\n" HEAD(
									"404 ", "1") "\xff";
	static const char expected[] = "http reply 1 48 /:.() 0 0 [1]   0 200 OK 0\n"
				       "http reply 2 44 /:.() 0 0    0 200 OK 0\n"
				       "http event 3 25 /:.() 0 0    0 100 OK 0\n"
				       "http reply 3 106 /:.() 0 0  no  7 500 EREFUSED 0\n"
				       "http reply 4 91 /:.() 0 0 \"{\\\"a\\\"\"   0 200 OK 0\n"
				       "http reply 5 16 /:.() 0 0    0 204 OK 0\n"
				       "http reply 6 43 /:.() 0 0 bin(ff)   0 404 EREMOTE 0\n";

	for (size_t piece = 1; piece <= sizeof(replies); piece++) {
		struct reader reader;

		read_both(requests, replies, piece, &reader);
		assert_string_equal(reader.log, expected);
		assert_int_equal(reader.bytes, sizeof(replies) - 1);
		reader_end(&reader);
	}
}

TEST(http_reply_without_end_breaks_the_stream)
{
	static const char *const replies[] = {
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n" HEAD("200", "1"),
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n1",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n1",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81",
	};

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		struct reader reader;

		read_both("", replies[i], SIZE_MAX, &reader);
		if (reader.last != SPOKE_EPROTOCOL)
			fail_msg("%s: %s", replies[i], spoke_errname(reader.last));
		reader_end(&reader);
	}
}

TEST(every_kind_has_a_name)
{
	for (int kind = 0; kind <= SPOKE_FRAME_CANCEL; kind++)
		assert_non_null(spoke_frame_kind_name((enum spoke_frame_kind)kind));
	assert_null(spoke_frame_kind_name((enum spoke_frame_kind)(SPOKE_FRAME_CANCEL + 1)));
}
