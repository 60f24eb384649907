/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a ClientHello in the records of TLS. */
#include "transport/stream/tls/hello.h"

enum {
	RECORD_HEAD = 5,  /* type, version in two bytes, length in two bytes */
	HANDSHAKE = 0x16, /* type of the record */
	MAJOR = 3,        /* first byte of the version */
	MESSAGE_HEAD = 4, /* type, length in three bytes */
	CLIENT_HELLO = 1, /* type of the message */
	RECORD_MAX = 16384,
};

/* The part of the message that has come so far: its head, and how many bytes of it. */
struct message {
	unsigned char head[MESSAGE_HEAD];
	size_t len;
};

static void add(struct message *message, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len && message->len + i < MESSAGE_HEAD; i++)
		message->head[message->len + i] = bytes[i];
	message->len += len;
}

static enum spokei_hello judge(const struct message *message)
{
	const unsigned char *head = message->head;
	size_t len;

	if (message->len > 0 && head[0] != CLIENT_HELLO)
		return SPOKEI_HELLO_BROKEN;
	if (message->len < MESSAGE_HEAD)
		return SPOKEI_HELLO_MORE;
	len = (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (len > SPOKEI_HELLO_MAX)
		return SPOKEI_HELLO_BROKEN;
	return message->len < MESSAGE_HEAD + len ? SPOKEI_HELLO_MORE : SPOKEI_HELLO_WHOLE;
}

enum spokei_hello spokei_hello_judge(struct spoke_span bytes)
{
	const unsigned char *at = bytes.data;
	size_t left = bytes.len;
	struct message message = { .len = 0 };

	if (left > 0 && at[0] != HANDSHAKE)
		return SPOKEI_HELLO_PLAIN;
	for (unsigned records = 0; left > 0; records++) {
		enum spokei_hello verdict;
		size_t len;

		if (at[0] != HANDSHAKE || (left > 1 && at[1] != MAJOR) ||
		    records == SPOKEI_HELLO_RECORDS)
			return SPOKEI_HELLO_BROKEN;
		if (left < RECORD_HEAD)
			return SPOKEI_HELLO_MORE;
		len = (size_t)at[3] << 8 | at[4];
		if (len == 0 || len > RECORD_MAX)
			return SPOKEI_HELLO_BROKEN;
		at += RECORD_HEAD;
		left -= RECORD_HEAD;
		if (len > left)
			len = left;
		add(&message, at, len);
		verdict = judge(&message);
		if (verdict != SPOKEI_HELLO_MORE)
			return verdict;
		at += len;
		left -= len;
	}
	return SPOKEI_HELLO_MORE;
}
