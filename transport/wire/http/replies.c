/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HTTP responses, for tools that see both sides of a connection. Bodies in JSON become
 * values, others texts or bytes. A response that ends with its connection has no end here, and
 * after status 101 the stream is of another protocol: both break the stream.
 */
#include "transport/wire/http/http.h"
#include "transport/wire/http/parts.h"

#include "core/base/env.h"
#include "core/text/encoding.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/http/text.h"

#include <spoke/error.h>
#include <spoke/json.h>

#define FINAL 200 /* statuses below announce another response */
#define NO_CONTENT 204
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
		if (spokei_http_is_any_case(name, "content-length", 14)) {
			if (reply->has_length || !spokei_http_length(value, &reply->body_len))
				return false;
			reply->has_length = true;
		} else if (spokei_http_is_any_case(name, "transfer-encoding", 17)) {
			if (reply->chunked || !spokei_http_is_any_case(value, "chunked", 7))
				return false;
			reply->chunked = true;
		}
	}
	return !reply->chunked || !reply->has_length;
}

/* Returns 0, CUT_MORE, or EPROTOCOL. */
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
		return head.len < REPLY_HEAD_MAX ? SPOKEI_CUT_MORE : SPOKE_EPROTOCOL;
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
		if (status == SPOKEI_CUT_MORE)
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

static int replies_read(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			struct spoke_span frame, struct spokei_buffer *scratch,
			struct spokei_message *ret_message)
{
	struct spokei_http_chunks chunks = { 0, 0 };
	struct spoke_span body;
	struct reply reply;
	size_t attachments_len;
	size_t needed;
	int error = SPOKE_OK;

	(void)memo;
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

const struct spokei_wire spokei_wire_http_replies = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.cut = replies_cut,
	.read = replies_read,
};
