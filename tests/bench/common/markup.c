/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text and prints numbers; see markup.h. */
#include "markup.h"

void markup_text(FILE *file, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			(void)fputs("&amp;", file);
			break;
		case '<':
			(void)fputs("&lt;", file);
			break;
		case '>':
			(void)fputs("&gt;", file);
			break;
		case '"':
			(void)fputs("&quot;", file);
			break;
		case '\'':
			(void)fputs("&#39;", file);
			break;
		default:
			(void)fputc(*text, file);
		}
	}
}

void markup_number(char *text, size_t size, double value)
{
	static const char *const units[] = { "", " k", " M", " G" };
	unsigned unit = 0;
	int digits;

	while (value >= 999.5 && unit < 3) {
		value /= 1000;
		unit++;
	}
	digits = value >= 99.95 || (unit == 0 && value >= 10) ? 0 : value >= 9.995 ? 1 : 2;
	(void)snprintf(text, size, "%.*f%s", digits, value, units[unit]);
}
