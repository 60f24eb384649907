/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS stream and its scripted peer: see tlsrig.h. */
#include "tests/transport/stream/tlsrig.h"

#include "core/virtual/files.h"
#include "tests/support/scene.h"

#include <spoke/engine.h>

#include <openssl/err.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACE "127.0.0.1:20880"
#define CAPACITY 4194304u

enum {
	ROUNDS = 64,
	USER_ERROR = 77,
	READS_MAX = 1 << 20,
	PIECE = 65536,
};

/* --- the stream */

void (*tlsrig_inside)(bool inside);

/* The library's errors belong to the thread: those of the user before a call are not taken for the
 * stream's, and the stream leaves none of its own. */
static void enter(struct tlsrig *rig)
{
	spokei_engine_refresh(rig->engine);
	ERR_clear_error(); /* of the peer, on this thread too */
	ERR_raise(ERR_LIB_USER, USER_ERROR);
	if (tlsrig_inside)
		tlsrig_inside(true);
}

static void leave(void)
{
	unsigned long error;

	if (tlsrig_inside)
		tlsrig_inside(false);
	error = ERR_get_error();
	while (error) {
		assert_int_equal(ERR_GET_LIB(error), ERR_LIB_USER);
		error = ERR_get_error();
	}
}

struct spokei_tls_link *tlsrig_link(const struct tlsrig *rig)
{
	return rig->stream.kind == &rig->tls->kind ? rig->stream.state : NULL;
}

static bool has_more(const struct tlsrig *rig)
{
	return !rig->paused && rig->ended == TLSRIG_READING &&
	       spokei_stream_pending(&rig->stream) > 0;
}

static void read_once(struct tlsrig *rig)
{
	static unsigned char room[SPOKEI_ENGINE_SCRATCH];
	size_t piece = rig->piece ? rig->piece : sizeof(room);
	ssize_t got;

	enter(rig);
	got = rig->stream.kind->read(&rig->stream, room, piece);
	leave();
	rig->reads++;
	assert_in_range(rig->reads, 1, READS_MAX);
	if (got == -EAGAIN || got == -EINTR) {
		rig->idle_reads++;
		return;
	}
	if (got <= 0) {
		rig->ended = (int)got;
		return;
	}
	assert_in_range(got, 1, piece);
	assert_in_range(rig->got_len + (size_t)got, 1, TLSRIG_ROOM);
	if (rig->got_len == 0)
		rig->first_turn = rig->turns;
	memcpy(rig->got + rig->got_len, room, (size_t)got);
	rig->got_len += (size_t)got;
}

static void flush(struct tlsrig *rig)
{
	int status;

	enter(rig);
	status = rig->stream.layered ? rig->stream.kind->flush(&rig->stream) : 0;
	leave();
	if (status < 0 && status != -EAGAIN && status != -EINTR)
		rig->broken = status;
}

void tlsrig_watch(struct tlsrig *rig)
{
	struct spokei_stream *stream = &rig->stream;
	bool open = rig->status == 0;
	unsigned io = open && !rig->paused && rig->ended == TLSRIG_READING ? SPOKE_IO_READ : 0;

	if (rig->status < 0)
		io = 0;
	else if (stream->layered)
		io = stream->kind->wants(stream, io);
	spokei_stream_watch(stream, io);
}

static void ready(struct spoke_watch *ready_watch, unsigned io)
{
	struct tlsrig *rig = spoke_container_of(ready_watch, struct tlsrig, stream.watch);

	(void)io;
	rig->turns++;
	if (rig->status == TLSRIG_OPENING) {
		enter(rig);
		rig->status = rig->stream.kind->open(&rig->stream);
		leave();
		if (rig->status == 0)
			rig->opened_turn = rig->turns;
		if (rig->status == 0 && has_more(rig))
			read_once(rig);
	} else if (rig->status == 0 && !rig->paused && rig->ended == TLSRIG_READING) {
		read_once(rig);
	}
	while (rig->status == 0 && has_more(rig))
		read_once(rig);
	if (rig->status == 0)
		flush(rig);
	tlsrig_watch(rig);
}

void tlsrig_run(struct tlsrig *rig)
{
	spokei_world_run(&rig->world, rig->world.now_ns + TLSRIG_MS);
}

ssize_t tlsrig_write(struct tlsrig *rig, const void *bytes, size_t len)
{
	struct iovec part = spokei_stream_part(bytes, len);
	ssize_t took;

	enter(rig);
	took = rig->stream.kind->write(&rig->stream, &part, 1);
	leave();
	tlsrig_watch(rig);
	return took;
}

/* --- alerts */

static void note_alert(const SSL *ssl, int where, int value)
{
	struct tlsrig *rig = SSL_get_app_data(ssl);

	if (where == SSL_CB_READ_ALERT)
		rig->alert = value & 0xff;
}

/* --- making */

static SSL_CTX *make_context(const struct tlsrig_setting *setting)
{
	const struct tlsrig_certs *certs = tlsrig_certs();
	const struct tlscert *own = setting->accepts ? &certs->client : &certs->server;
	SSL_CTX *context = SSL_CTX_new(setting->accepts ? TLS_client_method()
							: TLS_server_method());

	assert_non_null(context);
	if (setting->peer)
		own = setting->peer;
	if (!setting->peer_has_none) {
		assert_int_equal(SSL_CTX_use_certificate(context, own->cert), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey(context, own->key), 1);
	}
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(context),
					     certs->authority.cert),
			 1);
	(void)SSL_CTX_set_num_tickets(context, 0);
	if (setting->accepts)
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (setting->set_context)
		setting->set_context(context);
	return context;
}

static void make_peer(struct tlsrig *rig)
{
	const struct tlsrig_setting *setting = &rig->setting;
	BIO *in = BIO_new(BIO_s_mem());
	BIO *out = BIO_new(BIO_s_mem());

	rig->peer = SSL_new(rig->context);
	assert_non_null(rig->peer);
	assert_true(in && out);
	(void)BIO_set_mem_eof_return(in, -1);
	assert_int_equal(SSL_set_app_data(rig->peer, rig), 1);
	SSL_set_info_callback(rig->peer, note_alert);
	rig->alert = -1;
	SSL_set_bio(rig->peer, in, out);
	rig->peer_status = SSL_ERROR_WANT_READ;
	if (setting->accepts)
		SSL_set_connect_state(rig->peer);
	else
		SSL_set_accept_state(rig->peer);
}

static void make_stream(struct tlsrig *rig, const struct tlsrig_setting *setting)
{
	char list[TLSCERT_PEM];
	struct spokei_tls_options options = {
		.accepts = setting->accepts,
		.cert = setting->accepts ? "server" : "client",
		.key = setting->accepts ? "server.key" : "client.key",
		.ca = "authority",
		.crl = setting->revoked ? "revoked" : NULL,
		.peers = setting->peers,
		.verify = setting->verify ? setting->verify : SPOKE_TLS_VERIFY_NONE,
		.oldest = setting->oldest,
	};
	char why[SPOKEI_TLS_WHY];

	tlsrig_put_files(&rig->world);
	if (setting->revoked) {
		tlscert_crl(&tlsrig_certs()->authority, setting->revoked, 0, list);
		spokei_vfiles_put(rig->world.files, "revoked", list);
	}
	enter(rig);
	if (spokei_tls_new(rig->engine, &options, why, &rig->tls))
		fail_msg("%s", why);
	leave();
}

static void join(struct tlsrig *rig)
{
	const struct tlsrig_setting *setting = &rig->setting;
	const struct spokei_vnet_link link = { .capacity = CAPACITY };
	int fds[2];

	spokei_vnet_set_all(rig->world.net, &link);
	scene_pair(&rig->world, &rig->faulty.env, PLACE, fds);
	rig->fd = fds[setting->accepts ? 0 : 1];
	spokei_stream_init(&rig->stream, rig->engine,
			   setting->or_plain ? spokei_tls_or_plain(rig->tls)
					     : spokei_tls_kind(rig->tls),
			   fds[setting->accepts ? 1 : 0], ready);
	rig->stream.accepted = setting->accepts;
	if (!setting->accepts)
		rig->stream.host = setting->host ? setting->host : TLSRIG_HOST;
}

/* Makes the connection and both of its ends. */
static void start(struct tlsrig *rig)
{
	rig->status = TLSRIG_OPENING;
	rig->ended = TLSRIG_READING;
	rig->broken = 0;
	rig->turns = rig->opened_turn = rig->first_turn = 0;
	rig->reads = rig->idle_reads = 0;
	rig->got_len = 0;
	rig->paused = false;
	rig->peer_ended = false;
	rig->answered = 0;
	make_peer(rig);
	join(rig);
	ready(&rig->stream.watch, SPOKE_IO_READ);
}

static void stop(struct tlsrig *rig)
{
	const struct spoke_env *env = &rig->faulty.env;

	if (rig->fd >= 0)
		env->net->close(env->ctx, rig->fd);
	enter(rig);
	spokei_stream_close(&rig->stream);
	leave();
	SSL_free(rig->peer);
}

void tlsrig_again(struct tlsrig *rig)
{
	stop(rig);
	start(rig);
}

void tlsrig_begin(struct tlsrig *rig, const struct tlsrig_setting *setting)
{
	memset(rig, 0, sizeof(*rig));
	(void)tlsrig_certs();
	scene_open(&rig->world, 3);
	rig->engine = scene_engine(&rig->world, &rig->process, &rig->faulty, NULL);
	rig->got = malloc(TLSRIG_ROOM);
	assert_non_null(rig->got);
	rig->setting = *setting;
	make_stream(rig, setting);
	rig->context = make_context(setting);
	start(rig);
}

void tlsrig_end(struct tlsrig *rig)
{
	spokei_faults_heal(&rig->faulty);
	stop(rig);
	spokei_tls_free(rig->tls);
	scene_leave(&rig->process, &rig->faulty, &rig->engine);
	spokei_world_fini(&rig->world);
	SSL_CTX_free(rig->context);
	free(rig->got);
}

/* --- bytes */

void tlsrig_send(struct tlsrig *rig, const void *bytes, size_t len)
{
	const struct spoke_env *env = &rig->process.env; /* the peer's calls never fail */
	struct iovec part = spokei_stream_part(bytes, len);

	if (len > 0)
		assert_int_equal(env->net->write(env->ctx, rig->fd, &part, 1), len);
	tlsrig_run(rig);
}

void tlsrig_hang_up(struct tlsrig *rig)
{
	const struct spoke_env *env = &rig->faulty.env;

	env->net->close(env->ctx, rig->fd);
	rig->fd = -1;
	tlsrig_run(rig);
}

void tlsrig_drip(struct tlsrig *rig, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		tlsrig_send(rig, bytes + i, 1);
}

size_t tlsrig_made(struct tlsrig *rig, unsigned char *bytes, size_t size)
{
	BIO *out = SSL_get_wbio(rig->peer);
	size_t len = BIO_ctrl_pending(out);

	assert_in_range(len, 0, size);
	if (len > 0)
		assert_int_equal(BIO_read(out, bytes, (int)len), len);
	return len;
}

void tlsrig_hear(struct tlsrig *rig)
{
	static unsigned char bytes[PIECE];
	const struct spoke_env *env = &rig->process.env;
	ssize_t got;

	tlsrig_run(rig);
	while ((got = env->net->read(env->ctx, rig->fd, bytes, sizeof(bytes))) > 0) {
		rig->answered += (size_t)got;
		assert_int_equal(BIO_write(SSL_get_rbio(rig->peer), bytes, (int)got), got);
		tlsrig_run(rig);
	}
	rig->peer_ended = rig->peer_ended || got != -EAGAIN;
}

void tlsrig_step(struct tlsrig *rig)
{
	int result;

	ERR_clear_error();
	result = SSL_do_handshake(rig->peer);
	rig->peer_status = result == 1 ? SSL_ERROR_NONE : SSL_get_error(rig->peer, result);
}

void tlsrig_pass(struct tlsrig *rig)
{
	static unsigned char bytes[TLSRIG_ROOM];

	tlsrig_send(rig, bytes, tlsrig_made(rig, bytes, sizeof(bytes)));
	tlsrig_hear(rig);
}

void tlsrig_shake(struct tlsrig *rig)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (rig->peer_status == SSL_ERROR_WANT_READ)
			tlsrig_step(rig);
		tlsrig_pass(rig);
		if (rig->status != TLSRIG_OPENING && rig->peer_status != SSL_ERROR_WANT_READ)
			return;
	}
}

void tlsrig_open(struct tlsrig *rig)
{
	tlsrig_shake(rig);
	if (rig->status != 0)
		print_message("%s\n", rig->tls->why);
	assert_int_equal(rig->status, 0);
	assert_int_equal(rig->peer_status, SSL_ERROR_NONE);
}

void tlsrig_peer_write(struct tlsrig *rig, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	size_t took;

	ERR_clear_error();
	while (len > 0) {
		assert_int_equal(SSL_write_ex(rig->peer, at, len, &took), 1);
		at += took;
		len -= took;
	}
}

size_t tlsrig_peer_read(struct tlsrig *rig, unsigned char *bytes, size_t size)
{
	size_t len = 0;
	size_t got;

	ERR_clear_error();
	while (len < size && SSL_read_ex(rig->peer, bytes + len, size - len, &got) == 1)
		len += got;
	return len;
}
