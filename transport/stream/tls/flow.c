/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a stream: between the library and the descriptor, and between the user and the
 * library. */
#include "transport/stream/tls/parts.h"

#include "core/base/env.h"
#include "core/engine/engine.h"

#include <openssl/err.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the descriptor
 *
 * Bytes between the library and the descriptor, through a BIO of this side. Its writes always
 * succeed, so the library never has to be called again for the same bytes; its reads end where the
 * received bytes end, so the library never holds more than a part of one record. */

/* --- the BIO */

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct spokei_tls_pipe *pipe = BIO_get_data(bio);
	struct spokei_tls_out *out = pipe->out;

	BIO_clear_retry_flags(bio);
	if (out && (size_t)len <= SPOKEI_TLS_OUT - out->len) {
		memcpy(out->bytes + out->len, bytes, (size_t)len);
		out->len += (size_t)len;
		return len;
	}
	return spokei_buffer_append(&pipe->lag, bytes, (size_t)len) == 0 ? len : -1;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct spokei_tls_pipe *pipe = BIO_get_data(bio);
	size_t count = pipe->in.len < (size_t)len ? pipe->in.len : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (pipe->flooded)
		return -1;
	if (count == 0) {
		if (pipe->ended)
			return 0;
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(bytes, pipe->in.data, count);
	pipe->in.data = (const char *)pipe->in.data + count;
	pipe->in.len -= count;
	return (int)count;
}

static long bio_control(BIO *bio, int command, long number, void *arg)
{
	const struct spokei_tls_pipe *pipe = BIO_get_data(bio);

	(void)number;
	(void)arg;
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return pipe->ended && pipe->in.len == 0;
	default:
		return 0;
	}
}

BIO_METHOD *spokei_tls_method_new(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "spoke");

	if (method == NULL)
		return NULL;
	if (BIO_meth_set_write(method, bio_write) == 1 &&
	    BIO_meth_set_read(method, bio_read) == 1 && BIO_meth_set_ctrl(method, bio_control) == 1)
		return method;
	BIO_meth_free(method);
	return NULL;
}

void spokei_tls_pipe_init(struct spokei_tls_pipe *pipe, const struct spoke_env *env)
{
	*pipe = (struct spokei_tls_pipe){ .ssl = NULL };
	spokei_buffer_init(&pipe->raw, env, SPOKEI_TLS_HANDSHAKE_MAX + SPOKEI_ENGINE_SCRATCH);
	spokei_buffer_init(&pipe->lag, env, SPOKEI_TLS_LAG_MAX);
}

void spokei_tls_pipe_fini(struct spokei_tls_pipe *pipe)
{
	SSL_free(pipe->ssl);
	spokei_buffer_fini(&pipe->raw);
	spokei_buffer_fini(&pipe->lag);
}

void spokei_tls_hand_over(struct spokei_tls_pipe *from, struct spokei_tls_pipe *to)
{
	BIO *bio = from->ssl ? SSL_get_rbio(from->ssl) : NULL;

	*to = *from;
	spokei_tls_pipe_init(from, to->raw.env);
	if (bio)
		BIO_set_data(bio, to);
}

int spokei_tls_join(struct spokei_tls_pipe *pipe, BIO_METHOD *method)
{
	BIO *bio = BIO_new(method);

	if (bio == NULL)
		return -ENOMEM;
	BIO_set_data(bio, pipe);
	BIO_set_init(bio, 1);
	SSL_set_bio(pipe->ssl, bio, bio);
	return 0;
}

/* --- the descriptor */

/* Makes `in` the bytes that wait, or else receives at most `max`. Returns 1 if there are any, 0 at
 * the end, or a negative errno. */
static ssize_t receive_bytes(struct spokei_tls_link *link, size_t max)
{
	const struct spoke_env *env = link->tls->engine->env;
	struct spokei_tls_pipe *pipe = &link->pipe;
	ssize_t got;

	if (spokei_buffer_len(&pipe->raw) > 0) {
		pipe->in = spokei_tls_raw(pipe);
		return 1;
	}
	pipe->in = (struct spoke_span){ link->tls->scratch, 0 };
	if (pipe->ended)
		return 0;
	got = env->net->read(env->ctx, link->stream->watch.fd, link->tls->scratch,
			     max < SPOKEI_ENGINE_SCRATCH ? max : SPOKEI_ENGINE_SCRATCH);
	if (got == 0)
		pipe->ended = true;
	if (got <= 0)
		return got;
	pipe->in.len = (size_t)got;
	return 1;
}

int spokei_tls_keep(struct spokei_tls_pipe *pipe)
{
	struct spokei_buffer *raw = &pipe->raw;
	struct spoke_span rest = pipe->in;

	pipe->in = (struct spoke_span){ NULL, 0 };
	if (spokei_buffer_len(raw) > 0) { /* the rest is its end */
		spokei_buffer_consume(raw, spokei_buffer_len(raw) - rest.len);
	} else if (rest.len > 0 && spokei_buffer_append(raw, rest.data, rest.len)) {
		return -ENOMEM;
	}
	if (spokei_buffer_len(raw) == 0 && raw->bytes)
		spokei_buffer_fini(raw);
	return 0;
}

int spokei_tls_push(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	struct spokei_buffer *lag = &link->pipe.lag;
	struct iovec part;
	ssize_t took;
	size_t len;

	if (link->unwritable)
		return link->unwritable;
	len = spokei_buffer_len(lag);
	part = (struct iovec){ spokei_buffer_data(lag), len };
	if (len == 0)
		return 0;
	took = env->net->write(env->ctx, link->stream->watch.fd, &part, 1);
	if (took < 0) {
		if (took != -EAGAIN && took != -EINTR)
			link->unwritable = (int)took;
		return (int)took;
	}
	link->passed += (uint64_t)took;
	spokei_buffer_consume(lag, (size_t)took);
	if ((size_t)took < len)
		return -EAGAIN;
	spokei_buffer_fini(lag);
	return 0;
}

/* --- failures */

/* Returns whether the peer's first record was the last one. */
static bool is_first_record(const SSL *ssl)
{
	return SSL_get_state(ssl) == TLS_ST_CW_CLNT_HELLO;
}

/* Returns the remedy for a failure, e.g. for an alert of the peer, or NULL. */
static const char *remedy_of(const SSL *ssl, int reason)
{
	switch (reason) {
	case SSL_AD_REASON_OFFSET + SSL3_AD_NO_CERTIFICATE:
	case SSL_AD_REASON_OFFSET + TLS13_AD_CERTIFICATE_REQUIRED:
		return "the peer asks for a certificate; set tls.cert and tls.key";
	case SSL_AD_REASON_OFFSET + TLS1_AD_UNKNOWN_CA:
		return "the peer does not know the authority of this side's certificate; check its "
		       "tls.ca";
	case SSL_AD_REASON_OFFSET + SSL3_AD_CERTIFICATE_REVOKED:
		return "the peer has this side's certificate in its list of revoked ones";
	case SSL_AD_REASON_OFFSET + SSL3_AD_CERTIFICATE_EXPIRED:
		return "this side's certificate has expired, or the peer's list of revoked ones";
	case SSL_AD_REASON_OFFSET + TLS1_AD_PROTOCOL_VERSION:
		return "the peer speaks other versions of TLS; compare tls.min";
	case SSL_AD_REASON_OFFSET + TLS1_AD_NO_APPLICATION_PROTOCOL:
		return "the peer expects another protocol there";
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
		return is_first_record(ssl)
			       ? "the peer does not speak TLS; set tls=on there, or tls=off here"
			       : NULL;
	default:
		return NULL;
	}
}

/* Returns the state of a stream whose handshake has begun, or NULL. */
static struct spokei_tls_link *link_of(const struct spokei_stream *stream)
{
	return stream->kind == &spokei_tls_of(stream)->kind ? stream->state : NULL;
}

const char *spokei_tls_why(const struct spokei_stream *stream)
{
	const struct spokei_tls *tls = spokei_tls_of(stream);
	const struct spokei_tls_link *link = link_of(stream);

	if (link && link->why)
		return link->why;
	return tls->why_of == stream ? tls->why : NULL;
}

void spokei_tls_forget(const struct spokei_stream *stream)
{
	struct spokei_tls *tls = spokei_tls_of(stream);

	if (tls->why_of == stream)
		tls->why_of = NULL;
}

void spokei_tls_tell(struct spokei_stream *stream, const char *text, const char *remedy)
{
	struct spokei_tls *tls = spokei_tls_of(stream);
	struct spokei_tls_link *link = link_of(stream);
	size_t size;

	if (spokei_tls_why(stream))
		return;
	tls->why_of = stream;
	(void)snprintf(tls->why, sizeof(tls->why), "TLS: %s%s%s", text, remedy ? ": " : "",
		       remedy ? remedy : "");
	if (link == NULL)
		return;
	/* Others may fail before this one has ended. */
	size = strlen(tls->why) + 1;
	link->why = spokei_alloc_unset(tls->engine->env, size);
	if (link->why)
		memcpy(link->why, tls->why, size);
}

int spokei_tls_failed(struct spokei_tls_link *link, int result, unsigned long error)
{
	struct spokei_stream *stream = link->stream;
	int reason = ERR_GET_REASON(error);
	long verdict = SSL_get_verify_result(link->pipe.ssl);
	const char *text = ERR_reason_error_string(error);

	if (result == SSL_ERROR_ZERO_RETURN) {
		spokei_tls_tell(stream, "the peer closed the connection", NULL);
		return -ECONNRESET;
	}
	if (link->pipe.flooded) {
		spokei_tls_tell(stream, "the peer changes its keys too often", NULL);
		return -EPROTO;
	}
	if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		spokei_tls_tell(stream, "the peer's bytes end without its close_notify", NULL);
		return -ECONNRESET;
	}
	if (reason == ERR_R_MALLOC_FAILURE)
		return -ENOMEM;
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verdict != X509_V_OK) {
		spokei_tls_tell(stream, "the peer's certificate is refused",
				verdict == X509_V_ERR_HOSTNAME_MISMATCH
					? "it bears none of the expected names; see tls.peers"
					: X509_verify_cert_error_string(verdict));
		return -EPROTO;
	}
	spokei_tls_tell(stream, text ? text : "the peer violated the protocol",
			remedy_of(link->pipe.ssl, reason));
	return -EPROTO;
}

/* --- the library's buffers
 *
 * The library's buffers of open streams: 33 KiB a stream. To allocate them for each record costs
 * an eighth of a small record's time, and to keep them twice the memory of an idle stream. So
 * streams keep them while they are busy: few at a time, and not longer than two seconds after the
 * last record. */

#define WARM_MAX 64u
#define COOL_NS UINT64_C(1000000000)

static struct spokei_tls_link *link_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_tls_link, warm);
}

void spokei_tls_cool(struct spokei_tls_link *link)
{
	if (link->warm.next) {
		spokei_list_remove(&link->warm);
		link->tls->warm_count--;
	}
	/* It keeps them while there is a part of a record in them, until the next one. */
	if (link->pipe.ssl)
		(void)SSL_free_buffers(link->pipe.ssl);
}

static void cool_unused(struct spoke_alarm *alarm);

/* Returns whether there is a timer. */
static bool cool_later(struct spokei_tls *tls)
{
	return spoke_alarm_after(tls->engine, &tls->cooling, COOL_NS, cool_unused) == SPOKE_OK;
}

static void cool_all(struct spokei_tls *tls)
{
	while (!spokei_list_empty(&tls->warm))
		spokei_tls_cool(link_at(tls->warm.next));
}

/* Streams without a record since the last call give up their buffers. */
static void cool_unused(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, cooling);
	struct spoke_list *next;

	for (struct spoke_list *at = tls->warm.next; at != &tls->warm; at = next) {
		struct spokei_tls_link *link = link_at(at);

		next = at->next;
		if (!link->used)
			spokei_tls_cool(link);
		link->used = false;
	}
	if (!spokei_list_empty(&tls->warm) && !cool_later(tls))
		cool_all(tls);
}

void spokei_tls_warm_up(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;

	if (tls->warm_count == WARM_MAX)
		spokei_tls_cool(link_at(tls->warm.next));
	if (tls->warm_count == 0 && !cool_later(tls)) {
		spokei_tls_cool(link);
		return;
	}
	spokei_list_append(&tls->warm, &link->warm);
	tls->warm_count++;
}

/* --- the open stream
 *
 * The open stream. Bytes that are received in a turn are decrypted in that turn. A write makes
 * records of the bytes that it is given and hands them to the descriptor at once; the rest waits,
 * and until it is gone no more is made. */

#define KEY_NS UINT64_C(86400000000000) /* after which a key is changed: a day */

/* Bytes of a chunk with its head and its tag; a read that may be given fewer takes its time. */
#define RECORD_BYTES (SPOKEI_TLS_RECORD + SPOKEI_TLS_RECORD_OVERHEAD + 5u)

/* --- reading */

/* Decrypts until the received bytes end or `bytes` is full. Sets link->error. */
static size_t decrypt(struct spokei_tls_link *link, unsigned char *bytes, size_t len)
{
	size_t count = 0;

	spokei_tls_forget_errors();
	while (count < len) {
		size_t got;
		int result;

		if (SSL_read_ex(link->pipe.ssl, bytes + count, len - count, &got) == 1) {
			count += got;
			spokei_count(link->tls->engine, SPOKE_STAT_TLS_RECORDS_READ);
			/* All bytes are taken: another call would only say so. */
			if (link->pipe.in.len == 0 && SSL_pending(link->pipe.ssl) == 0)
				break;
			continue;
		}
		result = SSL_get_error(link->pipe.ssl, 0);
		if (result == SSL_ERROR_WANT_READ)
			break;
		if (result == SSL_ERROR_ZERO_RETURN)
			link->closed = true;
		else
			link->error = spokei_tls_failed(link, result, ERR_peek_error());
		ERR_clear_error();
		break;
	}
	return count;
}

/* Returns how much may be received for `len` bytes of plaintext, with the part of a record that the
 * library may have. */
static size_t received_max(size_t len)
{
	return len > (size_t)2 * RECORD_BYTES ? len - RECORD_BYTES : len / 2 + 1;
}

/* Prepares the bytes that the library reads next; as receive_bytes(). Bytes that it holds go
 * first, and may be all that there is room for. */
static ssize_t receive(struct spokei_tls_link *link, size_t len)
{
	if (SSL_pending(link->pipe.ssl) == 0)
		return receive_bytes(link, received_max(len));
	link->pipe.in = spokei_tls_raw(&link->pipe);
	return 1;
}

static int end_of(struct spokei_tls_link *link)
{
	link->told = true;
	return link->error;
}

ssize_t spokei_tls_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct spokei_tls_link *link = stream->state;
	size_t count;
	ssize_t got;

	if (link->error || link->closed)
		return end_of(link);
	got = receive(link, len);
	if (got < 0)
		return got;
	count = decrypt(link, bytes, len);
	if (spokei_tls_keep(&link->pipe))
		link->error = -ENOMEM;
	if (link->error)
		(void)spokei_tls_push(link); /* the alert */
	spokei_tls_use(link);
	if (count > 0)
		return (ssize_t)count;
	return link->error || link->closed ? end_of(link) : -EAGAIN;
}

size_t spokei_tls_pending(const struct spokei_stream *stream)
{
	const struct spokei_tls_link *link = stream->state;

	if (link->handshake)
		return 0;
	if (link->error || link->closed) /* its end came with its last bytes */
		return link->told ? 0 : 1;
	return (size_t)SSL_pending(link->pipe.ssl) + spokei_buffer_len(&link->pipe.raw);
}

/* --- writing */

/* Changes the key of this side, if it is time. TLS 1.2 has no such change. */
static void renew_key(struct spokei_tls_link *link)
{
	uint64_t now_ns = link->tls->engine->begin_ns;

	if (SPOKEI_LIKELY(link->records < link->tls->key_records &&
			  now_ns - link->keyed_ns < KEY_NS))
		return;
	link->records = 0;
	link->keyed_ns = now_ns;
	if (SSL_version(link->pipe.ssl) == TLS1_3_VERSION &&
	    SSL_key_update(link->pipe.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		spokei_count(link->tls->engine, SPOKE_STAT_TLS_REKEYS);
}

/* Makes one record, after a new key if it is time. Returns the bytes taken; -1: the library fails.
 */
static ssize_t encrypt(struct spokei_tls_link *link, const void *bytes, size_t len)
{
	size_t took;

	renew_key(link);
	link->records++;
	spokei_count(link->tls->engine, SPOKE_STAT_TLS_RECORDS_WRITTEN);
	return SSL_write_ex(link->pipe.ssl, bytes, len, &took) == 1 ? (ssize_t)took : -1;
}

/* Where the next record begins in the parts. */
struct cursor {
	const struct iovec *parts;
	int count;
	size_t at; /* in the first part */
};

/* Returns the bytes of the next record: those of a long part where they lie, else short ones
 * gathered in `room`. */
static struct spoke_span next_record(struct cursor *cursor, unsigned char *room)
{
	size_t len = 0;

	while (cursor->count > 0) {
		const struct iovec *part = cursor->parts;
		const unsigned char *bytes = (const unsigned char *)part->iov_base + cursor->at;
		size_t left = part->iov_len - cursor->at;
		size_t take = left < SPOKEI_TLS_RECORD - len ? left : SPOKEI_TLS_RECORD - len;

		cursor->at += take;
		if (take == left) {
			cursor->parts++;
			cursor->count--;
			cursor->at = 0;
		}
		if (len == 0 && (take == SPOKEI_TLS_RECORD || cursor->count == 0))
			return (struct spoke_span){ bytes, take };
		memcpy(room + len, bytes, take);
		len += take;
		if (len == SPOKEI_TLS_RECORD)
			break;
	}
	return (struct spoke_span){ room, len };
}

/* Makes records into the scratch. Returns how many bytes of the parts are in them. If one fails, it
 * is the last write: the library has no way back. The library's errors are not asked for, so those
 * of the user's code do no harm here, and to look for them costs as much as a short copy. */
static ssize_t make_records(struct spokei_tls_link *link, struct cursor cursor)
{
	unsigned char *room = link->tls->scratch;
	ssize_t done = 0;

	link->tls->out = (struct spokei_tls_out){ room + SPOKEI_TLS_RECORD, 0 };
	link->pipe.out = &link->tls->out;
	for (unsigned i = 0; i < SPOKEI_TLS_WRITE_RECORDS && cursor.count > 0; i++) {
		struct spoke_span record = next_record(&cursor, room);
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): no function of the C library */
		ssize_t took = record.len > 0 ? encrypt(link, record.data, record.len) : 0;

		if (took != (ssize_t)record.len) {
			link->unwritable = -ENOMEM; /* nothing else makes it fail here */
			ERR_clear_error();
			break;
		}
		done += took;
	}
	return done;
}

/* Hands the records on, and keeps those that the descriptor does not take. Returns 0, also if it
 * has taken a part and the rest is lost; or a negative errno: it has taken nothing. */
static int hand_on(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	struct iovec part = { link->tls->out.bytes, link->tls->out.len };
	ssize_t took = env->net->write(env->ctx, link->stream->watch.fd, &part, 1);

	if (took < 0 && took != -EAGAIN && took != -EINTR) {
		link->unwritable = (int)took;
		return link->unwritable;
	}
	if (took < 0)
		took = 0;
	link->passed += (uint64_t)took;
	if (spokei_buffer_append(&link->pipe.lag, link->tls->out.bytes + took,
				 link->tls->out.len - (size_t)took) == 0)
		return 0;
	link->unwritable = -ENOMEM;
	return took > 0 ? 0 : link->unwritable;
}

ssize_t spokei_tls_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	struct spokei_tls_link *link = stream->state;
	ssize_t done = spokei_tls_push(link);
	int status;

	if (done < 0)
		return done;
	done = make_records(link, (struct cursor){ parts, count, 0 });
	link->pipe.out = NULL;
	spokei_tls_use(link);
	status = link->tls->out.len > 0 ? hand_on(link) : 0;
	if (status < 0)
		return status;
	return done == 0 && link->unwritable ? link->unwritable : done;
}

int spokei_tls_flush(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct spokei_tls_link *link = stream->state;
	int status = spokei_tls_push(link);

	if (status || !link->shut || link->shut_done)
		return status;
	link->shut_done = true;
	return env->net->shut(env->ctx, stream->watch.fd);
}

int spokei_tls_shut(struct spokei_stream *stream)
{
	struct spokei_tls_link *link = stream->state;
	int status;

	if (!link->shut) {
		ERR_clear_error();
		if (link->handshake == NULL)
			(void)SSL_shutdown(
				link->pipe.ssl); /* close_notify, behind those that wait */
		ERR_clear_error();
		link->shut = true;
	}
	status = spokei_tls_flush(stream);
	return status == -EAGAIN || status == -EINTR ? 0 : status;
}
