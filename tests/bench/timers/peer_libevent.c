/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent as a peer, with a default event base. event_add() moves a timer that is pending. It
 * reads the clock at each event_add() outside of a callback; here that is the virtual one, as cheap
 * as the time that libevent caches for callbacks. Its "common timeouts" are not used: they must be
 * registered per duration, which is impossible for arbitrary deadlines.
 */
#include "expiry.h"
#include "fleet.h"
#include "live.h"
#include "steady.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

static struct event *first; /* of the fleet that is live */

static struct event *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (struct event *)fleet->timers + i;
}

static void count_fired(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	fired++;
	if (live_due != NULL)
		live_due((uint64_t)((struct event *)arg - first));
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct fleet fleet = {
		.home = event_base_new(),
		.timers = host_memory(plan->n, sizeof(struct event)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	first = fleet.timers;
	if (fleet.home == NULL)
		host_die("libevent cannot create an event base");
	for (uint64_t i = 0; i < plan->n; i++) {
		struct event *timer = timer_at(&fleet, i);

		check(evtimer_assign(timer, fleet.home, count_fired, timer) == 0);
	}
	return fleet;
}

static void close_fleet(const struct fleet *fleet)
{
	event_base_free(fleet->home);
	free(fleet->timers);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	struct timeval delay = {
		.tv_sec = (time_t)(delay_us / SECOND_US),
		.tv_usec = (suseconds_t)(delay_us % SECOND_US),
	};

	check(event_add(timer_at(fleet, i), &delay) == 0);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	check(event_del(timer_at(fleet, i)) == 0);
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	arm(fleet, i, delay_us);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return evtimer_pending(timer_at(fleet, i), NULL) != 0;
}

static inline bool turn(const struct fleet *fleet)
{
	(void)event_base_loop(fleet->home, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	return false;
}

static void note_time(const struct fleet *fleet)
{
	(void)fleet;
}

static void stop_loop(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	note_end();
	(void)event_base_loopbreak(arg);
}

static void run_until(const struct fleet *fleet, int fd)
{
	struct event stop;

	check(event_assign(&stop, fleet->home, fd, EV_READ, stop_loop, fleet->home) == 0);
	check(event_add(&stop, NULL) == 0);
	(void)event_base_dispatch(fleet->home);
	(void)event_del(&stop);
}

const struct bench_kit bench_libevent = {
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
	/* The cell of libevent's heap is a pointer. */
	.bytes = sizeof(struct event) + sizeof(struct event *),
};
