/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, stops, kills, freezes and reaps the processes of a soak. */
#define _GNU_SOURCE
#include "cast.h"

#include "consumer.h"
#include "load.h"
#include "provider.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT_LEAST 10000u
#define PORT_MOST 32000u /* below the ephemeral ports of the kernel */
#define PLACES 50u       /* ports that are tried */
#define START_NS (10 * NS_PER_S)
#define END_NS (60 * NS_PER_S) /* time limit for an ordered end */
#define STEP_NS (5 * NS_PER_MS)

struct cast cast;

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

bool cast_interrupted(void)
{
	return interrupted != 0;
}

uint64_t cast_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static void rest_ns(uint64_t ns)
{
	struct timespec time = { .tv_nsec = (long)ns };

	(void)nanosleep(&time, NULL);
}

void cast_fail(const char *format, ...)
{
	va_list list;

	cast.failures++;
	(void)fprintf(stderr, "soak: FAIL at %.1f s: ",
		      (double)(cast_now() - cast.begun_ns) / (double)NS_PER_S);
	va_start(list, format);
	(void)vfprintf(stderr, format, list);
	va_end(list);
	(void)fputc('\n', stderr);
}

static struct desk *desk_of(const struct actor *actor)
{
	return &board->desks[actor - cast.actors];
}

/* --- start */

/* Runs the child. The kernel ends it when the conductor ends. */
static void become(const struct actor *actor, pid_t conductor)
{
	static const int usual[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = SIG_DFL };

	(void)setpgid(0, 0); /* the terminal's signals are for the conductor */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != conductor)
		_exit(1);
	for (unsigned i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		(void)sigaction(usual[i], &action, NULL);
	if (actor->provides)
		exit(provider_run(actor->index));
	exit(consumer_run(actor->index, actor->lives));
}

/* Adds the counters of a desk to those of earlier lives and clears the desk, except the address. */
static void put_by(struct actor *actor)
{
	struct desk *desk = desk_of(actor);
	char address[PATH_BYTES];

	for (unsigned i = 0; i < COUNTS; i++)
		actor->past.counts[i] += desk->counts[i];
	for (unsigned i = 0; i < ERRORS; i++)
		actor->past.errors[i] += desk->errors[i];
	for (unsigned i = 0; i < ERRORS; i++)
		actor->past.refusals[i] += desk->refusals[i];
	for (unsigned i = 0; i < SETTLEMENTS; i++)
		actor->past.settlements[i] += desk->settlements[i];
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		actor->past.stats[i] += desk->stats[i];
	(void)snprintf(address, sizeof(address), "%s", desk->address);
	memset((void *)desk, 0, sizeof(*desk));
	(void)snprintf(desk->address, sizeof(desk->address), "%s", address);
}

static bool start(struct actor *actor)
{
	pid_t conductor = getpid();

	put_by(actor);
	(void)fflush(NULL);
	actor->pid = fork();
	if (actor->pid == 0)
		become(actor, conductor);
	if (actor->pid < 0) {
		actor->pid = 0;
		cast_fail("cannot fork %s: %s", actor->name, strerror(errno));
		return false;
	}
	actor->lives++;
	actor->killed = false;
	actor->state = ACTOR_UP;
	return true;
}

/* --- end */

static void mourn(struct actor *actor, int status)
{
	struct desk *desk = desk_of(actor);
	uint64_t now = cast_now();

	actor->pid = 0;
	if (desk->complaint[0] != '\0')
		cast_fail("%s: %s", actor->name, desk->complaint);
	if (actor->killed) {
		actor->dropped += desk->counts[COUNT_CALLS] - desk->counts[COUNT_OK] -
				  desk->counts[COUNT_FAILED] - desk->counts[COUNT_TICKETS];
	} else if (actor->provides && WIFEXITED(status) &&
		   WEXITSTATUS(status) == PROVIDER_NO_PLACE) {
		/* the port is in use for a moment */
		actor->until_ns = now + NS_PER_S / 5;
		actor->state = ACTOR_DOWN;
		return;
	} else if (actor->state != ACTOR_ENDING || status != 0 || !desk->done) {
		cast_fail("%s ended with status 0x%x%s", actor->name, (unsigned)status,
			  actor->state == ACTOR_ENDING ? "" : " without being asked to end");
	}
	if (actor->state == ACTOR_ENDING)
		actor->until_ns = now;
	actor->state = ACTOR_DOWN;
}

void cast_tend(void)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct actor *actor = &cast.actors[i];
		uint64_t now = cast_now();
		int status;

		if (actor->pid && waitpid(actor->pid, &status, WNOHANG) == actor->pid)
			mourn(actor, status);
		if (actor->state == ACTOR_NONE || actor->state == ACTOR_UP || now < actor->until_ns)
			continue;
		if (actor->state == ACTOR_FROZEN) {
			(void)kill(actor->pid, SIGCONT);
			actor->state = ACTOR_UP;
		} else if (actor->state == ACTOR_ENDING) {
			cast_fail("%s has not ended in time", actor->name);
			actor->killed = true;
			actor->until_ns = now + END_NS;
			(void)kill(actor->pid, SIGKILL);
		} else if (actor->pid == 0) {
			(void)start(actor);
		}
	}
}

void cast_harm(struct actor *actor, enum actor_harm harm, uint64_t for_ns)
{
	uint64_t now = cast_now();

	if (actor->state != ACTOR_UP || !desk_of(actor)->up)
		return;
	cast.harms[actor->provides][harm]++;
	if (harm == HARM_FREEZE) {
		actor->state = ACTOR_FROZEN;
		actor->until_ns = now + for_ns;
		(void)kill(actor->pid, SIGSTOP);
	} else if (harm == HARM_KILL) {
		actor->state = ACTOR_DOWN;
		actor->until_ns = now + for_ns;
		actor->killed = true;
		(void)kill(actor->pid, SIGKILL);
	} else {
		actor->state = ACTOR_ENDING;
		actor->until_ns = now + END_NS;
		(void)kill(actor->pid, SIGTERM);
	}
}

/* --- state of all processes */

bool cast_whole(void)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		const struct desk *desk = &board->desks[i];
		bool provides = cast.actors[i].provides;

		if (cast.actors[i].state != ACTOR_UP ||
		    desk->connections != CONNECTIONS / (provides ? PROVIDERS : CONSUMERS) ||
		    (!provides && desk->ready != (uint64_t)TEAMS * PROVIDERS))
			return false;
	}
	return true;
}

bool cast_rests(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (cast.actors[i].provides ? board->desks[i].open > 0 : !board->desks[i].resting)
			return false;
	return true;
}

bool cast_trimmed(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (!board->desks[i].trimmed)
			return false;
	return true;
}

unsigned cast_harmed(void)
{
	unsigned harmed = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		harmed += cast.actors[i].state != ACTOR_UP || !board->desks[i].up;
	return harmed;
}

uint64_t cast_count_of(bool provides, enum desk_count count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (cast.actors[i].provides == provides)
			sum += cast.actors[i].past.counts[count] + board->desks[i].counts[count];
	return sum;
}

uint64_t cast_count(enum desk_count count)
{
	return cast_count_of(false, count) + cast_count_of(true, count);
}

/* --- setup and cleanup */

static bool await_up(const struct actor *actor, uint64_t until_ns)
{
	while (!desk_of(actor)->up && actor->pid && cast_now() < until_ns && !interrupted) {
		cast_tend();
		rest_ns(STEP_NS);
	}
	return desk_of(actor)->up;
}

/* Starts the provider at a free port, which it keeps from then on. */
static bool start_provider(struct actor *actor, uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(seed + actor->index);

	for (unsigned i = 0; i < PLACES; i++) {
		(void)snprintf(desk_of(actor)->address, PATH_BYTES, "127.0.0.1:%u",
			       (unsigned)sim_between(&dice, PORT_LEAST, PORT_MOST));
		if (start(actor) && await_up(actor, cast_now() + START_NS))
			return true;
		if (actor->pid || interrupted)
			break;
	}
	cast_fail("%s does not start: %s", actor->name, desk_of(actor)->complaint);
	return false;
}

static bool prepare(const struct plan *plan)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = interrupt };
	const char *base = getenv("TMPDIR");

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		(void)sigaction(ends[i], &action, NULL);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return false;
	board->rate = plan->rate / CONSUMERS;
	board->seed = plan->seed;
	(void)snprintf(board->folder, sizeof(board->folder), "%.80s/spoke-soak-XXXXXX",
		       base ? base : "/tmp");
	load_init();
	return mkdtemp(board->folder) != NULL;
}

bool cast_begin(const struct plan *plan)
{
	cast.begun_ns = cast_now();
	if (!prepare(plan)) {
		cast_fail("cannot map memory or create a directory: %s", strerror(errno));
		return false;
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct actor *actor = &cast.actors[i];

		actor->provides = i < PROVIDERS;
		actor->index = actor->provides ? i : i - PROVIDERS;
		(void)snprintf(actor->name, sizeof(actor->name), "%s %u",
			       actor->provides ? "provider" : "consumer", actor->index);
		if (actor->provides ? !start_provider(actor, plan->seed) : !start(actor))
			return false;
	}
	return true;
}

void cast_end(bool provides)
{
	uint64_t until_ns = cast_now() + END_NS;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (cast.actors[i].provides == provides && cast.actors[i].pid) {
			cast.actors[i].state = ACTOR_ENDING;
			(void)kill(cast.actors[i].pid, SIGCONT);
			(void)kill(cast.actors[i].pid, SIGTERM);
		}
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct actor *actor = &cast.actors[i];
		int status;

		while (actor->provides == provides && actor->pid && cast_now() < until_ns) {
			if (waitpid(actor->pid, &status, WNOHANG) == actor->pid)
				mourn(actor, status);
			else
				rest_ns(STEP_NS);
		}
		if (actor->provides == provides && actor->pid)
			cast_fail("%s has not ended in time", actor->name);
	}
}

void cast_close(void)
{
	char path[PATH_BYTES];

	for (unsigned i = 0; i < PROCESSES; i++)
		if (cast.actors[i].pid > 0)
			(void)kill(cast.actors[i].pid, SIGKILL);
	for (unsigned i = 0; i < PROCESSES; i++)
		while (cast.actors[i].pid > 0 && waitpid(cast.actors[i].pid, NULL, 0) < 0 &&
		       errno == EINTR)
			;
	for (unsigned i = 0; i < PROVIDERS; i++) {
		provider_path(i, path);
		(void)unlink(path);
	}
	(void)rmdir(board->folder);
}
