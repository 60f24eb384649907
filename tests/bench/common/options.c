/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the command line of a benchmark; see options.h. Needs _GNU_SOURCE
 * (program_invocation_short_name).
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_refuse(const char *usage)
{
	(void)fprintf(stderr, "usage: %s %s\n", program_invocation_short_name, usage);
	exit(2);
}

static const struct option_row *find(const char *word, const struct option_row *options,
				     size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, options[i].word) == 0)
			return &options[i];
	return NULL;
}

/* Stores the value; returns whether it is valid. */
static bool take(const struct option_row *option, const char *value)
{
	char *end = NULL;
	unsigned long long number;

	if (value == NULL || *value == '\0')
		return false;
	if (option->text != NULL) {
		*option->text = value;
		return true;
	}
	if (*value < '0' || *value > '9')
		return false;
	number = strtoull(value, &end, 10);
	if (*end != '\0' || number < option->min || number > option->max)
		return false;
	*option->number = number;
	return true;
}

void options_read(int argc, char **argv, const struct option_row *options, size_t count,
		  const char *usage)
{
	for (int i = 1; i < argc; i++) {
		const struct option_row *option = find(argv[i], options, count);

		if (option == NULL)
			options_refuse(usage);
		if (option->flag != NULL)
			*option->flag = true;
		else if (!take(option, argv[++i])) /* NULL after the last */
			options_refuse(usage);
	}
}
