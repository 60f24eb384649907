/* SPDX-License-Identifier: Apache-2.0 */
/* One gateway: broadcasts, and the latency of pushes to one user without and during broadcasts. */
#include "comet.h"

#include <stdlib.h>

#define ONE_MAX 19000u /* connections, those of the listeners included */
#define PAYLOAD 100u   /* bytes of data; with the other lines of an event some 150 */
#define BURST 8u       /* broadcasts at one time */
#define PUSHES_PER_S 10000u
#define QUIET_S 2u
#define BUSY_S 3u
#define PAUSE_NS (SECOND / 2) /* for the server to close connections */

struct fanout {
	struct figure connect;
	struct figure rate;
	struct figure cpu_us;
	struct figure once;
	struct figure burst;
	struct figure woken;
	struct figure quiet_p50;
	struct figure quiet_p99;
	struct figure busy_p50;
	struct figure busy_p99;
	struct figure busy_rate;
	struct figure back;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the percentile of the latencies in us. Sorts them. */
static double percentile_us(struct board *board, unsigned percent)
{
	uint64_t count = board->samples < SAMPLES_MAX ? board->samples : SAMPLES_MAX;
	uint64_t at;

	if (count == 0)
		die("no push has arrived");
	qsort(board->ns, count, sizeof(board->ns[0]), compare);
	at = (count - 1) * percent / 100;
	return (double)board->ns[at] / (double)US;
}

/* Sends broadcasts, `together` at a time, and returns the time until all have got all. */
static uint64_t broadcast(struct stage *stage, unsigned times, unsigned together)
{
	uint64_t wanted = stage_sums(stage).broadcasts;
	uint64_t begun_ns = now_ns();

	for (unsigned i = 0; i < times; i++) {
		wanted += (uint64_t)stage->conns * together;
		stage_cast(stage, together, PAYLOAD);
		stage_hear(stage, wanted);
		stage_wait(&stage->caster);
	}
	return now_ns() - begun_ns;
}

static void measure_broadcasts(struct fanout *fanout, struct stage *stage, unsigned times)
{
	uint64_t cpu_ns;
	uint64_t took_ns;
	double messages = (double)stage->conns * times;

	(void)broadcast(stage, 1, 1);
	cpu_ns = stage_cpu_ns(stage);
	took_ns = broadcast(stage, times, 1);
	cpu_ns = stage_cpu_ns(stage) - cpu_ns;
	figure_add(&fanout->rate, stage->kind, messages * (double)SECOND / (double)took_ns);
	figure_add(&fanout->cpu_us, stage->kind, (double)cpu_ns / (double)US / messages);
	figure_add(&fanout->once, stage->kind, (double)took_ns / (double)MS / times);
	took_ns = broadcast(stage, 1, BURST);
	figure_add(&fanout->burst, stage->kind,
		   (double)stage->conns * BURST * (double)SECOND / (double)took_ns);
}

/* The same, where nearly each event wakes the process that reads it. */
static void measure_woken(struct fanout *fanout, struct stage *stage, unsigned times)
{
	uint64_t took_ns;

	stage_sleep(stage);
	took_ns = broadcast(stage, times, 1);
	figure_add(&fanout->woken, stage->kind,
		   (double)stage->conns * times * (double)SECOND / (double)took_ns);
}

/* Waits until pushes have reached their pages. */
static void finish_pushes(struct stage *stage, uint64_t wanted)
{
	uint64_t begun_ns = now_ns();

	stage_wait(&stage->pusher);
	while (stage_sums(stage).pushes < wanted) {
		if (now_ns() - begun_ns > 10 * SECOND)
			die("only %lu of %lu pushes have arrived",
			    (unsigned long)stage_sums(stage).pushes, (unsigned long)wanted);
		pause_ns(MS);
	}
}

static void measure_pushes(struct fanout *fanout, struct stage *stage)
{
	struct board *board = stage->board;
	uint64_t pushes = (uint64_t)QUIET_S * PUSHES_PER_S;
	uint64_t begun_ns;
	uint64_t broadcasts;

	stage_push(stage, PUSHES_PER_S, QUIET_S * PUSHES_PER_S);
	finish_pushes(stage, pushes);
	figure_add(&fanout->quiet_p50, stage->kind, percentile_us(board, 50));
	figure_add(&fanout->quiet_p99, stage->kind, percentile_us(board, 99));

	board->samples = 0;
	broadcasts = stage_sums(stage).broadcasts;
	begun_ns = now_ns();
	stage_push(stage, PUSHES_PER_S, BUSY_S * PUSHES_PER_S);
	while (now_ns() - begun_ns < BUSY_S * SECOND)
		(void)broadcast(stage, 1, 1);
	broadcasts = stage_sums(stage).broadcasts - broadcasts;
	figure_add(&fanout->busy_rate, stage->kind,
		   (double)broadcasts * (double)SECOND / (double)(now_ns() - begun_ns));
	finish_pushes(stage, pushes + (uint64_t)BUSY_S * PUSHES_PER_S);
	figure_add(&fanout->busy_p50, stage->kind, percentile_us(board, 50));
	figure_add(&fanout->busy_p99, stage->kind, percentile_us(board, 99));
}

/* All come back at one time with their last ids. From spoke they get a message that they have
 * missed; the floor keeps none. */
static void measure_return(struct fanout *fanout, struct stage *stage)
{
	uint64_t wanted = stage_sums(stage).broadcasts + stage->conns;

	stage_drop(stage);
	if (stage->kind == SPOKE) {
		stage_cast(stage, 1, PAYLOAD);
		stage_wait(&stage->caster);
	}
	pause_ns(PAUSE_NS);
	figure_add(&fanout->back, stage->kind,
		   stage->conns * (double)SECOND / (double)stage_storm(stage));
	if (stage->kind == SPOKE)
		stage_hear(stage, wanted);
}

static void run(struct fanout *fanout, const struct bench *bench, enum kind kind)
{
	const struct stage_options options = {
		.kind = kind,
		.gateways = 1,
		.conns = bench->conns < ONE_MAX ? bench->conns : ONE_MAX,
		.has_listeners = true,
	};
	struct stage stage;

	stage_open(&stage, &options);
	figure_add(&fanout->connect, kind,
		   options.conns * (double)SECOND / (double)stage_storm(&stage));
	measure_broadcasts(fanout, &stage, (unsigned)bench->broadcasts);
	measure_pushes(fanout, &stage);
	measure_return(fanout, &stage);
	measure_woken(fanout, &stage, (unsigned)bench->broadcasts);
	stage_close(&stage, true);
}

void measure_fanout(const struct bench *bench)
{
	unsigned reps = bench->is_quick ? 1 : 3;
	struct fanout fanout = {
		.connect = { "one_storm_rate", "connections/s", .is_more = true },
		.rate = { "fanout", "messages/s", 60000, 95000, .is_more = true },
		.cpu_us = { "fanout_cpu", "us each" },
		.once = { "fanout_once", "ms" },
		.burst = { "fanout_of_8_at_once", "messages/s", .is_more = true },
		.woken = { "fanout_woken", "messages/s", 60000, 95000, .is_more = true },
		.quiet_p50 = { "push_p50", "us", 200, 80 },
		.quiet_p99 = { "push_p99", "us", 5000, 1000 },
		.busy_p50 = { "push_during_broadcast_p50", "us" },
		.busy_p99 = { "push_during_broadcast_p99", "us", 20000, 3000 },
		.busy_rate = { "broadcast_during_pushes", "messages/s", .is_more = true },
		.back = { "one_return_rate", "connections/s", .is_more = true },
	};

	for (unsigned rep = 0; rep < reps; rep++) {
		for (unsigned i = 0; i < KINDS; i++) {
			enum kind kind = rep % 2 ? KINDS - 1 - i : i;

			if (bench->has[kind])
				run(&fanout, bench, kind);
		}
	}
	figure_print(&fanout.connect);
	figure_print(&fanout.rate);
	figure_print(&fanout.cpu_us);
	figure_print(&fanout.once);
	figure_print(&fanout.burst);
	figure_print(&fanout.woken);
	figure_print(&fanout.quiet_p50);
	figure_print(&fanout.quiet_p99);
	figure_print(&fanout.busy_p50);
	figure_print(&fanout.busy_p99);
	figure_print(&fanout.busy_rate);
	figure_print(&fanout.back);
}
