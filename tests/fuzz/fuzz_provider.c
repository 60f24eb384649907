/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes a provider in the virtual environment. Its peers follow a script: they send valid frames,
 * HTTP requests and arbitrary bytes, in pieces; they read or do not read, wait and disconnect.
 * Handlers answer at once, later, after the request was abandoned, or end the provider. The output
 * of the provider must be valid, every request must end in one way, memory is bounded, and nothing
 * may leak.
 */
#include "core/virtual/faults.h"
#include "tests/cluster/peer.h"
#include "tests/cluster/script.h"
#include "tests/fuzz/fuzz.h"
#include "transport/wire/catalog.h"
#include "transport/wire/http/http.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PLACE "127.0.0.1:20880"
#define PEERS 3u
#define HELD_MAX 16u
#define STEPS_MAX 400u
#define FRAME_MAX 16384u
#define BYTES_PEAK ((size_t)8 << 20)
#define MS UINT64_C(1000000)
#define DRAIN_NS (1000 * MS)

struct run {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_request *held[HELD_MAX];
	unsigned held_count;
	unsigned handled;
	struct peer peer;
	struct peer_conn conns[PEERS];
	bool begun[PEERS]; /* the peer has sent something */
	bool wild[PEERS];  /* HTTP of arbitrary bytes: nobody knows how many responses it gets */
	bool any_wild;
	unsigned at; /* the connection that the script uses */
	struct script script;
};

static struct run run;

/* --- handlers */

static void reply_first(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

static void answer_now(struct spoke_request *request, void *arg)
{
	(void)arg;
	run.handled++;
	reply_first(request);
}

static void answer_badly(struct spoke_request *request, void *arg)
{
	(void)arg;
	run.handled++;
	spoke_reply_error(request, 7, "no");
}

static void forget(struct spoke_request *request)
{
	for (unsigned i = 0; i < run.held_count; i++)
		if (run.held[i] == request)
			run.held[i--] = run.held[--run.held_count];
}

static void answer_abandoned(struct spoke_request *request, void *arg)
{
	(void)arg;
	demand(spoke_request_abandoned(request), "the request of an abandon callback is abandoned");
	forget(request);
	reply_first(request);
}

static void hold(struct spoke_request *request)
{
	if (run.held_count == HELD_MAX)
		reply_first(request);
	else
		run.held[run.held_count++] = request;
}

static void answer_later(struct spoke_request *request, void *arg)
{
	(void)arg;
	run.handled++;
	(void)!spoke_request_keep(request);
	hold(request);
}

static void answer_when_abandoned(struct spoke_request *request, void *arg)
{
	(void)arg;
	run.handled++;
	if (run.held_count < HELD_MAX)
		spoke_request_on_abandoned(request, answer_abandoned, NULL);
	hold(request);
}

static void end_provider(struct spoke_request *request, void *arg)
{
	(void)arg;
	run.handled++;
	spoke_provider_free(run.provider);
	run.provider = NULL;
	spoke_request_on_abandoned(request, answer_abandoned, NULL);
	if (spoke_request_arg_count(request) > 1 || run.held_count == HELD_MAX)
		reply_first(request);
	else
		hold(request);
}

static const struct spoke_handler handlers[] = {
	{ .method = "now", .handle = answer_now },
	{ .method = "no", .handle = answer_badly },
	{ .method = "later", .handle = answer_later },
	{ .method = "gone", .handle = answer_when_abandoned },
	{ .method = "end", .handle = end_provider },
	{ .method = NULL, .handle = answer_now },
};

#define METHODS (sizeof(handlers) / sizeof(handlers[0]))

static void answer_held(unsigned which)
{
	struct spoke_request *request;

	if (run.held_count == 0)
		return;
	request = run.held[which % run.held_count];
	forget(request);
	if (which & 0x80)
		spoke_reply_error(request, (int32_t)which, "%s", "");
	else
		reply_first(request);
}

/* --- actions of the peers */

static void note_message(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	/* Status 100 is an event. */
	demand(message->kind != SPOKEI_REQUEST &&
		       (message->kind != SPOKEI_EVENT || conn->wire == &spokei_wire_http_replies),
	       "a provider writes only replies and heartbeats");
}

static void read_from(unsigned at)
{
	struct peer_conn *conn = &run.conns[at];

	if (conn->fd < 0)
		return;
	peer_read(conn, run.wild[at] ? NULL : note_message, NULL);
	demand(!conn->broken || run.wild[at], "a provider writes valid frames");
}

static void connect_anew(uint8_t how, const struct spokei_wire *wire)
{
	struct peer_conn *conn = &run.conns[run.at];
	struct spokei_vnet_link *link;
	int fd;

	peer_close(conn);
	run.begun[run.at] = false;
	run.wild[run.at] = false;
	fd = peer_connect(&run.peer, PLACE);
	if (fd < 0)
		return;
	peer_open(&run.peer, conn, fd, wire);
	link = spokei_vnet_link(run.world.net, fd);
	if (how & 2)
		link->read_max = 7;
	if (how & 4)
		link->latency_ns = 3 * MS;
	if (how & 8)
		link->capacity = 100;
}

static const char *const names[METHODS] = { "now", "no", "later", "gone", "end", "other" };

/* Writes a valid request over HTTP. Its body or query is what the script has. */
static void put_http(struct script *script)
{
	static const struct {
		const char *begin; /* up to the method */
		const char *lines;
	} forms[] = {
		{ "POST /demo.Echo/", " HTTP/1.1\r\nHost: [::1]\r\n" },
		{ "POST /demo.Echo/",
		  " HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n" },
		{ "POST /demo.Echo/", " HTTP/1.0\r\nConnection: keep-alive\r\n" },
		{ "POST /demo.Echo/", " HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\n" },
		{ "POST /demo.Echo/", " HTTP/1.1\r\nHost: [::1]\r\nSpoke-Timeout: 9ms\r\n"
				      "Spoke-Attachment-a: b\r\n" },
		{ "POST /demo.Echo/", " HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n" },
		{ "OPTIONS /demo.Echo/", " HTTP/1.1\r\nHost: [::1]\r\n" },
		{ "POST /demo.None/", " HTTP/1.1\r\nHost: [::1]\r\n" },
	};
	struct peer_conn *conn = &run.conns[run.at];
	uint8_t what = script_byte(script);
	struct spoke_span piece = script_piece(script, script_byte(script));
	char head[200];
	bool is_chunked;
	int len;

	if (conn->fd < 0)
		return;
	/* A chunk of no bytes ends a body. */
	if ((what & 7) == 1 && piece.len == 0)
		what = 0;
	is_chunked = (what & 7) == 1;
	len = snprintf(head, sizeof(head), "%s%s%s", forms[what & 7].begin,
		       names[(what >> 3) % METHODS], forms[what & 7].lines);
	len += snprintf(head + len, sizeof(head) - (size_t)len,
			is_chunked ? "\r\n%zx\r\n" : "Content-Length: %zu\r\n\r\n", piece.len);
	peer_put_bytes(conn, spokei_span(head, (size_t)len));
	peer_put_bytes(conn, piece);
	if (is_chunked)
		peer_put_bytes(conn, spokei_span("\r\n0\r\n\r\n", 7));
}

/* Writes a valid request, event or reply. */
static void put_frame(struct script *script)
{
	struct peer_conn *conn = &run.conns[run.at];
	uint8_t what = script_byte(script);
	const char *name = names[(what >> 3) % METHODS];
	unsigned char bytes[300];
	struct spoke_builder builder;
	struct spokei_message message = {
		.kind = (enum spokei_kind)(what & 7 ? SPOKEI_REQUEST : script_byte(script) % 6),
		.id = script_byte(script),
		.codec = 27,
		.two_way = (what & 7) != 1,
		.generic = (what & 7) == 2,
		.service = spokei_span("demo.Echo", 9),
		.method = spokei_span(name, strlen(name)),
	};
	struct spoke_span piece = script_piece(script, script_byte(script));

	if (conn->fd < 0)
		return;
	if ((what & 7) == 3)
		message.timeout_ms = 1 + script_byte(script);
	if ((what & 7) == 4)
		message.service = piece;
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, piece.data ? piece.data : "", piece.len);
	if (what & 0x80)
		spoke_pack_nil(&builder);
	message.arg_count = what & 0x80 ? 2 : 1;
	(void)!spoke_builder_finish(&builder, &message.args);
	if (message.kind == SPOKEI_REPLY) {
		message.value = (struct spoke_value){ (const unsigned char *)"\xc0", 1 };
		message.bare = true;
	}
	peer_put(conn, &message);
}

static void put_piece(struct script *script)
{
	struct peer_conn *conn = &run.conns[run.at];
	struct spoke_span piece = script_piece(script, script_byte(script));

	if (conn->fd < 0 || piece.len == 0)
		return;
	peer_put_bytes(conn, piece);
	if (conn->wire == &spokei_wire_http_replies ||
	    (!run.begun[run.at] &&
	     spokei_catalog_sniff(*(const unsigned char *)piece.data) == &spokei_wire_http)) {
		run.wild[run.at] = true;
		run.any_wild = true;
	}
	run.begun[run.at] = true;
}

static void put_message(struct script *script)
{
	run.begun[run.at] = true;
	if (run.conns[run.at].wire == &spokei_wire_http_replies)
		put_http(script);
	else
		put_frame(script);
}

static void write_some(size_t max)
{
	struct peer_conn *conn = &run.conns[run.at];

	if (conn->fd >= 0)
		(void)peer_write(conn, max);
}

static void pass(uint64_t ns)
{
	uint64_t until_ns = run.world.now_ns + ns;

	for (unsigned steps = 0; spokei_world_step(&run.world, until_ns); steps++)
		demand(steps < 100000, "a loop comes to rest");
}

static void fail_something(struct script *script)
{
	static const int errors[] = { -EMFILE, -ENOBUFS, -EINTR, -ECONNRESET, -EPIPE };
	uint8_t what = script_byte(script);
	enum spokei_faults_kind kind = SPOKEI_FAULTS_MEMORY;

	if (what & 1)
		kind = (enum spokei_faults_kind)(SPOKEI_FAULTS_ACCEPT + (what >> 1) % 5);
	spokei_faults_fail(&run.faulty, kind, 1u + (what >> 4),
			   errors[script_byte(script) % (sizeof(errors) / sizeof(errors[0]))],
			   false);
}

static void step(struct script *script)
{
	uint8_t op = script_byte(script);

	switch (op & 15) {
	case 0:
		connect_anew(op >> 4, spokei_catalog_wire(op & 16 ? "msgpack-rpc" : "dubbo"));
		break;
	case 1:
		run.at = (op >> 4) % PEERS;
		break;
	case 2:
	case 3:
		put_message(script);
		break;
	case 4:
		put_piece(script);
		break;
	case 5:
	case 6:
		write_some(SIZE_MAX);
		pass(0);
		break;
	case 7:
		write_some(1u + (op >> 4));
		break;
	case 8:
		pass((uint64_t)script_byte(script) * MS);
		break;
	case 9:
		pass((uint64_t)(op >> 4) * 5000 * MS);
		break;
	case 10:
		read_from(run.at);
		break;
	case 11:
		answer_held(script_byte(script));
		break;
	case 12:
		if (run.conns[run.at].fd >= 0)
			(void)run.peer.process.env.net->shut(run.peer.process.env.ctx,
							     run.conns[run.at].fd);
		break;
	case 13:
		peer_close(&run.conns[run.at]);
		break;
	case 14:
		fail_something(script);
		break;
	default:
		/* a drain frees the provider */
		if (op != 0xff)
			connect_anew(op >> 4, &spokei_wire_http_replies);
		else if (spoke_engine_drain(run.engine, DRAIN_NS) == 0)
			run.provider = NULL;
		break;
	}
}

/* --- one run */

static bool begin(void)
{
	static const struct spoke_provider_options options = {
		.connections_max = PEERS,
		.requests_max = 12,
		.requests_per_connection_max = 8,
		.frame_max = FRAME_MAX,
		.heartbeat_ns = 2000 * MS,
	};
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	struct spoke_engine_options with = { .env = &run.faulty.env, .timers_max = 1024 };

	run = (struct run){ .conns = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } } };
	if (!spokei_world_init(&run.world, 1))
		return false;
	spokei_world_process_init(&run.process, &run.world);
	peer_init(&run.peer, &run.world);
	spokei_faults_init(&run.faulty, &run.process.env);
	demand(spoke_engine_new(&with, &run.engine) == 0 &&
		       spoke_provider_new(run.engine, &options, &run.provider) == 0 &&
		       spoke_provider_add(run.provider, &service, handlers, METHODS) == 0 &&
		       spoke_provider_listen(run.provider, "dubbo://" PLACE) == 0,
	       "a provider is made");
	return true;
}

static uint64_t stat(enum spoke_stat which)
{
	return spoke_stat_get(run.engine, which);
}

static void check_counts(void)
{
	uint64_t ran = stat(SPOKE_STAT_REQUESTS_OK) + stat(SPOKE_STAT_REQUESTS_ERROR) +
		       stat(SPOKE_STAT_REQUESTS_ABANDONED);

	/* Arbitrary bytes may call methods that every service has. */
	demand(run.any_wild ? ran >= run.handled : ran == run.handled,
	       "each handled request ended once");
	demand(stat(SPOKE_STAT_REQUESTS) == ran + stat(SPOKE_STAT_REQUESTS_NO_SERVICE) +
						    stat(SPOKE_STAT_REQUESTS_EXPIRED) +
						    stat(SPOKE_STAT_REQUESTS_REFUSED),
	       "every request ended in one way");
	demand(stat(SPOKE_STAT_ACCEPTED) == stat(SPOKE_STAT_CLOSED), "every connection ended");
}

static void end(void)
{
	spokei_faults_heal(&run.faulty);
	for (unsigned i = 0; i < PEERS; i++)
		read_from(i);
	spoke_provider_free(run.provider);
	pass(DRAIN_NS + MS);
	while (run.held_count > 0)
		answer_held(0);
	pass(MS);
	check_counts();
	spoke_engine_free(run.engine);
	demand(run.held_count == 0, "a freed engine serves no requests");
	demand(run.faulty.blocks == 0, "no memory leaks");
	demand(run.faulty.fds == 0, "no descriptor leaks");
	demand(run.faulty.bytes_peak < BYTES_PEAK, "memory is bounded");
	for (unsigned i = 0; i < PEERS; i++)
		peer_close(&run.conns[i]);
	peer_fini(&run.peer);
	spokei_world_process_fini(&run.process);
	spokei_world_fini(&run.world);
}

FUZZ(provider)
{
	if (!begin())
		return 0;
	run.script = (struct script){ data, size };
	for (unsigned i = 0; i < STEPS_MAX && run.script.left > 0; i++)
		step(&run.script);
	end();
	return 0;
}
