/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that cost a provider much, in the simulated environment; see tests/bench/run.sh. */
#include "core/virtual/world.h"
#include "tests/bench/common/options.h"

#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

/*
 * --- frames that cost a provider much for their bytes: a provider in the virtual world that is
 * fed with them, frames to begin with, and changes to make of them
 */

#define HOSTILE_FRAME_MAX 8192u

enum hostile_wire {
	HOSTILE_DUBBO, /* the length in the head is set for each frame */
	HOSTILE_MPRPC,
	HOSTILE_HTTP, /* the length in the head is set if it has a line for it */
	HOSTILE_WIRES
};

struct hostile_frame {
	char name[24]; /* of the frame that it was made of */
	enum hostile_wire wire;
	size_t len;
	unsigned char bytes[HOSTILE_FRAME_MAX];
};

/* What a provider makes of a frame that comes again and again. */
struct hostile_cost {
	double ns;        /* CPU time for each byte */
	double answers;   /* for each frame */
	unsigned conns;   /* that were needed, because the provider closes them */
	uint64_t handled; /* by the handler */
};

/* --- changes of frames, and frames as text */

#define HEAD 16u /* bytes of a head of Dubbo */

static const char *const wires[HOSTILE_WIRES] = { "dubbo", "mprpc", "http" };

static uint64_t hostile_dice(uint64_t *dice)
{
	uint64_t x = *dice += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static size_t below(uint64_t *dice, size_t limit)
{
	return limit ? (size_t)(hostile_dice(dice) % limit) : 0;
}

/* Returns where `text` begins in the frame; NULL: nowhere. */
static unsigned char *find(struct hostile_frame *frame, const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; at + len <= frame->len; at++)
		if (memcmp(frame->bytes + at, text, len) == 0)
			return frame->bytes + at;
	return NULL;
}

/* Sets the four digits after "Content-Length: ". */
static void fix_http(struct hostile_frame *frame)
{
	unsigned char *line = find(frame, "Content-Length: ");
	unsigned char *body = find(frame, "\r\n\r\n");
	char digits[24];

	if (line == NULL || body == NULL || body < line + 20)
		return;
	(void)snprintf(digits, sizeof(digits), "%04zu",
		       frame->len - (size_t)(body + 4 - frame->bytes));
	memcpy(line + 16, digits, 4);
}

/* Sets the length in the head. */
static void hostile_fix(struct hostile_frame *frame)
{
	size_t len = frame->len - HEAD;

	if (frame->wire == HOSTILE_HTTP)
		fix_http(frame);
	if (frame->wire != HOSTILE_DUBBO || frame->len < HEAD)
		return;
	frame->bytes[0] = 0xda;
	frame->bytes[1] = 0xbb;
	for (unsigned i = 0; i < 4; i++)
		frame->bytes[12 + i] = (unsigned char)(len >> (24 - 8 * i));
}

/* Makes room for bytes. Returns false if the frame would be too long. */
static bool insert(struct hostile_frame *frame, size_t at, const unsigned char *bytes, size_t len)
{
	unsigned char copy[HOSTILE_FRAME_MAX];

	if (frame->len + len > HOSTILE_FRAME_MAX)
		return false;
	memcpy(copy, bytes, len);
	memmove(frame->bytes + at + len, frame->bytes + at, frame->len - at);
	memcpy(frame->bytes + at, copy, len);
	frame->len += len;
	return true;
}

static void cut(struct hostile_frame *frame, size_t at, size_t len)
{
	memmove(frame->bytes + at, frame->bytes + at + len, frame->len - at - len);
	frame->len -= len;
}

/* Repeats a piece of the frame some times, or until the frame is as long as it may be. */
static void repeat(struct hostile_frame *frame, size_t at, uint64_t *dice)
{
	size_t len = 1 + below(dice, below(dice, 4) ? 6 : 64);
	size_t times = (size_t)1 << below(dice, 12);

	if (len > frame->len - at)
		len = frame->len - at;
	while (times-- > 0 && insert(frame, at, frame->bytes + at, len))
		continue;
}

static void change(struct hostile_frame *frame, const struct hostile_frame *other, uint64_t *dice)
{
	static const unsigned char keen[] = { 0x00, 0x01, 0x7f, 0x80, 0x90, 0x91, 0xc0, 0xc1,
					      0xc7, 0xd4, 0xdf, 0xff, 'C',  'H',  'M',  'N',
					      'O',  'Q',  'R',  'Z',  0x55, 0x57, 0x60, 0x70,
					      0x78, 0x79, '"',  '[',  '{',  ',',  '0',  'e' };
	size_t from = frame->wire == HOSTILE_DUBBO && below(dice, 8) ? HEAD : 0;
	size_t at = from + below(dice, frame->len - from);
	size_t len = 1 + below(dice, 12);
	unsigned char byte;

	switch (below(dice, 8)) {
	case 0:
		frame->bytes[at] ^= (unsigned char)(1u << below(dice, 8));
		break;
	case 1:
		frame->bytes[at] = keen[below(dice, sizeof(keen))];
		break;
	case 2:
		frame->bytes[at] = (unsigned char)(frame->bytes[at] + below(dice, 9) - 4);
		break;
	case 3:
		byte = keen[below(dice, sizeof(keen))];
		(void)insert(frame, at, &byte, 1);
		break;
	case 4:
		if (len < frame->len - at)
			cut(frame, at, below(dice, 4) ? len : below(dice, frame->len - at));
		break;
	case 5:
		if (other->len > len) {
			len = 1 + below(dice, below(dice, 4) ? 24 : other->len);
			if (len < other->len)
				(void)insert(frame, at,
					     other->bytes + below(dice, other->len - len), len);
		}
		break;
	default:
		repeat(frame, at, dice);
		break;
	}
}

/* Changes a frame at random, with bytes of another one too. */
static void hostile_mutate(struct hostile_frame *frame, const struct hostile_frame *other,
			   uint64_t *dice)
{
	size_t changes = 1 + below(dice, 4);

	while (changes-- > 0 && frame->len > HEAD + 1)
		change(frame, other, dice);
	hostile_fix(frame);
}

/* --- text */

/* Reads and writes a line: name, wire, hexadecimal digits. */
static bool hostile_read(const char *line, struct hostile_frame *ret)
{
	char wire[8];
	int at = 0;

	if (sscanf(line, "%23s %7s %n", ret->name, wire, &at) != 2 || at == 0)
		return false;
	ret->wire = HOSTILE_WIRES;
	for (unsigned i = 0; i < HOSTILE_WIRES; i++)
		if (strcmp(wire, wires[i]) == 0)
			ret->wire = (enum hostile_wire)i;
	for (ret->len = 0; ret->len < HOSTILE_FRAME_MAX; ret->len++) {
		char digits[3] = { line[at], line[at] ? line[at + 1] : '\0', '\0' };
		char *end;

		ret->bytes[ret->len] = (unsigned char)strtoul(digits, &end, 16);
		if (end != digits + 2)
			break;
		at += 2;
	}
	return ret->wire != HOSTILE_WIRES && ret->len > 0;
}

static void hostile_print(const struct hostile_frame *frame, FILE *file)
{
	(void)fprintf(file, "%s %s ", frame->name, wires[frame->wire]);
	for (size_t i = 0; i < frame->len; i++)
		(void)fprintf(file, "%02x", frame->bytes[i]);
	(void)fputc('\n', file);
}

/* --- frames to begin with: each uses what makes few bytes into much work */

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

/* Makes the first frame to begin with, or the one after `at`. Returns false after the last one. */
static bool hostile_seed(size_t at, struct hostile_frame *ret)
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
/* An echo of 32 characters, as consumers of spoke and of Java send it. */
static void hostile_echo(bool hessian2, struct hostile_frame *ret)
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

/*
 * --- A provider in the virtual world, whose turns are timed. A connection counts as so many
 * bytes more as its packets have on the network, because a peer whose connections are closed
 * has to send them
 */

#define AT "127.0.0.1:20880"
#define BATCH 32768u    /* bytes of a measurement */
#define FRAMES_MAX 256u /* of a measurement */
#define CONNS_MAX 64u
#define PACKETS 216u /* bytes of SYN, FIN and two ACK over Ethernet */
#define PAUSE_NS UINT64_C(1000000)

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_world_process peer;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	uint64_t handled;
	uint64_t spent_ns;
	double conn_ns; /* of a connection without bytes */
	int fd;
} rig;

static void must(const char *what, bool holds)
{
	if (holds)
		return;
	(void)fprintf(stderr, "bench_hostile: not so: %s\n", what);
	exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	rig.handled++;
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

/* Does nothing with the bytes: the application's own work does not count. */
static void take(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void say_nothing(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	(void)line;
}

/* A provider with a token; its peers have none. */
static void hostile_begin(bool token)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = { { .method = "echo", .handle = echo },
							 { .method = "take", .handle = take } };
	const struct spoke_engine_options with = { .env = &rig.process.env };
	const struct spoke_provider_options options = { .token = token ? "correct-horse-1" : NULL };

	memset(&rig, 0, sizeof(rig));
	must("there is a world", spokei_world_init(&rig.world, 1));
	spokei_world_process_init(&rig.process, &rig.world);
	spokei_world_process_init(&rig.peer, &rig.world);
	rig.process.env.log = say_nothing;
	must("a provider listens",
	     spoke_engine_new(&with, &rig.engine) == 0 &&
		     spoke_provider_new(rig.engine, &options, &rig.provider) == 0 &&
		     spoke_provider_add(rig.provider, &service, handlers, 2) == 0 &&
		     spoke_provider_listen(rig.provider, "dubbo://" AT) == 0);
}

static void hostile_end(void)
{
	spoke_engine_free(rig.engine);
	spokei_vnet_kill(&rig.peer.user);
	spokei_world_process_fini(&rig.peer);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

/* A function with a fixed name, which is passed to callgrind. */
static __attribute__((noinline)) void hostile_turn(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + PAUSE_NS);
}

static void pass(void)
{
	uint64_t before_ns = cpu_ns();

	hostile_turn();
	rig.spent_ns += cpu_ns() - before_ns;
}

static void connect_peer(void)
{
	const struct spoke_env *env = &rig.peer.env;
	struct spoke_address address;

	must("an address is read", env->net->parse(env->ctx, AT, &address) == 0);
	rig.fd = -1;
	(void)env->net->connect(env->ctx, &address, &rig.fd);
	must("a peer connects", rig.fd >= 0);
	pass();
}

static void close_peer(void)
{
	rig.peer.env.net->close(rig.peer.env.ctx, rig.fd);
	pass();
}

/* Reads all that the provider has written. Returns false if it has closed the connection. */
static bool drain(void)
{
	static unsigned char bytes[65536];
	ssize_t got;

	do
		got = rig.peer.env.net->read(rig.peer.env.ctx, rig.fd, bytes, sizeof(bytes));
	while (got > 0);
	return got < 0;
}

/* Sends bytes on a new connection. Returns how many the provider has taken before it closed it. */
static size_t send_all(const unsigned char *bytes, size_t len)
{
	uint64_t before = spoke_stat_get(rig.engine, SPOKE_STAT_BYTES_READ);
	size_t sent = 0;
	bool open = true;

	connect_peer();
	while (open && sent < len) {
		struct iovec part = { (void *)(uintptr_t)(bytes + sent), len - sent };
		ssize_t took = rig.peer.env.net->write(rig.peer.env.ctx, rig.fd, &part, 1);

		sent += took > 0 ? (size_t)took : 0;
		pass();
		open = drain();
		if (took <= 0 && open)
			break;
	}
	close_peer();
	sent = (size_t)(spoke_stat_get(rig.engine, SPOKE_STAT_BYTES_READ) - before);
	return sent < len ? sent : len;
}

static double conn_cost(void)
{
	if (!(rig.conn_ns > 0)) {
		uint64_t best_ns = UINT64_MAX;

		for (unsigned i = 0; i < 50; i++) {
			rig.spent_ns = 0;
			connect_peer();
			close_peer();
			if (rig.spent_ns < best_ns)
				best_ns = rig.spent_ns;
		}
		rig.conn_ns = (double)best_ns;
	}
	return rig.conn_ns;
}

static struct hostile_cost measure_once(const unsigned char *bytes, size_t frame_len, size_t len)
{
	struct hostile_cost cost = { 0 };
	size_t taken = 0;
	uint64_t answers = spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN);

	rig.spent_ns = 0;
	rig.handled = 0;
	while (taken < len && cost.conns < CONNS_MAX) {
		size_t took = send_all(bytes + taken, len - taken);

		cost.conns++;
		/* The next connection begins with a whole frame. */
		taken += (took + frame_len - 1) / frame_len * frame_len;
		if (took == 0)
			break;
	}
	cost.handled = rig.handled;
	cost.answers = (double)(spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN) - answers) /
		       ((double)len / (double)frame_len);
	cost.ns = ((double)rig.spent_ns - cost.conns * conn_cost()) /
		  (double)(taken + (size_t)(cost.conns - 1) * PACKETS);
	return cost;
}

/* Fills the batch with a frame. Returns its length. */
static size_t fill(const struct hostile_frame *frame, unsigned char *bytes)
{
	size_t len = 0;

	for (unsigned i = 0; i < FRAMES_MAX && (len == 0 || len + frame->len <= BATCH); i++) {
		memcpy(bytes + len, frame->bytes, frame->len);
		if (frame->wire == HOSTILE_DUBBO && frame->len > 12) {
			bytes[len + 10] = (unsigned char)(i >> 8); /* of the id */
			bytes[len + 11] = (unsigned char)i;
		}
		len += frame->len;
	}
	return len;
}

/* Sends a frame, again and again, on one connection. Returns how many bytes the provider has taken.
 * All its work is in hostile_turn(), whose instructions callgrind counts. */
static size_t hostile_feed(const struct hostile_frame *frame)
{
	static unsigned char bytes[BATCH + HOSTILE_FRAME_MAX];

	return send_all(bytes, fill(frame, bytes));
}

/* Measures a frame `times` times; the least of them counts. */
static struct hostile_cost hostile_measure(const struct hostile_frame *frame, unsigned times)
{
	static unsigned char bytes[BATCH + HOSTILE_FRAME_MAX];
	struct hostile_cost least = { .ns = 1e9 };
	size_t len = fill(frame, bytes);

	(void)conn_cost();
	while (times-- > 0) {
		struct hostile_cost cost = measure_once(bytes, frame->len, len);

		if (cost.ns < least.ns)
			least = cost;
	}
	return least;
}

/*
 * --- searches for frames that cost a provider much CPU time for their bytes, and compares them
 * with an echo of 32 characters in the same run. The provider has no token, or has one that its
 * peers do not know
 */

#define BAR 8.0    /* times the echo */
#define SURE 15u   /* measurements of a frame that counts */
#define WITHOUT 0u /* a token */
#define WITH 1u
/* The dearest frame known of each name. */
struct found {
	struct hostile_frame frame;
	struct hostile_cost cost;
};

static struct {
	struct found found[FRAMES_MAX];
	size_t count;
	double echo_ns;
	const char *only; /* frames of this name; NULL: all */
	uint64_t dice;
	uint64_t tried;
} search;

static struct found *of_name(const char *name)
{
	for (size_t i = 0; i < search.count; i++)
		if (strcmp(search.found[i].frame.name, name) == 0)
			return &search.found[i];
	if (search.count == FRAMES_MAX)
		return NULL;
	search.found[search.count].cost.ns = -1e9;
	return &search.found[search.count++];
}

/* Keeps a frame if it is dearer than that of its name. */
static void consider(const struct hostile_frame *frame)
{
	struct found *at;
	struct hostile_cost cost;

	if (search.only && strcmp(search.only, frame->name) != 0)
		return;
	at = of_name(frame->name);
	if (at == NULL)
		return;
	cost = hostile_measure(frame, 3);
	search.tried++;
	if (cost.ns > at->cost.ns * 1.03)
		cost = hostile_measure(frame, SURE);
	if (cost.ns <= at->cost.ns)
		return;
	at->frame = *frame;
	at->cost = cost;
}

/* Keeps a frame, whatever it costs. */
static void known(const struct hostile_frame *frame)
{
	struct found *at = of_name(frame->name);

	if (at && (search.only == NULL || strcmp(search.only, frame->name) == 0))
		at->frame = *frame;
}

static void read_seeds(const char *path, void (*use)(const struct hostile_frame *frame))
{
	static char line[2 * HOSTILE_FRAME_MAX + 64];
	static struct hostile_frame frame;
	FILE *file = path ? fopen(path, "r") : NULL;

	for (size_t at = 0; hostile_seed(at, &frame); at++)
		use(&frame);
	if (path && file == NULL) {
		perror(path);
		exit(1);
	}
	while (file && fgets(line, sizeof(line), file))
		if (line[0] != '#' && hostile_read(line, &frame))
			use(&frame);
	if (file)
		(void)fclose(file);
}

/* Chooses the dearer one of two. */
static const struct found *choose(void)
{
	const struct found *a = &search.found[hostile_dice(&search.dice) % search.count];
	const struct found *b = &search.found[hostile_dice(&search.dice) % search.count];

	return a->cost.ns > b->cost.ns ? a : b;
}

static void explore(uint64_t seconds)
{
	static struct hostile_frame frame;
	time_t until = time(NULL) + (time_t)seconds;

	while (time(NULL) < until) {
		frame = choose()->frame;
		hostile_mutate(&frame, &choose()->frame, &search.dice);
		if (frame.len > 0)
			consider(&frame);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct found *left = a;
	const struct found *right = b;

	return (left->cost.ns < right->cost.ns) - (left->cost.ns > right->cost.ns);
}

/* Prints the rows, the dearest first. Returns whether all are within the bar. */
static bool print(unsigned token, FILE *save)
{
	bool reached = true;

	qsort(search.found, search.count, sizeof(search.found[0]), by_cost);
	for (size_t i = 0; i < search.count; i++) {
		const struct found *at = &search.found[i];
		double times = at->cost.ns / search.echo_ns;

		reached &= times <= BAR;
		(void)printf("%s\t%s\t%zu\t%.2f\t%.2f\t%.2f\t%u\t%llu\t%s\n", at->frame.name,
			     token == WITH ? "unproven" : "no token", at->frame.len, at->cost.ns,
			     times, at->cost.answers, at->cost.conns,
			     (unsigned long long)at->cost.handled,
			     times <= BAR ? "reached" : "SHORT");
		if (save && times > BAR / 2)
			hostile_print(&at->frame, save);
	}
	(void)fflush(stdout);
	return reached;
}

static bool run(unsigned token, const char *frames, uint64_t seconds, FILE *save)
{
	static struct hostile_frame frame;
	bool reached;

	hostile_begin(false);
	hostile_echo(false, &frame);
	search.echo_ns = hostile_measure(&frame, 4 * SURE).ns;
	hostile_end();
	hostile_begin(token == WITH);
	search.count = 0;
	search.tried = 0;
	consider(&frame);
	hostile_echo(true, &frame);
	consider(&frame);
	read_seeds(frames, consider);
	explore(seconds);
	reached = print(token, save);
	hostile_end();
	(void)fprintf(stderr, "%llu frames; the echo takes %.2f ns for each byte\n",
		      (unsigned long long)search.tried, search.echo_ns);
	return reached;
}

/* Feeds a provider with the frame of a name only. Prints the bytes that it has taken. */
static void feed(const char *name, const char *frames, bool token)
{
	const struct found *at;
	static struct hostile_frame frame;

	search.only = name;
	hostile_echo(false, &frame);
	known(&frame);
	hostile_echo(true, &frame);
	known(&frame);
	read_seeds(frames, known);
	at = of_name(name);
	hostile_begin(token);
	(void)printf("%zu\n", at && at->frame.len > 0 ? hostile_feed(&at->frame) : 0);
	hostile_end();
}

int main(int argc, char **argv)
{
	uint64_t seconds = 0;
	uint64_t seed = 1;
	const char *frames = NULL;
	const char *path = NULL;
	const char *name = NULL;
	bool token = false;
	const struct option_row options[] = {
		{ "--search", .number = &seconds, .max = 86400 },
		{ "--seed", .number = &seed, .max = UINT64_MAX },
		{ "--frames", .text = &frames },
		{ "--only", .text = &search.only },
		{ "--save", .text = &path },
		{ "--feed", .text = &name },
		{ "--token", .flag = &token },
	};
	FILE *save = NULL;
	bool reached;

	options_read(argc, argv, options, sizeof(options) / sizeof(options[0]),
		     "[--search <seconds>] [--seed <number>] [--frames <file>] [--only <name>] "
		     "[--save <file>] | --feed <name> [--token] [--frames <file>]");
	search.dice = seed;
	if (name) {
		feed(name, frames, token);
		return 0;
	}
	if (path) {
		save = fopen(path, "w");
		if (save == NULL) {
			perror(path);
			return 1;
		}
	}
	(void)printf(
		"frame\tprovider\tbytes\tns_per_byte\ttimes_echo\tanswers\tconnections\thandled"
		"\ttarget\n");
	reached = run(WITHOUT, frames, seconds, save);
	reached &= run(WITH, frames, seconds, save);
	if (save)
		(void)fclose(save);
	return reached ? 0 : 1;
}
