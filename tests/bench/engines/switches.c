/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the context switches of a process from /proc. */
#include "engines.h"

#include "tests/bench/memory/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t switches_of_thread(pid_t pid, const char *thread)
{
	uint64_t sum = 0;
	char path[64];
	char line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", (int)pid, thread);
	file = fopen(path, "re");
	if (file == NULL)
		return 0; /* the process has ended */
	while (fgets(line, sizeof(line), file)) {
		const char *words = strstr(line, "voluntary_ctxt_switches:");

		if (words)
			sum += strtoull(strchr(words, ':') + 1, NULL, 10);
	}
	(void)fclose(file);
	return sum;
}

uint64_t switches_of(pid_t pid)
{
	const struct dirent *entry;
	uint64_t sum = 0;
	char path[64];
	DIR *threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	if (threads == NULL)
		die("a child process ended too early");
	while ((entry = readdir(threads)) != NULL)
		if (entry->d_name[0] != '.')
			sum += switches_of_thread(pid, entry->d_name);
	(void)closedir(threads);
	return sum;
}
