/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the CPU use of other processes; see foreign.h. */
#include "foreign.h"

#include "host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* Index of fields after the last parenthesis of /proc/PID/stat, and of the first word of
 * /proc/stat. */
#define PROCESS_FIRST 11 /* utime stime cutime cstime */
#define PROCESS_LAST 14
#define STAT_STEAL 7

/* Reads the beginning of a file of /proc; returns whether it contained anything. */
static bool read_start(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Returns the sum of numeric words. Modifies the text. */
static uint64_t sum_words(char *text, int first, int last)
{
	uint64_t sum = 0;
	char *rest = text;

	for (int i = 0; i <= last && rest != NULL; i++) {
		const char *word;

		rest += strspn(rest, " ");
		word = strsep(&rest, " ");
		sum += i >= first ? strtoull(word, NULL, 10) : 0;
	}
	return sum;
}

static uint64_t process_ticks(const char *number)
{
	char path[64];
	char text[1024];
	char *name_end;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/stat", number);
	if (!read_start(path, text, sizeof(text)))
		return 0; /* the process has ended, and its parent has its times */
	name_end = strrchr(text, ')');
	return name_end == NULL ? 0 : sum_words(name_end + 1, PROCESS_FIRST, PROCESS_LAST);
}

static uint64_t stolen_ticks(void)
{
	char text[512];

	if (!read_start("/proc/stat", text, sizeof(text)))
		return 0;
	return sum_words(text + strcspn(text, " "), STAT_STEAL, STAT_STEAL);
}

/* Returns whether this process has a real-time priority. Then other processes only use the CPU time
 * that the measured ones leave, and foreign_end() counts only the hypervisor. */
static bool foreign_is_stolen_only(void)
{
	int policy = sched_getscheduler(0);

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static uint64_t all_ns(void)
{
	DIR *dir = opendir("/proc");
	uint64_t ticks = stolen_ticks();
	const struct dirent *entry;

	if (dir == NULL)
		host_die("cannot read /proc");
	while (!foreign_is_stolen_only() && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			ticks += process_ticks(entry->d_name);
	(void)closedir(dir);
	return ticks * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t used_ns(int who)
{
	struct rusage usage = { 0 };

	if (getrusage(who, &usage) != 0)
		host_die("cannot read the CPU time of this process");
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_NS +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

struct foreign foreign_begin(void)
{
	return (struct foreign){
		.at_ns = host_now_ns(),
		.all_ns = all_ns(),
		.own_ns = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN),
		.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
	};
}

double foreign_end(const struct foreign *begin)
{
	struct foreign end = foreign_begin();
	uint64_t own_ns = foreign_is_stolen_only() ? 0 : end.own_ns - begin->own_ns;
	double others = (double)(end.all_ns - begin->all_ns) - (double)own_ns;
	double span = (double)(end.at_ns - begin->at_ns) * end.cpus;

	/* Rounding to 10 ms may give a negative result. */
	return others > 0 ? others / span : 0;
}
