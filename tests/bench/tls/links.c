/* SPDX-License-Identifier: Apache-2.0 */
/* Connections without spoke, and the library alone. */
#include "tests/bench/tls/bench.h"

#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

SSL_CTX *bench_client_context(bool shows_certificate)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL)
		bench_die("no context");
	/* As consumers of spoke do. */
	(void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	if (shows_certificate &&
	    (SSL_CTX_use_certificate_chain_file(context, bench_path("consumer.pem")) != 1 ||
	     SSL_CTX_use_PrivateKey_file(context, bench_path("consumer.key"), SSL_FILETYPE_PEM) !=
		     1))
		bench_die("no certificate");
	return context;
}

int bench_dial(enum port port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(bench_ports[port]) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		bench_die("cannot connect");
	return fd;
}

static SSL *shake(SSL_CTX *context, int fd)
{
	SSL *ssl = SSL_new(context);

	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1)
		bench_die("no handshake");
	return ssl;
}

void bench_handshakes(const char *figure, enum port port)
{
	SSL_CTX *context = bench_client_context(port == PORT_MUTUAL);
	double begun = bench_server_cpu();
	double spent;

	for (unsigned i = 0; i < HANDSHAKES; i++) {
		int fd = bench_dial(port);
		SSL *ssl = shake(context, fd);

		if (SSL_shutdown(ssl) < 0)
			bench_die("no end");
		SSL_free(ssl);
		(void)close(fd);
	}
	bench_rest(200);
	spent = bench_server_cpu() - begun;
	printf("%s\t\t%.0f\t\n", figure, HANDSHAKES / spent);
	SSL_CTX_free(context);
}

SSL_CTX *bench_server_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (context == NULL ||
	    SSL_CTX_use_certificate_chain_file(context, bench_path("provider.pem")) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, bench_path("provider.key"), SSL_FILETYPE_PEM) != 1)
		bench_die("no certificate");
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	return context;
}

/* Joins two sides over memory. */
static void join(SSL *near, SSL *far)
{
	BIO *there = BIO_new(BIO_s_mem());
	BIO *back = BIO_new(BIO_s_mem());

	if (there == NULL || back == NULL)
		bench_die("no memory");
	(void)BIO_up_ref(there);
	(void)BIO_up_ref(back);
	SSL_set_bio(far, back, there);
	SSL_set_bio(near, there, back);
}

static void ask_certificate(SSL_CTX *context)
{
	if (SSL_CTX_load_verify_file(context, bench_path("ca.pem")) != 1)
		bench_die("no authority");
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

/* Prints how many handshakes a core would do if there were nothing but the library: its part of the
 * provider, over memory. */
void bench_library(bool mutual)
{
	SSL_CTX *client = bench_client_context(mutual);
	SSL_CTX *context = bench_server_context();
	double spent = 0;

	if (mutual)
		ask_certificate(context);

	for (unsigned i = 0; i < HANDSHAKES; i++) {
		SSL *far = SSL_new(client);
		double begun = bench_own_cpu();
		SSL *near = SSL_new(context);

		spent += bench_own_cpu() - begun;
		if (far == NULL || near == NULL)
			bench_die("no memory");
		join(near, far);
		while (!SSL_is_init_finished(near)) {
			(void)SSL_connect(far);
			begun = bench_own_cpu();
			(void)SSL_accept(near);
			spent += bench_own_cpu() - begun;
		}
		begun = bench_own_cpu();
		SSL_free(near);
		spent += bench_own_cpu() - begun;
		SSL_free(far);
	}
	printf("... of the library over memory\t\t%.0f\t\n", HANDSHAKES / spent);
	SSL_CTX_free(client);
	SSL_CTX_free(context);
}

/* Prints the CPU time of four records in the library, written and read over memory: a call has two,
 * each of which is written once and read once. */
void bench_records(void)
{
	enum {
		CALLS = 20000
	};
	static char bytes[130];
	SSL_CTX *client = bench_client_context(false);
	SSL_CTX *context = bench_server_context();
	SSL *near = SSL_new(context);
	SSL *far = SSL_new(client);
	double begun;

	if (near == NULL || far == NULL)
		bench_die("no memory");
	join(near, far);
	while (!SSL_is_init_finished(near)) {
		(void)SSL_connect(far);
		(void)SSL_accept(near);
	}
	begun = bench_own_cpu();
	for (unsigned i = 0; i < CALLS; i++)
		if (SSL_write(far, bytes, sizeof(bytes)) <= 0 ||
		    SSL_read(near, bytes, sizeof(bytes)) <= 0 ||
		    SSL_write(near, bytes, sizeof(bytes)) <= 0 ||
		    SSL_read(far, bytes, sizeof(bytes)) <= 0)
			bench_die("a record is lost");
	printf("us of CPU a call, the library's part\t\t%.2f\t\n",
	       (bench_own_cpu() - begun) / CALLS * 1e6);
	SSL_free(near);
	SSL_free(far);
	SSL_CTX_free(client);
	SSL_CTX_free(context);
}

/* Waits until the provider has nothing to do, and has given up what it keeps for a while. */
static void settle(void)
{
	double cpu = -1;

	while (bench_server_cpu() - cpu > 0.002) {
		cpu = bench_server_cpu();
		bench_rest(1000);
	}
	bench_rest(2500);
}

/* Prints the memory that the provider has for a connection in this state, after a first one, for
 * which the library makes what all need. */
void bench_weigh(const char *figure, enum port port, enum state state)
{
	static int fds[LINKS + 1];
	static SSL *ssls[LINKS + 1];
	SSL_CTX *context = bench_client_context(port == PORT_MUTUAL);
	double before = 0;

	for (unsigned i = 0; i < LINKS + 1; i++) {
		if (i == 1) {
			settle();
			before = bench_server_memory();
		}
		fds[i] = bench_dial(port);
		ssls[i] = NULL;
		if (state == STATE_BYTE && write(fds[i], "\x16", 1) != 1)
			bench_die("not written");
		if (state == STATE_OPEN && port != PORT_PLAIN)
			ssls[i] = shake(context, fds[i]);
		if (state == STATE_HELLO) { /* the answer is not read */
			ssls[i] = SSL_new(context);
			if (ssls[i] == NULL)
				bench_die("no memory");
			SSL_set_bio(ssls[i], BIO_new(BIO_s_mem()),
				    BIO_new_socket(fds[i], BIO_NOCLOSE));
			(void)SSL_connect(ssls[i]);
		}
	}
	settle();
	printf("%s\t\t%.0f\t\n", figure, (bench_server_memory() - before) / LINKS);
	(void)fflush(stdout);
	for (unsigned i = 0; i < LINKS + 1; i++) {
		char byte;

		if (recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
			bench_die("a connection was closed meanwhile");
		SSL_free(ssls[i]);
		(void)close(fds[i]);
	}
	SSL_CTX_free(context);
	bench_rest(300);
}
