/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the tokens of JSON into a window, which is room in a buffer or a piece for a function; and
 * documents, member by member.
 */
#include "core/json/write.h"

#include "core/json/document.h"
#include "core/json/plain.h"
#include "core/text/encoding.h"

/* --- the window */

static void open_piece(struct spokei_json_out *out)
{
	out->start = out->at = out->piece;
	out->end = out->piece + SPOKEI_JSON_PIECE;
}

void spokei_json_out_buffer(struct spokei_json_out *out, struct spokei_buffer *buffer)
{
	out->buffer = buffer;
	out->before = spokei_buffer_len(buffer);
	out->put = NULL;
	out->arg = NULL;
	out->error = SPOKE_OK;
	out->start = out->at = out->end = out->piece; /* the first byte opens a window */
}

void spokei_json_out_function(struct spokei_json_out *out, spoke_json_put_fn put, void *arg)
{
	out->buffer = NULL;
	out->before = 0;
	out->put = put;
	out->arg = arg;
	out->error = SPOKE_OK;
	open_piece(out);
}

static void pass_on(struct spokei_json_out *out, const void *bytes, size_t len)
{
	if (len == 0 || out->error)
		return;
	if (out->buffer)
		out->error = spokei_buffer_append(out->buffer, bytes, len);
	else
		out->put(out->arg, bytes, len);
}

/* Passes on the bytes in the window. */
static void flush(struct spokei_json_out *out)
{
	size_t len = (size_t)(out->at - out->start);

	if (out->start == out->piece)
		pass_on(out, out->piece, len);
	else
		spokei_buffer_commit(out->buffer, len);
	open_piece(out);
}

/* Opens a window in the buffer. Near its maximum there is no room for a window; then pieces are
 * appended, which are exact. */
static bool open_room(struct spokei_json_out *out, size_t len)
{
	struct spokei_buffer *buffer = out->buffer;
	size_t room;
	size_t left;

	if (out->error || buffer == NULL)
		return false;
	left = buffer->max - spokei_buffer_len(buffer);
	if (len > left)
		return false;
	if (spokei_buffer_reserve(buffer, len) == NULL) {
		out->error = SPOKE_ENOMEM;
		return false;
	}
	room = buffer->capacity - buffer->end;
	out->start = out->at = (char *)buffer->bytes + buffer->end;
	out->end = out->at + (room < left ? room : left);
	return true;
}

void spokei_json_out_more(struct spokei_json_out *out, size_t len)
{
	flush(out);
	(void)open_room(out, len);
}

void spokei_json_put_long(struct spokei_json_out *out, const void *bytes, size_t len)
{
	flush(out);
	if (open_room(out, len) || len <= SPOKEI_JSON_PIECE) {
		memcpy(out->at, bytes, len);
		out->at += len;
	} else {
		pass_on(out, bytes, len);
	}
}

int spokei_json_out_end(struct spokei_json_out *out)
{
	flush(out);
	if (out->error && out->buffer)
		spokei_buffer_truncate(out->buffer, out->before);
	return out->error;
}

/* --- texts */

/* The bytes that need attention: 1 in JSON, 2 in HTML. */
#define SIXTEEN_OF(mark)                                                                           \
	mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark,  \
		mark

static const unsigned char marks[256] = {
	[0x00] = SIXTEEN_OF(1),
	[0x10] = SIXTEEN_OF(1),
	['"'] = 1,
	['\\'] = 1,
	['<'] = 2,
	[0x7f] = 1,
	[0x80] = SIXTEEN_OF(1),
	[0x90] = SIXTEEN_OF(1),
	[0xa0] = SIXTEEN_OF(1),
	[0xb0] = SIXTEEN_OF(1),
	[0xc0] = SIXTEEN_OF(1),
	[0xd0] = SIXTEEN_OF(1),
	[0xe0] = SIXTEEN_OF(1),
	[0xf0] = SIXTEEN_OF(1),
};

static const char hex[] = "0123456789abcdef";

static void put_code(struct spokei_json_out *out, unsigned char byte)
{
	char *at = spokei_json_room(out, 6);

	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(at, "\\u00", 4);
	at[4] = hex[byte >> 4];
	at[5] = hex[byte & 0xf];
	out->at += 6;
}

/* Writes a character that is not plain. Returns its size. */
static size_t put_character(struct spokei_json_out *out, const unsigned char *bytes, size_t len)
{
	static const char names[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	size_t size = spokei_utf8_len(bytes, len);
	const char *name = size == 1 && *bytes ? strchr(names, *bytes) : NULL;

	if (name) {
		char pair[2] = { '\\', letters[name - names] };

		spokei_json_put(out, pair, 2);
	} else if (size == 0) {
		spokei_json_put(out, "\\ufffd", 6);
	} else if (size == 1) {
		put_code(out, *bytes);
	} else if (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) {
		/* U+0080 to U+009F are control characters for a terminal. */
		put_code(out, bytes[1]);
	} else {
		spokei_json_put(out, bytes, size);
	}
	return size ? size : 1;
}

void spokei_json_put_escaped(struct spokei_json_out *out, const void *bytes, size_t len,
			     enum spokei_json_escape escape)
{
	const unsigned char *at = bytes;
	const unsigned char *end = at + len;
	bool is_html = escape == SPOKEI_JSON_ESCAPE_HTML;

	while (at < end) {
		const unsigned char *run = at;

		if (!is_html)
			at += spokei_json_plain((const char *)at, (size_t)(end - at));
		else
			while (at < end && marks[*at] == 0)
				at++;
		if (at > run)
			spokei_json_put(out, run, (size_t)(at - run));
		while (at < end && (marks[*at] & (is_html ? 3 : 1)))
			at += put_character(out, at, (size_t)(end - at));
	}
}

/* --- integers */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

char *spokei_json_digits(uint64_t number, char *end)
{
	while (number >= 100) {
		end -= 2;
		memcpy(end, pairs + 2 * (number % 100), 2);
		number /= 100;
	}
	if (number >= 10) {
		end -= 2;
		memcpy(end, pairs + 2 * number, 2);
	} else {
		*--end = (char)('0' + number);
	}
	return end;
}

/* --- documents */

static void append(struct spokei_json *json, const void *bytes, size_t len)
{
	if (json->error == SPOKE_OK)
		json->error = spokei_buffer_append(json->out, bytes, len);
}

/* Writes the comma before a value, if it needs one. */
static void begin(struct spokei_json *json)
{
	if (json->comma)
		append(json, ",", 1);
	json->comma = true;
}

void spokei_json_open(struct spokei_json *json, char bracket)
{
	begin(json);
	append(json, &bracket, 1);
	json->comma = false;
}

void spokei_json_close(struct spokei_json *json, char bracket)
{
	append(json, &bracket, 1);
	json->comma = true;
}

void spokei_json_key(struct spokei_json *json, const char *key)
{
	begin(json);
	append(json, "\"", 1);
	append(json, key, strlen(key));
	append(json, "\":", 2);
	json->comma = false;
}

void spokei_json_u64(struct spokei_json *json, uint64_t value)
{
	char digits[SPOKEI_JSON_INTEGER];
	char *end = digits + sizeof(digits);
	const char *first = spokei_json_digits(value, end);

	begin(json);
	append(json, first, (size_t)(end - first));
}

void spokei_json_null(struct spokei_json *json)
{
	begin(json);
	append(json, "null", 4);
}

void spokei_json_bool(struct spokei_json *json, bool value)
{
	begin(json);
	append(json, value ? "true" : "false", value ? 4 : 5);
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
