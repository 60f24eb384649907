/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the streams, the end of one, and the owner of all. */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <stdio.h>
#include <string.h>

/* --- the table */

static unsigned tls_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct spokei_tls_link *link = stream->state;
	unsigned wants = io;

	if (link == NULL)
		return SPOKE_IO_READ;
	if (spokei_tls_is_away(link))
		return 0;
	if (!link->open)
		wants = link->node.next && !link->dying ? 0 : SPOKE_IO_READ;
	if (spokei_buffer_len(&link->lag) > 0 && !link->unwritable)
		wants |= SPOKE_IO_WRITE;
	return wants;
}

static ssize_t tls_unsent(const struct spokei_stream *stream)
{
	const struct spokei_tls_link *link = stream->state;
	ssize_t unsent = spokei_stream_socket.unsent(stream);

	return unsent < 0 || spokei_tls_is_away(link)
		       ? unsent
		       : unsent + (ssize_t)spokei_buffer_len(&link->lag);
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
	struct spokei_tls_link *link = stream->state;

	if (link == NULL)
		return;
	spokei_tls_leave(link);
	drop_why(link);
	link->stream = NULL;
	stream->state = NULL;
	if (!spokei_tls_is_away(link))
		spokei_tls_link_free(link);
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
	.look = spokei_tls_look,
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
	spokei_list_init(&tls->placed);
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
		error = spokei_tls_term_begin(tls);
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
	SPOKE_ASSERT(tls->places == 0);
	spokei_quota_fini(&tls->peers);
	spokei_task_drop(&tls->task);
	(void)spoke_alarm_cancel(&tls->late);
	(void)spoke_alarm_cancel(&tls->linger);
	(void)spoke_alarm_cancel(&tls->ration);
	spokei_tls_reload_free(tls->reload);
	spokei_tls_term_end(tls);
	(void)spoke_alarm_cancel(&tls->look);
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
