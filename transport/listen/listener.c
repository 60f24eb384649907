/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listens at one address and handles the errors of accept(): an error of one connection is skipped,
 * a lack of descriptors is handled with the spare one, and after an error that would only repeat
 * the listener pauses.
 */
#include "transport/listen/listener.h"
#include "core/base/address.h"
#include "core/base/env.h"
#include "core/base/status.h"

#include <spoke/stats.h>
#include <spoke/wheel.h>

#include "core/engine/engine.h"
#include "transport/listen/quota.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_TEXT 160u
#define ADDRESS_SHOWN 24u               /* bytes of an address in an event, so that the rest fits */
#define REST_NS UINT64_C(3600000000000) /* an unused timer is renewed this often */
#define EVENT_NS UINT64_C(10000000000)  /* between two events of one kind */

/* Events that may repeat. */
enum report {
	REPORT_DESCRIPTORS,
	REPORT_PAUSE,
	REPORT_TOTAL,
	REPORT_ROOM,
	REPORT_PEER,
	REPORT_MEMORY,
	REPORT_DENIED,
	REPORTS,
};

struct spokei_listener {
	struct spoke_engine *engine;
	struct spokei_quota *quota;
	spokei_accept accept;
	spokei_divert divert; /* may be NULL */
	struct spokei_rules *rules;
	struct spokei_rules *const *owner_rules; /* may be NULL */
	unsigned marks;
	void *arg;
	struct spoke_watch watch;
	struct spoke_timer
		timer; /* always armed: ends a pause, or only keeps its place in the wheel */
	unsigned timer_class;
	int spare;       /* a descriptor; -1: none could be opened */
	unsigned barren; /* errors of single connections, in a row */
	bool paused;
	bool held; /* by the owner */
	bool closed;
	uint64_t silent_ns[REPORTS]; /* no such event before this time */
	struct spoke_address address;
	struct spokei_task end; /* frees it */
};

/* --- events */

/* Prints an address of the listener, or the end of it if it is long. */
static const char *print_address(const struct spokei_listener *listener,
				 const struct spoke_address *address, char text[ADDRESS_TEXT])
{
	const struct spoke_env *env = listener->engine->env;
	char *shown;
	size_t len;

	env->net->print(env->ctx, address, text, ADDRESS_TEXT);
	if (listener->marks & SPOKEI_LISTENER_SHM)
		spokei_address_share(text);
	len = strlen(text);
	if (len <= ADDRESS_SHOWN)
		return text;
	shown = text + len - ADDRESS_SHOWN;
	shown[0] = shown[1] = shown[2] = '.';
	return shown;
}

static const char *advice(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "; stop the program that uses it, or choose another";
	case -EADDRNOTAVAIL:
		return "; use an address of this machine";
	case -EACCES:
	case -EPERM:
		return "; get the permission, or choose another";
	case -ENOENT:
	case -ENOTDIR:
		return "; create its directory";
	case -EMFILE:
	case -ENFILE:
		return "; raise the limit of open files";
	default:
		return "";
	}
}

static void report_failure(const struct spokei_listener *listener,
			   const struct spoke_address *address, int error)
{
	char text[ADDRESS_TEXT];
	char why[SPOKEI_STATUS_TEXT];

	spokei_event(listener->engine, SPOKE_ESYSTEM, "cannot listen at %s: %s%s",
		     print_address(listener, address, text), spokei_status_text(error, why),
		     advice(error));
}

/* Limits events of one kind, so that a peer cannot fill the ring of events by connecting often. */
static bool may_report(struct spokei_listener *listener, enum report kind)
{
	uint64_t now_ns = listener->engine->begin_ns;

	if (now_ns < listener->silent_ns[kind])
		return false;
	listener->silent_ns[kind] = now_ns + EVENT_NS;
	return true;
}

static void report(struct spokei_listener *listener, enum report kind, int error, const char *text)
{
	char address[ADDRESS_TEXT];

	if (may_report(listener, kind))
		spokei_event(listener->engine, error, "listener %s: %s",
			     print_address(listener, &listener->address, address), text);
}

/* --- pausing */

static void watch(struct spokei_listener *listener, unsigned io)
{
	struct spoke_engine *engine = listener->engine;

	engine->env->loop->watch(engine->loop, &listener->watch, listener->held ? 0 : io);
}

/* Fails only in a wheel at the end of its time: the timer was armed before, so it has its place. */
static int arm(struct spokei_listener *listener, uint64_t delay_ns)
{
	struct spoke_engine *engine = listener->engine;
	uint64_t due_ns = engine->env->now(engine->env->ctx) + delay_ns;

	if (spoke_timer_armed(&listener->timer))
		return spokei_engine_fold(
			spoke_wheel_reschedule(engine->wheel, &listener->timer, due_ns));
	return spokei_engine_fold(spoke_wheel_schedule(engine->wheel, &listener->timer,
						       listener->timer_class, due_ns));
}

static int take_spare(struct spokei_listener *listener)
{
	const struct spoke_env *env = listener->engine->env;

	if (listener->spare >= 0)
		return 0;
	return env->net->spare(env->ctx, &listener->spare);
}

static void drop_spare(struct spokei_listener *listener)
{
	const struct spoke_env *env = listener->engine->env;

	if (listener->spare >= 0)
		env->net->close(env->ctx, listener->spare);
	listener->spare = -1;
}

static void pause_accepting(struct spokei_listener *listener, int error)
{
	char text[ADDRESS_TEXT];
	char why[SPOKEI_STATUS_TEXT];

	/* Without the timer it does not pause: accepting too often is better than never again. */
	if (arm(listener, SPOKEI_LISTENER_PAUSE_NS) == SPOKE_OK) {
		listener->paused = true;
		watch(listener, 0);
	}
	if (may_report(listener, REPORT_PAUSE))
		spokei_event(listener->engine, SPOKE_ESYSTEM, "listener %s pauses: %s%s",
			     print_address(listener, &listener->address, text),
			     spokei_status_text(error, why), advice(error));
}

static void listener_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_listener *listener = spoke_container_of(timer, struct spokei_listener, timer);
	int error = arm(listener, REST_NS);

	(void)arg;
	if (error)
		report(listener, REPORT_PAUSE, error,
		       "cannot set its timer; errors of accept() will repeat");
	/* Before anything is accepted. Without the spare one, a lack of descriptors pauses again.
	 */
	(void)take_spare(listener);
	if (!listener->paused)
		return;
	listener->paused = false;
	watch(listener, SPOKE_IO_READ);
}

/* --- accepting */

static void reject(struct spokei_listener *listener, int fd, int error, bool of_peer)
{
	spokei_quota_reject(listener->engine, fd, error, of_peer);
	if (error != SPOKE_ELIMIT)
		report(listener, REPORT_MEMORY, error, "no memory; closing new connections");
	else if (of_peer)
		report(listener, REPORT_PEER, error,
		       "a peer address is at its limit; closing more connections of it");
	else
		report(listener, REPORT_TOTAL, error,
		       "connections are at their limit; closing new ones");
}

/* Returns whether the connection is admitted; else it is closed. */
static bool let_in(struct spokei_listener *listener, int fd, const struct spoke_address *peer)
{
	enum spokei_rules_verdict verdict =
		spokei_rules_admit(listener->engine->env,
				   listener->owner_rules ? *listener->owner_rules : NULL,
				   listener->rules, fd, peer);

	if (verdict == SPOKEI_RULES_ADMIT)
		return true;
	spokei_rules_deny(listener->engine, fd, peer, verdict);
	report(listener, REPORT_DENIED, SPOKE_EFORBIDDEN,
	       "closing connections of peers that may not connect");
	return false;
}

static void take(struct spokei_listener *listener, int fd, const struct spoke_address *peer)
{
	const uint64_t rooms = listener->quota->rooms;
	bool of_peer;
	int error;

	if (!let_in(listener, fd, peer))
		return;
	if (listener->divert && listener->divert(listener->arg, fd, peer, listener->marks))
		return;
	error = spokei_quota_enter(listener->quota, peer, &of_peer);
	if (listener->quota->rooms != rooms)
		report(listener, REPORT_ROOM, SPOKE_ELIMIT,
		       "connections are at their limit; closing those that have sent nothing or "
		       "have their response");
	if (error) {
		reject(listener, fd, error, of_peer);
		return;
	}
	spokei_count(listener->engine, SPOKE_STAT_ACCEPTED);
	listener->accept(listener->arg, fd, peer, listener->marks);
}

/* No descriptor is left: gives up the spare one, to accept a connection and close it. Returns
 * whether to go on. */
static bool shed(struct spokei_listener *listener, int error)
{
	const struct spoke_env *env = listener->engine->env;
	struct spoke_address peer;
	int status;
	int fd;

	if (listener->spare < 0) {
		pause_accepting(listener, error);
		return false;
	}
	report(listener, REPORT_DESCRIPTORS, SPOKE_ESYSTEM,
	       "no descriptors, closing new connections; raise the limit of open files");
	drop_spare(listener);
	status = env->net->accept(env->ctx, listener->watch.fd, &fd, &peer);
	if (status == 0) {
		env->net->close(env->ctx, fd);
		spokei_count(listener->engine, SPOKE_STAT_ACCEPTS_SHED);
	}
	error = take_spare(listener);
	if (!error && (status == -EMFILE || status == -ENFILE))
		error = status; /* another thread took the descriptor, and may do so again */
	if (error) {
		pause_accepting(listener, error);
		return false;
	}
	return status != -EAGAIN;
}

/* Returns whether to go on. */
static bool accept_one(struct spokei_listener *listener)
{
	struct spoke_engine *engine = listener->engine;
	struct spoke_address peer;
	int fd;
	int error = engine->env->net->accept(engine->env->ctx, listener->watch.fd, &fd, &peer);

	switch (error) {
	case 0:
		listener->barren = 0;
		take(listener, fd, &peer);
		return true;
	case -EAGAIN:
		return false;
	case -EINTR:
	case -ECONNABORTED:
	case -EPROTO:
		if (error != -EINTR)
			spokei_count(engine, SPOKE_STAT_ACCEPTS_FAILED);
		/* This many in a row are not errors of single connections. */
		if (++listener->barren < SPOKEI_LISTENER_BUDGET)
			return true;
		listener->barren = 0;
		pause_accepting(listener, error);
		return false;
	case -EMFILE:
	case -ENFILE:
		spokei_count(engine, SPOKE_STAT_ACCEPTS_FAILED);
		return shed(listener, error);
	default:
		spokei_count(engine, SPOKE_STAT_ACCEPTS_FAILED);
		pause_accepting(listener, error);
		return false;
	}
}

static void accept_some(struct spokei_listener *listener, unsigned most)
{
	for (unsigned i = 0; i < most; i++) {
		if (!accept_one(listener) || listener->closed ||
		    spokei_engine_forked(listener->engine))
			return;
	}
}

static void listener_ready(struct spoke_watch *ready, unsigned io)
{
	(void)io;
	accept_some(spoke_container_of(ready, struct spokei_listener, watch),
		    SPOKEI_LISTENER_BUDGET);
}

/* Connections work without these options, too. */
void spokei_listener_preset(struct spokei_listener *listener, uint64_t unanswered_ns,
			    uint32_t send_buffer)
{
	const struct spoke_env *env = listener->engine->env;

	(void)env->net->guard(env->ctx, listener->watch.fd, unanswered_ns, 0);
	if (env->net->send_buffer)
		(void)env->net->send_buffer(env->ctx, listener->watch.fd, send_buffer);
}

void spokei_listener_hold(struct spokei_listener *listener, bool held)
{
	if (listener->closed)
		return;
	listener->held = held;
	watch(listener, listener->paused ? 0 : SPOKE_IO_READ);
}

void spokei_listener_sweep(struct spokei_listener *listener)
{
	if (!listener->closed && !listener->paused && !listener->held)
		accept_some(listener, SPOKEI_LISTENER_BACKLOG);
}

/* --- life */

static void free_listener(struct spokei_task *task)
{
	struct spokei_listener *listener = spoke_container_of(task, struct spokei_listener, end);

	spokei_rules_free(listener->engine->env, listener->rules);
	spokei_free(listener->engine->env, listener, 1, sizeof(*listener));
}

/* Opens the socket. Returns 0 or a negative errno. */
static int open_socket(const struct spoke_env *env, const struct spokei_listener_at *at,
		       int *ret_fd)
{
	const int backlog = SPOKEI_LISTENER_BACKLOG;

	if (at->has_mode)
		return env->net->listen_mode(env->ctx, at->address, backlog, at->mode, ret_fd);
	return (at->shared ? env->net->listen_shared : env->net->listen)(env->ctx, at->address,
									 backlog, ret_fd);
}

/* Opens both descriptors: the socket, and the spare one. */
static int open_listener(struct spokei_listener *listener, const struct spokei_listener_at *at)
{
	const struct spoke_env *env = listener->engine->env;
	int error = open_socket(env, at, &listener->watch.fd);

	if (error)
		return error;
	error = env->net->local(env->ctx, listener->watch.fd, &listener->address);
	if (!error)
		error = take_spare(listener);
	if (error)
		env->net->close(env->ctx, listener->watch.fd);
	return error;
}

/* Returns a listener that does not listen yet, or NULL. */
static struct spokei_listener *make(struct spoke_engine *engine, struct spokei_quota *quota,
				    spokei_accept accept, void *arg)
{
	struct spokei_listener *listener = spokei_alloc(engine->env, 1, sizeof(*listener));

	if (listener == NULL)
		return NULL;
	listener->engine = engine;
	listener->quota = quota;
	listener->accept = accept;
	listener->arg = arg;
	listener->watch.ready = listener_ready;
	listener->spare = -1;
	listener->end.run = free_listener;
	return listener;
}

/* Starts listening, or frees the listener. */
static int begin(struct spokei_listener *listener, const struct spokei_listener_at *at)
{
	struct spoke_engine *engine = listener->engine;
	int error;

	error = spokei_engine_class(engine, "listener", listener_due, &listener->timer_class);
	if (!error)
		error = arm(listener, REST_NS);
	if (error)
		goto err_after_alloc;
	listener->marks = at->marks;
	listener->owner_rules = at->owner_rules;
	listener->divert = at->divert;
	error = open_listener(listener, at);
	if (error) {
		report_failure(listener, at->address, error);
		error = SPOKE_ESYSTEM;
		goto err_after_timer;
	}
	listener->rules = at->rules;
	watch(listener, SPOKE_IO_READ);
	return SPOKE_OK;

err_after_timer:
	(void)spoke_wheel_cancel(engine->wheel, &listener->timer);
err_after_alloc:
	spokei_free(engine->env, listener, 1, sizeof(*listener));
	return error;
}

int spokei_listener_new(struct spoke_engine *engine, const struct spokei_listener_at *at,
			struct spokei_quota *quota, spokei_accept accept, void *arg,
			struct spokei_listener **ret_listener)
{
	struct spokei_listener *listener = make(engine, quota, accept, arg);
	int error = listener ? begin(listener, at) : SPOKE_ENOMEM;

	if (!error)
		*ret_listener = listener;
	return error;
}

void spokei_listener_free(struct spokei_listener *listener)
{
	struct spoke_engine *engine;

	if (listener == NULL || listener->closed)
		return;
	engine = listener->engine;
	listener->closed = true;
	(void)spoke_wheel_cancel(engine->wheel, &listener->timer);
	watch(listener, 0);
	engine->env->net->close(engine->env->ctx, listener->watch.fd);
	drop_spare(listener);
	spokei_run_freeing(engine, &listener->end);
}

const struct spoke_address *spokei_listener_address(const struct spokei_listener *listener)
{
	return &listener->address;
}
