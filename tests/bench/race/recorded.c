/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes measurements; see recorded.h. Each line has words between tabs:
 *
 *   fact    name    value
 *   rep     pattern peer    marks   the columns of report.h
 *   failed  pattern peer
 *
 * Marks are letters: s spins, l a limit, a the server alone is measured; or "-".
 */
#include "recorded.h"

#include "tests/bench/rpc/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX (4 + REPORT_COLUMNS)
#define NAMES_MAX 128 /* of patterns and peers */

void recorded_add(struct recorded_facts *facts, const char *name, const char *value)
{
	struct recorded_fact *fact;

	if (facts->count == RECORDED_FACTS_MAX)
		return;
	fact = &facts->facts[facts->count++];
	(void)snprintf(fact->name, sizeof(fact->name), "%s", name);
	(void)snprintf(fact->value, sizeof(fact->value), "%s", value);
	for (char *at = fact->value; *at != '\0'; at++)
		if (*at == '\t' || *at == '\n')
			*at = ' ';
}

static void save_row(FILE *file, const struct report_row *row)
{
	for (uint32_t rep = 0; rep < row->reps; rep++) {
		(void)fprintf(file, "rep\t%s\t%s\t-%s%s%s", row->pattern, row->peer,
			      row->spins ? "s" : "", row->is_limit ? "l" : "",
			      row->is_server_alone ? "a" : "");
		for (unsigned i = 0; i < REPORT_COLUMNS; i++)
			(void)fprintf(file, "\t%.6g", row->samples[i][rep]);
		(void)fputc('\n', file);
	}
	for (uint32_t rep = 0; rep < row->failed; rep++)
		(void)fprintf(file, "failed\t%s\t%s\n", row->pattern, row->peer);
}

bool recorded_save(const char *path, const struct recorded_facts *facts)
{
	FILE *file = fopen(path, "we");
	const struct report_row *row;
	bool good;

	if (file == NULL)
		return false;
	for (uint32_t i = 0; i < facts->count; i++)
		(void)fprintf(file, "fact\t%s\t%s\n", facts->facts[i].name, facts->facts[i].value);
	for (uint32_t i = 0; (row = report_at(i)) != NULL; i++)
		save_row(file, row);
	good = ferror(file) == 0;
	return fclose(file) == 0 && good;
}

/* Splits a line at its tabs; returns the number of words. */
static unsigned split(char *line, char **words)
{
	unsigned count = 0;

	line[strcspn(line, "\n")] = '\0';
	while (line != NULL && count < WORDS_MAX)
		words[count++] = strsep(&line, "\t");
	return line == NULL ? count : 0;
}

/* Returns the one copy of a name, which lives as long as the process. */
static const char *keep(const char *name)
{
	static char names[NAMES_MAX][40];
	unsigned at = 0;

	while (at < NAMES_MAX && names[at][0] != '\0' && strcmp(names[at], name) != 0)
		at++;
	if (at == NAMES_MAX || strlen(name) >= sizeof(names[0]))
		host_die("more names, or longer ones, than there is room for");
	(void)snprintf(names[at], sizeof(names[at]), "%s", name);
	return names[at];
}

/* Returns whether the words are a repetition, which is added to the report. */
static bool load_rep(char *const *words, unsigned count)
{
	struct report_row row = { .reps = 1 };

	if (count != WORDS_MAX)
		return false;
	for (unsigned i = 0; i < REPORT_COLUMNS; i++) {
		char *end;

		row.samples[i][0] = strtod(words[4 + i], &end);
		if (end == words[4 + i] || *end != '\0')
			return false;
	}
	row.pattern = keep(words[1]);
	row.peer = keep(words[2]);
	row.spins = strchr(words[3], 's') != NULL;
	row.is_limit = strchr(words[3], 'l') != NULL;
	row.is_server_alone = strchr(words[3], 'a') != NULL;
	report_restore(&row);
	return true;
}

static bool load_line(char *line, struct recorded_facts *facts)
{
	char *words[WORDS_MAX];
	unsigned count = split(line, words);

	if (count == 3 && strcmp(words[0], "fact") == 0)
		recorded_add(facts, words[1], words[2]);
	else if (count == 3 && strcmp(words[0], "failed") == 0)
		report_fail(keep(words[1]), keep(words[2]));
	else
		return count > 0 && strcmp(words[0], "rep") == 0 && load_rep(words, count);
	return true;
}

int recorded_load(const char *path, struct recorded_facts *ret_facts)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	int number = 0;
	bool good = true;

	ret_facts->count = 0;
	if (file == NULL)
		return -1;
	while (good && fgets(line, sizeof(line), file) != NULL) {
		number++;
		good = load_line(line, ret_facts);
	}
	(void)fclose(file);
	return good ? 0 : number;
}
