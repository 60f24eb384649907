/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HTTP responses. The body is printed behind room for the number of Content-Length, and
 * moved forward once its length is known.
 */
#include "transport/wire/http/parts.h"

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/text/encoding.h"
#include "transport/http/guard.h"
#include "transport/http/response.h"
#include "transport/wire/http/about.h"

#include <stdio.h>

#define LENGTH_DIGITS 10u
#define NUMBER_MAX 24u
#define TOO_MANY 429
#define UNAVAILABLE 503

#define TEXT(text) (text), sizeof(text) - 1

static const char head_ok[] = "HTTP/1.1 200 OK\r\n";
static const char head_rest[] = "Content-Type: application/json\r\n"
				"Cache-Control: no-store\r\n"
				"X-Content-Type-Options: nosniff\r\n"
				"Content-Length: ";

/* A response that is being written; after the first error nothing more is appended. */
struct response {
	const struct spokei_wire_limits *limits;
	const struct spokei_message *message;
	struct spokei_buffer *out;
	int error;
};

static void put(struct response *response, const void *bytes, size_t len)
{
	if (response->error == SPOKE_OK)
		response->error = spokei_buffer_append(response->out, bytes, len);
}

static void put_text(struct response *response, const char *text)
{
	put(response, text, strlen(text));
}

static int status_of(const struct spokei_message *message)
{
	int status = (int)(message->id >> SPOKEI_HTTP_ID_STATUS & 0x3ff);

	if (status != 0)
		return status;
	if (message->error == SPOKE_EFORBIDDEN)
		return message->error_code == SPOKE_FORBIDDEN_UNPROVEN ? 401 : 403;
	if (message->forbidden)
		return 403;
	if (message->error == SPOKE_EREFUSED && message->error_code == SPOKE_ELIMIT)
		return TOO_MANY;
	/* Arguments that a handler cannot read or use are the client's mistake. */
	if (message->error == SPOKE_EREMOTE)
		return spokei_error_of(message->error_code)->http_status_thrown;
	return spokei_error_of(message->error)->http_status;
}

/* Returns whether the handler may have run. */
static bool may_have_run(const struct spokei_message *message)
{
	return !message->forbidden && spokei_error_of(message->error)->may_have_run;
}

/* --- the head */

static void put_origin(struct response *response)
{
	const struct spokei_http_rules *rules = response->limits->http;
	unsigned number = response->message->id >> SPOKEI_HTTP_ID_ORIGIN & 0xff;
	struct spoke_span origin;

	if (number == 0 || rules == NULL)
		return;
	origin = spokei_guard_origin_of(rules->origins, number);
	put(response, TEXT("Access-Control-Allow-Origin: "));
	put(response, origin.data, origin.len);
	put(response, TEXT("\r\nVary: Origin\r\n"));
}

static void put_connection(struct response *response)
{
	if (response->message->id & SPOKEI_HTTP_ID_LAST || response->message->last)
		put(response, TEXT("Connection: close\r\n"));
	else if (response->message->id & SPOKEI_HTTP_ID_OLD)
		put(response, TEXT("Connection: keep-alive\r\n"));
}

/* Writes texts as they are, but for bytes that a header cannot have. */
static void put_attachment(struct response *response, struct spoke_span name,
			   struct spoke_span value)
{
	static const char kept[] = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~";
	char line[SPOKEI_HTTP_HEAD_MAX];
	struct spokei_text text = { .out = line, .size = sizeof(line) };

	spokei_text_put(&text, "Spoke-Attachment-");
	spokei_percent_put(&text, name.data, name.len, "!#$%&'*+-.^_`|~");
	spokei_text_put(&text, ": ");
	spokei_percent_put(&text, value.data, value.len, kept);
	spokei_text_put(&text, "\r\n");
	if (text.len > sizeof(line))
		response->error = SPOKE_ETOOLARGE;
	else
		put(response, line, text.len);
}

/* Attachments take at most as many bytes as the head of a request may have. */
static void put_attachments(struct response *response)
{
	size_t before = spokei_buffer_len(response->out);
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_cursor pairs;
	struct spoke_span name;
	struct spoke_span text;

	if (response->message->attachments.len == 0 ||
	    spoke_cursor_map(response->message->attachments, &pairs))
		return;
	while (response->error == SPOKE_OK && spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (spoke_value_str(key, &name) == 0 && spoke_value_str(value, &text) == 0 &&
		    spokei_http_is_token(name))
			put_attachment(response, name, text);
		if (spokei_buffer_len(response->out) - before > SPOKEI_HTTP_HEAD_MAX)
			response->error = SPOKE_ETOOLARGE;
	}
}

/* Returns whether the method may be marked as safe. */
static bool may_be_safe(const struct response *response)
{
	return response->message->error != SPOKE_EUNSUPPORTED;
}

/* Writes which methods of HTTP the method of the service takes. */
static void put_allow(struct response *response)
{
	if (may_be_safe(response))
		put(response, TEXT("Allow: POST, GET, HEAD, OPTIONS\r\n"));
	else
		put(response, TEXT("Allow: POST, OPTIONS\r\n"));
}

/* Writes the head of a status. Returns the place of the number after Content-Length. */
static size_t put_head(struct response *response, int status)
{
	char line[64];
	size_t at;

	if (status == 200) {
		put(response, TEXT(head_ok));
	} else {
		(void)snprintf(line, sizeof(line), "HTTP/1.1 %d %s\r\n", status,
			       spokei_http_reason(status));
		put_text(response, line);
	}
	if (status == 401)
		put(response, TEXT("WWW-Authenticate: Bearer\r\n"));
	if (status == 405)
		put_allow(response);
	if (status == UNAVAILABLE || status == TOO_MANY)
		put(response, TEXT("Retry-After: 1\r\n"));
	put_origin(response);
	put_connection(response);
	put_attachments(response);
	put(response, TEXT(head_rest));
	at = spokei_buffer_len(response->out);
	put(response, TEXT("          \r\n\r\n"));
	return at;
}

/* --- the body */

/* Begins a field of an error. */
static void put_field(struct response *response, enum spokei_http_error_field field)
{
#define FIELD_NAME(constant, name, type, always) name,
	static const char *const names[] = { SPOKEI_HTTP_ERROR_FIELDS(FIELD_NAME) };
#undef FIELD_NAME

	put_text(response, field == SPOKEI_HTTP_ERROR_ERROR ? "{\"" : ",\"");
	put_text(response, names[field]);
	put(response, TEXT("\":"));
}

static void put_string(struct response *response, struct spoke_span text)
{
	if (response->error == SPOKE_OK)
		response->error = spokei_json_append_text(response->out, text.data, text.len);
}

static void put_error(struct response *response)
{
	const struct spokei_message *message = response->message;
	struct spoke_span text = message->error_text;
	const char *name = spoke_errname(message->error);
	char number[NUMBER_MAX];

	if (text.len == 0) {
		text.data = spoke_strerror(message->error);
		text.len = strlen(text.data);
	}
	put_field(response, SPOKEI_HTTP_ERROR_ERROR);
	put_string(response, (struct spoke_span){ name, strlen(name) });
	put_field(response, SPOKEI_HTTP_ERROR_CODE);
	(void)snprintf(number, sizeof(number), "%d", (int)message->error_code);
	put_text(response, number);
	put_field(response, SPOKEI_HTTP_ERROR_TEXT);
	put_string(response, text);
	put_field(response, SPOKEI_HTTP_ERROR_WRITTEN);
	put_text(response, may_have_run(message) ? "true" : "false");
	if (message->error_class.len > 0) {
		put_field(response, SPOKEI_HTTP_ERROR_CLASS);
		put_string(response, message->error_class);
	}
	if (message->value.len > 0) {
		put_field(response, SPOKEI_HTTP_ERROR_MEMBERS);
		if (response->error == SPOKE_OK)
			response->error = spokei_json_append(response->out, message->value);
	}
	put(response, TEXT("}"));
}

/* Fills in the number, and closes the gap behind it. Returns where the body begins. */
static size_t put_length(struct spokei_buffer *out, size_t at, size_t len)
{
	char *room = (char *)spokei_buffer_data(out) + at;
	char number[NUMBER_MAX];
	size_t digits = (size_t)snprintf(number, sizeof(number), "%zu", len);
	size_t behind = spokei_buffer_len(out) - at - LENGTH_DIGITS;

	memcpy(room, number, digits);
	memmove(room + digits, room + LENGTH_DIGITS, behind);
	spokei_buffer_truncate(out, at + digits + behind);
	return at + digits + behind - len;
}

static void write_reply(struct response *response)
{
	const struct spokei_message *message = response->message;
	size_t length_at = put_head(response, message->error ? status_of(message) : 200);
	size_t body_at = spokei_buffer_len(response->out);
	size_t len;

	if (response->error == SPOKE_OK && message->error)
		put_error(response);
	else if (response->error == SPOKE_OK)
		response->error = spokei_json_append(response->out, message->value);
	put(response, TEXT("\n"));
	if (response->error)
		return;
	len = spokei_buffer_len(response->out) - body_at;
	if (len > response->limits->frame_max) {
		response->error = SPOKE_ETOOLARGE;
		return;
	}
	body_at = put_length(response->out, length_at, len);
	if (message->id & SPOKEI_HTTP_ID_HEAD)
		spokei_buffer_truncate(response->out, body_at);
}

/* Pages of listed origins may send any header, within limits of the browser. */
static void write_options(struct response *response)
{
	put(response, TEXT("HTTP/1.1 204 No Content\r\n"));
	put_allow(response);
	if (response->message->id >> SPOKEI_HTTP_ID_ORIGIN & 0xff) {
		put_text(response, may_be_safe(response)
					   ? "Access-Control-Allow-Methods: POST, GET\r\n"
					   : "Access-Control-Allow-Methods: POST\r\n");
		put(response, TEXT("Access-Control-Allow-Headers: *, Authorization\r\n"
				   "Access-Control-Max-Age: 600\r\n"));
	}
	put_origin(response);
	put_connection(response);
	put(response, TEXT("\r\n"));
}

int spokei_http_wire_write(const struct spokei_wire_limits *limits,
			   const struct spokei_message *message, struct spokei_buffer *out)
{
	struct response response = { .limits = limits, .message = message, .out = out };
	size_t before = spokei_buffer_len(out);

	if (message->kind != SPOKEI_REPLY)
		return SPOKE_EUNSUPPORTED;
	if (message->id & SPOKEI_HTTP_ID_CONTINUE)
		put(&response, TEXT("HTTP/1.1 100 Continue\r\n\r\n"));
	else if (message->id & SPOKEI_HTTP_ID_OPTIONS)
		write_options(&response);
	else
		write_reply(&response);
	if (response.error)
		spokei_buffer_truncate(out, before);
	return response.error;
}
