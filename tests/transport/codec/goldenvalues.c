/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the golden values. A maker walks over the JSON of the column `wire` once and writes msgpack
 * in the form that transport/HESSIAN.md describes.
 */
#include "tests/transport/codec/goldenvalues.h"

#include "tests/transport/codec/goldenjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 7u

/* --- values */

#define NOTHING SIZE_MAX

static void put_value(struct maker *maker, size_t own);

/* Begins a container. Its number is in the JSON, too. */
static size_t begin(struct maker *maker)
{
	size_t number = maker->begun++;

	golden_expect(maker, ",\"ref\":");
	if (number == REFS_MAX || golden_read_number(maker) != (int64_t)number)
		golden_fail("number of reference", maker->json);
	maker->starts[number] = maker->values.len;
	maker->ends[number] = 0;
	return number;
}

/* Begins the ext of a container whose type was read, unless the type is null. Returns the position
 * of the payload's length, or NOTHING. */
static size_t begin_typed(struct maker *maker, bool typed)
{
	size_t at = maker->values.len + 1;

	if (!typed)
		return NOTHING;
	golden_put(&maker->values, 0xc900000000, 5);
	golden_put(&maker->values, 72, 1);
	golden_put_units(&maker->values, &maker->units);
	return at;
}

static void patch(struct maker *maker, size_t at, size_t number, unsigned width)
{
	while (width-- > 0)
		maker->values.at[at++] = (unsigned char)(number >> 8 * width);
}

static void end(struct maker *maker, size_t number, size_t typed)
{
	if (typed != NOTHING)
		patch(maker, typed, maker->values.len - typed - 5, 4);
	maker->ends[number] = maker->values.len;
	golden_expect(maker, "}");
}

/* Reads a type or null. */
static bool read_type(struct maker *maker)
{
	if (golden_accept(maker, "null"))
		return false;
	golden_read_string(maker);
	return true;
}

/* Counts the values of a JSON array, which begins here. */
static size_t count_values(const char *json)
{
	size_t depth = 0;
	size_t count = 0;
	bool text = false;

	for (const char *at = json + 1; depth > 0 || text || *at != ']'; at++) {
		if (count == 0)
			count = 1;
		if (text && *at == '\\')
			at++;
		else if (*at == '"')
			text = !text;
		else if (!text && (*at == '[' || *at == '{'))
			depth++;
		else if (!text && (*at == ']' || *at == '}'))
			depth--;
		else if (!text && depth == 0 && *at == ',')
			count++;
	}
	return count;
}

static void put_list(struct maker *maker)
{
	bool typed = read_type(maker);
	size_t number = begin(maker);
	size_t ext = begin_typed(maker, typed);
	size_t count;

	golden_expect(maker, ",\"v\":");
	count = count_values(maker->json);
	if (count < 16)
		golden_put(&maker->values, 0x90 | count, 1);
	else
		golden_put_head(&maker->values, 0xdb, count);
	golden_expect(maker, "[");
	for (; count > 0; count--) {
		put_value(maker, NOTHING);
		(void)golden_accept(maker, ",");
	}
	golden_expect(maker, "]");
	end(maker, number, ext);
}

static void put_map(struct maker *maker)
{
	bool typed = read_type(maker);
	size_t number = begin(maker);
	size_t ext = begin_typed(maker, typed);
	size_t count;

	golden_expect(maker, ",\"v\":");
	count = count_values(maker->json);
	golden_put(&maker->values, 0xdf, 1);
	golden_put(&maker->values, count, 4);
	golden_expect(maker, "[");
	for (; count > 0; count--) {
		golden_expect(maker, "[");
		put_value(maker, NOTHING);
		golden_expect(maker, ",");
		put_value(maker, NOTHING);
		golden_expect(maker, "]");
		(void)golden_accept(maker, ",");
	}
	golden_expect(maker, "]");
	end(maker, number, ext);
}

/* Writes the fields of an object and returns their number. */
static size_t put_fields(struct maker *maker, size_t number, bool thrown)
{
	size_t fields = 0;

	golden_expect(maker, ",\"f\":[");
	while (golden_accept(maker, "[")) {
		bool cause = strncmp(maker->json, "\"cause\"", 7) == 0;

		if (thrown && golden_accept(maker, "\"detailMessage\""))
			golden_put_str(&maker->values, (const unsigned char *)"message", 7);
		else
			put_value(maker, NOTHING);
		golden_expect(maker, ",");
		if (thrown && cause && golden_accept(maker, "{\"$ref\":0}"))
			golden_put(&maker->values, 0xc0, 1);
		else
			put_value(maker, cause ? number : NOTHING);
		golden_expect(maker, "]");
		(void)golden_accept(maker, ",");
		fields++;
	}
	golden_expect(maker, "]");
	return fields;
}

static void put_object(struct maker *maker)
{
	struct bytes name = { malloc(BYTES_MAX), 0 };
	size_t number;
	size_t count;

	if (name.at == NULL)
		golden_fail("no memory", "");
	golden_read_string(maker);
	golden_put_units(&name, &maker->units);
	number = begin(maker);
	golden_put(&maker->values, 0xde0000, 3);
	count = put_fields(maker, number, false) + 1;
	if (count > 15)
		golden_put(&maker->values, 0xd905, 2);
	else
		golden_put(&maker->values, 0xa5, 1);
	golden_put_all(&maker->values, (const unsigned char *)"class", 5);
	golden_put_all(&maker->values, name.at, name.len);
	patch(maker, maker->starts[number] + 1, count, 2);
	end(maker, number, NOTHING);
	free(name.at);
}

/* Writes the exception of a reply: its class, and a map of its fields. */
static void put_exception(struct maker *maker)
{
	size_t number;
	size_t at;

	golden_expect(maker, "{\"$object\":");
	golden_read_string(maker);
	golden_put_units(&maker->values, &maker->units);
	number = begin(maker);
	at = maker->values.len;
	golden_put(&maker->values, 0x80, 1);
	maker->values.at[at] |= (unsigned char)put_fields(maker, number, true);
	end(maker, number, NOTHING);
}

static void put_reference(struct maker *maker, size_t own)
{
	size_t number = (size_t)golden_read_number(maker);
	size_t distance = maker->begun - number;
	size_t len = 1; /* of nil */
	size_t head = distance < 128 ? 1 : distance <= UINT8_MAX ? 2 : 3;

	if (maker->ends[number] > 0)
		len = maker->ends[number] - maker->starts[number];
	else if (number != own)
		maker->cycle = true;
	len += head;
	if (len == 2 || len == 4 || len == 8 || len == 16)
		golden_put(&maker->values,
			   len == 2   ? 0xd5
			   : len == 4 ? 0xd6
			   : len == 8 ? 0xd7
				      : 0xd8,
			   1);
	else if (len <= UINT8_MAX)
		golden_put(&maker->values, 0xc700 | len, 2);
	else
		golden_put(&maker->values, 0xc80000 | len, 3);
	golden_put(&maker->values, 82, 1);
	golden_put_int(&maker->values, (int64_t)distance);
	if (maker->ends[number] > 0)
		golden_put_all(&maker->values, maker->values.at + maker->starts[number],
			       len - head);
	else
		golden_put(&maker->values, 0xc0, 1);
	golden_expect(maker, "}");
}

static void put_bytes(struct maker *maker)
{
	size_t len;

	golden_read_string(maker);
	len = maker->units.len / 2;
	golden_put_head(&maker->values, 0xc4, len);
	for (size_t i = 0; i < len; i++) {
		char digits[3] = { (char)maker->units.at[2 * i], (char)maker->units.at[2 * i + 1] };

		golden_put(&maker->values, strtoul(digits, NULL, 16), 1);
	}
}

static void put_double(struct maker *maker)
{
	char *end_of;

	golden_read_string(maker);
	golden_expect(maker, ",\"bits\":\"");
	golden_put(&maker->values, 0xcb, 1);
	golden_put(&maker->values, strtoull(maker->json, &end_of, 16), 8);
	maker->json = end_of;
	golden_expect(maker, "\"");
}

/* Writes a value that is a JSON object and not a container. */
static void put_scalar(struct maker *maker)
{
	if (golden_accept(maker, "{\"$long\":\"")) {
		golden_put(&maker->values, 0xd3, 1);
		golden_put(&maker->values, (uint64_t)golden_read_number(maker), 8);
		golden_expect(maker, "\"");
	} else if (golden_accept(maker, "{\"$date_ms\":\"")) {
		golden_put_date(&maker->values, golden_read_number(maker));
		golden_expect(maker, "\"");
	} else if (golden_accept(maker, "{\"$double\":")) {
		put_double(maker);
	} else if (golden_accept(maker, "{\"$bytes\":")) {
		put_bytes(maker);
	} else if (golden_accept(maker, "{\"$bytes_sha256\":")) {
		golden_put_long_binary(maker);
	} else {
		golden_expect(maker, "{\"$string_sha256_of_utf16be\":");
		golden_put_long_string(maker);
	}
	golden_expect(maker, "}");
}

/* Writes the next value. `own` is the number of the object whose field `cause` this is. */
static void put_value(struct maker *maker, size_t own)
{
	if (golden_accept(maker, "null")) {
		golden_put(&maker->values, 0xc0, 1);
	} else if (golden_accept(maker, "true")) {
		golden_put(&maker->values, 0xc3, 1);
	} else if (golden_accept(maker, "false")) {
		golden_put(&maker->values, 0xc2, 1);
	} else if (*maker->json == '"') {
		golden_read_string(maker);
		golden_put_units(&maker->values, &maker->units);
	} else if (*maker->json != '{') {
		golden_put_int(&maker->values, golden_read_number(maker));
	} else if (golden_accept(maker, "{\"$list\":")) {
		put_list(maker);
	} else if (golden_accept(maker, "{\"$map\":")) {
		put_map(maker);
	} else if (golden_accept(maker, "{\"$object\":")) {
		put_object(maker);
	} else if (golden_accept(maker, "{\"$ref\":")) {
		put_reference(maker, own);
	} else {
		put_scalar(maker);
	}
}

/* Writes the values of a whole body. The attachments, its last value, have no type. */
static void put_body(struct maker *maker)
{
	bool thrown = maker->json[1] == '3' || maker->json[1] == '0';

	golden_expect(maker, "[");
	for (size_t i = 0; !golden_accept(maker, "]"); i++) {
		if (i == 1 && thrown)
			put_exception(maker);
		else
			put_value(maker, NOTHING);
		(void)golden_accept(maker, ",");
	}
}

/* --- rows */

static void put_hex(struct bytes *bytes, const char *hex)
{
	for (; *hex; hex += 2) {
		char digits[3] = { hex[0], hex[1] };

		golden_put(bytes, strtoul(digits, NULL, 16), 1);
	}
}

/* Checks that the rebuilt body has the length, the start and the end that the file contains. */
static void check_body(const struct bytes *body, const char *hex)
{
	unsigned char memory[64];
	struct bytes ends = { memory, 0 };
	char text[129] = { 0 };

	memcpy(text, strstr(hex, "first32=") + 8, 64);
	memcpy(text + 64, strstr(hex, "last32=") + 7, 64);
	put_hex(&ends, text);
	if (body->len != strtoul(strstr(hex, "length=") + 7, NULL, 10) ||
	    memcmp(body->at, memory, 32) != 0 ||
	    memcmp(body->at + body->len - 32, memory + 32, 32) != 0)
		golden_fail("rebuilt body", hex);
}

static void take_row(struct maker *maker, char **columns,
		     void (*take)(const struct golden_value *row, void *arg), void *arg)
{
	struct golden_value row = { .name = columns[1], .part = SPOKEI_CODEC_REPLY };
	bool whole = strncmp(columns[1], "body.", 5) == 0;
	bool rebuilt = strncmp(columns[4], "sha256=", 7) == 0;
	size_t before = whole ? 0 : 1;

	maker->json = columns[6];
	maker->pattern = strstr(columns[2], "{\"$pattern\":\"");
	if (maker->pattern)
		maker->pattern += strlen("{\"$pattern\":\"");
	maker->values.len = 0;
	maker->body.len = 0;
	maker->begun = 0;
	maker->cycle = false;
	if (strncmp(columns[1], "body.req", 8) == 0)
		row.part = SPOKEI_CODEC_REQUEST;
	if (!whole) {
		golden_put(&maker->values, 1, 1);
		golden_put(&maker->body, 0x91, 1);
		put_value(maker, NOTHING);
	} else {
		put_body(maker);
	}
	if (rebuilt) {
		const struct bytes inner = { maker->body.at + before, maker->body.len - before };

		check_body(&inner, columns[4]);
	} else {
		maker->body.len = before;
		put_hex(&maker->body, columns[4]);
	}
	row.body = (struct spoke_span){ maker->body.at, maker->body.len };
	row.values = (struct spoke_span){ maker->values.at, maker->values.len };
	row.cycle = maker->cycle;
	take(&row, arg);
}

/* Cuts a line at its tabs. */
static void split(char *line, char **columns)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		if (line == NULL)
			golden_fail("columns", columns[0]);
		columns[i] = line;
		line = strchr(line, i + 1 < COLUMNS ? '\t' : '\n');
		if (line)
			*line++ = 0;
	}
}

size_t golden_values_each(void (*take)(const struct golden_value *row, void *arg), void *arg)
{
	char *line = malloc(BYTES_MAX);
	FILE *file = fopen(SPOKE_GOLDEN "/hessian2-values.tsv", "r");
	struct maker *maker = calloc(1, sizeof(*maker));
	char *columns[COLUMNS] = { NULL };
	size_t count = 0;

	if (file == NULL || maker == NULL || line == NULL)
		golden_fail("cannot read", "hessian2-values.tsv");
	maker->values.at = malloc(BYTES_MAX);
	maker->body.at = malloc(BYTES_MAX);
	if (maker->values.at == NULL || maker->body.at == NULL)
		golden_fail("no memory", "");
	while (fgets(line, BYTES_MAX, file)) {
		if (*line == '#')
			continue;
		split(line, columns);
		take_row(maker, columns, take, arg);
		count++;
	}
	free(line);
	free(maker->values.at);
	free(maker->body.at);
	free(maker);
	(void)fclose(file);
	return count;
}
