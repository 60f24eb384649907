/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON and prints the values again, for tests. */
#define _GNU_SOURCE
#include "tests/core/json/jsonagain.h"
#include "tests/support/test.h"

#include <stdlib.h>

#include <spoke/host.h>

#include <string.h>

void jsonagain_write(void *out, const void *bytes, size_t len)
{
	(void)fwrite(bytes, 1, len, out);
}

char *jsonagain(const char *text, enum spoke_json_form form)
{
	size_t len = strlen(text);
	char *copy = strdup(text);
	char *out = NULL;
	size_t out_len;
	FILE *file = jsonagain_open(&out, &out_len);
	struct spoke_builder builder;
	struct spoke_json_error wrong = { 0, NULL };
	struct spoke_span values;
	size_t count;
	int error;

	assert_non_null(copy);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	error = spoke_json_read(copy, len, &builder, &count, &wrong);
	if (error) {
		assert_true(wrong.at <= len);
		(void)fprintf(file, "%s %zu %s", spoke_errname(error), wrong.at, wrong.what);
	} else {
		struct spoke_cursor row;
		struct spoke_value value;
		size_t seen = 0;

		assert_int_equal(spoke_builder_finish(&builder, &values), 0);
		assert_int_equal(spoke_values_check(values.data, values.len, NULL, &row, NULL), 0);
		for (; spoke_cursor_next(&row, &value); seen++) {
			if (seen)
				(void)fputc('|', file);
			spoke_json_print(value, form, jsonagain_write, file);
		}
		assert_int_equal(seen, count);
	}
	(void)fclose(file);
	spoke_builder_fini(&builder);
	free(copy);
	return out;
}

void jsonagain_assert(const char *text, const char *wanted)
{
	char *out = jsonagain(text, SPOKE_JSON_LINE);

	assert_string_equal(out, wanted);
	free(out);
}

FILE *jsonagain_open(char **ret_text, size_t *ret_len)
{
	FILE *file = open_memstream(ret_text, ret_len);

	assert_non_null(file);
	return file;
}

char *jsonagain_object(unsigned count, unsigned twice)
{
	char *text = NULL;
	size_t len;
	FILE *file = jsonagain_open(&text, &len);

	for (unsigned i = 0; i < count; i++)
		(void)fprintf(file, "%s\"k%06u\":1", i ? "," : "{", i + 1 == count ? twice : i);
	(void)fprintf(file, "}");
	(void)fclose(file);
	return text;
}
