/* SPDX-License-Identifier: Apache-2.0 */
/* spoke lock: the options and operands of its three modes. */
#include "examples/spoke/lock.h"

#include "examples/spoke/escape.h"
#include "examples/spoke/options.h"
#include "examples/spoke/shown.h"

#include <spoke/call.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MIN_NS UINT64_C(100000000)
#define WAIT_HINT " (the time of --wait needs the =, e.g. --wait=10s)"

enum {
	WAIT,
	TTL,
	GRACE,
	LIST,
	BREAK,
	YES,
	CONFIG,
	JSON,
	QUIET,
	VERBOSE,
};

static const struct option_row rows[] = {
	[WAIT] = { "wait", 0, "[=TIME]",
		   "wait while another one holds the lease, for TIME or without end" },
	[TTL] = { "ttl", 0, "TIME",
		  "time to live of the lease in the store (default: URL or file, else 30s)" },
	[GRACE] = { "grace", 0, "TIME",
		    "from SIGTERM to SIGKILL when the lease is lost (default 5s, at most 40% of "
		    "the ttl)" },
	[LIST] = { "list", 0, NULL, "list the leases of the store instead" },
	[BREAK] = { "break", 0, NULL, "take the lease away from its holder instead" },
	[YES] = { "yes", 'y', NULL, "do not ask before --break" },
	[CONFIG] = { "config", 0, "FILE", "configuration file, see spoke.conf(5)" },
	[JSON] = { "json", 0, NULL, "print JSON, with --list one object per line" },
	[QUIET] = { "quiet", 'q', NULL, "print errors only" },
	[VERBOSE] = { "verbose", 'v', NULL, "print the events of the lease on stderr" },
};

static const struct usage usage = {
	.verb = LOCK_VERB,
	.operands = "[URL] NAME -- COMMAND [ARG...]\n"
		    "       spoke lock --list [OPTION...] [URL] [PATTERN]\n"
		    "       spoke lock --break [OPTION...] [URL] NAME",
	.about =
		"Runs COMMAND while it holds the lease NAME, which programs on all machines of a\n"
		"store exclude each other by. When the lease is lost, COMMAND gets SIGTERM at "
		"once,\n"
		"and SIGKILL with all its children after the grace.\n"
		"\n"
		"URL is redis://HOST[:PORT][/DB], redis+unix:///PATH or\n"
		"sentinel://HOST[:PORT],.../PRIMARY. Without it, SPOKE_LEASE_STORE has the URL, or "
		"the\n"
		"file of --config. SPOKE_LEASE_USER and SPOKE_LEASE_PASSWORD keep secrets off the\n"
		"command line. COMMAND finds the name in SPOKE_LEASE and the fence number in\n"
		"SPOKE_FENCE.\n"
		"\n"
		"Exit status: that of COMMAND, 128 + N after signal N; 120: another one holds the\n"
		"lease, 121: the time of --wait has passed, 122: the store cannot be reached,\n"
		"123: the lease was lost, 125: another failure, 126: COMMAND cannot be executed,\n"
		"127: it is not found. 5: --break found no holder.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke lock redis://10.0.0.1 reports -- ./make-reports\n"
		    "  spoke lock redis://10.0.0.1 db:migrate --wait=10m --ttl 10s -- sh -c "
		    "'./migrate $SPOKE_FENCE'\n"
		    "  spoke lock --list redis://10.0.0.1 'db:*'",
};

/* --- options */

static bool take_wait(struct locker *locker, const struct options *options)
{
	locker->wait = true;
	locker->wait_ns = SPOKE_LEASE_FOREVER;
	if (!options->value)
		return true;
	if (!options_duration(options, 0, &locker->wait_ns))
		return false;
	if (!locker->wait_ns)
		(void)options_wrong(options, "must be positive, e.g. 10s; without --wait there is "
					     "no waiting");
	return locker->wait_ns > 0;
}

static bool take_ttl(struct locker *locker, const struct options *options)
{
	if (!options_duration(options, 0, &locker->ttl_ns))
		return false;
	if (locker->ttl_ns < TTL_MIN_NS)
		(void)options_wrong(options, "must be at least 100ms");
	return locker->ttl_ns >= TTL_MIN_NS;
}

static bool take_mode(struct locker *locker, const struct options *options, enum lock_mode mode)
{
	if (locker->mode != LOCK_RUN && locker->mode != mode) {
		(void)options_wrong(options, "--list and --break exclude each other");
		return false;
	}
	locker->mode = mode;
	return true;
}

static bool take_option(struct locker *locker, int row, const struct options *options)
{
	switch (row) {
	case WAIT:
		return take_wait(locker, options);
	case TTL:
		return take_ttl(locker, options);
	case GRACE:
		return options_duration(options, 0, &locker->grace_ns);
	case LIST:
		return take_mode(locker, options, LOCK_LIST);
	case BREAK:
		return take_mode(locker, options, LOCK_BREAK);
	case YES:
		locker->yes = true;
		return true;
	case CONFIG:
		locker->config_path = options->value;
		return true;
	case JSON:
		locker->json = true;
		return true;
	case QUIET:
		locker->quiet = true;
		return true;
	case VERBOSE:
	default:
		locker->verbose = true;
		return true;
	}
}

/* --- operands */

/* Hides the password of a URL from the list of processes. */
static void hide_password(const struct locker *locker, char *url)
{
	char *user = strstr(url, "://");
	char *end = user ? strpbrk(user + 3, "/?#") : NULL;
	char *colon = user ? strchr(user + 3, ':') : NULL;
	char *at = NULL;

	for (char *next = user; next && (!end || next < end); next = strchr(next + 1, '@'))
		at = next;
	if (!colon || !at || at <= colon)
		return;
	memset(colon + 1, '*', (size_t)(at - colon - 1));
	if (!locker->quiet)
		(void)ending_say(VERB_OK, LOCK_VERB,
				 "a password on the command line can be seen by others; use "
				 "SPOKE_LEASE_PASSWORD");
}

static int take_url(struct locker *locker, char *url)
{
	if (!strstr(url, "://")) {
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "%s: not the URL of a store; write e.g. redis://127.0.0.1:6379%s",
				  shown_of(url).text, locker->wait ? WAIT_HINT : "");
	}
	locker->url = strdup(url);
	if (!locker->url)
		return ending_say(VERB_REMOTE, LOCK_VERB, "out of memory");
	hide_password(locker, url);
	return VERB_OK;
}

/* Options of one mode have no meaning in the others. */
static int check_options(const struct locker *locker)
{
	bool runs = locker->mode == LOCK_RUN;

	if (!runs && (locker->wait || locker->ttl_ns || locker->grace_ns != UINT64_MAX))
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "--wait, --ttl and --grace are for a command; remove them");
	if (runs && locker->json)
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "--json is for --list and --break, because the output is that of "
				  "the command");
	if (locker->yes && locker->mode != LOCK_BREAK)
		return ending_say(VERB_USAGE, LOCK_VERB, "--yes is for --break; remove it");
	if (locker->quiet && locker->verbose)
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "--quiet and --verbose exclude each other");
	return VERB_OK;
}

/* Takes "[URL] NAME", or "[URL] [PATTERN]". */
static int take_places(struct locker *locker, const struct options *options, int count)
{
	char **operands = options->operands;
	bool is_list = locker->mode == LOCK_LIST;
	bool has_url = count == 2 || (count == 1 && is_list && strstr(operands[0], "://"));

	if (count > 2) {
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "%s: one operand too many; write [URL] %s%s%s",
				  shown_of(operands[2]).text, is_list ? "[PATTERN]" : "NAME",
				  locker->mode == LOCK_RUN ? " -- COMMAND" : "",
				  locker->wait ? WAIT_HINT : "");
	}
	if (count == 0 && !is_list)
		return options_lacking(options, "NAME missing");
	if (count == 1 && !is_list && strstr(operands[0], "redis://") == operands[0])
		return options_lacking(options, "NAME missing after the URL");
	if (count > has_url)
		locker->name = operands[count - 1];
	return has_url ? take_url(locker, operands[0]) : VERB_OK;
}

static int take_operands(struct locker *locker, const struct options *options)
{
	int count = options->dashes < 0 ? options->operand_count : options->dashes;
	bool has_command = options->operand_count > count;
	int end = check_options(locker);

	if (end != VERB_OK)
		return end;
	if (locker->mode == LOCK_RUN && !has_command)
		return options_lacking(options, options->dashes < 0
							? "COMMAND missing; write -- before it"
							: "COMMAND missing after --");
	if (locker->mode != LOCK_RUN && has_command)
		return ending_say(VERB_USAGE, LOCK_VERB, "%s: --%s runs no command",
				  options->operands[count],
				  locker->mode == LOCK_LIST ? "list" : "break");
	/* Operands were moved to the front, so there is room for the NULL. */
	options->operands[options->operand_count] = NULL;
	locker->command = options->operands + count;
	end = take_places(locker, options, count);
	if (end == VERB_OK && locker->name) {
		char name[sizeof(locker->shown) - 2];

		(void)escape_text((struct spoke_span){ locker->name, strlen(locker->name) }, name,
				  sizeof(name));
		(void)snprintf(locker->shown, sizeof(locker->shown), "\"%s\"", name);
	}
	return end;
}

int lock_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct locker locker = { .grace_ns = UINT64_MAX };
	int end;
	int row;

	while ((row = options_next(&options)) >= 0)
		if (!take_option(&locker, row, &options))
			return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	end = take_operands(&locker, &options);
	if (end == VERB_OK && locker.mode == LOCK_RUN)
		end = lock_run(&locker);
	else if (end == VERB_OK && locker.mode == LOCK_LIST)
		end = lock_list(&locker);
	else if (end == VERB_OK)
		end = lock_break(&locker);
	lock_close(&locker);
	return end;
}
