/* SPDX-License-Identifier: Apache-2.0 */
/* Parses replies and writes commands of RESP2. Every length is checked before it is used. */
#include "cluster/lease/resp.h"

#include <spoke/error.h>

#include <string.h>

/* Of a line with a number: the type, a sign, digits of 64 bits, the end of the line. */
#define NUMBER_LINE 23u

/* --- lines */

/* Parses a decimal number with an optional sign. Returns false if it is none, or does not fit. */
static bool parse_number(const unsigned char *at, size_t len, int64_t *ret)
{
	bool negative = len > 0 && *at == '-';
	size_t first = negative || (len > 0 && *at == '+');
	uint64_t most = (uint64_t)INT64_MAX + negative;
	uint64_t value = 0;

	if (first == len)
		return false;
	for (size_t i = first; i < len; i++) {
		unsigned digit = (unsigned)at[i] - '0';

		if (digit > 9 || value > (most - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

/* Finds the CR LF of a line. Returns the length of the line without it, or `len`: none. */
static size_t line_len(const unsigned char *at, size_t len)
{
	const unsigned char *end = len > 0 ? memchr(at, '\r', len) : NULL;

	return end ? (size_t)(end - at) : len;
}

/* --- the cursor */

bool spokei_resp_next(struct spokei_resp_cursor *cursor, struct spokei_resp_value *ret)
{
	size_t left = (size_t)(cursor->end - cursor->at);
	size_t len = line_len(cursor->at, left);
	const unsigned char *text;
	int64_t number = 0;

	*ret = (struct spokei_resp_value){ .kind = SPOKEI_RESP_NIL };
	if (left < len + 2 || len == 0)
		return false;
	text = cursor->at + 1;
	ret->text = (struct spoke_span){ text, len - 1 };
	switch (*cursor->at) {
	case '+':
		ret->kind = SPOKEI_RESP_SIMPLE;
		break;
	case '-':
		ret->kind = SPOKEI_RESP_ERROR;
		break;
	default:
		ret->text = (struct spoke_span){ NULL, 0 };
		if (!parse_number(text, len - 1, &number))
			return false;
	}
	cursor->at += len + 2;
	left -= len + 2;
	if (text[-1] == ':') {
		ret->kind = SPOKEI_RESP_INTEGER;
		ret->integer = number;
	} else if (text[-1] == '*' && number >= 0) {
		ret->kind = SPOKEI_RESP_ARRAY;
		ret->count = (uint32_t)number;
	} else if (text[-1] == '$' && number >= 0) {
		if (left < 2 || (uint64_t)number > left - 2)
			return false;
		ret->kind = SPOKEI_RESP_BULK;
		ret->text = (struct spoke_span){ cursor->at, (size_t)number };
		cursor->at += (size_t)number + 2;
	}
	return true;
}

bool spokei_resp_number(const struct spokei_resp_value *value, int64_t *ret)
{
	if (value->kind == SPOKEI_RESP_BULK)
		return parse_number(value->text.data, value->text.len, ret);
	*ret = value->integer;
	return value->kind == SPOKEI_RESP_INTEGER;
}

bool spokei_resp_next_number(struct spokei_resp_cursor *cursor, int64_t *ret)
{
	struct spokei_resp_value value;

	return spokei_resp_next(cursor, &value) && spokei_resp_number(&value, ret);
}

/* --- the parser */

void spokei_resp_begin(struct spokei_resp_reader *reader)
{
	*reader = (struct spokei_resp_reader){ .left = { 1 } };
}

static enum spokei_resp_verdict broken(struct spokei_resp_reader *reader, const char *why)
{
	reader->why = why;
	return SPOKEI_RESP_BROKEN;
}

static enum spokei_resp_verdict too_large(struct spokei_resp_reader *reader)
{
	return broken(reader, "a reply of more than 64 KiB");
}

/* A value is complete: closes the arrays that it completes. */
static void value_done(struct spokei_resp_reader *reader, size_t len)
{
	reader->at += len;
	reader->seen = 0;
	reader->left[reader->depth]--;
	while (reader->depth > 0 && reader->left[reader->depth] == 0)
		reader->left[--reader->depth]--;
}

/* The line is that of an array. */
static enum spokei_resp_verdict open_array(struct spokei_resp_reader *reader, int64_t count,
					   size_t line)
{
	if (count < -1)
		return broken(reader, "an array of negative length");
	if (count > (int64_t)(SPOKEI_RESP_ELEMENTS - reader->elements))
		return broken(reader, "a reply of more than 1,024 elements");
	if (count <= 0) {
		value_done(reader, line);
		return SPOKEI_RESP_WHOLE;
	}
	if (reader->depth == SPOKEI_RESP_DEPTH)
		return broken(reader, "a reply with more than 4 arrays inside of one another");
	reader->elements += (uint32_t)count;
	reader->left[++reader->depth] = (uint32_t)count;
	reader->at += line;
	reader->seen = 0;
	return SPOKEI_RESP_WHOLE;
}

/* The line is that of a bulk string, whose bytes follow it. */
static enum spokei_resp_verdict read_bulk(struct spokei_resp_reader *reader,
					  const unsigned char *bytes, size_t len, int64_t count,
					  size_t line)
{
	size_t whole;

	if (count < -1)
		return broken(reader, "a string of negative length");
	if (count < 0) {
		value_done(reader, line);
		return SPOKEI_RESP_WHOLE;
	}
	if ((uint64_t)count > SPOKEI_RESP_BYTES)
		return too_large(reader);
	whole = line + (size_t)count + 2;
	if (whole > SPOKEI_RESP_BYTES - reader->at)
		return too_large(reader);
	bytes += reader->at;
	len -= reader->at;
	if (len >= whole - 1 && bytes[whole - 2] != '\r')
		return broken(reader, "a string without its end");
	if (len < whole)
		return SPOKEI_RESP_MORE;
	if (bytes[whole - 1] != '\n')
		return broken(reader, "a string without its end");
	value_done(reader, whole);
	return SPOKEI_RESP_WHOLE;
}

/* Finds the end of the line that begins at reader->at: *ret_line, its length with CR LF. */
static enum spokei_resp_verdict find_line(struct spokei_resp_reader *reader,
					  const unsigned char *bytes, size_t len, bool number,
					  size_t *ret_line)
{
	size_t most = SPOKEI_RESP_BYTES - reader->at;
	size_t end;

	if (number && most > NUMBER_LINE)
		most = NUMBER_LINE;
	bytes += reader->at;
	len -= reader->at;
	if (len > most)
		len = most;
	for (end = reader->seen; end < len && bytes[end] != '\r'; end++)
		if (bytes[end] == '\n')
			return broken(reader, "a line without CR");
	reader->seen = end;
	if (end + 1 < len && bytes[end + 1] != '\n')
		return broken(reader, "a line without LF");
	if (end + 1 < len) {
		*ret_line = end + 2;
		return SPOKEI_RESP_WHOLE;
	}
	if (len < most)
		return SPOKEI_RESP_MORE;
	return number ? broken(reader, "a number that is too long") : too_large(reader);
}

/* Reads one value, or the beginning of an array. */
static enum spokei_resp_verdict read_value(struct spokei_resp_reader *reader,
					   const unsigned char *bytes, size_t len)
{
	unsigned char type = bytes[reader->at];
	bool number = type != '+' && type != '-';
	enum spokei_resp_verdict verdict;
	int64_t count;
	size_t line;

	if (number && type != ':' && type != '$' && type != '*')
		return broken(reader, "a byte that begins no reply of RESP2");
	verdict = find_line(reader, bytes, len, number, &line);
	if (verdict != SPOKEI_RESP_WHOLE)
		return verdict;
	if (!number) {
		value_done(reader, line);
		return SPOKEI_RESP_WHOLE;
	}
	if (!parse_number(bytes + reader->at + 1, line - 3, &count))
		return broken(reader, "a number that is none");
	if (type == '*')
		return open_array(reader, count, line);
	if (type == '$')
		return read_bulk(reader, bytes, len, count, line);
	value_done(reader, line);
	return SPOKEI_RESP_WHOLE;
}

enum spokei_resp_verdict spokei_resp_read(struct spokei_resp_reader *reader,
					  const unsigned char *bytes, size_t len)
{
	while (reader->left[0] > 0) {
		enum spokei_resp_verdict verdict;

		if (reader->why)
			return SPOKEI_RESP_BROKEN;
		if (reader->at >= SPOKEI_RESP_BYTES)
			return too_large(reader);
		if (reader->at >= len)
			return SPOKEI_RESP_MORE;
		verdict = read_value(reader, bytes, len);
		if (verdict != SPOKEI_RESP_WHOLE)
			return verdict;
	}
	return SPOKEI_RESP_WHOLE;
}

/* --- the writer */

/* Appends `type`, a number in decimal, and CR LF. */
static int put_line(struct spokei_buffer *out, char type, uint64_t number)
{
	char line[NUMBER_LINE];
	size_t at = sizeof(line);

	line[--at] = '\n';
	line[--at] = '\r';
	do {
		line[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	line[--at] = type;
	return spokei_buffer_append(out, line + at, sizeof(line) - at);
}

int spokei_resp_put_command(struct spokei_buffer *out, uint32_t count)
{
	return put_line(out, '*', count);
}

int spokei_resp_put_text(struct spokei_buffer *out, struct spoke_span text)
{
	int error = put_line(out, '$', text.len);

	if (error == SPOKE_OK && text.len > 0)
		error = spokei_buffer_append(out, text.data, text.len);
	return error ? error : spokei_buffer_append(out, "\r\n", 2);
}

int spokei_resp_put_number(struct spokei_buffer *out, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	return spokei_resp_put_text(out, (struct spoke_span){ digits + at, sizeof(digits) - at });
}
