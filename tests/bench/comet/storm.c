/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections in several processes: how fast all connect, and the cost of idle ones. */
#include "comet.h"

#include <stdio.h>

#define EACH 16667u   /* connections of one gateway */
#define KEEPALIVES 3u /* intervals in which idle connections of spoke are measured */
#define FLOOR_INTERVALS 2u
#define KEEPALIVE_NS (25 * SECOND)
#define SETTLE_NS SECOND /* after the storm */

struct storm {
	struct figure seconds;
	struct figure rate;
	struct figure cpu_us; /* of a connection */
	struct figure resident;
	struct figure proportional;
	struct figure bytes; /* user memory of a connection */
	struct figure cpu;   /* percent of a core, idle */
	struct figure beats;
	struct figure growth; /* of memory, after the first interval */
	unsigned intervals;   /* in which idle connections are measured */
};

static void measure_idle_for(struct storm *storm, struct stage *stage, uint64_t empty)
{
	unsigned intervals = stage->kind == FLOOR ? FLOOR_INTERVALS : storm->intervals;
	uint64_t resident = stage_resident(stage);
	uint64_t settled;
	uint64_t begun_ns;
	uint64_t cpu_ns;
	uint64_t comments;

	pause_ns(SETTLE_NS);
	comments = stage_sums(stage).comments;
	cpu_ns = stage_cpu_ns(stage);
	begun_ns = now_ns();
	pause_ns(KEEPALIVE_NS);
	settled = stage_resident(stage);
	pause_ns((intervals - 1) * KEEPALIVE_NS);
	cpu_ns = stage_cpu_ns(stage) - cpu_ns;
	begun_ns = now_ns() - begun_ns;
	comments = stage_sums(stage).comments - comments;
	figure_add(&storm->cpu, stage->kind, 100.0 * (double)cpu_ns / (double)begun_ns);
	figure_add(&storm->beats, stage->kind,
		   (double)comments * (double)SECOND / (double)begun_ns);
	if (stage_resident(stage) > resident)
		resident = stage_resident(stage);
	figure_add(&storm->growth, stage->kind,
		   ((double)stage_resident(stage) - (double)settled) / 1e6);
	figure_add(&storm->resident, stage->kind, (double)resident / 1e6);
	figure_add(&storm->proportional, stage->kind, (double)stage_proportional(stage) / 1e6);
	figure_add(&storm->bytes, stage->kind, (double)(resident - empty) / stage->conns);
}

static void run(struct storm *storm, const struct bench *bench, enum kind kind, bool is_idle)
{
	const struct stage_options options = {
		.kind = kind,
		.gateways = (bench->conns + EACH - 1) / EACH,
		.conns = bench->conns,
	};
	struct stage stage;
	uint64_t empty;
	uint64_t cpu_ns;
	uint64_t took_ns;

	stage_open(&stage, &options);
	empty = stage_resident(&stage);
	cpu_ns = stage_cpu_ns(&stage);
	took_ns = stage_storm(&stage);
	cpu_ns = stage_cpu_ns(&stage) - cpu_ns;
	figure_add(&storm->seconds, kind, (double)took_ns / (double)SECOND);
	figure_add(&storm->rate, kind, (double)bench->conns * (double)SECOND / (double)took_ns);
	figure_add(&storm->cpu_us, kind, (double)cpu_ns / (double)US / bench->conns);
	if (is_idle)
		measure_idle_for(storm, &stage, empty);
	stage_close(&stage, true);
}

void measure_storm(const struct bench *bench)
{
	/* Targets are those of 100,000 connections. */
	double share = bench->conns / 100000.0;
	unsigned reps = bench->is_quick ? 1 : 2;
	struct storm storm = {
		.seconds = { "storm", "s", 10 * share, 5 * share },
		.rate = { "storm_rate", "connections/s", .is_more = true },
		.cpu_us = { "storm_cpu", "us each" },
		.resident = { "idle_resident", "MB", 60 * share, 30 * share },
		.proportional = { "idle_proportional", "MB" },
		.bytes = { "idle_bytes", "bytes each", 512, 256 },
		.cpu = { "idle_cpu", "% of a core", 6 * share, 4.5 * share },
		.beats = { "idle_keepalives", "1/s" },
		.growth = { "idle_growth", "MB", share, 0.1 * share },
		.intervals = bench->idle_minutes > 0
				     ? (unsigned)(bench->idle_minutes * 60 * SECOND / KEEPALIVE_NS)
				     : KEEPALIVES,
	};

	for (unsigned rep = 0; rep < reps; rep++) {
		for (unsigned i = 0; i < KINDS; i++) {
			enum kind kind = rep % 2 ? KINDS - 1 - i : i;

			if (bench->has[kind])
				run(&storm, bench, kind, bench->is_idle && rep + 1 == reps);
		}
	}
	figure_print(&storm.seconds);
	figure_print(&storm.rate);
	figure_print(&storm.cpu_us);
	if (!bench->is_idle)
		return;
	figure_print(&storm.resident);
	figure_print(&storm.proportional);
	figure_print(&storm.bytes);
	figure_print(&storm.cpu);
	figure_print(&storm.beats);
	figure_print(&storm.growth);
}
