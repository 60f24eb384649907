/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream as users see it, and the end of this side's certificate: events 14 days and
 * 1 day before it, and when it has come.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <spoke/tls.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <stdio.h>
#include <string.h>

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

bool spokei_tls_look(const struct spokei_stream *stream, struct spoke_tls_info *ret_info)
{
	const struct spokei_tls_link *link = stream->state;
	const X509 *cert;

	if (link == NULL || !link->open)
		return false;
	if (ret_info == NULL)
		return true;
	*ret_info = (struct spoke_tls_info){ .ends_s = 0 };
	cert = SSL_get0_peer_certificate(link->ssl);
	(void)snprintf(ret_info->version, sizeof(ret_info->version), "%s",
		       SSL_get_version(link->ssl));
	(void)snprintf(ret_info->suite, sizeof(ret_info->suite), "%s",
		       SSL_get_cipher_name(link->ssl));
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

int spokei_tls_term_begin(struct spokei_tls *tls)
{
	return spokei_tls_ends(tls) > 0 ? look_again(tls) : SPOKE_OK;
}

void spokei_tls_term_end(struct spokei_tls *tls)
{
	(void)spoke_alarm_cancel(&tls->term);
}
