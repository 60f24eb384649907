/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual world: the environment of its processes, their event loops, the step from one event
 * to the next, and disturbances of processes: lost time, and signals. */
#include "core/virtual/world.h"
#include "core/virtual/files.h"
#include "timer/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- signals, which are spare descriptors that become readable; lost time */

static int signals_open(void *ctx, int number, int *ret_fd)
{
	struct spokei_world_process *process = ctx;
	int at = 0;
	int error;

	if (number <= 0)
		return -EINVAL;
	while (process->signals[at].number != 0) {
		at++;
		SPOKE_ASSERT(at < SPOKEI_WORLD_SIGNALS);
	}
	error = spokei_vnet_table.spare(ctx, ret_fd);
	if (!error) {
		process->signals[at].number = number;
		process->signals[at].fd = *ret_fd;
	}
	return error;
}

static bool signals_take(void *ctx, int fd)
{
	return spokei_vnet_ring(((struct spokei_world_process *)ctx)->world->net, fd, false);
}

static void signals_close(void *ctx, int fd)
{
	struct spokei_world_process *process = ctx;

	for (int i = 0; i < SPOKEI_WORLD_SIGNALS; i++)
		if (process->signals[i].number != 0 && process->signals[i].fd == fd)
			process->signals[i].number = 0;
	spokei_vnet_table.close(ctx, fd);
}

static const struct spoke_signals signals_table = {
	.open = signals_open,
	.take = signals_take,
	.close = signals_close,
};

bool spokei_world_signal(struct spokei_world_process *process, int number)
{
	bool watched = false;

	for (int i = 0; i < SPOKEI_WORLD_SIGNALS; i++) {
		if (process->signals[i].number != number)
			continue;
		(void)spokei_vnet_ring(process->world->net, process->signals[i].fd, true);
		watched = true;
	}
	return watched;
}

void spokei_world_hold(struct spokei_world_process *process, uint64_t ns)
{
	process->held_until_ns = process->env.now(process) + ns;
	process->user.leaves_ns = process->held_until_ns;
}

void spokei_world_stall(struct spokei_world *world, uint64_t ns)
{
	world->now_ns += ns;
}

void spokei_world_sleep(struct spokei_world *world, uint64_t ns)
{
	world->slept_ns += ns;
}

/* Returns the world's next random number. */
static uint64_t world_dice(struct spokei_world *world)
{
	world->dice ^= world->dice << 13;
	world->dice ^= world->dice >> 7;
	world->dice ^= world->dice << 17;
	return world->dice * UINT64_C(0x2545f4914f6cdd1d);
}

/* --- the environment */

static uint64_t process_now(void *ctx)
{
	const struct spokei_world_process *process = ctx;
	uint64_t now_ns = process->world->now_ns;

	return now_ns > process->held_until_ns ? now_ns : process->held_until_ns;
}

/* As far behind as it is allowed to be. */
static uint64_t process_coarse(void *ctx)
{
	return process_now(ctx) - SPOKE_COARSE_NS;
}

static uint64_t process_boot_now(void *ctx)
{
	const struct spokei_world_process *process = ctx;

	return process_now(ctx) + process->world->slept_ns + process->boot_ahead_ns;
}

/* The year 2026. */
static uint64_t process_wall(void *ctx)
{
	return UINT64_C(1767225600000000000) + process_boot_now(ctx);
}

/* Fills numbers of 64 bits, or one of 32, with the same values on machines of either byte order. */
static void process_dice(void *ctx, void *bytes, size_t len)
{
	struct spokei_world_process *process = ctx;
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;
	size_t turned = little ? 0 : len % 8 == 0 ? 7 : len == 4 ? 3 : 0;

	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i ^ turned] = (unsigned char)(world_dice(process->world) >>
								       56);
}

static void *process_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	struct spokei_world_process *process = ctx;
	void *grown;

	if (len == 0) {
		process->blocks -= memory != NULL;
		process->bytes -= old_len;
		free(memory);
		return NULL;
	}
	if (++process->demands == process->fail_at)
		return NULL;
	grown = realloc(memory, len);
	process->blocks += grown && !memory;
	process->bytes += grown ? len - old_len : 0;
	return grown;
}

static int process_host_id(void *ctx, uint64_t *ret_id)
{
	const struct spokei_world_process *process = ctx;

	if (process->host_id == 0)
		return -ENOENT;
	*ret_id = process->host_id;
	return 0;
}

static const struct spoke_env world_env = {
	.now = process_now,
	.coarse = process_coarse,
	.boot_now = process_boot_now,
	.wall = process_wall,
	.dice = process_dice,
	.resize = process_resize,
	.net = &spokei_vnet_table,
	.files = &spokei_vfiles_table,
	.signals = &signals_table,
	.host_id = process_host_id,
};

/* --- the event loop */

#define START_NS UINT64_C(1000000000)
#define REPORTED_MAX 64u

struct spokei_world_loop {
	struct spokei_world_process *process;
	const struct spoke_loop_up *up;
	void *arg;
	struct spoke_list
		watches; /* linked through the first two words of the loop's part of each */
	uint64_t wake_ns;
	uint64_t spin_ns; /* how long each wait polls before it sleeps */
	uint64_t wait_ns; /* when the present wait began */
	bool woken;       /* the next wait ends at once */
	bool stopping;
	bool retired;
	uint64_t seen;  /* spokei_vnet_changes() at the time of `any_ready` */
	bool fresh;     /* ... `any_ready` is unknown */
	bool any_ready; /* whether a watched descriptor is ready */
	bool inside;    /* the owner's functions are running */
	void *finished; /* works linked by loop[0], the first to finish first */
	void *queued;   /* the same, while the pool is busy */
	void *behind;   /* the same, of works in the background that wait */
	struct spoke_pool pool;
	struct spoke_watch *reported[REPORTED_MAX]; /* in this round; NULL: unwatched since */
	unsigned reported_count;
};

static struct spoke_list *node_of(struct spoke_watch *watch)
{
	return (struct spoke_list *)(void *)&watch->loop;
}

static struct spoke_watch *watch_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spoke_watch, loop);
}

static uint64_t world_now(void *arg)
{
	return ((struct spokei_world *)arg)->now_ns;
}

static int loop_open(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		     void **ret_loop)
{
	struct spokei_world_process *process = ctx;
	struct spokei_world_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return -ENOMEM;
	SPOKE_ASSERT(native == NULL && process->loop == NULL);
	loop->process = process;
	loop->up = up;
	loop->arg = arg;
	loop->pool = (struct spoke_pool){ .threads_max = SPOKE_POOL_THREADS,
					  .queue_max = SPOKE_POOL_QUEUE };
	loop->wake_ns = UINT64_MAX;
	loop->wait_ns = process->world->now_ns;
	loop->fresh = true;
	spokei_list_init(&loop->watches);
	process->loop = loop;
	*ret_loop = loop;
	return 0;
}

static void append(void **queue, struct spoke_work *work)
{
	while (*queue)
		queue = &((struct spoke_work *)*queue)->loop[0];
	work->loop[0] = NULL;
	*queue = work;
}

/* Returns when a work that has run is to be handed back. */
static uint64_t finish_of(const struct spoke_work *work)
{
	uint64_t ns;

	memcpy(&ns, &work->loop[1], sizeof(ns));
	return ns;
}

/* Hands back the works that are finished at this time. */
static void hand_back_work(struct spokei_world_loop *loop, uint64_t now_ns)
{
	struct spoke_work *work = loop->finished;

	loop->finished = NULL;
	while (work) {
		struct spoke_work *next = work->loop[0];

		if (finish_of(work) <= now_ns)
			work->done(work);
		else
			append(&loop->finished, work);
		work = next;
	}
}

/* Runs a work on a thread of the pool; it may take time. */
static void run_work(struct spokei_world_process *process, struct spoke_work *work)
{
	uint64_t finish_ns;

	process->works = true;
	process->work_ns = 0;
	work->run(work);
	process->works = false;
	finish_ns = process_now(process) + process->work_ns;
	memcpy(&work->loop[1], &finish_ns, sizeof(finish_ns));
}

static void delay_process(struct spokei_vnet_user *user, uint64_t ns)
{
	struct spokei_world_process *process = spoke_container_of(user, struct spokei_world_process,
								  user);

	if (process->works)
		process->work_ns += ns;
	else
		spokei_world_hold(process, ns);
}

static void finish_all(struct spokei_world_loop *loop, void **queue, int status)
{
	while (*queue) {
		struct spoke_work *work = *queue;

		*queue = work->loop[0];
		loop->pool.queued -= !work->background;
		memset(&work->loop[1], 0, sizeof(uint64_t));
		if (status == 0)
			run_work(loop->process, work);
		work->status = status;
		append(&loop->finished, work);
		loop->woken = loop->woken || finish_of(work) <= process_now(loop->process);
	}
}

/* There are no threads in this world: work is done at once, unless the pool is busy, and handed
 * back later. */
static int loop_offload(void *handle, struct spoke_work *work)
{
	struct spokei_world_loop *loop = handle;
	bool behind = work->background;
	void **queue = behind ? &loop->behind : &loop->queued;

	if (loop->retired)
		return -ECANCELED;
	if (!behind && loop->pool.queued >= loop->pool.queue_max)
		return -EAGAIN;
	loop->pool.queued += !behind;
	append(queue, work);
	if (!(behind ? loop->process->background_waits : loop->process->pool_is_busy))
		finish_all(loop, queue, 0);
	return 0;
}

static void loop_pool_limit(void *handle, uint32_t threads_max, uint32_t queue_max)
{
	struct spokei_world_loop *loop = handle;

	loop->pool.threads_max = threads_max ? threads_max : SPOKE_POOL_THREADS;
	loop->pool.queue_max = queue_max ? queue_max : SPOKE_POOL_QUEUE;
}

static void loop_pool_look(void *handle, struct spoke_pool *ret)
{
	*ret = ((struct spokei_world_loop *)handle)->pool;
}

static void loop_retire(void *handle)
{
	struct spokei_world_loop *loop = handle;

	SPOKE_ASSERT(!loop->inside); /* callbacks return to code that uses the loop */
	loop->retired = true;
	finish_all(loop, &loop->queued, -ECANCELED);
	finish_all(loop, &loop->behind, -ECANCELED);
	hand_back_work(loop, UINT64_MAX);
}

static void loop_close(void *handle)
{
	struct spokei_world_loop *loop = handle;

	SPOKE_ASSERT(loop->retired && spokei_list_empty(&loop->watches));
	loop->process->loop = NULL;
	free(loop);
}

static void loop_watch(void *handle, struct spoke_watch *watch, unsigned io)
{
	struct spokei_world_loop *loop = handle;

	if (watch->io == 0 && io != 0)
		spokei_list_append(&loop->watches, node_of(watch));
	if (watch->io != 0 && io == 0) {
		spokei_list_remove(node_of(watch));
		for (unsigned i = 0; i < loop->reported_count; i++)
			if (loop->reported[i] == watch)
				loop->reported[i] = NULL;
	}
	watch->io = io;
	loop->fresh = true;
}

static void loop_wake_at(void *handle, uint64_t ns)
{
	((struct spokei_world_loop *)handle)->wake_ns = ns;
}

/* To be woken takes no time here, so no wait would look by itself. */
static void loop_spin(void *handle, uint64_t ns)
{
	((struct spokei_world_loop *)handle)->spin_ns = ns == SPOKE_LOOP_SPIN_AUTO ? 0 : ns;
}

static void loop_wake(void *handle)
{
	((struct spokei_world_loop *)handle)->woken = true;
}

static unsigned ready_of(const struct spokei_world_loop *loop, const struct spoke_watch *watch)
{
	return spokei_vnet_ready(loop->process->world->net, watch->fd) & watch->io;
}

static bool is_any_ready(struct spokei_world_loop *loop)
{
	uint64_t changes = spokei_vnet_changes(&loop->process->user);

	if (!loop->fresh && loop->seen == changes)
		return loop->any_ready;
	loop->fresh = false;
	loop->seen = changes;
	loop->any_ready = false;
	for (struct spoke_list *at = loop->watches.next; at != &loop->watches; at = at->next) {
		if (ready_of(loop, watch_of(at))) {
			loop->any_ready = true;
			break;
		}
	}
	return loop->any_ready;
}

/* Returns when the loop has work, which may be now. */
static uint64_t due_of(struct spokei_world_loop *loop)
{
	struct spokei_world *world = loop->process->world;
	uint64_t due_ns = loop->woken ? world->now_ns : loop->wake_ns;

	for (const struct spoke_work *work = loop->finished; work; work = work->loop[0])
		if (finish_of(work) < due_ns)
			due_ns = finish_of(work);
	if (loop->process->held_until_ns > world->now_ns)
		return loop->process->held_until_ns;
	if (is_any_ready(loop))
		return world->now_ns;
	return due_ns > world->now_ns ? due_ns : world->now_ns;
}

/* Chooses the descriptors of this round: in random order, and often not all. */
static void report(struct spokei_world_loop *loop)
{
	struct spokei_world *world = loop->process->world;
	unsigned seen = 0;
	unsigned most = 1 + (unsigned)(world_dice(world) % REPORTED_MAX);

	loop->reported_count = 0;
	if (!is_any_ready(loop))
		return;
	for (struct spoke_list *at = loop->watches.next; at != &loop->watches; at = at->next) {
		unsigned place;

		if (!ready_of(loop, watch_of(at)))
			continue;
		seen++;
		place = (unsigned)(world_dice(world) % seen);
		if (loop->reported_count < most) {
			loop->reported[loop->reported_count] = loop->reported[place];
			loop->reported[place] = watch_of(at);
			loop->reported_count++;
		} else if (place < most) {
			loop->reported[place] = watch_of(at);
		}
	}
}

static void settle(struct spokei_world_loop *loop)
{
	loop->inside = true;
	loop->up->settle(loop->arg);
	loop->inside = false;
}

/* A wait takes its time whether it polls or sleeps; this computes the polled part. */
static void note_looks(struct spokei_world_loop *loop, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - loop->wait_ns;

	loop->process->looked_ns += waited_ns < loop->spin_ns ? waited_ns : loop->spin_ns;
}

/* The part of a round after the wait. */
static void turn_loop(struct spokei_world_loop *loop)
{
	struct spokei_world_process *process = loop->process;
	uint64_t now_ns = process->world->now_ns;
	uint64_t turn;
	unsigned served = 0;

	note_looks(loop, now_ns);
	process->begun_ns = now_ns;
	process->late_ns = now_ns > loop->wake_ns ? now_ns - loop->wake_ns : 0;
	loop->woken = false;
	loop->inside = true;
	turn = loop->up->begin(loop->arg);
	if (!process->pool_is_busy)
		finish_all(loop, &loop->queued, 0);
	if (!process->background_waits)
		finish_all(loop, &loop->behind, 0);
	hand_back_work(loop, now_ns);
	report(loop);
	for (unsigned i = 0; i < loop->reported_count; i++) {
		struct spoke_watch *watch = loop->reported[i];
		unsigned io = watch ? ready_of(loop, watch) : 0;

		if (io == 0)
			continue;
		served += watch->turn != turn;
		watch->turn = turn;
		watch->ready(watch, io);
	}
	loop->reported_count = 0;
	loop->up->turn(loop->arg, served);
	loop->inside = false;
	settle(loop);
	loop->wait_ns = process->world->now_ns;
	if (process->turned)
		process->turned(process);
}

/* A stop before the wait keeps the round from waiting and reading. */
static void do_round(struct spokei_world_loop *loop, bool wait)
{
	struct spokei_world *world = loop->process->world;

	settle(loop);
	if (loop->stopping)
		return;
	while (wait && due_of(loop) > world->now_ns) {
		uint64_t next_ns = spokei_vnet_next(world->net);
		uint64_t due_ns = due_of(loop);

		next_ns = due_ns < next_ns ? due_ns : next_ns;
		SPOKE_ASSERT(next_ns != UINT64_MAX); /* it would wait for ever */
		world->now_ns = next_ns;
	}
	turn_loop(loop);
}

static void loop_round(void *handle, bool wait)
{
	struct spokei_world_loop *loop = handle;

	loop->stopping = false;
	do_round(loop, wait);
}

static void loop_run(void *handle)
{
	struct spokei_world_loop *loop = handle;

	loop->stopping = false;
	while (!loop->stopping)
		do_round(loop, true);
}

static void loop_stop(void *handle)
{
	((struct spokei_world_loop *)handle)->stopping = true;
}

static const struct spoke_loop spokei_world_loop_table = {
	.open = loop_open,
	.retire = loop_retire,
	.close = loop_close,
	.watch = loop_watch,
	.wake_at = loop_wake_at,
	.again = loop_wake,
	.spin = loop_spin,
	.wake = loop_wake,
	.run = loop_run,
	.round = loop_round,
	.stop = loop_stop,
	.offload = loop_offload,
	.pool_limit = loop_pool_limit,
	.pool_look = loop_pool_look,
};

/* --- the world */

bool spokei_world_init(struct spokei_world *world, uint64_t seed)
{
	struct spokei_vnet_options options = { .now = world_now, .arg = world, .seed = seed };

	*world = (struct spokei_world){ .now_ns = START_NS,
					.dice = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) };
	spokei_list_init(&world->processes);
	world->net = spokei_vnet_new(&options);
	world->files = spokei_vfiles_new(world->net);
	return world->net && world->files;
}

void spokei_world_fini(struct spokei_world *world)
{
	SPOKE_ASSERT(spokei_list_empty(&world->processes));
	spokei_vnet_free(world->net);
	spokei_vfiles_free(world->files);
}

void spokei_world_process_init(struct spokei_world_process *process, struct spokei_world *world)
{
	*process = (struct spokei_world_process){
		.user = { .net = world->net, .files = world->files, .delay = delay_process },
		.world = world,
		.env = world_env,
		.host_id = SPOKEI_WORLD_HOST,
	};
	process->env.ctx = process;
	process->env.loop = &spokei_world_loop_table;
	spokei_list_append(&world->processes, &process->node);
}

void spokei_world_process_fini(struct spokei_world_process *process)
{
	SPOKE_ASSERT(process->loop == NULL);
	spokei_list_remove(&process->node);
}

/* All processes settle first: a write of one may give another one work. */
static void settle_all(struct spokei_world *world)
{
	for (struct spoke_list *at = world->processes.next; at != &world->processes;
	     at = at->next) {
		struct spokei_world_loop *loop =
			spoke_container_of(at, struct spokei_world_process, node)->loop;

		if (loop && loop->process->held_until_ns <= world->now_ns)
			settle(loop);
	}
}

/* Returns the loop that is due first; among equals, a random one. */
static struct spokei_world_loop *first_due(struct spokei_world *world, uint64_t *ret_due_ns)
{
	struct spokei_world_loop *first = NULL;
	unsigned equal = 0;

	*ret_due_ns = UINT64_MAX;
	for (struct spoke_list *at = world->processes.next; at != &world->processes;
	     at = at->next) {
		struct spokei_world_loop *loop =
			spoke_container_of(at, struct spokei_world_process, node)->loop;
		uint64_t due_ns;

		if (loop == NULL)
			continue;
		due_ns = due_of(loop);
		if (due_ns > *ret_due_ns)
			continue;
		equal = due_ns == *ret_due_ns ? equal + 1 : 1;
		*ret_due_ns = due_ns;
		if (world_dice(world) % equal == 0)
			first = loop;
	}
	return first;
}

static bool step(struct spokei_world *world, uint64_t until_ns)
{
	for (;;) {
		uint64_t due_ns;
		struct spokei_world_loop *loop = first_due(world, &due_ns);
		uint64_t next_ns = spokei_vnet_next(world->net);

		if (loop && due_ns <= world->now_ns) {
			turn_loop(loop);
			return true;
		}
		next_ns = due_ns < next_ns ? due_ns : next_ns;
		if (next_ns > until_ns) {
			world->now_ns = until_ns > world->now_ns ? until_ns : world->now_ns;
			return false;
		}
		world->now_ns = next_ns;
	}
}

bool spokei_world_step(struct spokei_world *world, uint64_t until_ns)
{
	settle_all(world);
	return step(world, until_ns);
}

void spokei_world_go(struct spokei_world *world, uint64_t until_ns)
{
	settle_all(world);
	world->halts = false;
	while (!world->halts && step(world, until_ns))
		continue;
}

void spokei_world_run(struct spokei_world *world, uint64_t until_ns)
{
	while (spokei_world_step(world, until_ns))
		continue;
}
