/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes. An accepted stream collects a whole ClientHello first. Then it needs a slot, of
 * which there are few; its steps run on a thread, and a few are away at a time. The owner of the
 * stream bounds the time of all this.
 */
#include "transport/stream/tls/parts.h"

#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/hello.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

/* --- peers
 *
 * Peers that have handshakes: under way, or waiting for a slot. Each has a bound, so that one
 * peer can neither take all slots nor the line in front of them. */

/* Changes how many handshakes a peer may have. */
static void limit_peers(struct spokei_tls *tls, const struct spokei_tls_limits *limits)
{
	const uint32_t per_peer_max = limits->handshakes_per_peer_max;
	const struct spokei_quota_limits of = {
		.max = UINT32_MAX, /* the slots bound all */
		.per_peer_max = per_peer_max ? per_peer_max : SPOKEI_TLS_HANDSHAKES_PER_PEER,
		.prefix6 = limits->prefix6,
	};

	spokei_quota_change(&tls->peers, &of);
}

/* Counts a handshake of the peer, if its address is known. Returns 0, -EDQUOT (it has too many) or
 * -ENOMEM. */
static int peer_enter(const struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->stream->engine->env;
	struct spokei_quota *peers = &link->tls->peers;
	struct spoke_address address;
	bool of_peer;
	int error;

	if (env->net->peer(env->ctx, link->stream->watch.fd, &address))
		return 0;
	error = spokei_quota_enter(peers, &address, &of_peer);
	if (error)
		return error == SPOKE_ELIMIT ? -EDQUOT : -ENOMEM;
	link->handshake->counted = true;
	link->handshake->quota_peer = spokei_quota_peer(peers, &address);
	return 0;
}

/* Undoes that, if it was done. */
static void peer_leave(struct spokei_tls_handshake *handshake)
{
	if (!handshake->counted)
		return;
	handshake->counted = false;
	spokei_quota_leave(&handshake->tls->peers, handshake->quota_peer);
}

/* --- steps
 *
 * A step of a handshake: a call of the library that takes up to a millisecond. A thread with a
 * lower priority takes it, so that live calls do not wait for it, also on the same CPU. The
 * library's object, the bytes received and those to be sent are handed over to it; the loop has an
 * empty pipe meanwhile, and watches for nothing. */

/* --- on the thread */

/* Tells the peer to which name this side has connected; addresses are none. Returns 0 or -ENOMEM.
 */
static int name_host(SSL *ssl, const char *host)
{
	char name[TLSEXT_MAXLEN_host_name + 1];
	size_t len = strlen(host);

	if (len == 0 || len >= sizeof(name) || spokei_tls_is_address(host))
		return 0;
	memcpy(name, host, len + 1);
	return SSL_set_tlsext_host_name(ssl, name) == 1 ? 0 : -ENOMEM;
}

static int make_ssl(struct spokei_tls_step *step)
{
	SSL *ssl = SSL_new(step->context);

	if (ssl == NULL)
		return -ENOMEM;
	step->pipe.ssl = ssl;
	if (spokei_tls_join(&step->pipe, step->method) ||
	    SSL_set_app_data(ssl, &step->expected) != 1)
		return -ENOMEM;
	X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), step->now_s);
	if (step->accepts) {
		SSL_set_accept_state(ssl);
		return 0;
	}
	SSL_set_connect_state(ssl);
	return name_host(ssl, step->expected.host);
}

static void shake(struct spokei_tls_step *step)
{
	struct spokei_tls_pipe *pipe = &step->pipe;
	int result;

	pipe->in = spokei_tls_raw(pipe);
	result = SSL_do_handshake(pipe->ssl);
	step->result = result == 1 ? SSL_ERROR_NONE : SSL_get_error(pipe->ssl, result);
	step->error = ERR_peek_error();
	(void)SSL_free_buffers(pipe->ssl);
	step->status = spokei_tls_keep(pipe);
}

static void take_step(struct spokei_tls_step *step)
{
	step->begun = true;
	ERR_clear_error();
	step->status = step->context ? make_ssl(step) : 0;
	if (step->status == 0)
		shake(step);
	ERR_clear_error();
}

static void run_step(struct spoke_work *work)
{
	take_step(&spoke_container_of(work, struct spokei_tls_handshake, work)->step);
}

/* --- on the loop */

/* Returns whether a stream waits for a step. */
static bool has_waiting(const struct spokei_tls *tls)
{
	return !spokei_list_empty(&tls->next) || !spokei_list_empty(&tls->first);
}

static void free_handshake(struct spokei_tls_handshake *handshake)
{
	spokei_free(handshake->tls->engine->env, handshake, 1, handshake->size);
}

/* Ends the step. In a forked child a thread of the parent may have been at work: its things are
 * left alone. */
static void end_stage(struct spokei_tls_handshake *handshake)
{
	struct spokei_tls_step *step = &handshake->step;
	bool is_parents = handshake->work.status && step->begun;

	handshake->stage = SPOKEI_TLS_OVER;
	SSL_CTX_free(step->context);
	step->context = NULL;
	if (!is_parents && handshake->link)
		spokei_tls_hand_over(&step->pipe, &handshake->link->pipe);
	else if (!is_parents)
		spokei_tls_pipe_fini(&step->pipe);
}

static void step_done(struct spoke_work *work)
{
	struct spokei_tls_handshake *handshake =
		spoke_container_of(work, struct spokei_tls_handshake, work);
	struct spokei_tls_link *link = handshake->link;
	struct spokei_tls *tls = handshake->tls;

	end_stage(handshake);
	tls->away--;
	if (link == NULL)
		free_handshake(handshake);
	else if (work->status == 0)
		link->stream->watch.ready(&link->stream->watch, SPOKE_IO_READ);
	if (has_waiting(tls))
		spokei_run_soon(tls->engine, &tls->task);
	spokei_tls_drop(tls);
}

/* Begins a step with the bytes in `raw`. The loop takes it if tls->here is set, or no thread does,
 * and it is over then. Else the stream is ready when it is. */
static void begin_stage(struct spokei_tls_link *link)
{
	struct spokei_tls_handshake *handshake = link->handshake;
	struct spokei_tls *tls = link->tls;
	const struct spoke_loop *loop = tls->engine->env->loop;
	struct spokei_tls_step *step = &handshake->step;

	handshake->work = (struct spoke_work){
		.run = run_step,
		.done = step_done,
		.background = true,
	};
	if (link->pipe.ssl == NULL) {
		(void)SSL_CTX_up_ref(tls->context);
		step->context = tls->context;
		step->now_s = spokei_tls_seconds(tls->engine->env);
	}
	step->begun = false;
	spokei_tls_hand_over(&link->pipe, &step->pipe);
	handshake->stage = SPOKEI_TLS_AWAY;
	if (!tls->here && loop->offload(tls->engine->loop, &handshake->work) == 0) {
		tls->away++;
		tls->uses++;
		return;
	}
	take_step(step);
	end_stage(handshake);
}

/* --- the end of a failed handshake
 *
 * The end of a failed handshake: the peer gets its alert. Closing with unread bytes would reset
 * the connection, and the reset would destroy the alert. So this side ends its direction, and
 * drops all bytes of the peer until its end, for a second at most. */

#define LINGER_NS UINT64_C(1000000000)

static void linger_due(struct spoke_alarm *alarm);

/* Sets the alarm for the first stream, unless it is set. Returns whether it is. */
static bool set_alarm(struct spokei_tls *tls)
{
	const struct spokei_tls_link *first = spoke_container_of(tls->lingering.next,
								 struct spokei_tls_link, node);
	uint64_t until_ns = first->handshake->linger_ns;
	uint64_t now_ns = tls->engine->begin_ns;
	uint64_t delay_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return spoke_timer_armed(&tls->linger.timer) ||
	       spoke_alarm_after(tls->engine, &tls->linger, delay_ns, linger_due) == SPOKE_OK;
}

/* Ends the streams with no time left, and the others too if their alarm cannot be set. */
static void linger_due(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, linger);
	uint64_t now_ns = tls->engine->begin_ns;

	while (!spokei_list_empty(&tls->lingering)) {
		struct spokei_tls_link *first = spoke_container_of(tls->lingering.next,
								   struct spokei_tls_link, node);

		if (now_ns < first->handshake->linger_ns && set_alarm(tls))
			return;
		first->handshake->linger_ns = 0;
		spokei_list_remove(&first->node);
		first->stream->watch.ready(&first->stream->watch, SPOKE_IO_READ);
	}
}

/* Passes on the alert of a stream that failed with link->error. Returns 0 if the stream lingers, so
 * that the peer reads it, or else that error. */
static int begin_to_linger(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	struct spokei_tls *tls = link->tls;
	bool told = spokei_buffer_len(&link->pipe.lag) > 0; /* else no alert can be lost */

	if (spokei_tls_push(link) != 0 || !told || link->pipe.ended ||
	    env->net->shut(env->ctx, link->stream->watch.fd) < 0)
		return link->error;
	link->handshake->linger_ns = tls->engine->begin_ns + LINGER_NS;
	spokei_list_append(&tls->lingering, &link->node);
	if (!set_alarm(tls)) {
		spokei_list_remove(&link->node);
		return link->error;
	}
	link->handshake->dying = true;
	SSL_free(link->pipe.ssl);
	link->pipe.ssl = NULL;
	spokei_buffer_fini(&link->pipe.raw);
	return 0;
}

/* Drops what the peer of a lingering stream sends. Returns 0, or the errno of the handshake at the
 * end. */
static int swallow(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	ssize_t got = env->net->read(env->ctx, link->stream->watch.fd, link->tls->scratch,
				     SPOKEI_TLS_PIECE);
	bool goes_on = got > 0 || got == -EAGAIN || got == -EINTR;

	return goes_on && link->handshake->linger_ns > 0 ? 0 : link->error;
}

/* --- queues
 *
 * Steps begin in the order in which they became possible, and a few are away at a time. If the
 * thread falls behind, because other programs take its CPU, the loop helps: live calls then wait
 * for a step, but the handshakes end in time. A slot is free again when its handshake is over. */

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
		spokei_list_append(link->pipe.ssl ? &tls->next : &tls->first, &link->node);
		link->handshake->queued_ns = tls->engine->begin_ns;
	}
	spokei_run_soon(tls->engine, &tls->task);
}

/* Returns the stream whose step is next; one waits. */
static struct spokei_tls_link *next_of(const struct spokei_tls *tls)
{
	const struct spoke_list *queue = spokei_list_empty(&tls->next) ? &tls->first : &tls->next;

	return spoke_container_of(queue->next, struct spokei_tls_link, node);
}

/* --- slots
 *
 * Once all are taken and streams wait for one, the handshake that has made no progress for longest
 * gives up its slot after a second: a few peers that say nothing would have all slots otherwise,
 * until the time of their handshakes is over. Bytes that complete no message are no progress, but
 * those in the socket are tried first. A step that waits, or is away, is no fault of the peer. */

#define SILENT_NS UINT64_C(1000000000)

/* Returns whether `count` handshakes may begin now. */
static bool may_begin(const struct spokei_tls *tls, uint32_t count)
{
	uint64_t now_ns = tls->engine->begin_ns;

	return tls->begins.rate == 0 || spokei_bucket_next(&tls->begins, count, now_ns) == now_ns;
}

static bool has_slot(const struct spokei_tls_handshake *handshake)
{
	return handshake->slot.next != NULL;
}

/* Notes that a handshake with a slot waits for its peer. */
static void note_progress(struct spokei_tls_handshake *handshake)
{
	int state = (int)SSL_get_state(handshake->link->pipe.ssl);

	if (!has_slot(handshake) || handshake->state == state)
		return;
	handshake->state = state;
	handshake->yields = false;
	handshake->progress_ns = handshake->tls->engine->begin_ns;
	spokei_list_remove(&handshake->slot);
	spokei_list_append(&handshake->tls->holders, &handshake->slot);
}

/* Returns the handshake that gives up its slot next; NULL: none waits for its peer. */
static struct spokei_tls_handshake *slowest(const struct spokei_tls *tls)
{
	for (struct spoke_list *at = tls->holders.next; at != &tls->holders; at = at->next) {
		struct spokei_tls_handshake *handshake =
			spoke_container_of(at, struct spokei_tls_handshake, slot);

		if (handshake->stage == SPOKEI_TLS_WITH_LOOP && !is_queued(handshake->link))
			return handshake;
	}
	return NULL;
}

/* Returns when one of those that stand may get a slot, if it need not wait for the end of another
 * handshake; UINT64_MAX: it has to. */
static uint64_t next_slot(const struct spokei_tls *tls)
{
	bool limited = tls->begins.rate > 0;
	uint64_t token_ns = limited ? spokei_bucket_next(&tls->begins, 1, tls->engine->begin_ns)
				    : 0;
	const struct spokei_tls_handshake *slow;
	uint64_t silent_ns;

	if (tls->slots < tls->slots_max)
		return limited ? token_ns : UINT64_MAX;
	slow = slowest(tls);
	if (slow == NULL)
		return UINT64_MAX;
	silent_ns = spokei_later(slow->progress_ns, SILENT_NS);
	return silent_ns > token_ns ? silent_ns : token_ns;
}

static void ration_due(struct spoke_alarm *alarm);

/* Has those that stand looked at when one of them may get a slot: an alarm that is due too early
 * looks, and is set again. Without a timer they wait for the end of a handshake. */
static void expect_slot(struct spokei_tls *tls)
{
	uint64_t now_ns = tls->engine->begin_ns;
	uint64_t next_ns;

	if (spokei_list_empty(&tls->standing))
		return;
	next_ns = next_slot(tls);
	if (next_ns < UINT64_MAX &&
	    !(spoke_timer_armed(&tls->ration.timer) && tls->ration.due_ns <= next_ns))
		(void)!spoke_alarm_after(tls->engine, &tls->ration,
					 next_ns > now_ns ? next_ns - now_ns : 0, ration_due);
}

/* Queues as many of those that stand as there are slots and beginnings. Each asks for one again:
 * some may be refused one, or be closed before, and then it is for the next. */
static void wake_standing(struct spokei_tls *tls)
{
	uint32_t free_count = tls->slots < tls->slots_max ? tls->slots_max - tls->slots : 0;
	uint32_t woken = 0;

	while (woken < free_count && !spokei_list_empty(&tls->standing)) {
		struct spoke_list *first = tls->standing.next;

		if (!may_begin(tls, woken + 1))
			break;
		spokei_list_remove(first);
		queue(spoke_container_of(first, struct spokei_tls_link, node));
		woken++;
	}
	/* Those that are woken look for the next one once they have asked. */
	if (woken == 0)
		expect_slot(tls);
}

/* Begins the time of each handshake again, because a late turn proves no silence. */
static void excuse_all(struct spokei_tls *tls)
{
	for (struct spoke_list *at = tls->holders.next; at != &tls->holders; at = at->next)
		spoke_container_of(at, struct spokei_tls_handshake, slot)->progress_ns =
			tls->engine->begin_ns;
}

/* Ends the slowest handshake, if it has to give up its slot, unless its socket has bytes: they are
 * tried first. */
static void make_way(struct spokei_tls *tls)
{
	struct spokei_tls_handshake *slow = tls->slots >= tls->slots_max ? slowest(tls) : NULL;

	if (spokei_engine_late_for(tls->engine, SILENT_NS)) {
		excuse_all(tls);
		return;
	}
	if (slow == NULL || tls->engine->begin_ns - slow->progress_ns < SILENT_NS ||
	    spokei_list_empty(&tls->standing) || !may_begin(tls, 1))
		return;
	slow->yields = true;
	slow->link->stream->watch.ready(&slow->link->stream->watch, SPOKE_IO_READ);
}

static void ration_due(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, ration);

	tls->uses++; /* users, who are told of ends, may free the owner */
	make_way(tls);
	wake_standing(tls);
	spokei_tls_drop(tls);
}

void spokei_tls_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits)
{
	uint32_t rate = limits->handshakes_per_second;
	uint32_t max = limits->handshakes_max;

	if (tls == NULL)
		return;
	tls->slots_max = max ? max : SPOKEI_TLS_HANDSHAKES;
	limit_peers(tls, limits);
	if (tls->begins.rate != rate)
		tls->begins = spokei_bucket_make(rate, rate, tls->engine->begin_ns);
	(void)spoke_alarm_cancel(&tls->ration);
	wake_standing(tls);
}

/* Takes a stream out of the queues. `opened`: its handshake was good. */
static void leave(struct spokei_tls_link *link, bool opened)
{
	struct spokei_tls_handshake *handshake = link->handshake;
	struct spokei_tls *tls = link->tls;
	bool makes_room = has_slot(handshake) || (is_queued(link) && !handshake->dying);

	if (is_queued(link))
		spokei_list_remove(&link->node);
	if (has_slot(handshake)) {
		spokei_list_remove(&handshake->slot);
		tls->slots--;
		if (!opened)
			spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_FAILED);
	}
	peer_leave(handshake);
	/* Only then: those that are woken without a slot for them stand at the end of the line. */
	if (makes_room)
		wake_standing(tls);
}

void spokei_tls_end_handshake(struct spokei_tls_link *link)
{
	struct spokei_tls_handshake *handshake = link->handshake;

	leave(link, false);
	link->handshake = NULL;
	if (handshake->stage == SPOKEI_TLS_AWAY)
		handshake->link = NULL;
	else
		free_handshake(handshake);
}

/* --- opening */

static int tell(struct spokei_tls_link *link, const char *text)
{
	spokei_tls_tell(link->stream, text, NULL);
	return -EPROTO;
}

/* Takes a slot, or stands until there is one. Returns 0; SPOKEI_STREAM_MORE: it stands; or an
 * errno. */
static int take_slot(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	int status;

	if (!tls->accepts || has_slot(link->handshake))
		return 0;
	status = link->handshake->counted ? 0 : peer_enter(link);
	if (status == -EDQUOT) {
		spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_SHED);
		return tell(link, "this address has too many handshakes under way");
	}
	if (status)
		return status;
	if (tls->slots >= tls->slots_max || !may_begin(tls, 1)) {
		spokei_list_append(&tls->standing, &link->node);
		expect_slot(tls);
		return SPOKEI_STREAM_MORE;
	}
	if (tls->begins.rate > 0)
		(void)spokei_bucket_take(&tls->begins, 1, tls->engine->begin_ns);
	tls->slots++;
	spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES);
	link->handshake->progress_ns = tls->engine->begin_ns;
	spokei_list_append(&tls->holders, &link->handshake->slot);
	expect_slot(tls);
	return 0;
}

/* Returns whether the peer is accepted by the files in use. They may have been replaced since the
 * handshake began. */
static bool is_accepted(const struct spokei_tls_link *link)
{
	const struct spokei_tls *tls = link->tls;

	return SSL_get_SSL_CTX(link->pipe.ssl) == tls->context || !tls->refuse ||
	       spokei_tls_trusts(link);
}

/* Counts the peer's changes of keys: each costs as much as many messages.
 * NOLINTNEXTLINE(readability-function-size): of the library's form */
static void watch_messages(int writes, int version, int type, const void *bytes, size_t len,
			   SSL *ssl, void *arg)
{
	struct spokei_tls_link *link = arg;

	(void)version;
	(void)ssl;
	if (writes || type != SSL3_RT_HANDSHAKE || len == 0 ||
	    *(const unsigned char *)bytes != SSL3_MT_KEY_UPDATE)
		return;
	if (!spokei_bucket_take(&link->updates, 1, link->tls->engine->begin_ns))
		link->pipe.flooded = true;
}

static int opened(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	SSL *ssl = link->pipe.ssl;
	X509 *cert = SSL_get0_peer_certificate(ssl);
	bool accepted = is_accepted(link);
	int status = 0;

	leave(link, accepted);
	if (!accepted) {
		ERR_clear_error();
		return tell(link, "the peer's certificate is not accepted any more");
	}
	free_handshake(link->handshake);
	link->handshake = NULL;
	SSL_set_msg_callback(ssl, watch_messages);
	SSL_set_msg_callback_arg(ssl, link);
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
	if (link->handshake && link->handshake->received == 0)
		spokei_tls_tell(link->stream, "the peer ended the connection without an answer",
				"set tls=on there, or tls=off here");
	else
		spokei_tls_tell(link->stream, "the connection was lost during the handshake", NULL);
}

static int give_way(struct spokei_tls_link *link)
{
	spokei_count(link->tls->engine, SPOKE_STAT_HANDSHAKES_LATE);
	return tell(link, "the peer completed no message for 1 s while other handshakes waited");
}

/* Uses the result of a step. */
static int use_result(struct spokei_tls_link *link)
{
	const struct spokei_tls_step *step = &link->handshake->step;

	link->handshake->stage = SPOKEI_TLS_WITH_LOOP;
	if (step->status)
		return step->status;
	if (step->result == SSL_ERROR_NONE)
		return opened(link);
	if (step->result == SSL_ERROR_WANT_READ) {
		note_progress(link->handshake);
		if (link->handshake->yields)
			return give_way(link);
		expect_slot(link->tls);
		return 0;
	}
	leave(link, false);
	if (link->pipe.ended)
		tell_lost(link);
	link->error = spokei_tls_failed(link, step->result, step->error);
	return begin_to_linger(link);
}

/* Takes a step of the handshake, if it may have a slot. */
static int begin_step(struct spokei_tls_link *link)
{
	int status = take_slot(link);

	if (status)
		return status == SPOKEI_STREAM_MORE ? 0 : status;
	begin_stage(link);
	return link->handshake->stage == SPOKEI_TLS_OVER ? use_result(link) : 0;
}

static void begin_next(struct spokei_tls *tls, bool here)
{
	struct spokei_tls_link *link = next_of(tls);

	spokei_list_remove(&link->node);
	link->handshake->due = true;
	tls->here = here;
	link->stream->watch.ready(&link->stream->watch, SPOKE_IO_READ);
	tls->here = false;
}

static bool may_begin_next(const struct spokei_tls *tls)
{
	return has_waiting(tls) && !spokei_engine_forked(tls->engine);
}

/* Returns how long the first stream of a queue may wait until the loop takes a step. */
static uint64_t patience_of(const struct spokei_tls *tls, const struct spoke_list *queue)
{
	const struct spokei_tls_link *link;
	uint64_t waited_ns;

	if (spokei_list_empty(queue))
		return UINT64_MAX;
	link = spoke_container_of(queue->next, struct spokei_tls_link, node);
	waited_ns = tls->engine->begin_ns - link->handshake->queued_ns;
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

	spokei_run_soon(tls->engine, &tls->task);
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
			spokei_run_soon(tls->engine, task);
		else
			(void)!spoke_alarm_after(tls->engine, &tls->late, patience(tls), late_due);
	}
	spokei_tls_drop(tls);
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
		link->pipe.ended = true;
		return 1;
	}
	link->handshake->received += (size_t)got;
	if (link->handshake->received > SPOKEI_TLS_HANDSHAKE_MAX)
		return tell(link, "the peer's handshake is too long");
	return spokei_buffer_append(&link->pipe.raw, link->tls->scratch, (size_t)got) ? -ENOMEM : 1;
}

/* Receives bytes, and queues the step that they make possible. A handshake that has to give up its
 * slot ends if there are none. */
static int receive(struct spokei_tls_link *link)
{
	int status = pull(link);

	if (status < 0)
		return status;
	if (status > 0)
		queue(link);
	return link->handshake->yields && !is_queued(link) ? give_way(link) : 0;
}

#define UPDATES_PER_SECOND 100u
#define UPDATES_BURST 32u

/* Makes the state of a stream. NULL: no memory. */
static struct spokei_tls_link *link_new(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct spokei_tls *tls = spokei_tls_of(stream);
	const char *host = stream->host ? stream->host : "";
	size_t size = sizeof(struct spokei_tls_handshake) + strlen(host) + 1;
	struct spokei_tls_handshake *handshake = spokei_alloc(env, 1, size);
	struct spokei_tls_link *link = spokei_alloc(env, 1, sizeof(*link));

	if (handshake == NULL || link == NULL) {
		spokei_free(env, handshake, 1, size);
		spokei_free(env, link, 1, sizeof(*link));
		return NULL;
	}
	handshake->tls = tls;
	handshake->link = link;
	handshake->size = size;
	memcpy(handshake->host, host, strlen(host) + 1);
	handshake->step.expected = (struct spokei_tls_expected){ tls->ask, handshake->host };
	handshake->step.method = tls->method;
	handshake->step.accepts = tls->accepts;
	link->handshake = handshake;
	link->stream = stream;
	link->tls = tls;
	link->updates = spokei_bucket_make(UPDATES_PER_SECOND, UPDATES_BURST,
					   tls->engine->begin_ns);
	spokei_tls_pipe_init(&link->pipe, env);
	stream->state = link;
	return link;
}

static int connect_begins(struct spokei_stream *stream)
{
	struct spokei_tls_link *link;

	spokei_tls_forget(stream);
	link = link_new(stream);
	if (link == NULL)
		return -ENOMEM;
	queue(link);
	return 0;
}

/* Begins the handshake of an accepted stream, which has sent these bytes: a ClientHello, and maybe
 * more. It has no state yet. As open() of a stream. */
static int begin_accepted(struct spokei_stream *stream, struct spoke_span bytes)
{
	struct spokei_tls_link *link = link_new(stream);

	if (link == NULL)
		return -ENOMEM;
	spokei_stream_use(stream, &link->tls->kind);
	if (spokei_buffer_append(&link->pipe.raw, bytes.data, bytes.len))
		return -ENOMEM;
	link->handshake->received = bytes.len;
	queue(link);
	return SPOKEI_STREAM_MORE;
}

static int go_on(struct spokei_tls_link *link)
{
	struct spokei_tls_handshake *handshake = link->handshake;

	if (handshake == NULL)
		return 0;
	if (handshake->dying)
		return swallow(link);
	if (handshake->stage != SPOKEI_TLS_WITH_LOOP)
		return handshake->stage == SPOKEI_TLS_OVER ? use_result(link) : 0;
	if (!handshake->due)
		return receive(link);
	handshake->due = false;
	return begin_step(link);
}

static void fail(struct spokei_tls_link *link, int status)
{
	if (link->handshake)
		leave(link, false);
	if (status != -ENOMEM)
		tell_lost(link);
}

int spokei_tls_open(struct spokei_stream *stream)
{
	struct spokei_tls_link *link;
	int status = stream->state ? go_on(stream->state) : connect_begins(stream);

	link = stream->state;
	if (status == 0 && !(link->handshake && link->handshake->dying))
		status = spokei_tls_push(link);
	if (status == -EAGAIN || status == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (status < 0) {
		if (link)
			fail(link, status);
		return status;
	}
	return link->handshake ? SPOKEI_STREAM_MORE : 0;
}

/* --- the bytes before a handshake
 *
 * The first bytes of accepted streams, until a ClientHello is whole. A silent peer costs nothing
 * here and a slow one what it has sent; the state of a TLS stream comes afterwards. Where plain
 * bytes are allowed the first byte decides, and the stream becomes a plain socket. */

#define ROOM_MIN 12u /* bytes that the smallest cell has room for */

_Static_assert(SPOKEI_HELLO_BYTES + SPOKEI_TLS_PIECE <= SPOKEI_ENGINE_SCRATCH, "they fit");

/* The bytes so far: the state of a stream whose peer has sent some. */
struct cell {
	uint32_t len;
	uint32_t room;
	bool plain; /* the peer speaks plain bytes, and the stream is open */
	unsigned char bytes[];
};

/* Of all peers that have sent the first byte of a ClientHello and no other. */
static struct cell lone = { .len = 1 };
static const unsigned char lone_byte = 0x16;

/* --- the cell */

static struct spoke_span bytes_of(const struct cell *cell)
{
	if (cell == NULL)
		return (struct spoke_span){ NULL, 0 };
	return (struct spoke_span){ cell == &lone ? &lone_byte : cell->bytes, cell->len };
}

static void close_cell(struct spokei_stream *stream)
{
	struct cell *cell = stream->state;

	if (cell && cell != &lone)
		spokei_free(stream->engine->env, cell, 1, sizeof(*cell) + cell->room);
	stream->state = NULL;
}

/* Keeps the bytes, which begin with those of the cell. Returns 0 or -ENOMEM. */
static int keep(struct spokei_stream *stream, struct spoke_span bytes)
{
	const struct spoke_env *env = stream->engine->env;
	struct cell *cell = stream->state == &lone ? NULL : stream->state;
	size_t room = cell ? cell->room : 0;
	size_t more = room > 0 ? room : ROOM_MIN;

	if (bytes.len == 1 && *(const unsigned char *)bytes.data == lone_byte) {
		stream->state = &lone;
		return 0;
	}
	while (more < bytes.len)
		more *= 2;
	if (more > room) {
		cell = env->resize(env->ctx, cell, cell ? sizeof(*cell) + room : 0,
				   sizeof(*cell) + more);
		if (cell == NULL)
			return -ENOMEM;
		cell->room = (uint32_t)more;
		cell->plain = false;
		stream->state = cell;
	}
	memcpy(cell->bytes, bytes.data, bytes.len);
	cell->len = (uint32_t)bytes.len;
	return 0;
}

/* --- opening */

/* Receives into the scratch, behind the bytes that came before; *ret is all of them. Returns the
 * bytes received, 0 at the end, or a negative errno. */
static ssize_t receive_first(struct spokei_stream *stream, struct spoke_span *ret)
{
	const struct spoke_env *env = stream->engine->env;
	struct spoke_span before = bytes_of(stream->state);
	unsigned char *scratch = spokei_tls_of(stream)->scratch;
	ssize_t got = env->net->read(env->ctx, stream->watch.fd, scratch + before.len,
				     SPOKEI_TLS_PIECE);

	if (got <= 0)
		return got;
	if (before.len > 0)
		memcpy(scratch, before.data, before.len);
	*ret = (struct spoke_span){ scratch, before.len + (size_t)got };
	return got;
}

static int refuse(struct spokei_stream *stream, const char *text)
{
	spokei_tls_tell(stream, text, NULL);
	return -EPROTO;
}

static int open_plain(struct spokei_stream *stream, struct spoke_span bytes)
{
	struct spokei_tls *tls = spokei_tls_of(stream);

	if (stream->kind == &tls->or_plain) {
		struct cell *cell;
		int status = keep(stream, bytes);

		cell = stream->state;
		if (status == 0)
			cell->plain = true;
		return status;
	}
	spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_PLAIN);
	return refuse(stream, "the peer speaks plain bytes; set tls=on there");
}

static int collect(struct spokei_stream *stream)
{
	struct spoke_span bytes;
	ssize_t got = receive_first(stream, &bytes);
	int status;

	if (got == -EAGAIN || got == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (got <= 0)
		return got == 0 ? -ECONNRESET : (int)got;
	switch (spokei_hello_judge(bytes)) {
	case SPOKEI_HELLO_WHOLE:
		close_cell(stream);
		return begin_accepted(stream, bytes);
	case SPOKEI_HELLO_MORE:
		status = keep(stream, bytes);
		return status ? status : SPOKEI_STREAM_MORE;
	case SPOKEI_HELLO_PLAIN:
		return open_plain(stream, bytes);
	case SPOKEI_HELLO_BROKEN:
	default:
		return refuse(stream, "the peer's first bytes are no ClientHello");
	}
}

static int cell_open(struct spokei_stream *stream)
{
	if (stream->state == NULL)
		spokei_tls_forget(stream);
	return collect(stream);
}

/* --- plain bytes */

/* Gives those that came, and leaves the rest to the socket. */
static ssize_t read_plain(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct cell *cell = stream->state;
	size_t count = cell->len < len ? cell->len : len;

	SPOKE_ASSERT(cell->plain);
	memcpy(bytes, cell->bytes, count);
	cell->len -= (uint32_t)count;
	memmove(cell->bytes, cell->bytes + count, cell->len);
	if (cell->len == 0) {
		close_cell(stream);
		spokei_stream_use(stream, &spokei_stream_socket);
	}
	return (ssize_t)count;
}

static size_t cell_pending(const struct spokei_stream *stream)
{
	const struct cell *cell = stream->state;

	return cell && cell->plain ? cell->len : 0;
}

static unsigned cell_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct cell *cell = stream->state;

	return cell && cell->plain ? io : SPOKE_IO_READ;
}

/* It holds no bytes for the peer. */
static int cell_flush(struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

static uint64_t cell_passed(const struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

void spokei_tls_open_init(struct spokei_tls *tls)
{
	static const struct spokei_quota_limits defaults; /* until the limits are set */

	spokei_list_init(&tls->next);
	spokei_list_init(&tls->first);
	spokei_list_init(&tls->standing);
	spokei_list_init(&tls->holders);
	spokei_list_init(&tls->lingering);
	spokei_quota_init(&tls->peers, tls->engine->env, &defaults);
	tls->task.run = begin_steps;
	tls->silent = spokei_stream_socket;
	tls->silent.name = "tls";
	tls->silent.owner = tls;
	tls->silent.copies = true;
	tls->silent.veiled = true;
	tls->silent.open = cell_open;
	tls->silent.read = read_plain;
	tls->silent.wants = cell_wants;
	tls->silent.pending = cell_pending;
	tls->silent.flush = cell_flush;
	tls->silent.passed = cell_passed;
	tls->silent.why = spokei_tls_why;
	tls->silent.close = close_cell;
	tls->or_plain = tls->silent;
	tls->or_plain.patient = true;
}
