/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZooKeeper session inside the engine. The library closes and opens its descriptor within its
 * own functions, and a new one may reuse the number. So the descriptor is unwatched before the
 * only function that opens one, and watched again after it.
 */
#include "cluster/registry/zookeeper/session.h"

#include "core/base/env.h"
#include "core/base/pace.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "transport/connect/place.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define READS_MAX 64              /* messages read at a time */
#define AGAIN_NS (20 * MS)        /* pause after an attempt that failed at once */
#define CONNECT_NS (5000 * MS)    /* limit of a connection attempt */
#define LONGEST_NS (3600000 * MS) /* longest wait */
#define ADDRESS_TEXT 160u
#define SECOND_NS UINT64_C(1000000000)
#define SHOWN 128

#define REFRESH_NS (10 * SECOND_NS) /* without a connection: before names are resolved again */
#define SILENT_NS (900 * MS)        /* without a connection: before it is logged */
#define BACKOFF_FIRST_NS SECOND_NS
#define BACKOFF_CAP_NS (10 * SECOND_NS)

struct spokei_zoo_request {
	struct spoke_list node; /* list of the handle */
	struct spokei_zoo_handle *handle;
	struct spokei_zoo_asker *asker; /* NULL: the answer is dropped */
};

struct spokei_zoo_handle {
	struct spoke_engine *engine;
	struct spokei_zoo_session *session;
	zhandle_t *zh;
	struct spoke_watch watch;   /* watch of the library's descriptor, if `io` is not 0 */
	struct spoke_alarm due;     /* next call of the library */
	struct spokei_task look;    /* asks the library what it waits for, after a request */
	struct spoke_list askers;   /* linked by spokei_zoo_asker.node */
	struct spoke_list requests; /* requests in flight */
	uintptr_t numbers;          /* last number of an asker */
	uint64_t connects;
	uint64_t attempt_ns; /* beginning of the connection attempt; 0: none */
	uint64_t lost_ns;    /* loss of the session's connection; 0: connected, or never was */
	uint64_t session_ns; /* how long the server keeps an unconnected session */
	bool over;
	bool inside;            /* inside a library function that calls back */
	bool given_up;          /* constant once set, so that any thread may read it */
	struct spoke_work work; /* closes the session */
	struct spokei_task finalise;
};

static void keep(struct spokei_zoo_session *session);
static void session_changed(struct spokei_zoo_session *session);

int spokei_zoo_fold(int code)
{
	switch (code) {
	case ZOK:
		return SPOKE_OK;
	case ZCONNECTIONLOSS:
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZCLOSING:
	case ZINVALIDSTATE:
	case ZRUNTIMEINCONSISTENCY:
		return SPOKE_ELOST;
	case ZOPERATIONTIMEOUT:
		return SPOKE_ETIMEOUT;
	case ZNONODE:
		return SPOKE_ENOENT;
	case ZNODEEXISTS:
		return SPOKE_EEXIST;
	case ZNOAUTH:
	case ZAUTHFAILED:
	case ZNOTREADONLY:
	case ZTHROTTLEDOP:
		return SPOKE_EREFUSED;
	case ZMARSHALLINGERROR:
	case ZSYSTEMERROR:
		return SPOKE_ENOMEM;
	default:
		return SPOKE_ESERVER;
	}
}

/* --- event loop of the library */

static unsigned io_of(int interest)
{
	return (interest & ZOOKEEPER_READ ? (unsigned)SPOKE_IO_READ : 0) |
	       (interest & ZOOKEEPER_WRITE ? (unsigned)SPOKE_IO_WRITE : 0);
}

static uint64_t duration_of(const struct timeval *time)
{
	if (time->tv_sec < 0 || time->tv_usec < 0)
		return 0;
	if ((uint64_t)time->tv_sec >= LONGEST_NS / (1000 * MS))
		return LONGEST_NS;
	return (uint64_t)time->tv_sec * 1000 * MS + (uint64_t)time->tv_usec * 1000;
}

/* Disconnects the library's descriptor, which the library closes when it notices. Replaces the
 * descriptor atomically, so that no other thread's can get its number; writes to the new one fail.
 * A forked child thus leaves its parent's connection alone. */
static void unplug(const struct spoke_env *env, int fd)
{
	int spare = -1;

	if (env->net->spare(env->ctx, &spare))
		return; /* the library waits for the server then */
	(void)dup2(spare, fd);
	env->net->close(env->ctx, spare);
}

static void handle_due(struct spoke_alarm *alarm);

static void unwatch(struct spokei_zoo_handle *handle)
{
	handle->engine->env->loop->watch(handle->engine->loop, &handle->watch, 0);
}

/*
 * A server that is still starting may accept a connection and never read from it, and the library
 * waits most of the session's time. Returns how much time an attempt has left.
 */
static uint64_t attempt_left(struct spokei_zoo_handle *handle)
{
	const struct spoke_env *env = handle->engine->env;
	uint64_t now_ns = env->now(env->ctx);

	if (handle->watch.fd < 0 || zoo_state(handle->zh) == ZOO_CONNECTED_STATE) {
		handle->attempt_ns = 0;
		return LONGEST_NS;
	}
	if (handle->attempt_ns == 0)
		handle->attempt_ns = now_ns;
	if (now_ns - handle->attempt_ns < CONNECT_NS)
		return handle->attempt_ns + CONNECT_NS - now_ns;
	return 0;
}

static void process(struct spokei_zoo_handle *handle, int events)
{
	int code = ZOK;

	handle->inside = true;
	errno = 0;
	for (int i = 0; i < READS_MAX && code == ZOK && !handle->over; i++) {
		code = zookeeper_process(handle->zh, events);
		events = ZOOKEEPER_READ;
	}
	handle->inside = false;
	if (code == ZOK || code == ZNOTHING)
		return;
	handle->attempt_ns = 0; /* the next one starts a new attempt */
	if (errno)
		handle->session->cause = -errno;
}

/* Asks the library what it waits for. Returns the timeout. */
static uint64_t ask(struct spokei_zoo_handle *handle)
{
	struct spoke_engine *engine = handle->engine;
	struct timeval time = { 0, 0 };
	int interest = 0;
	int fd = -1;
	uint64_t wait_ns;
	uint64_t left_ns;
	int code;

	unwatch(handle);
	handle->inside = true;
	code = zookeeper_interest(handle->zh, &fd, &interest, &time);
	handle->inside = false;
	handle->watch.fd = code == ZOK ? fd : -1;
	left_ns = attempt_left(handle);
	if (left_ns == 0) {
		unplug(engine->env, fd);
		process(handle, ZOOKEEPER_READ);
		handle->watch.fd = -1;
	}
	if (handle->watch.fd < 0)
		return code == ZOK && left_ns ? duration_of(&time) : AGAIN_NS;
	engine->env->loop->watch(engine->loop, &handle->watch, io_of(interest));
	wait_ns = duration_of(&time);
	return wait_ns < left_ns ? wait_ns : left_ns;
}

/*
 * A session without a connection for as long as a server keeps it is over, even if no server
 * confirms that: a server that has lost its data rejects old clients without a reason.
 */
static bool outlived(const struct spokei_zoo_handle *handle)
{
	const struct spoke_env *env = handle->engine->env;

	return handle->lost_ns && env->now(env->ctx) - handle->lost_ns > handle->session_ns;
}

/* Asks the library what it waits for, and waits. */
static void look(struct spokei_zoo_handle *handle)
{
	struct spoke_engine *engine = handle->engine;
	uint64_t wait_ns;

	spokei_task_drop(&handle->look);
	unwatch(handle);
	handle->over |= outlived(handle);
	if (handle->over)
		return;
	wait_ns = ask(handle);
	if (spoke_alarm_after(engine, &handle->due, wait_ns, handle_due))
		spokei_run_soon(engine, &handle->look); /* no timer is left: poll every turn */
}

static void handle_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_handle *handle = spoke_container_of(alarm, struct spokei_zoo_handle, due);

	look(handle);
	session_changed(handle->session);
}

static void handle_look(struct spokei_task *task)
{
	struct spokei_zoo_handle *handle = spoke_container_of(task, struct spokei_zoo_handle, look);

	look(handle);
	session_changed(handle->session);
}

static void handle_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_zoo_handle *handle = spoke_container_of(watch, struct spokei_zoo_handle,
							      watch);
	int events = (io & SPOKE_IO_READ ? ZOOKEEPER_READ : 0) |
		     (io & SPOKE_IO_WRITE ? ZOOKEEPER_WRITE : 0);

	process(handle, events);
	look(handle);
	session_changed(handle->session);
}

/* --- callbacks of the library */

/* Discards debug output. */
static void say_nothing(const char *line)
{
	(void)line;
}

static void library_event(zhandle_t *zh, int type, int state, const char *path, void *arg)
{
	struct spokei_zoo_handle *handle = arg;

	(void)path;
	if (handle->given_up || type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_CONNECTED_STATE) {
		handle->connects++;
		handle->lost_ns = 0;
		handle->session_ns = (uint64_t)zoo_recv_timeout(zh) * MS;
	} else if (handle->connects > 0 && handle->lost_ns == 0) {
		handle->lost_ns = handle->engine->env->now(handle->engine->env->ctx);
	}
	if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE)
		handle->over = true;
}

static void node_touched(zhandle_t *zh, int type, int state, const char *path, void *arg)
{
	const struct spokei_zoo_handle *handle = zoo_get_context(zh);

	(void)state;
	(void)path;
	if (handle->given_up || type == ZOO_SESSION_EVENT)
		return;
	for (struct spoke_list *at = handle->askers.next; at != &handle->askers; at = at->next) {
		struct spokei_zoo_asker *asker = spoke_container_of(at, struct spokei_zoo_asker,
								    node);

		if (asker->number == (uintptr_t)arg) {
			asker->touched(asker);
			return;
		}
	}
}

/* On any thread once the handle is given up; the requests are freed with it then. */
static void deliver(const void *data, const struct spokei_zoo_answer *answer)
{
	/* The library adds const to a pointer that it only returns. */
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	struct spokei_zoo_request *request = (struct spokei_zoo_request *)(uintptr_t)data;
	struct spokei_zoo_handle *handle = request->handle;
	struct spokei_zoo_asker *asker = request->asker;

	if (handle->given_up)
		return;
	spokei_list_remove(&request->node);
	spokei_free(handle->engine->env, request, 1, sizeof(*request));
	if (asker == NULL)
		return;
	asker->request = NULL;
	asker->answered(asker, answer);
}

static void got_void(int code, const void *data)
{
	deliver(data, &(struct spokei_zoo_answer){ .code = code });
}

static void got_string(int code, const char *text, const void *data)
{
	(void)text;
	deliver(data, &(struct spokei_zoo_answer){ .code = code });
}

static void got_stat(int code, const struct Stat *stat, const void *data)
{
	deliver(data, &(struct spokei_zoo_answer){ .code = code, .stat = stat });
}

static void got_names(int code, const struct String_vector *names, const void *data)
{
	deliver(data, &(struct spokei_zoo_answer){ .code = code, .names = names });
}

static void got_data(int code, const char *value, int len, const struct Stat *stat,
		     const void *data)
{
	deliver(data, &(struct spokei_zoo_answer){ .code = code,
						   .stat = stat,
						   .data = value,
						   .len = len > 0 ? (size_t)len : 0 });
}

/* --- life */

static int new_handle(struct spokei_zoo_session *session, const char *servers)
{
	struct spoke_engine *engine = session->engine;
	struct spokei_zoo_handle *handle = spokei_alloc(engine->env, 1, sizeof(*handle));

	if (handle == NULL)
		return SPOKE_ENOMEM;
	handle->engine = engine;
	handle->session = session;
	handle->watch.ready = handle_ready;
	handle->watch.fd = -1;
	handle->look.run = handle_look;
	spokei_list_init(&handle->askers);
	spokei_list_init(&handle->requests);
	/* The library logs into memory that all threads share, so its log is off for the whole
	 * process. */
	zoo_set_debug_level((ZooLogLevel)0);
	handle->zh = zookeeper_init2(servers, library_event, session->settings.session_ms, NULL,
				     handle, ZOO_NO_LOG_CLIENTENV, say_nothing);
	if (handle->zh == NULL) {
		spokei_free(engine->env, handle, 1, sizeof(*handle));
		return SPOKE_ESYSTEM;
	}
	/* Numeric addresses do not change. */
	(void)zoo_set_servers_resolution_delay(handle->zh, -1);
	spokei_run_soon(engine, &handle->look);
	session->handle = handle;
	return SPOKE_OK;
}

/* --- the end: the library's close waits for the server, for seconds if need be */

/* Runs on a pool thread. */
static void close_session(struct spoke_work *work)
{
	(void)zookeeper_close(spoke_container_of(work, struct spokei_zoo_handle, work)->zh);
}

static void handle_finalise(struct spokei_task *task)
{
	struct spokei_zoo_handle *handle = spoke_container_of(task, struct spokei_zoo_handle,
							      finalise);
	const struct spoke_env *env = handle->engine->env;

	while (!spokei_list_empty(&handle->requests)) {
		struct spokei_zoo_request *request =
			spoke_container_of(spokei_list_first(&handle->requests),
					   struct spokei_zoo_request, node);

		spokei_list_remove(&request->node);
		spokei_free(env, request, 1, sizeof(*request));
	}
	spokei_free(env, handle, 1, sizeof(*handle));
}

/* Without a thread the library must not reach the server, because it would wait for an answer.
 * It writes only while it is connected, when the descriptor is the last known one. */
static void cut(struct spokei_zoo_handle *handle)
{
	if (handle->watch.fd >= 0 && zoo_state(handle->zh) == ZOO_CONNECTED_STATE)
		unplug(handle->engine->env, handle->watch.fd);
	(void)zookeeper_close(handle->zh);
	spokei_run_freeing(handle->engine, &handle->finalise);
}

static void session_closed(struct spoke_work *work)
{
	struct spokei_zoo_handle *handle = spoke_container_of(work, struct spokei_zoo_handle, work);

	/* In a forked child the state of the parent's thread is unknown: the memory is leaked. */
	if (work->status && !spokei_engine_forked(handle->engine))
		cut(handle);
	else
		spokei_run_freeing(handle->engine, &handle->finalise);
}

static void give_up(struct spokei_zoo_handle *handle)
{
	struct spoke_engine *engine;

	if (handle == NULL)
		return;
	engine = handle->engine;
	SPOKE_ASSERT(!handle->inside && !handle->given_up);
	while (!spokei_list_empty(&handle->askers))
		spokei_zoo_leave(spoke_container_of(spokei_list_first(&handle->askers),
						    struct spokei_zoo_asker, node));
	handle->given_up = true;
	unwatch(handle);
	(void)spoke_alarm_cancel(&handle->due);
	spokei_task_drop(&handle->look);
	handle->finalise.run = handle_finalise;
	handle->work = (struct spoke_work){ .run = close_session, .done = session_closed };
	if (engine->env->loop->offload(engine->loop, &handle->work))
		cut(handle);
}

/* --- requests */

void spokei_zoo_join(struct spokei_zoo_session *session, struct spokei_zoo_asker *asker)
{
	struct spokei_zoo_handle *handle = session->handle;

	SPOKE_ASSERT(asker->handle == NULL);
	asker->handle = handle;
	asker->request = NULL;
	asker->number = ++handle->numbers;
	spokei_list_append(&handle->askers, &asker->node);
}

void spokei_zoo_leave(struct spokei_zoo_asker *asker)
{
	if (asker->handle == NULL)
		return;
	if (asker->request)
		asker->request->asker = NULL;
	asker->request = NULL;
	asker->handle = NULL;
	spokei_list_remove(&asker->node);
}

bool spokei_zoo_owns(const struct spokei_zoo_asker *asker, int64_t owner)
{
	return zoo_client_id(asker->handle->zh)->client_id == owner;
}

static int ask_create(zhandle_t *zh, const char *path, const char *text, int mode,
		      const struct spokei_zoo_request *request)
{
	size_t len = strlen(text);

	if (len > INT_MAX)
		return ZBADARGUMENTS;
	return zoo_acreate(zh, path, text, (int)len, &ZOO_OPEN_ACL_UNSAFE, mode, got_string,
			   request);
}

static int ask_set(const struct spokei_zoo_asker *asker, const char *path, const char *text,
		   const struct spokei_zoo_request *request)
{
	size_t len = strlen(text);

	if (len > INT_MAX)
		return ZBADARGUMENTS;
	return zoo_aset(asker->handle->zh, path, text, (int)len, asker->version, got_stat, request);
}

static int put(const struct spokei_zoo_asker *asker, enum spokei_zoo_ask what, const char *path,
	       const char *text, const struct spokei_zoo_request *request)
{
	zhandle_t *zh = asker->handle->zh;
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): given back as it is, and never followed */
	void *number = (void *)asker->number;

	switch (what) {
	case SPOKEI_ZOO_CREATE:
		return ask_create(zh, path, text, ZOO_PERSISTENT, request);
	case SPOKEI_ZOO_CREATE_EPHEMERAL:
		return ask_create(zh, path, text, ZOO_EPHEMERAL, request);
	case SPOKEI_ZOO_DELETE:
		return zoo_adelete(zh, path, -1, got_void, request);
	case SPOKEI_ZOO_EXISTS:
		return zoo_awexists(zh, path, NULL, NULL, got_stat, request);
	case SPOKEI_ZOO_EXISTS_WATCH:
		return zoo_awexists(zh, path, node_touched, number, got_stat, request);
	case SPOKEI_ZOO_LIST:
		return zoo_awget_children(zh, path, NULL, NULL, got_names, request);
	case SPOKEI_ZOO_LIST_WATCH:
		return zoo_awget_children(zh, path, node_touched, number, got_names, request);
	case SPOKEI_ZOO_GET:
		return zoo_awget(zh, path, NULL, NULL, got_data, request);
	case SPOKEI_ZOO_GET_WATCH:
		return zoo_awget(zh, path, node_touched, number, got_data, request);
	case SPOKEI_ZOO_SET:
		return ask_set(asker, path, text, request);
	}
	return ZBADARGUMENTS;
}

int spokei_zoo_ask(struct spokei_zoo_asker *asker, enum spokei_zoo_ask what, const char *path,
		   const char *text)
{
	struct spokei_zoo_handle *handle = asker->handle;
	const struct spoke_env *env = handle->engine->env;
	struct spokei_zoo_request *request = spokei_alloc(env, 1, sizeof(*request));
	int code;

	SPOKE_ASSERT(asker->request == NULL);
	if (request == NULL)
		return SPOKE_ENOMEM;
	request->handle = handle;
	spokei_list_append(&handle->requests, &request->node);
	code = put(asker, what, path, text, request);
	spokei_run_soon(handle->engine, &handle->look);
	if (code == ZOK) {
		request->asker = asker;
		asker->request = request;
		return SPOKE_OK;
	}
	/* After an allocation failure the library may keep the request, whose answer is
	 * dropped. */
	if (code == ZBADARGUMENTS || code == ZINVALIDSTATE) {
		spokei_list_remove(&request->node);
		spokei_free(env, request, 1, sizeof(*request));
	}
	return code == ZBADARGUMENTS ? SPOKE_EINVAL : spokei_zoo_fold(code);
}

/* --- the connection */

static bool is_connected(const struct spokei_zoo_handle *handle)
{
	/* The library may lose the connection without reporting it. */
	return zoo_state(handle->zh) == ZOO_CONNECTED_STATE;
}

uint64_t spokei_zoo_session_connect(const struct spokei_zoo_session *session)
{
	const struct spokei_zoo_handle *handle = session->handle;

	return handle && is_connected(handle) ? handle->connects : 0;
}

void spokei_zoo_session_local(const struct spokei_zoo_session *session, char *text, size_t size)
{
	const struct spokei_zoo_handle *handle = session->handle;
	const struct spoke_env *env = session->engine->env;
	struct spoke_address address;
	char *end;

	*text = '\0';
	if (handle->watch.fd < 0 || env->net->local(env->ctx, handle->watch.fd, &address))
		return;
	env->net->print(env->ctx, &address, text, size);
	end = strrchr(text, ':');
	if (end)
		*end = '\0';
}

/* --- the servers */

static const char *first_name(const struct spokei_zoo_session *session)
{
	return session->settings.places[0].name;
}

static bool has_names(const struct spokei_zoo_session *session)
{
	for (unsigned i = 0; i < session->settings.place_count; i++)
		if (!session->settings.places[i].fixed)
			return true;
	return false;
}

/* --- pauses */

static void again_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_session *session = spoke_container_of(alarm, struct spokei_zoo_session,
								again);

	if (spokei_zoo_session_connect(session) == 0)
		keep(session);
}

static void later(struct spokei_zoo_session *session, uint64_t delay_ns)
{
	int error = spoke_alarm_after(session->engine, &session->again, delay_ns, again_due);

	if (error)
		spokei_event(session->engine, error,
			     "registry zookeeper %.*s: cannot set its timer; make a new engine",
			     SHOWN, first_name(session));
}

static void failed(struct spokei_zoo_session *session, int error, const char *why)
{
	static const struct spokei_backoff backoff = { BACKOFF_FIRST_NS, BACKOFF_CAP_NS };
	const struct spoke_env *env = session->engine->env;
	uint64_t dice;

	spokei_event(session->engine, error, "registry zookeeper %.*s: %s; retrying", SHOWN,
		     first_name(session), why);
	env->dice(env->ctx, &dice, sizeof(dice));
	later(session, spokei_backoff_pause(&backoff, session->failures, dice));
	if (session->failures < UINT32_MAX)
		session->failures++;
}

/* --- a handle */

/* Prints addresses in the library's format: without brackets, with commas between. */
static void print_servers(const struct spokei_zoo_session *session, char *out, size_t size)
{
	const struct spoke_env *env = session->engine->env;
	size_t len = 0;

	for (int i = 0; i < session->found_count; i++) {
		char text[ADDRESS_TEXT];

		env->net->print(env->ctx, &session->found[i], text, sizeof(text));
		if (len > 0 && len + 1 < size)
			out[len++] = ',';
		for (const char *at = text; *at && len + 1 < size; at++)
			if (*at != '[' && *at != ']')
				out[len++] = *at;
	}
	out[len] = '\0';
}

/* The requests fail later: their users learn from this line why. */
static void silent_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_session *session = spoke_container_of(alarm, struct spokei_zoo_session,
								silent);
	char text[SPOKEI_STATUS_TEXT];

	if (session->is_connected)
		return;
	spokei_event(session->engine, SPOKE_EUNAVAILABLE,
		     "registry zookeeper %.*s: no server answers: %s; trying on", SHOWN,
		     first_name(session), spokei_status_text(session->cause, text));
}

/* Without a timer there is no line. */
static void watch_silence(struct spokei_zoo_session *session)
{
	(void)!spoke_alarm_after(session->engine, &session->silent, SILENT_NS, silent_due);
}

static void use_found(struct spokei_zoo_session *session)
{
	char servers[SPOKEI_ZOO_PLACES_MAX * ADDRESS_TEXT];
	int error;

	print_servers(session, servers, sizeof(servers));
	if (session->handle) {
		(void)zoo_set_servers(session->handle->zh, servers);
		spokei_run_soon(session->engine, &session->handle->look);
	} else {
		error = new_handle(session, servers);
		if (error) {
			failed(session, error, "the ZooKeeper library failed to start");
			return;
		}
		session->connects = 0;
		session->is_connected = false;
		session->cause = -ETIMEDOUT;
		watch_silence(session);
	}
	session->failures = 0;
	if (has_names(session))
		later(session, REFRESH_NS);
}

static void session_over(struct spokei_zoo_session *session)
{
	struct spokei_zoo_handle *handle = session->handle;

	spokei_event(session->engine, SPOKE_ELOST,
		     "registry zookeeper %.*s: session expired; starting a new one", SHOWN,
		     first_name(session));
	session->handle = NULL;
	session->expired(session->arg);
	give_up(handle);
	keep(session);
}

static void session_changed(struct spokei_zoo_session *session)
{
	struct spokei_zoo_handle *handle = session->handle;
	uint64_t connects = handle->connects;
	bool connected = is_connected(handle);

	if (handle->over) {
		session_over(session);
		return;
	}
	if (connected && connects != session->connects) {
		spokei_event(session->engine, SPOKE_OK, "registry zookeeper %.*s: connected", SHOWN,
			     first_name(session));
		session->connected(session->arg);
	} else if (!connected && session->is_connected) {
		spokei_event(session->engine, SPOKE_ELOST,
			     "registry zookeeper %.*s: connection lost; reconnecting", SHOWN,
			     first_name(session));
		session->cause = -ETIMEDOUT;
		watch_silence(session);
		if (has_names(session))
			later(session, REFRESH_NS);
	}
	session->connects = connects;
	session->is_connected = connected;
}

/* --- names */

static void session_finalise(struct spokei_task *task)
{
	struct spokei_zoo_session *session = spoke_container_of(task, struct spokei_zoo_session,
								finalise);

	spokei_free(session->engine->env, session, 1, sizeof(*session));
}

static void resolved(void *arg, const struct spoke_address *found, int count)
{
	struct spokei_zoo_session *session = arg;

	session->resolving = false;
	session->found_count = count;
	if (count > 0)
		memcpy(session->found, found, (unsigned)count * sizeof(*found));
	if (session->connected == NULL)
		spokei_run_freeing(session->engine, &session->finalise);
	else if (count <= 0)
		failed(session, SPOKE_ERESOLVE, "cannot resolve any server name");
	else
		use_found(session);
}

static void use_addresses(struct spokei_zoo_session *session)
{
	session->found_count = (int)session->settings.place_count;
	for (unsigned i = 0; i < session->settings.place_count; i++)
		session->found[i] = session->settings.places[i].address;
	use_found(session);
}

static void keep(struct spokei_zoo_session *session)
{
	const struct spokei_zoo_settings *settings = &session->settings;

	if (session->resolving)
		return;
	if (!has_names(session))
		use_addresses(session);
	else if (spokei_lookup(session->engine, settings->places, settings->place_count,
			       SPOKEI_ZOO_PLACES_MAX, resolved, session))
		failed(session, SPOKE_ERESOLVE,
		       "no thread is available to resolve its server names");
	else
		session->resolving = true;
}

/* --- life */

int spokei_zoo_session_new(struct spoke_engine *engine, const struct spoke_url *url,
			   struct spokei_zoo_session **ret_session)
{
	struct spokei_zoo_session *session = spokei_alloc(engine->env, 1, sizeof(*session));
	char why[SPOKEI_ZOO_WHY_MAX];
	int error;

	if (session == NULL) {
		spokei_event(engine, SPOKE_ENOMEM, "registry zookeeper: out of memory");
		return SPOKE_ENOMEM;
	}
	error = spokei_zoo_settings_read(engine->env, url, &session->settings, why);
	if (error) {
		spokei_event(engine, error, "registry zookeeper: %s", why);
		spokei_free(engine->env, session, 1, sizeof(*session));
		return error;
	}
	session->engine = engine;
	session->finalise.run = session_finalise;
	keep(session);
	*ret_session = session;
	return SPOKE_OK;
}

void spokei_zoo_session_end(struct spokei_zoo_session *session)
{
	session->connected = NULL;
	(void)spoke_alarm_cancel(&session->again);
	(void)spoke_alarm_cancel(&session->silent);
	give_up(session->handle);
	session->handle = NULL;
	if (!session->resolving)
		spokei_run_freeing(session->engine, &session->finalise);
}
