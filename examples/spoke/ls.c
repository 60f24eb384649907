/* SPDX-License-Identifier: Apache-2.0 */
/* spoke ls and spoke watch: print the contents of a registry, once or as it changes. */
#include "examples/spoke/ending.h"
#include "examples/spoke/json.h"
#include "examples/spoke/listing.h"
#include "examples/spoke/options.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/target.h"
#include "examples/spoke/terminal.h"

#include <spoke/host.h>
#include <spoke/registry.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS UINT64_C(5000000000)
#define ENABLED "enabled" /* state of a provider */

enum {
	JSON,
	TIMEOUT,
};

static const struct option_row rows[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object per line" },
	[TIMEOUT] = { "timeout", 't', "TIME", "timeout for the registry's answer (default 5s)" },
};

#define REGISTRIES                                                                                 \
	"REGISTRY is " SPOKE_REGISTRY_URLS "\n"                                                    \
	"(static needs SERVICE). The format of a line is\n"                                        \
	"\n"                                                                                       \
	"  SERVICE URL version=V group=G weight=N STATE\n"                                         \
	"\n"                                                                                       \
	"with \"-\" for a missing value; STATE is enabled, disabled, or \"passed over: protocol "  \
	"P\"\n"                                                                                    \
	"for a provider of a protocol that spoke does not have, e.g. tri."

static const struct usage ls_usage = {
	.verb = "ls",
	.operands = "REGISTRY [SERVICE]",
	.about = "Lists the services of a registry and their providers.\n\n" REGISTRIES,
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke ls file:///run/spoke/providers\n"
		    "  spoke ls zookeeper://10.0.0.1:2181 demo.EchoService --json",
};

static const struct usage watch_usage = {
	.verb = "watch",
	.operands = "REGISTRY [SERVICE]",
	.about = "Prints the providers of a registry, then added (+) and removed (-) providers, "
		 "until SIGINT\n"
		 "or SIGTERM.\n"
		 "\n" REGISTRIES,
	.rows = rows,
	.count = TIMEOUT,
	.examples = "  spoke watch file:///run/spoke/providers",
};

struct lister {
	const struct usage *usage;
	bool is_watch;
	bool json;
	uint64_t timeout_ns;
	struct spoke_engine *engine;
	struct spoke_alarm late;
	struct spoke_signal interrupt;
	struct spoke_signal term;
	int end;
	struct listing listing;
};

/* --- a line */

static const char *text_or(const char *text, const char *other)
{
	return text && *text ? text : other;
}

/* Prints the address, as a URL without path and parameters. */
static void print_place(const struct spoke_url *url, char *out, size_t size)
{
	struct spoke_url place = *url;

	place.path = "";
	place.parameter_count = 0;
	(void)spoke_url_print(&place, SPOKE_URL_DISPLAY, out, size);
}

/* Does spoke have the protocol of the URL? */
static bool has_protocol(const struct spoke_url *url)
{
	static const char *const known[] = {
		"", "dubbo", "dubbo+unix", "msgpack-rpc", "msgpack-rpc+unix", "tcp", "tcp+unix"
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(url->scheme, known[i]) == 0)
			return true;
	return false;
}

/* Prints whether consumers with spoke call the provider. */
static void print_state(const struct spoke_url *url, char *out, size_t size)
{
	const char *disabled = text_or(spoke_url_get(url, "disabled"), "");
	const char *enabled = text_or(spoke_url_get(url, "enabled"), "true");
	const char *category = text_or(spoke_url_get(url, "category"), "providers");

	if (strcmp(category, "providers") != 0)
		(void)snprintf(out, size, "passed over: category %s", category);
	else if (!has_protocol(url))
		(void)snprintf(out, size, "passed over: protocol %s", url->scheme);
	else if (*disabled ? strcmp(disabled, "true") == 0 : strcmp(enabled, "false") == 0)
		(void)snprintf(out, size, "disabled");
	else
		(void)snprintf(out, size, ENABLED);
}

static void print_line(const char *service, const char *place, const struct spoke_url *url,
		       const char *state)
{
	printf("%s%s%s %s version=%s group=%s weight=%s %s%s%s\n", terminal_colour(TERMINAL_BOLD),
	       service, terminal_colour(TERMINAL_NORMAL), place,
	       text_or(spoke_url_get(url, "version"), "-"),
	       text_or(spoke_url_get(url, "group"), "-"),
	       text_or(spoke_url_get(url, "weight"), "-"),
	       terminal_colour(strcmp(state, ENABLED) == 0 ? TERMINAL_NORMAL : TERMINAL_YELLOW),
	       state, terminal_colour(TERMINAL_NORMAL));
}

static void print_field(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (text)
		json_print_text(text, strlen(text), stdout);
	else
		(void)fputs("null", stdout);
}

static void print_json(const char *service, const char *place, const struct spoke_url *url,
		       const char *state, const char *change)
{
	char whole[2048];

	(void)spoke_url_print(url, SPOKE_URL_DISPLAY, whole, sizeof(whole));
	(void)fputs("{\"service\":", stdout);
	json_print_text(service, strlen(service), stdout);
	if (change)
		print_field("change", change);
	print_field("place", place);
	print_field("version", spoke_url_get(url, "version"));
	print_field("group", spoke_url_get(url, "group"));
	print_field("weight", spoke_url_get(url, "weight"));
	print_field("application", spoke_url_get(url, "application"));
	print_field("state", state);
	print_field("url", whole);
	(void)fputs("}\n", stdout);
}

/* Texts from the registry are safe to print: a URL contains no control characters. */
static void print_provider(const struct lister *lister, const struct listing_service *service,
			   const char *text, const char *change)
{
	struct spoke_url url;
	char place[512];
	char state[128];

	if (spoke_url_parse(spoke_host_env(), text, strlen(text), &url, NULL))
		return;
	print_place(&url, place, sizeof(place));
	print_state(&url, state, sizeof(state));
	if (lister->json) {
		print_json(service->name, place, &url, state, change);
	} else {
		if (change)
			printf("%s%s%s ",
			       terminal_colour(*change == '+' ? TERMINAL_GREEN : TERMINAL_RED),
			       change, terminal_colour(TERMINAL_NORMAL));
		print_line(service->name, place, &url, state);
	}
	spoke_url_fini(&url);
}

/* --- callbacks of the listing */

static void changed(void *arg, const struct listing_service *service, const char *url, bool came)
{
	const struct lister *lister = arg;

	print_provider(lister, service, url, came ? "+" : "-");
	if (!ending_show())
		spoke_engine_stop(lister->engine);
}

/* All lists have been received. */
static void whole(void *arg)
{
	const struct lister *lister = arg;

	for (size_t i = 0; i < lister->listing.count; i++) {
		const struct listing_service *service = lister->listing.services[i];

		for (size_t j = 0; j < service->count; j++)
			print_provider(lister, service, service->urls[j], NULL);
	}
	spoke_engine_stop(lister->engine);
}

static void failed(void *arg, int error)
{
	struct lister *lister = arg;
	const char *why = spoke_engine_why(lister->engine);
	bool is_final = !lister->is_watch || error == SPOKE_EUNSUPPORTED;
	int end = error == SPOKE_ETIMEOUT ? VERB_UNREACHABLE : spoke_error_exit(error);

	lister->end = is_final ? end : VERB_OK;
	(void)ending_say(end, lister->usage->verb, "%s%s", *why ? why : spoke_strerror(error),
			 is_final ? "" : "; will be retried");
	if (is_final)
		spoke_engine_stop(lister->engine);
}

static void late_due(struct spoke_alarm *alarm)
{
	struct lister *lister = spoke_container_of(alarm, struct lister, late);
	const char *why = spoke_engine_why(lister->engine);

	lister->end = ending_say(VERB_UNREACHABLE, lister->usage->verb,
				 "no answer from the registry within %g s%s%s",
				 (double)lister->timeout_ns / 1e9, *why ? ": " : "", why);
	spoke_engine_stop(lister->engine);
}

static void interrupt_came(struct spoke_signal *signal)
{
	spoke_engine_stop(spoke_container_of(signal, struct lister, interrupt)->engine);
}

static void term_came(struct spoke_signal *signal)
{
	spoke_engine_stop(spoke_container_of(signal, struct lister, term)->engine);
}

/* --- the verb */

static int fail(const struct lister *lister, int error)
{
	const char *why = lister->engine ? spoke_engine_why(lister->engine) : "";

	return ending_say(spoke_error_exit(error), lister->usage->verb, "%s",
			  *why ? why : spoke_strerror(error));
}

static int begin(struct lister *lister)
{
	int error;

	if (!lister->is_watch)
		return spoke_alarm_after(lister->engine, &lister->late, lister->timeout_ns,
					 late_due);
	error = spoke_signal_watch(lister->engine, &lister->interrupt, SIGINT, interrupt_came);
	if (!error)
		error = spoke_signal_watch(lister->engine, &lister->term, SIGTERM, term_came);
	return error;
}

static int run(struct lister *lister, char **operands, int count)
{
	int error = ending_quiet_engine(&(struct spoke_engine_options){ 0 }, &lister->engine);

	lister->listing.engine = lister->engine;
	lister->listing.changed = lister->is_watch ? changed : NULL;
	lister->listing.whole = lister->is_watch ? NULL : whole;
	lister->listing.failed = failed;
	lister->listing.changed_arg = lister;
	if (!error)
		error = begin(lister);
	if (!error)
		error = listing_begin(&lister->listing, operands[0],
				      count > 1 ? operands[1] : NULL);
	if (!error)
		error = spoke_engine_run(lister->engine);
	if (error)
		lister->end = fail(lister, error);
	listing_end(&lister->listing);
	spoke_engine_free(lister->engine);
	return lister->end;
}

static bool take_option(struct lister *lister, int row, const struct options *options)
{
	if (row == TIMEOUT)
		return options_duration(options, 0, &lister->timeout_ns);
	lister->json = true;
	return true;
}

/* Does the registry name a file that is not there? */
static bool is_missing(const char *registry)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_url url;
	char path[PATH_MAX];
	bool missing = false;
	char first;

	if (spoke_url_parse(env, registry, strlen(registry), &url, NULL))
		return false;
	if (strcmp(url.scheme, "file") == 0 && url.path[0] &&
	    snprintf(path, sizeof(path), "/%s", url.path) < (int)sizeof(path))
		missing = env->files->read(env->ctx, path, &first, 1) == -ENOENT;
	spoke_url_fini(&url);
	return missing;
}

static int list(const struct usage *usage, int argc, char **argv)
{
	struct options options = options_of(usage, argc, argv);
	struct lister *lister;
	int end;
	int row;

	lister = calloc(1, sizeof(*lister)); /* large: contains the list of services */
	if (!lister)
		return ending_say(VERB_REMOTE, usage->verb, "out of memory");
	lister->usage = usage;
	lister->is_watch = usage == &watch_usage;
	lister->timeout_ns = TIMEOUT_NS;
	end = VERB_USAGE;
	while ((row = options_next(&options)) >= 0)
		if (!take_option(lister, row, &options))
			goto out;
	end = options.end;
	if (row == OPTIONS_STOP)
		goto out;
	if (options.operand_count < 1 || options.operand_count > 2) {
		end = options_lacking(&options, "REGISTRY missing");
	} else if (!target_is_registry(options.operands[0])) {
		end = ending_say(VERB_USAGE, usage->verb,
				 "%s: not a registry; write " SPOKE_REGISTRY_URLS,
				 shown_of(options.operands[0]).text);
	} else if (is_missing(options.operands[0])) {
		end = ending_say(VERB_USAGE, usage->verb,
				 "%s: there is no such file; the first provider that is published "
				 "creates it",
				 shown_of(options.operands[0]).text);
	} else {
		end = run(lister, options.operands, options.operand_count);
	}
out:
	free(lister);
	return end;
}

int ls_verb(int argc, char **argv)
{
	return list(&ls_usage, argc, argv);
}

int watch_verb(int argc, char **argv)
{
	return list(&watch_usage, argc, argv);
}
