/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP response heads, and escapes text for HTML. */
#include "transport/http/response.h"

#include "timer/base.h"

#include <spoke/error.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_LEN 512u

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
add(struct spokei_buffer *out, const char *format, ...)
{
	char text[LINE_MAX_LEN];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(text))
		return SPOKE_ETOOLARGE;
	return spokei_buffer_append(out, text, (size_t)len);
}

static const char *reason_of(int status)
{
	switch (status) {
	case 100:
		return "Continue";
	case 202:
		return "Accepted";
	case 204:
		return "No Content";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case SPOKEI_HTTP_TIMEOUT:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 415:
		return "Unsupported Media Type";
	case 417:
		return "Expectation Failed";
	case 421:
		return "Misdirected Request";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 501:
		return "Not Implemented";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Bad Request";
	}
}

/* A page may load nothing but its own inline scripts and styles, and data from its own server. */
static int add_policy(struct spokei_buffer *out, const char *nonce)
{
	if (nonce == NULL)
		return add(out, "Content-Security-Policy: default-src 'none'; "
				"frame-ancestors 'none'\r\n");
	return add(out,
		   "Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; "
		   "style-src 'nonce-%s'; connect-src 'self'; img-src data:; base-uri 'none'; "
		   "form-action 'none'; frame-ancestors 'none'\r\n",
		   nonce, nonce);
}

int spokei_http_begin_head(struct spokei_buffer *out, int status)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\n";
	int error;

	if (status == 200)
		return spokei_buffer_append(out, ok, sizeof(ok) - 1);
	error = add(out, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
	if (error == 0 && status == 401)
		error = add(out, "WWW-Authenticate: Bearer\r\n");
	return error;
}

int spokei_http_response_head(struct spokei_buffer *out,
			      const struct spokei_http_response *response)
{
	int error = spokei_http_begin_head(out, response->status);

	if (error == 0)
		error = add(out, "Content-Type: %s\r\n", response->type);
	if (error == 0 && response->len != SPOKEI_HTTP_UNTIL_CLOSE)
		error = add(out, "Content-Length: %zu\r\n", response->len);
	if (error == 0 && response->allow != NULL)
		error = add(out, "Allow: %s\r\n", response->allow);
	if (error == 0 && response->more != NULL)
		error = spokei_buffer_append(out, response->more, strlen(response->more));
	if (error == 0)
		error = add_policy(out, response->nonce);
	if (error)
		return error;
	return add(out,
		   "Cache-Control: no-store\r\n"
		   "X-Content-Type-Options: nosniff\r\n"
		   "X-Frame-Options: DENY\r\n"
		   "Referrer-Policy: no-referrer\r\n"
		   "Cross-Origin-Opener-Policy: same-origin\r\n"
		   "Cross-Origin-Resource-Policy: %s\r\n"
		   "Connection: close\r\n\r\n",
		   response->foreign ? "cross-origin" : "same-origin");
}

const char *spokei_http_fault(int status)
{
	switch (status) {
	case SPOKEI_HTTP_TIMEOUT:
		return "The request did not arrive in time.";
	case 413:
		return "The body of a request is limited to 1,024 bytes.";
	case 414:
		return "The request line is limited to 2,048 bytes.";
	case 417:
		return "The only expectation that is supported is 100-continue.";
	case 431:
		return "The head of a request is limited to 8,192 bytes.";
	case 501:
		return "Transfer-Encoding is not supported; send a Content-Length.";
	case 505:
		return "Only HTTP/1.1 is supported.";
	default:
		return "This is not a valid HTTP/1.1 request.";
	}
}

void spokei_http_make_nonce(const struct spoke_env *env, char nonce[SPOKEI_HTTP_NONCE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char dice[(SPOKEI_HTTP_NONCE - 1) / 2];

	env->dice(env->ctx, dice, sizeof(dice));
	for (size_t i = 0; i < sizeof(dice); i++) {
		nonce[2 * i] = digits[dice[i] >> 4];
		nonce[2 * i + 1] = digits[dice[i] & 15];
	}
	nonce[SPOKEI_HTTP_NONCE - 1] = '\0';
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

int spokei_http_escape(struct spokei_buffer *out, const void *text, size_t len)
{
	const char *from = text;
	const char *end = from + len;
	int error = SPOKE_OK;

	for (const char *at = from; at < end && error == SPOKE_OK; at++) {
		const char *name = entity(*at);

		if (name == NULL)
			continue;
		error = spokei_buffer_append(out, from, (size_t)(at - from));
		if (error == SPOKE_OK)
			error = spokei_buffer_append(out, name, strlen(name));
		from = at + 1;
	}
	if (error)
		return error;
	return spokei_buffer_append(out, from, (size_t)(end - from));
}

/* --- Server-Sent Events
 *
 * Writes Server-Sent Events, field by field; an event is measured by the same code. */

#define NUMBER 11u /* bytes of a retry time, with the NUL */

/* Writes to `out`, or only counts if it is NULL. */
struct writer {
	char *out;
	size_t len;
};

static void put(struct writer *writer, const void *bytes, size_t len)
{
	if (writer->out != NULL && len > 0)
		memcpy(writer->out + writer->len, bytes, len);
	writer->len += len;
}

static void put_field(struct writer *writer, const char *name, const void *value, size_t len)
{
	put(writer, name, strlen(name));
	put(writer, ": ", 2);
	put(writer, value, len);
	put(writer, "\n", 1);
}

/* Writes one field for each line; after the last line end follows an empty line. */
static void put_data(struct writer *writer, struct spoke_span data)
{
	const char *line = data.data;
	const char *end = line + data.len;
	const char *at = line;

	for (; at < end; at++) {
		if (*at != '\n' && *at != '\r')
			continue;
		put_field(writer, "data", line, (size_t)(at - line));
		if (*at == '\r' && at + 1 < end && at[1] == '\n')
			at++;
		line = at + 1;
	}
	put_field(writer, "data", line, (size_t)(end - line));
}

static void put_event(struct writer *writer, const struct spokei_sse_event *event)
{
	char number[NUMBER];

	if (event->id.data != NULL)
		put_field(writer, "id", event->id.data, event->id.len);
	if (event->name.data != NULL)
		put_field(writer, "event", event->name.data, event->name.len);
	if (event->retry_ms > 0) {
		int len = snprintf(number, sizeof(number), "%" PRIu32, event->retry_ms);

		put_field(writer, "retry", number, (size_t)len);
	}
	if (event->data.data != NULL)
		put_data(writer, event->data);
	put(writer, "\n", 1);
}

static bool is_one_line(struct spoke_span text)
{
	return text.len == 0 || (memchr(text.data, '\n', text.len) == NULL &&
				 memchr(text.data, '\r', text.len) == NULL &&
				 memchr(text.data, '\0', text.len) == NULL);
}

int spokei_sse_size(const struct spokei_sse_event *event, size_t *ret_size)
{
	struct writer writer = { 0 };

	if (!is_one_line(event->id) || !is_one_line(event->name))
		return SPOKE_EINVAL;
	put_event(&writer, event);
	*ret_size = writer.len;
	return SPOKE_OK;
}

size_t spokei_sse_write(const struct spokei_sse_event *event, char *out)
{
	struct writer writer = { .out = out };

	SPOKE_ASSERT(is_one_line(event->id) && is_one_line(event->name));
	put_event(&writer, event);
	return writer.len;
}
