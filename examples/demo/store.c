/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Redis and prepares its folder. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/store.h"
#include "examples/demo/cast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTINGS "store.conf"
#define SOCKET "store"
#define PATH 512

/* Looks for a program in the folders of $PATH. */
static bool find(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");

	while (at && *at != '\0') {
		size_t len = strcspn(at, ":");

		if ((size_t)snprintf(path, size, "%.*s/%s", (int)len, at, name) < size &&
		    path[0] == '/' && access(path, X_OK) == 0)
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

static bool write_settings(const char *folder, char *path, size_t size)
{
	FILE *file;
	bool well;

	(void)snprintf(path, size, "%s/" SETTINGS, folder);
	file = fopen(path, "we");
	if (file == NULL)
		return false;
	well = fprintf(file, "port 0\nunixsocket %s/" SOCKET "\nsave \"\"\nappendonly no\ndir %s\n",
		       folder, folder) > 0;
	return fclose(file) == 0 && well;
}

bool store_cast(struct stage *stage, const char *folder)
{
	char program[PATH];
	char settings[PATH];

	/* Debian's redis-tools has the server under another name: the program looks at its own. */
	if (!find("redis-server", program, sizeof(program)) &&
	    !find("redis-check-rdb", program, sizeof(program)))
		return true;
	if (!write_settings(folder, settings, sizeof(settings)))
		return cast_trouble("cannot write %s: %s", settings, strerror(errno));
	stage->store = cast_add(program, "store");
	(void)snprintf(stage->store->alias, sizeof(stage->store->alias), "redis-server");
	actor_add_arg(stage->store, "%s", settings);
	(void)snprintf(stage->store_url, sizeof(stage->store_url), "redis+unix://%s/" SOCKET,
		       folder);
	return true;
}
