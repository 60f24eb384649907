/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the JSON parser and printer. JSON that can be parsed must print to a text that parses as
 * the same values, and so must arbitrary values that are printed.
 */
#define _GNU_SOURCE
#include <spoke/json.h>

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *law)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken: %s\n", law);
	abort();
}

static void write_out(void *out, const void *bytes, size_t len)
{
	(void)fwrite(bytes, 1, len, out);
}

static char *print(struct spoke_value value, enum spoke_json_form form, size_t *ret_len)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, ret_len);

	require(file != NULL, "memory");
	spoke_json_print(value, form, write_out, file);
	(void)fclose(file);
	return text;
}

/* Checks that a printed value parses to a value that prints the same text. */
static void try_value(struct spoke_value value, enum spoke_json_form form)
{
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_value again;
	size_t len;
	size_t again_len;
	size_t count;
	char *text = print(value, form, &len);
	char *copy = malloc(len + 1);
	char *second;

	require(copy != NULL, "memory");
	memcpy(copy, text, len + 1);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	require(spoke_json_read(copy, len, &builder, &count, &wrong) == 0,
		"printed text can be parsed");
	require(count == 1, "... as one value");
	require(spoke_builder_finish_value(&builder, &again) == 0, "... that is whole");
	second = print(again, form, &again_len);
	require(again_len == len && memcmp(second, text, len) == 0, "... and the same");
	spoke_builder_fini(&builder);
	free(second);
	free(copy);
	free(text);
}

static void try_text(const uint8_t *data, size_t size)
{
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_span values;
	struct spoke_cursor row;
	struct spoke_value value;
	size_t count;
	size_t seen = 0;
	char *text = malloc(size + 1);

	require(text != NULL, "memory");
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	if (spoke_json_read(text, size, &builder, &count, &wrong)) {
		require(wrong.at <= size && wrong.what, "an error has a position and a message");
	} else {
		require(spoke_builder_finish(&builder, &values) == 0, "parsed values are complete");
		require(spoke_values_check(values.data, values.len, NULL, &row, NULL) == 0,
			"parsed values are valid");
		for (; spoke_cursor_next(&row, &value); seen++)
			try_value(value, SPOKE_JSON_LINE);
		require(seen == count, "the number of values is right");
	}
	spoke_builder_fini(&builder);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spoke_value value;

	try_text(data, size);
	if (spoke_value_check(data, size, NULL, &value) == SPOKE_OK) {
		try_value(value, SPOKE_JSON_LINE);
		try_value(value, SPOKE_JSON_TREE);
	}
	return 0;
}
