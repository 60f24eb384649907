/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a connection: memory that it holds for a while, its timer, its user, its end. */
#include "cluster/comet/parts.h"
#include "core/text/option.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)

static struct spoke_comet *comet_of(const struct spokei_comet_conn *conn)
{
	return conn->user->comet;
}

static enum spoke_comet_figure figure_of(const struct spokei_comet_conn *conn)
{
	return SPOKE_COMET_FIGURE_EVENTS + (conn->kind - SPOKE_COMET_EVENTS);
}

/* --- memory for a while */

struct spokei_comet_more *spokei_comet_need(struct spokei_comet_conn *conn)
{
	if (conn->more == NULL) {
		conn->more = spokei_comet_take(comet_of(conn), sizeof(*conn->more));
		if (conn->more)
			*conn->more = (struct spokei_comet_more){ .out = NULL };
	}
	return conn->more;
}

void spokei_comet_less(struct spokei_comet_conn *conn)
{
	if (conn->more == NULL || conn->more->out || conn->more->in)
		return;
	spokei_comet_give(comet_of(conn), conn->more, sizeof(*conn->more));
	conn->more = NULL;
}

void spokei_comet_drop_out(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = conn->user->comet;
	struct spokei_comet_more *more = conn->more;

	if (more->message)
		spokei_comet_drop(comet, more->message);
	else
		spokei_comet_give(comet, more->out, more->out_len);
	more->message = NULL;
	more->out = NULL;
	comet->figures[SPOKE_COMET_FIGURE_BEHIND]--;
}

static void drop_more(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spokei_comet_more *more = conn->more;

	if (more == NULL)
		return;
	if (more->out)
		spokei_comet_drop_out(conn);
	spokei_comet_give(comet, more->in, more->in_room);
	spokei_comet_give(comet, more, sizeof(*more));
	conn->more = NULL;
}

/* --- its user, and its end */

void spokei_comet_join(struct spokei_comet_conn *conn, struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	spokei_comet_here(user);
	conn->next = user->at.here.first;
	user->at.here.first = conn;
	if (user->count++ == 0)
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_ONLINE);
	user->flags &= (uint8_t)~SPOKEI_COMET_POLLED;
	comet->figures[figure_of(conn)]++;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_OPENED);
	spokei_comet_dirty(user);
}

void spokei_comet_leave(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spokei_comet_user *user = conn->user;
	struct spokei_comet_conn **at = &user->at.here.first;

	if (user == comet->nobody)
		return;
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	conn->next = NULL;
	conn->user = comet->nobody;
	if (--user->count == 0)
		comet->figures[SPOKE_COMET_FIGURE_ONLINE]--;
	if (conn->kind != SPOKE_COMET_POLL)
		user->flags &= (uint8_t)~SPOKEI_COMET_POLLED;
	comet->figures[figure_of(conn)]--;
	spokei_comet_dirty(user);
}

void spokei_comet_close(struct spokei_comet_conn *conn, enum spoke_comet_figure why)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spoke_engine *engine = comet->engine;
	const struct spoke_env *env = engine->env;

	if (conn->state == SPOKEI_COMET_FREE)
		return;
	if (why < SPOKE_COMET_FIGURE_COUNT)
		spokei_comet_count(comet, why);
	spokei_comet_leave(conn);
	drop_more(conn);
	(void)spoke_wheel_cancel(engine->wheel, &conn->timer);
	env->loop->watch(engine->loop, &conn->watch, 0);
	env->net->close(env->ctx, conn->watch.fd);
	spokei_quota_leave(&comet->quota, conn->seat);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	conn->state = SPOKEI_COMET_FREE;
	conn->next = comet->dead_list;
	comet->dead_list = conn;
	spokei_engine_dead(engine, &comet->dead);
}

/* --- for pages of other origins */

uint16_t spokei_comet_listed(struct spoke_span name, const char *list)
{
	const char *at = list;
	struct spoke_span item;

	while (spokei_option_item(&at, &item)) {
		if (item.len > 0 && name.len == item.len &&
		    memcmp(name.data, item.data, item.len) == 0)
			return (uint16_t)((const char *)item.data - list + 1);
	}
	return 0;
}

const char *spokei_comet_cors(const struct spoke_comet *comet, uint16_t origin,
			      char out[SPOKEI_COMET_CORS])
{
	const char *name = comet->with.origins + (origin ? origin - 1 : 0);

	out[0] = '\0';
	if (origin > 0) {
		(void)snprintf(out, SPOKEI_COMET_CORS,
			       "Access-Control-Allow-Origin: %.*s\r\n"
			       "Access-Control-Allow-Credentials: true\r\nVary: Origin\r\n",
			       (int)strcspn(name, ","), name);
	}
	return out;
}

/* --- the timer */

/* Returns when the timer has to look next. */
static uint32_t next_ms(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet_options *with = &comet_of(conn)->with;
	const uint32_t slow_ms = spokei_comet_ms_of(with->slow_ns);
	uint64_t quiet_ns = with->keepalive_ns;
	uint32_t ms;

	if (spokei_comet_behind(conn))
		quiet_ns = with->slow_ns;
	else if (conn->state == SPOKEI_COMET_ENDING || conn->kind == SPOKE_COMET_POLL)
		return conn->ends_ms;
	ms = conn->moved_ms + spokei_comet_ms_of(quiet_ns);
	if (spokei_comet_partial(conn) &&
	    spokei_comet_until(conn->more->begun_ms + slow_ms, ms) < 0)
		ms = conn->more->begun_ms + slow_ms;
	return spokei_comet_until(ms, conn->ends_ms) < 0 ? ms : conn->ends_ms;
}

uint64_t spokei_comet_due_ns(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet *comet = comet_of(conn);
	int32_t in_ms = spokei_comet_until(next_ms(conn), spokei_comet_ms(comet));

	return comet->engine->begin_ns + (in_ms > 0 ? (uint64_t)in_ms * NS_PER_MS : 0);
}

/* A timer that is armed already needs no room in the wheel. */
void spokei_comet_arm(struct spokei_comet_conn *conn)
{
	int status = spoke_wheel_reschedule(comet_of(conn)->engine->wheel, &conn->timer,
					    spokei_comet_due_ns(conn));

	if (status != SPOKE_WHEEL_OK)
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
}
