/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the description of the machine from /proc and /etc; see machine.h. */
#include "machine.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Returns the text after `key` and any of " \t:=\"" in the first line that begins with it. */
static void find_value(const char *path, const char *key, char *ret_value, size_t size)
{
	static const char between[] = " \t:=\"";
	FILE *file = fopen(path, "re");
	char line[512];

	(void)snprintf(ret_value, size, "unknown");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *value = line + strlen(key);

		if (strncmp(line, key, strlen(key)) != 0 || strchr(between, *value) == NULL)
			continue;
		value += strspn(value, between);
		(void)snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\"\n"), value);
		break;
	}
	if (file != NULL)
		(void)fclose(file);
}

void machine_print(FILE *out)
{
	char model[128];
	char system[128];
	struct utsname kernel;

	find_value("/proc/cpuinfo", "model name", model, sizeof(model));
	find_value("/etc/os-release", "PRETTY_NAME", system, sizeof(system));
	if (uname(&kernel) != 0)
		(void)snprintf(kernel.release, sizeof(kernel.release), "unknown");
	(void)fprintf(out, "Machine: %s, %ld cores; Linux %s %s, %s; compiler %s.\n", model,
		      sysconf(_SC_NPROCESSORS_ONLN), kernel.release, kernel.machine, system,
		      COMPILER);
}
