/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of many providers: the longest turn, in CPU time of its thread, while a list of them
 * arrives and when single entries of it change; and the choice of a balancer, with the notices of
 * a call's begin and end. Every figure is one row on stdout.
 */
#include "cluster/balancer/balancers.h"
#include "cluster/balancer/state.h"
#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/registry.h>

#include <ev.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MANY 10000u
#define PICKS 1000000u
#define REPEATS 7u
#define CHANGES 21u
#define TEXT_MAX 512u
#define LISTENERS 8u

/* --- providers that accept and say nothing. Several listeners, because the kernel bounds what
 * waits at one */

static int listeners[LISTENERS];

static void accept_all(void *arg, int in, int out)
{
	struct pollfd polls[LISTENERS];

	(void)arg;
	(void)in;
	(void)out;
	for (unsigned i = 0; i < LISTENERS; i++)
		polls[i] = (struct pollfd){ .fd = listeners[i], .events = POLLIN };
	while (poll(polls, LISTENERS, -1) > 0)
		for (unsigned i = 0; i < LISTENERS; i++)
			while (accept(listeners[i], NULL, NULL) >= 0)
				;
	_exit(0);
}

static uint16_t listen_at_any(int *ret_listener)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (bind(fd, (const struct sockaddr *)&address, len) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		die("cannot listen");
	*ret_listener = fd;
	return ntohs(address.sin_port);
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < MANY + 200)
		die("%u connections need a hard limit of more descriptors", MANY);
	limit.rlim_cur = MANY + 200;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		die("setrlimit failed");
}

/* --- the registry: its list is the bench's */

static struct {
	const struct spoke_registry_up *up;
	void *arg;
	struct spoke_registry_entry *entry; /* the subscription */
} registry;

static int open_registry(struct spoke_engine *engine, const struct spoke_url *url,
			 const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	(void)engine;
	(void)url;
	registry.up = up;
	registry.arg = arg;
	*ret_registry = &registry;
	return 0;
}

static void want(void *of, struct spoke_registry_entry *entry)
{
	(void)of;
	if (entry->url == NULL)
		registry.entry = entry;
	registry.up->state(registry.arg, entry, 0);
}

static void unwant(void *of, struct spoke_registry_entry *entry)
{
	(void)of;
	registry.up->state(registry.arg, entry, 0);
}

static void close_registry(void *of)
{
	(void)of;
}

static const struct spoke_registry of_bench = {
	.scheme = "bench",
	.open = open_registry,
	.want = want,
	.unwant = unwant,
	.close = close_registry,
};

/* --- turns */

static struct {
	struct ev_loop *loop;
	struct ev_check begin; /* first after the poll */
	struct ev_prepare end; /* last before it */
	struct ev_timer start;
	struct ev_timer stop;
	uint64_t begun_ns;
	uint64_t longest_ns;
	uint64_t sum_ns;
	const char *texts; /* to be reported; NULL: none */
	size_t count;
} turns;

static uint64_t thread_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void turn_begins(struct ev_loop *loop, struct ev_check *watcher, int events)
{
	(void)loop;
	(void)watcher;
	(void)events;
	turns.begun_ns = thread_ns();
}

static void turn_ends(struct ev_loop *loop, struct ev_prepare *watcher, int events)
{
	uint64_t took_ns = turns.begun_ns ? thread_ns() - turns.begun_ns : 0;

	(void)loop;
	(void)watcher;
	(void)events;
	turns.begun_ns = 0;
	turns.longest_ns = took_ns > turns.longest_ns ? took_ns : turns.longest_ns;
	turns.sum_ns += took_ns;
}

static void report_list(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	(void)loop;
	(void)watcher;
	(void)events;
	if (turns.texts)
		registry.up->list(registry.arg, registry.entry, turns.texts, turns.count);
	turns.texts = NULL;
}

static void stop(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	(void)watcher;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void open_turns(void)
{
	turns.loop = ev_loop_new(EVFLAG_AUTO);
	ev_check_init(&turns.begin, turn_begins);
	ev_set_priority(&turns.begin, EV_MAXPRI);
	ev_check_start(turns.loop, &turns.begin);
	ev_timer_init(&turns.start, report_list, 0, 0);
	ev_timer_init(&turns.stop, stop, 0, 0);
}

/* The engine's own watcher of this priority has been started before, so it runs before this one. */
static void watch_ends(void)
{
	ev_prepare_init(&turns.end, turn_ends);
	ev_set_priority(&turns.end, EV_MINPRI);
	ev_prepare_start(turns.loop, &turns.end);
}

static void run_for(double seconds)
{
	turns.longest_ns = turns.sum_ns = 0;
	ev_now_update(turns.loop);
	ev_timer_set(&turns.start, 0.001, 0);
	ev_timer_start(turns.loop, &turns.start);
	ev_timer_set(&turns.stop, seconds, 0);
	ev_timer_start(turns.loop, &turns.stop);
	(void)ev_run(turns.loop, 0);
}

/* --- lists */

static uint16_t ports[LISTENERS];
static char *texts;
static size_t texts_len;

static void put_text(size_t number, unsigned weight)
{
	texts_len += (size_t)snprintf(
		texts + texts_len, TEXT_MAX,
		"dubbo://127.%zu.%zu.%zu:%u/demo.EchoService?anyhost=true&application=bench&"
		"deprecated=false&dubbo=2.0.2&dynamic=true&generic=false&interface=demo."
		"EchoService&"
		"methods=echo,reverse,sum&pid=4711&release=2.7.15&side=provider&"
		"timestamp=1600000000000&weight=%u",
		1 + number / 62500, number / 250 % 250, 1 + number % 250, ports[number % LISTENERS],
		weight);
	texts[texts_len++] = '\0';
}

/* Writes a list in which one entry is missing, and another has its own weight. */
static void put_list(size_t missing, size_t heavy)
{
	texts_len = 0;
	turns.count = 0;
	for (size_t i = 0; i < MANY; i++) {
		if (i == missing)
			continue;
		put_text(i, i == heavy ? 200 : 100);
		turns.count++;
	}
	turns.texts = texts;
}

static void report_turns(const char *what, double longest_ms, double sum_ms, double target_ms)
{
	char figure[80];

	(void)snprintf(figure, sizeof(figure), "%s: longest turn", what);
	report(figure, longest_ms, "ms", target_ms);
	(void)snprintf(figure, sizeof(figure), "%s: all turns", what);
	report(figure, sum_ms, "ms", 0);
}

static int compare(const void *one, const void *other)
{
	double first = *(const double *)one;
	double second = *(const double *)other;

	return (first > second) - (first < second);
}

/* Changes a list, and back, some times; reports the medians. */
static void measure_change(const char *what, size_t missing, size_t heavy)
{
	double longest[CHANGES];
	double sums[CHANGES];

	for (unsigned i = 0; i < CHANGES; i++) {
		put_list(i % 2 ? MANY : missing, i % 2 ? MANY : heavy);
		run_for(0.1);
		longest[i] = (double)turns.longest_ns / 1e6;
		sums[i] = (double)turns.sum_ns / 1e6;
	}
	qsort(longest, CHANGES, sizeof(longest[0]), compare);
	qsort(sums, CHANGES, sizeof(sums[0]), compare);
	report_turns(what, longest[CHANGES / 2], sums[CHANGES / 2], 0.5);
}

static void measure_lists(void)
{
	struct spoke_engine_options with = { .spin_ns = SPOKE_ENGINE_SPIN_OFF };
	struct spoke_consumer_options options = {
		.url = "consumer://any/demo.EchoService?endpoints.max=65536",
		.registry = "bench://here",
		.registry_kind = &of_bench,
		.heartbeat_ns = SPOKE_OFF,
	};
	struct spoke_consumer *consumer;
	struct spoke_engine *engine;
	struct helper helper;

	for (unsigned i = 0; i < LISTENERS; i++)
		ports[i] = listen_at_any(&listeners[i]);
	helper_start(&helper, accept_all, NULL);
	texts = malloc((size_t)MANY * TEXT_MAX);
	open_turns();
	with.native = turns.loop;
	must("engine", spoke_engine_new(&with, &engine));
	must("consumer", spoke_consumer_new(engine, &options, &consumer));
	watch_ends();
	run_for(0.1);
	put_list(MANY, MANY);
	run_for(3);
	report_turns("list arrives", (double)turns.longest_ns / 1e6, (double)turns.sum_ns / 1e6, 2);
	if (spoke_consumer_ready(consumer) != MANY)
		die("%zu connections", spoke_consumer_ready(consumer));
	measure_change("same list again", MANY, MANY);
	measure_change("one weight changes", MANY, MANY / 2);
	measure_change("one entry goes and comes", MANY / 3, MANY);
	helper_end(&helper);
}

/* --- choices */

static struct {
	uint8_t able[MANY];
	uint32_t weights[MANY];
	uint32_t actives[MANY];
	uint64_t means_ns[MANY];
	uint32_t successes[MANY];
	uint64_t chosen_ns[MANY];
	const char *names[MANY];
	char texts[MANY][24];
	uint32_t moved[2 * MANY];
} arrays;

static const struct spoke_balancer_candidates all = {
	.able = arrays.able,
	.weights = arrays.weights,
	.actives = arrays.actives,
	.means_ns = arrays.means_ns,
	.successes = arrays.successes,
	.chosen_ns = arrays.chosen_ns,
	.names = arrays.names,
};

static void fill_arrays(bool even)
{
	for (size_t i = 0; i < MANY; i++) {
		arrays.able[i] = 1;
		arrays.weights[i] = even ? 100 : 1 + (uint32_t)(i * 7919 % 100);
		arrays.means_ns[i] = 1000000 + i * 7919 % 100000;
		arrays.successes[i] = 65536;
		arrays.chosen_ns[i] = SECOND;
		arrays.names[i] = arrays.texts[i];
		(void)snprintf(arrays.texts[i], sizeof(arrays.texts[i]), "10.%zu.%zu.%zu:20880",
			       i / 62500, i / 250 % 250, 1 + i % 250);
	}
	memset(arrays.actives, 0, sizeof(arrays.actives));
}

#define IN_FLIGHT 64u

/* Picks for calls of which a few are in flight. Returns ns per pick. */
static double pick_many(const struct spoke_balancer *balancer, size_t count, uint32_t picks)
{
	struct spoke_balancer_candidates candidates = all;
	struct spoke_balancer_choice choice = { .now_ns = 2 * SECOND, .timeout_ns = 10 * SECOND };
	struct spokei_changes changes = {
		.version = 1,
		.moved = { .places = arrays.moved, .mask = 16383 },
	};
	struct spokei_balancer_state state;
	size_t flight[IN_FLIGHT];
	uint64_t dice = 1;
	uint64_t begun_ns = 0;

	candidates.count = candidates.room = candidates.able_count = count;
	spokei_balancer_state_init(&state, balancer);
	for (uint32_t i = 0; i < picks + IN_FLIGHT; i++) {
		size_t *place = &flight[i % IN_FLIGHT];

		if (i == IN_FLIGHT)
			begun_ns = cpu_ns();
		if (i >= IN_FLIGHT) {
			arrays.actives[*place]--;
			if (count > SPOKEI_FEW_PLACES)
				spokei_moves_note(&changes.moved, *place);
		}
		choice.dice = dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
		choice.key = (struct spoke_span){ (const char *)&dice, sizeof(dice) };
		*place = spokei_balancer_state_pick(&state, spoke_host_env(), &candidates, &changes,
						    &choice);
		if (*place == SPOKE_NO_ENDPOINT)
			die("%s chooses no place", balancer->name);
		arrays.actives[*place]++;
		if (count > SPOKEI_FEW_PLACES)
			spokei_moves_note(&changes.moved, *place);
	}
	begun_ns = cpu_ns() - begun_ns;
	spokei_balancer_state_fini(&state, spoke_host_env());
	return (double)begun_ns / picks;
}

static void measure_picks(const struct spoke_balancer *balancer, bool even, uint32_t picks)
{
	static const size_t counts[] = { 3, 10, 1000, 10000 };

	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		char figure[80];
		double least = 0;

		for (unsigned i = 0; i < REPEATS; i++) {
			double took;

			fill_arrays(even);
			took = pick_many(balancer, counts[n], picks);
			least = i == 0 || took < least ? took : least;
		}
		(void)snprintf(figure, sizeof(figure), "%s%s of %zu", balancer->name,
			       even ? "" : ", weights", counts[n]);
		report(figure, least, "ns", 300);
	}
}

int main(int argc, char **argv)
{
	static const char usage[] = "[--quick] [--no-lists]";
	bool is_quick = false;
	bool no_lists = false;
	const struct option_row options[] = {
		{ .word = "--quick", .flag = &is_quick },
		{ .word = "--no-lists", .flag = &no_lists },
	};

	options_read(argc, argv, options, 2, usage);
	raise_descriptors();
	if (!no_lists)
		measure_lists();
	for (unsigned i = 0; spokei_balancers[i]; i++)
		for (unsigned even = 0; even < 2; even++)
			measure_picks(spokei_balancers[i], even, is_quick ? PICKS / 10 : PICKS);
	return report_is_good() ? 0 : 1;
}
