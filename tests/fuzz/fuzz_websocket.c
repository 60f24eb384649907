/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of WebSocket frames, by a model that reads the whole stream at once: the
 * verdicts must be the same for the whole stream, byte by byte, and in pieces. Then frames are
 * written around the same bytes, masked and fragmented, and must give them back.
 *
 * The first byte of an input chooses the limit of a message, the second one the pieces.
 */
#include "core/text/encoding.h"
#include "tests/fuzz/fuzz.h"
#include "transport/http/websocket.h"

#include <stdlib.h>
#include <string.h>

#define CONTROL_MAX 125u

/* All verdicts on a stream, folded into a number. */
struct trace {
	uint64_t sum;
	unsigned count;
};

struct stream {
	const uint8_t *bytes;
	size_t len;
	uint32_t limit;
};

static void fold(struct trace *trace, uint64_t number)
{
	trace->sum = (trace->sum ^ number) * 0x9e3779b97f4a7c15u;
	trace->sum ^= trace->sum >> 31;
}

static void note(struct trace *trace, enum spokei_websocket_verdict verdict, unsigned code,
		 const unsigned char *data, size_t len)
{
	trace->count++;
	fold(trace, verdict);
	fold(trace, code);
	fold(trace, len);
	for (size_t i = 0; i < len; i++)
		fold(trace, data[i]);
}

/* --- the model */

/* Can these one to three bytes begin a character? */
static int begins_character(const unsigned char *bytes, size_t len)
{
	static const unsigned char edges[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf };
	unsigned char tried[6];

	if (len > 3)
		return 0;
	memcpy(tried, bytes, len);
	memset(tried + len, 0x80, 3);
	for (size_t i = 0; i < sizeof(edges); i++) {
		tried[len] = edges[i];
		for (size_t size = len + 1; size <= 4; size++)
			if (spokei_utf8_len(tried, size) == size)
				return 1;
	}
	return 0;
}

/* Can a text begin with these bytes? `whole`: is it one? */
static int is_text(const unsigned char *bytes, size_t len, int whole)
{
	size_t at = 0;

	while (at < len) {
		size_t size = spokei_utf8_len(bytes + at, len - at);

		if (size == 0)
			return !whole && begins_character(bytes + at, len - at);
		at += size;
	}
	return 1;
}

struct model {
	const struct stream *stream;
	struct trace *trace;
	unsigned char *message;
	size_t held;
	size_t at;
	unsigned kind; /* opcode of the incomplete message */
};

static int model_fails(struct model *model, unsigned code)
{
	note(model->trace, SPOKEI_WEBSOCKET_GIVES_FAILURE, code, NULL, 0);
	return 0;
}

static int model_closes(struct model *model, const unsigned char *data, size_t len)
{
	unsigned code = len > 1 ? data[0] * 256u + data[1] : 1005;

	if (len == 1 || (len > 1 && (code < 1000 || (code > 1003 && code < 1007) ||
				     (code > 1014 && code < 3000) || code > 4999)))
		return model_fails(model, 1002);
	if (len > 2 && !is_text(data + 2, len - 2, 1))
		return model_fails(model, 1007);
	note(model->trace, SPOKEI_WEBSOCKET_GIVES_CLOSE, code, len > 2 ? data + 2 : data,
	     len > 2 ? len - 2 : 0);
	return 0;
}

static int model_control(struct model *model, unsigned opcode, size_t len, size_t there,
			 const unsigned char *mask)
{
	const uint8_t *bytes = model->stream->bytes + model->at;
	unsigned char data[CONTROL_MAX];

	if (there < len)
		return 0;
	for (size_t i = 0; i < len; i++)
		data[i] = bytes[i] ^ mask[i % 4];
	model->at += len;
	if (opcode == 8)
		return model_closes(model, data, len);
	note(model->trace, opcode == 9 ? SPOKEI_WEBSOCKET_GIVES_PING : SPOKEI_WEBSOCKET_GIVES_PONG,
	     0, data, len);
	return 1;
}

static int model_payload(struct model *model, unsigned first, size_t len, size_t there,
			 const unsigned char *mask)
{
	const uint8_t *bytes = model->stream->bytes + model->at;
	size_t taken = there < len ? there : len;

	for (size_t i = 0; i < taken; i++)
		model->message[model->held++] = bytes[i] ^ mask[i % 4];
	model->at += taken;
	if (model->kind == 1 && !is_text(model->message, model->held, 0))
		return model_fails(model, 1007);
	if (taken < len)
		return 0;
	if (!(first & 0x80))
		return 1;
	if (model->kind == 1 && !is_text(model->message, model->held, 1))
		return model_fails(model, 1007);
	note(model->trace,
	     model->kind == 1 ? SPOKEI_WEBSOCKET_GIVES_TEXT : SPOKEI_WEBSOCKET_GIVES_BINARY, 0,
	     model->message, model->held);
	model->held = 0;
	model->kind = 0;
	return 1;
}

/* Reads the length. Returns its bytes, or 0 if there are too few; a wrong one gives *ret_bad. */
static size_t model_len(const uint8_t *bytes, size_t there, uint64_t *ret_len, int *ret_bad)
{
	size_t form = (bytes[1] & 0x7f) == 126 ? 2 : (bytes[1] & 0x7f) == 127 ? 8 : 0;

	*ret_len = form ? 0 : bytes[1] & 0x7f;
	*ret_bad = form == 8 && there > 2 && bytes[2] >= 0x80;
	if (*ret_bad)
		return 10;
	if (there < 2 + form)
		return 0;
	for (size_t i = 0; i < form; i++)
		*ret_len = *ret_len << 8 | bytes[2 + i];
	*ret_bad = (form == 2 && *ret_len < 126) || (form == 8 && *ret_len < 65536);
	return 2 + form;
}

/* Reads one frame. Returns 0 at the end. */
static int model_frame(struct model *model)
{
	const uint8_t *bytes = model->stream->bytes + model->at;
	size_t there = model->stream->len - model->at;
	unsigned first = there > 0 ? bytes[0] : 0;
	unsigned opcode = first & 15;
	uint64_t len;
	size_t head;
	int bad;

	if (there == 0)
		return 0;
	if ((first & 0x70) || (opcode > 2 && opcode < 8) || opcode > 10 ||
	    (opcode >= 8 && first < 0x80) || (opcode == 0 && !model->kind) ||
	    ((opcode == 1 || opcode == 2) && model->kind))
		return model_fails(model, 1002);
	if (there < 2)
		return 0;
	if (bytes[1] < 0x80 || (opcode >= 8 && (bytes[1] & 0x7f) > CONTROL_MAX))
		return model_fails(model, 1002);
	head = model_len(bytes, there, &len, &bad);
	if (head == 0)
		return 0;
	if (bad)
		return model_fails(model, 1002);
	if (opcode < 8 && model->held + len > model->stream->limit)
		return model_fails(model, 1009);
	if (there < head + 4)
		return 0;
	model->at += head + 4;
	there -= head + 4;
	if (opcode >= 8)
		return model_control(model, opcode, (size_t)len, there, bytes + head);
	if (opcode > 0)
		model->kind = opcode;
	return model_payload(model, first, (size_t)len, there, bytes + head);
}

static struct trace run_model(const struct stream *stream)
{
	struct trace trace = { 0 };
	struct model model = { .stream = stream, .trace = &trace };

	model.message = malloc(stream->len + 1);
	demand(model.message != NULL, "there is memory");
	while (model_frame(&model))
		;
	free(model.message);
	return trace;
}

/* --- the reader */

static void check(const struct stream *stream, enum spokei_websocket_verdict verdict,
		  const struct spokei_websocket_event *event)
{
	size_t len = event->data.len;

	demand(verdict != SPOKEI_WEBSOCKET_GIVES_TEXT || is_text(event->data.data, len, 1),
	       "a text is UTF-8");
	demand((verdict != SPOKEI_WEBSOCKET_GIVES_TEXT &&
		verdict != SPOKEI_WEBSOCKET_GIVES_BINARY) ||
		       len <= stream->limit,
	       "a message keeps its limit");
	demand((verdict != SPOKEI_WEBSOCKET_GIVES_PING && verdict != SPOKEI_WEBSOCKET_GIVES_PONG) ||
		       len <= CONTROL_MAX,
	       "a control frame keeps its limit");
	demand((verdict != SPOKEI_WEBSOCKET_GIVES_CLOSE &&
		verdict != SPOKEI_WEBSOCKET_GIVES_FAILURE) ||
		       event->answer == 1005 || spokei_websocket_is_code(event->answer),
	       "an answer is a valid code");
}

/* Gives the reader the next piece, behind the bytes that were kept. */
static void feed(struct spokei_websocket *websocket, const struct stream *stream,
		 unsigned char *bytes, size_t len, struct trace *trace)
{
	struct spokei_websocket_input input = { .bytes = bytes, .at = websocket->kept };
	struct spokei_websocket_event event = { .code = 0 };
	enum spokei_websocket_verdict verdict;

	input.end = input.at + len;
	while ((verdict = spokei_websocket_read(websocket, &input, stream->limit, &event)) !=
	       SPOKEI_WEBSOCKET_MORE) {
		check(stream, verdict, &event);
		if (verdict == SPOKEI_WEBSOCKET_GIVES_FAILURE)
			event.data.len = 0;
		note(trace, verdict, event.code, event.data.data, event.data.len);
		demand(websocket->kept <= input.at && input.at <= input.end,
		       "the reader stays inside of its bytes");
	}
	demand(input.at == input.end, "all bytes are read");
	demand(websocket->kept <= stream->limit + CONTROL_MAX, "the kept bytes have a limit");
	demand(input.frames <= len, "a frame has a byte");
}

/* Reads a stream in pieces of up to `most` bytes; with a seed of 0 of exactly so many. `moves`:
 * each piece lies in a block of exactly the size that the reader needs. */
static struct trace run_reader(const struct stream *stream, size_t most, unsigned seed, int moves)
{
	struct spokei_websocket websocket = { 0 };
	struct trace trace = { 0 };
	unsigned char *block = malloc(stream->len + 1);

	demand(block != NULL, "there is memory");
	for (size_t at = 0; at < stream->len;) {
		size_t len = seed ? 1 + (seed >> 8) % most : most;

		len = len < stream->len - at ? len : stream->len - at;
		if (moves)
			block = realloc(block, websocket.kept + len);
		demand(block != NULL, "there is memory");
		memcpy(block + websocket.kept, stream->bytes + at, len);
		feed(&websocket, stream, block, len, &trace);
		at += len;
		seed = seed * 1103515245u + 12345u * (seed != 0);
	}
	free(block);
	return trace;
}

static void compare(struct trace found, struct trace expected, const char *law)
{
	demand(found.count == expected.count && found.sum == expected.sum, law);
}

/* --- the way back */

static size_t put_frame(unsigned char *out, unsigned first, const uint8_t *data, size_t len,
			const unsigned char mask[4])
{
	size_t at = spokei_websocket_head(SPOKEI_WEBSOCKET_OP_TEXT, len, out);

	out[0] = (unsigned char)first;
	out[1] |= 0x80;
	memcpy(out + at, mask, 4);
	at += 4;
	for (size_t i = 0; i < len; i++)
		out[at + i] = data[i] ^ mask[i % 4];
	return at + len;
}

/* Writes the bytes as a message of two fragments with a ping between; reads it in pieces. */
static void round_trip(const struct stream *stream, unsigned seed)
{
	const unsigned char mask[4] = { (unsigned char)seed, (unsigned char)(seed * 7),
					(unsigned char)(seed * 31), (unsigned char)(seed >> 3) };
	struct stream sent = { .limit = (uint32_t)stream->len + 1 };
	size_t cut = stream->len ? seed % (stream->len + 1) : 0;
	size_t ping = cut < CONTROL_MAX ? cut : CONTROL_MAX;
	unsigned char *out = malloc(stream->len + CONTROL_MAX + 3 * 14);
	struct trace expected = { 0 };

	demand(out != NULL, "there is memory");
	sent.bytes = out;
	sent.len = put_frame(out, 0x02, stream->bytes, cut, mask);
	sent.len += put_frame(out + sent.len, 0x89, stream->bytes, ping, mask);
	sent.len += put_frame(out + sent.len, 0x80, stream->bytes + cut, stream->len - cut, mask);
	note(&expected, SPOKEI_WEBSOCKET_GIVES_PING, 0, stream->bytes, ping);
	note(&expected, SPOKEI_WEBSOCKET_GIVES_BINARY, 0, stream->bytes, stream->len);
	compare(run_reader(&sent, 9, seed | 1, 0), expected, "a masked message is given back");
	free(out);
}

/* A close frame of a server has the code that it was given, and a reason of its beginning. */
static void write_close(const struct stream *stream)
{
	unsigned char frame[2 + CONTROL_MAX];
	char *reason = malloc(stream->len + 1);
	size_t len;

	demand(reason != NULL, "there is memory");
	if (stream->len > 0)
		memcpy(reason, stream->bytes, stream->len);
	reason[stream->len] = '\0';
	len = spokei_websocket_close(4000, reason, frame);
	demand(len >= 4 && len <= sizeof(frame) && frame[0] == 0x88 && frame[1] == len - 2,
	       "a close frame is whole");
	demand(frame[2] == 4000 / 256 && frame[3] == 4000 % 256, "a close frame has its code");
	demand(len - 4 <= strlen(reason) && memcmp(frame + 4, reason, len - 4) == 0 &&
		       is_text(frame + 4, len - 4, 1),
	       "a reason is the valid beginning of the text");
	free(reason);
}

FUZZ(websocket)
{
	static const uint32_t limits[] = { 16384, 1, 5, 125, 126, 200, 65536, 1u << 30 };
	struct stream stream = { .bytes = data + 2, .len = size - 2 };
	struct trace expected;

	if (size < 2)
		return 0;
	stream.limit = limits[data[0] % 8];
	expected = run_model(&stream);
	compare(run_reader(&stream, stream.len + 1, 0, 1), expected, "the whole gets its verdicts");
	compare(run_reader(&stream, 1, 0, 0), expected, "single bytes get the same verdicts");
	compare(run_reader(&stream, 17, data[1] * 2654435761u | 1, 1), expected,
		"pieces get the same verdicts");
	round_trip(&stream, data[1]);
	write_close(&stream);
	return 0;
}
