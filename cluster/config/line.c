/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a line in a configuration file: blanks, comments, quotation marks. */
#include "cluster/config/line.h"

#include <string.h>

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

char *spokei_line_skip(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

void spokei_line_trim(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && is_blank(text[len - 1]))
		len--;
	text[len] = '\0';
}

bool spokei_line_is_comment(const char *at)
{
	return *at == '\0' || *at == '#' || *at == ';';
}

void spokei_line_cut(char *text)
{
	for (char *at = text; *at; at++) {
		if (*at == '#' && (at == text || is_blank(at[-1]))) {
			*at = '\0';
			break;
		}
	}
	spokei_line_trim(text);
}

const char *spokei_line_unquote(char *at, char **ret_value)
{
	char *out = ++at;

	*ret_value = out;
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		*out++ = *at;
	}
	if (*at == '\0')
		return "missing closing quotation mark";
	at = spokei_line_skip(at + 1);
	if (*at && *at != '#')
		return "text after the closing quotation mark; write \\\" inside quotes";
	*out = '\0';
	return NULL;
}
