/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke, the command: calls services, serves some to be called, and looks at what goes on between
 * them.
 *
 *     spoke VERB [OPTION...] [OPERAND...]
 *
 * A verb is a file of its own, and a line of the table below.
 */
#include "examples/spoke/ending.h"
#include "examples/spoke/options.h"

#include <spoke/base.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *sentence;
};

/* clang-format off */
static const struct verb verbs[] = {
	{ "call", call_verb, "calls a method and prints its answer" },
	{ "serve", serve_verb, "serves echo, sleep, fail and drop, with faults if wanted" },
	{ "bench", bench_verb, "measures how many calls a method takes, and how long they last" },
	{ "ping", ping_verb, "measures how long a provider takes to answer" },
	{ "top", top_verb, "shows what goes on in processes, live" },
	{ "ls", ls_verb, "lists the services of a registry and their providers" },
	{ "watch", watch_verb, "tells who comes and goes in a registry" },
	{ "tap", tap_verb, "shows what two ends say to each other" },
	{ "config", config_verb, "checks files of settings, explains what there is to be set" },
	{ NULL, NULL, NULL },
};
/* clang-format on */

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *verb = verbs; verb->name; verb++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	return NULL;
}

static const char *verb_name(const void *arg, size_t index)
{
	(void)arg;
	return verbs[index].name;
}

static void print_help(FILE *out)
{
	(void)fputs("usage: spoke VERB [OPTION...] [OPERAND...]\n\n", out);
	for (const struct verb *verb = verbs; verb->name; verb++)
		(void)fprintf(out, "  %-8s %s\n", verb->name, verb->sentence);
	(void)fputs(
		"\nspoke help VERB, or spoke VERB --help, says what a verb takes, with examples;\n"
		"spoke --version which version this is.\n"
		"\n"
		"It ends with 0: done, 1: an error of the other side, 2: wrong usage, 3: no "
		"answer\n"
		"in time, 4: nobody to be reached.\n",
		out);
}

static int unknown_verb(const char *name)
{
	const char *nearest = options_nearest(name, verb_name, NULL);

	if (nearest)
		return ending_say(VERB_USAGE, "", "%s: no such verb; meant is %s?", name, nearest);
	return ending_say(VERB_USAGE, "", "%s: no such verb; spoke help shows them", name);
}

static int help_verb(int argc, char **argv)
{
	char help[] = "--help";
	char *asked[] = { NULL, help, NULL };
	const struct verb *verb;

	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return VERB_OK;
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return unknown_verb(argv[1]);
	asked[0] = argv[1];
	return verb->run(2, asked);
}

static int print_version(void)
{
	printf("spoke %d.%d.%d\n", SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR, SPOKE_VERSION_PATCH);
	return VERB_OK;
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct verb *verb;

	/* Whoever reads may stop reading: writing says so, see ending_flush(). */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (!name) {
		print_help(stderr);
		return VERB_USAGE;
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return ending_flush(help_verb(argc - 1, argv + 1), name);
	if (strcmp(name, "--version") == 0)
		return ending_flush(print_version(), name);
	verb = find_verb(name);
	if (!verb)
		return unknown_verb(name);
	return ending_flush(verb->run(argc - 1, argv + 1), name);
}
