/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an exception as an object of its class. The first field "message" becomes "detailMessage",
 * unless there is one; a cause that is null becomes the exception itself, which is how Java says
 * that there is none; a cause that is a map with a class becomes an exception, too.
 */
#include "transport/codec/hessian2/throwable.h"

#include "transport/codec/hessian2/heads.h"

/* Returns whether a field has this name. */
static bool has_field(const struct spokei_hessian2_class *class, const char *name)
{
	struct spoke_cursor pairs = spoke_cursor_bytes(class->pairs);
	size_t len = strlen(name);
	struct spoke_value key;
	struct spoke_span text;

	for (size_t i = 0; i < class->fields; i++) {
		if (spokei_hessian2_next_key(class, i, &pairs, &key) &&
		    spoke_value_str(key, &text) == 0 && text.len == len &&
		    memcmp(text.data, name, len) == 0)
			return true;
	}
	return false;
}

static bool is_cause(struct spoke_value key)
{
	struct spoke_span text;

	return spoke_value_str(key, &text) == 0 && text.len == 5 &&
	       memcmp(text.data, "cause", 5) == 0;
}

/* Writes an exception, and the chain of its causes. Each one lies inside the one before it, and the
 * writer bounds how deep. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_exception(struct spokei_hessian2_writer *writer,
			    struct spokei_hessian2_object *object)
{
	uint32_t number = writer->tables.containers;
	struct spokei_hessian2_object cause;
	struct spoke_value key;

	if (!spokei_hessian2_open(writer, writer->at))
		return;
	object->class.renamed = !has_field(&object->class, "detailMessage");
	spokei_hessian2_object_head(writer, &object->class);
	writer->at = object->class.pairs.data;
	for (size_t i = 0; i < object->class.fields && writer->put.error == 0; i++) {
		if (!spokei_hessian2_take(writer, &key))
			return;
		if (is_cause(key) && writer->at < writer->end && *writer->at == 0xc0) {
			writer->at++;
			spokei_hessian2_reference(writer, number);
		} else if (is_cause(key) && spokei_hessian2_find_object(writer, true, &cause)) {
			write_exception(writer, &cause);
		} else {
			spokei_hessian2_write_value(writer);
		}
	}
	writer->at = object->end;
	spokei_hessian2_close(writer);
}

void spokei_hessian2_write_throwable(struct spokei_hessian2_writer *writer)
{
	struct spokei_hessian2_object object;
	struct spoke_value class;
	struct spoke_span name;

	if (!spokei_hessian2_take(writer, &class))
		return;
	if (!spokei_plain_str(class, &name) || !spokei_hessian2_find_fields(writer, &object)) {
		spokei_hessian2_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
		return;
	}
	object.class.name = spokei_hessian2_name_of(name);
	write_exception(writer, &object);
}
