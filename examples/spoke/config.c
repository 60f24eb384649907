/* SPDX-License-Identifier: Apache-2.0 */
/* Checks files of settings, and explains what there is to be set. */
#include "examples/spoke/config.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/options.h"

#include <stdio.h>
#include <string.h>

enum {
	CHECK,
	EXPLAIN,
	MAN
};

static const struct option_row rows[] = {
	[CHECK] = { "check", 0, "FILE", "says all that is wrong with a file" },
	[EXPLAIN] = { "explain", 0, NULL, "shows the keys, or one of them" },
	[MAN] = { "man", 0, NULL, "prints the page spoke.conf(5), as mdoc" },
};

static const struct usage usage = {
	"config",
	"--check FILE | --explain [KEY] | --man",
	"Checks files of settings, and explains what there is to be set.\n"
	"Ends with 0: all is right, 1: the file is wrong, 2: wrong usage.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke config --check /etc/spoke.conf\n"
	"  spoke config --explain\n"
	"  spoke config --explain retry.period",
};

/* --- checking */

static void print_wrong(void *arg, const char *sentence)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", sentence);
}

static int check(const char *path)
{
	struct spoke_config *config;

	if (spoke_config_load(NULL, path, print_wrong, NULL, &config) != SPOKE_OK)
		return VERB_REMOTE;
	spoke_config_free(config);
	printf("%s: all is right\n", path);
	return VERB_OK;
}

/* --- explaining */

/* The indented lines below a key. */
static void print_key(const struct spoke_config_key *key)
{
	printf("  %s%s%s\n", key->name, *key->preset ? " = " : "", key->preset);
	printf("      %s\n", key->sentence);
	printf("      %s%s%s%s\n", key->kind, *key->range ? ": " : "", key->range,
	       key->live ? "; live" : "");
}

static const char *name_at(const void *arg, size_t index)
{
	static struct spoke_config_key key;

	(void)arg;
	return spoke_config_key(index, &key) ? key.name : NULL;
}

static int explain_one(const char *name)
{
	struct config_walk walk = { 0 };
	const char *nearest;
	bool found = false;

	while (config_walk(&walk)) {
		if (strcmp(walk.key.name, name) != 0)
			continue;
		if (found)
			printf("\n");
		config_print_sections(walk.key.sections);
		printf("\n");
		print_key(&walk.key);
		found = true;
	}
	if (found)
		return VERB_OK;
	nearest = options_nearest(name, name_at, NULL);
	if (nearest)
		return ending_say(VERB_USAGE, "config",
				  "%s: there is no such key; did you mean %s?", name, nearest);
	return ending_say(VERB_USAGE, "config",
			  "%s: there is no such key; spoke config --explain shows all", name);
}

static int explain_all(void)
{
	struct config_walk walk = { 0 };

	printf("Keys by the sections of a file in which they may stand, each with its default.\n"
	       "Durations are written as 250ms, 1.5s or 2m, sizes as 64KiB or 8MiB. What is live\n"
	       "is changed by a reload (SIGHUP) in what lives; the rest when the process "
	       "starts.\n");
	while (config_walk(&walk)) {
		if (walk.first) {
			printf("\n");
			config_print_sections(walk.key.sections);
			printf("\n");
		}
		print_key(&walk.key);
	}
	return VERB_OK;
}

/* --- the verb */

static int run(int what, const char *path, struct options *options)
{
	if (what < 0 && options->operand_count)
		what = EXPLAIN;
	if (what == EXPLAIN && options->operand_count > 1)
		return options_lacking(options, "one key at a time");
	if (what == CHECK && options->operand_count)
		return options_lacking(options, "one file at a time");
	if (what == MAN && options->operand_count)
		return options_lacking(options, "--man prints the whole page");
	switch (what) {
	case CHECK:
		return check(path);
	case EXPLAIN:
		return options->operand_count ? explain_one(options->operands[0]) : explain_all();
	case MAN:
		config_print_manual();
		return VERB_OK;
	default:
		return options_lacking(options, "--check FILE, --explain or --man?");
	}
}

int config_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	const char *path = NULL;
	int what = -1;
	int row;

	while ((row = options_next(&options)) >= 0) {
		if (what >= 0)
			return options_wrong(&options, "one thing at a time");
		what = row;
		path = options.value;
	}
	if (row == OPTIONS_STOP)
		return options.end;
	return run(what, path, &options);
}
