/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a request's arguments. Calls carry JVM descriptors; generic calls carry the names of
 * Java types, which are converted.
 */
#include "cluster/serve/parts.h"

#include "transport/wire/message.h"

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
