/* SPDX-License-Identifier: Apache-2.0 */
/* Reads arguments and attachments from the command line. */
#include "examples/spoke/values.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/json.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define VALUES_BYTES_MAX (UINT32_C(64) << 20) /* the highest frame.max */

void values_init(struct values *values)
{
	/* The setting frame.max decides later. */
	static const struct spoke_value_limits largest = { .bytes_max = VALUES_BYTES_MAX };

	*values = (struct values){ .pair_count = 0 };
	spoke_builder_init(&values->args_builder, spoke_host_env(), &largest);
	spoke_builder_init(&values->attachments_builder, spoke_host_env(), NULL);
}

void values_fini(struct values *values)
{
	spoke_builder_fini(&values->args_builder);
	spoke_builder_fini(&values->attachments_builder);
	free(values->type_names);
}

/* A single array is replaced by its items. */
static int take_args(struct values *values)
{
	struct spoke_cursor row;
	struct spoke_value first;
	struct spoke_cursor items;
	int error = spoke_builder_finish(&values->args_builder, &values->args);

	if (error)
		return error;
	row = spoke_cursor_bytes(values->args);
	if (spoke_cursor_next(&row, &first) && first.len == values->args.len &&
	    !spoke_cursor_array(first, &items))
		values->args = spoke_cursor_rest(&items);
	return SPOKE_OK;
}

/* Formats a position: "line 2, byte 5", or "byte 5" in a single line. */
static void print_place(const char *text, size_t at, char *out, size_t size)
{
	size_t line = 1;
	size_t start = 0;

	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	if (line > 1)
		(void)snprintf(out, size, "line %zu, byte %zu", line, at - start + 1);
	else
		(void)snprintf(out, size, "byte %zu", at + 1);
}

/* Reading overwrites the text, so its copy is read: lines are counted in the original. */
static int read_text(struct values *values, const char *verb, const char *text, size_t len,
		     const char *name)
{
	struct spoke_json_error wrong = { 0, NULL };
	char *copy = malloc(len + 1);
	char place[64];
	size_t count;
	int error = SPOKE_ENOMEM;

	if (copy) {
		memcpy(copy, text, len);
		error = spoke_json_read(copy, len, &values->args_builder, &count, &wrong);
	}
	free(copy);
	if (!error)
		error = take_args(values);
	else
		print_place(text, wrong.at, place, sizeof(place));
	if (!error)
		return VERB_OK;
	if (error == SPOKE_ENOMEM)
		return ending_say(VERB_REMOTE, verb, "out of memory");
	return ending_say(VERB_USAGE, verb, "%s, %s: %s", name, place, wrong.what);
}

int values_args(struct values *values, const char *verb, char **operands, int count)
{
	size_t size = 1;
	size_t len = 0;
	char *text;
	int end;

	for (int i = 0; i < count; i++) {
		if (operands[i][strspn(operands[i], BLANKS)] == '\0')
			return ending_say(VERB_USAGE, verb,
					  "an argument is empty; write JSON, e.g. null or '\"\"'");
		size += strlen(operands[i]) + 1;
	}
	text = malloc(size);
	if (!text)
		return ending_say(VERB_REMOTE, verb, "out of memory");
	text[0] = '\0';
	for (int i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", i ? " " : "", operands[i]);
	end = read_text(values, verb, text, len, "the arguments");
	free(text);
	return end;
}

/* Reads a whole file and appends a NUL; returns NULL and sets errno on error. */
static char *read_all(FILE *file, size_t *ret_len)
{
	size_t room = 65536;
	size_t len = 0;
	char *text = malloc(room);

	while (text) {
		size_t got = fread(text + len, 1, room - len - 1, file);
		char *larger;

		len += got;
		if (!got)
			break;
		if (len + 1 < room)
			continue;
		larger = room < VALUES_INPUT_MAX ? realloc(text, room *= 2) : NULL;
		if (!larger) {
			free(text);
			errno = room < VALUES_INPUT_MAX ? ENOMEM : EFBIG;
			return NULL;
		}
		text = larger;
	}
	if (text && ferror(file)) {
		free(text);
		return NULL;
	}
	if (text)
		text[len] = '\0';
	*ret_len = len;
	return text;
}

int values_data(struct values *values, const char *verb, const char *data)
{
	bool is_stdin = strcmp(data, "@-") == 0;
	char *whole[1];
	FILE *file;
	char *text;
	size_t len = 0;
	int end;

	if (*data != '@') {
		whole[0] = strdup(data);
		if (!whole[0])
			return ending_say(VERB_REMOTE, verb, "out of memory");
		end = values_args(values, verb, whole, 1);
		free(whole[0]);
		return end;
	}
	file = is_stdin ? stdin : fopen(data + 1, "re");
	text = file ? read_all(file, &len) : NULL;
	if (file && !is_stdin)
		(void)fclose(file);
	if (!text)
		return ending_say(VERB_USAGE, verb, "cannot read %s: %s", data + 1,
				  strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
	end = read_text(values, verb, text, len, is_stdin ? "stdin" : data + 1);
	free(text);
	return end;
}

/* Skips one type, e.g. "I", "[J" or "Ljava/lang/String;"; returns NULL if it is invalid. */
static const char *skip_type(const char *at)
{
	at += strspn(at, "[");
	if (*at == 'L') {
		const char *end = strchr(at, ';');

		return end && end > at + 1 ? end + 1 : NULL;
	}
	return *at && strchr("ZBCSIJFD", *at) ? at + 1 : NULL;
}

int values_check_types(const struct values *values, const char *verb, const char *types)
{
	struct spoke_cursor row = spoke_cursor_bytes(values->args);
	struct spoke_value value;
	size_t args = 0;
	size_t count = 0;

	for (const char *at = types; *at; count++) {
		at = skip_type(at);
		if (!at) {
			return ending_say(VERB_USAGE, verb,
					  "--types=%s: not type descriptors; write e.g. "
					  "Ljava/lang/String;I",
					  types);
		}
	}
	while (spoke_cursor_next(&row, &value))
		args++;
	if (count != args)
		return ending_say(VERB_USAGE, verb, "--types=%s: %zu types for %zu arguments",
				  types, count, args);
	return VERB_OK;
}

/* Writes the Java name of the type at `at`, e.g. "int[]" for "[I". Returns the end of the type. */
static const char *print_type(const char *at, FILE *out)
{
	static const char letters[] = "ZBCSIJFD";
	static const char *const names[] = { "boolean", "byte", "char",  "short",
					     "int",     "long", "float", "double" };
	size_t depth = strspn(at, "[");
	const char *end = skip_type(at);

	at += depth;
	if (*at != 'L')
		(void)fputs(names[strchr(letters, *at) - letters], out);
	else
		for (at++; *at != ';'; at++)
			(void)fputc(*at == '/' ? '.' : *at, out);
	while (depth-- > 0)
		(void)fputs("[]", out);
	return end;
}

int values_type_names(struct values *values, const char *verb, const char *types)
{
	size_t len;
	FILE *out = open_memstream(&values->type_names, &len);

	if (!out)
		return ending_say(VERB_REMOTE, verb, "out of memory");
	for (const char *at = types; *at;) {
		if (at != types)
			(void)fputc(',', out);
		at = print_type(at, out);
	}
	if (fclose(out))
		return ending_say(VERB_REMOTE, verb, "out of memory");
	return VERB_OK;
}

int values_attach(struct values *values, const char *verb, const char *pair)
{
	if (!strchr(pair, '=') || *pair == '=')
		return ending_say(VERB_USAGE, verb,
				  "--attachment: not an attachment; write KEY=VALUE");
	for (size_t i = 0; i < values->pair_count; i++) {
		if (strncmp(values->pairs[i], pair, strcspn(pair, "=") + 1) == 0) {
			return ending_say(VERB_USAGE, verb, "--attachment=%.*s=...: duplicate key",
					  (int)strcspn(pair, "="), pair);
		}
	}
	if (values->pair_count == VALUES_ATTACHMENTS_MAX)
		return ending_say(VERB_USAGE, verb, "more than %u attachments",
				  VALUES_ATTACHMENTS_MAX);
	values->pairs[values->pair_count++] = pair;
	return VERB_OK;
}

int values_finish(struct values *values, const char *verb)
{
	struct spoke_builder *builder = &values->attachments_builder;
	int error;

	if (!values->pair_count)
		return VERB_OK;
	spoke_pack_map(builder, values->pair_count);
	for (size_t i = 0; i < values->pair_count; i++) {
		const char *equals = strchr(values->pairs[i], '=');

		spoke_pack_str(builder, values->pairs[i], (size_t)(equals - values->pairs[i]));
		spoke_pack_text(builder, equals + 1);
	}
	error = spoke_builder_finish_value(builder, &values->attachments);
	if (error)
		return ending_say(spoke_error_exit(error), verb, "attachments: %s",
				  spoke_strerror(error));
	return VERB_OK;
}
