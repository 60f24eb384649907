/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of the benchmark of comet, and its rows; see comet.h. */
#include "comet.h"
#include "tests/bench/common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- rows of the benchmark: medians of the floor and of spoke, and their ratio */

static bool missed;

static void figure_add(struct figure *figure, enum kind kind, double value)
{
	if (figure->count[kind] < REPS_MAX)
		figure->values[kind][figure->count[kind]++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct figure *figure, enum kind kind)
{
	double sorted[REPS_MAX];
	unsigned count = figure->count[kind];

	for (unsigned i = 0; i < count; i++)
		sorted[i] = figure->values[kind][i];
	qsort(sorted, count, sizeof(sorted[0]), compare);
	if (count == 0)
		return 0;
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static void print_value(double value, bool is_there)
{
	if (is_there)
		printf("%.*f\t", value < 10 ? 3 : value < 1000 ? 1 : 0, value);
	else
		printf("-\t");
}

static bool is_missed(const struct figure *figure, double target)
{
	double value = median(figure, SPOKE);

	return figure->count[SPOKE] > 0 && target > 0 &&
	       (figure->is_more ? value < target : value > target);
}

static void print_target(const struct figure *figure, double target, const char *end)
{
	if (target > 0)
		printf("%s %g%s%s", figure->is_more ? ">=" : "<=", target,
		       is_missed(figure, target) ? " missed" : "", end);
	else
		printf("-%s", end);
}

/* Prints the legend of the rows. */
static void figures_begin(void)
{
	printf("figure\tfloor\tspoke\tratio\tunit\tfirst bar\tgoal\n");
}

/* Prints a row: the medians of both, the ratio of spoke to the floor, and the targets. */
static void figure_print(const struct figure *figure)
{
	double low = median(figure, FLOOR);
	double value = median(figure, SPOKE);

	printf("%s\t", figure->name);
	print_value(low, figure->count[FLOOR] > 0);
	print_value(value, figure->count[SPOKE] > 0);
	print_value(low > 0 ? value / low : 0, low > 0 && figure->count[SPOKE] > 0);
	printf("%s\t", figure->unit);
	print_target(figure, figure->bar, "\t");
	print_target(figure, figure->goal, "\n");
	(void)fflush(stdout);
	missed |= is_missed(figure, figure->bar);
}

/* Returns whether all first bars were reached. */
static bool figures_are_good(void)
{
	return !missed;
}

/* --- many connections in several processes: how fast all connect, and the cost of idle ones */

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

static void measure_storm(const struct bench *bench)
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

/*
 * --- one gateway: broadcasts, and the latency of pushes to one user without and during
 * broadcasts
 */

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

static int fanout_compare(const void *a, const void *b)
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
	qsort(board->ns, count, sizeof(board->ns[0]), fanout_compare);
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

static void fanout_run(struct fanout *fanout, const struct bench *bench, enum kind kind)
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

static void measure_fanout(const struct bench *bench)
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
				fanout_run(&fanout, bench, kind);
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

/* --- one client in ten stops reading: the memory that each costs the gateway and the system */

#define CONNS 2000u
#define MUTE_EVERY 10u
#define MUTE_PAYLOAD 1000u
#define BROADCASTS 200u /* more than a connection's buffers and the ring of spoke hold together */
#define TOGETHER 10u
/* Returns the memory of all TCP sockets of the system in bytes. */
static double tcp_memory(void)
{
	FILE *file = fopen("/proc/net/sockstat", "re");
	char line[256];
	unsigned long pages = 0;

	if (file == NULL)
		die("cannot read /proc/net/sockstat");
	while (fgets(line, sizeof(line), file)) {
		const char *memory = strstr(line, " mem ");

		if (strncmp(line, "TCP:", 4) == 0 && memory)
			pages = strtoul(memory + 5, NULL, 10);
	}
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Sends broadcasts, a few at a time, and waits until those that read have them. */
static uint64_t mute_broadcast(struct stage *stage, unsigned readers)
{
	uint64_t wanted = stage_sums(stage).broadcasts;
	uint64_t begun_ns = now_ns();

	for (unsigned i = 0; i < BROADCASTS; i += TOGETHER) {
		wanted += (uint64_t)readers * TOGETHER;
		stage_cast(stage, TOGETHER, MUTE_PAYLOAD);
		stage_hear(stage, wanted);
		stage_wait(&stage->caster);
	}
	return now_ns() - begun_ns;
}

static void measure_mute(const struct bench *bench)
{
	const struct stage_options options = {
		.kind = SPOKE,
		.gateways = 1,
		.conns = CONNS,
		.mute_every = MUTE_EVERY,
	};
	unsigned mute = CONNS / MUTE_EVERY;
	struct figure bytes = { "mute_bytes", "bytes each", .bar = 40000, .goal = 20000 };
	struct figure kernel = { "mute_kernel_bytes", "bytes each", .bar = 0 };
	struct figure slower = { "mute_delays_others", "ratio of times", .bar = 0 };
	struct stage stage;
	double resident;
	double memory;
	uint64_t before_ns;
	uint64_t after_ns;

	if (!bench->has[SPOKE])
		return;
	stage_open(&stage, &options);
	(void)stage_storm(&stage);
	before_ns = mute_broadcast(&stage, CONNS);
	resident = (double)stage_resident(&stage);
	memory = tcp_memory();
	stage_mute(&stage);
	after_ns = mute_broadcast(&stage, CONNS - mute);
	figure_add(&bytes, SPOKE, ((double)stage_resident(&stage) - resident) / mute);
	figure_add(&kernel, SPOKE, (tcp_memory() - memory) / mute);
	figure_add(&slower, SPOKE, (double)after_ns / (double)before_ns);
	stage_close(&stage, false);
	figure_print(&bytes);
	figure_print(&kernel);
	figure_print(&slower);
}

/* --- measures gateways of comet; fails if a first bar was missed or an event got lost */

#define CONNS_DEFAULT 100000u
#define CONNS_QUICK 12000u

static void make_room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot read the limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < CONNS_MAX + 100 || setrlimit(RLIMIT_NOFILE, &limit))
		die("a hard limit of %u descriptors is needed; it is %lu", CONNS_MAX + 100,
		    (unsigned long)limit.rlim_max);
}

int main(int argc, char **argv)
{
	struct bench bench = { .broadcasts = 10 };
	bool is_short = false;
	uint64_t conns = 0;
	const char *part = "";
	const char *only = "";
	const struct option_row options[] = {
		{ "--quick", .flag = &bench.is_quick },
		{ "--connections", .number = &conns, .min = 1000, .max = 100002 },
		{ "--no-idle", .flag = &is_short },
		{ "--idle-minutes", .number = &bench.idle_minutes, .min = 1, .max = 1440 },
		{ "--part", .text = &part },
		{ "--only", .text = &only },
		{ "--broadcasts", .number = &bench.broadcasts, .min = 1, .max = 10000 },
	};

	options_read(argc, argv, options, sizeof(options) / sizeof(options[0]),
		     "[--quick] [--connections <number>] [--no-idle | --idle-minutes <number>] "
		     "[--part storm|fanout|mute] "
		     "[--only floor|spoke] [--broadcasts <number>]");
	bench.conns = conns > 0 ? (unsigned)conns : bench.is_quick ? CONNS_QUICK : CONNS_DEFAULT;
	bench.is_idle = !bench.is_quick && !is_short;
	bench.has[FLOOR] = strcmp(only, "spoke") != 0;
	bench.has[SPOKE] = strcmp(only, "floor") != 0;
	make_room();
	if (bench.has[FLOOR] && bench.has[SPOKE])
		stage_learn_answer();
	figures_begin();
	if (*part == '\0' || strcmp(part, "storm") == 0)
		measure_storm(&bench);
	if (*part == '\0' || strcmp(part, "fanout") == 0)
		measure_fanout(&bench);
	if (*part == '\0' || strcmp(part, "mute") == 0)
		measure_mute(&bench);
	return !figures_are_good();
}
