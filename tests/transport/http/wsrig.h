/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of WebSocket clients as data, a client's writer, and a caller of the reader that keeps
 * the bytes of incomplete messages.
 *
 * In websocket.tsv the sent stream is a list of frames, separated by spaces: "81:Hello" is a masked
 * frame with this first byte and payload. Before it "10x" repeats it; behind the first byte "/u"
 * leaves the mask out, "/16" and "/64" choose a form of the length. "=" begins bytes that are sent
 * as they are. A payload consists of parts, separated by "+": "*5" is five asterisks, "#c3a4" two
 * bytes, everything else text.
 *
 * The verdicts are "t:", "b:", "p:" and "o:" for text, binary, ping and pong, with their payload;
 * "c1000:" for a close with its reason; "f1002" for a failure, in "f1002@2" after two bytes; "-"
 * for none.
 */
#ifndef TESTS_TRANSPORT_HTTP_WSRIG_H
#define TESTS_TRANSPORT_HTTP_WSRIG_H

#include "transport/http/websocket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WS_HEAD_MAX 14u /* bytes of a client's head */

/* A verdict; payloads are compared by their length and hash. */
struct wsverdict {
	char kind;     /* t, b, p, o, c, f */
	unsigned code; /* of c and f */
	size_t len;
	uint64_t hash;
	size_t at; /* bytes of the stream before it; 0: not known */
};

struct wslist {
	struct wsverdict *items;
	size_t count;
	size_t room;
};

/* A row of websocket.tsv. */
struct wsrow {
	char id[48];
	uint32_t limit; /* 0: the default */
	unsigned char *sent;
	size_t len;
	struct wslist verdicts;
};

/* Reads the rows, one after the other, and returns their number. Fails the test on bad ones. */
size_t wsrows_each(void (*use)(const struct wsrow *row, void *arg), void *arg);

void wslist_add(struct wslist *list, char kind, unsigned code, const void *data, size_t len);
void wslist_fini(struct wslist *list);

/* Do the lists have the same verdicts, wherever they were given? */
bool wslist_is_same(const struct wslist *a, const struct wslist *b);

/* Prints a list for a message, cut to the room. */
const char *wslist_print(const struct wslist *list, char *out, size_t room);

/* Writes the head of a client's frame; `form` is the size of its length: 0, 2 or 8. Returns the
 * bytes of the head. */
size_t wsclient_head(unsigned first, uint64_t len, unsigned form, const unsigned char mask[4],
		     unsigned char out[WS_HEAD_MAX]);

/* Returns the shortest form for a length. */
unsigned wsclient_form(uint64_t len);

/* A caller of spokei_websocket_read(). Its bytes have exactly the room for the stream. */
struct wsreader {
	struct spokei_websocket websocket;
	uint32_t limit;
	unsigned char *bytes;
	size_t room;
	size_t fed;
	struct wslist verdicts;
};

void wsreader_init(struct wsreader *reader, uint32_t limit, size_t room);
void wsreader_feed(struct wsreader *reader, const unsigned char *bytes, size_t len);
void wsreader_fini(struct wsreader *reader);

#endif
