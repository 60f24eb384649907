/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a part of YAML by recursive descent of bounded depth. */
#include "core/text/yaml.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\r"
#define LINE_END "\n"
/* Bytes with which a plain scalar may not begin, because they have a meaning in YAML. */
#define INDICATORS "&*!|>%@`?,[]{}#\"'"

struct reader {
	const char *at;
	const char *line; /* begin of the line */
	struct spokei_yaml_error why;
	char *copies; /* free room for the next scalar */
	struct spokei_yaml *values;
	unsigned count;
	unsigned depth;
};

/* Returns false, so that callers can return the result. */
static bool refuse(struct reader *reader, const char *why)
{
	if (reader->why.text == NULL)
		reader->why.text = why;
	return false;
}

/* --- lines and blanks */

static size_t column_of(const struct reader *reader)
{
	return (size_t)(reader->at - reader->line);
}

static bool ends_word(char byte)
{
	return byte == '\0' || strchr(BLANKS LINE_END, byte) != NULL;
}

/* Skips blanks and a comment. */
static void skip_blanks(struct reader *reader)
{
	const char *begin = reader->at;

	reader->at += strspn(begin, BLANKS);
	if (*reader->at == '#' && (reader->at > begin || begin == reader->line))
		reader->at += strcspn(reader->at, LINE_END);
}

/* Skips blanks, comments and ends of lines. */
static void skip_lines(struct reader *reader)
{
	skip_blanks(reader);
	while (*reader->at == '\n') {
		reader->line = ++reader->at;
		reader->why.line++;
		skip_blanks(reader);
	}
}

/* Goes from the end of a value to the next line with content. */
static bool next_line(struct reader *reader)
{
	skip_blanks(reader);
	if (*reader->at != '\n' && *reader->at != '\0')
		return refuse(reader, "text after the end of a value");
	skip_lines(reader);
	if (memchr(reader->line, '\t', column_of(reader)))
		return refuse(reader, "a tab before a value; indent by blanks");
	return true;
}

/* Returns whether an item of an indented list begins here. */
static bool is_item(const struct reader *reader)
{
	return *reader->at == '-' && ends_word(reader->at[1]);
}

/* --- values */

/* Returns the new value, or NULL. */
static struct spokei_yaml *add(struct reader *reader, enum spokei_yaml_kind kind, const char *key)
{
	if (reader->count == SPOKEI_YAML_NODES) {
		(void)refuse(reader, "more than 1,024 values");
		return NULL;
	}
	reader->values[reader->count] = (struct spokei_yaml){ .kind = kind, .size = 1, .key = key };
	return &reader->values[reader->count++];
}

static bool add_scalar(struct reader *reader, const char *key, const char *text)
{
	struct spokei_yaml *value = add(reader, SPOKEI_YAML_SCALAR, key);

	if (value)
		value->text = text;
	return value != NULL;
}

/* Begins a map or list. */
static struct spokei_yaml *enter(struct reader *reader, enum spokei_yaml_kind kind, const char *key)
{
	struct spokei_yaml *value = add(reader, kind, key);

	if (value && ++reader->depth > SPOKEI_YAML_DEPTH) {
		(void)refuse(reader, "more than 16 levels of maps and lists");
		return NULL;
	}
	return value;
}

static bool leave(struct reader *reader, struct spokei_yaml *value)
{
	value->size = (unsigned)(&reader->values[reader->count] - value);
	reader->depth--;
	return true;
}

/* --- scalars */

static const char *copy(struct reader *reader, const char *text, size_t len)
{
	char *out = reader->copies;

	memcpy(out, text, len);
	out[len] = '\0';
	reader->copies += len + 1;
	return out;
}

static const char *read_quoted(struct reader *reader)
{
	const char quote[] = { *reader->at, '\n', '\\', '\0' };
	const char *begin = reader->at + 1;
	size_t len = strcspn(begin, *quote == '"' ? quote : "'\n");

	reader->at = begin + len;
	if (*reader->at != *quote || reader->at[1] == *quote) {
		(void)refuse(reader, "a text in quotes has an escape, or no end in its line");
		return NULL;
	}
	reader->at++;
	return copy(reader, begin, len);
}

/* Returns where a plain scalar ends; `flow`: inside braces or brackets. */
static size_t plain_len(const char *text, bool flow)
{
	size_t len = 0;
	size_t end = 0;

	while (text[len] != '\0' && text[len] != '\n') {
		if (text[len] == ':' &&
		    (ends_word(text[len + 1]) || (flow && strchr(",[]{}", text[len + 1]))))
			break;
		if (text[len] == '#' && len > 0 && strchr(BLANKS, text[len - 1]))
			break;
		if (flow && strchr(",[]{}", text[len]))
			break;
		len++;
		if (!strchr(BLANKS, text[len - 1]))
			end = len;
	}
	return end;
}

/* Reads a scalar or a key. Returns NULL after an error. */
static const char *read_text(struct reader *reader, bool flow)
{
	size_t len;
	const char *begin = reader->at;

	if (*begin == '"' || *begin == '\'')
		return read_quoted(reader);
	len = plain_len(begin, flow);
	if (len == 0 || strchr(INDICATORS, *begin) ||
	    (strchr("-:", *begin) && (len == 1 || ends_word(begin[1])))) {
		(void)refuse(reader, "no value that is understood; only maps, lists and texts are, "
				     "without anchors, tags and blocks");
		return NULL;
	}
	reader->at += len;
	return copy(reader, begin, len);
}

/* --- braces and brackets */

/* NOLINTBEGIN(misc-no-recursion): enter() bounds the depth */
static bool read_flow(struct reader *reader, const char *key);

/* Reads "key:" in braces. Returns NULL after an error. */
static const char *read_flow_key(struct reader *reader)
{
	const char *key = read_text(reader, true);

	if (key == NULL)
		return NULL;
	skip_lines(reader);
	if (*reader->at != ':') {
		(void)refuse(reader, "a key in braces without a colon");
		return NULL;
	}
	reader->at++;
	return key;
}

static bool read_flow_items(struct reader *reader, struct spokei_yaml *in, char end)
{
	for (;;) {
		const char *key = NULL;

		skip_lines(reader);
		if (*reader->at == end)
			break;
		if (in->kind == SPOKEI_YAML_MAP && (key = read_flow_key(reader)) == NULL)
			return false;
		if (!read_flow(reader, key))
			return false;
		skip_lines(reader);
		if (*reader->at == ',')
			reader->at++;
		else if (*reader->at != end)
			return refuse(reader, "no comma and no end of braces or brackets");
	}
	reader->at++;
	return leave(reader, in);
}

static bool read_flow(struct reader *reader, const char *key)
{
	struct spokei_yaml *value;
	const char *text;
	bool map;

	skip_lines(reader);
	map = *reader->at == '{';
	if (map || *reader->at == '[') {
		value = enter(reader, map ? SPOKEI_YAML_MAP : SPOKEI_YAML_LIST, key);
		reader->at++;
		return value && read_flow_items(reader, value, map ? '}' : ']');
	}
	if (key && (*reader->at == ',' || *reader->at == '}'))
		return add_scalar(reader, key, "");
	text = read_text(reader, true);
	return text && add_scalar(reader, key, text);
}

/* --- indented values */

static bool read_block(struct reader *reader, const char *key);

/* Reads "- value" lines of a column. */
static bool read_list(struct reader *reader, const char *key)
{
	struct spokei_yaml *list = enter(reader, SPOKEI_YAML_LIST, key);
	size_t column = column_of(reader);

	while (list && is_item(reader) && column_of(reader) == column) {
		bool read;

		reader->at++;
		skip_blanks(reader);
		if (*reader->at == '\n' || *reader->at == '\0') {
			if (!next_line(reader))
				return false;
			read = column_of(reader) > column && *reader->at
				       ? read_block(reader, NULL)
				       : add_scalar(reader, NULL, "");
		} else {
			read = read_block(reader, NULL);
		}
		if (!read)
			return false;
	}
	return list && leave(reader, list);
}

/* Reads the value after the colon of a key in this column. */
static bool read_entry(struct reader *reader, const char *key, size_t column)
{
	const char *text;

	skip_blanks(reader);
	if (*reader->at == '{' || *reader->at == '[')
		return read_flow(reader, key) && next_line(reader);
	if (*reader->at != '\n' && *reader->at != '\0') {
		text = read_text(reader, false);
		return text && add_scalar(reader, key, text) && next_line(reader);
	}
	if (!next_line(reader))
		return false;
	if (*reader->at &&
	    (column_of(reader) > column || (column_of(reader) == column && is_item(reader))))
		return read_block(reader, key);
	return add_scalar(reader, key, "");
}

/* Reads the lines of a map in this column, of which the first key has been read. */
static bool read_map(struct reader *reader, const char *key, const char *first, size_t column)
{
	struct spokei_yaml *map = enter(reader, SPOKEI_YAML_MAP, key);

	while (map) {
		if (*reader->at != ':' || !ends_word(reader->at[1]))
			return refuse(reader, "a line of a map without a key and a colon");
		reader->at++;
		if (!read_entry(reader, first, column))
			return false;
		if (*reader->at == '\0' || column_of(reader) != column || is_item(reader))
			return leave(reader, map);
		first = read_text(reader, false);
		if (first == NULL)
			return false;
		reader->at += strspn(reader->at, " ");
	}
	return false;
}

/* Reads the value that begins here, and goes to the next line with content. */
static bool read_block(struct reader *reader, const char *key)
{
	size_t column = column_of(reader);
	const char *text;

	if (is_item(reader))
		return read_list(reader, key);
	if (*reader->at == '{' || *reader->at == '[')
		return read_flow(reader, key) && next_line(reader);
	text = read_text(reader, false);
	if (text == NULL)
		return false;
	reader->at += strspn(reader->at, " ");
	if (*reader->at == ':')
		return read_map(reader, key, text, column);
	return add_scalar(reader, key, text) && next_line(reader);
}

/* NOLINTEND(misc-no-recursion) */

/* --- the whole */

static bool has_control_bytes(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < 0x20 && !strchr("\n\r\t", *text)) || *text == 0x7f)
			return true;
	return false;
}

static bool read_document(struct reader *reader)
{
	if (has_control_bytes(reader->at))
		return refuse(reader, "control bytes");
	skip_lines(reader);
	if (strncmp(reader->at, "---", 3) == 0 && ends_word(reader->at[3])) {
		reader->at += 3;
		if (!next_line(reader))
			return false;
	}
	if (*reader->at == '\0')
		return add_scalar(reader, NULL, "");
	if (!read_block(reader, NULL))
		return false;
	return *reader->at == '\0' || refuse(reader, "a line that is indented like no other");
}

int spokei_yaml_read(const char *text, char *copies, struct spokei_yaml values[SPOKEI_YAML_NODES],
		     struct spokei_yaml_error *ret_why)
{
	struct reader reader = { .at = text, .line = text, .copies = copies, .values = values };

	reader.why.line = 1;
	if (strlen(text) > SPOKEI_YAML_MAX) {
		*ret_why = (struct spokei_yaml_error){ 1, "more than 64 KiB" };
		return SPOKE_ETOOLARGE;
	}
	if (read_document(&reader))
		return SPOKE_OK;
	*ret_why = reader.why;
	return reader.count == SPOKEI_YAML_NODES ? SPOKE_ETOOLARGE : SPOKE_ESYNTAX;
}

const struct spokei_yaml *spokei_yaml_next(const struct spokei_yaml *in,
					   const struct spokei_yaml *at)
{
	const struct spokei_yaml *next = at ? at + at->size : in + 1;

	return next < in + in->size ? next : NULL;
}

const struct spokei_yaml *spokei_yaml_get(const struct spokei_yaml *map, const char *key)
{
	const struct spokei_yaml *found = NULL;

	if (map->kind != SPOKEI_YAML_MAP)
		return NULL;
	for (const struct spokei_yaml *at = spokei_yaml_next(map, NULL); at;
	     at = spokei_yaml_next(map, at))
		if (strcmp(at->key, key) == 0)
			found = at;
	return found;
}
