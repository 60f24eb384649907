/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP responses, and reads them for tools that see both sides of a connection. */
#include "transport/wire/http/http.h"

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/text/encoding.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"
#include "transport/http/response.h"
#include "transport/wire/http/parts.h"

#include <spoke/error.h>
#include <spoke/json.h>

#include <inttypes.h>
#include <stdio.h>

/* --- writing
 *
 * Writes HTTP responses. The body is printed behind room for the number of Content-Length, and
 * moved forward once its length is known. */

#define LENGTH_DIGITS 10u
#define NUMBER_MAX 24u
#define CONTINUE 100
#define NO_CONTENT 204
#define TOO_MANY 429
#define UNAVAILABLE 503

#define TEXT(text) (text), sizeof(text) - 1

static const char head_rest[] = "Content-Type: application/json\r\n"
				"Cache-Control: no-store\r\n"
				"X-Content-Type-Options: nosniff\r\n"
				"Content-Length: ";

/* A response that is being written; after the first error nothing more is appended. */
struct response {
	const struct spokei_wire_limits *limits;
	const struct spokei_message *message;
	struct spokei_buffer *out;
	unsigned fields; /* of the error, so far */
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

static void put_status(struct response *response, int status)
{
	if (response->error == SPOKE_OK)
		response->error = spokei_http_begin_head(response->out, status);
}

/* Writes the head of a status. Returns the place of the number after Content-Length. */
static size_t put_head(struct response *response, int status)
{
	size_t at;

	put_status(response, status);
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
static void put_field(struct response *response, const char *name)
{
	put_text(response, response->fields++ == 0 ? "{\"" : ",\"");
	put_text(response, name);
	put(response, TEXT("\":"));
}

static void put_string(struct response *response, const char *name, struct spoke_span text)
{
	if (text.len == 0)
		return;
	put_field(response, name);
	if (response->error == SPOKE_OK)
		response->error = spokei_json_append_text(response->out, text.data, text.len);
}

static void put_integer(struct response *response, const char *name, int32_t number)
{
	char text[NUMBER_MAX];

	put_field(response, name);
	(void)snprintf(text, sizeof(text), "%" PRId32, number);
	put_text(response, text);
}

static void put_boolean(struct response *response, const char *name, bool is)
{
	put_field(response, name);
	put_text(response, is ? "true" : "false");
}

static void put_object(struct response *response, const char *name, struct spoke_value value)
{
	if (value.len == 0)
		return;
	put_field(response, name);
	if (response->error == SPOKE_OK)
		response->error = spokei_json_append(response->out, value);
}

static struct spoke_span error_text(const struct spokei_message *message)
{
	return message->error_text.len > 0 ? message->error_text
					   : spokei_span_of(spoke_strerror(message->error));
}

static void put_error(struct response *response)
{
	const struct spokei_message *message = response->message;

#define PUT_FIELD(name, type, always, value) put_##type(response, name, value);
	SPOKEI_HTTP_ERROR_FIELDS(PUT_FIELD)
#undef PUT_FIELD
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
	put_status(response, NO_CONTENT);
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
	if (message->id & SPOKEI_HTTP_ID_CONTINUE) {
		put_status(&response, CONTINUE);
		put(&response, TEXT("\r\n"));
	} else if (message->id & SPOKEI_HTTP_ID_OPTIONS) {
		write_options(&response);
	} else {
		write_reply(&response);
	}
	if (response.error)
		spokei_buffer_truncate(out, before);
	return response.error;
}

/* --- reading
 *
 * Reads HTTP responses, for tools that see both sides of a connection. Bodies in JSON become
 * values, others texts or bytes. A response that ends with its connection has no end here, and
 * after status 101 the stream is of another protocol: both break the stream. */

#define FINAL 200 /* statuses below announce another response */
#define NOT_MODIFIED 304
#define ERROR 400 /* the first status of an error */
/* Attachments take as much as a request's head. */
#define REPLY_HEAD_MAX ((size_t)2 * SPOKEI_HTTP_HEAD_MAX)
#define STATUS_AT 9u /* bytes before the status */
#define LINE_MIN 12u /* "HTTP/1.1 200" */

struct reply {
	unsigned status;
	struct spoke_span fields; /* header lines */
	size_t head_len;
	size_t body_len;
	bool chunked;
	bool has_length;
};

/* Returns the bytes of the head with its empty line; 0: it is incomplete. */
static size_t find_head(struct spoke_span bytes)
{
	const char *text = bytes.data;
	size_t at = 0;
	const char *end;

	while ((end = bytes.len > at ? memchr(text + at, '\n', bytes.len - at) : NULL) != NULL) {
		size_t len = (size_t)(end - text) - at;

		if (at > 0 && (len == 0 || (len == 1 && text[at] == '\r')))
			return at + len + 1;
		at += len + 1;
	}
	return 0;
}

static bool read_status(const char *text, size_t len, unsigned *ret_status)
{
	*ret_status = 0;
	if (len < LINE_MIN || text[STATUS_AT - 1] != ' ' ||
	    (len > LINE_MIN && text[LINE_MIN] != ' ' && text[LINE_MIN] != '\r'))
		return false;
	for (size_t i = STATUS_AT; i < LINE_MIN; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*ret_status = *ret_status * 10 + (unsigned)(text[i] - '0');
	}
	return *ret_status >= 100;
}

/* Reads the lines that tell the end of the body. */
static bool read_lines(struct reply *reply)
{
	struct spoke_span rest = reply->fields;
	struct spoke_span name;
	struct spoke_span value;

	while (spokei_http_next_field(&rest, &name, &value)) {
		if (spokei_span_is_any_case(name, "content-length")) {
			if (reply->has_length || !spokei_http_length(value, &reply->body_len))
				return false;
			reply->has_length = true;
		} else if (spokei_span_is_any_case(name, "transfer-encoding")) {
			if (reply->chunked || !spokei_span_is_any_case(value, "chunked"))
				return false;
			reply->chunked = true;
		}
	}
	return !reply->chunked || !reply->has_length;
}

/* Returns 0, NEXT_MORE, or EPROTOCOL. */
static int read_head(struct spoke_span bytes, struct reply *ret)
{
	static const char begin[] = "HTTP/1.";
	const size_t begin_len = sizeof(begin) - 1;
	const char *text = bytes.data;
	struct spoke_span head = bytes;
	const char *line_end;

	*ret = (struct reply){ .status = 0 };
	if (memcmp(text, begin, bytes.len < begin_len ? bytes.len : begin_len) != 0)
		return SPOKE_EPROTOCOL;
	if (head.len > REPLY_HEAD_MAX)
		head.len = REPLY_HEAD_MAX;
	ret->head_len = find_head(head);
	if (ret->head_len == 0)
		return head.len < REPLY_HEAD_MAX ? SPOKEI_NEXT_MORE : SPOKE_EPROTOCOL;
	line_end = memchr(text, '\n', ret->head_len);
	ret->fields = spokei_span(line_end + 1, ret->head_len - (size_t)(line_end + 1 - text));
	if (!read_status(text, (size_t)(line_end - text), &ret->status) || !read_lines(ret))
		return SPOKE_EPROTOCOL;
	return 0;
}

static bool has_body(const struct reply *reply, bool to_head)
{
	return !to_head && reply->status >= FINAL && reply->status != NO_CONTENT &&
	       reply->status != NOT_MODIFIED;
}

static int replies_cut(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		       struct spoke_span bytes, size_t *ret_len)
{
	struct reply reply;
	int status;

	if (!cut->started) {
		status = read_head(bytes, &reply);
		if (status == SPOKEI_NEXT_MORE)
			*ret_len = 2 * bytes.len;
		if (status != 0)
			return status;
		*ret_len = reply.head_len;
		if (!has_body(&reply, cut->to_head))
			return 0;
		if (!reply.chunked && !reply.has_length)
			return SPOKE_EPROTOCOL;
		if (reply.body_len > spokei_http_body_max(limits, reply.head_len))
			return SPOKE_ETOOLARGE;
		cut->started = true;
		cut->http = (struct spokei_cut_http){
			.head_len = reply.head_len,
			.body_len = reply.body_len,
			.chunked = reply.chunked,
		};
	}
	return spokei_http_cut_body(limits, &cut->http, bytes, ret_len);
}

/* --- the message */

/* Packs the text as JSON, which overwrites it, or as it is. */
static int pack(const struct spokei_wire_limits *limits, char *text, size_t len, bool as_json,
		struct spokei_buffer *scratch)
{
	struct spoke_json_error wrong;
	struct spoke_builder builder;
	struct spoke_value value;
	size_t count;
	int error = SPOKE_OK;

	spokei_builder_init_buffer(&builder, scratch, &limits->value);
	if (as_json)
		error = spoke_json_read(text, len, &builder, &count, &wrong);
	else if (spokei_utf8_all((const unsigned char *)text, len))
		spoke_pack_str(&builder, text, len);
	else
		spoke_pack_bin(&builder, text, len);
	if (error == SPOKE_OK)
		error = spoke_builder_finish_value(&builder, &value);
	spokei_builder_drop(&builder);
	return error;
}

/* Appends the value of a body to the scratch: of its JSON, or else its text or bytes. */
static int read_body(const struct spokei_wire_limits *limits, struct spoke_span body, bool chunked,
		     struct spokei_buffer *scratch)
{
	const struct spoke_env *env = scratch->env;
	char *copy = spokei_alloc(env, 1, body.len);
	int error = SPOKE_ESYNTAX;

	if (copy == NULL)
		return SPOKE_ENOMEM;
	for (int as_json = 1; as_json >= 0 && error != SPOKE_OK && error != SPOKE_ENOMEM;
	     as_json--) {
		size_t len = body.len;

		if (chunked)
			len = spokei_http_chunks_join(body.data, copy);
		else
			memcpy(copy, body.data, len);
		error = pack(limits, copy, len, as_json, scratch);
	}
	spokei_free(env, copy, 1, body.len);
	return error;
}

/* Returns the text under a key of the body of an error; empty: there is none. */
static struct spoke_span text_at(struct spoke_value body, const char *key)
{
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (spoke_value_get(body, key, &value) == SPOKE_OK)
		(void)!spoke_value_str(value, &text);
	return text;
}

/* NOLINTNEXTLINE(readability-function-size): a row for each error */
static int error_named(struct spoke_span name)
{
#define RETURN_NUMBER(each, number, sentence)                                                      \
	if (spokei_span_is(name, #each))                                                           \
		return number;

	SPOKE_ERRORS(RETURN_NUMBER)
#undef RETURN_NUMBER
	return SPOKE_EREMOTE;
}

/* Takes an error apart: {"error":"EREMOTE","code":7,"text":"no",...}. */
static void read_error(struct spokei_message *message)
{
	struct spoke_value body = message->value;
	struct spoke_value value;

	message->error = error_named(text_at(body, "error"));
	message->error_text = text_at(body, "text");
	message->error_class = text_at(body, "class");
	if (spoke_value_get(body, "code", &value) == SPOKE_OK)
		(void)!spoke_value_i32(value, &message->error_code);
	if (message->error_text.len > 0 && spoke_value_get(body, "fields", &message->value))
		message->value = (struct spoke_value){ NULL, 0 };
}

static int read_attachments(const struct spokei_wire_limits *limits, struct spoke_span lines,
			    struct spokei_buffer *scratch)
{
	struct spokei_http_fields fields = { .timeout_ms = 0 };
	struct spoke_span rest = lines;
	struct spoke_span name;
	struct spoke_span value;

	while (spokei_http_next_field(&rest, &name, &value))
		spokei_http_fields_note(&fields, name, value);
	if (fields.attachments == 0)
		return SPOKE_OK;
	return spokei_http_fields_attach(limits, lines, fields.attachments, scratch);
}

static int replies_read(const struct spokei_wire_limits *limits, struct spoke_span frame,
			struct spokei_buffer *scratch, struct spokei_message *ret_message)
{
	struct spokei_http_chunks chunks = { 0, 0 };
	struct spoke_span body;
	struct reply reply;
	size_t attachments_len;
	size_t needed;
	int error = SPOKE_OK;

	spokei_message_clear(ret_message);
	if (read_head(frame, &reply) != 0)
		return SPOKE_EPROTOCOL;
	body = spokei_span_after(frame, reply.head_len);
	if (reply.chunked && body.len > 0 &&
	    spokei_http_chunks_scan(&chunks, body.data, body.len, body.len, &needed) !=
		    SPOKEI_HTTP_WHOLE)
		return SPOKE_EPROTOCOL;
	ret_message->kind = reply.status < FINAL ? SPOKEI_EVENT : SPOKEI_REPLY;
	ret_message->codec = SPOKEI_CODEC_MSGPACK;
	ret_message->id = reply.status;
	spokei_buffer_clear(scratch);
	error = read_attachments(limits, reply.fields, scratch);
	attachments_len = spokei_buffer_len(scratch);
	if (error == SPOKE_OK && body.len > 0)
		error = read_body(limits, body, reply.chunked, scratch);
	if (error)
		return error;
	ret_message->attachments = (struct spoke_value){ spokei_buffer_data(scratch),
							 attachments_len };
	ret_message->value.len = spokei_buffer_len(scratch) - attachments_len;
	if (ret_message->value.len > 0)
		ret_message->value.data = spokei_buffer_data(scratch) + attachments_len;
	if (reply.status >= ERROR)
		read_error(ret_message);
	return SPOKE_OK;
}

static int replies_next(struct spokei_reader *reader, struct spoke_span bytes,
			struct spokei_message *ret_message)
{
	int status = replies_cut(reader->limits, &reader->cut, bytes, &reader->len);

	if (status != 0)
		return status;
	reader->cut.started = false;
	bytes.len = reader->len;
	return spokei_wire_read(reader,
				replies_read(reader->limits, bytes, &reader->scratch, ret_message));
}

const struct spokei_wire spokei_wire_http_replies = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.next = replies_next,
};
