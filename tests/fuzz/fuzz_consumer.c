/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes a consumer in the virtual environment. Its peer follows a script: it accepts connections
 * or not, reads requests, answers them correctly, wrongly or twice, sends arbitrary bytes in
 * pieces, and disconnects. Calls begin, are cancelled, time out, and begin other calls when they
 * end. The output of the consumer must be valid, every call must end exactly once and never inside
 * spoke_call(), memory is bounded, and nothing may leak.
 */
#include "core/virtual/faults.h"
#include "tests/cluster/peer.h"
#include "tests/cluster/script.h"
#include "tests/fuzz/fuzz.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>

#define PEERS 2u
#define CALLS_MAX 256u
#define IDS_MAX 64u
#define STEPS_MAX 400u
#define BYTES_PEAK ((size_t)8 << 20)
#define MS UINT64_C(1000000)
#define DRAIN_NS (1000 * MS)

/* One call and its result. */
struct began {
	struct spoke_call name;
	unsigned ended;
	uint8_t then; /* action when the call ends */
};

struct run {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *methods[3];
	struct began calls[CALLS_MAX];
	unsigned begun;
	unsigned refused;
	unsigned ended;
	bool calling;
	bool ending;                /* no more calls begin */
	struct spoke_request *held; /* a pushed request */
	struct peer peer;
	int listeners[PEERS];
	struct peer_conn conns[PEERS];
	uint64_t ids[PEERS][IDS_MAX]; /* of the last requests that were read */
	unsigned id_count[PEERS];
	unsigned at;
	struct script script;
	bool mixed; /* the first endpoint uses MessagePack-RPC */
};

static struct run run;

static const char *const places[PEERS] = { "127.0.0.1:20880", "127.0.0.1:20881" };
static const char *const urls[2][PEERS] = {
	{ "dubbo://127.0.0.1:20880/demo.Echo?timeout=300ms", "dubbo://127.0.0.1:20881/demo.Echo" },
	{ "msgpack-rpc://127.0.0.1:20880/demo.Echo?timeout=300ms",
	  "dubbo://127.0.0.1:20881/demo.Echo" },
};

/* --- calls */

static void begin_call(uint8_t how, uint8_t then, struct spoke_span piece);

static void note_end(void *arg, const struct spoke_result *result)
{
	struct began *call = arg;
	struct spoke_consumer *consumer = run.consumer;

	demand(!run.calling, "a call does not end inside spoke_call()");
	demand(++call->ended == 1, "a call ends once");
	run.ended++;
	if (result->error == SPOKE_OK)
		demand(result->value.len > 0, "a success has a value");
	if (consumer == NULL || run.ending)
		return;
	switch (call->then & 7) {
	case 1:
		begin_call(call->then >> 4, call->then, spokei_span("x", 1));
		break;
	case 2:
		(void)spoke_call_cancel(consumer, run.calls[call->then % CALLS_MAX].name);
		break;
	case 3:
		if (call->then == 0xf3) {
			run.consumer = NULL;
			spoke_consumer_free(consumer);
		}
		break;
	default:
		break;
	}
}

static void begin_call(uint8_t how, uint8_t then, struct spoke_span piece)
{
	struct began *call = &run.calls[run.begun];
	struct spoke_call_options options = { .one_way = (how & 3) == 1 };
	struct spoke_builder builder;
	unsigned char bytes[300];
	struct spoke_span args;
	int error;

	if (run.consumer == NULL || run.begun == CALLS_MAX)
		return;
	if ((how & 3) == 2)
		options.timeout_ns = (1u + (how >> 4)) * MS;
	if ((how & 12) == 4)
		options.attachments = (struct spoke_value){ (const unsigned char *)"\x81\xa1k\xa1v",
							    5 };
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, piece.data ? piece.data : "", piece.len);
	if (spoke_builder_finish(&builder, &args))
		return;
	call->then = then;
	run.calling = true;
	error = spoke_call(run.methods[(how >> 2) % 3], args, &options, note_end, call,
			   &call->name);
	run.calling = false;
	if (error)
		run.refused++;
	else
		run.begun++;
}

static void abandoned(struct spoke_request *request, void *arg)
{
	(void)arg;
	demand(run.held == request, "the held request is abandoned");
	run.held = NULL;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void pushed(struct spoke_request *request, void *arg)
{
	(void)arg;
	if (run.held == NULL && spoke_request_arg_count(request) == 1) {
		run.held = request;
		spoke_request_on_abandoned(request, abandoned, NULL);
		return;
	}
	spoke_reply_error(request, 1, "no");
}

/* --- the scripted peer */

static void note_message(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	size_t at = (size_t)(conn - run.conns);

	(void)arg;
	if (message->kind != SPOKEI_REQUEST)
		return;
	run.ids[at][run.id_count[at]++ % IDS_MAX] = message->id;
}

static void read_from(struct peer_conn *conn)
{
	if (conn->fd < 0)
		return;
	peer_read(conn, note_message, NULL);
	demand(!conn->broken, "a consumer writes valid frames");
}

static void accept_next(uint8_t how)
{
	struct peer_conn *conn = &run.conns[run.at];
	struct spokei_vnet_link *link;
	int fd = peer_accept(&run.peer, run.listeners[run.at]);

	if (fd < 0)
		return;
	peer_close(conn);
	run.id_count[run.at] = 0;
	peer_open(&run.peer, conn, fd,
		  spokei_catalog_wire(run.mixed && run.at == 0 ? "msgpack-rpc" : "dubbo"));
	link = spokei_vnet_link(run.world.net, fd);
	if (how & 1)
		link->read_max = 5;
	if (how & 2)
		link->latency_ns = 3 * MS;
	if (how & 4)
		link->capacity = 100;
}

static uint64_t some_id(uint8_t which)
{
	unsigned count = run.id_count[run.at];

	if (count == 0)
		return which;
	if (count > IDS_MAX)
		count = IDS_MAX;
	return run.ids[run.at][which % count] + (which == 0xff);
}

/* Writes a reply, a heartbeat, an event or a request of the peer. */
static void put_frame(struct script *script)
{
	struct peer_conn *conn = &run.conns[run.at];
	uint8_t what = script_byte(script);
	unsigned char bytes[300];
	struct spoke_builder builder;
	struct spokei_message message = {
		.kind = what & 3 ? SPOKEI_REPLY : (enum spokei_kind)(what >> 3) % 6,
		.id = some_id(script_byte(script)),
		.codec = 27,
		.two_way = (what & 4) != 0,
		.service = spokei_span("demo.Push", 9),
		.method = spokei_span("push", 4),
		.bare = (what & 4) == 0,
	};
	struct spoke_span piece = script_piece(script, script_byte(script));

	if (conn->fd < 0)
		return;
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, piece.data ? piece.data : "", piece.len);
	(void)!spoke_builder_finish(&builder, &message.args);
	message.arg_count = 1;
	if (message.kind == SPOKEI_REPLY)
		message.value = (struct spoke_value){ message.args.data, message.args.len };
	if ((what & 3) == 2) {
		static const int errors[] = { SPOKE_EREMOTE, SPOKE_EREFUSED, SPOKE_ENOSERVICE,
					      SPOKE_EBADREQUEST };

		message.error = errors[(what >> 3) & 3];
		message.error_code = what;
		message.error_text = spokei_span("text", 4);
		message.value = (struct spoke_value){ NULL, 0 };
	}
	peer_put(conn, &message);
}

static void put_piece(struct script *script)
{
	struct peer_conn *conn = &run.conns[run.at];
	struct spoke_span piece = script_piece(script, script_byte(script));

	if (conn->fd >= 0)
		peer_put_bytes(conn, piece);
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
	static const uint8_t kinds[] = { SPOKEI_FAULTS_CONNECT, SPOKEI_FAULTS_FINISH,
					 SPOKEI_FAULTS_READ, SPOKEI_FAULTS_WRITE,
					 SPOKEI_FAULTS_LOCAL };
	uint8_t what = script_byte(script);
	enum spokei_faults_kind kind = what & 1 ? kinds[(what >> 1) % 5] : SPOKEI_FAULTS_MEMORY;

	spokei_faults_fail(&run.faulty, kind, 1u + what / 16, errors[script_byte(script) % 5],
			   false);
}

static void start_call(struct script *script)
{
	uint8_t how = script_byte(script), then = script_byte(script);

	begin_call(how, then, script_piece(script, how & 0x80 ? script_byte(script) : 1u));
}

static void cancel_call(struct script *script)
{
	uint8_t which = script_byte(script);

	if (run.consumer)
		(void)spoke_call_cancel(run.consumer, run.calls[which].name);
}

static void end_consumer(void)
{
	struct spoke_consumer *consumer = run.consumer;

	run.consumer = NULL;
	spoke_consumer_free(consumer);
}

static void step(struct script *script)
{
	uint8_t op = script_byte(script);

	switch (op & 15) {
	case 0:
		accept_next(op >> 4);
		break;
	case 1:
		run.at = (op >> 4) % PEERS;
		break;
	case 2:
	case 3:
		start_call(script);
		break;
	case 4:
		cancel_call(script);
		break;
	case 5:
		put_frame(script);
		break;
	case 6:
		put_piece(script);
		break;
	case 7:
		write_some(op >> 4 ? 1u + (op >> 4) : SIZE_MAX);
		break;
	case 8:
		pass((uint64_t)script_byte(script) * MS);
		break;
	case 9:
		pass((uint64_t)(op >> 4) * 5000 * MS);
		break;
	case 10:
		read_from(&run.conns[run.at]);
		break;
	case 11:
		write_some(SIZE_MAX);
		pass(0);
		read_from(&run.conns[run.at]);
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
		/* a drain frees the consumer */
		if (op == 0xff && spoke_engine_drain(run.engine, DRAIN_NS) == 0)
			run.consumer = NULL;
		else if (op == 0xef)
			end_consumer();
		break;
	}
}

/* --- one run */

static bool begin(bool mixed)
{
	const struct spoke_consumer_options options = {
		.url = urls[mixed][0],
		.balancer = &spoke_balancer_round_robin,
		.more_urls = &urls[mixed][1],
		.more_count = 1,
		.pending_max = 100,
		.frame_max = 16384,
		.handle = pushed,
	};
	static const struct spoke_method_options generic = { .generic = true, .type_names = "a.B" };
	struct spoke_engine_options with = { .env = &run.faulty.env, .timers_max = 1024 };

	run = (struct run){ .mixed = mixed, .conns = { { .fd = -1 }, { .fd = -1 } } };
	if (!spokei_world_init(&run.world, 1))
		return false;
	spokei_world_process_init(&run.process, &run.world);
	peer_init(&run.peer, &run.world);
	for (unsigned i = 0; i < PEERS; i++)
		run.listeners[i] = peer_listen(&run.peer, places[i]);
	spokei_faults_init(&run.faulty, &run.process.env);
	demand(spoke_engine_new(&with, &run.engine) == 0 &&
		       spoke_consumer_new(run.engine, &options, &run.consumer) == 0 &&
		       spoke_consumer_method(run.consumer, "echo", NULL, &run.methods[0]) == 0 &&
		       spoke_consumer_method(run.consumer, "longer.name", NULL, &run.methods[1]) ==
			       0 &&
		       spoke_consumer_method(run.consumer, "any", &generic, &run.methods[2]) == 0,
	       "a consumer is made");
	return true;
}

static uint64_t stat(enum spoke_stat which)
{
	return spoke_stat_get(run.engine, which);
}

static void check_counts(void)
{
	demand(run.ended == run.begun, "every call ended");
	demand(stat(SPOKE_STAT_CALLS) == run.begun, "every call is counted");
	demand(stat(SPOKE_STAT_CALLS_REFUSED) == run.refused, "every rejected call is counted");
	demand(stat(SPOKE_STAT_CALLS) ==
		       stat(SPOKE_STAT_CALLS_OK) + stat(SPOKE_STAT_CALLS_REMOTE) +
			       stat(SPOKE_STAT_CALLS_TIMEOUT_UNSENT) +
			       stat(SPOKE_STAT_CALLS_TIMEOUT) + stat(SPOKE_STAT_CALLS_LOST) +
			       stat(SPOKE_STAT_CALLS_CANCELED) + stat(SPOKE_STAT_CALLS_CLOSED) +
			       stat(SPOKE_STAT_CALLS_FAILED),
	       "in one way");
}

static void end(void)
{
	spokei_faults_heal(&run.faulty);
	run.ending = true;
	for (unsigned i = 0; i < PEERS; i++)
		read_from(&run.conns[i]);
	/* Each call has a deadline, so it ends even without an answer. */
	if (run.consumer && run.begun % 2) {
		pass(2000 * MS);
		demand(run.ended == run.begun || run.consumer == NULL, "a deadline ends a call");
	}
	end_consumer();
	pass(DRAIN_NS + MS);
	check_counts();
	spoke_engine_free(run.engine);
	demand(run.held == NULL, "a freed consumer serves no requests");
	demand(run.faulty.blocks == 0, "no memory leaks");
	demand(run.faulty.fds == 0, "no descriptor leaks");
	demand(run.faulty.bytes_peak < BYTES_PEAK, "memory is bounded");
	for (unsigned i = 0; i < PEERS; i++)
		peer_close(&run.conns[i]);
	peer_fini(&run.peer);
	spokei_world_process_fini(&run.process);
	spokei_world_fini(&run.world);
}

FUZZ(consumer)
{
	struct script script = { data, size };

	if (!begin(script_byte(&script) & 1))
		return 0;
	run.script = script;
	for (unsigned i = 0; i < STEPS_MAX && run.script.left > 0; i++)
		step(&run.script);
	end();
	return 0;
}
