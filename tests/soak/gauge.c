/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gauge.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARE 1000u /* samples more than there should be */

bool gauge_init(struct gauge *gauge, const struct actor *actor, const struct plan *plan)
{
	size_t seconds = (size_t)(plan->end_ns / NS_PER_S) + SPARE;

	*gauge = (struct gauge){ .actor = actor };
	return series_init(&gauge->resident, seconds) &&
	       series_init(&gauge->resident_rest, SPARE) && series_init(&gauge->used, seconds) &&
	       series_init(&gauge->used_rest, SPARE) && series_init(&gauge->files_rest, SPARE);
}

void gauge_fini(struct gauge *gauge)
{
	series_fini(&gauge->resident);
	series_fini(&gauge->resident_rest);
	series_fini(&gauge->used);
	series_fini(&gauge->used_rest);
	series_fini(&gauge->files_rest);
}

static double read_resident(pid_t pid)
{
	char path[64];
	char text[128] = "";
	const char *second;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	(void)fclose(file);
	second = strchr(text, ' ');
	return second ? (double)strtoul(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / 1024
		      : 0;
}

static double count_files(pid_t pid)
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

void gauge_look(struct gauge *gauge, bool keep, bool rest)
{
	double minute = (double)(cast_now() - cast.begun_ns) / (60.0 * (double)NS_PER_S);
	gauge->used_now = (double)board->desks[gauge->actor - cast.actors].memory / 1024;

	gauge->resident_now = read_resident(gauge->actor->pid);
	gauge->files_now = count_files(gauge->actor->pid);
	if (gauge->resident_now > gauge->resident_max)
		gauge->resident_max = gauge->resident_now;
	if (!keep)
		return;
	series_add(rest ? &gauge->resident_rest : &gauge->resident, minute, gauge->resident_now);
	series_add(rest ? &gauge->used_rest : &gauge->used, minute, gauge->used_now);
	if (rest)
		series_add(&gauge->files_rest, minute, gauge->files_now);
}
