/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes. A stream whose ClientHello was accepted needs a place, of which there are few. Its
 * steps begin in the order in which they became possible, and a few are away at a time. If the
 * thread falls behind, because other programs take its CPU, the loop helps: live calls then wait
 * for a step, but the handshakes end in time. A place is free again when its handshake is over. The
 * owner of the stream bounds the time of all this.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

#define STEPS 8u /* that are away */
/* A turn begins no more of them after this time: where no thread takes them, they take longer. */
#define STEPS_NS UINT64_C(100000)
#define LATE_NS UINT64_C(100000000) /* after which the loop takes a step, one a turn */

static bool is_queued(const struct spokei_tls_link *link)
{
	return link->node.next != NULL;
}

/* Has the stream wait for its next step. Handshakes end before others begin: were there too little
 * time for all, all would be late otherwise. */
static void queue(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;

	if (!is_queued(link)) {
		spokei_list_append(link->ssl ? &tls->next : &tls->first, &link->node);
		link->queued_ns = tls->engine->begin_ns;
	}
	spokei_engine_soon(tls->engine, &tls->task);
}

/* Returns the stream whose step is next; one waits. */
static struct spokei_tls_link *next_of(const struct spokei_tls *tls)
{
	const struct spoke_list *queue = spokei_list_empty(&tls->next) ? &tls->first : &tls->next;

	return spoke_container_of(queue->next, struct spokei_tls_link, node);
}

/* --- places */

/* Returns whether `count` handshakes may begin now. */
static bool may_begin(const struct spokei_tls *tls, uint32_t count)
{
	uint64_t now_ns = tls->engine->begin_ns;

	return tls->begins.rate == 0 || spokei_bucket_next(&tls->begins, count, now_ns) == now_ns;
}

static void ration_due(struct spoke_alarm *alarm);

/* Has those that stand looked at when the next handshake may begin, if that is what they wait for.
 * Without a timer they wait for the end of another one. */
static void expect_ration(struct spokei_tls *tls)
{
	uint64_t now_ns = tls->engine->begin_ns;
	uint64_t next_ns;

	if (tls->begins.rate == 0 || tls->places >= tls->places_max ||
	    spokei_list_empty(&tls->standing) || spoke_timer_armed(&tls->ration.timer))
		return;
	next_ns = spokei_bucket_next(&tls->begins, 1, now_ns);
	(void)!spoke_alarm_after(tls->engine, &tls->ration, next_ns - now_ns, ration_due);
}

/* Queues as many of those that stand as there are places and beginnings. Each asks for one again:
 * some may be refused one, or be closed before, and then it is for the next. */
static void wake_standing(struct spokei_tls *tls)
{
	uint32_t free_count = tls->places < tls->places_max ? tls->places_max - tls->places : 0;

	for (uint32_t i = 1; i <= free_count && !spokei_list_empty(&tls->standing); i++) {
		struct spoke_list *first = tls->standing.next;

		if (!may_begin(tls, i))
			break;
		spokei_list_remove(first);
		queue(spoke_container_of(first, struct spokei_tls_link, node));
	}
	expect_ration(tls);
}

static void ration_due(struct spoke_alarm *alarm)
{
	wake_standing(spoke_container_of(alarm, struct spokei_tls, ration));
}

void spokei_tls_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits)
{
	uint32_t rate = limits->handshakes_per_second;
	uint32_t max = limits->handshakes_max;

	if (tls == NULL)
		return;
	tls->places_max = max ? max : SPOKEI_TLS_HANDSHAKES;
	spokei_tls_peers_limit(tls, limits);
	if (tls->begins.rate != rate)
		tls->begins = spokei_bucket_make(rate, rate, tls->engine->begin_ns);
	(void)spoke_alarm_cancel(&tls->ration);
	wake_standing(tls);
}

void spokei_tls_leave(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	bool waits = is_queued(link) && !link->open && !link->dying;
	bool makes_room = link->place.next || waits;

	if (is_queued(link))
		spokei_list_remove(&link->node);
	if (link->place.next) {
		spokei_list_remove(&link->place);
		tls->places--;
		if (!link->open)
			spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_FAILED);
	}
	spokei_tls_peer_leave(link);
	/* Only then: those that are woken without a place for them stand at the end of the line. */
	if (makes_room)
		wake_standing(tls);
}

/* --- opening */

static int tell(struct spokei_tls_link *link, const char *text)
{
	spokei_tls_tell(link->stream, text, NULL);
	return -EPROTO;
}

/* Takes a place, or stands until there is one. Returns 0; SPOKEI_STREAM_MORE: it stands; or an
 * errno. */
static int take_place(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	int status;

	if (!tls->accepts || link->place.next)
		return 0;
	status = link->counted ? 0 : spokei_tls_peer_enter(link);
	if (status == -EDQUOT) {
		spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_SHED);
		return tell(link, "this address has too many handshakes under way");
	}
	if (status)
		return status;
	if (tls->places >= tls->places_max || !may_begin(tls, 1)) {
		spokei_list_append(&tls->standing, &link->node);
		expect_ration(tls);
		return SPOKEI_STREAM_MORE;
	}
	if (tls->begins.rate > 0)
		(void)spokei_bucket_take(&tls->begins, 1, tls->engine->begin_ns);
	tls->places++;
	spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES);
	spokei_list_append(&tls->placed, &link->place);
	return 0;
}

/* Returns whether the peer is accepted by the files in use. They may have been replaced since the
 * handshake began. */
static bool is_accepted(const struct spokei_tls_link *link)
{
	const struct spokei_tls *tls = link->tls;

	return SSL_get_SSL_CTX(link->ssl) == tls->context || !tls->refuse ||
	       spokei_tls_trusts(link);
}

static int opened(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	X509 *cert = SSL_get0_peer_certificate(link->ssl);
	int status = 0;

	link->open = is_accepted(link);
	spokei_tls_leave(link);
	if (!link->open) {
		ERR_clear_error();
		return tell(link, "the peer's certificate is not accepted any more");
	}
	spokei_list_append(&tls->open, &link->node);
	link->keyed_ns = tls->engine->begin_ns;
	spokei_count(tls->engine,
		     tls->accepts ? SPOKE_STAT_HANDSHAKES_DONE : SPOKE_STAT_CONNECTS_SECURED);
	if (cert)
		status = spokei_tls_names_read(tls->engine->env, cert, &link->names);
	ERR_clear_error();
	return status;
}

/* A provider without TLS closes at the first byte, and says nothing. */
static void tell_lost(struct spokei_tls_link *link)
{
	if (link->tls->accepts)
		return;
	if (link->received == 0)
		spokei_tls_tell(link->stream, "the peer ended the connection without an answer",
				"set tls=on there, or tls=off here");
	else
		spokei_tls_tell(link->stream, "the connection was lost during the handshake", NULL);
}

/* Uses the result of a step. */
static int end_step(struct spokei_tls_link *link)
{
	const struct spokei_tls_step step = spokei_tls_step_end(link);

	if (step.status)
		return step.status;
	if (step.result == SSL_ERROR_NONE)
		return opened(link);
	if (step.result == SSL_ERROR_WANT_READ)
		return 0;
	spokei_tls_leave(link);
	if (link->ended)
		tell_lost(link);
	link->error = spokei_tls_failed(link, step.result, step.error);
	return spokei_tls_linger(link);
}

/* Takes a step of the handshake, if it may have a place. */
static int begin_step(struct spokei_tls_link *link)
{
	int status = take_place(link);

	if (status)
		return status == SPOKEI_STREAM_MORE ? 0 : status;
	status = spokei_tls_step_begin(link);
	return status || !link->step->over ? status : end_step(link);
}

static void begin_next(struct spokei_tls *tls, bool here)
{
	struct spokei_tls_link *link = next_of(tls);

	spokei_list_remove(&link->node);
	link->due = true;
	tls->here = here;
	link->stream->watch.ready(&link->stream->watch, SPOKE_IO_READ);
	tls->here = false;
}

static bool may_begin_next(const struct spokei_tls *tls)
{
	return spokei_tls_has_waiting(tls) && !spokei_engine_forked(tls->engine);
}

/* Returns how long the first stream of a queue may wait until the loop takes a step. */
static uint64_t patience_of(const struct spokei_tls *tls, const struct spoke_list *queue)
{
	const struct spokei_tls_link *link;
	uint64_t waited_ns;

	if (spokei_list_empty(queue))
		return UINT64_MAX;
	link = spoke_container_of(queue->next, struct spokei_tls_link, node);
	waited_ns = tls->engine->begin_ns - link->queued_ns;
	return waited_ns < LATE_NS ? LATE_NS - waited_ns : 0;
}

static uint64_t patience(const struct spokei_tls *tls)
{
	uint64_t next_ns = patience_of(tls, &tls->next);
	uint64_t first_ns = patience_of(tls, &tls->first);

	return next_ns < first_ns ? next_ns : first_ns;
}

static void late_due(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, late);

	spokei_engine_soon(tls->engine, &tls->task);
}

static void begin_steps(struct spokei_task *task)
{
	struct spokei_tls *tls = spoke_container_of(task, struct spokei_tls, task);
	const struct spoke_env *env = tls->engine->env;
	uint64_t until_ns = spokei_later(env->now(env->ctx), STEPS_NS);

	tls->uses++; /* users, who are told of ends, may free the owner */
	while (tls->away < STEPS && may_begin_next(tls)) {
		begin_next(tls, false);
		if (env->now(env->ctx) >= until_ns)
			break;
	}
	if (tls->away == STEPS && may_begin_next(tls) && patience(tls) == 0)
		begin_next(tls, true);
	tls->engine->settle_old = true;
	(void)spoke_alarm_cancel(&tls->late);
	if (may_begin_next(tls)) {
		if (tls->away < STEPS || patience(tls) == 0)
			spokei_engine_soon(tls->engine, task);
		else
			(void)!spoke_alarm_after(tls->engine, &tls->late, patience(tls), late_due);
	}
	spokei_tls_drop(tls);
}

void spokei_tls_open_init(struct spokei_tls *tls)
{
	spokei_list_init(&tls->next);
	spokei_list_init(&tls->first);
	tls->task.run = begin_steps;
}

/* Receives into `raw`. Returns 1 if there are new bytes or the end, 0 if there are none, or an
 * errno. */
static int pull(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	ssize_t got = env->net->read(env->ctx, link->stream->watch.fd, link->tls->scratch,
				     SPOKEI_TLS_PIECE);

	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got < 0)
		return (int)got;
	if (got == 0) {
		link->ended = true;
		return 1;
	}
	link->received += (size_t)got;
	if (link->received > SPOKEI_TLS_HANDSHAKE_MAX)
		return tell(link, "the peer's handshake is too long");
	return spokei_buffer_append(&link->raw, link->tls->scratch, (size_t)got) ? -ENOMEM : 1;
}

/* Receives bytes, and queues the step that they make possible. */
static int receive(struct spokei_tls_link *link)
{
	int status = pull(link);

	if (status <= 0)
		return status;
	queue(link);
	return 0;
}

static int connect_begins(struct spokei_stream *stream)
{
	struct spokei_tls_link *link;

	spokei_tls_forget(stream);
	link = spokei_tls_link_new(stream);
	if (link == NULL)
		return -ENOMEM;
	queue(link);
	return 0;
}

int spokei_tls_accept(struct spokei_stream *stream, struct spoke_span bytes)
{
	struct spokei_tls_link *link = spokei_tls_link_new(stream);

	if (link == NULL)
		return -ENOMEM;
	spokei_stream_use(stream, &link->tls->kind);
	if (spokei_buffer_append(&link->raw, bytes.data, bytes.len))
		return -ENOMEM;
	link->received = bytes.len;
	queue(link);
	return SPOKEI_STREAM_MORE;
}

static int go_on(struct spokei_tls_link *link)
{
	if (link->open)
		return 0;
	if (link->dying)
		return spokei_tls_swallow(link);
	if (link->step)
		return link->step->over ? end_step(link) : 0;
	if (!link->due)
		return receive(link);
	link->due = false;
	return begin_step(link);
}

static void fail(struct spokei_tls_link *link, int status)
{
	spokei_tls_leave(link);
	if (status != -ENOMEM)
		tell_lost(link);
}

int spokei_tls_open(struct spokei_stream *stream)
{
	struct spokei_tls_link *link;
	int status = stream->state ? go_on(stream->state) : connect_begins(stream);

	link = stream->state;
	if (status == 0 && !link->dying)
		status = spokei_tls_push(link);
	if (status == -EAGAIN || status == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (status < 0) {
		if (link)
			fail(link, status);
		return status;
	}
	return link->open ? 0 : SPOKEI_STREAM_MORE;
}
