/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket: checks and answers the handshake, and reads and writes frames. */
#include "transport/http/websocket.h"

#include "core/text/digest.h"
#include "core/text/encoding.h"
#include "timer/base.h"
#include "transport/http/request.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- the handshake
 *
 * Checks and answers the handshake of WebSocket. */

#define SWITCHING 101
#define BAD_REQUEST 400
#define UPGRADE_REQUIRED 426

#define KEY 24u /* bytes of Sec-WebSocket-Key: the base64 of 16 bytes */
#define KEY_BYTES 16u

static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */

/* Is it the canonical base64 of 16 bytes? */
static bool is_key(struct spoke_span key)
{
	char text[KEY];
	size_t len;

	if (key.len != KEY)
		return false;
	memcpy(text, key.data, KEY);
	return spokei_base64_read(text, KEY, &len) && len == KEY_BYTES;
}

int spokei_upgrade_check(const struct spokei_upgrade *request)
{
	if (!spokei_http_list_has(request->upgrade, "websocket"))
		return UPGRADE_REQUIRED;
	if (!spokei_http_list_has(request->connection, "upgrade") || request->version.data == NULL)
		return BAD_REQUEST;
	if (!spokei_span_is(request->version, "13"))
		return UPGRADE_REQUIRED;
	return is_key(request->key) ? SWITCHING : BAD_REQUEST;
}

bool spokei_upgrade_offers(const struct spokei_upgrade *request, const char *protocol)
{
	struct spoke_span field = request->protocols;
	struct spoke_span found;

	while (spokei_http_next_item(&field, &found)) {
		if (spokei_span_is(found, protocol))
			return true;
	}
	return false;
}

bool spokei_upgrade_accept(struct spoke_span key, char accept[SPOKEI_UPGRADE_ACCEPT])
{
	unsigned char salted[KEY + sizeof(salt)];
	unsigned char digest[SPOKEI_SHA1];

	if (!is_key(key))
		return false;
	memcpy(salted, key.data, KEY);
	memcpy(salted + KEY, salt, sizeof(salt));
	spokei_sha1(salted, sizeof(salted) - 1, digest); /* without the NUL */
	for (size_t i = 0; i < sizeof(digest); i += 3)
		spokei_base64_write(digest + i, sizeof(digest) - i, accept + i / 3 * 4);
	accept[SPOKEI_UPGRADE_ACCEPT - 1] = '\0';
	return true;
}

size_t spokei_upgrade_head(const struct spokei_upgrade *request, const char *protocol,
			   char head[SPOKEI_UPGRADE_HEAD_MAX])
{
	char accept[SPOKEI_UPGRADE_ACCEPT];
	bool is_valid = spokei_upgrade_accept(request->key, accept);
	int len;

	SPOKE_ASSERT(is_valid);
	SPOKE_ASSERT(protocol == NULL || (strlen(protocol) < SPOKEI_UPGRADE_PROTOCOL &&
					  spokei_upgrade_offers(request, protocol)));
	len = snprintf(head, SPOKEI_UPGRADE_HEAD_MAX,
		       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		       "Connection: Upgrade\r\nSec-WebSocket-Accept: %s%s%s\r\n\r\n",
		       accept, protocol ? "\r\nSec-WebSocket-Protocol: " : "",
		       protocol ? protocol : "");
	SPOKE_ASSERT(len > 0 && len < (int)SPOKEI_UPGRADE_HEAD_MAX);
	return (size_t)len;
}

/* --- frames
 *
 * Reads the frames of WebSocket clients part by part: the head byte by byte, the payload in
 * pieces. Payload is moved to the front of the bytes while it is unmasked, so that fragments meet
 * there, and each byte is moved once. */

#define FIN 0x80u
#define RESERVED 0x70u
#define OPCODE 0x0fu
#define MASKED 0x80u
#define LEN_16 126u          /* the length follows in 2 bytes */
#define LEN_64 127u          /* ... in 8 bytes */
#define UNLIMITED UINT32_MAX /* a length that needs 32 bits or more */

/* Parts of a frame, in their order. */
enum step {
	HEAD, /* FIN, reserved bits, opcode */
	LEN,  /* MASK, length or its form */
	LEN_OF_16,
	LEN_OF_64,
	MASK,
	PAYLOAD,
	ENDED, /* no more frames are read */
};

/* One call of spokei_websocket_read(). */
struct reading {
	struct spokei_websocket *websocket;
	struct spokei_websocket_input *input;
	struct spokei_websocket_event *event;
	uint32_t message_max;
};

static void end(struct spokei_websocket *websocket)
{
	*websocket = (struct spokei_websocket){ .step = ENDED };
}

static enum spokei_websocket_verdict fail(struct reading *reading, unsigned code,
					  const char *sentence)
{
	*reading->event = (struct spokei_websocket_event){
		.data = { sentence, strlen(sentence) },
		.code = (uint16_t)code,
		.answer = (uint16_t)code,
	};
	end(reading->websocket);
	return SPOKEI_WEBSOCKET_GIVES_FAILURE;
}

static enum spokei_websocket_verdict break_protocol(struct reading *reading, const char *sentence)
{
	return fail(reading, SPOKEI_WEBSOCKET_PROTOCOL, sentence);
}

static bool is_control(const struct spokei_websocket *websocket)
{
	return (websocket->head & OPCODE) >= SPOKEI_WEBSOCKET_OP_CLOSE;
}

static void go_to(struct spokei_websocket *websocket, enum step step)
{
	websocket->step = (uint8_t)step;
	websocket->at = 0;
}

static enum spokei_websocket_verdict read_head(struct reading *reading, unsigned byte)
{
	struct spokei_websocket *websocket = reading->websocket;
	unsigned opcode = byte & OPCODE;

	reading->input->frames++;
	websocket->head = (uint8_t)byte;
	if (byte & RESERVED)
		return break_protocol(reading, "a reserved bit is set");
	if (opcode > SPOKEI_WEBSOCKET_OP_PONG ||
	    (opcode > SPOKEI_WEBSOCKET_OP_BINARY && opcode < SPOKEI_WEBSOCKET_OP_CLOSE))
		return break_protocol(reading, "unknown opcode");
	if (is_control(websocket)) {
		if (!(byte & FIN))
			return break_protocol(reading, "a control frame is fragmented");
	} else if (opcode == SPOKEI_WEBSOCKET_OP_CONTINUATION) {
		if (!websocket->message)
			return break_protocol(reading, "a continuation continues no message");
	} else if (websocket->message) {
		return break_protocol(reading, "a message begins inside another");
	} else {
		websocket->message = (uint8_t)opcode;
	}
	go_to(websocket, LEN);
	return SPOKEI_WEBSOCKET_MORE;
}

/* The length of the frame is known. */
static enum spokei_websocket_verdict check_len(struct reading *reading)
{
	struct spokei_websocket *websocket = reading->websocket;

	if (!is_control(websocket) && (websocket->kept > reading->message_max ||
				       websocket->left > reading->message_max - websocket->kept))
		return fail(reading, SPOKEI_WEBSOCKET_TOO_BIG, "the message is too long");
	go_to(websocket, MASK);
	return SPOKEI_WEBSOCKET_MORE;
}

static enum spokei_websocket_verdict read_len(struct reading *reading, unsigned byte)
{
	struct spokei_websocket *websocket = reading->websocket;
	unsigned len = byte & ~MASKED;

	if (!(byte & MASKED))
		return break_protocol(reading, "a frame is not masked");
	if (is_control(websocket) && len > SPOKEI_WEBSOCKET_CONTROL_MAX)
		return break_protocol(reading, "a control frame is too long");
	if (len == LEN_16 || len == LEN_64) {
		websocket->left = 0;
		go_to(websocket, len == LEN_16 ? LEN_OF_16 : LEN_OF_64);
		return SPOKEI_WEBSOCKET_MORE;
	}
	websocket->left = len;
	return check_len(reading);
}

/* Reads one byte of a length of 2 or 8 bytes, the most significant first. */
static enum spokei_websocket_verdict read_long_len(struct reading *reading, unsigned byte)
{
	struct spokei_websocket *websocket = reading->websocket;
	bool is_short = websocket->step == LEN_OF_16;

	if (!is_short && websocket->at == 0 && byte >= 0x80)
		return break_protocol(reading, "a length has its top bit set");
	websocket->left = websocket->left >= 1u << 24 ? UNLIMITED : websocket->left << 8 | byte;
	if (++websocket->at < (is_short ? 2 : 8))
		return SPOKEI_WEBSOCKET_MORE;
	if (websocket->left < (is_short ? LEN_16 : 1u << 16))
		return break_protocol(reading, "a length is not in its shortest form");
	return check_len(reading);
}

static enum spokei_websocket_verdict read_mask(struct reading *reading, unsigned byte)
{
	struct spokei_websocket *websocket = reading->websocket;

	websocket->mask[websocket->at++] = (unsigned char)byte;
	if (websocket->at == sizeof(websocket->mask))
		go_to(websocket, PAYLOAD);
	return SPOKEI_WEBSOCKET_MORE;
}

static enum spokei_websocket_verdict read_byte(struct reading *reading)
{
	unsigned byte = reading->input->bytes[reading->input->at++];

	switch (reading->websocket->step) {
	case HEAD:
		return read_head(reading, byte);
	case LEN:
		return read_len(reading, byte);
	case MASK:
		return read_mask(reading, byte);
	default:
		return read_long_len(reading, byte);
	}
}

/* Unmasks bytes into the same place or one before them. Returns the mask's phase after them. */
static unsigned unmask(unsigned char *to, const unsigned char *from, size_t len,
		       const unsigned char mask[4], unsigned phase)
{
	unsigned char turned[sizeof(uint64_t)];
	uint64_t key;
	uint64_t word;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(turned); i++)
		turned[i] = mask[(phase + i) % 4];
	memcpy(&key, turned, sizeof(key));
	for (; len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, from + at, sizeof(word));
		word ^= key;
		memcpy(to + at, &word, sizeof(word));
	}
	for (; at < len; at++)
		to[at] = from[at] ^ turned[at % 4];
	return (unsigned)((phase + len) % 4);
}

/* Takes the payload that is there. */
static enum spokei_websocket_verdict join_payload(struct reading *reading)
{
	struct spokei_websocket *websocket = reading->websocket;
	struct spokei_websocket_input *input = reading->input;
	unsigned char *to = input->bytes + websocket->kept;
	size_t there = input->end - input->at;
	size_t len = there < websocket->left ? there : websocket->left;

	websocket->at = (uint8_t)unmask(to, input->bytes + input->at, len, websocket->mask,
					websocket->at);
	input->at += len;
	websocket->left -= (uint32_t)len;
	websocket->kept += (uint32_t)len;
	if (is_control(websocket))
		websocket->control = (uint8_t)(websocket->control + len);
	else if (websocket->message == SPOKEI_WEBSOCKET_OP_TEXT &&
		 spokei_utf8_run(&websocket->run, to, len) < len)
		return fail(reading, SPOKEI_WEBSOCKET_TEXT, "a text is not UTF-8");
	return SPOKEI_WEBSOCKET_MORE;
}

static enum spokei_websocket_verdict give_close(struct reading *reading, const unsigned char *data,
						size_t len)
{
	unsigned code = len < 2 ? SPOKEI_WEBSOCKET_NO_CODE : (unsigned)data[0] << 8 | data[1];

	if (len == 1 || (len > 1 && !spokei_websocket_is_code(code)))
		return break_protocol(reading, "a close frame has no valid code");
	if (len > 2 && !spokei_utf8_all(data + 2, len - 2))
		return fail(reading, SPOKEI_WEBSOCKET_TEXT, "a reason is not UTF-8");
	*reading->event = (struct spokei_websocket_event){
		.data = { len ? data + 2 : data, len ? len - 2 : 0 },
		.code = (uint16_t)code,
		.answer = (uint16_t)code,
	};
	end(reading->websocket);
	return SPOKEI_WEBSOCKET_GIVES_CLOSE;
}

/* A control frame is complete; its payload ends the kept bytes. */
static enum spokei_websocket_verdict give_control(struct reading *reading)
{
	struct spokei_websocket *websocket = reading->websocket;
	size_t len = websocket->control;
	const unsigned char *data;

	websocket->kept -= websocket->control;
	websocket->control = 0;
	data = reading->input->bytes + websocket->kept;
	if ((websocket->head & OPCODE) == SPOKEI_WEBSOCKET_OP_CLOSE)
		return give_close(reading, data, len);
	*reading->event = (struct spokei_websocket_event){ .data = { data, len } };
	return (websocket->head & OPCODE) == SPOKEI_WEBSOCKET_OP_PING ? SPOKEI_WEBSOCKET_GIVES_PING
								      : SPOKEI_WEBSOCKET_GIVES_PONG;
}

/* A message is complete: it is all that is kept. */
static enum spokei_websocket_verdict give_message(struct reading *reading)
{
	struct spokei_websocket *websocket = reading->websocket;
	bool has_text = websocket->message == SPOKEI_WEBSOCKET_OP_TEXT;

	if (!spokei_utf8_may_end(&websocket->run))
		return fail(reading, SPOKEI_WEBSOCKET_TEXT, "a text is not UTF-8");
	*reading->event = (struct spokei_websocket_event){
		.data = { reading->input->bytes, websocket->kept },
	};
	websocket->kept = 0;
	websocket->message = 0;
	return has_text ? SPOKEI_WEBSOCKET_GIVES_TEXT : SPOKEI_WEBSOCKET_GIVES_BINARY;
}

static enum spokei_websocket_verdict end_frame(struct reading *reading)
{
	struct spokei_websocket *websocket = reading->websocket;

	go_to(websocket, HEAD);
	if (is_control(websocket))
		return give_control(reading);
	return websocket->head & FIN ? give_message(reading) : SPOKEI_WEBSOCKET_MORE;
}

enum spokei_websocket_verdict spokei_websocket_read(struct spokei_websocket *websocket,
						    struct spokei_websocket_input *input,
						    uint32_t message_max,
						    struct spokei_websocket_event *ret_event)
{
	struct reading reading = { websocket, input, ret_event,
				   message_max ? message_max : SPOKEI_WEBSOCKET_MESSAGE_MAX };
	enum spokei_websocket_verdict verdict = SPOKEI_WEBSOCKET_MORE;

	SPOKE_ASSERT(message_max <= INT32_MAX);
	SPOKE_ASSERT(websocket->kept <= input->at && input->at <= input->end);
	if (websocket->step == ENDED)
		input->at = input->end;
	while (verdict == SPOKEI_WEBSOCKET_MORE && input->at < input->end) {
		verdict = websocket->step == PAYLOAD ? join_payload(&reading) : read_byte(&reading);
		if (websocket->step == PAYLOAD && websocket->left == 0)
			verdict = end_frame(&reading);
	}
	return verdict;
}

bool spokei_websocket_has_ended(const struct spokei_websocket *websocket)
{
	return websocket->step == ENDED;
}

bool spokei_websocket_is_code(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

size_t spokei_websocket_head(enum spokei_websocket_opcode opcode, uint64_t len,
			     unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX])
{
	unsigned size = len < LEN_16 ? 0 : len <= UINT16_MAX ? 2 : 8;

	head[0] = (unsigned char)(FIN | opcode);
	head[1] = (unsigned char)(size == 0 ? len : size == 2 ? LEN_16 : LEN_64);
	for (unsigned i = 0; i < size; i++)
		head[2 + i] = (unsigned char)(len >> 8 * (size - 1 - i));
	return 2 + size;
}

size_t spokei_websocket_control(enum spokei_websocket_opcode opcode, const void *data, size_t len,
				unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX])
{
	size_t head = spokei_websocket_head(opcode, len, frame);

	SPOKE_ASSERT(len <= SPOKEI_WEBSOCKET_CONTROL_MAX);
	if (len > 0)
		memcpy(frame + head, data, len);
	return head + len;
}

/* Returns the bytes of the reason that are valid and fit. */
static size_t measure_reason(const char *reason)
{
	size_t len = strlen(reason);
	size_t at = 0;

	while (at < len) {
		size_t size = spokei_utf8_len((const unsigned char *)reason + at, len - at);

		if (size == 0 || size > SPOKEI_WEBSOCKET_REASON_MAX - at)
			break;
		at += size;
	}
	return at;
}

size_t spokei_websocket_close(unsigned code, const char *reason,
			      unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX])
{
	unsigned char data[SPOKEI_WEBSOCKET_CONTROL_MAX] = { (unsigned char)(code >> 8),
							     (unsigned char)code };
	size_t len = reason ? measure_reason(reason) : 0;

	if (code == SPOKEI_WEBSOCKET_NO_CODE)
		return spokei_websocket_control(SPOKEI_WEBSOCKET_OP_CLOSE, NULL, 0, frame);
	SPOKE_ASSERT(spokei_websocket_is_code(code));
	if (len > 0)
		memcpy(data + 2, reason, len);
	return spokei_websocket_control(SPOKEI_WEBSOCKET_OP_CLOSE, data, 2 + len, frame);
}
