/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of waiting connections and calls: bytes, and CPU time of other calls. Every figure
 * is one row on stdout.
 */
#include "cluster/call/call.h"
#include "core/memory/map.h"
#include "core/memory/slab.h"
#include "memory.h"
#include "tests/bench/common/options.h"
#include "tests/support/echo_handler.h"
#include "transport/conn/conn.h"
#include "transport/conn/pending.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* --- A child process with many connections that send little, without any code of spoke */

#define HOSTS 16u /* source addresses */
#define HEAD 16u
#define WAITING_EACH 1000u /* requests on each connection */
/* A heartbeat, and echo("hello"); ids and lengths are filled in. */
static const unsigned char heartbeat[] = "\xda\xbb\xfb\0\0\0\0\0\0\0\0\1\0\0\0\1\xc0";

static const unsigned char request[] = "\xda\xbb\xdb\0\0\0\0\0\0\0\0\2\0\0\0\0"
				       "\245"
				       "2.0.2\260" SERVICE
				       "\2450.0.0\244echo\262Ljava/lang/String;\245hello\200";

static int connect_from(unsigned host, uint16_t port)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("client: no connection: errno %d", errno);
	return fd;
}

static void send_both(int fd)
{
	unsigned char bytes[sizeof(heartbeat) + sizeof(request)];
	size_t len = sizeof(heartbeat) - 1;

	memcpy(bytes, heartbeat, len);
	memcpy(bytes + len, request, sizeof(request) - 1);
	bytes[len + HEAD - 1] = (unsigned char)(sizeof(request) - 1 - HEAD);
	write_all(fd, bytes, len + sizeof(request) - 1);
}

/* Sends requests with the ids 1 to WAITING_EACH. */
static void send_many(int fd)
{
	unsigned char bytes[sizeof(request)];
	size_t len = sizeof(request) - 1;

	memcpy(bytes, request, len);
	bytes[HEAD - 1] = (unsigned char)(len - HEAD);
	for (unsigned id = 1; id <= WAITING_EACH; id++) {
		bytes[10] = (unsigned char)(id >> 8);
		bytes[11] = (unsigned char)id;
		write_all(fd, bytes, len);
	}
}

static void read_answer(int fd)
{
	unsigned char bytes[256];
	size_t len;

	read_all(fd, bytes, HEAD);
	len = (size_t)bytes[14] << 8 | bytes[15];
	if (bytes[0] != 0xda || bytes[3] != 20 || len > sizeof(bytes))
		die("client: unexpected answer: status %u", bytes[3]);
	read_all(fd, bytes, len);
}

/*
 * Reads a port (uint16_t), then commands, each of which is answered by one byte when it is done:
 * 'c' opens all connections, 's' makes each of them send a heartbeat and a call and read both
 * answers, 'w' makes each send calls and read nothing.
 */
static void crowd_play(void *arg, int in, int out)
{
	const struct quota *quota = arg;
	int *fds = calloc(quota->conns, sizeof(*fds));
	uint16_t port;
	char what;

	if (fds == NULL)
		die("client: no memory");
	read_all(in, &port, sizeof(port));
	for (;;) {
		read_all(in, &what, 1);
		for (unsigned i = 0; i < quota->conns && what == 'c'; i++)
			fds[i] = connect_from(quota->first_host + i % HOSTS, port);
		for (unsigned i = 0; i < quota->conns && what == 's'; i++)
			send_both(fds[i]);
		for (unsigned i = 0; i < 2 * quota->conns && what == 's'; i++)
			read_answer(fds[i / 2]);
		for (unsigned i = 0; i < quota->conns && what == 'w'; i++)
			send_many(fds[i]);
		write_all(out, &what, 1);
	}
}

/* --- measures a provider with many idle connections */

#define CROWDS 2u
#define HOSTS_APART 32u
#define KIB 1024.0

struct idle {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct helper helpers[CROWDS];
	struct quota crowds[CROWDS];
	unsigned conns;
	struct spoke_request **requests; /* that wait */
	unsigned count;
};

static uint16_t serve(struct idle *idle, void (*handle)(struct spoke_request *request, void *arg))
{
	static const struct spoke_service_options service = { .name = SERVICE };
	const struct spoke_handler handler = { .method = "echo", .handle = handle, .arg = idle };
	const struct spoke_provider_options options = {
		.connections_max = idle->conns + 1,
		.connections_per_peer_max = idle->conns + 1,
		.requests_max = idle->conns * WAITING_EACH,
	};
	char text[128];
	const char *port;

	must("engine", spoke_engine_new(NULL, &idle->engine));
	must("provider", spoke_provider_new(idle->engine, &options, &idle->provider));
	must("service", spoke_provider_add(idle->provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(idle->provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(idle->provider, 0, text, sizeof(text)) == 0)
		die("the provider does not listen");
	port = strrchr(text, ':');
	return (uint16_t)strtoul(port ? port + 1 : "", NULL, 10);
}

/* Sends the same command to all child processes and waits for them. */
static void all_do(struct idle *idle, char what)
{
	for (unsigned i = 0; i < CROWDS; i++)
		helper_tell(&idle->helpers[i], &what, 1);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_hear(&idle->helpers[i], idle->engine, &what, 1);
}

/* Runs turns until no work is left. */
static void settle(struct idle *idle)
{
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(idle->engine, false));
}

static void report_usage(const struct idle *idle, struct usage before, const char *when,
			 double target)
{
	struct usage after = usage_now();
	double conns = idle->conns;
	char figure[64];

	(void)snprintf(figure, sizeof(figure), "idle_connection_rss_%s", when);
	report(figure, (double)(after.resident - before.resident) / conns / KIB, "KiB", target);
	(void)snprintf(figure, sizeof(figure), "idle_connection_malloc_%s", when);
	report(figure, (double)(after.handed_out - before.handed_out) / conns / KIB, "KiB", target);
}

static void measure_accept(struct idle *idle)
{
	uint64_t begun_ns = now_ns();

	all_do(idle, 'c');
	while (spoke_provider_connections(idle->provider) < idle->conns) {
		if (now_ns() - begun_ns > 60 * SECOND)
			die("only %zu connections after 60 s",
			    spoke_provider_connections(idle->provider));
		must("turn", spoke_engine_turn(idle->engine, false));
	}
	report("accept_10000", (double)(now_ns() - begun_ns) / (double)SECOND * 10000 / idle->conns,
	       "s", 2);
}

static void measure_idle(unsigned conns)
{
	struct idle idle = { .conns = conns };
	struct usage before;
	uint16_t port;

	for (unsigned i = 0; i < CROWDS; i++) {
		idle.crowds[i] = (struct quota){ conns / CROWDS, 2 + i * HOSTS_APART };
		helper_start(&idle.helpers[i], crowd_play, &idle.crowds[i]);
	}
	port = serve(&idle, echo_handler);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_tell(&idle.helpers[i], &port, sizeof(port));
	settle(&idle);
	(void)malloc_trim(0);
	before = usage_now();
	measure_accept(&idle);
	report_usage(&idle, before, "mute", 4);
	all_do(&idle, 's');
	settle(&idle);
	report_usage(&idle, before, "after_1_call", 4);
	all_do(&idle, 's');
	settle(&idle);
	report_usage(&idle, before, "after_2_calls", 4);
	if (spoke_stat_get(idle.engine, SPOKE_STAT_REQUESTS_OK) != 2 * (uint64_t)conns ||
	    spoke_provider_connections(idle.provider) != conns)
		die("not every connection was served");
	for (unsigned i = 0; i < CROWDS; i++)
		helper_end(&idle.helpers[i]);
	spoke_engine_free(idle.engine);
}

/* --- measures requests that wait for their handler's answer */

static void keep_request(struct spoke_request *kept, void *arg)
{
	struct idle *idle = arg;

	idle->requests[idle->count++] = kept;
}

static void measure_waiting(unsigned conns)
{
	struct idle idle = { .conns = conns };
	struct spoke_value none = { .data = NULL };
	unsigned count = conns * WAITING_EACH;
	struct usage before;
	struct usage after;
	uint16_t port;

	idle.requests = calloc(count, sizeof(struct spoke_request *));
	if (idle.requests == NULL)
		die("no memory");
	for (unsigned i = 0; i < CROWDS; i++) {
		idle.crowds[i] = (struct quota){ conns / CROWDS, 2 + i * HOSTS_APART };
		helper_start(&idle.helpers[i], crowd_play, &idle.crowds[i]);
	}
	port = serve(&idle, keep_request);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_tell(&idle.helpers[i], &port, sizeof(port));
	all_do(&idle, 'c');
	before = usage_now();
	all_do(&idle, 'w');
	while (idle.count < count)
		must("turn", spoke_engine_turn(idle.engine, true));
	after = usage_now();
	report("waiting_request_malloc", (double)(after.handed_out - before.handed_out) / count,
	       "bytes", 300);
	report("waiting_request_rss", (double)(after.resident - before.resident) / count, "bytes",
	       0);
	for (unsigned i = 0; i < count; i++)
		spoke_reply(idle.requests[i], none);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_end(&idle.helpers[i]);
	spoke_engine_free(idle.engine);
	free(idle.requests);
}

/* --- measures calls that wait for an answer: their memory, and their effect on other calls */

#define ROUNDS 5
#define OUTSTANDING 64u
#define FILL_AT_ONCE 1000u
#define LONG_NS (3600 * SECOND)
/* --- sizes of structures and tables */

static void measure_sizes(void)
{
	struct spokei_slab slab;
	double cell;

	spokei_slab_init(&slab, spoke_host_env(), sizeof(struct spokei_call), 1);
	cell = (double)slab.cell_size;
	report("sizeof_conn", sizeof(struct spokei_conn), "bytes", 0);
	report("sizeof_conn_intake", sizeof(struct spokei_intake), "bytes", 0);
	report("sizeof_conn_outlet", sizeof(struct spokei_outlet), "bytes", 0);
	report("sizeof_conn_pendings", sizeof(struct spokei_pendings), "bytes", 0);
	report("sizeof_conn_stream", sizeof(struct spokei_stream), "bytes", 0);
	report("sizeof_conn_peer", sizeof(struct spoke_address), "bytes", 0);
	report("sizeof_call", sizeof(struct spokei_call), "bytes", 0);
	report("pending_call_in_slab", cell, "bytes", 0);
	/* At least a quarter of the ring's cells are in use, or the ring would not have grown.
	 * While it grows, the cells of the next ring that are in memory count as well: a third. */
	report("pending_call_at_most", cell + 4 * sizeof(void *), "bytes", 256);
}

/* --- the peers */

/* Accepts one connection and reads what arrives. */
static void play_silent(void *arg, int in, int out)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	static char bytes[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t port;

	(void)arg;
	(void)in;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		die("silent peer: errno %d", errno);
	port = ntohs(at.sin_port);
	write_all(out, &port, sizeof(port));
	fd = accept(fd, NULL, NULL);
	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
		;
}

static void play_echo(void *arg, int in, int out)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	const unsigned *conns = arg;
	const struct spoke_provider_options options = {
		.connections_max = *conns,
		.connections_per_peer_max = *conns,
	};
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	char text[128];
	const char *digits;
	uint16_t port;

	(void)in;
	must("engine", spoke_engine_new(NULL, &engine));
	must("provider", spoke_provider_new(engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	(void)spoke_provider_address(provider, 0, text, sizeof(text));
	digits = strrchr(text, ':');
	port = (uint16_t)strtoul(digits ? digits + 1 : "", NULL, 10);
	write_all(out, &port, sizeof(port));
	must("run", spoke_engine_run(engine));
}

/* --- the caller */

struct caller {
	struct spoke_engine *engine;
	struct helper silent;
	struct helper echoing;
	struct spoke_consumer *waiting_consumer;
	struct spoke_method *waiting;
	struct spoke_method *measured;
	struct spoke_span args;
	struct spoke_call *calls; /* the waiting calls */
	unsigned count;
	unsigned left; /* calls left in this measurement */
	unsigned ended;
};

static uint16_t port_of(const struct helper *helper)
{
	uint16_t port;

	helper_hear(helper, NULL, &port, sizeof(port));
	return port;
}

static void connect_to(struct caller *caller, uint16_t port, uint32_t pending_max,
		       uint64_t timeout_ns, struct spoke_consumer **ret_consumer,
		       struct spoke_method **ret_method)
{
	char url[80];
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK,
						  .url = url,
						  .pending_max = pending_max };
	const struct spoke_method_options method = { .timeout_ns = timeout_ns };

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u/" SERVICE, port);
	must("consumer", spoke_consumer_new(caller->engine, &options, ret_consumer));
	must("method", spoke_consumer_method(*ret_consumer, "echo", &method, ret_method));
	while (spoke_consumer_ready(*ret_consumer) == 0)
		must("turn", spoke_engine_turn(caller->engine, true));
}

static void fill(struct caller *caller, unsigned count)
{
	while (caller->count < count) {
		for (unsigned i = 0; i < FILL_AT_ONCE && caller->count < count; i++) {
			int error = spoke_call(caller->waiting, caller->args, NULL, NULL, NULL,
					       &caller->calls[caller->count]);

			if (error == SPOKE_ELIMIT)
				break;
			must("waiting call", error);
			caller->count++;
		}
		must("turn", spoke_engine_turn(caller->engine, false));
	}
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(caller->engine, false));
}

static void cancel_down_to(struct caller *caller, unsigned count)
{
	while (caller->count > count)
		if (!spoke_call_cancel(caller->waiting_consumer, caller->calls[--caller->count]))
			die("a waiting call has ended");
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(caller->engine, false));
}

static void call(struct caller *caller);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;

	must("measured call", result->error);
	caller->ended++;
	if (caller->left > 0)
		call(caller);
}

static void call(struct caller *caller)
{
	caller->left--;
	must("call", spoke_call(caller->measured, caller->args, NULL, call_done, caller, NULL));
}

/* Returns the CPU time of this process per call, over `count` calls. */
static double measure(struct caller *caller, unsigned calls)
{
	uint64_t begun_ns;

	caller->left = calls;
	caller->ended = 0;
	begun_ns = cpu_ns();
	for (unsigned i = 0; i < OUTSTANDING; i++)
		call(caller);
	while (caller->ended < calls)
		must("turn", spoke_engine_turn(caller->engine, true));
	return (double)(cpu_ns() - begun_ns) / calls;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static void measure_cost(struct caller *caller, unsigned few, unsigned many, unsigned calls)
{
	double with_few[ROUNDS];
	double with_many[ROUNDS];
	double ratios[ROUNDS];
	struct usage before;
	struct usage after;

	fill(caller, few);
	(void)measure(caller, calls);
	before = usage_now();
	for (unsigned i = 0; i < ROUNDS; i++) {
		with_few[i] = measure(caller, calls);
		fill(caller, many);
		after = usage_now();
		if (i == 0) {
			report("pending_call_malloc",
			       (double)(after.handed_out - before.handed_out) / (many - few),
			       "bytes", 256);
			report("pending_call_rss",
			       (double)(after.resident - before.resident) / (many - few), "bytes",
			       0);
		}
		with_many[i] = measure(caller, calls);
		ratios[i] = with_many[i] / with_few[i];
		cancel_down_to(caller, few);
	}
	report("call_cost_with_few_pending", median(with_few), "ns", 0);
	report("call_cost_with_many_pending", median(with_many), "ns", 0);
	report("call_cost_many_to_few", median(ratios), "ratio", 1.5);
}

/* Makes the engine and the arguments of calls, in `memory`. */
static void begin(struct caller *caller, unsigned char *memory, size_t size)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, size, NULL);
	spoke_pack_text(&builder, "hello");
	must("arguments", spoke_builder_finish(&builder, &caller->args));
	must("engine", spoke_engine_new(NULL, &caller->engine));
}

static void measure_pending(unsigned few, unsigned many, unsigned calls)
{
	struct caller caller = { .calls = calloc(many, sizeof(struct spoke_call)) };
	unsigned conns = 1;
	struct spoke_consumer *measured_consumer;
	unsigned char memory[64];

	if (caller.calls == NULL)
		die("no memory");
	helper_start(&caller.silent, play_silent, NULL);
	helper_start(&caller.echoing, play_echo, &conns);
	begin(&caller, memory, sizeof(memory));
	connect_to(&caller, port_of(&caller.silent), many + 1, LONG_NS, &caller.waiting_consumer,
		   &caller.waiting);
	connect_to(&caller, port_of(&caller.echoing), 0, 10 * SECOND, &measured_consumer,
		   &caller.measured);
	measure_cost(&caller, few, many, calls);
	helper_end(&caller.silent);
	helper_end(&caller.echoing);
	spoke_engine_free(caller.engine);
	free(caller.calls);
}

/* --- measures idle consumers, each with a connection, a method and one call behind it */

static void measure_consumers(unsigned count)
{
	struct caller caller = { 0 };
	struct usage before;
	struct usage after;
	unsigned char memory[64];
	uint16_t port;

	helper_start(&caller.echoing, play_echo, &count);
	begin(&caller, memory, sizeof(memory));
	port = port_of(&caller.echoing);
	(void)malloc_trim(0);
	before = usage_now();
	for (unsigned i = 0; i < count; i++) {
		struct spoke_consumer *consumer;

		connect_to(&caller, port, 0, 10 * SECOND, &consumer, &caller.measured);
		caller.left = 1;
		caller.ended = 0;
		call(&caller);
		while (caller.ended == 0)
			must("turn", spoke_engine_turn(caller.engine, true));
	}
	after = usage_now();
	report("idle_consumer_malloc", (double)(after.handed_out - before.handed_out) / count / KIB,
	       "KiB", 10);
	report("idle_consumer_rss", (double)(after.resident - before.resident) / count / KIB, "KiB",
	       10);
	helper_end(&caller.echoing);
	spoke_engine_free(caller.engine);
}

/* --- measures the longest step by which the tables of a connection grow */

#define STEP_MAX_MS 2.0
/* CPU time of this thread, so that other processes do not count. */
static uint64_t thread_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void note_step(uint64_t begun_ns, uint64_t *worst_ns)
{
	uint64_t spent_ns = thread_ns() - begun_ns;

	*worst_ns = spent_ns > *worst_ns ? spent_ns : *worst_ns;
}

/* Adds calls to a ring of ids. */
static double grow_ring(unsigned count)
{
	struct spokei_pending *calls = calloc(count, sizeof(*calls));
	const struct spoke_env *env = spoke_host_env();
	struct spokei_pendings ring;
	uint64_t worst_ns = 0;

	if (calls == NULL)
		die("no memory");
	spokei_pendings_init(&ring, 0, UINT64_MAX, 1);
	for (unsigned i = 0; i < count; i++) {
		uint64_t begun_ns = thread_ns();

		must("call", spokei_pendings_add(&ring, env, &calls[i]));
		note_step(begun_ns, &worst_ns);
	}
	for (unsigned i = 0; i < count; i++)
		spokei_pendings_remove(&ring, &calls[i]);
	spokei_pendings_fini(&ring, env);
	free(calls);
	return (double)worst_ns / MS;
}

/* Adds requests to a table by id. */
static double grow_table(unsigned count)
{
	uint64_t *ids = calloc(count, sizeof(*ids));
	struct spokei_map table;
	uint64_t worst_ns = 0;

	if (ids == NULL)
		die("no memory");
	spokei_map_init(&table, spoke_host_env());
	for (unsigned i = 0; i < count; i++) {
		uint64_t begun_ns = thread_ns();

		ids[i] = i;
		must("request", spokei_map_add(&table, &ids[i], sizeof(ids[i]), &ids[i]));
		note_step(begun_ns, &worst_ns);
	}
	spokei_map_fini(&table);
	free(ids);
	return (double)worst_ns / MS;
}

static void measure_steps(unsigned count)
{
	report("ring_of_calls_longest_step", grow_ring(count), "ms", STEP_MAX_MS);
	report("table_of_requests_longest_step", grow_table(count), "ms", STEP_MAX_MS);
}

/* --- measures sizes first, then tables, connections and calls; fails if a target is missed */

#define DESCRIPTORS_MORE 100u /* more than connections */

static void make_room(unsigned conns)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot read the limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < conns + DESCRIPTORS_MORE || setrlimit(RLIMIT_NOFILE, &limit))
		die("%u connections need a hard limit of %u descriptors; it is %lu", conns,
		    conns + DESCRIPTORS_MORE, (unsigned long)limit.rlim_max);
}

int main(int argc, char **argv)
{
	bool is_quick = false;
	const struct option_row quick = { "--quick", .flag = &is_quick };
	unsigned conns;

	options_read(argc, argv, &quick, 1, "[--quick]");
	conns = is_quick ? 1000 : 10000;
	make_room(conns);
	measure_sizes();
	measure_steps(is_quick ? 300000 : 2200000);
	measure_consumers(conns);
	measure_idle(conns);
	measure_waiting(is_quick ? 10 : 100);
	if (is_quick)
		measure_pending(1000, 100000, 20000);
	else
		measure_pending(1000, 1000000, 200000);
	return !report_is_good();
}
