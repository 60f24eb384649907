/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipe of a stream: the library's object, and the bytes between it and the descriptor, through
 * a BIO of this side; and why a stream has failed. The BIO's writes always succeed, so the library
 * never has to be called again for the same bytes; its reads end where the received bytes end, so
 * the library never holds more than a part of one record.
 */
#include "transport/stream/tls/parts.h"

#include "core/base/env.h"
#include "core/engine/engine.h"

#include <openssl/err.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* --- the bytes around the library */

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
