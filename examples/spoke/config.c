/* SPDX-License-Identifier: Apache-2.0 */
/* spoke config: checks configuration files and explains the keys. */
#include "examples/spoke/config.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/options.h"
#include "examples/spoke/settings.h"
#include "examples/spoke/shown.h"

#include <spoke/admin.h>
#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/lease.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* The registry of the file is not asked. */
static int open_nothing(struct spoke_engine *engine, const struct spoke_url *url,
			const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	(void)engine;
	(void)url;
	(void)up;
	*ret_registry = arg;
	return SPOKE_OK;
}

static void want_nothing(void *registry, struct spoke_registry_entry *entry)
{
	(void)registry;
	(void)entry;
}

static void close_nothing(void *registry)
{
	(void)registry;
}

static const struct spoke_registry no_registry = {
	.scheme = "none",
	.open = open_nothing,
	.want = want_nothing,
	.unwant = want_nothing,
	.close = close_nothing,
};

static int connect_nowhere(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	(void)ctx;
	(void)to;
	(void)ret_fd;
	return -EACCES;
}

/* Takes no address of the file, and makes no file of a unix socket. */
static int listen_elsewhere(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	const struct spoke_net *net = spoke_host_env()->net;
	struct spoke_address loopback;
	const int error = net->parse(ctx, "127.0.0.1:0", &loopback);

	(void)at;
	return error ? error : net->listen(ctx, &loopback, backlog, ret_fd);
}

static void handle_nothing(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

/* Reports why an object was not made. Returns whether it was. */
static bool is_made(const char *path, const struct spoke_engine *engine, int error)
{
	if (!error)
		return true;
	(void)fprintf(stderr, "%s: %s\n", path,
		      engine ? spoke_engine_why(engine) : spoke_strerror(error));
	return false;
}

/* Adds a service for each section of one: its tokens and callers are those of requests. */
static bool add_services(const char *path, struct spoke_engine *engine,
			 const struct spoke_config *config, struct spoke_provider *provider)
{
	static const struct spoke_handler handlers[] = { { .handle = handle_nothing } };
	bool fine = true;

	for (size_t i = 0; spoke_config_service(config, i); i++) {
		const struct spoke_service_options service = {
			.name = spoke_config_service(config, i),
		};

		fine &= is_made(path, engine, spoke_provider_add(provider, &service, handlers, 1));
	}
	return fine;
}

/* Makes the objects that programs make of the file, at none of its addresses. */
static bool make_objects(const char *path, struct spoke_engine *engine, struct spoke_config *config)
{
	const bool listed = spoke_config_get(config, "registry", "url") != NULL;
	const struct spoke_registry *registry = listed ? &no_registry : NULL;
	const struct spoke_provider_options serving = { .config = config,
							.registry_kind = registry };
	const struct spoke_consumer_options calling = {
		.url = listed ? "consumer://any/any" : "dubbo://127.0.0.1:1/any",
		.config = config,
		.registry_kind = registry,
	};
	const struct spoke_leases_options leasing = {
		.store = spoke_config_get(config, "lease", "store") ? NULL : "redis://127.0.0.1",
		.config = config,
	};
	const struct spoke_admin_options showing = {
		.listen = spoke_config_get(config, "engine", "admin"),
		.config = config,
	};
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_leases *leases;
	struct spoke_admin *page;
	bool fine = is_made(path, engine, spoke_provider_new(engine, &serving, &provider));

	fine = fine && add_services(path, engine, config, provider);
	fine &= is_made(path, engine, spoke_consumer_new(engine, &calling, &consumer));
	fine &= is_made(path, engine, spoke_leases_new(engine, &leasing, &leases));
	if (showing.listen)
		fine &= is_made(path, engine, spoke_admin_new(engine, &showing, &page));
	return fine;
}

/* Reports values that do not fit together, and files that cannot be used, as a start would. */
static bool is_startable(const char *path, struct spoke_config *config)
{
	struct spoke_env env = *spoke_host_env();
	struct spoke_net net = *env.net;
	const struct spoke_engine_options options = { .env = &env, .log = "off" };
	struct spoke_engine *engine = NULL;
	bool fine;

	net.connect = connect_nowhere;
	net.listen = listen_elsewhere;
	env.net = &net;
	fine = is_made(path, NULL, spoke_engine_new(&options, &engine)) &&
	       make_objects(path, engine, config);
	spoke_engine_free(engine);
	return settings_retries_fit("config", path, config) && fine;
}

static int check(const char *path)
{
	struct spoke_config *config;
	bool fine;

	if (!settings_is_file("config", path))
		return VERB_USAGE;
	if (spoke_config_load(NULL, path, print_wrong, NULL, &config) != SPOKE_OK)
		return VERB_REMOTE;
	fine = is_startable(path, config);
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
