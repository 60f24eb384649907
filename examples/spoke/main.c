/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke, the command: calls services, serves test methods, measures and inspects processes.
 *
 *     spoke VERB [OPTION...] [OPERAND...]
 *
 * Each verb has a file of its own and a line in the table below.
 */
#include "examples/spoke/ending.h"
#include "examples/spoke/files.h"
#include "examples/spoke/options.h"
#include "examples/spoke/shown.h"

#include <spoke/base.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

bool verbs_pipe_ignored;

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *sentence;
};

/* clang-format off */
static const struct verb verbs[] = {
	{ "call", call_verb, "call a method and print its answer" },
	{ "serve", serve_verb, "serve echo, sleep, fail and drop, optionally with faults" },
	{ "bench", bench_verb, "measure throughput and latency of a method" },
	{ "ping", ping_verb, "measure the round-trip time to a provider" },
	{ "top", top_verb, "show the status of processes, live" },
	{ "ls", ls_verb, "list the services of a registry and their providers" },
	{ "watch", watch_verb, "print changes in a registry as they happen" },
	{ "tap", tap_verb, "print the messages between two peers" },
	{ "lock", lock_verb, "run a command while a lease is held" },
	{ "comet", comet_verb, "run a gateway that pushes messages to browsers" },
	{ "certs", certs_verb, "make certificates for trying TLS" },
	{ "offline", offline_verb, "take the providers of a process aside" },
	{ "online", online_verb, "bring the providers of a process back" },
	{ "journal", journal_verb, "show and change the tickets in a journal" },
	{ "config", config_verb, "check configuration files and explain the keys" },
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
	(void)fputs("\n"
		    "spoke help VERB and spoke VERB --help print the options of a verb, with "
		    "examples.\n"
		    "spoke --version prints the version.\n"
		    "\n"
		    "Exit status: 0: success, 1: error of the peer or a local failure, 2: wrong "
		    "usage,\n"
		    "3: timeout, 4: no connection. spoke lock passes on that of its command.\n",
		    out);
}

static int unknown_verb(const char *name)
{
	const char *nearest = options_nearest(name, verb_name, NULL);

	if (nearest)
		return ending_say(VERB_USAGE, "", "%s: no such verb; did you mean %s?",
				  shown_of(name).text, nearest);
	return ending_say(VERB_USAGE, "", "%s: no such verb; spoke help lists them",
			  shown_of(name).text);
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
	struct sigaction before = { .sa_handler = SIG_DFL };
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct verb *verb;

	files_hold_standard();
	/* If the reader closes the pipe, write() reports it, see ending_flush(). */
	(void)sigaction(SIGPIPE, &ignore, &before);
	verbs_pipe_ignored = before.sa_handler == SIG_IGN;
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
