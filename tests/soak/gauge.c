/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory and descriptors of a process from /proc. */
#define _GNU_SOURCE
#include "gauge.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESTS 1000u /* kept samples: enough for 16 hours, more than a shorter run has */

bool gauge_init(struct gauge *gauge, const struct actor *actor)
{
	bool well = true;

	*gauge = (struct gauge){ .actor = actor };
	for (unsigned i = 0; i < GAUGE_VALUES && well; i++)
		well = series_init(&gauge->rests[i], RESTS);
	return well;
}

void gauge_fini(struct gauge *gauge)
{
	for (unsigned i = 0; i < GAUGE_VALUES; i++)
		series_fini(&gauge->rests[i]);
}

/* Reads smaps_rollup, which walks the pages. In some kernels /proc/PID/statm and status omit what a
 * CPU or thread has not yet added to the total, dozens of pages each. */
static void read_resident(struct gauge *gauge)
{
	char path[64];
	char text[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)gauge->actor->pid);
	gauge->now[GAUGE_RSS] = 0;
	gauge->now[GAUGE_ANONYMOUS] = 0;
	file = fopen(path, "re");
	while (file && fgets(text, sizeof(text), file)) {
		if (strncmp(text, "Rss:", 4) == 0)
			gauge->now[GAUGE_RSS] = strtod(text + 4, NULL);
		else if (strncmp(text, "Anonymous:", 10) == 0)
			gauge->now[GAUGE_ANONYMOUS] = strtod(text + 10, NULL);
	}
	if (file)
		(void)fclose(file);
	gauge->now[GAUGE_FILES] = gauge->now[GAUGE_RSS] - gauge->now[GAUGE_ANONYMOUS];
	if (gauge->now[GAUGE_RSS] > gauge->resident_max)
		gauge->resident_max = gauge->now[GAUGE_RSS];
}

static double count_descriptors(pid_t pid)
{
	const struct dirent *entry;
	char path[64];
	double count = 0;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	if (folder == NULL)
		return 0;
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	(void)closedir(folder);
	return count;
}

void gauge_look(struct gauge *gauge, bool rest)
{
	double minute = (double)(cast_now() - cast.begun_ns) / (60.0 * (double)NS_PER_S);
	const struct desk *desk = &board->desks[gauge->actor - cast.actors];

	read_resident(gauge);
	gauge->now[GAUGE_LIBRARY] = (double)desk->memory / 1024;
	gauge->now[GAUGE_HEAP] = (double)desk->heap / 1024;
	gauge->now[GAUGE_HOLES] = (double)desk->holes / 1024;
	gauge->now[GAUGE_DESCRIPTORS] = count_descriptors(gauge->actor->pid);
	if (!rest)
		return;
	if (gauge->now[GAUGE_RSS] <= 0)
		cast_fail("/proc/%d/smaps_rollup of %s cannot be read; Linux 4.14 is required",
			  (int)gauge->actor->pid, gauge->actor->name);
	for (unsigned i = 0; i < GAUGE_VALUES; i++)
		series_add(&gauge->rests[i], minute, gauge->now[i]);
}
