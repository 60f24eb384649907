/* SPDX-License-Identifier: Apache-2.0 */
/* A strict reader of Prometheus' text format. */
#include "tests/cluster/admin/promread.h"

#include "tests/core/json/jsonread.h"
#include "tests/support/test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME 128
#define SEEN_MAX 32768
#define FAMILIES_MAX 512

struct family {
	char name[NAME];
	char type[16];
	unsigned samples;
	/* Of a histogram, for one set of its labels: */
	double bound;
	double below;
	bool whole; /* +Inf was seen */
	bool summed;
	bool open; /* its _count, which ends it, has not come */
};

struct reader {
	struct family now;
	char families[FAMILIES_MAX][NAME];
	size_t family_count;
	const char *samples[SEEN_MAX]; /* lines in the copy */
	size_t sample_lens[SEEN_MAX];
	size_t sample_count;
	const char *wrong;
};

static bool fails(struct reader *reader, const char *wrong)
{
	if (reader->wrong == NULL)
		reader->wrong = wrong;
	return false;
}

static bool is_name(char byte, bool first, bool colon)
{
	return isalpha((unsigned char)byte) || byte == '_' || (colon && byte == ':') ||
	       (!first && isdigit((unsigned char)byte));
}

/* Returns the length of a name; 0: there is none. */
static size_t name_len(const char *at, bool colon)
{
	size_t len = 0;

	while (is_name(at[len], len == 0, colon))
		len++;
	return len;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text);
	size_t end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool end_family(struct reader *reader)
{
	const struct family *now = &reader->now;

	if (now->name[0] && now->type[0] == '\0')
		return fails(reader, "a family without a TYPE");
	if (now->open)
		return fails(reader, "a histogram that lacks its _count");
	return true;
}

static bool begin_family(struct reader *reader, const char *line)
{
	size_t len = name_len(line, true);

	if (!end_family(reader))
		return false;
	if (len == 0 || len >= NAME || line[len] != ' ' || line[len + 1] == '\0')
		return fails(reader, "a HELP without a name or a text");
	memset(&reader->now, 0, sizeof(reader->now));
	memcpy(reader->now.name, line, len);
	reader->now.bound = -1;
	for (size_t i = 0; i < reader->family_count; i++)
		if (strcmp(reader->families[i], reader->now.name) == 0)
			return fails(reader, "a repeated family");
	memcpy(reader->families[reader->family_count++], reader->now.name, NAME);
	return true;
}

static bool set_type(struct reader *reader, const char *line)
{
	struct family *now = &reader->now;
	size_t len = strlen(now->name);
	bool counter;

	if (len == 0 || strncmp(line, now->name, len) != 0 || line[len] != ' ')
		return fails(reader, "a TYPE that does not follow its HELP");
	if (now->type[0] || now->samples)
		return fails(reader, "a TYPE after samples, or repeated");
	line += len + 1;
	counter = strcmp(line, "counter") == 0;
	if (!counter && strcmp(line, "gauge") != 0 && strcmp(line, "histogram") != 0)
		return fails(reader, "an unknown TYPE");
	if (counter != ends_in(now->name, "_total"))
		return fails(reader, "exactly the counters have to end in _total");
	(void)snprintf(now->type, sizeof(now->type), "%s", line);
	return true;
}

/* Reads a label's value. Returns the place after its closing quote; NULL: invalid. */
static const char *skip_quoted(const char *at)
{
	const char *from = at;
	char json[4096];
	size_t where;

	while (*at && *at != '"') {
		if (*at == '\\' && (at[1] == '\0' || strchr("\\\"n", at[1]) == NULL))
			return NULL;
		at += *at == '\\' ? 2 : 1;
	}
	if (*at == '\0' || (size_t)(at - from) + 3 > sizeof(json))
		return NULL;
	(void)snprintf(json, sizeof(json), "\"%.*s\"", (int)(at - from), from);
	return jsonread_check(json, strlen(json), &where) ? NULL : at + 1;
}

static const char *skip_labels(struct reader *reader, const char *at)
{
	do {
		size_t len = name_len(++at, false);

		if (len == 0 || strncmp(at, "__", 2) == 0)
			return NULL;
		if (strncmp(at, "le=", 3) == 0) {
			double bound = strtod(at + 4, NULL);

			if (strncmp(at + 4, "+Inf\"", 5) == 0) {
				reader->now.whole = true;
			} else if (bound <= reader->now.bound || reader->now.whole) {
				(void)fails(reader, "bounds that do not rise");
				return NULL;
			}
			reader->now.bound = bound;
		}
		at += len;
		if (at[0] != '=' || at[1] != '"')
			return NULL;
		at = skip_quoted(at + 2);
	} while (at && *at == ',');
	return at && *at == '}' ? at + 1 : NULL;
}

static bool fits_family(struct reader *reader, const char *name, double value)
{
	struct family *now = &reader->now;
	size_t len = strlen(now->name);

	if (now->type[0] == '\0')
		return fails(reader, "a sample before its TYPE");
	if (strcmp(now->type, "histogram") != 0)
		return strcmp(name, now->name) == 0 || fails(reader, "a sample of another family");
	if (strncmp(name, now->name, len) != 0)
		return fails(reader, "a sample of another family");
	now->open = true;
	if (strcmp(name + len, "_bucket") == 0) {
		if (value < now->below)
			return fails(reader, "counts that do not rise");
		now->below = value;
	} else if (strcmp(name + len, "_count") == 0) {
		if (!now->whole || !now->summed)
			return fails(reader, "a histogram that lacks +Inf or _sum");
		if (value < now->below || value > now->below)
			return fails(reader, "a _count that differs from +Inf");
		now->bound = -1;
		now->below = 0;
		now->whole = false;
		now->summed = false;
		now->open = false;
	} else if (strcmp(name + len, "_sum") == 0) {
		now->summed = true;
	} else {
		return fails(reader, "a sample that histograms do not have");
	}
	return true;
}

static bool read_sample(struct reader *reader, const char *line)
{
	const char *at = line + name_len(line, true);
	char name[NAME];
	char *end;
	double value;

	if (at == line || at - line >= NAME)
		return fails(reader, "no name");
	(void)snprintf(name, sizeof(name), "%.*s", (int)(at - line), line);
	if (*at == '{')
		at = skip_labels(reader, at);
	if (at == NULL)
		return fails(reader, "invalid labels");
	for (size_t i = 0; i < reader->sample_count; i++)
		if (reader->sample_lens[i] == (size_t)(at - line) &&
		    memcmp(reader->samples[i], line, (size_t)(at - line)) == 0)
			return fails(reader, "a repeated sample");
	assert_true(reader->sample_count < SEEN_MAX);
	reader->samples[reader->sample_count] = line;
	reader->sample_lens[reader->sample_count++] = (size_t)(at - line);
	if (at[0] != ' ' || !isdigit((unsigned char)at[1]))
		return fails(reader, "no value");
	value = strtod(at + 1, &end);
	if (*end)
		return fails(reader, "text after the value");
	reader->now.samples++;
	return fits_family(reader, name, value);
}

static bool read_line(struct reader *reader, const char *line)
{
	if (strncmp(line, "# HELP ", 7) == 0)
		return begin_family(reader, line + 7);
	if (strncmp(line, "# TYPE ", 7) == 0)
		return set_type(reader, line + 7);
	if (*line == '#' || *line == '\0')
		return fails(reader, "an empty line or a comment");
	return read_sample(reader, line);
}

const char *promread_check(const char *text, size_t len, unsigned *ret_line)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	char *copy = malloc(len + 1);
	const char *wrong;
	char *line = copy;

	assert_non_null(reader);
	assert_non_null(copy);
	memcpy(copy, text, len);
	copy[len] = '\0';
	*ret_line = 0;
	if (strlen(copy) != len || len == 0 || text[len - 1] != '\n')
		(void)fails(reader, "a NUL, or no final newline");
	while (reader->wrong == NULL && *line) {
		char *end = strchr(line, '\n');

		*end = '\0';
		++*ret_line;
		(void)read_line(reader, line);
		line = end + 1;
	}
	if (reader->wrong == NULL)
		(void)end_family(reader);
	wrong = reader->wrong;
	free(copy);
	free(reader);
	return wrong;
}

double promread_value(const char *text, const char *sample)
{
	size_t len = strlen(sample);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, sample, len) == 0 && line[len] == ' ')
			return strtod(line + len, NULL);
	}
	fail_msg("there is no %s", sample);
	return 0;
}
