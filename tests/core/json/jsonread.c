/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON reader, written independently of core/json, which only decodes texts: see
 * jsonread.h. */
#include "tests/core/json/jsonread.h"
#include "tests/support/test.h"

#include <spoke/json.h>

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32
#define TEXT_MAX 1024

struct reader {
	const char *at;
	const char *end;
	const char *wrong;
	unsigned depth;
};

static bool fails(struct reader *reader, const char *wrong)
{
	if (reader->wrong == NULL)
		reader->wrong = wrong;
	return false;
}

static char peek(const struct reader *reader)
{
	return reader->at < reader->end ? *reader->at : '\0';
}

static bool takes(struct reader *reader, char byte)
{
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

static void skip_space(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

static bool read_value(struct reader *reader);

/* --- UTF-8: checks the code point, whereas core/text/encoding.c uses a table of lead bytes */

static bool read_character(struct reader *reader)
{
	unsigned char lead = (unsigned char)*reader->at++;
	unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
	uint32_t value;

	if (lead < 0x80)
		return true;
	if (lead < 0xc0 || lead > 0xf7)
		return fails(reader, "an invalid lead byte");
	value = lead & (0x3fu >> more);
	for (unsigned i = 0; i < more; i++) {
		if (reader->at == reader->end || ((unsigned char)*reader->at & 0xc0) != 0x80)
			return fails(reader, "an incomplete character");
		value = value << 6 | ((unsigned char)*reader->at++ & 0x3fu);
	}
	if (value < (more == 1 ? 0x80u : more == 2 ? 0x800u : 0x10000u))
		return fails(reader, "an overlong character");
	if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return fails(reader, "a surrogate, or beyond U+10FFFF");
	return true;
}

static bool is_hex(char digit)
{
	return digit != '\0' && strchr("0123456789abcdefABCDEF", digit) != NULL;
}

static bool read_escape(struct reader *reader)
{
	char which = peek(reader);

	reader->at++;
	if (which == 'u') {
		for (unsigned i = 0; i < 4; i++) {
			if (!is_hex(peek(reader)))
				return fails(reader, "\\u without four digits");
			reader->at++;
		}
		return true;
	}
	if (which == '\0' || strchr("\"\\/bfnrt", which) == NULL)
		return fails(reader, "an unknown escape");
	return true;
}

static bool read_text(struct reader *reader)
{
	if (!takes(reader, '"'))
		return fails(reader, "a text is missing");
	while (reader->at < reader->end && *reader->at != '"') {
		if ((unsigned char)*reader->at < ' ')
			return fails(reader, "a control character in a text");
		if (takes(reader, '\\')) {
			if (!read_escape(reader))
				return false;
		} else if (!read_character(reader)) {
			return false;
		}
	}
	return takes(reader, '"') || fails(reader, "a text without end");
}

static bool read_digits(struct reader *reader)
{
	const char *from = reader->at;

	while (peek(reader) >= '0' && peek(reader) <= '9')
		reader->at++;
	return reader->at > from || fails(reader, "a number without digits");
}

static bool read_number(struct reader *reader)
{
	(void)takes(reader, '-');
	if (takes(reader, '0')) {
		if (peek(reader) >= '0' && peek(reader) <= '9')
			return fails(reader, "a number with a leading zero");
	} else if (!read_digits(reader)) {
		return false;
	}
	if (takes(reader, '.') && !read_digits(reader))
		return false;
	if (takes(reader, 'e') || takes(reader, 'E')) {
		if (!takes(reader, '-'))
			(void)takes(reader, '+');
		return read_digits(reader);
	}
	return true;
}

static bool read_word(struct reader *reader, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
		return fails(reader, "not a value");
	reader->at += len;
	return true;
}

/* Returns whether the object that begins at `from` already has this name. */
static bool is_twice(const char *from, const char *name, size_t len)
{
	struct reader reader = { .at = from, .end = name };

	while (reader.at < name) {
		const char *other = reader.at;

		skip_space(&reader);
		other = reader.at;
		if (other >= name || !read_text(&reader))
			return false;
		if ((size_t)(reader.at - other) == len && memcmp(other, name, len) == 0)
			return true;
		skip_space(&reader);
		(void)takes(&reader, ':');
		if (!read_value(&reader))
			return false;
		skip_space(&reader);
		(void)takes(&reader, ',');
	}
	return false;
}

static bool read_member(struct reader *reader, const char *from)
{
	const char *name;

	skip_space(reader);
	name = reader->at;
	if (!read_text(reader))
		return false;
	if (is_twice(from, name, (size_t)(reader->at - name)))
		return fails(reader, "a repeated name");
	skip_space(reader);
	if (!takes(reader, ':'))
		return fails(reader, "a name without a colon");
	return read_value(reader);
}

static bool read_rows(struct reader *reader, bool object)
{
	char close = object ? '}' : ']';
	const char *from = reader->at;

	if (++reader->depth > DEPTH_MAX)
		return fails(reader, "too deep");
	skip_space(reader);
	if (takes(reader, close)) {
		reader->depth--;
		return true;
	}
	do {
		if (object ? !read_member(reader, from) : !read_value(reader))
			return false;
		skip_space(reader);
	} while (takes(reader, ','));
	reader->depth--;
	return takes(reader, close) || fails(reader, "a comma or the end is missing");
}

static bool read_value(struct reader *reader)
{
	skip_space(reader);
	switch (peek(reader)) {
	case '{':
		reader->at++;
		return read_rows(reader, true);
	case '[':
		reader->at++;
		return read_rows(reader, false);
	case '"':
		return read_text(reader);
	case 't':
		return read_word(reader, "true");
	case 'f':
		return read_word(reader, "false");
	case 'n':
		return read_word(reader, "null");
	default:
		return read_number(reader);
	}
}

const char *jsonread_check(const char *text, size_t len, size_t *ret_at)
{
	struct reader reader = { .at = text, .end = text + len };

	if (read_value(&reader)) {
		skip_space(&reader);
		if (reader.at < reader.end)
			(void)fails(&reader, "text after the end");
	}
	*ret_at = (size_t)(reader.at - text);
	return reader.wrong;
}

/* --- paths */

struct jsonread jsonread_of(const char *text, size_t len)
{
	return (struct jsonread){ text, text + len };
}

static const struct jsonread nothing;

static struct jsonread member_of(struct jsonread object, const char *name, size_t len)
{
	struct reader reader = { .at = object.at, .end = object.end };

	if (!takes(&reader, '{'))
		return nothing;
	while (peek(&reader) == '"') {
		const char *key = reader.at + 1;
		bool same;

		assert_true(read_text(&reader));
		same = (size_t)(reader.at - key) == len + 1 && memcmp(key, name, len) == 0;
		assert_true(takes(&reader, ':'));
		if (same)
			return (struct jsonread){ reader.at, object.end };
		assert_true(read_value(&reader));
		(void)takes(&reader, ',');
	}
	return nothing;
}

static struct jsonread element_of(struct jsonread list, size_t index)
{
	struct reader reader = { .at = list.at, .end = list.end };

	if (!takes(&reader, '[') || peek(&reader) == ']')
		return nothing;
	for (size_t i = 0; i < index; i++) {
		assert_true(read_value(&reader));
		if (!takes(&reader, ','))
			return nothing;
	}
	return (struct jsonread){ reader.at, list.end };
}

struct jsonread jsonread_get(struct jsonread value, const char *path)
{
	while (*path && value.at) {
		if (*path == '[') {
			char *end;

			value = element_of(value, strtoul(path + 1, &end, 10));
			path = end + 1;
		} else {
			size_t len;

			path += *path == '.';
			len = strcspn(path, ".[");
			value = member_of(value, path, len);
			path += len;
		}
	}
	return value;
}

size_t jsonread_count(struct jsonread list)
{
	size_t count = 0;

	assert_non_null(list.at);
	assert_true(*list.at == '[');
	while (element_of(list, count).at)
		count++;
	return count;
}

static struct jsonread have(struct jsonread value, const char *path)
{
	struct jsonread found = jsonread_get(value, path);

	if (found.at == NULL)
		fail_msg("there is no %s", path);
	return found;
}

uint64_t jsonread_u64(struct jsonread value, const char *path)
{
	struct jsonread found = have(value, path);
	char *end;
	uint64_t number = strtoull(found.at, &end, 10);

	if (*found.at < '0' || *found.at > '9' || strchr(",}]", *end) == NULL)
		fail_msg("%s is not an integer: %.20s", path, found.at);
	return number;
}

bool jsonread_is_null(struct jsonread value, const char *path)
{
	return strncmp(have(value, path).at, "null", 4) == 0;
}

bool jsonread_is_true(struct jsonread value, const char *path)
{
	return strncmp(have(value, path).at, "true", 4) == 0;
}

const char *jsonread_text(struct jsonread value, const char *path)
{
	static char text[TEXT_MAX];
	static unsigned char packed[TEXT_MAX + 5];
	const char *at = have(value, path).at;
	const char *end = at + 1;
	struct spoke_json_error wrong;
	struct spoke_builder builder;
	struct spoke_value string;
	struct spoke_span span;
	size_t count;

	if (*at != '"')
		fail_msg("%s is not a text: %.20s", path, at);
	while (*end != '"')
		end += *end == '\\' ? 2 : 1;
	end++;
	assert_true((size_t)(end - at) < sizeof(text));
	memcpy(text, at, (size_t)(end - at));
	spoke_builder_init_fixed(&builder, packed, sizeof(packed), NULL);
	assert_int_equal(spoke_json_read(text, (size_t)(end - at), &builder, &count, &wrong), 0);
	assert_int_equal(spoke_builder_finish_value(&builder, &string), 0);
	assert_int_equal(spoke_value_str(string, &span), 0);
	memcpy(text, span.data, span.len);
	text[span.len] = '\0';
	return text;
}
