/* SPDX-License-Identifier: Apache-2.0 */
/* spoke config: checks configuration files and explains the keys. */
#include "examples/spoke/config.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/options.h"
#include "examples/spoke/settings.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/startable.h"

#include <stdio.h>
#include <string.h>

#define SECTION 256 /* bytes of a section's name */

enum {
	CHECK,
	EXPLAIN,
	MAN
};

static const struct option_row rows[] = {
	[CHECK] = { "check", 0, "FILE", "report all errors in FILE" },
	[EXPLAIN] = { "explain", 0, NULL, "list all keys, or explain one" },
	[MAN] = { "man", 0, NULL, "print the manual page spoke.conf(5) as mdoc" },
};

static const struct usage usage = {
	"config",
	"--check FILE | --explain [KEY] | --man",
	"Checks configuration files and explains the keys.\n"
	"Exit status: 0: no errors, 1: errors in the file, 2: wrong usage.",
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

/* The file cannot tell what its program does. */
static void note_tickets(const char *path, const struct spoke_config *config, const char *section)
{
	const char *cluster = spoke_config_get(config, section, "cluster");

	if (cluster && strcmp(cluster, "failback") == 0)
		printf("%s: [%s] cluster = failback: only in a program that takes tickets (options "
		       "settled, takes_tickets); others go on with failover\n",
		       path, section);
}

static void note_all_tickets(const char *path, const struct spoke_config *config)
{
	static const char *const kinds[] = { "service", "method" };
	char section[SECTION];
	const char *name;

	note_tickets(path, config, "consumer");
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		for (size_t i = 0; (name = spoke_config_name(config, kinds[kind], i)) != NULL;
		     i++) {
			(void)snprintf(section, sizeof(section), "%s.%s", kinds[kind], name);
			note_tickets(path, config, section);
		}
	}
}

static void note_offline(const char *path, const struct spoke_config *config)
{
	static const char *const offs[] = { "off", "false", "no", "0" };
	const char *online = spoke_config_get(config, "provider", "online");
	bool off = false;

	for (size_t i = 0; online && i < sizeof(offs) / sizeof(offs[0]); i++)
		off |= strcmp(online, offs[i]) == 0;
	if (off && spoke_config_get(config, "provider", "register.delay"))
		printf("%s: [provider] register.delay: not followed, since online = off: the "
		       "provider is offline until it is told\n",
		       path);
}

static int check(const char *path)
{
	struct spoke_config *config;
	bool fine;

	if (!settings_is_file("config", path))
		return VERB_USAGE;
	if (spoke_config_load(NULL, path, print_wrong, NULL, &config) != SPOKE_OK)
		return VERB_REMOTE;
	fine = startable(path, config, print_wrong, NULL);
	note_all_tickets(path, config);
	note_offline(path, config);
	spoke_config_free(config);
	if (!fine)
		return VERB_REMOTE;
	printf("%s: no errors\n", path);
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

/* Is it the key's name, or, as in URLs, with its section before it, e.g. lease.wait? */
static bool is_named(const struct spoke_config_key *key, const char *name)
{
	const size_t len = strlen(key->sections);

	return strcmp(name, key->name) == 0 ||
	       (strncmp(name, key->sections, len) == 0 && name[len] == '.' &&
		strcmp(name + len + 1, key->name) == 0);
}

static int explain_one(const char *name)
{
	struct config_walk walk = { 0 };
	const char *nearest;
	bool found = false;

	while (config_walk(&walk)) {
		if (!is_named(&walk.key, name))
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
		return ending_say(VERB_USAGE, "config", "%s: no such key; did you mean %s?",
				  shown_of(name).text, nearest);
	return ending_say(VERB_USAGE, "config",
			  "%s: no such key; spoke config --explain lists all keys",
			  shown_of(name).text);
}

static int explain_all(void)
{
	struct config_walk walk = { 0 };

	printf("Keys by section of the file, each with its default. Examples of durations: 250ms, "
	       "1.5s,\n"
	       "2m; of sizes: 64KiB, 8MiB. A reload (SIGHUP) applies live keys at once; other keys "
	       "need\n"
	       "a restart of the process.\n");
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
		return options_lacking(options, "only one KEY is allowed");
	if (what == CHECK && options->operand_count)
		return options_lacking(options, "only one FILE is allowed");
	if (what == MAN && options->operand_count)
		return options_lacking(options, "--man takes no KEY");
	switch (what) {
	case CHECK:
		return check(path);
	case EXPLAIN:
		return options->operand_count ? explain_one(options->operands[0]) : explain_all();
	case MAN:
		config_print_manual();
		return VERB_OK;
	default:
		return options_lacking(options, "--check FILE, --explain or --man missing");
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
			return options_wrong(&options,
					     "--check, --explain and --man exclude each other");
		what = row;
		path = options.value;
	}
	if (row == OPTIONS_STOP)
		return options.end;
	return run(what, path, &options);
}
