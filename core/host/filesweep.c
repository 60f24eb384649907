/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the files that dead processes left beside a file: <file>.<process>-<number>.tmp, which is
 * written only under the file's lock, and <file>.<16 digits>.lock if no process holds that lock.
 */
#define _GNU_SOURCE
#include "core/host/filesweep.h"

#include "core/host/filelock.h"
#include "core/host/filewatch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define DIGITS "0123456789"

static bool is_temporary(const char *name, const char *base)
{
	size_t len = strlen(base);
	size_t digits;

	if (strncmp(name, base, len) != 0 || name[len] != '.')
		return false;
	name += len + 1;
	digits = strspn(name, DIGITS);
	if (digits == 0 || name[digits] != '-')
		return false;
	name += digits + 1;
	digits = strspn(name, DIGITS);
	return digits > 0 && strcmp(name + digits, ".tmp") == 0;
}

int spokei_filesweep(void *ctx, const char *path)
{
	char folder[PATH_MAX];
	const char *base = spokei_filewatch_folder(path, folder, sizeof(folder));
	const struct dirent *entry;
	DIR *all;

	(void)ctx;
	if (base == NULL)
		return -ENAMETOOLONG;
	all = opendir(folder);
	if (all == NULL)
		return -errno;
	/* Safe: this thread alone has the stream. */
	while ((entry = readdir(all)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		const char *name = entry->d_name;

		if (is_temporary(name, base) || (spokei_filelock_is_mark(name, base) &&
						 spokei_filelock_held_at(dirfd(all), name) == 0))
			(void)unlinkat(dirfd(all), name, 0);
	}
	(void)closedir(all);
	return 0;
}
