/* SPDX-License-Identifier: Apache-2.0 */
/* Appends formatted text to a buffer. */
#include "cluster/admin/lines.h"

#include <stdarg.h>
#include <stdio.h>

void spokei_lines_bytes(struct spokei_lines *lines, const void *bytes, size_t len)
{
	if (lines->error == SPOKE_OK)
		lines->error = spokei_buffer_append(lines->out, bytes, len);
}

void spokei_lines_put(struct spokei_lines *lines, const char *format, ...)
{
	char piece[SPOKEI_LINES_PIECE];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (len >= (int)sizeof(piece))
		len = (int)sizeof(piece) - 1;
	if (len > 0)
		spokei_lines_bytes(lines, piece, (size_t)len);
}
