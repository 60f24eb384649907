/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to begin with: each uses what makes few bytes into much work. */
#include "tests/bench/hostile/hostile.h"

#include <string.h>

#define BODIES 900u /* bytes to which pieces are repeated */

/* The names before the arguments, in Hessian 2 and in msgpack. */
#define TAKE "\0052.0.2\011demo.EchoN\004take\022Ljava/lang/Object;"
#define TAKE_PACKED                                                                                \
	"\xa5"                                                                                     \
	"2.0.2\xa9"                                                                                \
	"demo.Echo\xc0\xa4"                                                                        \
	"take\xb2Ljava/lang/Object;"

/* A frame of `head`, `piece` until it is long enough, and `tail`. */
static const struct seed {
	const char *name;
	unsigned flags; /* of the head of Dubbo; 0: MessagePack-RPC; 1: HTTP */
	const char *head;
	size_t head_len;
	const char *piece;
	size_t piece_len;
	const char *tail;
	size_t tail_len;
} seeds[] = {
#define SEED(name, flags, head, piece, tail)                                                       \
	{                                                                                          \
		name, flags, head, sizeof(head) - 1, piece, sizeof(piece) - 1, tail,               \
			sizeof(tail) - 1                                                           \
	}
#define HESSIAN(name, head, piece, tail) SEED(name, 0xc2, TAKE head, piece, tail)
#define PACKED(name, head, piece, tail) SEED(name, 0xdb, TAKE_PACKED head, piece, tail)
	HESSIAN("references", "\x57\x7a\x78\x78", "Q\x92", "ZHZ"),
	HESSIAN("references-7", "\x57\x7fNNNNNNN", "Q\x91", "ZHZ"),
	HESSIAN("objects",
		"\x57"
		"C\001x\x91\001a",
		"`N", "ZHZ"),
	HESSIAN("fields-9",
		"\x57"
		"C\001x\x99\001a\001b\001c\001d\001e\001f\001g\001h\001i",
		"`NNNNNNNNN", "ZHZ"),
	HESSIAN("fields-long",
		"\x57"
		"C\001x\x91\037aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"`N", "ZHZ"),
	HESSIAN("chunked-names",
		"\x57"
		"C\001x\x91R\000\001aR\000\001bR\000\001c\001d",
		"`N", "ZHZ"),
	HESSIAN("empty-objects",
		"\x57"
		"C\001x\x90",
		"`", "ZHZ"),
	HESSIAN("classes", "\x57", "C\001x\x90`", "ZHZ"),
	HESSIAN("lists", "\x57", "\x78", "ZHZ"),
	HESSIAN("typed-lists", "\x57\x70\001a", "\x70\x90", "ZHZ"),
	HESSIAN("types", "\x57", "\x70\001a", "ZHZ"),
	HESSIAN("typed-maps", "\x57M\001aZ", "M\x90Z", "ZHZ"),
	HESSIAN("maps", "\x57", "HZ", "ZHZ"),
	HESSIAN("deep", "", "\x79\x79\x79\x79\x79\x79\x79", "NHZ"),
	HESSIAN("ints", "\x57", "\x91", "ZHZ"),
	HESSIAN("longs", "\x57", "\xd8\x01", "ZHZ"),
	HESSIAN("doubles", "\x57", "\x5e\x00\x01", "ZHZ"),
	HESSIAN("dates", "\x57", "\x4b\x00\x00\x00\x01", "ZHZ"),
	HESSIAN("texts", "\x57", "\001a", "ZHZ"),
	HESSIAN("empty-texts", "\x57", "\000", "ZHZ"),
	HESSIAN("chunks", "", "R\000\001a", "\001bHZ"),
	HESSIAN("empty-chunks", "", "R\000\000", "\001bHZ"),
	HESSIAN("binary-chunks", "", "A\000\001a",
		"\x21"
		"bHZ"),
	HESSIAN("surrogates", "\x57", "\002\xed\xa0\x80\xed\xb0\x80", "ZHZ"),
	HESSIAN("attachments", "NH", "\001aN", "Z"),
	HESSIAN("arguments", "", "N", "HZ"),
	SEED("generic", 0xc2,
	     "\0052.0.2\011demo.EchoN\007$invoke\017Ljava/lang/Object;\004takeN\x57", "N",
	     "ZH\007generic\004trueZ"),
	SEED("no-service", 0xc2, "\0052.0.2\001xN\001y\000", "", "HZ"),
	SEED("undecodable", 0xc2, "\xc1", "", ""),
	SEED("one-way", 0x82, TAKE "N", "", "HZ"),
	SEED("heartbeat", 0xe2, "N", "", ""),
	SEED("heartbeat-long", 0xe2, "\x57", "\x78", "Z"),
	SEED("readonly", 0xa2, "R", "", ""),
	SEED("codec-9", 0xc9, "\xc0", "", ""),
	SEED("reply", 0x02, "\x91N", "", ""),
	PACKED("packed-arrays", "\xdc\x02\x00", "\x90", "\x80"),
	PACKED("packed-deep", "", "\x91", "\xc0\x80"),
	PACKED("packed-ints", "", "\x01", "\x80"),
	PACKED("packed-maps", "\xdc\x02\x00", "\x81\x01\x01", "\x80"),
	PACKED("packed-exts", "", "\xd4\x05\x01", "\x80"),
	PACKED("packed-attachments", "\xc0\xde\x00\xc8",
	       "\xa1"
	       "a\xc0",
	       ""),
	SEED("packed-no-service", 0xdb,
	     "\xa5"
	     "2.0.2\xa1x\xc0\xa1y\xa0",
	     "", "\x80"),
	SEED("mprpc", 0,
	     "\x94\x00\x01\xa4"
	     "take\x91\xdc\x03\x80",
	     "\x01", ""),
	SEED("mprpc-none", 0, "\x94\x00\x01\xa1x\x90", "", ""),
	SEED("mprpc-note", 0, "\x93\x02\xa1x\x90", "", ""),
#define LINES " HTTP/1.1\r\nHost: [::1]\r\n"
#define POST "POST /demo.Echo/take" LINES "Content-Length: 0000\r\n\r\n"
	SEED("http-get", 1, "GET /", "", LINES "\r\n"),
	SEED("http-options", 1, "OPTIONS /demo.Echo/take", "", LINES "\r\n"),
	SEED("http-lines", 1, "GET /" LINES, "a:\r\n", "\r\n"),
	SEED("http-attachments", 1, "POST /demo.Echo/take" LINES, "Spoke-Attachment-a: b\r\n",
	     "Content-Length: 0000\r\n\r\n[1]"),
	SEED("http-query", 1, "GET /demo.Echo/take?a=1", "&a=1", LINES "\r\n"),
	SEED("http-escapes", 1, "GET /demo.Echo/", "%41", LINES "\r\n"),
	SEED("http-chunks", 1,
	     "POST /demo.Echo/take" LINES "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
	     "1\r\n \r\n", "1\r\n]\r\n0\r\n\r\n"),
	SEED("json-ints", 1, POST "[[", "1,", "1]]"),
	SEED("json-arrays", 1, POST "[[", "[],", "1]]"),
	SEED("json-objects", 1, POST "[[", "{},", "1]]"),
	SEED("json-keys", 1, POST "[{", "\"a\":1,", "\"b\":2}]"),
	SEED("json-floats", 1, POST "[[", "1e9,", "1]]"),
	SEED("json-digits", 1, POST "[[", "1.7976931348623157e308,", "1]]"),
	SEED("json-escapes", 1, POST "[\"", "\\u00e9", "\"]"),
	SEED("json-deep", 1, POST, "[[[[[[", "]"),
	SEED("json-texts", 1, POST "[[", "\"\",", "1]]"),
	SEED("json-special", 1, POST "[[", "{\"$date\":1},", "1]]"),
};

static void put(struct hostile_frame *frame, const void *bytes, size_t len)
{
	memcpy(frame->bytes + frame->len, bytes, len);
	frame->len += len;
}

static void put_head(struct hostile_frame *frame, unsigned flags)
{
	const unsigned char head[16] = { 0xda, 0xbb, (unsigned char)flags };

	if (flags > 1)
		put(frame, head, sizeof(head));
	frame->wire = flags > 1 ? HOSTILE_DUBBO : flags ? HOSTILE_HTTP : HOSTILE_MPRPC;
}

bool hostile_seed(size_t at, struct hostile_frame *ret)
{
	const struct seed *seed = &seeds[at];

	if (at >= sizeof(seeds) / sizeof(seeds[0]))
		return false;
	ret->len = 0;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", seed->name);
	put_head(ret, seed->flags);
	put(ret, seed->head, seed->head_len);
	while (seed->piece_len > 0 && ret->len < BODIES)
		put(ret, seed->piece, seed->piece_len);
	put(ret, seed->tail, seed->tail_len);
	hostile_fix(ret);
	return true;
}

#define ECHO "\0052.0.2\011demo.EchoN\004echo\022Ljava/lang/Object;"
#define ECHO_PACKED                                                                                \
	"\xa5"                                                                                     \
	"2.0.2\xa9"                                                                                \
	"demo.Echo\xc0\xa4"                                                                        \
	"echo\xb2Ljava/lang/Object;"

void hostile_echo(bool hessian2, struct hostile_frame *ret)
{
	static const char java[] = ECHO
		"0\040xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"H\004path\011demo.Echo\011interface\011demo.Echo\007version"
		"\0050.0.0\007timeout\0041000Z";
	static const char packed[] = ECHO_PACKED "\xd9\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x82\xa4"
						 "path\xa9"
						 "demo.Echo\xa7timeout\xa4"
						 "1000";

	(void)snprintf(ret->name, sizeof(ret->name), "%s", hessian2 ? "echo-hessian2" : "echo");
	ret->len = 0;
	put_head(ret, hessian2 ? 0xc2 : 0xdb);
	if (hessian2)
		put(ret, java, sizeof(java) - 1);
	else
		put(ret, packed, sizeof(packed) - 1);
	hostile_fix(ret);
}
