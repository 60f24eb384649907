/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a document of JSON into a buffer, member by member. */
#include "core/json/document.h"

#include "core/json/write.h"

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
	char digits[SPOKEI_JSON_INTEGER];
	char *end = digits + sizeof(digits);
	const char *first = spokei_json_digits(value, end);

	begin(json);
	put(json, first, (size_t)(end - first));
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

void spokei_json_span(struct spokei_json *json, const void *bytes, size_t len)
{
	struct spokei_json_out out;
	bool is_cut = len > SPOKEI_JSON_TEXT;

	begin(json);
	if (json->error)
		return;
	spokei_json_out_buffer(&out, json->out);
	spokei_json_put_char(&out, '"');
	spokei_json_put_escaped(&out, bytes, is_cut ? SPOKEI_JSON_TEXT - 3 : len,
				SPOKEI_JSON_ESCAPE_HTML);
	if (is_cut)
		spokei_json_put(&out, "...", 3);
	spokei_json_put_char(&out, '"');
	json->error = spokei_json_out_end(&out);
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
