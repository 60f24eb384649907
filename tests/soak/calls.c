/* SPDX-License-Identifier: Apache-2.0 */
/* Begins the calls of a consumer process and checks their results. */
#include "calls.h"

#include "load.h"
#include "memory.h"

#include <spoke/provider.h>

#include <stdlib.h>

#define SLACK_NS (3 * NS_PER_S)
#define TIMEOUT_NS (500 * NS_PER_MS)
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

bool calls_error_is_due(int error)
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

void calls_begin(struct calls *calls)
{
	(void)begin_one(calls, throw_kind(calls), LOAD_LEN_MAX);
}

void calls_storm(struct calls *calls)
{
	for (unsigned i = 0; i < BOOK_SEATS; i++)
		if (!begin_one(calls, KIND_DOZE, STORM_LEN))
			return;
}

void calls_cancel(struct calls *calls)
{
	for (; calls->cancel_count > 0; calls->cancel_count--) {
		uint64_t tag = calls->cancels[calls->cancel_count - 1];
		struct seat *seat = &calls->book.seats[tag % BOOK_SEATS];

		if (seat->tag == tag && seat->state != SEAT_FREE)
			(void)spoke_call_cancel(calls->teams[seat->team].consumer, seat->call);
	}
}

/* --- all calls */

struct calls *calls_open(struct spoke_engine *engine, struct desk *desk, uint64_t seed)
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

void calls_look(struct calls *calls)
{
	book_look(&calls->book, spoke_engine_now(calls->engine));
}

uint64_t calls_open_count(const struct calls *calls)
{
	return calls->book.open;
}

struct team *calls_team(struct calls *calls, unsigned index)
{
	return &calls->teams[index % TEAMS];
}

bool calls_close(struct calls *calls)
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
