/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the tokens of JSON: strings and words. */
#include "core/json/scan.h"

#include "core/text/utf8.h"

#include <string.h>

bool spokei_json_fail(struct spokei_json_scan *scan, int error, const char *what)
{
	if (!scan->error) {
		scan->error = error;
		scan->what = what;
	}
	return false;
}

char *spokei_json_fail_at(struct spokei_json_scan *scan, char *at, int error, const char *what)
{
	scan->at = at;
	(void)spokei_json_fail(scan, error, what);
	return NULL;
}

bool spokei_json_pass_word(struct spokei_json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return false;
	scan->at += len;
	return true;
}

/* --- strings */

static bool read_hex(struct spokei_json_scan *scan, uint32_t *ret)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < 4; i++) {
		char c = spokei_json_here(scan);
		uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
							: 16;

		if (digit == 16)
			return spokei_json_fail(scan, SPOKE_ESYNTAX,
						"expected four hex digits after \\u");
		number = number << 4 | digit;
		scan->at++;
	}
	*ret = number;
	return true;
}

/* Reads the digits after "\u". */
static bool read_unicode(struct spokei_json_scan *scan, uint32_t *ret)
{
	uint32_t low;

	if (!read_hex(scan, ret))
		return false;
	if (*ret >= 0xdc00 && *ret < 0xe000)
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"second half of a surrogate pair without the first");
	if (*ret < 0xd800 || *ret >= 0xdc00)
		return true;
	if (!spokei_json_pass_word(scan, "\\u"))
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"first half of a surrogate pair without the second");
	if (!read_hex(scan, &low))
		return false;
	if (low < 0xdc00 || low >= 0xe000)
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"first half of a surrogate pair without the second");
	*ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

/* Decodes the escape after a backslash to `out`, which precedes it. */
static bool read_escape(struct spokei_json_scan *scan, char **out)
{
	static const char names[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";
	char c = spokei_json_here(scan);
	const char *name = c ? strchr(names, c) : NULL;
	uint32_t character;

	if (name) {
		scan->at++;
		*(*out)++ = bytes[name - names];
		return true;
	}
	if (c != 'u')
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"invalid escape; write \\\\ for a backslash");
	scan->at++;
	if (!read_unicode(scan, &character))
		return false;
	*out += spokei_utf8_write(character, *out);
	return true;
}

/* Skips a character that is neither plain nor an escape. Returns NULL at an invalid one. */
static char *skip_character(struct spokei_json_scan *scan, char *at)
{
	const unsigned char *here = (const unsigned char *)at;
	size_t size = spokei_utf8_len(here, (size_t)(scan->end - at));

	if (*here < 0x20)
		return spokei_json_fail_at(
			scan, at, SPOKE_ESYNTAX,
			"control character in a string; write an escape, e.g. \\n");
	if (size == 0)
		return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX,
					   "invalid UTF-8; write bytes as {\"$bin\": \"base64\"}");
	return at + size;
}

/* Moves text back over the room that escapes leave. Short runs are frequent. */
static inline char *move_back(char *out, const char *from, size_t len)
{
	if (out == from)
		return out + len;
	if (len <= 8) {
		for (size_t i = 0; i < len; i++)
			out[i] = from[i];
	} else {
		memmove(out, from, len);
	}
	return out + len;
}

char *spokei_json_decode(struct spokei_json_scan *scan, char *start, char *at, char **ret_text,
			 size_t *ret_len)
{
	char *out = start;
	char *run = start;

	for (;;) {
		while (at < scan->end && *at != '"' && *at != '\\') {
			at = skip_character(scan, at);
			if (at == NULL)
				return NULL;
			at += spokei_json_plain(at, (size_t)(scan->end - at));
		}
		out = move_back(out, run, (size_t)(at - run));
		if (at == scan->end)
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "unterminated string");
		if (*at == '"')
			break;
		scan->at = at + 1;
		if (!read_escape(scan, &out))
			return NULL;
		run = at = scan->at;
		at += spokei_json_plain(at, (size_t)(scan->end - at));
	}
	*ret_text = start;
	*ret_len = (size_t)(out - start);
	return at + 1;
}

bool spokei_json_string(struct spokei_json_scan *scan, char **ret_text, size_t *ret_len)
{
	char *end = spokei_json_take_string(scan, scan->at, ret_text, ret_len);

	if (end)
		scan->at = end;
	return end != NULL;
}

/* --- words */

char *spokei_json_take_word(struct spokei_json_scan *scan, char *at)
{
	scan->at = at;
	if (spokei_json_pass_word(scan, "null"))
		spoke_pack_nil(scan->builder);
	else if (spokei_json_pass_word(scan, "true"))
		spoke_pack_bool(scan->builder, true);
	else if (spokei_json_pass_word(scan, "false"))
		spoke_pack_bool(scan->builder, false);
	else
		return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX,
					   "not a JSON value; write strings in double quotes");
	return scan->at;
}
