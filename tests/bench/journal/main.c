/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of tickets in a journal, on the real disk: CPU time of the engine's thread for each
 * deferred call, tickets per second beside a bare loop of writes and syncs with the same grouping,
 * the start with many tickets, the longest turn of the engine, and the bytes of the files. Fails if
 * a first bar is missed.
 */
#include "tests/bench/common/options.h"

#include <spoke/consumer.h>
#include <spoke/stats.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1e9
#define TICKET_MAX 1000000u
#define ARGUMENT 100u /* bytes; a record has about twice as many */

struct run {
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	bool settles; /* each ticket is cancelled when it is told */
	uint64_t told;
	uint64_t made;
	uint64_t refused;
	struct spoke_recovered recovered;
	bool is_recovered;
	double longest; /* turn, in ns of CPU time */
};

static char folder[64];
static bool failed;

_Noreturn static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

static double clock_of(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec * SECOND + (double)now.tv_nsec;
}

static void report(const char *figure, double value, const char *unit, double bar, double goal,
		   bool least)
{
	bool missed = bar > 0 && (least ? value < bar : value > bar);

	failed |= missed;
	printf("%s\t%.3g\t%s\t%g\t%g%s\n", figure, value, unit, bar, goal,
	       missed ? "\tmissed" : "");
	(void)fflush(stdout);
}

/* --- the folder */

static uint64_t empty_folder(bool removes)
{
	DIR *all = opendir(folder);
	const struct dirent *entry;
	uint64_t bytes = 0;

	while (all && (entry = readdir(all)) != NULL) {
		struct stat about;

		if (*entry->d_name == '.' || fstatat(dirfd(all), entry->d_name, &about, 0))
			continue;
		bytes += (uint64_t)about.st_blocks * 512;
		if (removes)
			(void)unlinkat(dirfd(all), entry->d_name, 0);
	}
	(void)closedir(all);
	return bytes;
}

/* --- a consumer without a provider, whose calls are deferred at once */

static void done(void *arg, const struct spoke_result *result)
{
	struct run *run = arg;

	if (result->error != SPOKE_EDEFERRED) {
		run->refused++;
		return;
	}
	run->told++;
	if (run->settles)
		(void)spoke_ticket_cancel(run->consumer, result->ticket);
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	(void)arg;
	(void)how;
}

static void recovered(void *arg, const struct spoke_recovered *what)
{
	struct run *run = arg;

	run->recovered = *what;
	run->is_recovered = true;
}

static void turn(struct run *run)
{
	double begun = clock_of(CLOCK_THREAD_CPUTIME_ID);
	double took;

	if (spoke_engine_turn(run->engine, true))
		die("the engine does not turn");
	took = clock_of(CLOCK_THREAD_CPUTIME_ID) - begun;
	if (took > run->longest)
		run->longest = took;
}

static void begin(struct run *run, enum spoke_durability durability, bool journals)
{
	const struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:1/demo.Bench?cluster=failback&retry.period=1h&retries=100"
		       "&retry.deadline=24h&failback.tasks=1000000&failback.bytes=2GiB&"
		       "pending.max=1000000&journal.wait=10s&journal.bytes=1GiB",
		.journal = journals ? folder : NULL,
		.durability = durability,
		.settled = settled,
		.recovered = recovered,
		.recovered_arg = run,
	};
	const struct spoke_engine_options quiet = { .log = "off" };

	*run = (struct run){ .settles = true };
	if (spoke_engine_new(&quiet, &run->engine) ||
	    spoke_consumer_new(run->engine, &options, &run->consumer) ||
	    spoke_consumer_method(run->consumer, "work", NULL, &run->method))
		die("no consumer: %s", spoke_engine_why(run->engine));
	while (journals && !run->is_recovered)
		turn(run);
	/* The first connect fails. */
	for (unsigned i = 0; i < 20; i++)
		turn(run);
}

static void end(struct run *run)
{
	spoke_engine_free(run->engine);
}

/* Makes a call. Returns false if the journal takes no more in this turn. */
static bool call(struct run *run)
{
	static unsigned char args[ARGUMENT + 2] = { 0xc4, ARGUMENT };

	if (spoke_call(run->method, (struct spoke_span){ args, sizeof(args) }, NULL, done, run,
		       NULL))
		return false;
	run->made++;
	return true;
}

/* Makes `count` calls, of which at most `flight` wait for the journal. Returns the ns of CPU time
 * of this thread for each; *ret_rate: tickets a second. */
static double defer(struct run *run, uint64_t count, uint64_t flight, double *ret_rate)
{
	double cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
	double begun = clock_of(CLOCK_MONOTONIC);
	uint64_t before = run->told;

	while (run->told - before < count) {
		while (run->made - run->told < flight && run->made - before < count && call(run))
			continue;
		turn(run);
		if (run->refused > count)
			die("calls are refused: %s", spoke_engine_why(run->engine));
	}
	*ret_rate = (double)count / ((clock_of(CLOCK_MONOTONIC) - begun) / SECOND);
	return (clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count;
}

/* --- the bare loop */

/* Returns how many groups of `bytes` a second are written and synced, one after the other. */
static double bare(size_t bytes, unsigned count)
{
	const size_t size = (size_t)4 << 20;
	unsigned char *memory = calloc(1, bytes);
	char path[96];
	size_t at = 0;
	double begun;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/bare", folder);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || memory == NULL || posix_fallocate(fd, 0, (off_t)size) || fdatasync(fd))
		die("no file in %s", folder);
	begun = clock_of(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < count; i++, at += bytes) {
		if (at + bytes > size)
			at = 0;
		if (pwrite(fd, memory, bytes, (off_t)at) != (ssize_t)bytes || fdatasync(fd))
			die("the disk does not take bytes");
	}
	begun = clock_of(CLOCK_MONOTONIC) - begun;
	(void)close(fd);
	(void)unlink(path);
	free(memory);
	return (double)count / (begun / SECOND);
}

/* --- figures */

#define RECORDS 288u /* bytes of an OPEN and an ENDED */

static void measure_rate(uint64_t count, uint64_t flight, const char *name, double bar, double goal)
{
	char figure[96];
	struct run run;
	uint64_t syncs;
	double before;
	double after;
	double group;
	double rate;

	begin(&run, SPOKE_DURABILITY_POWER, true);
	syncs = spoke_stat_get(run.engine, SPOKE_STAT_JOURNAL_SYNCS);
	(void)defer(&run, count / 4, flight, &rate);
	group = (double)count / 4 /
		(double)(spoke_stat_get(run.engine, SPOKE_STAT_JOURNAL_SYNCS) - syncs);
	before = bare((size_t)(group * RECORDS), 300);
	syncs = spoke_stat_get(run.engine, SPOKE_STAT_JOURNAL_SYNCS);
	(void)defer(&run, count, flight, &rate);
	syncs = spoke_stat_get(run.engine, SPOKE_STAT_JOURNAL_SYNCS) - syncs;
	group = (double)count / (double)syncs;
	after = bare((size_t)(group * RECORDS), 300);
	if (after < before) /* the disk has other users */
		after = before;
	(void)snprintf(figure, sizeof(figure), "tickets/s at power, %s in flight", name);
	report(figure, rate, "1/s", 0, 0, true);
	(void)snprintf(figure, sizeof(figure), "... tickets a sync");
	report(figure, group, "", 0, 0, true);
	(void)snprintf(figure, sizeof(figure), "... by a bare loop with these groups");
	report(figure, rate / (after * group), "x", bar, goal, true);
	end(&run);
	(void)empty_folder(true);
}

static double measure_cpu(uint64_t count, enum spoke_durability durability, bool journals)
{
	struct run run;
	double rate;
	double cpu;

	begin(&run, durability, journals);
	(void)defer(&run, count / 10, 1024, &rate);
	cpu = defer(&run, count, 1024, &rate);
	end(&run);
	(void)empty_folder(true);
	return cpu;
}

static void measure_start(uint64_t count)
{
	struct run run;
	uint64_t bytes;
	double rate;

	begin(&run, SPOKE_DURABILITY_PROCESS, true);
	run.settles = false;
	(void)defer(&run, count, 2048, &rate);
	end(&run);
	bytes = empty_folder(false);
	report("bytes on disk, by those of 100,000 tickets",
	       (double)bytes / ((double)count * (RECORDS - 32)), "x", 3.4, 2.2, false);
	rate = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	begin(&run, SPOKE_DURABILITY_PROCESS, true);
	rate = clock_of(CLOCK_PROCESS_CPUTIME_ID) - rate;
	if (run.recovered.tickets != count)
		die("%llu tickets were recovered", (unsigned long long)run.recovered.tickets);
	report("start with these tickets", (double)run.recovered.took_ns / 1e6, "ms", 300, 80,
	       false);
	report("... of CPU time, of both threads", rate / 1e6, "ms", 0, 0, false);
	report("longest turn meanwhile", run.longest / 1e6, "ms", 2, 0.2, false);
	/* All are settled and others added, so that old segments go. */
	run.longest = 0;
	run.settles = true;
	for (unsigned i = 0; i < 100; i++) {
		(void)defer(&run, count / 100, 64, &rate);
		for (unsigned t = 0; t < 3; t++)
			turn(&run);
	}
	bytes = empty_folder(false);
	report("bytes on disk after as many more have come and gone",
	       (double)bytes / ((double)count * (RECORDS - 32)), "x", 3.4, 2.2, false);
	report("longest turn with 64 calls", run.longest / 1e6, "ms", 2, 0.2, false);
	end(&run);
	(void)empty_folder(true);
}

int main(int argc, char **argv)
{
	bool quick = false;
	const char *at = "/tmp";
	const struct option_row options[] = {
		{ .word = "--quick", .flag = &quick },
		{ .word = "--folder", .text = &at },
	};
	uint64_t count;
	double without;

	options_read(argc, argv, options, sizeof(options) / sizeof(options[0]),
		     "[--quick] [--folder FOLDER]");
	count = quick ? 20000 : 200000;
	(void)snprintf(folder, sizeof(folder), "%.40s/spoke-bench-XXXXXX", at);
	if (mkdtemp(folder) == NULL)
		die("no folder in %s", at);
	without = measure_cpu(count, SPOKE_DURABILITY_DEFAULT, false);
	report("CPU of a deferred call without a journal, and of its cancel", without / 1e3, "us",
	       0, 0, false);
	report("... more with durability = process",
	       (measure_cpu(count, SPOKE_DURABILITY_PROCESS, true) - without) / 1e3, "us", 5, 1,
	       false);
	report("... more with durability = power",
	       (measure_cpu(count, SPOKE_DURABILITY_POWER, true) - without) / 1e3, "us", 5, 1,
	       false);
	measure_rate(count / 4, 64, "64", 0.5, 0.8);
	measure_rate(count, 6000, "6,000", 0.5, 0.8);
	measure_start(100000);
	(void)rmdir(folder);
	return failed;
}
