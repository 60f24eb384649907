/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options and prints the help of a verb. */
#include "examples/spoke/options.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/terminal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32u
#define COLUMNS 100u /* of the help */
#define INDENT 27    /* columns before the sentence of an option */

/* The option was --help or --plain, and has been handled. */
#define OPTIONS_NEXT (-3)

/* Options of every verb. */
static const struct option_row common[] = {
	{ "plain", 0, NULL, "no colours and no progress, even on a terminal" },
	{ "help", 'h', NULL, "show this help" },
};

#define COMMON (sizeof(common) / sizeof(common[0]))

struct options options_of(const struct usage *usage, int argc, char **argv)
{
	return (struct options){
		.usage = usage,
		.argc = argc,
		.argv = argv,
		.at = 1,
		.operands = argv + 1,
		.dashes = -1,
	};
}

static const struct option_row *row_at(const struct usage *usage, size_t index)
{
	if (index < usage->count)
		return &usage->rows[index];
	return index - usage->count < COMMON ? &common[index - usage->count] : NULL;
}

static const char *row_name(const void *arg, size_t index)
{
	const struct option_row *row = row_at(arg, index);

	return row ? row->name : NULL;
}

/* Ignores case. */
static bool is_other(char a, char b)
{
	return tolower((unsigned char)a) != tolower((unsigned char)b);
}

/* Returns the edit distance of the two texts, both truncated. */
static unsigned distance(const char *a, const char *b)
{
	unsigned before[NAME_MAX_BYTES + 1];
	size_t a_len = strnlen(a, NAME_MAX_BYTES);
	size_t b_len = strnlen(b, NAME_MAX_BYTES);

	for (unsigned j = 0; j <= b_len; j++)
		before[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned corner = before[0];

		before[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned best = corner + is_other(a[i - 1], b[j - 1]);

			corner = before[j];
			if (before[j] + 1 < best)
				best = before[j] + 1;
			if (before[j - 1] + 1 < best)
				best = before[j - 1] + 1;
			before[j] = best;
		}
	}
	return before[b_len];
}

const char *options_nearest(const char *wrong, const char *(*name)(const void *arg, size_t index),
			    const void *arg)
{
	const char *nearest = NULL;
	const char *next;
	unsigned least = 4;

	/* Reject a distance of half of a short word. */
	if (strlen(wrong) < 2 * (size_t)least)
		least = (unsigned)(strlen(wrong) + 1) / 2;
	for (size_t i = 0; (next = name(arg, i)) != NULL; i++) {
		unsigned far = distance(wrong, next);

		if (*wrong && strncmp(next, wrong, strlen(wrong)) == 0)
			return next;
		if (far < least) {
			least = far;
			nearest = next;
		}
	}
	return nearest;
}

/* --- parsing */

static int stop(struct options *options, int end)
{
	options->end = end;
	return OPTIONS_STOP;
}

/* May the value be omitted? */
static bool is_optional(const struct option_row *row)
{
	return row->value && row->value[0] == '[';
}

/* Accepts an option, with the value given with it, or NULL. */
static int take_row(struct options *options, const struct option_row *row, size_t index,
		    char *value)
{
	const struct usage *usage = options->usage;

	options->row = row;
	options->value = value;
	if (row->value && !value && !is_optional(row)) {
		if (options->at == options->argc) {
			(void)ending_say(VERB_USAGE, usage->verb,
					 "--%s: %s missing; see spoke %s --help", row->name,
					 row->value, usage->verb);
			return stop(options, VERB_USAGE);
		}
		options->value = options->argv[options->at++];
	} else if (!row->value && value) {
		options->value = NULL; /* may be a token, e.g. of --token-plain */
		return stop(options, options_wrong(options, "takes no value"));
	}
	if (index < usage->count)
		return (int)index;
	if (row == &common[0]) {
		terminal_plain();
		return OPTIONS_NEXT;
	}
	options_help(usage);
	return stop(options, VERB_OK);
}

/* "--name" or "--name=value". */
static int take_long(struct options *options, char *argument)
{
	const struct usage *usage = options->usage;
	char *equals = strchr(argument, '=');
	size_t len = equals ? (size_t)(equals - argument) : strlen(argument);
	char name[NAME_MAX_BYTES];
	const char *nearest;
	const struct option_row *row;

	for (size_t i = 0; (row = row_at(usage, i)) != NULL; i++)
		if (strlen(row->name) == len && strncmp(row->name, argument, len) == 0)
			return take_row(options, row, i, equals ? equals + 1 : NULL);
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, argument);
	nearest = options_nearest(name, row_name, usage);
	if (nearest)
		(void)ending_say(VERB_USAGE, usage->verb,
				 "--%s: no such option; did you mean --%s?", name, nearest);
	else
		(void)ending_say(VERB_USAGE, usage->verb,
				 "--%s: no such option; see spoke %s --help", name, usage->verb);
	return stop(options, VERB_USAGE);
}

/* Parses a letter of "-nv" or "-c5"; the value follows the letter. */
static int take_letter(struct options *options, char *letters)
{
	const struct usage *usage = options->usage;
	const struct option_row *row;

	options->flags = NULL;
	for (size_t i = 0; (row = row_at(usage, i)) != NULL; i++) {
		if (row->letter != *letters)
			continue;
		if (!letters[1])
			return take_row(options, row, i, NULL);
		if (row->value)
			return take_row(options, row, i, letters + 1);
		options->flags = letters + 1;
		return take_row(options, row, i, NULL);
	}
	(void)ending_say(VERB_USAGE, usage->verb, "-%c: no such option; see spoke %s --help",
			 isprint((unsigned char)*letters) ? *letters : '?', usage->verb);
	return stop(options, VERB_USAGE);
}

/* "-5" is a number, unless 5 is the letter of an option. */
static bool is_letters(const struct usage *usage, const char *argument)
{
	const struct option_row *row;

	if (argument[0] != '-' || !argument[1])
		return false;
	for (size_t i = 0; (row = row_at(usage, i)) != NULL; i++)
		if (row->letter == argument[1])
			return true;
	return !isdigit((unsigned char)argument[1]);
}

static int next(struct options *options)
{
	if (options->flags)
		return take_letter(options, options->flags);
	while (options->at < options->argc) {
		char *argument = options->argv[options->at++];

		if (strcmp(argument, "--") == 0) {
			options->dashes = options->operand_count;
			while (options->at < options->argc)
				options->operands[options->operand_count++] =
					options->argv[options->at++];
			break;
		}
		if (strncmp(argument, "--", 2) == 0)
			return take_long(options, argument + 2);
		if (is_letters(options->usage, argument))
			return take_letter(options, argument + 1);
		options->operands[options->operand_count++] = argument;
	}
	return OPTIONS_DONE;
}

int options_next(struct options *options)
{
	int row;

	do
		row = next(options);
	while (row == OPTIONS_NEXT);
	return row;
}

/* --- errors and help */

int options_wrong(const struct options *options, const char *what)
{
	return ending_say(VERB_USAGE, options->usage->verb, "--%s%s%s: %s", options->row->name,
			  options->value ? "=" : "",
			  options->value ? shown_of(options->value).text : "", what);
}

int options_lacking(const struct options *options, const char *what)
{
	const char *verb = options->usage->verb;

	return ending_say(VERB_USAGE, verb,
			  "%s\n"
			  "usage: spoke %s %s\n"
			  "see spoke %s --help",
			  what, verb, options->usage->operands, verb);
}

/* Prints a text in lines of at most COLUMNS, from the column after `indent` blanks on. */
static void print_wrapped(const char *text, int indent)
{
	size_t room = COLUMNS - (size_t)indent;

	while (strlen(text) > room) {
		size_t len = room;

		while (len > 0 && text[len] != ' ')
			len--;
		if (len == 0)
			len = strcspn(text, " ");
		printf("%.*s\n%*s", (int)len, text, indent, "");
		text += len + (text[len] == ' ');
	}
	printf("%s\n", text);
}

static void print_row(const struct option_row *row)
{
	char head[64];

	(void)snprintf(head, sizeof(head), "  %c%c --%s%s%s", row->letter ? '-' : ' ',
		       row->letter ? row->letter : ' ', row->name,
		       row->value && !is_optional(row) ? " " : "", row->value ? row->value : "");
	if (strlen(head) < INDENT - 1)
		printf("%-*s", INDENT, head);
	else
		printf("%s\n%*s", head, INDENT, "");
	print_wrapped(row->sentence, INDENT);
}

void options_help(const struct usage *usage)
{
	printf("usage: spoke %s [OPTION...] %s\n\n%s\n\n", usage->verb, usage->operands,
	       usage->about);
	for (size_t i = 0; row_at(usage, i); i++)
		print_row(row_at(usage, i));
	if (usage->examples)
		printf("\nexamples:\n%s\n", usage->examples);
}
