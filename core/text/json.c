/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON into a buffer. */
#include "core/text/json.h"

#include "core/text/utf8.h"

#include <stdio.h>
#include <string.h>

#define NUMBER 24u /* bytes of a number in digits, with the NUL */

static void put(struct spokei_json *json, const void *bytes, size_t len)
{
	if (json->error == SPOKE_OK)
		json->error = spokei_buffer_append(json->out, bytes, len);
}

/* Writes the comma before a value, if it needs one. */
static void begin(struct spokei_json *json)
{
	if (json->comma)
		put(json, ",", 1);
	json->comma = true;
}

void spokei_json_open(struct spokei_json *json, char bracket)
{
	begin(json);
	put(json, &bracket, 1);
	json->comma = false;
}

void spokei_json_close(struct spokei_json *json, char bracket)
{
	put(json, &bracket, 1);
	json->comma = true;
}

void spokei_json_key(struct spokei_json *json, const char *key)
{
	begin(json);
	put(json, "\"", 1);
	put(json, key, strlen(key));
	put(json, "\":", 2);
	json->comma = false;
}

void spokei_json_u64(struct spokei_json *json, uint64_t value)
{
	char digits[NUMBER];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	begin(json);
	put(json, digits + at, sizeof(digits) - at);
}

void spokei_json_null(struct spokei_json *json)
{
	begin(json);
	put(json, "null", 4);
}

void spokei_json_bool(struct spokei_json *json, bool value)
{
	begin(json);
	put(json, value ? "true" : "false", value ? 4 : 5);
}

static bool is_plain(unsigned char byte)
{
	return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\' && byte != '<';
}

/* Writes a character that is not plain ASCII. Returns its size in bytes. */
static size_t put_other(struct spokei_json *json, const unsigned char *bytes, size_t len)
{
	size_t size = spokei_utf8_len(bytes, len);
	char escape[8];

	if (size == 0) {
		put(json, SPOKEI_UTF8_INSTEAD, strlen(SPOKEI_UTF8_INSTEAD));
		return 1;
	}
	if (size > 1) {
		put(json, bytes, size);
		return size;
	}
	(void)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)bytes[0]);
	put(json, escape, 6);
	return 1;
}

void spokei_json_span(struct spokei_json *json, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	size_t left = len <= SPOKEI_JSON_TEXT ? len : SPOKEI_JSON_TEXT - 3;

	begin(json);
	put(json, "\"", 1);
	while (left > 0) {
		size_t run = 0;

		while (run < left && is_plain(at[run]))
			run++;
		if (run == 0)
			run = put_other(json, at, left);
		else
			put(json, at, run);
		at += run;
		left -= run;
	}
	if (len <= SPOKEI_JSON_TEXT)
		put(json, "\"", 1);
	else
		put(json, "...\"", 4);
}

void spokei_json_text(struct spokei_json *json, const char *text)
{
	spokei_json_span(json, text, strlen(text));
}

void spokei_json_put_u64(struct spokei_json *json, const char *key, uint64_t value)
{
	spokei_json_key(json, key);
	spokei_json_u64(json, value);
}

void spokei_json_put_bool(struct spokei_json *json, const char *key, bool value)
{
	spokei_json_key(json, key);
	spokei_json_bool(json, value);
}

void spokei_json_put_text(struct spokei_json *json, const char *key, const char *text)
{
	spokei_json_key(json, key);
	spokei_json_text(json, text);
}

void spokei_json_put_ms(struct spokei_json *json, const char *key, uint64_t ns)
{
	spokei_json_key(json, key);
	if (ns == UINT64_MAX)
		spokei_json_null(json);
	else
		spokei_json_u64(json, ns / 1000000);
}

void spokei_json_open_member(struct spokei_json *json, const char *key, char bracket)
{
	spokei_json_key(json, key);
	spokei_json_open(json, bracket);
}
