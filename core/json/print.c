/* SPDX-License-Identifier: Apache-2.0 */
/* Prints values as JSON. */
#include "core/json/json.h"
#include "core/json/scan.h"
#include "core/text/base64.h"
#include "core/text/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM 512u /* bytes that are collected before they are passed on */

enum open {
	OPEN_ARRAY,
	OPEN_MAP,
	OPEN_PAIRS,
};

struct level {
	struct spoke_cursor items; /* of a map: keys and values alternate */
	size_t index;              /* of the next item */
	enum open open;
};

/* Collects pieces of text. */
struct out {
	spoke_json_put_fn put;
	void *arg;
	size_t len;
	char text[ROOM];
};

struct printer {
	struct out *out;
	enum spoke_json_form form;
	struct level levels[SPOKE_VALUE_DEPTH_MAX];
	unsigned depth;
};

/* --- pieces */

static void flush(struct out *out)
{
	if (out->len > 0)
		out->put(out->arg, out->text, out->len);
	out->len = 0;
}

static void put(struct out *out, const void *bytes, size_t len)
{
	if (len > ROOM - out->len)
		flush(out);
	if (len > ROOM) {
		out->put(out->arg, bytes, len);
		return;
	}
	memcpy(out->text + out->len, bytes, len);
	out->len += len;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

static void put_char(struct out *out, char c)
{
	put(out, &c, 1);
}

__attribute__((format(printf, 2, 3))) static void put_format(struct out *out, const char *format,
							     ...)
{
	char text[96];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_text(out, text);
}

/* --- texts and bytes */

/* Prints a character that is not plain ASCII. Returns its size. */
static size_t print_character(const unsigned char *bytes, size_t len, struct out *out)
{
	static const char names[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	size_t size = spokei_utf8_len(bytes, len);
	const char *name = size == 1 && *bytes ? strchr(names, *bytes) : NULL;

	if (size == 0)
		put_text(out, "\\ufffd");
	else if (name)
		put_format(out, "\\%c", letters[name - names]);
	else if (size == 1)
		put_format(out, "\\u%04x", *bytes);
	/* U+0080 to U+009F are control characters for a terminal. */
	else if (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0)
		put_format(out, "\\u%04x", bytes[1]);
	else
		put(out, bytes, size);
	return size ? size : 1;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void print_text(const void *bytes, size_t len, struct out *out)
{
	const unsigned char *at = bytes;

	put_char(out, '"');
	while (len > 0) {
		size_t run = 0;

		while (run < len && is_plain(at[run]))
			run++;
		if (run > 0)
			put(out, at, run);
		else
			run = print_character(at, len, out);
		at += run;
		len -= run;
	}
	put_char(out, '"');
}

static bool is_utf8(struct spoke_span text)
{
	const unsigned char *bytes = text.data;

	for (size_t at = 0, size; at < text.len; at += size) {
		size = spokei_utf8_len(bytes + at, text.len - at);
		if (size == 0)
			return false;
	}
	return true;
}

static void print_base64(struct spoke_span bytes, struct out *out)
{
	const unsigned char *at = bytes.data;
	char letters[4];

	put_char(out, '"');
	for (size_t left = bytes.len; left; at += 3) {
		spokei_base64_write(at, left, letters);
		put(out, letters, sizeof(letters));
		left -= left < 3 ? left : 3;
	}
	put_char(out, '"');
}

static const char *space(const struct printer *printer)
{
	return printer->form == SPOKE_JSON_TREE ? " " : "";
}

static void print_str(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span text = { NULL, 0 };

	if (spoke_value_str(value, &text) == SPOKE_OK && is_utf8(text)) {
		print_text(text.data, text.len, printer->out);
		return;
	}
	put_format(printer->out, "{\"$str\":%s", space(printer));
	print_base64(text, printer->out);
	put_char(printer->out, '}');
}

static void print_bin(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span bytes = { NULL, 0 };

	(void)!spoke_value_bin(value, &bytes);
	put_format(printer->out, "{\"$bin\":%s", space(printer));
	print_base64(bytes, printer->out);
	put_char(printer->out, '}');
}

/* Prints a timestamp that spoke_value_print() writes as "date(...)". */
static bool print_date(const struct printer *printer, struct spoke_value value)
{
	char text[64];
	size_t len = spoke_value_print(value, text, sizeof(text));

	if (len < 6 || strncmp(text, "date(", 5) != 0)
		return false;
	put_format(printer->out, "{\"$date\":%s\"%.*s\"}", space(printer), (int)len - 6, text + 5);
	return true;
}

static void print_ext(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span bytes = { NULL, 0 };
	int8_t type = 0;

	if (print_date(printer, value))
		return;
	(void)!spoke_value_ext(value, &type, &bytes);
	put_format(printer->out, "{\"$ext\":%s[%d,%s", space(printer), type, space(printer));
	print_base64(bytes, printer->out);
	put_text(printer->out, "]}");
}

/* --- numbers */

static void put_u64(struct out *out, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	put(out, digits + at, sizeof(digits) - at);
}

static void print_integer(struct spoke_value value, struct out *out)
{
	uint64_t natural;
	int64_t integer;

	if (spoke_value_u64(value, &natural) == SPOKE_OK) {
		put_u64(out, natural);
	} else if (spoke_value_i64(value, &integer) == SPOKE_OK) {
		put_char(out, '-');
		put_u64(out, 0 - (uint64_t)integer);
	}
}

static void print_double(const struct printer *printer, struct spoke_value value)
{
	double number = 0;
	char text[SPOKEI_JSON_NUMBER];

	(void)!spoke_value_double(value, &number);
	if (!isfinite(number)) {
		put_format(printer->out, "{\"$float\":%s\"%s\"}", space(printer),
			   isnan(number) ? "nan"
			   : number > 0  ? "inf"
					 : "-inf");
		return;
	}
	put(printer->out, text, spokei_json_print_double(number, text));
}

/* --- arrays and maps */

/* Can the map be printed as a JSON object and be read back unchanged? */
static bool is_object(struct spoke_value map)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span text = { NULL, 0 };
	size_t count = 0;

	if (spoke_cursor_map(map, &pairs))
		return true;
	for (; spoke_cursor_next_pair(&pairs, &key, &value); count++)
		if (spoke_value_str(key, &text) || !is_utf8(text))
			return false;
	return count != 1 || !text.len || *(const char *)text.data != '$';
}

static void new_line(const struct printer *printer, unsigned depth)
{
	if (printer->form == SPOKE_JSON_TREE) {
		put_char(printer->out, '\n');
		while (depth-- > 0)
			put_text(printer->out, "  ");
	}
}

static void open_level(struct printer *printer, struct spoke_value value, enum open open)
{
	struct level *level = &printer->levels[printer->depth];
	int error;

	if (printer->depth == SPOKE_VALUE_DEPTH_MAX) {
		put_text(printer->out, "null"); /* impossible for a validated value */
		return;
	}

	*level = (struct level){ .open = open };
	error = open == OPEN_ARRAY ? spoke_cursor_array(value, &level->items)
				   : spoke_cursor_map(value, &level->items);
	if (error)
		level->items = (struct spoke_cursor){ NULL, NULL, 0 };
	printer->depth++;
	if (open == OPEN_PAIRS)
		put_format(printer->out, "{\"$map\":%s[", space(printer));
	else
		put_char(printer->out, open == OPEN_MAP ? '{' : '[');
}

static void close_level(struct printer *printer)
{
	const struct level *level = &printer->levels[--printer->depth];
	static const char *const ends[] = { "]", "}", "]}" };

	if (level->index) {
		if (level->open == OPEN_PAIRS)
			put_char(printer->out, ']');
		new_line(printer, printer->depth);
	}
	put_text(printer->out, ends[level->open]);
}

static void print_value(struct printer *printer, struct spoke_value value)
{
	enum spoke_value_type type = spoke_value_type(value);
	bool flag = false;

	switch (type) {
	case SPOKE_VALUE_BOOL:
		(void)!spoke_value_bool(value, &flag);
		put_text(printer->out, flag ? "true" : "false");
		break;
	case SPOKE_VALUE_INT:
		print_integer(value, printer->out);
		break;
	case SPOKE_VALUE_DOUBLE:
		print_double(printer, value);
		break;
	case SPOKE_VALUE_STR:
		print_str(printer, value);
		break;
	case SPOKE_VALUE_BIN:
		print_bin(printer, value);
		break;
	case SPOKE_VALUE_EXT:
		print_ext(printer, value);
		break;
	case SPOKE_VALUE_ARRAY:
		open_level(printer, value, OPEN_ARRAY);
		break;
	case SPOKE_VALUE_MAP:
		open_level(printer, value, is_object(value) ? OPEN_MAP : OPEN_PAIRS);
		break;
	case SPOKE_VALUE_NIL:
	case SPOKE_VALUE_NONE:
	default:
		put_text(printer->out, "null");
	}
}

/* Prints the separator before the next item of a level. */
static void print_before(const struct printer *printer, const struct level *level)
{
	bool is_second = level->open != OPEN_ARRAY && level->index % 2 != 0;

	if (is_second) {
		put_format(printer->out, "%c%s", level->open == OPEN_MAP ? ':' : ',',
			   space(printer));
		return;
	}
	if (level->index)
		put_text(printer->out, level->open == OPEN_PAIRS ? "]," : ",");
	new_line(printer, printer->depth);
	if (level->open == OPEN_PAIRS)
		put_char(printer->out, '[');
}

void spoke_json_print(struct spoke_value value, enum spoke_json_form form,
		      spoke_json_put_fn put_out, void *arg)
{
	struct out out = { .put = put_out, .arg = arg };
	struct printer printer = { .out = &out, .form = form };

	print_value(&printer, value);
	while (printer.depth) {
		struct level *level = &printer.levels[printer.depth - 1];
		struct spoke_value item;

		if (!spoke_cursor_next(&level->items, &item)) {
			close_level(&printer);
			continue;
		}
		print_before(&printer, level);
		level->index++;
		print_value(&printer, item);
	}
	flush(&out);
}

void spoke_json_print_text(const void *bytes, size_t len, spoke_json_put_fn put_out, void *arg)
{
	struct out out = { .put = put_out, .arg = arg };

	print_text(bytes, len, &out);
	flush(&out);
}

/* --- into a buffer */

struct sink {
	struct spokei_buffer *buffer;
	int error;
};

static void append(void *arg, const void *bytes, size_t len)
{
	struct sink *sink = arg;

	if (!sink->error)
		sink->error = spokei_buffer_append(sink->buffer, bytes, len);
}

int spokei_json_append(struct spokei_buffer *out, struct spoke_value value)
{
	struct sink sink = { .buffer = out };
	size_t before = spokei_buffer_len(out);

	spoke_json_print(value, SPOKE_JSON_LINE, append, &sink);
	if (sink.error)
		spokei_buffer_truncate(out, before);
	return sink.error;
}

int spokei_json_append_text(struct spokei_buffer *out, const void *bytes, size_t len)
{
	struct sink sink = { .buffer = out };
	size_t before = spokei_buffer_len(out);

	spoke_json_print_text(bytes, len, append, &sink);
	if (sink.error)
		spokei_buffer_truncate(out, before);
	return sink.error;
}
