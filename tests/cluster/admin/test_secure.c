/* SPDX-License-Identifier: Apache-2.0 */
/* The admin page over TLS: its clients are served, asked for a certificate or the token, or closed.
 */
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/test.h"

#include "cluster/admin/parts.h"
#include "core/virtual/files.h"
#include "tests/cluster/securerig.h"
#include "tests/support/scene.h"
#include "transport/stream/tls/tls.h"

#include <spoke/stats.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GET(path) "GET " path " HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"

enum {
	ROUNDS = 400,
	PIECE = 4096,
	FAULTS_MAX = 400,
};

static struct secure secure;

STEP(set_up)
{
	adminrig_open_bare();
	assert_true(secure_begin(&secure, &adminrig.world, "tls"));
}

FIXTURE(set_up, adminrig_tear_down);

/* --- a client with a library of its own */

struct client {
	SSL_CTX *context;
	SSL *ssl;
	int fd;
	bool ended; /* the page has closed */
	size_t len; /* of the text in adminrig.got */
};

static BIO *file_of(const char *path)
{
	const struct spoke_env *env = &adminrig.client.env;
	static char bytes[16384];
	ssize_t got = env->files->read(env->ctx, path, bytes, sizeof(bytes));

	assert_true(got > 0);
	return BIO_new_mem_buf(bytes, (int)got);
}

static void show_certificate(SSL_CTX *context)
{
	BIO *file = file_of(secure.consumer.cert);
	X509 *cert = PEM_read_bio_X509(file, NULL, NULL, NULL);
	EVP_PKEY *key;

	BIO_free(file);
	file = file_of(secure.consumer.key);
	key = PEM_read_bio_PrivateKey(file, NULL, NULL, NULL);
	BIO_free(file);
	assert_int_equal(SSL_CTX_use_certificate(context, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* Sends what the library has made, and takes one piece of the page's answer. */
static void pass(struct client *client)
{
	const struct spoke_env *env = &adminrig.client.env;
	char bytes[PIECE];
	ssize_t got;
	size_t len;
	int made;

	while ((made = BIO_read(SSL_get_wbio(client->ssl), bytes, sizeof(bytes))) > 0) {
		struct iovec part = spokei_stream_part(bytes, (size_t)made);

		(void)env->net->write(env->ctx, client->fd, &part, 1);
	}
	adminrig_run(MS);
	got = env->net->read(env->ctx, client->fd, bytes, sizeof(bytes));
	if (got > 0)
		assert_int_equal(BIO_write(SSL_get_rbio(client->ssl), bytes, (int)got), got);
	client->ended = client->ended || (got <= 0 && got != -EAGAIN);
	while (SSL_read_ex(client->ssl, adminrig.got + client->len,
			   ADMINRIG_READ_MAX - 1 - client->len, &len) == 1)
		client->len += len;
	adminrig.got[client->len] = '\0';
}

static void join(struct client *client, bool shows)
{
	BIO *in = BIO_new(BIO_s_mem());

	memset(client, 0, sizeof(*client));
	client->context = SSL_CTX_new(TLS_client_method());
	if (shows)
		show_certificate(client->context);
	client->ssl = SSL_new(client->context);
	(void)BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(client->ssl, in, BIO_new(BIO_s_mem()));
	SSL_set_connect_state(client->ssl);
	client->fd = adminrig_connect();
	adminrig.got[0] = '\0';
	for (unsigned i = 0; i < 8 && SSL_do_handshake(client->ssl) != 1; i++)
		pass(client);
}

static void leave(struct client *client)
{
	adminrig_hang_up(client->fd);
	SSL_free(client->ssl);
	SSL_CTX_free(client->context);
	adminrig_run(MS);
}

static void say(struct client *client, const char *text)
{
	(void)SSL_write(client->ssl, text, (int)strlen(text));
	pass(client);
}

/* Asks over a connection of its own. Returns the status, 0: there is no response. */
static int ask(const char *request, bool shows)
{
	struct client client;

	join(&client, shows);
	say(&client, request);
	for (unsigned i = 0; i < ROUNDS && !client.ended; i++)
		pass(&client);
	assert_true(client.ended);
	leave(&client);
	if (client.len == 0)
		return 0;
	assert_memory_equal(adminrig.got, "HTTP/1.1 ", 9);
	return (int)strtol(adminrig.got + 9, NULL, 10);
}

/* --- the page */

static void open_page(enum spoke_tls_verify verify, bool token_reads)
{
	struct spoke_admin_options options = adminrig_options();

	secure.provider.verify = verify;
	options.tls = &secure.provider;
	options.token_reads = token_reads;
	assert_int_equal(spoke_admin_new(adminrig.engine, &options, &adminrig.admin), SPOKE_OK);
}

/* Returns whether the page ends a stream within so many seconds, in which it is read. */
static bool ends(struct client *client, unsigned seconds)
{
	for (unsigned i = 0; i < seconds && !client->ended; i++) {
		adminrig_run(SECOND);
		client->len = 0;
		for (unsigned j = 0; j < 20; j++)
			pass(client);
	}
	return client->ended;
}

TEST(stream_of_a_withdrawn_certificate_is_ended)
{
	struct client other;
	struct client client;

	open_page(SPOKE_TLS_VERIFY_OPTIONAL, false);
	join(&client, true);
	say(&client, GET("/events"));
	assert_false(ends(&client, 2));
	spokei_vfiles_put(adminrig.world.files, secure.provider.ca,
			  spokei_vfiles_get(adminrig.world.files, secure.provider.cert));
	spokei_tls_reload(adminrig.admin->tls);
	assert_true(ends(&client, 2));
	/* Others stay. */
	leave(&client);
	join(&other, false);
	say(&other, GET("/events"));
	assert_false(ends(&other, 2));
	leave(&other);
}

TEST(stream_of_a_replaced_token_is_ended)
{
	struct spoke_admin_options options = adminrig_options();
	struct client client;

	spokei_vfiles_put(adminrig.world.files, "token", "correct-horse\n");
	options.tls = &secure.provider;
	secure.provider.verify = SPOKE_TLS_VERIFY_NONE;
	options.token = NULL;
	options.token_file = "token";
	options.token_reads = true;
	assert_int_equal(spoke_admin_new(adminrig.engine, &options, &adminrig.admin), SPOKE_OK);
	join(&client, false);
	say(&client,
	    "GET /events HTTP/1.1\r\n" ADMINRIG_HOST "Authorization: Bearer correct-horse\r\n\r\n");
	assert_false(ends(&client, 61));
	spokei_vfiles_put(adminrig.world.files, "token", "battery-staple\n");
	assert_true(ends(&client, 61));
	leave(&client);
}

/* Counts the events of the page's engine that contain the words. */
static unsigned count_events(const char *words)
{
	return scene_events(adminrig.engine, words);
}

static uint64_t stat_of(enum spoke_stat stat)
{
	return spoke_stat_get(adminrig.engine, stat);
}

static void assert_whole(void)
{
	const char *length = strstr(adminrig.got, "Content-Length: ");
	const char *body = strstr(adminrig.got, "\r\n\r\n");

	assert_non_null(length);
	assert_non_null(body);
	assert_int_equal(strtoul(length + 16, NULL, 10), strlen(body + 4));
}

TEST(page_over_tls_answers_all_its_bytes)
{
	static const struct spokei_vnet_link narrow = { .capacity = 1500 };

	open_page(SPOKE_TLS_VERIFY_NONE, false);
	assert_int_equal(ask(GET("/metrics"), false), 200);
	assert_non_null(strstr(adminrig.got, "spoke_handshakes_done_total"));
	assert_whole();
	spokei_vnet_set_all(adminrig.world.net, &narrow);
	assert_int_equal(ask(GET("/"), false), 200);
	assert_whole();
	assert_int_equal(ask(GET("/none"), false), 404);
}

TEST(events_go_on_over_tls)
{
	struct client client;
	size_t before;

	open_page(SPOKE_TLS_VERIFY_NONE, false);
	join(&client, false);
	say(&client, GET("/events"));
	for (unsigned i = 0; i < 4; i++) {
		before = client.len;
		adminrig_run(SECOND);
		for (unsigned j = 0; j < 20; j++)
			pass(&client);
		assert_true(client.len > before);
		assert_false(client.ended);
	}
	leave(&client);
}

TEST(plain_request_is_closed_without_an_answer)
{
	bool ended;
	int fd;

	open_page(SPOKE_TLS_VERIFY_NONE, false);
	fd = adminrig_connect();
	adminrig_run(MS);
	adminrig_send(fd, GET("/metrics"));
	assert_string_equal(adminrig_read(fd, &ended), "");
	assert_true(ended);
	adminrig_hang_up(fd);
	assert_int_equal(stat_of(SPOKE_STAT_CLOSED_HANDSHAKE), 1);
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_PLAIN), 1);
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 0);
	assert_int_equal(count_events("page: connection of "), 1);
	assert_int_equal(count_events("TLS: the peer speaks plain bytes"), 1);
}

/* The first byte decides, also if it comes alone. */
TEST(optional_page_serves_both)
{
	bool ended;
	int fd;

	secure.provider.optional = true;
	open_page(SPOKE_TLS_VERIFY_NONE, false);
	secure.provider.optional = false;
	for (unsigned pieces = 0; pieces < 2; pieces++) {
		fd = adminrig_connect();
		adminrig_run(MS);
		if (pieces)
			adminrig_send(fd, "G");
		adminrig_send(fd, pieces ? GET("/live") + 1 : GET("/live"));
		assert_non_null(strstr(adminrig_read(fd, &ended), "200 OK"));
		adminrig_hang_up(fd);
		adminrig_run(MS);
	}
	assert_int_equal(ask(GET("/live"), false), 200);
}

TEST(plain_requests_are_reported_ten_times_a_second)
{
	open_page(SPOKE_TLS_VERIFY_NONE, false);
	for (unsigned i = 0; i < 100; i++) {
		int fd = adminrig_connect();

		adminrig_run(MS);
		adminrig_send(fd, GET("/metrics"));
		adminrig_hang_up(fd);
		adminrig_run(MS);
	}
	assert_int_equal(stat_of(SPOKE_STAT_CLOSED_HANDSHAKE), 100);
	assert_in_range(count_events("page: connection of "), 10, 20);
}

static void stall(const char *first)
{
	bool ended;
	int fd;

	fd = adminrig_connect();
	adminrig_run(MS);
	adminrig_send(fd, first);
	adminrig_run(SPOKEI_HTTP_REQUEST_NS - 10 * MS);
	(void)adminrig_read(fd, &ended);
	assert_false(ended);
	adminrig_run(20 * MS);
	assert_string_equal(adminrig_read(fd, &ended), "");
	assert_true(ended);
	adminrig_hang_up(fd);
}

TEST(handshake_that_stalls_is_closed_after_the_time_of_requests)
{
	open_page(SPOKE_TLS_VERIFY_NONE, false);
	stall("\x16");
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 1);
	assert_int_equal(stat_of(SPOKE_STAT_CLOSED_HANDSHAKE), 1);
	assert_int_equal(count_events("it was not over in time"), 1);
	stall("");
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 2);
}

/* Such a client may have wanted to speak plain bytes. */
TEST(mute_client_has_begun_no_handshake_where_tls_is_optional)
{
	secure.provider.optional = true;
	open_page(SPOKE_TLS_VERIFY_NONE, false);
	stall("");
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 0);
	assert_int_equal(count_events("page: connection of "), 0);
	stall("\x16");
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 1);
	assert_int_equal(count_events("page: connection of "), 1);
}

TEST(client_without_a_certificate_is_refused_if_one_is_asked_for)
{
	open_page(SPOKE_TLS_VERIFY_DEFAULT, false);
	assert_int_equal(ask(GET("/metrics"), false), 0);
	assert_int_equal(stat_of(SPOKE_STAT_CLOSED_HANDSHAKE), 1);
	assert_int_equal(stat_of(SPOKE_STAT_HANDSHAKES_LATE), 0);
	assert_int_equal(count_events("page: connection of "), 1);
	assert_int_equal(count_events("peer did not return a certificate"), 1);
	assert_int_equal(ask(GET("/metrics"), true), 200);
	assert_int_equal(count_events("page: connection of "), 1);
}

TEST(certificate_or_token_reads)
{
	open_page(SPOKE_TLS_VERIFY_OPTIONAL, true);
	assert_int_equal(ask(GET("/metrics"), false), 401);
	assert_int_equal(ask("GET /metrics HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n",
			     false),
			 200);
	assert_int_equal(ask(GET("/metrics"), true), 200);
	assert_int_equal(ask("GET /metrics HTTP/1.1\r\n" ADMINRIG_HOST
			     "Origin: https://evil.example\r\n\r\n",
			     true),
			 403);
	assert_int_equal(ask(GET("/live"), false), 200);
}

TEST(certificate_alone_triggers_no_action)
{
	open_page(SPOKE_TLS_VERIFY_OPTIONAL, true);
	assert_int_equal(ask("POST /act/act HTTP/1.1\r\n" ADMINRIG_HOST "\r\n", true), 401);
	assert_int_equal(adminrig.acted, 0);
	assert_int_equal(ask("POST /act/act HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n",
			     true),
			 202);
	assert_int_equal(adminrig.acted, 1);
}

TEST(page_over_tls_that_any_host_may_read_says_so)
{
	static const struct {
		enum spoke_tls_verify verify;
		bool optional;
		bool token_reads;
		const char *event; /* NULL: none */
	} rows[] = {
		{ SPOKE_TLS_VERIFY_REQUIRED, false, false, NULL },
		{ SPOKE_TLS_VERIFY_REQUIRED, true, false, "may read it, in plain text" },
		{ SPOKE_TLS_VERIFY_OPTIONAL, false, false, "because TLS requires no certificate" },
		{ SPOKE_TLS_VERIFY_OPTIONAL, false, true, NULL },
		{ SPOKE_TLS_VERIFY_NONE, false, false, "because TLS requires no certificate" },
		{ SPOKE_TLS_VERIFY_NONE, false, true, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_admin_options options = adminrig_options();
		const char *event = rows[i].event ? rows[i].event : "all hosts that reach";
		unsigned before = count_events(event);
		struct spoke_admin *admin;

		secure.provider.verify = rows[i].verify;
		secure.provider.optional = rows[i].optional;
		options.tls = &secure.provider;
		options.token_reads = rows[i].token_reads;
		options.listen = "10.0.0.1:9091";
		assert_int_equal(spoke_admin_new(adminrig.engine, &options, &admin), SPOKE_OK);
		assert_int_equal(count_events(event) - before, rows[i].event != NULL);
		spoke_admin_free(admin);
		adminrig_run(MS);
	}
}

TEST(page_without_its_certificate_is_not_made)
{
	static const struct spoke_tls_options missing = { .cert = "none", .key = "none" };
	struct spoke_admin_options options = adminrig_options();

	options.tls = &missing;
	assert_int_equal(spoke_admin_new(adminrig.engine, &options, &adminrig.admin),
			 SPOKE_ESYSTEM);
	assert_non_null(strstr(spoke_engine_why(adminrig.engine), "none"));
}

/* Each failing call ends the connection at most; the next one is served. */
TEST(page_over_tls_survives_failing_calls)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
	} faults[] = {
		{ SPOKEI_FAULTS_MEMORY, -ENOMEM },
		{ SPOKEI_FAULTS_READ, -ECONNRESET },
		{ SPOKEI_FAULTS_WRITE, -EPIPE },
		{ SPOKEI_FAULTS_SHUT, -ENOTCONN },
	};

	open_page(SPOKE_TLS_VERIFY_NONE, false);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		bool failed = true;

		for (uint64_t nth = 1; failed && nth < FAULTS_MAX; nth++) {
			uint64_t before = adminrig.faulty.failed[faults[i].kind];
			struct client client;

			spokei_faults_fail(&adminrig.faulty, faults[i].kind, nth, faults[i].error,
					   false);
			join(&client, false);
			say(&client, GET("/live"));
			for (unsigned j = 0; j < 20 && !client.ended; j++)
				pass(&client);
			failed = adminrig.faulty.failed[faults[i].kind] > before;
			spokei_faults_heal(&adminrig.faulty);
			leave(&client);
			adminrig_run(10 * SECOND);
		}
		assert_false(failed);
		assert_int_equal(ask(GET("/live"), false), 200);
	}
}
