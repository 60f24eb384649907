/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for frames that cost a provider much CPU time for their bytes, and compares them with an
 * echo of 32 characters in the same run. The provider has no token, or has one that its peers do
 * not know.
 */
#include "tests/bench/common/options.h"
#include "tests/bench/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAMES_MAX 256u
#define BAR 8.0    /* times the echo */
#define SURE 15u   /* measurements of a frame that counts */
#define WITHOUT 0u /* a token */
#define WITH 1u

/* The dearest frame known of each name. */
struct found {
	struct hostile_frame frame;
	struct hostile_cost cost;
};

static struct {
	struct found found[FRAMES_MAX];
	size_t count;
	double echo_ns;
	const char *only; /* frames of this name; NULL: all */
	uint64_t dice;
	uint64_t tried;
} search;

static struct found *of_name(const char *name)
{
	for (size_t i = 0; i < search.count; i++)
		if (strcmp(search.found[i].frame.name, name) == 0)
			return &search.found[i];
	if (search.count == FRAMES_MAX)
		return NULL;
	search.found[search.count].cost.ns = -1e9;
	return &search.found[search.count++];
}

/* Keeps a frame if it is dearer than that of its name. */
static void consider(const struct hostile_frame *frame)
{
	struct found *at;
	struct hostile_cost cost;

	if (search.only && strcmp(search.only, frame->name) != 0)
		return;
	at = of_name(frame->name);
	if (at == NULL)
		return;
	cost = hostile_measure(frame, 3);
	search.tried++;
	if (cost.ns > at->cost.ns * 1.03)
		cost = hostile_measure(frame, SURE);
	if (cost.ns <= at->cost.ns)
		return;
	at->frame = *frame;
	at->cost = cost;
}

/* Keeps a frame, whatever it costs. */
static void known(const struct hostile_frame *frame)
{
	struct found *at = of_name(frame->name);

	if (at && (search.only == NULL || strcmp(search.only, frame->name) == 0))
		at->frame = *frame;
}

static void read_seeds(const char *path, void (*take)(const struct hostile_frame *frame))
{
	static char line[2 * HOSTILE_FRAME_MAX + 64];
	static struct hostile_frame frame;
	FILE *file = path ? fopen(path, "r") : NULL;

	for (size_t at = 0; hostile_seed(at, &frame); at++)
		take(&frame);
	if (path && file == NULL) {
		perror(path);
		exit(1);
	}
	while (file && fgets(line, sizeof(line), file))
		if (line[0] != '#' && hostile_read(line, &frame))
			take(&frame);
	if (file)
		(void)fclose(file);
}

/* Chooses the dearer one of two. */
static const struct found *choose(void)
{
	const struct found *a = &search.found[hostile_dice(&search.dice) % search.count];
	const struct found *b = &search.found[hostile_dice(&search.dice) % search.count];

	return a->cost.ns > b->cost.ns ? a : b;
}

static void explore(uint64_t seconds)
{
	static struct hostile_frame frame;
	time_t until = time(NULL) + (time_t)seconds;

	while (time(NULL) < until) {
		frame = choose()->frame;
		hostile_mutate(&frame, &choose()->frame, &search.dice);
		if (frame.len > 0)
			consider(&frame);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct found *left = a;
	const struct found *right = b;

	return (left->cost.ns < right->cost.ns) - (left->cost.ns > right->cost.ns);
}

/* Prints the rows, the dearest first. Returns whether all are within the bar. */
static bool print(unsigned token, FILE *save)
{
	bool reached = true;

	qsort(search.found, search.count, sizeof(search.found[0]), by_cost);
	for (size_t i = 0; i < search.count; i++) {
		const struct found *at = &search.found[i];
		double times = at->cost.ns / search.echo_ns;

		reached &= times <= BAR;
		(void)printf("%s\t%s\t%zu\t%.2f\t%.2f\t%.2f\t%u\t%llu\t%s\n", at->frame.name,
			     token == WITH ? "unproven" : "no token", at->frame.len, at->cost.ns,
			     times, at->cost.answers, at->cost.conns,
			     (unsigned long long)at->cost.handled,
			     times <= BAR ? "reached" : "SHORT");
		if (save && times > BAR / 2)
			hostile_print(&at->frame, save);
	}
	(void)fflush(stdout);
	return reached;
}

static bool run(unsigned token, const char *frames, uint64_t seconds, FILE *save)
{
	static struct hostile_frame frame;
	bool reached;

	hostile_begin(false);
	hostile_echo(false, &frame);
	search.echo_ns = hostile_measure(&frame, 4 * SURE).ns;
	hostile_end();
	hostile_begin(token == WITH);
	search.count = 0;
	search.tried = 0;
	consider(&frame);
	hostile_echo(true, &frame);
	consider(&frame);
	read_seeds(frames, consider);
	explore(seconds);
	reached = print(token, save);
	hostile_end();
	(void)fprintf(stderr, "%llu frames; the echo takes %.2f ns for each byte\n",
		      (unsigned long long)search.tried, search.echo_ns);
	return reached;
}

/* Feeds a provider with the frame of a name only. Prints the bytes that it has taken. */
static void feed(const char *name, const char *frames, bool token)
{
	const struct found *at;
	static struct hostile_frame frame;

	search.only = name;
	hostile_echo(false, &frame);
	known(&frame);
	hostile_echo(true, &frame);
	known(&frame);
	read_seeds(frames, known);
	at = of_name(name);
	hostile_begin(token);
	(void)printf("%zu\n", at && at->frame.len > 0 ? hostile_feed(&at->frame) : 0);
	hostile_end();
}

int main(int argc, char **argv)
{
	uint64_t seconds = 0;
	uint64_t seed = 1;
	const char *frames = NULL;
	const char *path = NULL;
	const char *name = NULL;
	bool token = false;
	const struct option_row options[] = {
		{ "--search", .number = &seconds, .max = 86400 },
		{ "--seed", .number = &seed, .max = UINT64_MAX },
		{ "--frames", .text = &frames },
		{ "--only", .text = &search.only },
		{ "--save", .text = &path },
		{ "--feed", .text = &name },
		{ "--token", .flag = &token },
	};
	FILE *save = NULL;
	bool reached;

	options_read(argc, argv, options, sizeof(options) / sizeof(options[0]),
		     "[--search <seconds>] [--seed <number>] [--frames <file>] [--only <name>] "
		     "[--save <file>] | --feed <name> [--token] [--frames <file>]");
	search.dice = seed;
	if (name) {
		feed(name, frames, token);
		return 0;
	}
	if (path) {
		save = fopen(path, "w");
		if (save == NULL) {
			perror(path);
			return 1;
		}
	}
	(void)printf(
		"frame\tprovider\tbytes\tns_per_byte\ttimes_echo\tanswers\tconnections\thandled"
		"\ttarget\n");
	reached = run(WITHOUT, frames, seconds, save);
	reached &= run(WITH, frames, seconds, save);
	if (save)
		(void)fclose(save);
	return reached ? 0 : 1;
}
