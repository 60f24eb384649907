/* SPDX-License-Identifier: Apache-2.0 */
/* Starts servers and crowds, gives them orders, and adds up what they have counted. */
#include "comet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HOST_FIRST 0x7f00000au   /* 127.0.0.10, of the first gateway */
#define SOURCE_FIRST 0x7f010001u /* 127.1.0.1, of the first crowd; 256 further for each */
#define KEEPALIVE_NS (25 * SECOND)
#define PATIENCE_NS (60 * SECOND)
#define POLL_NS (MS / 2)

void pause_ns(uint64_t ns)
{
	const struct timespec time = { (time_t)(ns / SECOND), (long)(ns % SECOND) };

	(void)nanosleep(&time, NULL);
}

/* --- the answer of the floor */

static char answer[ANSWER_MAX] = "HTTP/1.1 200 OK\r\n"
				 "Content-Type: text/event-stream\r\n"
				 "\r\n"
				 "retry: 12345\n\n";

void stage_learn_answer(void)
{
	(void)answer_record(answer, sizeof(answer));
}

/* --- processes */

/* Servers run on the first core, the load on the other one. */
static void put(pid_t pid, int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1 && sched_setaffinity(pid, sizeof(set), &set))
		die("cannot choose a core: errno %d", errno);
}

static void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory: errno %d", errno);
	return memory;
}

static void start_server(struct stage *stage, unsigned i)
{
	struct helper *server = &stage->servers[i];

	stage->plan.host = htonl(HOST_FIRST + i);
	stage->plan.keepalive_ns = KEEPALIVE_NS;
	stage->plan.conns_max = CONNS_MAX;
	stage->plan.answer_len = strlen(answer);
	memcpy(stage->plan.answer, answer, stage->plan.answer_len);
	helper_start(server, stage->kind == FLOOR ? floor_play : gateway_play, &stage->plan);
	put(server->pid, 0);
	helper_hear(server, NULL, &stage->places[i], sizeof(stage->places[i]));
}

static void start_crowd(struct stage *stage, unsigned i, const struct stage_options *options)
{
	unsigned all = stage->conns - (options->has_listeners ? LISTENERS : 0);
	unsigned most = (all + stage->gateways - 1) / stage->gateways;

	stage->crowd_plans[i] = (struct crowd_plan){
		.board = stage->board,
		.tally = &stage->board->crowds[i],
		.source = htonl(SOURCE_FIRST + 256 * i),
		.first_user = LISTENERS + i * most,
		.conns = i + 1 < stage->gateways ? most : all - i * most,
		.mute_every = options->mute_every,
	};
	helper_start(&stage->crowds[i], visitors_play, &stage->crowd_plans[i]);
	put(stage->crowds[i].pid, 1);
}

static void start_listeners(struct stage *stage)
{
	stage->listener_plan = (struct crowd_plan){
		.board = stage->board,
		.tally = &stage->board->listeners,
		.source = htonl(SOURCE_FIRST + 256 * GATEWAYS_MAX),
		.conns = LISTENERS,
		.is_first = true,
	};
	helper_start(&stage->listeners, visitors_play, &stage->listener_plan);
	put(stage->listeners.pid, 1);
}

void stage_open(struct stage *stage, const struct stage_options *options)
{
	*stage = (struct stage){
		.kind = options->kind,
		.gateways = options->gateways,
		.conns = options->conns,
		.has_listeners = options->has_listeners,
		.board = share(sizeof(struct board)),
	};
	stage->pusher_plan = (struct pusher_plan){ stage->board, stage->kind };
	put(0, 1);
	for (unsigned i = 0; i < stage->gateways; i++) {
		start_server(stage, i);
		start_crowd(stage, i, options);
	}
	if (stage->has_listeners)
		start_listeners(stage);
	helper_start(&stage->caster, pusher_play, &stage->pusher_plan);
	helper_start(&stage->pusher, pusher_play, &stage->pusher_plan);
	put(stage->caster.pid, 1);
	put(stage->pusher.pid, 1);
}

static void check(const struct stage *stage)
{
	struct sums sums = stage_sums(stage);

	if (sums.ready != (uint64_t)stage->conns * stage->storms || sums.closed > 0 ||
	    sums.wrong > 0 || sums.lost > 0 || sums.reconnects > 0 || stage->board->failed > 0) {
		die("%s: of %u connections %lu were answered, %lu closed; %lu ids or statuses were "
		    "wrong, %lu events lost, %lu told to reconnect, %lu pushes failed",
		    stage->kind == FLOOR ? "floor" : "spoke", stage->conns,
		    (unsigned long)sums.ready, (unsigned long)sums.closed,
		    (unsigned long)sums.wrong, (unsigned long)sums.lost,
		    (unsigned long)sums.reconnects, (unsigned long)stage->board->failed);
	}
}

void stage_close(struct stage *stage, bool is_strict)
{
	if (is_strict)
		check(stage);
	helper_end(&stage->caster);
	helper_end(&stage->pusher);
	stage_drop(stage);
	if (stage->has_listeners)
		helper_end(&stage->listeners);
	for (unsigned i = 0; i < stage->gateways; i++) {
		helper_end(&stage->crowds[i]);
		helper_end(&stage->servers[i]);
	}
	(void)munmap(stage->board, sizeof(struct board));
}

/* --- orders */

static void connect_crowd(const struct helper *crowd, const struct place *place)
{
	char order[1 + sizeof(*place)] = { CROWD_CONNECT };

	memcpy(order + 1, place, sizeof(*place));
	helper_tell(crowd, order, sizeof(order));
}

uint64_t stage_storm(struct stage *stage)
{
	uint64_t begun_ns = now_ns();
	uint64_t ready = 0;
	uint64_t wanted = (uint64_t)stage->conns * ++stage->storms;

	for (unsigned i = 0; i < stage->gateways; i++)
		connect_crowd(&stage->crowds[i], &stage->places[i]);
	if (stage->has_listeners)
		connect_crowd(&stage->listeners, &stage->places[0]);
	while (ready < wanted) {
		struct sums sums;

		pause_ns(POLL_NS);
		sums = stage_sums(stage);
		ready = sums.ready;
		if (now_ns() - begun_ns > PATIENCE_NS || sums.closed > 0)
			die("only %lu of %lu connections were answered, %lu were closed",
			    (unsigned long)ready, (unsigned long)wanted,
			    (unsigned long)sums.closed);
	}
	return now_ns() - begun_ns;
}

void stage_cast(struct stage *stage, uint32_t count, uint32_t size)
{
	const struct pusher_order order = { .place = stage->places[0],
					    .count = count,
					    .size = size };

	helper_tell(&stage->caster, &order, sizeof(order));
}

void stage_push(struct stage *stage, uint32_t per_s, uint32_t count)
{
	const struct pusher_order order = { .place = stage->places[0],
					    .per_s = per_s,
					    .count = count,
					    .users = LISTENERS,
					    .size = 100 };

	helper_tell(&stage->pusher, &order, sizeof(order));
}

void stage_wait(struct helper *helper)
{
	char done;

	helper_hear(helper, NULL, &done, 1);
}

static void order(struct helper *crowd, char what)
{
	helper_tell(crowd, &what, 1);
	stage_wait(crowd);
}

void stage_mute(struct stage *stage)
{
	for (unsigned i = 0; i < stage->gateways; i++)
		order(&stage->crowds[i], CROWD_MUTE);
}

void stage_sleep(struct stage *stage)
{
	for (unsigned i = 0; i < stage->gateways; i++)
		order(&stage->crowds[i], CROWD_SLEEP);
}

void stage_drop(struct stage *stage)
{
	if (stage->has_listeners)
		order(&stage->listeners, CROWD_CLOSE);
	for (unsigned i = 0; i < stage->gateways; i++)
		order(&stage->crowds[i], CROWD_CLOSE);
}

/* --- sums */

static void add(struct sums *sums, const struct tally *tally)
{
	sums->ready += atomic_load(&tally->ready);
	sums->broadcasts += atomic_load(&tally->broadcasts);
	sums->pushes += atomic_load(&tally->pushes);
	sums->comments += atomic_load(&tally->comments);
	sums->lost += atomic_load(&tally->lost);
	sums->reconnects += atomic_load(&tally->reconnects);
	sums->closed += atomic_load(&tally->closed);
	sums->wrong += atomic_load(&tally->wrong);
}

struct sums stage_sums(const struct stage *stage)
{
	struct sums sums = { 0 };

	for (unsigned i = 0; i < stage->gateways; i++)
		add(&sums, &stage->board->crowds[i]);
	add(&sums, &stage->board->listeners);
	return sums;
}

void stage_hear(const struct stage *stage, uint64_t broadcasts)
{
	uint64_t begun_ns = now_ns();
	struct sums sums = stage_sums(stage);

	while (sums.broadcasts < broadcasts) {
		if (now_ns() - begun_ns > PATIENCE_NS)
			die("only %lu of %lu events came, %lu were lost",
			    (unsigned long)sums.broadcasts, (unsigned long)broadcasts,
			    (unsigned long)sums.lost);
		pause_ns(POLL_NS);
		sums = stage_sums(stage);
	}
}

uint64_t stage_cpu_ns(const struct stage *stage)
{
	uint64_t sum_ns = 0;

	for (unsigned i = 0; i < stage->gateways; i++) {
		struct timespec used;
		clockid_t clock;

		if (clock_getcpuclockid(stage->servers[i].pid, &clock) ||
		    clock_gettime(clock, &used))
			die("a server has ended");
		sum_ns += (uint64_t)used.tv_sec * SECOND + (uint64_t)used.tv_nsec;
	}
	return sum_ns;
}

/* Opens a file of /proc about a server. */
static FILE *open_of(const struct stage *stage, unsigned i, const char *what)
{
	char name[64];
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/%s", (int)stage->servers[i].pid, what);
	file = fopen(name, "re");
	if (file == NULL)
		die("cannot read %s", name);
	return file;
}

uint64_t stage_resident(const struct stage *stage)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < stage->gateways; i++) {
		FILE *file = open_of(stage, i, "statm");
		char text[128] = "";
		const char *second;

		if (fgets(text, sizeof(text), file) == NULL)
			die("a server has ended");
		(void)fclose(file);
		second = strchr(text, ' ');
		pages += strtoul(second ? second : "", NULL, 10);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t stage_proportional(const struct stage *stage)
{
	uint64_t kib = 0;

	for (unsigned i = 0; i < stage->gateways; i++) {
		FILE *file = open_of(stage, i, "smaps_rollup");
		char text[128];

		while (fgets(text, sizeof(text), file)) {
			if (strncmp(text, "Pss:", 4) == 0)
				kib += strtoul(text + 4, NULL, 10);
		}
		(void)fclose(file);
	}
	return kib * 1024;
}
