/* SPDX-License-Identifier: Apache-2.0 */
/* spoke journal: lists and changes the tickets in the journal of a consumer. */
#include "examples/spoke/ending.h"
#include "examples/spoke/escape.h"
#include "examples/spoke/json.h"
#include "examples/spoke/options.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/terminal.h"

#include <spoke/env.h>
#include <spoke/host.h>
#include <spoke/journal.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VERB "journal"
#define NS_PER_S UINT64_C(1000000000)
#define NAME_TEXT 256u
#define TIME_TEXT 32u
#define NUMBER_TEXT 17u
#define ARGS_TEXT 1024u

enum {
	JSON,
};

static const struct option_row rows[] = {
	[JSON] = { "json", 'j', NULL, "print one JSON object per line" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "DIR [list|show ID|check|export|drop ID|retry ID|repair]",
	.about =
		"Shows and changes the tickets in a journal: the failback calls of a consumer "
		"that\n"
		"wait for their next attempt, in the folder that it has as its option `journal`.\n"
		"ID has the 16 digits of a ticket, as in lists and events, or the 32 of its "
		"spoke.id.\n"
		"\n"
		"  list      one line per ticket (default)\n"
		"  show ID   one ticket with its arguments\n"
		"  check     reads all; exit status 1 if records are damaged\n"
		"  export    one JSON object per ticket, with all its fields\n"
		"  drop ID   cancels the ticket; it is not tried again\n"
		"  retry ID  gives it all attempts and its whole time again, from now on, even if\n"
		"            the request may have run\n"
		"  repair    writes all tickets that can be read anew, without the damage\n"
		"\n"
		"The first four read only, also while the consumer runs. The others need a "
		"journal\n"
		"that no process has open; the consumer takes the tickets at its next start.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke journal /var/lib/shop/journal\n"
		    "  spoke journal /var/lib/shop/journal export >tickets.jsonl\n"
		    "  spoke journal /var/lib/shop/journal drop 5d2ab0c1f0447e19",
};

enum action {
	LIST,
	SHOW,
	CHECK,
	EXPORT,
	DROP,
	RETRY,
	REPAIR,
};

static const struct {
	const char *name;
	bool needs_id;
} actions[] = {
	[LIST] = { "list", false },     [SHOW] = { "show", true }, [CHECK] = { "check", false },
	[EXPORT] = { "export", false }, [DROP] = { "drop", true }, [RETRY] = { "retry", true },
	[REPAIR] = { "repair", false },
};

#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

struct inspector {
	const char *folder;
	const char *id; /* as written; NULL: of all */
	enum action action;
	bool json;
	uint64_t now_ns; /* since 1970 */
	uint64_t rows;
	uint64_t number; /* of the ticket with the id */
	bool found;
};

/* --- tickets */

/* Prints the number of a ticket as events have it: the last half of its spoke.id. */
static const char *print_number(uint64_t number, char text[NUMBER_TEXT])
{
	(void)snprintf(text, NUMBER_TEXT, "%016" PRIx64, number);
	return text;
}

static bool is_meant(const struct inspector *inspector, const struct spoke_journal_ticket *ticket)
{
	char number[NUMBER_TEXT];

	return !inspector->id || strcmp(inspector->id, print_number(ticket->number, number)) == 0 ||
	       (*ticket->id && strcmp(inspector->id, ticket->id) == 0);
}

/* Prints a time in its two greatest units, e.g. "2d 3h". */
static const char *print_time(uint64_t ns, char text[TIME_TEXT])
{
	static const struct {
		uint64_t s;
		const char *name;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
	const uint64_t s = ns / NS_PER_S;
	unsigned unit = 0;

	while (unit < 3 && s < units[unit].s)
		unit++;
	if (unit == 3)
		(void)snprintf(text, TIME_TEXT, "%" PRIu64 "s", s);
	else
		(void)snprintf(text, TIME_TEXT, "%" PRIu64 "%s %" PRIu64 "%s", s / units[unit].s,
			       units[unit].name, s % units[unit].s / units[unit + 1].s,
			       units[unit + 1].name);
	return text;
}

/* Returns how long ago a ticket began. A clock that was set back makes it new. */
static uint64_t age_of(const struct inspector *inspector, const struct spoke_journal_ticket *ticket)
{
	return inspector->now_ns > ticket->begun_ns ? inspector->now_ns - ticket->begun_ns : 0;
}

static uint64_t left_of(const struct inspector *inspector,
			const struct spoke_journal_ticket *ticket)
{
	uint64_t age_ns = age_of(inspector, ticket);

	return ticket->lasts_ns > age_ns ? ticket->lasts_ns - age_ns : 0;
}

static const char *print_name(const struct spoke_journal_ticket *ticket, char text[NAME_TEXT])
{
	char service[NAME_TEXT / 2];
	char method[NAME_TEXT / 2 - 2];

	(void)escape_text(ticket->service, service, sizeof(service));
	(void)escape_text(ticket->method, method, sizeof(method));
	(void)snprintf(text, NAME_TEXT, "%s.%s", service, method);
	return text;
}

static void print_row(struct inspector *inspector, const struct spoke_journal_ticket *ticket)
{
	char name[NAME_TEXT];
	char age[TIME_TEXT];
	char left[TIME_TEXT];
	char number[NUMBER_TEXT];

	if (!inspector->rows++)
		printf("%s%16s %8s %9s %9s %9s %s%s\n", terminal_colour(TERMINAL_BOLD), "TICKET",
		       "ATTEMPTS", "AGE", "LEFT", "BYTES", "METHOD",
		       terminal_colour(TERMINAL_NORMAL));
	printf("%s %8" PRIu32 " %9s %9s %9" PRIu32 " %s%s\n", print_number(ticket->number, number),
	       ticket->attempts, print_time(age_of(inspector, ticket), age),
	       print_time(left_of(inspector, ticket), left), ticket->bytes,
	       print_name(ticket, name),
	       ticket->is_answer                ? " (answered)"
	       : ticket->unsure && ticket->once ? " (may have run)"
						: "");
}

static void print_line(const char *name, struct spoke_span text)
{
	char shown[NAME_TEXT];

	if (text.len > 0) {
		(void)escape_text(text, shown, sizeof(shown));
		printf("%-12s %s\n", name, shown);
	}
}

static void print_values_line(const char *name, struct spoke_span values)
{
	char shown[ARGS_TEXT];

	(void)escape_values(values, shown, sizeof(shown));
	printf("%-12s %s\n", name, shown);
}

/* Prints what only an answer has. */
static void print_answer(const struct spoke_journal_ticket *ticket)
{
	const struct spoke_span value = { ticket->value.data, ticket->value.len };

	if (ticket->dropped)
		printf("%-12s %s\n", "answer", "too large to be kept");
	else if (ticket->error)
		printf("%-12s %s, code %" PRId32 "\n", "answer", spoke_errname(ticket->error),
		       ticket->error_code);
	else
		print_values_line("answer", value);
	print_line("text", ticket->error_text);
}

/* Prints what only a call has. */
static void print_call(const struct spoke_journal_ticket *ticket)
{
	char text[TIME_TEXT];

	print_values_line("arguments", ticket->args);
	printf("%-12s %" PRIu32 " of %" PRIu32 "%s\n", "attempts", ticket->attempts,
	       ticket->retries + 1,
	       !ticket->unsure ? ""
	       : ticket->once  ? "; one may have run, and must not run twice"
			       : "; one may have run");
	printf("%-12s %s\n", "period", print_time(ticket->period_ns, text));
}

static void print_details(const struct inspector *inspector,
			  const struct spoke_journal_ticket *ticket)
{
	const struct spoke_span attachments = { ticket->attachments.data, ticket->attachments.len };
	const struct spoke_span id = { ticket->id, strlen(ticket->id) };
	char text[TIME_TEXT];
	char number[NUMBER_TEXT];

	printf("%-12s %s\n", "ticket", print_number(ticket->number, number));
	print_line("spoke.id", id);
	print_line("service", ticket->service);
	print_line("version", ticket->version);
	print_line("group", ticket->group);
	print_line("method", ticket->method);
	if (ticket->is_answer)
		print_answer(ticket);
	else
		print_call(ticket);
	if (attachments.len > 0)
		print_values_line("attachments", attachments);
	printf("%-12s %s ago\n", ticket->is_answer ? "answered" : "begun",
	       print_time(age_of(inspector, ticket), text));
	printf("%-12s %s\n", "left", print_time(left_of(inspector, ticket), text));
	printf("%-12s %08" PRIu32 ".spokej, %" PRIu32 " bytes\n", "record", ticket->segment,
	       ticket->bytes);
}

/* --- JSON */

static void print_text(const char *name, struct spoke_span text)
{
	printf(",\"%s\":", name);
	json_print_text(text.data, text.len, stdout);
}

static void print_values(const char *name, struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value;
	const char *before = "";

	printf(",\"%s\":[", name);
	for (; spoke_cursor_next(&cursor, &value); before = ",") {
		(void)fputs(before, stdout);
		json_print(value, SPOKE_JSON_LINE, stdout);
	}
	(void)fputs("]", stdout);
}

static void print_json_answer(const struct spoke_journal_ticket *ticket)
{
	printf(",\"answer\":{\"error\":\"%s\",\"code\":%" PRId32 ",\"kept\":%s",
	       spoke_errname(ticket->error), ticket->error_code,
	       ticket->dropped ? "false" : "true");
	print_text("text", ticket->error_text);
	(void)fputs(",\"value\":", stdout);
	json_print(ticket->value, SPOKE_JSON_LINE, stdout);
	(void)fputs("}", stdout);
}

/* The same object for each action, so that a script can read them all. */
static void print_json(const struct inspector *inspector, const struct spoke_journal_ticket *ticket)
{
	const struct spoke_span id = { ticket->id, strlen(ticket->id) };
	char number[NUMBER_TEXT];

	printf("{\"ticket\":\"%s\"", print_number(ticket->number, number));
	print_text("id", id);
	print_text("service", ticket->service);
	print_text("version", ticket->version);
	print_text("group", ticket->group);
	print_text("method", ticket->method);
	print_values("arguments", ticket->args);
	(void)fputs(",\"attachments\":", stdout);
	json_print(ticket->attachments, SPOKE_JSON_LINE, stdout);
	printf(",\"attempts\":%" PRIu32 ",\"retries\":%" PRIu32
	       ",\"unsure\":%s,\"once\":%s,\"one_way\":%s",
	       ticket->attempts, ticket->retries, ticket->unsure ? "true" : "false",
	       ticket->once ? "true" : "false", ticket->one_way ? "true" : "false");
	printf(",\"begun_ns\":%" PRIu64 ",\"lasts_ns\":%" PRIu64 ",\"left_ns\":%" PRIu64
	       ",\"period_ns\":%" PRIu64 ",\"segment\":%" PRIu32 ",\"bytes\":%" PRIu32,
	       ticket->begun_ns, ticket->lasts_ns, left_of(inspector, ticket), ticket->period_ns,
	       ticket->segment, ticket->bytes);
	if (ticket->is_answer)
		print_json_answer(ticket);
	(void)fputs("}\n", stdout);
}

static void take(void *arg, const struct spoke_journal_ticket *ticket)
{
	struct inspector *inspector = arg;

	if (!is_meant(inspector, ticket))
		return;
	inspector->found = true;
	inspector->number = ticket->number;
	if (inspector->action == CHECK || inspector->action >= DROP)
		return;
	if (inspector->json || inspector->action == EXPORT)
		print_json(inspector, ticket);
	else if (inspector->action == SHOW)
		print_details(inspector, ticket);
	else
		print_row(inspector, ticket);
}

/* --- actions */

static int fail(const struct inspector *inspector, int error,
		const struct spoke_journal_report *report)
{
	return ending_say(error == SPOKE_EINVAL || error == SPOKE_ENOENT ? VERB_USAGE : VERB_REMOTE,
			  VERB, "%s: %s", shown_of(inspector->folder).text,
			  *report->why ? report->why : spoke_strerror(error));
}

/* Prints the damage of the files. */
static void print_damage(const struct inspector *inspector,
			 const struct spoke_journal_report *report)
{
	const struct shown folder = shown_of(inspector->folder);

	if (report->damaged > 0) {
		(void)ending_say(VERB_OK, VERB,
				 "%s: %08" PRIu32 ".spokej, byte %" PRIu32 ": damaged, at %" PRIu32
				 " places in all; repair keeps the tickets that can be read",
				 folder.text, report->segment, report->offset, report->damaged);
	}
	if (report->skipped > 0)
		(void)ending_say(VERB_OK, VERB, "%s: %" PRIu32 " records cannot be understood",
				 folder.text, report->skipped);
}

static int print_check(const struct inspector *inspector, const struct spoke_journal_report *report)
{
	const bool is_fine = report->damaged == 0 && report->skipped == 0;

	if (inspector->json) {
		printf("{\"tickets\":%" PRIu32 ",\"bytes\":%" PRIu64
		       ",\"used\":%s,\"torn\":%s,\"damaged\":%" PRIu32 ",\"skipped\":%" PRIu32
		       "}\n",
		       report->tickets, report->bytes, report->used ? "true" : "false",
		       report->torn ? "true" : "false", report->damaged, report->skipped);
	} else {
		printf("%" PRIu32 " tickets of %" PRIu64 " bytes%s%s%s\n", report->tickets,
		       report->bytes, report->used ? "; a process has the journal open" : "",
		       report->torn && !report->used
			       ? "; the last write was cut by a crash, which is no damage"
			       : "",
		       is_fine ? "; no damage" : "");
	}
	return is_fine ? VERB_OK : VERB_REMOTE;
}

static int read_all(struct inspector *inspector)
{
	struct spoke_journal_report report;
	int error = spoke_journal_read(NULL, inspector->folder, take, inspector, &report);

	if (error)
		return fail(inspector, error, &report);
	print_damage(inspector, &report);
	if (inspector->action == CHECK)
		return print_check(inspector, &report);
	if (inspector->id && !inspector->found)
		return ending_say(VERB_USAGE, VERB, "%s: no ticket %s, or it is settled",
				  shown_of(inspector->folder).text, shown_of(inspector->id).text);
	if (inspector->action == LIST && report.tickets == 0 && !inspector->json)
		printf("no tickets\n");
	return VERB_OK;
}

static int change(struct inspector *inspector)
{
	const enum spoke_journal_change what = inspector->action == DROP    ? SPOKE_JOURNAL_DROP
					       : inspector->action == RETRY ? SPOKE_JOURNAL_RETRY
									    : SPOKE_JOURNAL_REPAIR;
	struct spoke_journal_report report;
	int error;
	int end = inspector->id ? read_all(inspector) : VERB_OK; /* finds the number of an id */

	if (end != VERB_OK)
		return end;
	error = spoke_journal_change(NULL, inspector->folder, what, inspector->number, &report);
	if (error)
		return fail(inspector, error, &report);
	if (inspector->action == REPAIR) {
		printf("%" PRIu32 " tickets written anew; %" PRIu32 " damaged places, %" PRIu32
		       " records not understood\n",
		       report.tickets, report.damaged, report.skipped);
	} else {
		char number[NUMBER_TEXT];

		printf("ticket %s: %s\n", print_number(inspector->number, number),
		       inspector->action == DROP
			       ? "dropped"
			       : "all attempts and its whole time again, from now on");
	}
	return VERB_OK;
}

/* --- operands */

static int read_operands(struct inspector *inspector, const struct options *options)
{
	const int count = options->operand_count;
	const char *name = count > 1 ? options->operands[1] : actions[LIST].name;
	unsigned at = 0;

	if (count == 0)
		return options_lacking(options, "DIR missing");
	while (at < ACTIONS && strcmp(actions[at].name, name) != 0)
		at++;
	if (at == ACTIONS) {
		return ending_say(VERB_USAGE, VERB,
				  "%s: no such action; use list, show, check, export, drop, retry "
				  "or repair",
				  shown_of(name).text);
	}
	if (actions[at].needs_id && count < 3)
		return options_lacking(options, "ID missing");
	if (count > (actions[at].needs_id ? 3 : 2))
		return options_lacking(options, "too many operands");
	inspector->folder = options->operands[0];
	inspector->action = (enum action)at;
	inspector->id = actions[at].needs_id ? options->operands[2] : NULL;
	return VERB_OK;
}

int journal_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	const struct spoke_env *env = spoke_host_env();
	struct inspector inspector = { .folder = NULL };
	int row;
	int end;

	while ((row = options_next(&options)) >= 0)
		inspector.json = true;
	if (row == OPTIONS_STOP)
		return options.end;
	end = read_operands(&inspector, &options);
	if (end != VERB_OK)
		return end;
	inspector.now_ns = env->wall(env->ctx);
	return inspector.action >= DROP ? change(&inspector) : read_all(&inspector);
}
