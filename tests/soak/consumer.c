/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of the soak test: its calls, by callbacks, futures and pushes, each accounted for
 * in the book.
 */
#define _GNU_SOURCE
#include "consumer.h"
#include "board.h"
#include "book.h"
#include "load.h"
#include "memory.h"
#include "provider.h"

#include <spoke/consumer.h>
#include <spoke/future.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * --- the teams of a consumer process: consumers of the library that differ in policy,
 * protocol, kind of socket and balancer. Together they hold the process's share of the
 * connections
 */

/* Methods that are called. */
enum team_kind {
	KIND_ECHO,
	KIND_TOIL, /* echo, in the provider's thread pool */
	KIND_DOZE, /* echo, with a delay */
	KIND_FAIL,
	KIND_NUDGE, /* echo, and the provider pushes */
	KINDS,
};

struct team {
	struct spoke_consumer *consumer;
	struct spoke_method *methods[KINDS];
	size_t len_max;       /* largest argument of its calls, in bytes */
	uint64_t attempts;    /* attempts of a call, at most */
	uint64_t deadline_ns; /* of its tickets; 0: no tickets */
	bool one_kind;        /* its protocol has only one kind of error */
};

/* Common options of all teams: the service for pushes and the callback for tickets. */
struct team_up {
	void (*handle)(struct spoke_request *request, void *arg);
	spoke_ticket_done_fn settled;
};

/*
 * --- the calls of a consumer process: begins calls at random, enters them into the book and
 * checks their results. Used on the engine's thread
 */

struct calls;

/* --- creates the consumers of a process: five combinations of policy, protocol and balancer */

#define TIMEOUT_NS (500 * NS_PER_MS)
#define HEARTBEAT_NS (500 * NS_PER_MS)
#define RETRY_PERIOD_NS (300 * NS_PER_MS)
#define RETRY_DEADLINE_NS (8 * NS_PER_S)

static const struct form {
	const char *scheme; /* NULL: unix sockets */
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	uint32_t connections; /* to each provider */
	uint32_t retries;
	size_t len_max;
	bool idempotent;
	bool wait_ready;
} forms[TEAMS] = {
	{ "dubbo", &spoke_policy_failover, &spoke_balancer_random, 12, 2, LOAD_LEN_MAX, false,
	  false },
	{ "dubbo", &spoke_policy_failover, &spoke_balancer_least_active, 12, 2, LOAD_LEN_MAX, true,
	  true },
	{ NULL, &spoke_policy_failfast, &spoke_balancer_round_robin, 12, SPOKE_NONE, LOAD_LEN_MAX,
	  false, false },
	{ "dubbo", &spoke_policy_failback, &spoke_balancer_two_choices, 13, 4, 8192, false, false },
	/* One connection each. Providers close idle connections of this protocol, because it has no
	 * heartbeats. */
	{ "msgpack-rpc", &spoke_policy_failover, &spoke_balancer_shortest_response, 1, 1,
	  LOAD_LEN_MAX, true, false },
};

static void name_place(const struct form *form, unsigned provider, char *url, size_t size)
{
	char path[PATH_BYTES];

	provider_path(provider, path);
	if (form->scheme)
		(void)snprintf(url, size, "%s://%s/soak.Service", form->scheme,
			       board->desks[provider].address);
	else
		(void)snprintf(url, size, "unix:%s?interface=soak.Service", path);
}

static int make_methods(struct team *team, const struct form *form)
{
	static const char *const names[KINDS] = {
		[KIND_ECHO] = "echo", [KIND_TOIL] = "toil",   [KIND_DOZE] = "doze",
		[KIND_FAIL] = "fail", [KIND_NUDGE] = "nudge",
	};
	struct spoke_method_options options = { .idempotent = form->idempotent };
	int error = SPOKE_OK;

	for (unsigned i = 0; i < KINDS && !error; i++)
		error = spoke_consumer_method(team->consumer, names[i], &options,
					      &team->methods[i]);
	return error;
}

static int open_team(struct spoke_engine *engine, const struct team_up *up, const struct form *form,
		     struct team *team)
{
	char urls[PROVIDERS][PATH_BYTES + 64];
	const char *more[PROVIDERS - 1];
	struct spoke_consumer_options options = {
		.url = urls[0],
		.more_urls = more,
		.more_count = PROVIDERS - 1,
		.timeout_ns = TIMEOUT_NS,
		.heartbeat_ns = HEARTBEAT_NS,
		.connections = form->connections,
		.policy = form->policy,
		.balancer = form->balancer,
		.retries = form->retries,
		.retry_period_ns = RETRY_PERIOD_NS,
		.retry_deadline_ns = RETRY_DEADLINE_NS,
		.failback_overflow = SPOKE_OVERFLOW_DROP_OLDEST,
		.wait_ready = form->wait_ready,
		.handle = up->handle,
		.settled = up->settled,
	};
	int error;

	for (unsigned i = 0; i < PROVIDERS; i++) {
		name_place(form, i, urls[i], sizeof(urls[i]));
		if (i > 0)
			more[i - 1] = urls[i];
	}
	*team = (struct team){
		.len_max = form->len_max,
		.attempts = form->retries == SPOKE_NONE ? 1 : 1 + form->retries,
		.deadline_ns = form->policy == &spoke_policy_failback ? RETRY_DEADLINE_NS : 0,
		.one_kind = form->scheme && form->scheme[0] == 'm',
	};
	error = spoke_consumer_new(engine, &options, &team->consumer);
	return error ? error : make_methods(team, form);
}

/* Creates all teams; `probes`: only with protocols that have heartbeats. Returns 0 or an error. */
static int teams_open(struct spoke_engine *engine, const struct team_up *up, bool probes,
		      struct team *teams)
{
	int error = SPOKE_OK;

	for (unsigned i = 0; i < TEAMS && !error; i++) {
		struct form form = forms[i];

		if (form.scheme && probes)
			form.scheme = "dubbo";
		error = open_team(engine, up, &form, &teams[i]);
	}
	return error;
}

/* Returns the number of endpoints that are ready now. */
static uint64_t teams_ready(const struct team *teams)
{
	uint64_t ready = 0;

	for (unsigned i = 0; i < TEAMS; i++)
		ready += spoke_consumer_ready(teams[i].consumer);
	return ready;
}

/* --- begins the calls of a consumer process and checks their results */

#define SLACK_NS (3 * NS_PER_S)
#define LARGE_NS (2 * NS_PER_S) /* timeout of large calls */
#define LARGE 16384u
#define DOZE_MS_MAX 700u /* some exceed the timeout of their calls */
#define CANCELS_MAX 64u
#define STORM_LEN 100u /* bytes of each call of a storm, at most */

struct calls {
	struct spoke_engine *engine;
	struct desk *desk;
	struct sim_dice dice;
	struct book book;
	struct team teams[TEAMS];
	struct spoke_builder builder;
	uint64_t cancels[CANCELS_MAX]; /* tags */
	unsigned cancel_count;
};

static struct calls *calls_of_process; /* global, because the library passes only a tag back */

static void complain(struct seat *seat, const char *what, int error)
{
	struct desk *desk = calls_of_process->desk;

	desk->counts[COUNT_WRONG]++;
	desk_complain(desk, "call %llu of kind %u, team %u, %zu bytes: %s (%s)",
		      (unsigned long long)seat->tag, seat->kind, seat->team, seat->len, what,
		      spoke_errname(error));
}

/* Returns whether the error may occur in a soak. */
static bool calls_error_is_due(int error)
{
	static const int due[] = {
		SPOKE_ECANCELED, SPOKE_ECLOSED, SPOKE_ELIMIT,   SPOKE_EUNAVAILABLE,
		SPOKE_ECONNECT,  SPOKE_ELOST,   SPOKE_ETIMEOUT, SPOKE_ETIMEOUT_UNSENT,
		SPOKE_ESILENT,   SPOKE_ESLOW,   SPOKE_EREFUSED, SPOKE_EEXPIRED,
	};

	for (unsigned i = 0; i < sizeof(due) / sizeof(due[0]); i++)
		if (error == due[i])
			return true;
	return false;
}

/* Returns whether the result is possible for this request. */
static void judge(struct seat *seat, const struct spoke_result *result)
{
	const struct team *team = &calls_of_process->teams[seat->team];
	unsigned kind = seat->kind % KINDS;

	if (result->error == SPOKE_OK && kind == KIND_FAIL)
		complain(seat, "succeeded instead of failing", result->error);
	else if (result->error == SPOKE_OK && seat->kind < KINDS &&
		 !load_is(result->value, seat->tag, seat->len))
		complain(seat, "answered with another value", result->error);
	else if (result->error == SPOKE_EREMOTE && team->one_kind)
		return;
	else if (result->error == SPOKE_EREMOTE &&
		 (kind != KIND_FAIL || result->error_code != (int32_t)(seat->tag % 30000) + 1))
		complain(seat, "failed with the error of another call", result->error);
	else if (result->error && result->error != SPOKE_EREMOTE &&
		 !calls_error_is_due(result->error))
		complain(seat, "ended with an impossible error", result->error);
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	struct book *book = &calls_of_process->book;
	struct seat *seat = book_find(book, (uintptr_t)arg, SEAT_DEFERRED);

	if (seat == NULL)
		return;
	if (how->settlement == SPOKE_TICKET_SUCCESS || how->result->error == SPOKE_EREMOTE)
		judge(seat, how->result);
	book_settle(book, seat, (unsigned)how->settlement);
}

/* Handles the callback of each ticket. The option `settled` must report each ticket as well: see
 * board.h. */
static void settled_any(void *arg, const struct spoke_ticket_result *how)
{
	(void)arg;
	(void)how;
	calls_of_process->desk->counts[COUNT_TOLD]++;
}

static void done(void *arg, const struct spoke_result *result)
{
	struct calls *calls = calls_of_process;
	struct seat *seat = book_find(&calls->book, (uintptr_t)arg, SEAT_OPEN);
	struct team *team;
	int error;

	if (seat == NULL)
		return;
	team = &calls->teams[seat->team];
	if (result->error != SPOKE_EDEFERRED) {
		judge(seat, result);
		book_end(&calls->book, seat, result->error);
		return;
	}
	book_defer(&calls->book, seat,
		   spoke_engine_now(calls->engine) + team->deadline_ns + SLACK_NS);
	error = spoke_ticket_then(team->consumer, result->ticket, settled, arg);
	if (error)
		complain(seat, "the ticket is unknown", error);
}

/* Answers a provider's push with its argument. */
static void answer(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)arg;
	calls_of_process->desk->counts[COUNT_PUSHED]++;
	if (spoke_cursor_next(&args, &value))
		spoke_reply(request, value);
	else
		spoke_reply_error(request, 1, "argument missing");
}

/* --- begin of calls */

/* Kinds from KINDS on are one-way calls. */
static unsigned throw_kind(struct calls *calls)
{
	uint64_t pick = sim_throw(&calls->dice) % 100;

	if (pick < 85)
		return KIND_ECHO;
	if (pick < 88)
		return KIND_TOIL;
	if (pick < 91)
		return KIND_DOZE;
	if (pick < 95)
		return KIND_FAIL;
	return pick < 97 ? KIND_NUDGE : KINDS + KIND_ECHO;
}

static int pack(struct calls *calls, const struct seat *seat, struct spoke_span *ret_args)
{
	spoke_builder_reset(&calls->builder);
	load_pack(&calls->builder, seat->tag, seat->len);
	if (seat->kind == KIND_DOZE)
		spoke_pack_u64(&calls->builder, sim_magnitude(&calls->dice, 1, DOZE_MS_MAX));
	return spoke_builder_finish(&calls->builder, ret_args);
}

static void begin(struct calls *calls, struct seat *seat)
{
	struct team *team = &calls->teams[seat->team];
	struct spoke_call_options options = {
		.timeout_ns = seat->len > LARGE ? LARGE_NS : TIMEOUT_NS,
		.one_way = seat->kind >= KINDS,
	};
	struct spoke_span args;
	int error = pack(calls, seat, &args);

	if (!error)
		error = spoke_call(team->methods[seat->kind % KINDS], args, &options, done,
				   (void *)(uintptr_t)seat->tag, &seat->call);
	if (!error) {
		book_begin(&calls->book, seat,
			   spoke_engine_now(calls->engine) + team->attempts * options.timeout_ns +
				   SLACK_NS);
		return;
	}
	if (!calls_error_is_due(error))
		complain(seat, "rejected with an impossible error", error);
	book_refuse(&calls->book, seat, error);
}

static bool begin_one(struct calls *calls, unsigned kind, size_t len_max)
{
	struct seat *seat = book_take(&calls->book, kind);

	if (seat == NULL)
		return false;
	seat->team = (unsigned)(sim_throw(&calls->dice) % TEAMS);
	if (len_max > calls->teams[seat->team].len_max)
		len_max = calls->teams[seat->team].len_max;
	seat->len = load_len(&calls->dice, len_max);
	seat->call = (struct spoke_call){ 0 };
	begin(calls, seat);
	if (calls->cancel_count < CANCELS_MAX && sim_chance(&calls->dice, 5))
		calls->cancels[calls->cancel_count++] = seat->tag;
	return true;
}

/* Begins one call, unless too many are open. */
static void calls_begin(struct calls *calls)
{
	(void)begin_one(calls, throw_kind(calls), LOAD_LEN_MAX);
}

/* Opens as many calls as possible; the providers keep them open. */
static void calls_storm(struct calls *calls)
{
	for (unsigned i = 0; i < BOOK_SEATS; i++)
		if (!begin_one(calls, KIND_DOZE, STORM_LEN))
			return;
}

/* Cancels some calls of the last beat. */
static void calls_cancel(struct calls *calls)
{
	for (; calls->cancel_count > 0; calls->cancel_count--) {
		uint64_t tag = calls->cancels[calls->cancel_count - 1];
		struct seat *seat = &calls->book.seats[tag % BOOK_SEATS];

		if (seat->tag == tag && seat->state != SEAT_FREE)
			(void)spoke_call_cancel(calls->teams[seat->team].consumer, seat->call);
	}
}

/* --- all calls */

/* Allocates the state of the process and opens the teams; NULL: no memory. */
static struct calls *calls_open(struct spoke_engine *engine, struct desk *desk, uint64_t seed)
{
	struct team_up up = { .handle = answer, .settled = settled_any };
	struct calls *calls = calloc(1, sizeof(*calls));
	int error;

	if (calls == NULL)
		return NULL;
	calls_of_process = calls;
	calls->engine = engine;
	calls->desk = desk;
	calls->dice = sim_dice_make(seed);
	book_init(&calls->book, desk);
	spoke_builder_init(&calls->builder, memory_env(), NULL);
	load_touch();
	load_pack(&calls->builder, 0, LOAD_LEN_MAX); /* reserves the largest size */
	/* Use heartbeats only: the measured process gives memory back while no calls are made. */
	error = teams_open(engine, &up, desk == &board->desks[PROVIDERS], calls->teams);
	if (error == SPOKE_OK)
		return calls;
	desk_complain(desk, "cannot create a consumer: %s", spoke_engine_why(engine));
	free(calls);
	return NULL;
}

/* Checks for lost calls. */
static void calls_look(struct calls *calls)
{
	book_look(&calls->book, spoke_engine_now(calls->engine));
}

/* Returns the number of open calls. */
static uint64_t calls_open_count(const struct calls *calls)
{
	return calls->book.open;
}

static struct team *calls_team(struct calls *calls, unsigned index)
{
	return &calls->teams[index % TEAMS];
}

/* Checks the counters after the end of the engine. */
static bool calls_close(struct calls *calls)
{
	bool well;

	if (calls->desk->counts[COUNT_TOLD] != calls->desk->counts[COUNT_TICKETS])
		desk_complain(calls->desk,
			      "consumers were notified of a different number of tickets");
	well = book_close(&calls->book);
	spoke_builder_fini(&calls->builder);
	free(calls);
	return well;
}

/* --- A thread that calls through futures */

#define BATCH 8u
#define PAUSE_NS (20 * NS_PER_MS)
#define FUTURES_TIMEOUT_NS NS_PER_S
#define WAITS 5u /* waits of a second: a process that was frozen gets more time */

static struct {
	pthread_t thread;
	struct calls *calls;
	struct desk *desk;
	struct sim_dice dice;
	struct spoke_builder builder;
	uint64_t tag;
	atomic_bool end;
	atomic_bool busy;
	atomic_bool gone;
} self;

static void pause_ns(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S) };

	(void)nanosleep(&time, NULL);
}

static struct spoke_future *futures_begin(size_t *ret_len)
{
	struct team *team = calls_team(self.calls, (unsigned)(self.tag % 3));
	struct spoke_call_options options = { .timeout_ns = FUTURES_TIMEOUT_NS };
	struct spoke_future *future;
	struct spoke_span args;

	*ret_len = load_len(&self.dice, 8192);
	spoke_builder_reset(&self.builder);
	load_pack(&self.builder, self.tag, *ret_len);
	if (spoke_builder_finish(&self.builder, &args) ||
	    spoke_future_start(team->methods[KIND_ECHO], args, &options, &future))
		return NULL;
	self.desk->counts[COUNT_FUTURES]++;
	return future;
}

static void wrong(const char *what, int error)
{
	self.desk->counts[COUNT_WRONG]++;
	desk_complain(self.desk, "a future %s: %s", what, spoke_errname(error));
}

static void end(struct spoke_future *future, uint64_t tag, size_t len)
{
	int error = spoke_future_wait(future);
	const struct spoke_result *result;

	for (unsigned i = 1; error == SPOKE_ESTATE && i < WAITS; i++) {
		pause_ns(NS_PER_S);
		error = spoke_future_wait(future);
	}
	result = spoke_future_result(future);
	if (error || result == NULL) {
		self.desk->counts[COUNT_LOST]++;
		desk_complain(self.desk, "a future never ended: %s", spoke_errname(error));
		return;
	}
	self.desk->counts[COUNT_FUTURES_ENDED]++;
	if (result->error == SPOKE_OK && !load_is(result->value, tag, len))
		wrong("got the answer of another call", SPOKE_OK);
	else if (result->error && !calls_error_is_due(result->error))
		wrong("ended with an impossible error", result->error);
}

static void call_some(void)
{
	struct spoke_future *futures[BATCH];
	uint64_t tags[BATCH];
	size_t lens[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		tags[i] = ++self.tag;
		futures[i] = futures_begin(&lens[i]);
		if (futures[i] && sim_chance(&self.dice, 50))
			spoke_future_cancel(futures[i]);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		if (futures[i])
			end(futures[i], tags[i], lens[i]);
		spoke_future_free(futures[i]);
	}
}

static void *run(void *arg)
{
	while (!self.end) {
		self.busy = true;
		if (!board->hush)
			call_some();
		self.busy = false;
		pause_ns(PAUSE_NS);
	}
	self.gone = true;
	return arg;
}

/* Starts the thread. Returns false if it cannot be created. */
static bool futures_start(struct calls *calls, struct desk *desk, uint64_t seed)
{
	self.calls = calls;
	self.desk = desk;
	self.dice = sim_dice_make(seed);
	spoke_builder_init(&self.builder, memory_env(), NULL);
	return pthread_create(&self.thread, NULL, run, NULL) == 0;
}

/* Asks the thread to end. */
static void futures_end(void)
{
	self.end = true;
}

/* Returns whether the thread has no open future. */
static bool futures_rest(void)
{
	return !self.busy;
}

/* Returns whether the thread has ended. */
static bool futures_gone(void)
{
	return self.gone;
}

/* Waits for the end of the thread, after futures_end(). */
static void futures_join(void)
{
	(void)pthread_join(self.thread, NULL);
	spoke_builder_fini(&self.builder);
}

/* --- main program of a consumer process of the soak */

#define BEAT_NS (5 * NS_PER_MS)
#define BEATS_MAX 4u /* beats: a longer delay is not made up for */
#define PULSE_NS (100 * NS_PER_MS)
#define LOOK_NS NS_PER_S
#define REST_NS (20 * NS_PER_MS)
#define GIVE_UP_NS (30 * NS_PER_S)
#define DRAIN_NS (5 * NS_PER_S)

static struct {
	struct spoke_engine *engine;
	struct desk *desk;
	struct calls *calls;
	struct spoke_alarm beat;
	struct spoke_alarm pulse;
	struct spoke_alarm look;
	struct spoke_signal ender;
	uint64_t beaten_ns;
	uint64_t owed; /* in billionths of a call */
	uint64_t give_up_ns;
	unsigned storms; /* storms that have begun */
} consumer_self;

static void beat(struct spoke_alarm *alarm)
{
	uint64_t now = spoke_engine_now(consumer_self.engine);
	uint64_t since = now - consumer_self.beaten_ns;

	(void)alarm;
	consumer_self.beaten_ns = now;
	calls_cancel(consumer_self.calls);
	if (consumer_self.storms != board->storms) {
		consumer_self.storms = board->storms;
		calls_storm(consumer_self.calls);
	}
	if (board->hush)
		return;
	if (since > BEATS_MAX * BEAT_NS)
		since = BEATS_MAX * BEAT_NS;
	for (consumer_self.owed += board->rate * since; consumer_self.owed >= NS_PER_S;
	     consumer_self.owed -= NS_PER_S)
		calls_begin(consumer_self.calls);
}

static void pulse(struct spoke_alarm *alarm)
{
	(void)alarm;
	desk_stats(consumer_self.desk, consumer_self.engine);
	consumer_self.desk->connections = consumer_self.desk->stats[SPOKE_STAT_CONNECTED] -
					  consumer_self.desk->stats[SPOKE_STAT_CLOSED];
	consumer_self.desk->ready = teams_ready(calls_team(consumer_self.calls, 0));
	consumer_self.desk->resting = calls_open_count(consumer_self.calls) == 0 && futures_rest();
	memory_tell(consumer_self.desk);
	consumer_self.desk->pulses++;
}

static void look(struct spoke_alarm *alarm)
{
	(void)alarm;
	calls_look(consumer_self.calls);
}

/* --- the end of the process */

static void rest(struct spoke_alarm *alarm)
{
	if ((calls_open_count(consumer_self.calls) > 0 || !futures_gone()) &&
	    spoke_engine_now(consumer_self.engine) < consumer_self.give_up_ns)
		return;
	(void)spoke_alarm_cancel(alarm);
	(void)spoke_alarm_cancel(&consumer_self.look);
	pulse(NULL);
	if (spoke_engine_drain(consumer_self.engine, DRAIN_NS))
		spoke_engine_stop(consumer_self.engine);
}

static void consumer_end(struct spoke_signal *ender)
{
	(void)ender;
	futures_end();
	consumer_self.give_up_ns = spoke_engine_now(consumer_self.engine) + GIVE_UP_NS;
	if (spoke_alarm_every(consumer_self.engine, &consumer_self.beat, REST_NS, rest))
		spoke_engine_stop(consumer_self.engine);
}

/* --- the process */

static int run_all(void)
{
	int error = spoke_signal_watch(consumer_self.engine, &consumer_self.ender, SIGTERM,
				       consumer_end);

	consumer_self.storms = board->storms;
	consumer_self.beaten_ns = spoke_engine_now(consumer_self.engine);
	if (!error)
		error = spoke_alarm_every(consumer_self.engine, &consumer_self.beat, BEAT_NS, beat);
	if (!error)
		error = spoke_alarm_every(consumer_self.engine, &consumer_self.pulse, PULSE_NS,
					  pulse);
	if (!error)
		error = spoke_alarm_every(consumer_self.engine, &consumer_self.look, LOOK_NS, look);
	consumer_self.desk->up = !error;
	return error ? error : spoke_engine_run(consumer_self.engine);
}

int consumer_run(unsigned index, unsigned life)
{
	struct spoke_engine_options with = { .env = memory_env() };
	uint64_t seed = board->seed * 1000 + index * 100 + life * 2;
	int error;

	consumer_self.desk = &board->desks[PROVIDERS + index];
	error = spoke_engine_new(&with, &consumer_self.engine);
	if (!error)
		consumer_self.calls = calls_open(consumer_self.engine, consumer_self.desk, seed);
	if (consumer_self.calls == NULL ||
	    !futures_start(consumer_self.calls, consumer_self.desk, seed + 1))
		return 1;
	error = run_all();
	if (error)
		desk_complain(consumer_self.desk, "consumer %u: %s", index,
			      spoke_engine_why(consumer_self.engine));
	futures_end();
	futures_join();
	spoke_engine_free(consumer_self.engine);
	consumer_self.desk->done = calls_close(consumer_self.calls) && !error;
	if (memory_used() > 0)
		desk_complain(consumer_self.desk, "consumer %u leaks %llu bytes", index,
			      (unsigned long long)memory_used());
	return consumer_self.desk->done && consumer_self.desk->complaint[0] == '\0' ? 0 : 1;
}
