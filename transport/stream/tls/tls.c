/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS streams once they are open: the bytes between the user and the library, its buffers, what
 * users see of a stream; the table of the streams, and the owner of all.
 */
#include "transport/stream/tls/parts.h"

#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/tls.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* Frees the library's buffers, unless there is a part of a record in them. */
static void cool(struct spokei_tls_link *link)
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
		cool(link_at(tls->warm.next));
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
			cool(link);
		link->used = false;
	}
	if (!spokei_list_empty(&tls->warm) && !cool_later(tls))
		cool_all(tls);
}

void spokei_tls_warm_up(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;

	if (tls->warm_count == WARM_MAX)
		cool(link_at(tls->warm.next));
	if (tls->warm_count == 0 && !cool_later(tls)) {
		cool(link);
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

static int end_of_bytes(struct spokei_tls_link *link)
{
	link->told = true;
	return link->error;
}

static ssize_t tls_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct spokei_tls_link *link = stream->state;
	size_t count;
	ssize_t got;

	if (link->error || link->closed)
		return end_of_bytes(link);
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
	return link->error || link->closed ? end_of_bytes(link) : -EAGAIN;
}

static size_t tls_pending(const struct spokei_stream *stream)
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

static ssize_t tls_write(struct spokei_stream *stream, const struct iovec *parts, int count)
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

static int tls_flush(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct spokei_tls_link *link = stream->state;
	int status = spokei_tls_push(link);

	if (status || !link->shut || link->shut_done)
		return status;
	link->shut_done = true;
	return env->net->shut(env->ctx, stream->watch.fd);
}

static int tls_shut(struct spokei_stream *stream)
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
	status = tls_flush(stream);
	return status == -EAGAIN || status == -EINTR ? 0 : status;
}

/* --- the look of users
 *
 * The state of a stream as users see it, and the end of this side's certificate: events 14 days
 * and 1 day before it, and when it has come. */

#define SECOND_NS UINT64_C(1000000000)
#define DAY_S INT64_C(86400)
#define LOOK_NS (3600 * SECOND_NS) /* the certificate may be another one by now */
#define STAGES 3u

/* Returns the last second of a certificate, since 1970; 0: it cannot be read. */
static int64_t end_of(const X509 *cert)
{
	ASN1_TIME *begin = ASN1_TIME_set(NULL, 0);
	int64_t end = 0;
	int seconds;
	int days;

	if (begin && ASN1_TIME_diff(&days, &seconds, begin, X509_get0_notAfter(cert)) == 1)
		end = days * DAY_S + seconds;
	ASN1_TIME_free(begin);
	ERR_clear_error();
	return end;
}

/* --- the stream */

/* Writes names with commas between them, as many as fit. */
static void put_names(const struct spokei_tls_names *names, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < names->count; i++) {
		const struct spoke_span *name = &names->spans[i];

		if (len + name->len + 2 > size)
			return;
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", len > 0 ? "," : "",
					(int)name->len, (const char *)name->data);
	}
}

/* The slot `look` of the streams. */
static bool tls_look(const struct spokei_stream *stream, struct spoke_tls_info *ret_info)
{
	const struct spokei_tls_link *link = stream->state;
	const X509 *cert;

	if (link == NULL || link->handshake)
		return false;
	if (ret_info == NULL)
		return true;
	*ret_info = (struct spoke_tls_info){ .ends_s = 0 };
	cert = SSL_get0_peer_certificate(link->pipe.ssl);
	(void)snprintf(ret_info->version, sizeof(ret_info->version), "%s",
		       SSL_get_version(link->pipe.ssl));
	(void)snprintf(ret_info->suite, sizeof(ret_info->suite), "%s",
		       SSL_get_cipher_name(link->pipe.ssl));
	put_names(&link->names, ret_info->names, sizeof(ret_info->names));
	if (cert)
		ret_info->ends_s = end_of(cert);
	return true;
}

/* --- this side's certificate */

int64_t spokei_tls_ends(const struct spokei_tls *tls)
{
	const X509 *cert = SSL_CTX_get0_certificate(tls->context);

	return cert ? end_of(cert) : 0;
}

static void tell(struct spokei_tls *tls, int64_t left_s)
{
	const char *side = tls->accepts ? "provider" : "consumer";
	int64_t unit_s = left_s > DAY_S ? DAY_S : 3600;

	if (left_s <= 0) {
		spokei_event(tls->engine, SPOKE_EHANDSHAKE,
			     "tls.cert: the certificate of this %s has expired: replace its files",
			     side);
	} else {
		spokei_event(tls->engine, SPOKE_EHANDSHAKE,
			     "tls.cert: the certificate of this %s ends in %lld %s: replace its "
			     "files",
			     side, (long long)((left_s + unit_s - 1) / unit_s),
			     unit_s == DAY_S ? "days" : "hours");
	}
}

/* Seconds before the end at which the stages begin. */
static const int64_t stages[STAGES] = { 14 * DAY_S, DAY_S, 0 };

static int look_again(struct spokei_tls *tls);

static void look_due(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, term);
	int error = look_again(tls);

	if (error) {
		spokei_event(tls->engine, error,
			     "tls.cert: no timer is left; the end of the certificate of this %s is "
			     "not reported any more",
			     tls->accepts ? "provider" : "consumer");
	}
}

static int look_again(struct spokei_tls *tls)
{
	const struct spoke_env *env = tls->engine->env;
	int64_t left_s = spokei_tls_ends(tls) - (int64_t)(env->wall(env->ctx) / SECOND_NS);
	uint64_t pause_ns = LOOK_NS;
	unsigned stage = 0;

	while (stage < STAGES && left_s <= stages[stage])
		stage++;
	if (stage > tls->term_stage)
		tell(tls, left_s);
	tls->term_stage = stage; /* falls when the certificate is replaced */
	if (stage < STAGES && (uint64_t)(left_s - stages[stage]) < LOOK_NS / SECOND_NS)
		pause_ns = (uint64_t)(left_s - stages[stage]) * SECOND_NS;
	return spoke_alarm_after(tls->engine, &tls->term, pause_ns, look_due);
}

/* Reports events before the end of this side's certificate, if it has one, until the end. Returns 0
 * or an error of spoke_alarm_after(). */
static int term_begin(struct spokei_tls *tls)
{
	return spokei_tls_ends(tls) > 0 ? look_again(tls) : SPOKE_OK;
}

static void term_end(struct spokei_tls *tls)
{
	(void)spoke_alarm_cancel(&tls->term);
}

/* --- the table */

static unsigned tls_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct spokei_tls_link *link = stream->state;
	unsigned wants = io;

	if (link == NULL)
		return SPOKE_IO_READ;
	if (link->handshake)
		wants = spokei_tls_handshake_wants(link);
	if (spokei_buffer_len(&link->pipe.lag) > 0 && !link->unwritable)
		wants |= SPOKE_IO_WRITE;
	return wants;
}

static ssize_t tls_unsent(const struct spokei_stream *stream)
{
	const struct spokei_tls_link *link = stream->state;
	ssize_t unsent = spokei_stream_socket.unsent(stream);

	return unsent < 0 ? unsent : unsent + (ssize_t)spokei_buffer_len(&link->pipe.lag);
}

static uint64_t tls_passed(const struct spokei_stream *stream)
{
	const struct spokei_tls_link *link = stream->state;

	return link->passed;
}

static size_t tls_names(const struct spokei_stream *stream, const struct spoke_span **ret_names)
{
	const struct spokei_tls_link *link = stream->state;

	*ret_names = link ? link->names.spans : NULL;
	return link ? link->names.count : 0;
}

/* Frees the sentence, after a copy for those that ask for it later. */
static void drop_why(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	size_t size;

	if (link->why == NULL)
		return;
	size = strlen(link->why) + 1;
	memcpy(tls->why, link->why, size);
	tls->why_of = link->stream;
	spokei_free(tls->engine->env, link->why, 1, size);
}

static void tls_close(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct spokei_tls_link *link = stream->state;

	if (link == NULL)
		return;
	if (link->handshake)
		spokei_tls_end_handshake(link);
	else
		spokei_list_remove(&link->node);
	drop_why(link);
	stream->state = NULL;
	cool(link);
	spokei_free(env, link->names.spans, 1, link->names.size);
	spokei_tls_pipe_fini(&link->pipe);
	spokei_free(env, link, 1, sizeof(*link));
}

static const struct spokei_stream_kind kind = {
	.name = "tls",
	.copies = true,
	.veiled = true,
	.open = spokei_tls_open,
	.read = tls_read,
	.write = tls_write,
	.shut = tls_shut,
	.flush = tls_flush,
	.wants = tls_wants,
	.pending = tls_pending,
	.passed = tls_passed,
	.unsent = tls_unsent,
	.names = tls_names,
	.look = tls_look,
	.why = spokei_tls_why,
	.close = tls_close,
};

/* --- the owner */

void spokei_tls_drop(struct spokei_tls *tls)
{
	const struct spoke_env *env = tls->engine->env;

	if (--tls->uses > 0)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	spokei_tls_ask_free(env, tls->ask);
	spokei_free(env, tls->scratch, 1, SPOKEI_ENGINE_SCRATCH);
	spokei_free(env, tls, 1, sizeof(*tls));
}

/* The limit of AES-GCM is three times as many. */
#define KEY_RECORDS (UINT64_C(1) << 23)

static int fill(struct spokei_tls *tls, const struct spokei_tls_options *options,
		char why[SPOKEI_TLS_WHY])
{
	const struct spoke_env *env = tls->engine->env;
	int error = 0;

	/* The library's tables outlive threads that still run when the process ends. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return SPOKE_ENOMEM;
	tls->scratch = spokei_alloc_unset(env, SPOKEI_ENGINE_SCRATCH);
	tls->method = spokei_tls_method_new();
	if (tls->scratch == NULL || tls->method == NULL)
		return SPOKE_ENOMEM;
	if (options->peers)
		tls->ask = spokei_tls_ask_new(env, options->peers, why, &error);
	return error ? error : spokei_tls_context_new(env, options, why, &tls->context);
}

int spokei_tls_new(struct spoke_engine *engine, const struct spokei_tls_options *options,
		   char why[SPOKEI_TLS_WHY], struct spokei_tls **ret_tls)
{
	struct spokei_tls *tls = spokei_alloc(engine->env, 1, sizeof(*tls));
	struct spokei_tls_prints prints;
	int error;

	(void)snprintf(why, SPOKEI_TLS_WHY, "tls: no memory");
	if (tls == NULL)
		return SPOKE_ENOMEM;
	tls->kind = kind;
	tls->kind.owner = tls;
	tls->kind.guard = spokei_stream_socket.guard;
	tls->engine = engine;
	tls->uses = 1;
	tls->accepts = options->accepts;
	tls->verify = options->verify;
	if (options->ca && options->verify == SPOKE_TLS_VERIFY_DEFAULT)
		tls->verify = SPOKE_TLS_VERIFY_REQUIRED;
	tls->key_records = KEY_RECORDS;
	spokei_tls_open_init(tls);
	spokei_list_init(&tls->open);
	spokei_list_init(&tls->warm);
	spokei_tls_limit(tls, &options->limits);
	prints = spokei_tls_context_prints(engine->env, options);
	error = fill(tls, options, why);
	if (error == 0)
		error = spokei_tls_reload_new(tls, options, &prints);
	if (error == 0)
		error = term_begin(tls);
	if (error) {
		spokei_tls_free(tls);
		return error;
	}
	*ret_tls = tls;
	return SPOKE_OK;
}

void spokei_tls_free(struct spokei_tls *tls)
{
	if (tls == NULL)
		return;
	SPOKE_ASSERT(tls->slots == 0);
	spokei_quota_fini(&tls->peers);
	spokei_task_drop(&tls->task);
	(void)spoke_alarm_cancel(&tls->late);
	(void)spoke_alarm_cancel(&tls->linger);
	(void)spoke_alarm_cancel(&tls->ration);
	spokei_tls_reload_free(tls->reload);
	term_end(tls);
	(void)spoke_alarm_cancel(&tls->cooling);
	spokei_tls_drop(tls);
}

void spokei_tls_watch(struct spokei_tls *tls, void (*refuse)(struct spokei_stream *stream))
{
	tls->refuse = refuse;
}

enum spoke_tls_verify spokei_tls_verifies(const struct spokei_tls *tls)
{
	return tls->verify;
}

const struct spokei_stream_kind *spokei_tls_kind(const struct spokei_tls *tls)
{
	return tls->accepts ? &tls->silent : &tls->kind;
}

const struct spokei_stream_kind *spokei_tls_secure_kind(const struct spokei_tls *tls)
{
	return &tls->kind;
}

const struct spokei_stream_kind *spokei_tls_or_plain(const struct spokei_tls *tls)
{
	return &tls->or_plain;
}
