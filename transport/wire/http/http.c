/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP wire: cuts requests out of a stream, and reads them. */
#include "transport/wire/http/http.h"

#include "core/base/env.h"
#include "core/json/json.h"
#include "core/text/encoding.h"
#include "transport/codec/codec.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"
#include "transport/http/response.h"
#include "transport/wire/http/parts.h"

#include <stdarg.h>
#include <stdio.h>

/* --- reading
 *
 * Makes a message of an HTTP request: the path names service and method, the body or the query has
 * the arguments. A request that cannot become a call gets the status of its response here. */

#define OK 200
#define NO_CONTENT 204
#define BAD_REQUEST 400
#define FORBIDDEN 403
#define NOT_FOUND 404
#define NO_SUCH_METHOD 405
#define TOO_LARGE 413
#define WRONG_TYPE 415
#define MISDIRECTED 421
#define HEAD_TOO_LONG 431
#define UNKNOWN_CODING 501

#define FEW 1024u    /* bytes of a body that need no memory of their own */
#define WHY_MAX 160u /* bytes of an explanation */

/* A request that becomes a message. */
struct reading {
	const struct spokei_wire_limits *limits;
	struct spokei_http_request request;
	struct spokei_http_fields fields;
	struct spokei_buffer *scratch; /* texts and values of the message */
	struct spokei_message *message;
	const char *why; /* the reason of a status that is not OK */
};

/* A part of the scratch, which may still move. */
struct part {
	size_t at;
	size_t len;
};

static struct spoke_span part_of(const struct spokei_buffer *scratch, struct part part)
{
	const unsigned char *bytes = spokei_buffer_data(scratch);

	return spokei_span(bytes ? bytes + part.at : NULL, part.len);
}

static int refuse(struct reading *reading, int status, const char *why)
{
	reading->why = why;
	return status;
}

/* Refuses with a sentence that is made in the scratch; `plain`: the sentence without memory. */
SPOKEI_PRINTF(4, 5)
static int refuse_with(struct reading *reading, int status, const char *plain, const char *format,
		       ...)
{
	char *why = (char *)spokei_buffer_reserve(reading->scratch, WHY_MAX);
	va_list args;

	if (why == NULL)
		return refuse(reading, status, plain);
	va_start(args, format);
	(void)vsnprintf(why, WHY_MAX, format, args);
	va_end(args);
	return refuse(reading, status, why);
}

/* --- pages of browsers */

static const struct spokei_http_rules *rules_of(const struct reading *reading)
{
	static const struct spokei_http_rules none = { "", "" };

	return reading->limits->http ? reading->limits->http : &none;
}

/* Refuses pages of other sites. Browsers send their origin with each POST and OPTIONS, and new ones
 * their site with each GET. */
static int check_origin(struct reading *reading)
{
	const struct spokei_http_request *request = &reading->request;
	unsigned number;

	if (!spokei_guard_digits(request->host, rules_of(reading)->hosts))
		return refuse(reading, MISDIRECTED,
			      "Host: this name is not allowed; add it to the key http.hosts");
	if (request->origin.data == NULL) {
		if (spokei_guard_site(reading->fields.site))
			return OK;
		return refuse(reading, FORBIDDEN, "pages of other sites are not allowed");
	}
	if (spokei_guard_origin(request->origin, request->host))
		return OK;
	number = spokei_guard_listed(request->origin, rules_of(reading)->origins);
	if (number == 0 || number > SPOKEI_HTTP_ORIGINS_MAX)
		return refuse(reading, FORBIDDEN,
			      "Origin: pages of this origin are not allowed; add it to the key "
			      "http.origins");
	reading->message->id |= (uint64_t)number << SPOKEI_HTTP_ID_ORIGIN;
	return OK;
}

static int check_type(struct reading *reading)
{
	const char *why = spokei_http_fields_type(&reading->fields,
						  reading->request.origin.data != NULL);

	return why ? refuse(reading, WRONG_TYPE, why) : OK;
}

/* --- the path */

/* Decodes a name into the scratch. Returns OK, a status, or ENOMEM. */
static int decode(struct reading *reading, struct spoke_span name, struct part *ret_part)
{
	struct spokei_buffer *scratch = reading->scratch;
	unsigned char *room = spokei_buffer_reserve(scratch, name.len + 1);
	size_t len;

	if (room == NULL)
		return SPOKE_ENOMEM;
	if (spokei_percent_decode(name.data, name.len, (char *)room, &len) != SPOKEI_PERCENT_FINE)
		return refuse(reading, BAD_REQUEST, "the path has a bad percent sign");
	if (!spokei_utf8_all(room, len))
		return refuse(reading, BAD_REQUEST, "the path is not UTF-8");
	*ret_part = (struct part){ spokei_buffer_len(scratch), len };
	spokei_buffer_commit(scratch, len);
	return OK;
}

static void ask_provider(struct spokei_message *message, const char *method)
{
	message->service = spokei_span(SPOKEI_HTTP_ABOUT, sizeof(SPOKEI_HTTP_ABOUT) - 1);
	message->method = spokei_span(method, strlen(method));
}

/* Reads "/service/method"; "/service" asks for its methods. */
static int read_names(struct reading *reading, struct part *ret_service, struct part *ret_method)
{
	struct spokei_message *message = reading->message;
	struct spoke_span path = spokei_span_after(reading->request.path, 1);
	const char *slash = path.len ? memchr(path.data, '/', path.len) : NULL;
	int status;

	if (path.len == 0) {
		ask_provider(message, SPOKEI_HTTP_SERVICES);
		return OK;
	}
	if (spokei_span_is(path, "openapi.json")) {
		ask_provider(message, SPOKEI_HTTP_OPENAPI);
		return OK;
	}
	message->service = path;
	message->method = spokei_span("$methods", 8);
	if (slash) {
		message->service.len = (size_t)(slash - (const char *)path.data);
		if (message->service.len + 1 < path.len)
			message->method = spokei_span_after(path, message->service.len + 1);
	}
	if (message->service.len == 0 || message->service.len > reading->limits->name_max ||
	    message->method.len > reading->limits->name_max ||
	    memchr(message->method.data, '/', message->method.len))
		return refuse(reading, NOT_FOUND, "the path of a call is /SERVICE/METHOD");
	if (memchr(path.data, '%', path.len) == NULL)
		return OK;
	status = decode(reading, message->service, ret_service);
	return status == OK ? decode(reading, message->method, ret_method) : status;
}

/* --- arguments */

/* Makes the query the arguments. Returns OK, a status, or ENOMEM. */
static int read_query(struct reading *reading, struct part *ret_args)
{
	struct spoke_span args;
	int error;

	ret_args->at = spokei_buffer_len(reading->scratch);
	error = spokei_http_query_read(reading->limits, reading->request.query, reading->scratch,
				       &args, &reading->message->arg_count);
	if (error == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (error)
		return refuse(reading, BAD_REQUEST,
			      "the query has a bad percent sign, or a text that is not UTF-8");
	ret_args->len = args.len;
	return OK;
}

static int refuse_body(struct reading *reading, int error, const struct spoke_json_error *wrong)
{
	const struct spoke_value_limits *limits = &reading->limits->value;

	if (error != SPOKE_ETOOLARGE)
		return refuse_with(reading, BAD_REQUEST, "the body is not valid JSON",
				   "body, byte %zu: %s", wrong->at + 1, wrong->what);
	return refuse_with(reading, TOO_LARGE, "the body has too many values",
			   "body, byte %zu: more than %u values (values.max), or %zu bytes of them "
			   "(frame.max)",
			   wrong->at + 1, limits->items_max, limits->bytes_max);
}

/* Reads the `text` of a body, and overwrites it. */
static int read_json(struct reading *reading, char *text, size_t len, struct part *ret_args)
{
	struct spoke_json_error wrong = { 0, NULL };
	struct spoke_span args;
	int error = spokei_json_read_args(text, len, &reading->limits->value, reading->scratch,
					  &args, &reading->message->arg_count, &wrong);

	if (error == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (error)
		return refuse_body(reading, error, &wrong);
	/* No arguments lie nowhere. */
	if (args.len > 0)
		ret_args->at = (size_t)((const unsigned char *)args.data -
					spokei_buffer_data(reading->scratch));
	ret_args->len = args.len;
	return OK;
}

/* Returns a status, or ENOMEM. */
static int read_body(struct reading *reading, struct spoke_span body, struct part *ret_args)
{
	const struct spoke_env *env = reading->scratch->env;
	char few[FEW];
	char *text = body.len > sizeof(few) ? spokei_alloc(env, 1, body.len) : few;
	size_t len = body.len;
	int status;

	if (text == NULL)
		return SPOKE_ENOMEM;
	if (reading->request.chunked)
		len = spokei_http_chunks_join(body.data, text);
	else if (len > 0)
		memcpy(text, body.data, len);
	status = read_json(reading, text, len, ret_args);
	if (text != few)
		spokei_free(env, text, 1, body.len);
	return status;
}

/* Finds the body again. Returns OK, or TOO_LARGE and other faults. */
static int find_body(struct reading *reading, struct spoke_span frame, struct spoke_span *ret_body)
{
	const struct spokei_http_request *request = &reading->request;
	size_t max = spokei_http_body_max(reading->limits, request->head_len);
	struct spokei_http_chunks chunks = { 0, 0 };
	size_t needed;
	int status;

	*ret_body = spokei_span_after(frame, request->head_len);
	if (!request->chunked) {
		if (request->body_len > max)
			return TOO_LARGE;
		SPOKE_ASSERT(ret_body->len == request->body_len);
		return OK;
	}
	if (ret_body->len > max)
		ret_body->len = max;
	status = spokei_http_chunks_scan(&chunks, ret_body->data, ret_body->len, max, &needed);
	if (status == SPOKEI_HTTP_WHOLE)
		return OK;
	return status == SPOKEI_HTTP_MORE ? TOO_LARGE : status;
}

/* --- the message */

static int read_attachments(struct reading *reading, struct part *ret_part)
{
	struct spokei_buffer *scratch = reading->scratch;
	int error;

	ret_part->at = spokei_buffer_len(scratch);
	error = spokei_http_fields_attach(reading->limits, reading->request.fields,
					  reading->fields.attachments, scratch);
	if (error == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (error)
		return refuse(reading, BAD_REQUEST,
			      "attachments: each name once, and values in UTF-8 or with %XX");
	ret_part->len = spokei_buffer_len(scratch) - ret_part->at;
	return OK;
}

/* Reads the parts of a call. Returns OK, a status, or ENOMEM. */
static int read_call(struct reading *reading, struct spoke_span body)
{
	struct spokei_message *message = reading->message;
	struct spokei_buffer *scratch = reading->scratch;
	struct part service = { 0, 0 };
	struct part method = { 0, 0 };
	struct part args = { 0, 0 };
	struct part attachments = { 0, 0 };
	int status = read_names(reading, &service, &method);

	if (status == OK && message->safe_only)
		status = read_query(reading, &args);
	else if (status == OK)
		status = check_type(reading);
	if (status == OK && !message->safe_only)
		status = read_body(reading, body, &args);
	if (status == OK && reading->fields.attachments > 0)
		status = read_attachments(reading, &attachments);
	if (status != OK)
		return status;
	if (service.len > 0) {
		message->service = part_of(scratch, service);
		message->method = part_of(scratch, method);
	}
	message->args = part_of(scratch, args);
	message->attachments.data = (const unsigned char *)part_of(scratch, attachments).data;
	message->attachments.len = attachments.len;
	message->timeout_ms = reading->fields.timeout_ms;
	return OK;
}

/* Names the method of a request that is not a call, so that its provider can tell which methods of
 * HTTP it takes. Returns OK, also if the path names none, or ENOMEM. */
static int read_named(struct reading *reading)
{
	struct spokei_message *message = reading->message;
	struct part service = { 0, 0 };
	struct part method = { 0, 0 };
	int status = read_names(reading, &service, &method); /* of "*": as of "/" */

	if (status == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (status != OK) { /* they may be anything */
		message->service = message->method = spokei_span(NULL, 0);
	} else if (service.len > 0) {
		message->service = part_of(reading->scratch, service);
		message->method = part_of(reading->scratch, method);
	}
	message->safe_only = status == OK;
	return OK;
}

/* Sets the bits of the id that the head tells. */
static void note_head(const struct spokei_http_request *request, struct spokei_message *message)
{
	bool gets = request->method == SPOKEI_HTTP_GET || request->method == SPOKEI_HTTP_HEAD;

	message->safe_only = gets;
	message->last = request->closes;
	message->id |= (request->method == SPOKEI_HTTP_HEAD ? SPOKEI_HTTP_ID_HEAD : 0u) |
		       (request->old && !request->closes ? SPOKEI_HTTP_ID_OLD : 0u);
}

/* Explains a status of the framing, where the limits differ from those of a page. */
static int refuse_framing(struct reading *reading, int status)
{
	if (status == TOO_LARGE)
		return refuse_with(reading, status, "the request does not fit frame.max",
				   "the request does not fit frame.max, %zu bytes",
				   reading->limits->frame_max);
	if (status == UNKNOWN_CODING)
		return refuse(reading, status, "Transfer-Encoding: only chunked is supported");
	return refuse(reading, status, spokei_http_fault(status));
}

/* Reads a head and its body. Returns OK, NO_CONTENT (a question), a status, or ENOMEM. */
static int read_request(struct reading *reading, struct spoke_span frame)
{
	struct spokei_message *message = reading->message;
	struct spokei_http_request *request = &reading->request;
	struct spoke_span body = { NULL, 0 };
	size_t seen = frame.len < reading->limits->frame_max ? frame.len
							     : reading->limits->frame_max;
	int status = spokei_http_read_head(frame.data, seen, spokei_http_fields_note,
					   &reading->fields, request);

	if (status == SPOKEI_HTTP_MORE)
		status = HEAD_TOO_LONG;
	if (status == SPOKEI_HTTP_WHOLE) {
		note_head(request, message);
		status = find_body(reading, frame, &body);
	}
	if (status != OK) {
		message->last = true;
		return refuse_framing(reading, status);
	}
	status = spokei_http_fields_check(reading->limits, &reading->fields);
	if (status != OK)
		return refuse(reading, status, reading->fields.why);
	message->version = reading->fields.version;
	message->group = reading->fields.group;
	status = check_origin(reading);
	if (status != OK)
		return status;
	if (request->method != SPOKEI_HTTP_OPTIONS && request->method != SPOKEI_HTTP_OTHER)
		return read_call(reading, body);
	status = read_named(reading);
	if (status != OK)
		return status;
	if (request->method == SPOKEI_HTTP_OPTIONS)
		return NO_CONTENT;
	return refuse(reading, NO_SUCH_METHOD, "send a POST, or a GET to a safe method");
}

static void begin_message(struct spokei_message *message)
{
	spokei_message_clear(message);
	message->kind = SPOKEI_REQUEST;
	message->two_way = true;
	message->codec = SPOKEI_CODEC_MSGPACK;
}

/* Makes the message one that gets this status. */
static int end_refused(struct spokei_message *message, int status, const char *why)
{
	uint64_t id = message->id | (uint64_t)status << SPOKEI_HTTP_ID_STATUS;
	bool last = message->last;

	/* The provider looks whether the method takes others. */
	if (status != NO_SUCH_METHOD)
		begin_message(message);
	message->id = id | (last ? SPOKEI_HTTP_ID_LAST : 0u);
	message->last = last;
	message->error_text = spokei_span(why, strlen(why));
	return SPOKE_EBADREQUEST;
}

static int read_on(struct spokei_reader *reader, struct spoke_span frame,
		   struct spokei_message *ret_message)
{
	struct reading reading = {
		.limits = reader->limits,
		.scratch = &reader->scratch,
		.message = ret_message,
	};
	int status;

	begin_message(ret_message);
	if (frame.len == 0) {
		ret_message->kind = SPOKEI_QUESTION;
		ret_message->id = SPOKEI_HTTP_ID_CONTINUE;
		return SPOKE_OK;
	}
	spokei_buffer_clear(&reader->scratch);
	status = read_request(&reading, frame);
	if (status == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (status == NO_CONTENT) {
		ret_message->kind = SPOKEI_QUESTION;
		ret_message->id |= SPOKEI_HTTP_ID_OPTIONS;
	} else if (status != OK) {
		return end_refused(ret_message, status, reading.why);
	}
	ret_message->id |= ret_message->last ? SPOKEI_HTTP_ID_LAST : 0u;
	return SPOKE_OK;
}

static int read_off(struct spokei_message *ret_message)
{
	begin_message(ret_message);
	ret_message->last = true;
	return end_refused(ret_message, FORBIDDEN,
			   "HTTP is off at this address; its listen URL needs ?http=on");
}

/* --- the wire
 *
 * Cuts HTTP requests out of a stream. A request that is refused ends where the bytes end that have
 * arrived, because nothing after it has a meaning: the reader finds the same reason, and marks the
 * request as the last one. */

#define CUT_BODY 4
#define IDLE_NS UINT64_C(75000000000) /* HTTP has no heartbeats */
#define HEAD_STEP 512u /* bytes of a head that are waited for at first; then twice as many */

/* The first letters of GET, HEAD, POST, PUT, PATCH, OPTIONS, DELETE, CONNECT and TRACE. */
static bool http_knows(unsigned char first)
{
	static const char letters[] = "GHPODCT";

	return first != '\0' && strchr(letters, first) != NULL;
}

static int need(const struct spokei_wire_limits *limits, size_t have, size_t needed,
		size_t *ret_len)
{
	*ret_len = needed < limits->frame_max ? needed : limits->frame_max;
	if (have < *ret_len)
		return SPOKEI_NEXT_MORE;
	*ret_len = have;
	return 0;
}

/* Reads the head. Returns 0 if the request is refused, CUT_BODY if its body is next, NEXT_MORE, or
 * EPROTOCOL. */
static int cut_head(const struct spokei_wire_limits *limits, struct spokei_cut_http *state,
		    struct spoke_span bytes, size_t *ret_len)
{
	static const char response[] = "HTTP/";
	struct spokei_http_request request;
	size_t len;
	int status;

	if (bytes.len > limits->frame_max)
		bytes.len = limits->frame_max;
	/* Responses of a server are another wire. */
	if (bytes.len >= sizeof(response) - 1 &&
	    memcmp(bytes.data, response, sizeof(response) - 1) == 0)
		return SPOKE_EPROTOCOL;
	/* Most requests arrive as a whole; the reader parses their heads anyway. */
	len = spokei_http_find_end(bytes.data, bytes.len);
	if (len > 0) {
		*ret_len = len;
		return 0;
	}
	status = spokei_http_read_head(bytes.data, bytes.len, NULL, NULL, &request);
	if (status == SPOKEI_HTTP_MORE)
		return need(limits, bytes.len, bytes.len < HEAD_STEP ? HEAD_STEP : 2 * bytes.len,
			    ret_len);
	*ret_len = bytes.len;
	if (status != SPOKEI_HTTP_WHOLE)
		return 0;
	if (request.body_len > spokei_http_body_max(limits, request.head_len)) {
		*ret_len = request.head_len;
		return 0;
	}
	*state = (struct spokei_cut_http){
		.head_len = request.head_len,
		.body_len = request.body_len,
		.chunked = request.chunked,
		.expects = request.expects,
	};
	return CUT_BODY;
}

int spokei_http_cut_body(const struct spokei_wire_limits *limits, struct spokei_cut_http *state,
			 struct spoke_span bytes, size_t *ret_len)
{
	size_t head_len = state->head_len;
	size_t max = spokei_http_body_max(limits, head_len);
	struct spoke_span body = spokei_span_after(bytes, head_len);
	struct spokei_http_chunks chunks = { state->at, state->joined };
	size_t needed;
	int status;

	if (!state->chunked) {
		*ret_len = head_len + state->body_len;
		return bytes.len >= *ret_len ? 0 : SPOKEI_NEXT_MORE;
	}
	status = spokei_http_chunks_scan(&chunks, body.data, body.len < max ? body.len : max, max,
					 &needed);
	state->at = chunks.at;
	state->joined = chunks.len;
	if (status == SPOKEI_HTTP_MORE)
		return need(limits, bytes.len, head_len + needed, ret_len);
	*ret_len = status == SPOKEI_HTTP_WHOLE ? head_len + chunks.at : bytes.len;
	return 0;
}

static int http_cut(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		    struct spoke_span bytes, size_t *ret_len)
{
	int status;

	if (!cut->started) {
		status = cut_head(limits, &cut->http, bytes, ret_len);
		if (status == 0)
			cut->asked = false;
		if (status != CUT_BODY)
			return status;
		cut->started = true;
	}
	status = spokei_http_cut_body(limits, &cut->http, bytes, ret_len);
	if (status == SPOKEI_NEXT_MORE && cut->http.expects && !cut->asked) {
		/* The reader makes an empty frame a question for status 100. */
		cut->asked = true;
		*ret_len = 0;
		return 0;
	}
	if (status == 0)
		cut->asked = false;
	return status;
}

static int http_next(struct spokei_reader *reader, struct spoke_span bytes,
		     struct spokei_message *ret_message)
{
	int status = http_cut(reader->limits, &reader->cut, bytes, &reader->len);

	if (status != 0)
		return status;
	reader->cut.started = false;
	bytes.len = reader->len;
	return spokei_wire_read(reader, read_on(reader, bytes, ret_message));
}

static int off_next(struct spokei_reader *reader, struct spoke_span bytes,
		    struct spokei_message *ret_message)
{
	int status = http_cut(reader->limits, &reader->cut, bytes, &reader->len);

	if (status != 0)
		return status;
	reader->cut.started = false;
	return spokei_wire_read(reader, read_off(ret_message));
}

/* This side sends no requests. */
static int http_prefix(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	(void)limits;
	(void)message;
	(void)out;
	return SPOKE_EUNSUPPORTED;
}

const struct spokei_wire spokei_wire_http = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.idle_ns = IDLE_NS,
	.off = &spokei_wire_http_off,
	.knows = http_knows,
	.next = http_next,
	.prefix = http_prefix,
	.write = spokei_http_wire_write,
};

const struct spokei_wire spokei_wire_http_off = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.idle_ns = IDLE_NS,
	.knows = http_knows,
	.next = off_next,
	.prefix = http_prefix,
	.write = spokei_http_wire_write,
};
