/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of choosing a provider: for each balancer and number of providers the CPU time of one
 * pick, and of a balancer's work after a change. Around each pick a call begins and the oldest one
 * ends, so that the arrays are as warm, and as lately written, as in use.
 *
 *     equal     same weights, mean latencies of 1.0 to 1.1 ms
 *     mixed     weights of 1 to 200, mean latencies of 1 to 5 ms, one address in 10 unavailable
 *     changed   one address has become unavailable, or available again
 *     fresh     all addresses are new
 */
#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"
#include "tests/bench/timers/dice.h"

#include <spoke/balancer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 1000u
#define REPS 9u
#define UNDER_WAY 4u /* calls in flight for each address */
#define KEYS 256u
#define KEY_LEN 16u

static const struct {
	const struct spoke_balancer *balancer;
	double target_ns; /* of a pick among 100 */
} contenders[] = {
	{ &spoke_balancer_random, 100 },          { &spoke_balancer_round_robin, 100 },
	{ &spoke_balancer_least_active, 100 },    { &spoke_balancer_shortest_response, 100 },
	{ &spoke_balancer_consistent_hash, 300 }, { &spoke_balancer_two_choices, 100 },
};

#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))

static const size_t sizes[] = { 3, 10, 100, 1000 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define TARGET_SIZE 100u

/* All inputs of a balancer. */
static struct world {
	uint8_t able[PLACES_MAX];
	uint32_t weights[PLACES_MAX];
	uint32_t actives[PLACES_MAX];
	uint64_t means_ns[PLACES_MAX];
	uint32_t successes[PLACES_MAX];
	uint64_t chosen_ns[PLACES_MAX];
	const char *names[PLACES_MAX];
	char texts[PLACES_MAX][40];
	size_t under_way[PLACES_MAX * UNDER_WAY]; /* addresses of the latest calls */
	unsigned char keys[KEYS][KEY_LEN];
	struct spoke_balancer_candidates candidates;
	struct dice dice;
	void *memory;
	uint64_t chosen; /* sum of all choices, so that none is optimized away */
} world;

static void place_one(size_t place, bool mixed)
{
	uint32_t chance = (uint32_t)dice_roll(&world.dice);

	world.able[place] = !mixed || place % 10 != 7;
	world.weights[place] = mixed ? 1 + dice_below(chance, 200) : 100;
	world.means_ns[place] = 1000000 + dice_below(chance, mixed ? 4000000 : 100000);
	world.successes[place] = 65536 - (mixed ? chance % 1000 : 0);
	world.actives[place] = 0;
	world.chosen_ns[place] = SECOND;
	world.names[place] = world.texts[place];
	(void)snprintf(world.texts[place], sizeof(world.texts[place]), "10.1.%zu.%zu:20880",
		       place / 250, place % 250 + 1);
}

static size_t room_of(const struct spoke_balancer *balancer, size_t count)
{
	return balancer->room ? balancer->room(count) : 1;
}

static void notify(const struct spoke_balancer *balancer, bool fresh)
{
	if (balancer->changed)
		balancer->changed(world.memory, &world.candidates, fresh);
}

static void begin(const struct spoke_balancer *balancer, size_t count, bool mixed)
{
	world.dice.state = DICE_SEED;
	for (size_t i = 0; i < count; i++)
		place_one(i, mixed);
	for (size_t i = 0; i < count * UNDER_WAY; i++) {
		world.under_way[i] = dice_below((uint32_t)dice_roll(&world.dice), (uint32_t)count);
		world.actives[world.under_way[i]]++;
	}
	for (size_t i = 0; i < KEYS * KEY_LEN; i++)
		world.keys[i / KEY_LEN][i % KEY_LEN] = (unsigned char)dice_roll(&world.dice);
	world.candidates = (struct spoke_balancer_candidates){
		.count = count,
		.able_count = count,
		.able = world.able,
		.weights = world.weights,
		.actives = world.actives,
		.means_ns = world.means_ns,
		.successes = world.successes,
		.chosen_ns = world.chosen_ns,
		.names = world.names,
	};
	world.memory = calloc(1, room_of(balancer, count));
	if (!world.memory)
		die("no memory for %zu addresses", count);
	notify(balancer, true);
}

static void end(void)
{
	free(world.memory);
	world.memory = NULL;
}

static void pick_many(const struct spoke_balancer *balancer, unsigned picks)
{
	size_t latest = 0;
	struct spoke_balancer_choice choice = { .timeout_ns = SECOND };

	for (unsigned i = 0; i < picks; i++) {
		size_t place;

		choice.dice = dice_roll(&world.dice);
		choice.now_ns = SECOND + i;
		choice.key = (struct spoke_span){ world.keys[i % KEYS], KEY_LEN };
		place = balancer->pick(world.memory, &world.candidates, &choice);
		if (place >= world.candidates.count)
			die("%s chose no address", balancer->name);
		world.chosen += place;
		world.actives[world.under_way[latest]]--;
		world.actives[place]++;
		world.chosen_ns[place] = choice.now_ns;
		world.under_way[latest] = place;
		if (++latest == world.candidates.count * UNDER_WAY)
			latest = 0;
	}
}

static void change_many(const struct spoke_balancer *balancer, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		world.able[0] = !world.able[0];
		notify(balancer, false);
	}
}

static void renew_many(const struct spoke_balancer *balancer, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		memset(world.memory, 0, room_of(balancer, world.candidates.count));
		notify(balancer, true);
	}
}

static const struct figure {
	const char *name;
	void (*run)(const struct spoke_balancer *balancer, unsigned times);
	unsigned times;
	bool mixed;
	bool is_pick; /* has a target; other actions are repeated less for many addresses */
} figures[] = {
	{ "equal", pick_many, 200000, false, true },
	{ "mixed", pick_many, 200000, true, true },
	{ "changed", change_many, 30000, true, false },
	{ "fresh", renew_many, 3000, true, false },
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static int compare(const void *one, const void *other)
{
	const double *a = one;
	const double *b = other;

	return (*a > *b) - (*a < *b);
}

/* Returns the median of the repetitions, in ns. */
static double measure(const struct spoke_balancer *balancer, const struct figure *figure,
		      size_t count, bool is_quick)
{
	unsigned times = figure->times / (is_quick ? 10 : 1);
	double samples[REPS];

	if (!figure->is_pick)
		times = 1 + times / (unsigned)count;
	begin(balancer, count, figure->mixed);
	figure->run(balancer, 1 + times / 10);
	for (unsigned rep = 0; rep < REPS; rep++) {
		uint64_t from_ns = cpu_ns();

		figure->run(balancer, times);
		samples[rep] = (double)(cpu_ns() - from_ns) / times;
	}
	end();
	qsort(samples, REPS, sizeof(samples[0]), compare);
	return samples[REPS / 2];
}

static bool run_row(size_t contender, const struct figure *figure, bool is_quick)
{
	const struct spoke_balancer *balancer = contenders[contender].balancer;
	double target = contenders[contender].target_ns;
	bool good = true;

	printf("%s\t%s", balancer->name, figure->name);
	for (size_t i = 0; i < SIZES; i++) {
		double ns = measure(balancer, figure, sizes[i], is_quick);

		printf("\t%.1f", ns);
		if (figure->is_pick && sizes[i] == TARGET_SIZE && ns > target)
			good = false;
	}
	if (figure->is_pick)
		printf("\t<= %.0f%s\n", target, good ? "" : " missed");
	else
		printf("\t-\n");
	(void)fflush(stdout);
	return good;
}

int main(int argc, char **argv)
{
	bool is_quick = false;
	bool is_check = false;
	const struct option_row rows[] = {
		{ "--quick", .flag = &is_quick },
		{ "--check", .flag = &is_check },
	};
	bool good = true;

	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), "[--quick] [--check]");
	printf("balancer\tfigure");
	for (size_t i = 0; i < SIZES; i++)
		printf("\tns_%zu", sizes[i]);
	printf("\ttarget_%u\n", TARGET_SIZE);
	for (size_t c = 0; c < CONTENDERS; c++)
		for (size_t f = 0; f < FIGURES; f++)
			good = run_row(c, &figures[f], is_quick) && good;
	return is_check && !good;
}
