/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libev as a peer. A timer is moved with ev_timer_again(), as libev's manual recommends: it sifts
 * in place. It makes the timer repeat, which has no effect, because no workload that moves timers
 * lets one fire.
 */
#include "expiry.h"
#include "fleet.h"
#include "live.h"
#include "steady.h"

#include <ev.h>
#include <stdlib.h>

static ev_timer *first; /* of the fleet that is live */

static ev_timer *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (ev_timer *)fleet->timers + i;
}

static void count_fired(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	fired++;
	if (live_due != NULL)
		live_due((uint64_t)(timer - first));
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct fleet fleet = {
		.home = ev_loop_new(EVFLAG_AUTO),
		.timers = host_memory(plan->n, sizeof(ev_timer)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	first = fleet.timers;
	if (fleet.home == NULL)
		host_die("ev_loop_new failed");
	for (uint64_t i = 0; i < plan->n; i++)
		ev_timer_init(timer_at(&fleet, i), count_fired, 0., 0.);
	return fleet;
}

static void close_fleet(const struct fleet *fleet)
{
	ev_loop_destroy(fleet->home);
	free(fleet->timers);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	ev_timer *timer = timer_at(fleet, i);

	ev_timer_set(timer, (double)delay_us * 1e-6, 0.);
	ev_timer_start(fleet->home, timer);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	ev_timer_stop(fleet->home, timer_at(fleet, i));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	ev_timer *timer = timer_at(fleet, i);

	timer->repeat = (double)delay_us * 1e-6;
	ev_timer_again(fleet->home, timer);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return ev_is_active(timer_at(fleet, i));
}

static inline bool turn(const struct fleet *fleet)
{
	ev_run(fleet->home, EVRUN_NOWAIT);
	return false;
}

static void note_time(const struct fleet *fleet)
{
	ev_now_update(fleet->home);
}

static void stop_loop(struct ev_loop *loop, ev_io *io, int events)
{
	(void)events;
	note_end();
	ev_io_stop(loop, io);
	ev_break(loop, EVBREAK_ALL);
}

static void run_until(const struct fleet *fleet, int fd)
{
	ev_io stop;

	ev_io_init(&stop, stop_loop, fd, EV_READ);
	ev_io_start(fleet->home, &stop);
	ev_run(fleet->home, 0);
}

const struct bench_kit bench_libev = {
	.run = {
		[BENCH_RPC_PAIR] = run_rpc_pair,
		[BENCH_RANDOM_VICTIM] = run_random_victim,
		[BENCH_RANDOM_MOVE] = run_random_move,
		[BENCH_FIFO_ADVANCE] = run_fifo_advance,
		[BENCH_EXPIRE_STEP] = run_expire_step,
		[BENCH_EXPIRE_STEP_WORST] = run_expire_step_worst,
		[BENCH_EXPIRE_JUMP] = run_expire_jump,
		[BENCH_EXPIRE_JUMP_WORST] = run_expire_jump_worst,
		[BENCH_UPDATE_DEADLINE] = run_update_deadline,
		[BENCH_BURST] = run_burst,
		[BENCH_BURST_WORST] = run_burst_worst,
	},
	.live = run_live,
	/* The cell of libev's heap holds a time and a pointer. */
	.bytes = sizeof(ev_timer) + sizeof(ev_tstamp) + sizeof(void *),
};
