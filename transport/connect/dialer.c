/* SPDX-License-Identifier: Apache-2.0 */
/* Dials one place: rounds of attempts over all its addresses, and the pauses between them. */
#include "transport/connect/dialer.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

/* --- the timer */

/* The wheel has room, because the timer is armed during the dialer's whole life. */
static int arm(struct spokei_dialer *dialer, uint64_t due_ns)
{
	struct spoke_wheel *wheel = dialer->engine->wheel;

	dialer->due_ns = due_ns;
	if (spoke_timer_armed(&dialer->timer))
		return spokei_engine_fold(spoke_wheel_reschedule(wheel, &dialer->timer, due_ns));
	return spokei_engine_fold(
		spoke_wheel_schedule(wheel, &dialer->timer, dialer->timer_class, due_ns));
}

static uint64_t after(const struct spokei_dialer *dialer, uint64_t delay_ns)
{
	const struct spoke_env *env = dialer->engine->env;

	return spokei_later(env->now(env->ctx), delay_ns);
}

void spokei_dialer_set_timer_at(struct spokei_dialer *dialer, uint64_t due_ns)
{
	int error = arm(dialer, due_ns);

	if (error)
		spokei_event(dialer->engine, error,
			     "connector %s: its timer cannot be set; make a new engine",
			     spokei_place_shown(dialer->place.name));
}

void spokei_dialer_set_timer(struct spokei_dialer *dialer, uint64_t delay_ns)
{
	spokei_dialer_set_timer_at(dialer, after(dialer, delay_ns));
}

void spokei_dialer_wait(struct spokei_dialer *dialer)
{
	const struct spoke_env *env = dialer->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	dialer->pause_ns = spokei_backoff_pause(&dialer->backoff, dialer->failures, dice);
	if (dialer->failures < UINT32_MAX)
		dialer->failures++;
	spokei_dialer_set_timer(dialer, dialer->pause_ns);
}

/* --- addresses */

static void start_at_any(struct spokei_dialer *dialer, unsigned count)
{
	const struct spoke_env *env = dialer->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	dialer->count = count;
	dialer->left = count;
	dialer->next = (unsigned)(dice % count);
}

static void forget_addresses(struct spokei_dialer *dialer)
{
	spokei_free(dialer->engine->env, dialer->many, dialer->count, sizeof(*dialer->many));
	dialer->many = NULL;
	dialer->left = 0;
}

/* Keeps the addresses of a round; without memory for all only that with which it begins. */
static void keep_addresses(struct spokei_dialer *dialer, const struct spoke_address *found,
			   unsigned count)
{
	start_at_any(dialer, count);
	if (count > 1)
		dialer->many = spokei_alloc(dialer->engine->env, count, sizeof(*found));
	if (dialer->many) {
		memcpy(dialer->many, found, count * sizeof(*found));
		return;
	}
	dialer->place.address = found[dialer->next];
	dialer->count = dialer->left = 1;
	dialer->next = 0;
}

static void looked_up(void *arg, const struct spoke_address *found, int count)
{
	struct spokei_dialer *dialer = arg;
	bool over = !spoke_timer_armed(&dialer->timer);

	dialer->resolving = false;
	if (count > 0 && !over)
		keep_addresses(dialer, found, (unsigned)count);
	else if (count <= 0)
		spokei_count(dialer->engine, SPOKE_STAT_RESOLVES_FAILED);
	dialer->up->resolved(dialer, count > 0 ? 0 : count);
}

int spokei_dialer_resolve(struct spokei_dialer *dialer)
{
	int status;

	forget_addresses(dialer);
	if (dialer->place.fixed) {
		start_at_any(dialer, 1);
		return 0;
	}
	status = spokei_lookup(dialer->engine, &dialer->place, 1, SPOKEI_DIALER_ADDRESSES,
			       looked_up, dialer);
	if (status) {
		spokei_count(dialer->engine, SPOKE_STAT_RESOLVES_FAILED);
		return status;
	}
	dialer->resolving = true;
	return SPOKEI_DIALER_MORE;
}

const struct spoke_address *spokei_dialer_next(struct spokei_dialer *dialer)
{
	const struct spoke_address *all = dialer->many ? dialer->many : &dialer->place.address;
	const struct spoke_address *address = &all[dialer->next];

	if (dialer->left == 0)
		return NULL;
	dialer->left--;
	dialer->next = (dialer->next + 1) % dialer->count;
	return address;
}

/* --- one attempt */

static void watch(struct spokei_dialer *dialer, unsigned io)
{
	dialer->engine->env->loop->watch(dialer->engine->loop, &dialer->watch, io);
}

void spokei_dialer_hang_up(struct spokei_dialer *dialer)
{
	const struct spoke_env *env = dialer->engine->env;

	if (dialer->watch.fd < 0)
		return;
	watch(dialer, 0);
	env->net->close(env->ctx, dialer->watch.fd);
	dialer->watch.fd = -1;
}

static void attempt_failed(struct spokei_dialer *dialer, int status)
{
	spokei_dialer_hang_up(dialer);
	spokei_count(dialer->engine, SPOKE_STAT_CONNECTS_FAILED);
	dialer->up->failed(dialer, status);
}

static void attempt_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_dialer *dialer = spoke_container_of(ready, struct spokei_dialer, watch);
	const struct spoke_env *env = dialer->engine->env;
	int fd = dialer->watch.fd;
	int status = env->net->finish(env->ctx, fd);

	(void)io;
	if (status == -EINPROGRESS || status == -EAGAIN || status == -EINTR)
		return;
	if (status < 0) {
		attempt_failed(dialer, status);
		return;
	}
	watch(dialer, 0);
	dialer->watch.fd = -1;
	dialer->up->connected(dialer, fd);
}

int spokei_dialer_try(struct spokei_dialer *dialer, const struct spoke_address *to,
		      uint64_t limit_ns)
{
	const struct spoke_env *env = dialer->engine->env;
	int fd = -1;
	int status = env->net->connect(env->ctx, to, &fd);

	SPOKE_ASSERT(dialer->watch.fd < 0);
	spokei_count(dialer->engine, SPOKE_STAT_CONNECTS);
	if (status != 0 && status != -EINPROGRESS) {
		spokei_count(dialer->engine, SPOKE_STAT_CONNECTS_FAILED);
		return status;
	}
	/* A socket that is connected already is writable at once and goes the same way. */
	dialer->watch.fd = fd;
	watch(dialer, SPOKE_IO_WRITE);
	spokei_dialer_set_timer(dialer, limit_ns);
	return 0;
}

static void dialer_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_dialer *dialer = spoke_container_of(timer, struct spokei_dialer, timer);

	(void)arg;
	spokei_dialer_set_timer(dialer, SPOKEI_DIALER_REST_NS);
	if (dialer->watch.fd >= 0)
		attempt_failed(dialer, -ETIME);
	else
		dialer->up->due(dialer);
}

/* --- life */

int spokei_dialer_init(struct spokei_dialer *dialer, struct spoke_engine *engine,
		       const struct spokei_dialer_up *up)
{
	int error;

	*dialer = (struct spokei_dialer){
		.engine = engine,
		.up = up,
		.watch = { .fd = -1, .ready = attempt_ready },
	};
	error = spokei_engine_class(engine, "connector", dialer_due, &dialer->timer_class);
	return error ? error : arm(dialer, after(dialer, SPOKEI_DIALER_REST_NS));
}

void spokei_dialer_fini(struct spokei_dialer *dialer)
{
	spokei_dialer_hang_up(dialer);
	forget_addresses(dialer);
	(void)spoke_wheel_cancel(dialer->engine->wheel, &dialer->timer);
}
