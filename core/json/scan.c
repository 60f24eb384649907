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

bool spokei_json_pass_word(struct spokei_json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if (scan->len - scan->at < len || memcmp(scan->text + scan->at, word, len) != 0)
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

static inline bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Skips characters that mean themselves. Returns false at an invalid one. */
static bool skip_plain(struct spokei_json_scan *scan)
{
	while (scan->at < scan->len) {
		const unsigned char *here = (const unsigned char *)scan->text + scan->at;
		size_t size = 1;

		if (*here >= 0x80)
			size = spokei_utf8_len(here, scan->len - scan->at);
		else if (*here == '"' || *here == '\\')
			return true;
		else if (*here < 0x20)
			return spokei_json_fail(
				scan, SPOKE_ESYNTAX,
				"control character in a string; write an escape, e.g. \\n");
		if (size == 0)
			return spokei_json_fail(
				scan, SPOKE_ESYNTAX,
				"invalid UTF-8; write bytes as {\"$bin\": \"base64\"}");
		scan->at += size;
		while (scan->at < scan->len && is_plain(scan->text[scan->at]))
			scan->at++;
	}
	return true;
}

bool spokei_json_string(struct spokei_json_scan *scan, char **ret_text, size_t *ret_len)
{
	char *start = scan->text + scan->at;
	char *out = start;

	while (scan->at < scan->len) {
		const char *run = scan->text + scan->at;
		size_t size;

		if (!skip_plain(scan))
			return false;
		size = (size_t)(scan->text + scan->at - run);
		if (out != run)
			memmove(out, run, size);
		out += size;
		if (scan->at == scan->len)
			break;
		if (scan->text[scan->at++] == '"') {
			*ret_text = start;
			*ret_len = (size_t)(out - start);
			return true;
		}
		if (!read_escape(scan, &out))
			return false;
	}
	return spokei_json_fail(scan, SPOKE_ESYNTAX, "unterminated string");
}

/* --- words */

bool spokei_json_word(struct spokei_json_scan *scan)
{
	if (spokei_json_pass_word(scan, "null"))
		spoke_pack_nil(scan->builder);
	else if (spokei_json_pass_word(scan, "true"))
		spoke_pack_bool(scan->builder, true);
	else if (spokei_json_pass_word(scan, "false"))
		spoke_pack_bool(scan->builder, false);
	else
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"not a JSON value; write strings in double quotes");
	return true;
}
