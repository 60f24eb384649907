/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libuv as a peer. uv_timer_start() moves a timer that is active. Its unit is the millisecond;
 * delays are rounded up. The node of its heap lies within the handle.
 */
#include "expiry.h"
#include "fleet.h"
#include "live.h"
#include "query.h"
#include "steady.h"

#include <stdlib.h>
#include <uv.h>

static uv_timer_t *first; /* of the fleet that is live */

static uv_timer_t *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (uv_timer_t *)fleet->timers + i;
}

static void count_fired(uv_timer_t *timer)
{
	fired++;
	if (live_due != NULL)
		live_due((uint64_t)(timer - first));
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct fleet fleet = {
		.home = host_memory(1, sizeof(uv_loop_t)),
		.timers = host_memory(plan->n, sizeof(uv_timer_t)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	first = fleet.timers;
	if (uv_loop_init(fleet.home) != 0)
		host_die("uv_loop_init failed");
	for (uint64_t i = 0; i < plan->n; i++)
		check(uv_timer_init(fleet.home, timer_at(&fleet, i)) == 0);
	return fleet;
}

static void close_fleet(const struct fleet *fleet)
{
	for (uint64_t i = 0; i < fleet->n; i++)
		uv_close((uv_handle_t *)timer_at(fleet, i), NULL);
	(void)uv_run(fleet->home, UV_RUN_NOWAIT);
	if (uv_loop_close(fleet->home) != 0)
		host_die("libuv's loop is still in use");
	free(fleet->timers);
	free(fleet->home);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	uint64_t delay_ms = (delay_us + 999) / 1000;

	check(uv_timer_start(timer_at(fleet, i), count_fired, delay_ms, 0) == 0);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	check(uv_timer_stop(timer_at(fleet, i)) == 0);
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	arm(fleet, i, delay_us);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return uv_is_active((const uv_handle_t *)timer_at(fleet, i)) != 0;
}

static inline bool turn(const struct fleet *fleet)
{
	(void)uv_run(fleet->home, UV_RUN_NOWAIT);
	return false;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return (uint64_t)uv_backend_timeout(fleet->home);
}

static void note_time(const struct fleet *fleet)
{
	uv_update_time(fleet->home);
}

static void stop_loop(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	note_end();
	uv_close((uv_handle_t *)poll, NULL);
	uv_stop(poll->loop);
}

static void run_until(const struct fleet *fleet, int fd)
{
	uv_poll_t stop;

	check(uv_poll_init(fleet->home, &stop, fd) == 0);
	check(uv_poll_start(&stop, UV_READABLE, stop_loop) == 0);
	(void)uv_run(fleet->home, UV_RUN_DEFAULT);
	/* The closed poll handle leaves the loop before it leaves this stack. */
	(void)uv_run(fleet->home, UV_RUN_NOWAIT);
}

const struct bench_kit bench_libuv = {
	.run = { BENCH_RUNS },
	.live = run_live,
	.bytes = sizeof(uv_timer_t),
};
