/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the JSON parser and printer. JSON that can be parsed must print to a text that parses as
 * the same values, and so must arbitrary values that are printed.
 */
#define _GNU_SOURCE
#include "core/json/json.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

enum origin {
	OF_PLAIN_JSON,
	OF_JSON_WITH_TYPES, /* its values may differ in a type that is only read */
	OF_BYTES,
};

struct text {
	char *at;
	size_t len;
	size_t size;
};

static void write_out(void *arg, const void *bytes, size_t len)
{
	struct text *text = arg;

	if (len > text->size - text->len) {
		text->size = 2 * text->size + len;
		text->at = realloc(text->at, text->size);
		demand(text->at != NULL, "memory");
	}
	memcpy(text->at + text->len, bytes, len);
	text->len += len;
}

/* Returns the printed value, which the caller frees. */
static char *print(struct spoke_value value, enum spoke_json_form form, size_t *ret_len)
{
	struct text text = { NULL, 0, 0 };

	spoke_json_print(value, form, write_out, &text);
	*ret_len = text.len;
	return text.at;
}

/* Returns whether a value may be printed, and not be read again: it has a map with a repeated key,
 * which the printer does not find in large ones. */
static bool may_repeat(struct spoke_value value, enum origin origin, const char *why)
{
	if (strstr(why, "the $map has"))
		return origin != OF_PLAIN_JSON;
	return value.len > 64 * 3 && strstr(why, "the object has");
}

#define LOG_MAX 16384u

/* Prints for a log, where numbers in more bytes than they need and typed values look like others. A
 * NaN loses its sign in JSON. */
static void print_log(struct spoke_value value, char text[LOG_MAX])
{
	(void)spoke_value_print(value, text, LOG_MAX);
	for (char *at = text; (at = strstr(at, "-nan")) != NULL;)
		memmove(at, at + 1, strlen(at));
}

static void require_same(struct spoke_value a, struct spoke_value b)
{
	static char texts[2][LOG_MAX];

	if (spoke_value_equal(a, b))
		return;
	print_log(a, texts[0]);
	print_log(b, texts[1]);
	demand(strcmp(texts[0], texts[1]) == 0, "a value that is read again is the same");
}

/* Checks that a printed value parses to the same value, which prints the same text. */
static void try_value(struct spoke_value value, enum spoke_json_form form, enum origin origin)
{
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_value again;
	size_t len;
	size_t again_len;
	size_t count;
	char *text = print(value, form, &len);
	char *copy = malloc(len);
	char *second;
	int error;

	demand(copy != NULL, "memory");
	memcpy(copy, text, len);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	error = spoke_json_read(copy, len, &builder, &count, &wrong);
	if (error && may_repeat(value, origin, wrong.what)) {
		spoke_builder_fini(&builder);
		free(copy);
		free(text);
		return;
	}
	demand(error == 0, "printed text can be parsed");
	demand(count == 1, "... as one value");
	demand(spoke_builder_finish_value(&builder, &again) == 0, "... that is whole");
	require_same(value, again);
	second = print(again, form, &again_len);
	demand(again_len == len && memcmp(second, text, len) == 0, "... and the same");
	spoke_builder_fini(&builder);
	free(second);
	free(copy);
	free(text);
}

/* Checks that a value prints into a buffer as it does to a function, whatever the maximum is. */
static void try_buffer(struct spoke_value value, size_t max)
{
	size_t len;
	char *text = print(value, SPOKE_JSON_LINE, &len);
	struct spokei_buffer buffer;
	int error;

	max = len > 0 && max % 2 ? len - max % len : len;
	spokei_buffer_init(&buffer, spoke_host_env(), max + 3);
	demand(spokei_buffer_append(&buffer, "abc", 3) == 0, "memory");
	error = spokei_json_append(&buffer, value);
	demand(error == (max < len ? SPOKE_ETOOLARGE : SPOKE_OK), "the maximum is exact");
	demand(spokei_buffer_len(&buffer) == (error ? 3 : 3 + len), "... also for the content");
	if (!error)
		demand(memcmp(spokei_buffer_data(&buffer) + 3, text, len) == 0,
		       "both faces print the same");
	spokei_buffer_fini(&buffer);
	free(text);
}

/* Reads the text as arguments, which have to be those that the public face reads. */
static void try_args(const uint8_t *data, size_t size, int wanted, struct spoke_span values,
		     size_t wanted_count)
{
	struct spoke_json_error wrong;
	struct spokei_buffer buffer;
	struct spoke_span args;
	size_t count;
	char *text = malloc(size > 0 ? size : 1);
	int error;

	demand(text != NULL, "memory");
	if (size)
		memcpy(text, data, size);
	spokei_buffer_init(&buffer, spoke_host_env(), SIZE_MAX / 2);
	error = spokei_json_read_args(text, size, NULL, &buffer, &args, &count, &wrong);
	free(text);
	if (wanted == SPOKE_OK && wanted_count > 1)
		wanted = SPOKE_ESYNTAX;
	demand(error == wanted, "both faces accept the same");
	if (!error) {
		const unsigned char *from = args.data;
		size_t skipped = values.len - args.len;

		demand(skipped == 0 || wanted_count == 1, "arguments are all values");
		demand(args.len == 0 ||
			       memcmp(from, (const char *)values.data + skipped, args.len) == 0,
		       "arguments are the values");
		demand(spoke_values_check(args.data, args.len, NULL, &(struct spoke_cursor){ 0 },
					  &wanted_count) == 0 &&
			       wanted_count == count,
		       "arguments are counted");
	}
	spokei_buffer_fini(&buffer);
}

static enum origin origin_of(const uint8_t *data, size_t size)
{
	return memmem(data, size, "$long", 5) || memmem(data, size, "$typed", 6)
		       ? OF_JSON_WITH_TYPES
		       : OF_PLAIN_JSON;
}

static void try_text(const uint8_t *data, size_t size)
{
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_span values = { NULL, 0 };
	struct spoke_cursor row;
	struct spoke_value value;
	size_t count;
	size_t seen = 0;
	char *text = malloc(size > 0 ? size : 1);
	int error;

	demand(text != NULL, "memory");
	if (size)
		memcpy(text, data, size);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	error = spoke_json_read(text, size, &builder, &count, &wrong);
	if (error) {
		demand(wrong.at <= size && wrong.what, "an error has a position and a message");
	} else {
		demand(spoke_builder_finish(&builder, &values) == 0, "parsed values are complete");
		demand(spoke_values_check(values.data, values.len, NULL, &row, NULL) == 0,
		       "parsed values are valid");
		for (; spoke_cursor_next(&row, &value); seen++) {
			try_value(value, SPOKE_JSON_LINE, origin_of(data, size));
			try_buffer(value, size);
		}
		demand(seen == count, "the number of values is right");
	}
	try_args(data, size, error, values, count);
	spoke_builder_fini(&builder);
	free(text);
}

FUZZ(json)
{
	struct spoke_value value;
	size_t printed;

	try_text(data, size);
	if (spoke_value_check(data, size, NULL, &value) == SPOKE_OK) {
		try_value(value, SPOKE_JSON_LINE, OF_BYTES);
		try_value(value, SPOKE_JSON_TREE, OF_BYTES);
		try_buffer(value, size);
	} else if (size > 0) {
		/* Bytes that were not checked print as some text. */
		free(print((struct spoke_value){ data, size }, SPOKE_JSON_LINE, &printed));
	}
	return 0;
}
