/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of WebSocket (RFC 6455): the handshake, and frames. Pure; any thread. */
#ifndef SPOKEI_TRANSPORT_HTTP_WEBSOCKET_H
#define SPOKEI_TRANSPORT_HTTP_WEBSOCKET_H

#include "core/text/encoding.h"

#include <spoke/value.h>

#include <stdbool.h>
#include <stdint.h>

/* --- the handshake
 *
 * The handshake of WebSocket (RFC 6455, section 4), from the server's side: checks the fields of a
 * request, and writes the head that answers it. Origin and Host are checked by `guard`. Extensions
 * are never accepted: the window of permessage-deflate would cost 64 KB for each connection. Pure;
 * any thread. */

#define SPOKEI_UPGRADE_ACCEPT 29u    /* bytes of Sec-WebSocket-Accept, with the NUL */
#define SPOKEI_UPGRADE_PROTOCOL 64u  /* bytes of a subprotocol's name, at most */
#define SPOKEI_UPGRADE_HEAD_MAX 256u /* bytes of the head that accepts, at most */

/* The fields of a request; an absent field has NULL for data. A field that occurred more than once
 * has its values joined by ", ", except for `key` and `version`, which may occur only once. */
struct spokei_upgrade {
	struct spoke_span upgrade;    /* Upgrade */
	struct spoke_span connection; /* Connection */
	struct spoke_span key;        /* Sec-WebSocket-Key */
	struct spoke_span version;    /* Sec-WebSocket-Version */
	struct spoke_span protocols;  /* Sec-WebSocket-Protocol */
};

/*
 * Checks the fields of a GET request. Returns 101, or the status to reject it with: 400 (a field is
 * wrong or missing), or 426 (this is no upgrade to WebSocket, or another version than 13; the
 * answer must have the fields "Upgrade: websocket" and "Sec-WebSocket-Version: 13").
 */
int spokei_upgrade_check(const struct spokei_upgrade *request);

/* Returns whether the client has offered this subprotocol. Names are compared with their case. */
bool spokei_upgrade_offers(const struct spokei_upgrade *request, const char *protocol);

/* Writes the value of Sec-WebSocket-Accept for a key, with a NUL. Returns false if the key is not
 * the base64 of 16 bytes; `accept` is unchanged then. */
bool spokei_upgrade_accept(struct spoke_span key, char accept[SPOKEI_UPGRADE_ACCEPT]);

/*
 * Writes the head of the response that accepts a checked request; returns its bytes, without a NUL.
 * `protocol`, an HTTP token below SPOKEI_UPGRADE_PROTOCOL bytes, must be one that the client has
 * offered, or NULL. Chromium ends a connection whose subprotocol was asked for and not chosen.
 */
size_t spokei_upgrade_head(const struct spokei_upgrade *request, const char *protocol,
			   char head[SPOKEI_UPGRADE_HEAD_MAX]);

/* --- frames
 *
 * The frames of WebSocket (RFC 6455, section 5), from the server's side: a reader of the frames of
 * a client, and writers of the frames of a server. The reader checks every rule of the protocol at
 * the first byte that breaks it. Its verdicts do not depend on how the bytes were cut. No
 * extension, so all reserved bits must be 0.
 *
 * A connection has one struct spokei_websocket, which holds no memory. The bytes of an incomplete
 * message are kept by the caller, in a buffer of its choice. Pure; any thread. */

#define SPOKEI_WEBSOCKET_MESSAGE_MAX 16384u /* bytes of a message: the default */
#define SPOKEI_WEBSOCKET_HEAD_MAX 10u       /* bytes of the head of a server's frame */
#define SPOKEI_WEBSOCKET_CONTROL_MAX 125u   /* payload bytes of a control frame */
#define SPOKEI_WEBSOCKET_REASON_MAX 123u    /* bytes of the reason of a close */

/* Close codes that spoke uses itself. */
#define SPOKEI_WEBSOCKET_NORMAL 1000u
#define SPOKEI_WEBSOCKET_AWAY 1001u
#define SPOKEI_WEBSOCKET_PROTOCOL 1002u /* the client broke the protocol */
#define SPOKEI_WEBSOCKET_NO_CODE 1005u  /* is never sent: a close frame without a code */
#define SPOKEI_WEBSOCKET_TEXT 1007u     /* a text or a reason is not UTF-8 */
#define SPOKEI_WEBSOCKET_TOO_BIG 1009u
#define SPOKEI_WEBSOCKET_RESTART 1012u
#define SPOKEI_WEBSOCKET_LATER 1013u

/* Opcodes of frames. */
enum spokei_websocket_opcode {
	SPOKEI_WEBSOCKET_OP_CONTINUATION = 0,
	SPOKEI_WEBSOCKET_OP_TEXT = 1,
	SPOKEI_WEBSOCKET_OP_BINARY = 2,
	SPOKEI_WEBSOCKET_OP_CLOSE = 8,
	SPOKEI_WEBSOCKET_OP_PING = 9,
	SPOKEI_WEBSOCKET_OP_PONG = 10,
};

/* The state of the reader of one connection: 20 bytes. Zero-initialised: at the start of the first
 * frame. Only `kept` is for the caller to read. */
struct spokei_websocket {
	uint32_t kept;              /* bytes of incomplete messages that the caller keeps */
	uint32_t left;              /* of the frame: length so far, then payload to come */
	unsigned char mask[4];      /* of the frame */
	uint8_t step;               /* the part of the frame that comes next */
	uint8_t at;                 /* bytes of this part that have come; the phase of the mask */
	uint8_t head;               /* first byte of the frame */
	uint8_t control;            /* bytes of a control frame, at the end of the kept ones */
	uint8_t message;            /* opcode of the incomplete message; 0: none */
	struct spokei_utf8_run run; /* of the incomplete text */
};

/*
 * Bytes of a connection: bytes[0 .. kept) are those that the caller kept, and bytes[at .. end) have
 * come since; kept <= at. The reader advances `at`, and moves payload to the front while it unmasks
 * it. It never writes at or beyond `at`.
 * `kept` is at most the limit of a message and SPOKEI_WEBSOCKET_CONTROL_MAX more.
 */
struct spokei_websocket_input {
	unsigned char *bytes;
	size_t at;
	size_t end;
	uint32_t frames; /* incremented for each frame that begins; for limits on their rate */
};

enum spokei_websocket_verdict {
	SPOKEI_WEBSOCKET_MORE,          /* all bytes are read: keep the first `kept` of them */
	SPOKEI_WEBSOCKET_GIVES_TEXT,    /* `data` is a message, valid UTF-8 */
	SPOKEI_WEBSOCKET_GIVES_BINARY,  /* `data` is a message */
	SPOKEI_WEBSOCKET_GIVES_PING,    /* answer with a pong that has the same `data` */
	SPOKEI_WEBSOCKET_GIVES_PONG,    /* nothing has to be done */
	SPOKEI_WEBSOCKET_GIVES_CLOSE,   /* `code`, reason `data`: answer with `answer`, and end */
	SPOKEI_WEBSOCKET_GIVES_FAILURE, /* answer with `answer` and the sentence `data` */
};

struct spokei_websocket_event {
	struct spoke_span data; /* valid until the next call with this input */
	uint16_t code;          /* of a close: 1005 if the frame has none; of a failure */
	uint16_t answer;        /* of both: the code for spokei_websocket_close() */
};

/*
 * Reads up to the next verdict; call it until it returns MORE. `message_max` limits the bytes of a
 * message, fragments included; beyond, the failure is 1009, as soon as a head announces it. 0 is
 * the default. A message that arrives between fragments of another is a failure; control frames may
 * arrive there. *ret_event is written for all verdicts but MORE.
 *
 * CLOSE and FAILURE are final: from then on all bytes are dropped, and the verdict is MORE.
 */
enum spokei_websocket_verdict spokei_websocket_read(struct spokei_websocket *websocket,
						    struct spokei_websocket_input *input,
						    uint32_t message_max,
						    struct spokei_websocket_event *ret_event);

/* Returns whether CLOSE or FAILURE was the verdict, so that nothing more will be read. */
bool spokei_websocket_has_ended(const struct spokei_websocket *websocket);

/* Returns whether a frame may carry this close code: 1000-1003, 1007-1014, 3000-4999. */
bool spokei_websocket_is_code(unsigned code);

/* Writes the head of an unfragmented, unmasked frame with `len` bytes of payload; returns the bytes
 * of the head, 2 to 10. The payload follows it. */
size_t spokei_websocket_head(enum spokei_websocket_opcode opcode, uint64_t len,
			     unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX]);

/* Writes a whole ping or pong; returns its bytes. `len` is at most SPOKEI_WEBSOCKET_CONTROL_MAX. */
size_t spokei_websocket_control(enum spokei_websocket_opcode opcode, const void *data, size_t len,
				unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX]);

/*
 * Writes a whole close frame; returns its bytes. `code` is one that spokei_websocket_is_code()
 * accepts, or SPOKEI_WEBSOCKET_NO_CODE for a frame without a code and reason. The reason may be
 * NULL. It ends before its first invalid character, or the first one that does not fit.
 */
size_t spokei_websocket_close(unsigned code, const char *reason,
			      unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX]);

#endif
