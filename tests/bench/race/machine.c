/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the description of the machine from /proc and /etc; see machine.h. */
#include "machine.h"

#include "tests/bench/rpc/contest.h"
#include "tests/bench/rpc/foreign.h"
#include "tests/bench/rpc/host.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
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

static void describe_machine(char *text, size_t size)
{
	char model[128];

	find_value("/proc/cpuinfo", "model name", model, sizeof(model));
	(void)snprintf(text, size, "%s, %ld cores", model, sysconf(_SC_NPROCESSORS_ONLN));
}

static void describe_system(char *text, size_t size)
{
	char system[128];
	struct utsname kernel;

	find_value("/etc/os-release", "PRETTY_NAME", system, sizeof(system));
	if (uname(&kernel) != 0)
		(void)snprintf(kernel.release, sizeof(kernel.release), "unknown");
	(void)snprintf(text, size, "Linux %s %s, %s", kernel.release, kernel.machine, system);
}

static void describe_congestion(char *text, size_t size)
{
	if (!host_find_congestion(NULL, text, size))
		(void)snprintf(text, size, "unknown");
}

void machine_print(FILE *out)
{
	char machine[256];
	char system[512];
	char congestion[32];

	describe_machine(machine, sizeof(machine));
	describe_system(system, sizeof(system));
	describe_congestion(congestion, sizeof(congestion));
	(void)fprintf(out, "Machine: %s; %s; compiler %s; congestion control of TCP %s.\n", machine,
		      system, COMPILER, congestion);
}

void machine_versions(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < contest.count && len < size; i++) {
		const struct contest_entry *entry = &contest.entries[i];
		bool has_version = entry->peer != NULL && entry->peer->version != NULL;
		const char *version = has_version ? entry->peer->version() : NULL;

		if (version == NULL && (has_version || entry->peer == NULL))
			version = "not installed";
		if (version != NULL)
			len += (size_t)snprintf(text + len, size - len, "%s%s %s",
						len > 0 ? ", " : "", entry->name, version);
	}
}

void machine_facts(struct recorded_facts *facts)
{
	char text[480];
	time_t now = time(NULL);
	struct tm date;

	if (gmtime_r(&now, &date) != NULL &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &date) > 0)
		recorded_add(facts, "Date", text);
	describe_machine(text, sizeof(text));
	recorded_add(facts, "Machine", text);
	describe_system(text, sizeof(text));
	recorded_add(facts, "System", text);
	recorded_add(facts, "Compiler", COMPILER);
	describe_congestion(text, sizeof(text));
	recorded_add(facts, "Congestion control", text);
	recorded_add(facts, "Priority", foreign_is_stolen_only() ? "real-time" : "normal");
	machine_versions(text, sizeof(text));
	recorded_add(facts, "Peers", text);
}
