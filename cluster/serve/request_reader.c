/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a request that handlers and filters read: names, arguments and their types, the peer
 * and the time that is left. */
#include "cluster/serve/parts.h"

#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#define UNREAD_TEXT 256 /* bytes of a sentence about arguments */

struct spoke_cursor spoke_request_args(const struct spoke_request *request)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(request->message->args);

	cursor.left = request->message->arg_count;
	return cursor;
}

size_t spoke_request_arg_count(const struct spoke_request *request)
{
	return request->message->arg_count;
}

struct spoke_span spoke_request_service(const struct spoke_request *request)
{
	return request->message->service;
}

struct spoke_span spoke_request_version(const struct spoke_request *request)
{
	return request->message->version;
}

struct spoke_span spoke_request_group(const struct spoke_request *request)
{
	return request->message->group;
}

struct spoke_span spoke_request_method(const struct spoke_request *request)
{
	return request->message->method;
}

struct spoke_value spoke_request_attachments(const struct spoke_request *request)
{
	return request->message->attachments;
}

bool spoke_request_two_way(const struct spoke_request *request)
{
	return request->conn ? request->message->two_way : request->serving.two_way;
}

uint64_t spoke_request_left(const struct spoke_request *request)
{
	const struct spoke_env *env = request->engine->env;
	uint64_t now_ns;

	if (request->deadline_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = env->now(env->ctx);
	return now_ns < request->deadline_ns ? request->deadline_ns - now_ns : 0;
}

const struct spoke_address *spokei_request_address(const struct spoke_request *request)
{
	static const struct spoke_address unknown;

	if (request->conn)
		return &request->conn->peer;
	return request->sender ? &request->sender->peer : &unknown;
}

size_t spoke_request_peer(const struct spoke_request *request, char *text, size_t size)
{
	const struct spoke_env *env = request->engine->env;

	if (size == 0)
		return 0;
	env->net->print(env->ctx, spokei_request_address(request), text, size);
	return strlen(text);
}

size_t spoke_request_identity(const struct spoke_request *request, size_t index, char *text,
			      size_t size)
{
	const struct spokei_conn *conn = request->conn;

	return spokei_identity_print(request->engine->env,
				     conn ? conn->identity : request->identity,
				     spokei_request_address(request), index, text, size);
}

struct spoke_peer spoke_request_from(const struct spoke_request *request)
{
	if (request->conn)
		return (struct spoke_peer){ request->conn->handle };
	return (struct spoke_peer){ request->sender ? request->sender->handle : 0 };
}

bool spoke_request_abandoned(const struct spoke_request *request)
{
	return !spokei_request_is_remembered(request) && spokei_request_is_gone(request);
}

bool spokei_request_is_known(const struct spoke_request *request)
{
	return spokei_identity_is_known(request->conn ? request->conn->identity
						      : request->identity);
}

/* --- arguments that go into variables */

void spoke_reply_unread(struct spoke_request *request, const struct spoke_reader *reader)
{
	char text[UNREAD_TEXT];

	(void)spoke_reader_why(reader, text, sizeof(text));
	spoke_reply_error(request, reader->error, "%s", text);
}

struct spoke_reader spoke_request_reader(const struct spoke_request *request)
{
	return spoke_reader_values(spoke_request_args(request), "argument");
}

int spoke_request_read(struct spoke_request *request, const struct spoke_into *into, size_t count)
{
	struct spoke_reader reader = spoke_request_reader(request);
	int error = spoke_read(&reader, into, count);

	if (error)
		spoke_reply_unread(request, &reader);
	return error;
}

/* --- types of the arguments
 *
 * Calls carry JVM descriptors; generic calls carry the names of Java types, which are converted.
 */

/* A text that is cut at the end of its room; `len` counts the whole text. */
struct sink {
	char *text;
	size_t size;
	size_t len;
};

static void add_char(struct sink *sink, char letter)
{
	if (sink->len + 1 < sink->size)
		sink->text[sink->len] = letter;
	sink->len++;
}

/* Adds a text with slashes in place of dots. */
static void add_path(struct sink *sink, struct spoke_span name)
{
	const char *from = name.data;

	for (size_t i = 0; i < name.len; i++)
		add_char(sink, from[i] == '.' ? '/' : from[i]);
}

/* Returns the letter of a primitive type, or 0. */
static char primitive(struct spoke_span name)
{
	static const struct {
		const char *name;
		char letter;
	} rows[] = {
		{ "boolean", 'Z' }, { "byte", 'B' }, { "char", 'C' },  { "short", 'S' },
		{ "int", 'I' },     { "long", 'J' }, { "float", 'F' }, { "double", 'D' },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (spokei_span_is(name, rows[i].name))
			return rows[i].letter;
	return 0;
}

/* Adds the descriptor of a type, e.g. of "int", "it.Person[]" or "[Lit.Person;". */
static void add_type(struct sink *sink, struct spoke_span name)
{
	const char *text = name.data;

	while (name.len > 2 && text[name.len - 2] == '[' && text[name.len - 1] == ']') {
		add_char(sink, '[');
		name.len -= 2;
	}
	if (primitive(name)) {
		add_char(sink, primitive(name));
	} else if (name.len > 0 && text[0] == '[') {
		add_path(sink, name);
	} else {
		add_char(sink, 'L');
		add_path(sink, name);
		add_char(sink, ';');
	}
}

size_t spoke_request_types(const struct spoke_request *request, char *text, size_t size)
{
	const struct spokei_message *message = request->message;
	struct sink sink = { text, size, 0 };
	struct spoke_cursor names;
	struct spoke_value value;
	struct spoke_span name;
	const char *types = message->types.data;

	for (size_t i = 0; i < message->types.len; i++)
		add_char(&sink, types[i]);
	if (spoke_cursor_array(message->type_names, &names) == SPOKE_OK)
		while (spoke_cursor_next(&names, &value) && spoke_value_str(value, &name) == 0)
			add_type(&sink, name);
	if (size > 0)
		text[sink.len < size ? sink.len : size - 1] = '\0';
	return sink.len;
}
