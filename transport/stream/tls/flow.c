/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open stream. Bytes that are received in a turn are decrypted in that turn. A write makes
 * records of the bytes that it is given and hands them to the descriptor at once; the rest waits,
 * and until it is gone no more is made.
 */
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

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

		if (SSL_read_ex(link->ssl, bytes + count, len - count, &got) == 1) {
			count += got;
			spokei_count(link->tls->engine, SPOKE_STAT_TLS_RECORDS_READ);
			/* All bytes are taken: another call would only say so. */
			if (link->in.len == 0 && SSL_pending(link->ssl) == 0)
				break;
			continue;
		}
		result = SSL_get_error(link->ssl, 0);
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

/* Prepares the bytes that the library reads next; as spokei_tls_receive(). Bytes that it holds go
 * first, and may be all that there is room for. */
static ssize_t receive(struct spokei_tls_link *link, size_t len)
{
	const struct spokei_buffer *raw = &link->raw;

	if (SSL_pending(link->ssl) == 0)
		return spokei_tls_receive(link, received_max(len));
	link->in = (struct spoke_span){ spokei_buffer_data(raw), spokei_buffer_len(raw) };
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
	if (spokei_tls_keep(link))
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

	if (!link->open)
		return 0;
	if (link->error || link->closed) /* its end came with its last bytes */
		return link->told ? 0 : 1;
	return (size_t)SSL_pending(link->ssl) + spokei_buffer_len(&link->raw);
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
	if (SSL_version(link->ssl) == TLS1_3_VERSION &&
	    SSL_key_update(link->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
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
	return SSL_write_ex(link->ssl, bytes, len, &took) == 1 ? (ssize_t)took : -1;
}

/* Where the next record begins in the parts. */
struct place {
	const struct iovec *parts;
	int count;
	size_t at; /* in the first part */
};

/* Returns the bytes of the next record: those of a long part where they lie, else short ones
 * gathered in `room`. */
static struct spoke_span next_record(struct place *place, unsigned char *room)
{
	size_t len = 0;

	while (place->count > 0) {
		const struct iovec *part = place->parts;
		const unsigned char *bytes = (const unsigned char *)part->iov_base + place->at;
		size_t left = part->iov_len - place->at;
		size_t take = left < SPOKEI_TLS_RECORD - len ? left : SPOKEI_TLS_RECORD - len;

		place->at += take;
		if (take == left) {
			place->parts++;
			place->count--;
			place->at = 0;
		}
		if (len == 0 && (take == SPOKEI_TLS_RECORD || place->count == 0))
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
static ssize_t make_records(struct spokei_tls_link *link, struct place place)
{
	unsigned char *room = link->tls->scratch;
	ssize_t done = 0;

	link->tls->out = room + SPOKEI_TLS_RECORD;
	link->tls->out_len = 0;
	for (unsigned i = 0; i < SPOKEI_TLS_WRITE_RECORDS && place.count > 0; i++) {
		struct spoke_span record = next_record(&place, room);
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
	struct iovec part = { link->tls->out, link->tls->out_len };
	ssize_t took = env->net->write(env->ctx, link->stream->watch.fd, &part, 1);

	if (took < 0 && took != -EAGAIN && took != -EINTR) {
		link->unwritable = (int)took;
		return link->unwritable;
	}
	if (took < 0)
		took = 0;
	link->passed += (uint64_t)took;
	if (spokei_buffer_append(&link->lag, link->tls->out + took,
				 link->tls->out_len - (size_t)took) == 0)
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
	done = make_records(link, (struct place){ parts, count, 0 });
	spokei_tls_use(link);
	status = link->tls->out_len > 0 ? hand_on(link) : 0;
	link->tls->out = NULL;
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
		if (link->open)
			(void)SSL_shutdown(link->ssl); /* close_notify, behind those that wait */
		ERR_clear_error();
		link->shut = true;
	}
	status = spokei_tls_flush(stream);
	return status == -EAGAIN || status == -EINTR ? 0 : status;
}
