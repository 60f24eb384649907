/* SPDX-License-Identifier: Apache-2.0 */
/* TLS streams: their table, the look of users at one, and the owner of all. */
#include "transport/stream/tls/parts.h"

#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/tls.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <stdio.h>
#include <string.h>

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

/* --- the owner */

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
	spokei_tls_cool(link);
	spokei_tls_names_free(env, &link->names);
	spokei_tls_pipe_fini(&link->pipe);
	spokei_free(env, link, 1, sizeof(*link));
}

/* --- the owner */

static const struct spokei_stream_kind kind = {
	.name = "tls",
	.copies = true,
	.veiled = true,
	.open = spokei_tls_open,
	.read = spokei_tls_read,
	.write = spokei_tls_write,
	.shut = spokei_tls_shut,
	.flush = spokei_tls_flush,
	.wants = tls_wants,
	.pending = spokei_tls_pending,
	.passed = tls_passed,
	.unsent = tls_unsent,
	.names = tls_names,
	.look = tls_look,
	.why = spokei_tls_why,
	.close = tls_close,
};

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
	static const struct spokei_quota_limits defaults; /* until the limits are set, below */
	struct spokei_tls *tls = spokei_alloc(engine->env, 1, sizeof(*tls));
	struct spokei_tls_prints prints;
	int error;

	(void)snprintf(why, SPOKEI_TLS_WHY, "tls: no memory");
	if (tls == NULL)
		return SPOKE_ENOMEM;
	tls->kind = kind;
	tls->kind.owner = tls;
	tls->kind.guard = spokei_stream_socket.guard;
	spokei_tls_collector(&tls->silent);
	tls->silent.owner = tls;
	tls->or_plain = tls->silent;
	tls->or_plain.patient = true;
	tls->engine = engine;
	tls->uses = 1;
	tls->accepts = options->accepts;
	tls->verify = options->verify;
	if (options->ca && options->verify == SPOKE_TLS_VERIFY_DEFAULT)
		tls->verify = SPOKE_TLS_VERIFY_REQUIRED;
	tls->key_records = KEY_RECORDS;
	spokei_tls_open_init(tls);
	spokei_list_init(&tls->standing);
	spokei_list_init(&tls->holders);
	spokei_list_init(&tls->open);
	spokei_quota_init(&tls->peers, engine->env, &defaults);
	spokei_list_init(&tls->lingering);
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
