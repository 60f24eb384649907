/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS beside plain connections, in one run: calls on one core, handshakes, and the memory of a
 * provider. `bench_tls <folder>`: the folder has ca.pem, provider.pem, provider.key, consumer.pem
 * and consumer.key. Prints TSV: figure, plain, tls, ratio.
 */
#include "tests/support/echo_handler.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/tls.h>

#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	ROUNDS = 9,
	ROUND_MS = 400,
	SEATS = 64,
	LINKS = 1000,
	HANDSHAKES = 1000,
	TEXT = 256,
};

/* What the provider speaks at each of its ports. */
enum port {
	PORT_PLAIN,
	PORT_TLS,
	PORT_MUTUAL,
	PORTS,
};

static char folder[TEXT];
static uint16_t ports[PORTS];
static pid_t server;

_Noreturn static void die(const char *what)
{
	(void)fprintf(stderr, "bench_tls: %s\n", what);
	if (server > 0)
		(void)kill(server, SIGKILL);
	exit(1);
}

static void must(const char *what, int error)
{
	char text[TEXT];

	if (error == 0)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", what, spoke_strerror(error));
	die(text);
}

static const char *path(const char *name)
{
	static char paths[8][2 * TEXT];
	static unsigned next;
	char *text = paths[next++ % 8];

	(void)snprintf(text, 2 * TEXT, "%s/%s", folder, name);
	return text;
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void rest(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_size);
	return values[count / 2];
}

/* --- the provider, a process of its own */

static uint16_t serve_at(struct spoke_engine *engine, const struct spoke_tls_options *tls)
{
	static const struct spoke_service_options service = { .name = "demo.EchoService" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_provider_options options = { .tls = tls,
						  .connections_per_peer_max = 100000,
						  .connections_max = 100000 };
	struct spoke_provider *provider;
	char text[TEXT];

	must("provider", spoke_provider_new(engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		die("the provider listens nowhere");
	return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

static void serve(int out)
{
	struct spoke_tls_options tls = { .cert = path("provider.pem"),
					 .key = path("provider.key"),
					 .handshakes_max = 65536,
					 .handshakes_per_peer_max = 65536,
					 .handshake_timeout_ns = UINT64_C(60000000000) };
	struct spoke_tls_options mutual = tls;
	struct spoke_engine *engine;

	mutual.ca = path("ca.pem");
	must("engine", spoke_engine_new(NULL, &engine));
	ports[PORT_PLAIN] = serve_at(engine, NULL);
	ports[PORT_TLS] = serve_at(engine, &tls);
	ports[PORT_MUTUAL] = serve_at(engine, &mutual);
	if (write(out, ports, sizeof(ports)) != sizeof(ports))
		die("the ports are not told");
	must("run", spoke_engine_run(engine));
}

static void start(void)
{
	int pipes[2];

	if (pipe(pipes))
		die("no pipe");
	server = fork();
	if (server == 0) {
		pin(0);
		serve(pipes[1]);
		_exit(0);
	}
	if (read(pipes[0], ports, sizeof(ports)) != sizeof(ports))
		die("the provider did not start");
}

/* Returns the CPU time of the provider, in seconds. */
static double server_cpu(void)
{
	char text[1024];
	char name[64];
	unsigned long user = 0;
	unsigned long system = 0;
	char *at;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/stat", (int)server);
	file = fopen(name, "r");
	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		die("no figures of the provider");
	(void)fclose(file);
	at = strrchr(text, ')');
	if (at == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				 &user, &system) != 2)
		die("no figures of the provider");
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Returns its resident memory, in bytes. */
static double server_memory(void)
{
	char name[64];
	unsigned long pages = 0;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/statm", (int)server);
	file = fopen(name, "r");
	if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
		die("no figures of the provider");
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* --- calls */

/* A round of calls. */
struct round {
	double rate; /* calls per second */
	double cpu;  /* seconds of both sides for a call */
};

struct load {
	struct spoke_engine *engine;
	struct spoke_method *method;
	struct spoke_span args;
	double until;
	uint64_t calls;
	unsigned in_flight;
};

static void call(struct load *load);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct load *load = arg;

	must("call", result->error);
	load->calls++;
	load->in_flight--;
	if (now() < load->until)
		call(load);
	else if (load->in_flight == 0)
		spoke_engine_stop(load->engine);
}

static void call(struct load *load)
{
	load->in_flight++;
	must("call", spoke_call(load->method, load->args, NULL, call_done, load, NULL));
}

static struct spoke_method *method_at(struct spoke_engine *engine, enum port port)
{
	struct spoke_tls_options tls = { .ca = path("ca.pem"), .peers = "dns:localhost" };
	char url[TEXT];
	struct spoke_consumer_options options = { .url = url,
						  .tls = port == PORT_PLAIN ? NULL : &tls,
						  .timeout_ns = UINT64_C(30000000000) };
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u/demo.EchoService", ports[port]);
	must("consumer", spoke_consumer_new(engine, &options, &consumer));
	must("method", spoke_consumer_method(consumer, "echo", NULL, &method));
	return method;
}

/* Returns the CPU time of this process, in seconds. */
static double own_cpu(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct round measure(struct load *load, unsigned depth)
{
	double cpu = own_cpu() + server_cpu();
	double begun = now();

	load->calls = 0;
	load->until = begun + ROUND_MS / 1e3;
	for (unsigned i = 0; i < depth; i++)
		call(load);
	must("run", spoke_engine_run(load->engine));
	return (struct round){
		.rate = (double)load->calls / (now() - begun),
		.cpu = (own_cpu() + server_cpu() - cpu) / (double)load->calls,
	};
}

static void compare_calls(const char *figure, size_t len, unsigned depth)
{
	struct spoke_builder builder;
	struct load loads[2];
	double rates[2][ROUNDS];
	double cpus[2][ROUNDS];
	double ratios[ROUNDS];
	double cpu_ratios[ROUNDS];
	char *text = malloc(len);

	if (text == NULL)
		die("no memory");
	memset(text, 'x', len);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_str(&builder, text, len);
	for (unsigned i = 0; i < 2; i++) {
		loads[i] = (struct load){ .engine = NULL };
		must("engine", spoke_engine_new(NULL, &loads[i].engine));
		loads[i].method = method_at(loads[i].engine, i == 0 ? PORT_PLAIN : PORT_TLS);
		if (i == 0)
			must("arguments", spoke_builder_finish(&builder, &loads[0].args));
		loads[i].args = loads[0].args;
		(void)measure(&loads[i], depth);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 2; i++) {
			struct round one = measure(&loads[i], depth);

			rates[i][round] = one.rate;
			cpus[i][round] = one.cpu * 1e6;
		}
		ratios[round] = rates[1][round] / rates[0][round];
		cpu_ratios[round] = cpus[0][round] / cpus[1][round];
	}
	printf("calls/s %s\t%.0f\t%.0f\t%.2f\n", figure, median(rates[0], ROUNDS),
	       median(rates[1], ROUNDS), median(ratios, ROUNDS));
	printf("us of CPU a call %s\t%.2f\t%.2f\t%.2f\n", figure, median(cpus[0], ROUNDS),
	       median(cpus[1], ROUNDS), median(cpu_ratios, ROUNDS));
	(void)fflush(stdout);
	spoke_engine_free(loads[0].engine);
	spoke_engine_free(loads[1].engine);
	spoke_builder_fini(&builder);
	free(text);
}

/* --- connections without spoke */

static SSL_CTX *client_context(bool shows_certificate)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL)
		die("no context");
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	if (shows_certificate &&
	    (SSL_CTX_use_certificate_chain_file(context, path("consumer.pem")) != 1 ||
	     SSL_CTX_use_PrivateKey_file(context, path("consumer.key"), SSL_FILETYPE_PEM) != 1))
		die("no certificate");
	return context;
}

static int dial(enum port port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ports[port]) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		die("cannot connect");
	return fd;
}

static SSL *shake(SSL_CTX *context, int fd)
{
	SSL *ssl = SSL_new(context);

	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1)
		die("no handshake");
	return ssl;
}

/* Prints how many handshakes a core of the provider does in a second. */
static void rate_handshakes(const char *figure, enum port port)
{
	SSL_CTX *context = client_context(port == PORT_MUTUAL);
	double begun = server_cpu();
	double spent;

	for (unsigned i = 0; i < HANDSHAKES; i++) {
		int fd = dial(port);
		SSL *ssl = shake(context, fd);

		if (SSL_shutdown(ssl) < 0)
			die("no end");
		SSL_free(ssl);
		(void)close(fd);
	}
	rest(200);
	spent = server_cpu() - begun;
	printf("%s\t\t%.0f\t\n", figure, HANDSHAKES / spent);
	SSL_CTX_free(context);
}

static SSL_CTX *server_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (context == NULL ||
	    SSL_CTX_use_certificate_chain_file(context, path("provider.pem")) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, path("provider.key"), SSL_FILETYPE_PEM) != 1)
		die("no certificate");
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	return context;
}

/* Joins two sides over memory. */
static void join(SSL *near, SSL *far)
{
	BIO *there = BIO_new(BIO_s_mem());
	BIO *back = BIO_new(BIO_s_mem());

	if (there == NULL || back == NULL)
		die("no memory");
	(void)BIO_up_ref(there);
	(void)BIO_up_ref(back);
	SSL_set_bio(far, back, there);
	SSL_set_bio(near, there, back);
}

/* Prints how many handshakes a core would do if there were nothing but the library: its part of the
 * provider, over memory. */
static void rate_library(void)
{
	SSL_CTX *client = client_context(false);
	SSL_CTX *context = server_context();
	double spent = 0;

	for (unsigned i = 0; i < HANDSHAKES; i++) {
		SSL *far = SSL_new(client);
		double begun = own_cpu();
		SSL *near = SSL_new(context);

		spent += own_cpu() - begun;
		if (far == NULL || near == NULL)
			die("no memory");
		join(near, far);
		while (!SSL_is_init_finished(near)) {
			(void)SSL_connect(far);
			begun = own_cpu();
			(void)SSL_accept(near);
			spent += own_cpu() - begun;
		}
		begun = own_cpu();
		SSL_free(near);
		spent += own_cpu() - begun;
		SSL_free(far);
	}
	printf("... of the library over memory\t\t%.0f\t\n", HANDSHAKES / spent);
	SSL_CTX_free(client);
	SSL_CTX_free(context);
}

/* Prints the CPU time of four records in the library, written and read over memory: a call has two,
 * each of which is written once and read once. */
static void time_records(void)
{
	enum {
		CALLS = 20000
	};
	static char bytes[130];
	SSL_CTX *client = client_context(false);
	SSL_CTX *context = server_context();
	SSL *near = SSL_new(context);
	SSL *far = SSL_new(client);
	double begun;

	if (near == NULL || far == NULL)
		die("no memory");
	join(near, far);
	while (!SSL_is_init_finished(near)) {
		(void)SSL_connect(far);
		(void)SSL_accept(near);
	}
	begun = own_cpu();
	for (unsigned i = 0; i < CALLS; i++)
		if (SSL_write(far, bytes, sizeof(bytes)) <= 0 ||
		    SSL_read(near, bytes, sizeof(bytes)) <= 0 ||
		    SSL_write(near, bytes, sizeof(bytes)) <= 0 ||
		    SSL_read(far, bytes, sizeof(bytes)) <= 0)
			die("a record is lost");
	printf("us of CPU a call, the library's part\t\t%.2f\t\n",
	       (own_cpu() - begun) / CALLS * 1e6);
	SSL_free(near);
	SSL_free(far);
	SSL_CTX_free(client);
	SSL_CTX_free(context);
}

enum state {
	STATE_MUTE,
	STATE_BYTE,
	STATE_HELLO,
	STATE_OPEN,
};

/* Prints the memory that the provider has for a connection in this state. */
static void weigh(const char *figure, enum port port, enum state state)
{
	static int fds[LINKS];
	static SSL *ssls[LINKS];
	SSL_CTX *context = client_context(port == PORT_MUTUAL);
	double before = server_memory();

	for (unsigned i = 0; i < LINKS; i++) {
		fds[i] = dial(port);
		ssls[i] = NULL;
		if (state == STATE_BYTE && write(fds[i], "\x16", 1) != 1)
			die("not written");
		if (state == STATE_OPEN && port != PORT_PLAIN)
			ssls[i] = shake(context, fds[i]);
		if (state == STATE_HELLO) { /* the answer is not read */
			ssls[i] = SSL_new(context);
			if (ssls[i] == NULL)
				die("no memory");
			SSL_set_bio(ssls[i], BIO_new(BIO_s_mem()),
				    BIO_new_socket(fds[i], BIO_NOCLOSE));
			(void)SSL_connect(ssls[i]);
		}
	}
	rest(1500);
	printf("%s\t\t%.0f\t\n", figure, (server_memory() - before) / LINKS);
	(void)fflush(stdout);
	for (unsigned i = 0; i < LINKS; i++) {
		char byte;

		if (recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
			die("a connection was closed meanwhile");
		SSL_free(ssls[i]);
		(void)close(fds[i]);
	}
	SSL_CTX_free(context);
	rest(300);
}

static const struct {
	const char *figure;
	enum port port;
	enum state state;
} weights[] = {
	{ "bytes of a plain connection", PORT_PLAIN, STATE_MUTE },
	{ "bytes of a silent one", PORT_TLS, STATE_MUTE },
	{ "... that sent a byte", PORT_TLS, STATE_BYTE },
	{ "... that sent a ClientHello", PORT_TLS, STATE_HELLO },
	{ "bytes of an open one", PORT_TLS, STATE_OPEN },
	{ "... with both certificates", PORT_MUTUAL, STATE_OPEN },
};

static void end_server(void)
{
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
}

/* A number weighs connections, in a process that has freed no memory before. */
int main(int argc, char **argv)
{
	unsigned long which = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc < 2 || which >= sizeof(weights) / sizeof(weights[0]))
		die("usage: bench_tls FOLDER [0 to 5]");
	(void)snprintf(folder, sizeof(folder), "%s", argv[1]);
	start();
	if (argc == 3) {
		pin(1);
		weigh(weights[which].figure, weights[which].port, weights[which].state);
		end_server();
		return 0;
	}
	pin(0);
	printf("figure\tplain\ttls\tratio\n");
	compare_calls("64B-1x1", 64, 1);
	time_records();
	compare_calls("64B-1x64", 64, SEATS);
	compare_calls("64KiB-1x1", 65536, 1);
	pin(1);
	rate_handshakes("handshakes/s of a core", PORT_TLS);
	rate_library();
	rate_handshakes("... with both certificates", PORT_MUTUAL);
	end_server();
	return 0;
}
