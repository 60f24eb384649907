/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an HTTP request line by line, so that a part of it gives the same error as the whole.
 */
#include "transport/http/request.h"

#include "core/text/encoding.h"

#include <string.h>

#define BAD_REQUEST 400
#define TOO_LARGE 413
#define LINE_TOO_LONG 414
#define UNKNOWN_EXPECTATION 417
#define HEAD_TOO_LONG 431
#define NO_CODINGS 501
#define NO_SUCH_VERSION 505

struct reader {
	const char *bytes;
	size_t len;
	size_t at; /* the next line begins here */
	bool old;  /* HTTP/1.0, which requires no Host */
	bool has_host;
	bool has_length;
	bool has_type;
	bool has_connection_close;
	bool has_keep_alive;
	spokei_http_field_fn each; /* or NULL */
	void *arg;
	struct spokei_http_request *request;
};

/* Bytes of a token, visible ASCII, and bytes of a header's value. */
#define TOKEN 1u
#define VISIBLE 2u
#define FIELD 4u

#define ONES UINT64_C(0x0101010101010101)

/* clang-format off */
static const unsigned char classes[256] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	4, 7, 6, 7, 7, 7, 7, 7, 6, 6, 7, 7, 6, 7, 7, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6,
	6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 7, 6, 7, 0,
	4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
	4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
	4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
	4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
};
/* clang-format on */

/* Are all bytes of this class? */
static bool is_all(struct spoke_span span, unsigned char class)
{
	const unsigned char *text = span.data;
	unsigned char all = class;

	for (size_t i = 0; i < span.len; i++)
		all &= classes[text[i]];
	return all != 0;
}

bool spokei_http_is_token(struct spoke_span span)
{
	return span.len > 0 && is_all(span, TOKEN);
}

static bool is_visible(struct spoke_span span)
{
	return span.len > 0 && is_all(span, VISIBLE);
}

/* Is a byte zero? */
static bool has_zero(uint64_t word)
{
	return ((word - ONES) & ~word & (ONES << 7)) != 0;
}

/* Most text has neither control characters (the top three bits are zero) nor DEL. */
static bool is_field_text(struct spoke_span span)
{
	uint64_t word;

	for (; span.len >= sizeof(word); span.len -= sizeof(word)) {
		memcpy(&word, span.data, sizeof(word));
		if (has_zero(word & ONES * 0xe0) || has_zero(word ^ ONES * 0x7f))
			break;
		span.data = (const char *)span.data + sizeof(word);
	}
	return is_all(span, FIELD);
}

/* Splits the text before `c` off a span, and drops `c`. Returns false if there is no `c`. */
static bool cut(struct spoke_span *span, char c, struct spoke_span *ret_before)
{
	const char *text = span->data;
	const char *found = span->len ? memchr(text, c, span->len) : NULL;

	if (found == NULL)
		return false;
	*ret_before = (struct spoke_span){ text, (size_t)(found - text) };
	*span = (struct spoke_span){ found + 1, span->len - ret_before->len - 1 };
	return true;
}

/* Takes a line of at most `max` bytes, without its end, CRLF. LF alone is refused, as RFC 9112 2.2
 * allows: programs differ in whether it ends a line. */
static int next_line(struct reader *reader, size_t max, int too_long, struct spoke_span *ret_line)
{
	const char *line = reader->bytes + reader->at;
	size_t there = reader->len - reader->at;
	size_t head_left = SPOKEI_HTTP_HEAD_MAX - reader->at;
	size_t limit = max < head_left ? max : head_left;
	size_t seen = there < limit ? there : limit;
	const char *end = seen ? memchr(line, '\n', seen) : NULL;

	if (end == NULL) {
		if (seen < limit)
			return SPOKEI_HTTP_MORE;
		return max < head_left ? too_long : HEAD_TOO_LONG;
	}
	if (end == line || end[-1] != '\r')
		return BAD_REQUEST;
	reader->at += (size_t)(end - line) + 1;
	*ret_line = (struct spoke_span){ line, (size_t)(end - line) - 1 };
	return SPOKEI_HTTP_WHOLE;
}

static enum spokei_http_method find_method(struct spoke_span name)
{
	if (spokei_span_is(name, "GET"))
		return SPOKEI_HTTP_GET;
	if (spokei_span_is(name, "HEAD"))
		return SPOKEI_HTTP_HEAD;
	if (spokei_span_is(name, "OPTIONS"))
		return SPOKEI_HTTP_OPTIONS;
	return spokei_span_is(name, "POST") ? SPOKEI_HTTP_POST : SPOKEI_HTTP_OTHER;
}

/* Reads "/path?query" or "http://host/path?query", and "*" of OPTIONS. */
static bool read_target(struct reader *reader, struct spoke_span target)
{
	static const char scheme[] = "http://";
	const size_t scheme_len = sizeof(scheme) - 1;
	struct spokei_http_request *request = reader->request;
	const char *text = target.data;

	if (!is_visible(target) || memchr(text, '#', target.len) != NULL)
		return false;
	if (request->method == SPOKEI_HTTP_OPTIONS && spokei_span_is(target, "*")) {
		request->path = target;
		return true;
	}
	if (target.len > scheme_len &&
	    spokei_span_is_any_case((struct spoke_span){ text, scheme_len }, scheme)) {
		target = (struct spoke_span){ text + scheme_len, target.len - scheme_len };
		text = memchr(target.data, '/', target.len);
		if (text == NULL)
			return false;
		request->host.data = target.data;
		request->host.len = (size_t)(text - (const char *)target.data);
		if (request->host.len == 0)
			return false;
		target = (struct spoke_span){ text, target.len - request->host.len };
	}
	if (text[0] != '/')
		return false;
	if (cut(&target, '?', &request->path))
		request->query = target;
	else
		request->path = target;
	return true;
}

/* Reads exactly "HTTP/" digit "." digit. */
static int read_version(struct reader *reader, struct spoke_span version)
{
	const char *text = version.data;

	if (version.len != 8 || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.' || text[5] < '0' ||
	    text[5] > '9' || text[7] < '0' || text[7] > '9')
		return BAD_REQUEST;
	if (text[5] != '1')
		return NO_SUCH_VERSION;
	reader->old = text[7] == '0';
	return SPOKEI_HTTP_WHOLE;
}

static int read_request_line(struct reader *reader)
{
	struct spoke_span line;
	struct spoke_span method;
	struct spoke_span target;
	int status = next_line(reader, SPOKEI_HTTP_LINE_MAX, LINE_TOO_LONG, &line);

	/* Old clients send an empty line after a body. */
	if (status == SPOKEI_HTTP_WHOLE && line.len == 0)
		status = next_line(reader, SPOKEI_HTTP_LINE_MAX, LINE_TOO_LONG, &line);
	if (status != SPOKEI_HTTP_WHOLE)
		return status;
	if (!cut(&line, ' ', &method) || !spokei_http_is_token(method) || !cut(&line, ' ', &target))
		return BAD_REQUEST;
	reader->request->method = find_method(method);
	status = read_version(reader, line);
	if (status != SPOKEI_HTTP_WHOLE)
		return status;
	return read_target(reader, target) ? SPOKEI_HTTP_WHOLE : BAD_REQUEST;
}

bool spokei_http_length(struct spoke_span value, size_t *ret_length)
{
	const char *text = value.data;
	size_t length = 0;

	for (size_t i = 0; i < value.len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		length = length * 10 + (size_t)(text[i] - '0');
		if (length > SIZE_MAX / 16)
			length = SIZE_MAX / 16;
	}
	*ret_length = length;
	return value.len > 0;
}

static int read_length(struct reader *reader, struct spoke_span value)
{
	if (reader->has_length || !spokei_http_length(value, &reader->request->body_len))
		return BAD_REQUEST;
	reader->has_length = true;
	return SPOKEI_HTTP_WHOLE;
}

static int read_host(struct reader *reader, struct spoke_span value)
{
	if (reader->has_host || (value.len > 0 && !is_visible(value)))
		return BAD_REQUEST;
	reader->has_host = true;
	if (reader->request->host.data == NULL)
		reader->request->host = value;
	return SPOKEI_HTTP_WHOLE;
}

/* Reads a header that may occur only once. */
static int read_once(struct spoke_span value, struct spoke_span *ret_value)
{
	if (ret_value->data != NULL)
		return BAD_REQUEST;
	*ret_value = value;
	return SPOKEI_HTTP_WHOLE;
}

static int read_type(struct reader *reader)
{
	if (reader->has_type)
		return BAD_REQUEST;
	reader->has_type = true;
	return SPOKEI_HTTP_WHOLE;
}

/* "chunked" is the one coding. */
static int read_coding(struct reader *reader, struct spoke_span value)
{
	if (!spokei_span_is_any_case(value, "chunked"))
		return NO_CODINGS;
	if (reader->request->chunked)
		return BAD_REQUEST;
	reader->request->chunked = true;
	return SPOKEI_HTTP_WHOLE;
}

static int read_connection(struct reader *reader, struct spoke_span value)
{
	reader->has_connection_close |= spokei_http_list_has(value, "close");
	reader->has_keep_alive |= spokei_http_list_has(value, "keep-alive");
	reader->request->upgrades |= spokei_http_list_has(value, "upgrade");
	return SPOKEI_HTTP_WHOLE;
}

static int read_expectation(struct reader *reader, struct spoke_span value)
{
	if (!spokei_span_is_any_case(value, "100-continue"))
		return UNKNOWN_EXPECTATION;
	reader->request->expects = true;
	return SPOKEI_HTTP_WHOLE;
}

/* Splits the name and the colon off a line. White space in or after a name, as in a folded line,
 * makes the name invalid. */
static bool cut_name(struct spoke_span *line, struct spoke_span *ret_name)
{
	const unsigned char *text = line->data;
	size_t len = 0;

	while (len < line->len && classes[text[len]] & TOKEN)
		len++;
	if (len == 0 || len == line->len || text[len] != ':')
		return false;
	*ret_name = (struct spoke_span){ text, len };
	*line = (struct spoke_span){ text + len + 1, line->len - len - 1 };
	return true;
}

static int read_field(struct reader *reader, struct spoke_span line)
{
	struct spoke_span name;

	if (!cut_name(&line, &name) || !is_field_text(line))
		return BAD_REQUEST;
	line = spokei_span_trim(line);
	if (reader->each)
		reader->each(reader->arg, name, line);
	switch (name.len) {
	case 4:
		return spokei_span_is_any_case(name, "host") ? read_host(reader, line)
							     : SPOKEI_HTTP_WHOLE;
	case 6:
		if (spokei_span_is_any_case(name, "origin"))
			return read_once(line, &reader->request->origin);
		return spokei_span_is_any_case(name, "expect") ? read_expectation(reader, line)
							       : SPOKEI_HTTP_WHOLE;
	case 10:
		return spokei_span_is_any_case(name, "connection") ? read_connection(reader, line)
								   : SPOKEI_HTTP_WHOLE;
	case 12:
		return spokei_span_is_any_case(name, "content-type") ? read_type(reader)
								     : SPOKEI_HTTP_WHOLE;
	case 13:
		if (spokei_span_is_any_case(name, "authorization"))
			return read_once(line, &reader->request->authorization);
		return SPOKEI_HTTP_WHOLE;
	case 14:
		return spokei_span_is_any_case(name, "content-length") ? read_length(reader, line)
								       : SPOKEI_HTTP_WHOLE;
	case 17:
		return spokei_span_is_any_case(name, "transfer-encoding")
			       ? read_coding(reader, line)
			       : SPOKEI_HTTP_WHOLE;
	default:
		return SPOKEI_HTTP_WHOLE;
	}
}

/* Checks the head as a whole, at its empty line. */
static int end_head(struct reader *reader, size_t fields_at, size_t fields_end)
{
	struct spokei_http_request *request = reader->request;

	if (!reader->has_host && !reader->old)
		return BAD_REQUEST;
	/* With both, or from a client of HTTP/1.0, another program could see another end. */
	if (request->chunked && (reader->has_length || reader->old))
		return BAD_REQUEST;
	request->fields.data = reader->bytes + fields_at;
	request->fields.len = fields_end - fields_at;
	request->head_len = reader->at;
	request->old = reader->old;
	request->closes = reader->old ? !reader->has_keep_alive : reader->has_connection_close;
	request->expects &= !reader->old;
	return SPOKEI_HTTP_WHOLE;
}

int spokei_http_read_head(const void *bytes, size_t len, spokei_http_field_fn each, void *arg,
			  struct spokei_http_request *ret_request)
{
	struct reader reader = {
		.bytes = bytes, .len = len, .each = each, .arg = arg, .request = ret_request
	};
	struct spoke_span line;
	size_t fields_at;
	int status;

	*ret_request = (struct spokei_http_request){ .method = SPOKEI_HTTP_OTHER };
	status = read_request_line(&reader);
	fields_at = reader.at;
	while (status == SPOKEI_HTTP_WHOLE) {
		size_t line_at = reader.at;

		status = next_line(&reader, SPOKEI_HTTP_HEAD_MAX, HEAD_TOO_LONG, &line);
		if (status != SPOKEI_HTTP_WHOLE)
			return status;
		if (line.len == 0)
			return end_head(&reader, fields_at, line_at);
		status = read_field(&reader, line);
	}
	return status;
}

int spokei_http_read(const void *bytes, size_t len, size_t body_max,
		     struct spokei_http_request *ret_request)
{
	int status = spokei_http_read_head(bytes, len, NULL, NULL, ret_request);

	if (status != SPOKEI_HTTP_WHOLE)
		return status;
	if (ret_request->chunked)
		return NO_CODINGS;
	if (ret_request->body_len > body_max)
		return TOO_LARGE;
	ret_request->body.data = (const char *)bytes + ret_request->head_len;
	ret_request->body.len = ret_request->body_len;
	ret_request->len = ret_request->head_len + ret_request->body_len;
	return ret_request->len <= len ? SPOKEI_HTTP_WHOLE : SPOKEI_HTTP_MORE;
}

bool spokei_http_next_field(struct spoke_span *fields, struct spoke_span *ret_name,
			    struct spoke_span *ret_value)
{
	struct spoke_span line;

	if (!cut(fields, '\n', &line) || !cut(&line, ':', ret_name))
		return false;
	if (line.len > 0 && ((const char *)line.data)[line.len - 1] == '\r')
		line.len--;
	*ret_value = spokei_span_trim(line);
	return true;
}

unsigned spokei_http_field(const struct spokei_http_request *request, const char *name,
			   struct spoke_span *ret_value)
{
	struct spoke_span fields = request->fields;
	struct spoke_span found;
	struct spoke_span value;
	unsigned count = 0;

	while (spokei_http_next_field(&fields, &found, &value)) {
		if (!spokei_span_is_any_case(found, name))
			continue;
		if (count++ == 0)
			*ret_value = value;
	}
	return count;
}

bool spokei_http_next_item(struct spoke_span *list, struct spoke_span *ret_item)
{
	struct spoke_span item = *list;

	if (list->len == 0)
		return false;
	if (!cut(list, ',', &item))
		list->len = 0;
	*ret_item = spokei_span_trim(item);
	return true;
}

bool spokei_http_list_has(struct spoke_span list, const char *element)
{
	struct spoke_span item;

	while (spokei_http_next_item(&list, &item)) {
		if (spokei_span_is_any_case(item, element))
			return true;
	}
	return false;
}

/* --- chunks
 *
 * Scans and joins the chunks of a body. */

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
	return digits == len ||
	       (line[digits] == ';' && is_field_text(spokei_span(line + digits, len - digits)));
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
		    memchr(line, ':', line_end) == NULL ||
		    !is_field_text(spokei_span(line, line_end - 2)))
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

/* --- the end of a request
 *
 * Finds the end of a whole request without parsing it. */

/* Does the header line have this name? */
static bool is_field(struct spoke_span line, const char *name)
{
	const size_t len = strlen(name);
	const char *text = line.data;

	return line.len > len && text[len] == ':' &&
	       spokei_span_is_any_case(spokei_span(text, len), name);
}

/* Takes the length of the body from its line. Returns false if another line could tell the end. */
static bool note_length(struct spoke_span line, size_t *length)
{
	struct spoke_span name;
	struct spoke_span value;

	if (is_field(line, "content-length"))
		return spokei_http_next_field(&line, &name, &value) &&
		       spokei_http_length(value, length);
	return !is_field(line, "transfer-encoding") && !is_field(line, "expect");
}

size_t spokei_http_find_end(const void *bytes, size_t len)
{
	const char *text = bytes;
	const char *end;
	size_t at = 0;
	size_t length = 0;

	while ((end = len > at ? memchr(text + at, '\n', len - at) : NULL) != NULL) {
		struct spoke_span line = { text + at, (size_t)(end - text) - at + 1 };
		bool is_first = at == 0;

		at += line.len;
		switch (*(const char *)line.data) {
		case '\n':
			return 0;
		case '\r':
			if (!is_first)
				return length <= len - at ? at + length : 0;
			break;
		case 'c':
		case 'C':
		case 'e':
		case 'E':
		case 't':
		case 'T':
			if (!note_length(line, &length))
				return 0;
			break;
		default:
			break;
		}
	}
	return 0;
}
