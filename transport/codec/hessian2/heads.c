/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the heads of containers: tags, lengths, types and definitions of classes. */
#include "transport/codec/hessian2/heads.h"

#define NAME_MAX 1024u /* bytes of a name that is made of a descriptor */

/* Appends the name that a descriptor contains. */
static void put_steered(struct spokei_hessian2_put *put, const struct spokei_hessian2_name *name)
{
	char text[NAME_MAX];

	if (name->len > NAME_MAX || name->dims > NAME_MAX - name->len) {
		spokei_hessian2_put_fail(put, SPOKE_EUNSUPPORTED);
		return;
	}
	memset(text, '[', name->dims);
	for (size_t i = 0; i < name->len; i++)
		text[name->dims + i] = (char)(name->text[i] == '/' ? '.' : name->text[i]);
	spokei_hessian2_put_string(put, text, name->dims + name->len);
}

static void put_name(struct spokei_hessian2_put *put, const struct spokei_hessian2_name *name)
{
	if (name->steered)
		put_steered(put, name);
	else /* the brackets stand before the text */
		spokei_hessian2_put_string(put, name->text - name->dims, name->dims + name->len);
}

/* Appends the name of a type, or its number from the second time on. */
static void put_type(struct spokei_hessian2_writer *writer, const struct spokei_hessian2_name *name)
{
	uint32_t number;

	if (spokei_hessian2_find_type(&writer->tables, name, &number))
		spokei_hessian2_put_int(&writer->put, (int32_t)number);
	else
		put_name(&writer->put, name);
}

void spokei_hessian2_list_head(struct spokei_hessian2_writer *writer,
			       const struct spokei_hessian2_name *name, size_t count)
{
	unsigned few = name ? 0x70 : 0x78;

	spokei_hessian2_put_byte(&writer->put, count <= 7 ? few + (unsigned)count
					       : name     ? 'V'
							  : 'X');
	if (name)
		put_type(writer, name);
	if (count > 7)
		spokei_hessian2_put_int(&writer->put, (int32_t)count);
}

void spokei_hessian2_map_head(struct spokei_hessian2_writer *writer,
			      const struct spokei_hessian2_name *name)
{
	spokei_hessian2_put_byte(&writer->put, name ? 'M' : 'H');
	if (name)
		put_type(writer, name);
}

void spokei_hessian2_map_end(struct spokei_hessian2_writer *writer)
{
	spokei_hessian2_put_byte(&writer->put, 'Z');
}

void spokei_hessian2_reference(struct spokei_hessian2_writer *writer, uint32_t number)
{
	spokei_hessian2_put_byte(&writer->put, 'Q');
	spokei_hessian2_put_int(&writer->put, (int32_t)number);
}

static bool is_message(struct spoke_span text)
{
	return text.len == 7 && memcmp(text.data, "message", 7) == 0;
}

static void put_definition(struct spokei_hessian2_put *put,
			   const struct spokei_hessian2_class *class)
{
	struct spoke_cursor pairs = spoke_cursor_bytes(class->pairs);
	bool rename = class->renamed;
	struct spoke_value key;
	struct spoke_span text;

	spokei_hessian2_put_byte(put, 'C');
	put_name(put, &class->name);
	spokei_hessian2_put_int(put, (int32_t) class->fields);
	for (size_t i = 0; i < class->fields; i++) {
		if (!spokei_hessian2_next_key(class, i, &pairs, &key) ||
		    !spokei_plain_str(key, &text)) {
			spokei_hessian2_put_fail(put, SPOKE_EUNSUPPORTED);
			return;
		}
		if (rename && is_message(text)) {
			spokei_hessian2_put_string(put, "detailMessage", 13);
			rename = false;
		} else {
			spokei_hessian2_put_string(put, text.data, text.len);
		}
	}
}

void spokei_hessian2_object_head(struct spokei_hessian2_writer *writer,
				 const struct spokei_hessian2_class *class)
{
	uint32_t number;

	if (!spokei_hessian2_find_class(&writer->tables, class, &number))
		put_definition(&writer->put, class);
	if (number <= 0xf) {
		spokei_hessian2_put_byte(&writer->put, 0x60 + number);
	} else {
		spokei_hessian2_put_byte(&writer->put, 'O');
		spokei_hessian2_put_int(&writer->put, (int32_t)number);
	}
}
