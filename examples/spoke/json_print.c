/* SPDX-License-Identifier: Apache-2.0 */
/* Prints values as JSON. */
#include "examples/spoke/json.h"
#include "examples/spoke/json_text.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

struct printer {
	FILE *out;
	enum json_form form;
	struct level levels[SPOKE_VALUE_DEPTH_MAX];
	unsigned depth;
};

/* --- texts and bytes */

static void print_character(const unsigned char *bytes, size_t size, FILE *out)
{
	static const char names[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *name = size == 1 && *bytes ? strchr(names, *bytes) : NULL;

	if (name)
		(void)fprintf(out, "\\%c", letters[name - names]);
	else if (size == 1 && (*bytes < 0x20 || *bytes == 0x7f))
		(void)fprintf(out, "\\u%04x", *bytes);
	/* U+0080 to U+009F are control characters for a terminal. */
	else if (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0)
		(void)fprintf(out, "\\u%04x", bytes[1]);
	else
		(void)fwrite(bytes, 1, size, out);
}

void json_print_text(const void *bytes, size_t len, FILE *out)
{
	const unsigned char *at = bytes;
	size_t size;

	(void)fputc('"', out);
	for (; len; at += size, len -= size) {
		size = utf8_next(at, len);
		if (size) {
			print_character(at, size, out);
		} else {
			(void)fputs("\\ufffd", out);
			size = 1;
		}
	}
	(void)fputc('"', out);
}

static void print_base64(struct spoke_span bytes, FILE *out)
{
	const unsigned char *at = bytes.data;
	char letters[4];

	(void)fputc('"', out);
	for (size_t left = bytes.len; left; at += 3) {
		base64_write(at, left, letters);
		(void)fwrite(letters, 1, sizeof(letters), out);
		left -= left < 3 ? left : 3;
	}
	(void)fputc('"', out);
}

static const char *space(const struct printer *printer)
{
	return printer->form == JSON_TREE ? " " : "";
}

static void print_str(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span text = { NULL, 0 };

	if (spoke_value_str(value, &text) == SPOKE_OK && utf8_is(text.data, text.len)) {
		json_print_text(text.data, text.len, printer->out);
		return;
	}
	(void)fprintf(printer->out, "{\"$str\":%s", space(printer));
	print_base64(text, printer->out);
	(void)fputc('}', printer->out);
}

static void print_bin(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span bytes = { NULL, 0 };

	(void)!spoke_value_bin(value, &bytes);
	(void)fprintf(printer->out, "{\"$bin\":%s", space(printer));
	print_base64(bytes, printer->out);
	(void)fputc('}', printer->out);
}

/* Prints a timestamp that spoke_value_print() writes as "date(...)". */
static bool print_date(const struct printer *printer, struct spoke_value value)
{
	char text[64];
	size_t len = spoke_value_print(value, text, sizeof(text));

	if (len < 6 || strncmp(text, "date(", 5) != 0)
		return false;
	(void)fprintf(printer->out, "{\"$date\":%s\"%.*s\"}", space(printer), (int)len - 6,
		      text + 5);
	return true;
}

static void print_ext(const struct printer *printer, struct spoke_value value)
{
	struct spoke_span bytes = { NULL, 0 };
	int8_t type = 0;

	if (print_date(printer, value))
		return;
	(void)!spoke_value_ext(value, &type, &bytes);
	(void)fprintf(printer->out, "{\"$ext\":%s[%d,%s", space(printer), type, space(printer));
	print_base64(bytes, printer->out);
	(void)fputs("]}", printer->out);
}

/* --- numbers */

static void print_integer(struct spoke_value value, FILE *out)
{
	uint64_t natural;
	int64_t integer;

	if (spoke_value_u64(value, &natural) == SPOKE_OK)
		(void)fprintf(out, "%" PRIu64, natural);
	else if (spoke_value_i64(value, &integer) == SPOKE_OK)
		(void)fprintf(out, "%" PRId64, integer);
}

static void print_double(const struct printer *printer, struct spoke_value value)
{
	double number = 0;
	char text[40];

	(void)!spoke_value_double(value, &number);
	if (!isfinite(number)) {
		(void)fprintf(printer->out, "{\"$float\":%s\"%s\"}", space(printer),
			      isnan(number) ? "nan"
			      : number > 0  ? "inf"
					    : "-inf");
		return;
	}
	/* Below DBL_MIN a double has fewer than 15 digits. */
	for (int digits = fabs(number) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
		double again;

		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		again = strtod(text, NULL);
		if (again >= number && again <= number)
			break;
	}
	(void)fprintf(printer->out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
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
		if (spoke_value_str(key, &text) || !utf8_is(text.data, text.len))
			return false;
	return count != 1 || !text.len || *(const char *)text.data != '$';
}

static void new_line(const struct printer *printer, unsigned depth)
{
	if (printer->form == JSON_TREE)
		(void)fprintf(printer->out, "\n%*s", (int)(2 * depth), "");
}

static void open_level(struct printer *printer, struct spoke_value value, enum open open)
{
	struct level *level = &printer->levels[printer->depth];
	int error;

	if (printer->depth == SPOKE_VALUE_DEPTH_MAX) {
		(void)fputs("null", printer->out); /* impossible for a validated value */
		return;
	}

	*level = (struct level){ .open = open };
	error = open == OPEN_ARRAY ? spoke_cursor_array(value, &level->items)
				   : spoke_cursor_map(value, &level->items);
	if (error)
		level->items = (struct spoke_cursor){ NULL, NULL, 0 };
	printer->depth++;
	if (open == OPEN_PAIRS)
		(void)fprintf(printer->out, "{\"$map\":%s[", space(printer));
	else
		(void)fputc(open == OPEN_MAP ? '{' : '[', printer->out);
}

static void close_level(struct printer *printer)
{
	const struct level *level = &printer->levels[--printer->depth];
	static const char *const ends[] = { "]", "}", "]}" };

	if (level->index) {
		if (level->open == OPEN_PAIRS)
			(void)fputc(']', printer->out);
		new_line(printer, printer->depth);
	}
	(void)fputs(ends[level->open], printer->out);
}

static void print_value(struct printer *printer, struct spoke_value value)
{
	enum spoke_value_type type = spoke_value_type(value);
	bool flag = false;

	switch (type) {
	case SPOKE_VALUE_BOOL:
		(void)!spoke_value_bool(value, &flag);
		(void)fputs(flag ? "true" : "false", printer->out);
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
		(void)fputs("null", printer->out);
	}
}

/* Prints the separator before the next item of a level. */
static void print_before(const struct printer *printer, const struct level *level)
{
	bool is_second = level->open != OPEN_ARRAY && level->index % 2 != 0;

	if (is_second) {
		(void)fprintf(printer->out, "%c%s", level->open == OPEN_MAP ? ':' : ',',
			      space(printer));
		return;
	}
	if (level->index)
		(void)fputs(level->open == OPEN_PAIRS ? "]," : ",", printer->out);
	new_line(printer, printer->depth);
	if (level->open == OPEN_PAIRS)
		(void)fputc('[', printer->out);
}

void json_print(struct spoke_value value, enum json_form form, FILE *out)
{
	struct printer printer = { .out = out, .form = form };

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
}
