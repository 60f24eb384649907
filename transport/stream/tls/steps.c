/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of a handshake: a call of the library that takes up to a millisecond. A thread with a
 * lower priority takes it, so that live calls do not wait for it, also on the same CPU. Meanwhile
 * the thread owns the library's object, the bytes received and those to be sent; the loop keeps
 * away from them and watches for nothing.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

/* --- the library's object */

/* Counts the peer's changes of keys: each costs as much as many messages. A handshake has none.
 * NOLINTNEXTLINE(readability-function-size): of the library's form */
static void watch_messages(int writes, int version, int type, const void *bytes, size_t len,
			   SSL *ssl, void *arg)
{
	struct spokei_tls_link *link = arg;

	(void)version;
	(void)ssl;
	if (!link->open || writes || type != SSL3_RT_HANDSHAKE || len == 0 ||
	    *(const unsigned char *)bytes != SSL3_MT_KEY_UPDATE)
		return;
	if (!spokei_bucket_take(&link->updates, 1, link->tls->engine->begin_ns))
		link->flooded = true;
}

/* Tells the peer to which name this side has connected; addresses are none. Returns 0 or -ENOMEM.
 */
static int name_host(SSL *ssl, const char *host)
{
	char name[TLSEXT_MAXLEN_host_name + 1];
	size_t len = host ? strlen(host) : 0;

	if (len == 0 || len >= sizeof(name) || spokei_tls_is_address(host))
		return 0;
	memcpy(name, host, len + 1);
	return SSL_set_tlsext_host_name(ssl, name) == 1 ? 0 : -ENOMEM;
}

static int make_ssl(struct spokei_tls_link *link)
{
	SSL *ssl = SSL_new(link->step->context);

	if (ssl == NULL)
		return -ENOMEM;
	link->ssl = ssl;
	if (spokei_tls_join(link))
		return -ENOMEM;
	X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), link->step->now_s);
	SSL_set_msg_callback(ssl, watch_messages);
	SSL_set_msg_callback_arg(ssl, link);
	if (link->tls->accepts) {
		SSL_set_accept_state(ssl);
		return 0;
	}
	SSL_set_connect_state(ssl);
	return name_host(ssl, link->host);
}

/* --- the step */

static void shake(struct spokei_tls_link *link)
{
	struct spokei_tls_step *step = link->step;
	int result;

	link->in = (struct spoke_span){ spokei_buffer_data(&link->raw),
					spokei_buffer_len(&link->raw) };
	result = SSL_do_handshake(link->ssl);
	step->result = result == 1 ? SSL_ERROR_NONE : SSL_get_error(link->ssl, result);
	step->error = ERR_peek_error();
	spokei_tls_cool(link);
	step->status = spokei_tls_keep(link);
}

static struct spokei_tls_step *step_of(struct spoke_work *work)
{
	return spoke_container_of(work, struct spokei_tls_step, work);
}

static void run_step(struct spoke_work *work)
{
	struct spokei_tls_step *step = step_of(work);

	step->begun = true;
	ERR_clear_error();
	step->status = step->context ? make_ssl(step->link) : 0;
	if (step->status == 0)
		shake(step->link);
	ERR_clear_error();
}

static void finish(struct spokei_tls_step *step)
{
	SSL_CTX_free(step->context);
	step->context = NULL;
	step->over = true;
}

/* In a forked child a thread of the parent may have been at work: its things are left alone. */
static void abandon(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;

	link->ssl = NULL;
	spokei_buffer_init(&link->raw, env, 0);
	spokei_buffer_init(&link->lag, env, 0);
}

static void step_done(struct spoke_work *work)
{
	struct spokei_tls_link *link = step_of(work)->link;
	struct spokei_tls *tls = link->tls;
	int status = work->status;

	if (status && link->step->begun)
		abandon(link);
	finish(link->step);
	tls->away--;
	if (link->stream == NULL)
		spokei_tls_link_free(link);
	else if (status == 0)
		link->stream->watch.ready(&link->stream->watch, SPOKE_IO_READ);
	if (spokei_tls_has_waiting(tls))
		spokei_engine_soon(tls->engine, &tls->task);
	spokei_tls_drop(tls);
}

int spokei_tls_step_begin(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	struct spoke_engine *engine = tls->engine;
	struct spokei_tls_step *step = spokei_alloc(engine->env, 1, sizeof(*step));

	if (step == NULL)
		return -ENOMEM;
	step->work.run = run_step;
	step->work.done = step_done;
	step->work.background = true;
	step->link = link;
	link->step = step;
	if (link->ssl == NULL) {
		(void)SSL_CTX_up_ref(tls->context);
		step->context = tls->context;
		step->now_s = spokei_tls_seconds(engine->env);
	}
	if (!tls->here && engine->env->loop->offload(engine->loop, &step->work) == 0) {
		tls->away++;
		tls->uses++;
		return 0;
	}
	run_step(&step->work);
	finish(step);
	return 0;
}

struct spokei_tls_step spokei_tls_step_end(struct spokei_tls_link *link)
{
	struct spokei_tls_step step = *link->step;

	spokei_free(link->tls->engine->env, link->step, 1, sizeof(step));
	link->step = NULL;
	return step;
}
