/* SPDX-License-Identifier: Apache-2.0 */
/* Scans and joins the chunks of a body. */
#include "transport/http/chunks.h"
#include "transport/http/request.h"

#include "core/text/encoding.h"

#define BAD_REQUEST 400
#define TOO_LARGE 413
#define DIGITS_MAX 8u

/* Finds the end of a line of at most `max` bytes that begins with `len` bytes. Returns its length
 * with the CRLF; 0: it is incomplete; SIZE_MAX: it is too long, or ends without CR. */
static size_t line_len(const char *line, size_t len, size_t max)
{
	size_t seen = len < max ? len : max;
	const char *end = seen > 0 ? memchr(line, '\n', seen) : NULL;

	if (end == NULL)
		return len < max ? 0 : SIZE_MAX;
	return end > line && end[-1] == '\r' ? (size_t)(end - line) + 1 : SIZE_MAX;
}

/* Is it printable text, blanks and tabs? */
static bool is_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return false;
	}
	return true;
}

/* Reads "SIZE" or "SIZE;extensions". Blanks after the size are refused: only some programs skip
 * them. */
static bool read_size(const char *line, size_t len, size_t *ret_size)
{
	size_t size = 0;
	size_t digits = 0;

	while (digits < len && spokei_hex_value(line[digits]) >= 0) {
		if (digits == DIGITS_MAX)
			return false;
		size = size * 16 + (size_t)spokei_hex_value(line[digits++]);
	}
	*ret_size = size;
	if (digits == 0)
		return false;
	return digits == len || (line[digits] == ';' && is_text(line + digits, len - digits));
}

/* Scans the lines after the last chunk, up to an empty one. */
static int scan_trailers(const char *bytes, size_t len, size_t *ret_end)
{
	size_t at = 0;

	for (;;) {
		const char *line = bytes + at;
		size_t line_end = line_len(line, len - at, SPOKEI_HTTP_TRAILERS_MAX - at);

		if (line_end == 0)
			return SPOKEI_HTTP_MORE;
		if (line_end == SIZE_MAX)
			return BAD_REQUEST;
		at += line_end;
		*ret_end = at;
		if (line_end == 2)
			return SPOKEI_HTTP_WHOLE;
		if (line[0] == ' ' || line[0] == '\t' || line[0] == ':' ||
		    memchr(line, ':', line_end) == NULL || !is_text(line, line_end - 2))
			return BAD_REQUEST;
	}
}

int spokei_http_chunks_scan(struct spokei_http_chunks *chunks, const void *bytes, size_t len,
			    size_t max, size_t *ret_needed)
{
	const char *text = bytes;

	for (;;) {
		const char *line = text + chunks->at;
		size_t there = len - chunks->at;
		size_t line_end = line_len(line, there, SPOKEI_HTTP_CHUNK_LINE);
		size_t trailers = 0;
		size_t size;
		int status;

		*ret_needed = len + 1;
		if (line_end == 0)
			return SPOKEI_HTTP_MORE;
		if (line_end == SIZE_MAX || !read_size(line, line_end - 2, &size))
			return BAD_REQUEST;
		if (size > max - chunks->len)
			return TOO_LARGE;
		if (size == 0) {
			status = scan_trailers(line + line_end, there - line_end, &trailers);
			if (status == SPOKEI_HTTP_WHOLE)
				chunks->at += line_end + trailers;
			return status;
		}
		if (there - line_end < size + 2) {
			*ret_needed = chunks->at + line_end + size + 2;
			return SPOKEI_HTTP_MORE;
		}
		if (memcmp(line + line_end + size, "\r\n", 2) != 0)
			return BAD_REQUEST;
		chunks->at += line_end + size + 2;
		chunks->len += size;
	}
}

size_t spokei_http_chunks_join(const void *bytes, void *to)
{
	const char *at = bytes;
	size_t joined = 0;
	size_t size;

	for (;;) {
		const char *end = memchr(at, '\n', SPOKEI_HTTP_CHUNK_LINE);

		SPOKE_ASSERT(end != NULL && read_size(at, (size_t)(end - at) - 1, &size));
		if (size == 0)
			return joined;
		memcpy((char *)to + joined, end + 1, size);
		joined += size;
		at = end + 1 + size + 2;
	}
}
