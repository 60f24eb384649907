/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes values as Hessian 2, in the forms that Java's writer chooses. Recursion is bounded by
 * SPOKEI_HESSIAN_DEPTH. Exts that are not of the codec's forms cannot be expressed.
 */
#include "transport/codec/hessian2/writer.h"

#include "core/value/java.h"
#include "transport/codec/hessian2/put.h"

#include <string.h>

/* --- tables
 *
 * Finds types, classes and containers that were already written. Types and classes are searched
 * from the last one back, because the elements of a list tend to have the same class. The sum of
 * all comparisons is bounded by the length of the values. */

/* The last pair of a map tells whether it is an object, so a value is passed once for each map
 * around it. This many times the length of all values may be passed, and as many bytes in any case.
 */
#define PASSES 32u
#define PASSES_MIN ((size_t)32 << 20)

#define KEY_PRICE 8u /* of a comparison of two keys, in addition to their bytes */

/* --- names */

struct spokei_hessian_name spokei_hessian_name_of(struct spoke_span text)
{
	struct spokei_hessian_name name = { text.data, text.len, 0, false };

	while (name.len > 0 && *name.text == '[') {
		name.dims++;
		name.text++;
		name.len--;
	}
	return name;
}

static char letter(const struct spokei_hessian_name *name, size_t i)
{
	return name->declared && name->text[i] == '/' ? '.' : name->text[i];
}

/* Pays for a comparison. Returns false if there have been too many. */
static bool pay(struct spokei_hessian_tables *tables, size_t price)
{
	if (price > tables->compares) {
		tables->compares = 0;
		return false;
	}
	tables->compares -= price;
	return true;
}

static bool same_letters(const struct spokei_hessian_name *a, const struct spokei_hessian_name *b)
{
	for (size_t i = 0; i < a->len; i++)
		if (letter(a, i) != letter(b, i))
			return false;
	return true;
}

/* Compares two names; memcmp() counts as an eighth of its bytes. */
static bool same_name(struct spokei_hessian_tables *tables, const struct spokei_hessian_name *a,
		      const struct spokei_hessian_name *b)
{
	bool alike = a->declared == b->declared;

	if (a->len != b->len || a->dims != b->dims)
		return false;
	if (a->len == 0 || (alike && a->text == b->text))
		return true;
	if (!pay(tables, alike ? 1 + a->len / 8 : a->len))
		return false;
	return alike ? memcmp(a->text, b->text, a->len) == 0 : same_letters(a, b);
}

/* --- types and classes */

/* Returns the first number that is remembered. */
static uint32_t first_of(uint32_t count, uint32_t max)
{
	return count > max ? count - max : 0;
}

bool spokei_hessian_find_type(struct spokei_hessian_tables *tables,
			      const struct spokei_hessian_name *name, uint32_t *ret_number)
{
	uint32_t first = first_of(tables->types, SPOKEI_HESSIAN_TYPES);

	for (*ret_number = tables->types; *ret_number > first;) {
		--*ret_number;
		if (same_name(tables, &tables->type[*ret_number % SPOKEI_HESSIAN_TYPES], name))
			return true;
	}
	*ret_number = tables->types++;
	tables->type[*ret_number % SPOKEI_HESSIAN_TYPES] = *name;
	return false;
}

bool spokei_hessian_next_key(const struct spokei_hessian_class *class, size_t i,
			     struct spoke_cursor *pairs, struct spoke_value *ret)
{
	struct spoke_cursor key;
	struct spoke_value value;

	if (class->fields > SPOKEI_HESSIAN_KEYS)
		return spoke_cursor_next_pair(pairs, ret, &value);
	key = (struct spoke_cursor){ class->key[i], pairs->end, 1 };
	return spoke_cursor_next(&key, ret);
}

/* Compares two keys and moves on. The price includes the pairs that the search passes. */
static bool same_key(struct spokei_hessian_tables *tables, size_t i,
		     const struct spokei_hessian_class *a, struct spoke_cursor *pairs_a,
		     const struct spokei_hessian_class *b, struct spoke_cursor *pairs_b)
{
	const unsigned char *at_a = pairs_a->at;
	const unsigned char *at_b = pairs_b->at;
	struct spoke_value key_a;
	struct spoke_value key_b;

	return spokei_hessian_next_key(a, i, pairs_a, &key_a) &&
	       spokei_hessian_next_key(b, i, pairs_b, &key_b) &&
	       pay(tables, KEY_PRICE + key_a.len + (size_t)(pairs_a->at - at_a) +
				   (size_t)(pairs_b->at - at_b)) &&
	       spoke_value_equal(key_a, key_b);
}

static bool same_fields(struct spokei_hessian_tables *tables, const struct spokei_hessian_class *a,
			const struct spokei_hessian_class *b)
{
	struct spoke_cursor pairs_a = spoke_cursor_bytes(a->pairs);
	struct spoke_cursor pairs_b = spoke_cursor_bytes(b->pairs);

	for (size_t i = 0; i < a->fields; i++)
		if (!same_key(tables, i, a, &pairs_a, b, &pairs_b))
			return false;
	return true;
}

bool spokei_hessian_find_class(struct spokei_hessian_tables *tables,
			       const struct spokei_hessian_class *class, uint32_t *ret_number)
{
	uint32_t first = first_of(tables->classes, SPOKEI_HESSIAN_CLASSES);

	for (*ret_number = tables->classes; *ret_number > first;) {
		const struct spokei_hessian_class *known;

		--*ret_number;
		known = &tables->class[*ret_number % SPOKEI_HESSIAN_CLASSES];
		if (known->fields == class->fields && known->renamed == class->renamed &&
		    same_name(tables, &known->name, &class->name) &&
		    same_fields(tables, known, class))
			return true;
	}
	*ret_number = tables->classes++;
	tables->class[*ret_number % SPOKEI_HESSIAN_CLASSES] = *class;
	return false;
}

/* --- containers */

bool spokei_hessian_is_target(const struct spokei_hessian_tables *tables, uint64_t distance,
			      struct spoke_span copy, const unsigned char *end)
{
	const unsigned char *value;

	if (distance == 0 || distance > tables->containers || distance > SPOKEI_HESSIAN_RECENT)
		return false;
	value = tables->recent[(tables->containers - distance) % SPOKEI_HESSIAN_RECENT];
	return value != NULL && copy.len <= (size_t)(end - value) &&
	       memcmp(value, copy.data, copy.len) == 0;
}

/* --- heads
 *
 * Writes the heads of containers: tags, lengths, types and definitions of classes. */

#define NAME_MAX 1024u /* bytes of a name that is made of a descriptor */

/* Appends the name that a descriptor contains. */
static void put_declared(struct spokei_hessian_put *put, const struct spokei_hessian_name *name)
{
	char text[NAME_MAX];

	if (name->len > NAME_MAX || name->dims > NAME_MAX - name->len) {
		spokei_hessian_put_fail(put, SPOKE_EUNSUPPORTED);
		return;
	}
	memset(text, '[', name->dims);
	for (size_t i = 0; i < name->len; i++)
		text[name->dims + i] = (char)(name->text[i] == '/' ? '.' : name->text[i]);
	spokei_hessian_put_string(put, text, name->dims + name->len);
}

static void put_name(struct spokei_hessian_put *put, const struct spokei_hessian_name *name)
{
	if (name->declared)
		put_declared(put, name);
	else /* the brackets stand before the text */
		spokei_hessian_put_string(put, name->text - name->dims, name->dims + name->len);
}

/* Appends the name of a type, or its number from the second time on. */
static void put_type(struct spokei_hessian_writer *writer, const struct spokei_hessian_name *name)
{
	uint32_t number;

	if (spokei_hessian_find_type(&writer->tables, name, &number))
		spokei_hessian_put_int(&writer->put, (int32_t)number);
	else
		put_name(&writer->put, name);
}

void spokei_hessian_list_head(struct spokei_hessian_writer *writer,
			      const struct spokei_hessian_name *name, size_t count)
{
	unsigned few = name ? 0x70 : 0x78;

	spokei_hessian_put_byte(&writer->put, count <= 7 ? few + (unsigned)count
					      : name     ? 'V'
							 : 'X');
	if (name)
		put_type(writer, name);
	if (count > 7)
		spokei_hessian_put_int(&writer->put, (int32_t)count);
}

static void map_head(struct spokei_hessian_writer *writer, const struct spokei_hessian_name *name)
{
	spokei_hessian_put_byte(&writer->put, name ? 'M' : 'H');
	if (name)
		put_type(writer, name);
}

static void map_end(struct spokei_hessian_writer *writer)
{
	spokei_hessian_put_byte(&writer->put, 'Z');
}

void spokei_hessian_reference(struct spokei_hessian_writer *writer, uint32_t number)
{
	spokei_hessian_put_byte(&writer->put, 'Q');
	spokei_hessian_put_int(&writer->put, (int32_t)number);
}

static bool is_message(struct spoke_span text)
{
	return text.len == 7 && memcmp(text.data, "message", 7) == 0;
}

static void put_definition(struct spokei_hessian_put *put, const struct spokei_hessian_class *class)
{
	struct spoke_cursor pairs = spoke_cursor_bytes(class->pairs);
	bool rename = class->renamed;
	struct spoke_value key;
	struct spoke_span text;

	spokei_hessian_put_byte(put, 'C');
	put_name(put, &class->name);
	spokei_hessian_put_int(put, (int32_t) class->fields);
	for (size_t i = 0; i < class->fields; i++) {
		if (!spokei_hessian_next_key(class, i, &pairs, &key) ||
		    !spokei_plain_str(key, &text)) {
			spokei_hessian_put_fail(put, SPOKE_EUNSUPPORTED);
			return;
		}
		if (rename && is_message(text)) {
			spokei_hessian_put_string(put, "detailMessage", 13);
			rename = false;
		} else {
			spokei_hessian_put_string(put, text.data, text.len);
		}
	}
}

void spokei_hessian_object_head(struct spokei_hessian_writer *writer,
				const struct spokei_hessian_class *class)
{
	uint32_t number;

	if (!spokei_hessian_find_class(&writer->tables, class, &number))
		put_definition(&writer->put, class);
	if (number <= 0xf) {
		spokei_hessian_put_byte(&writer->put, 0x60 + number);
	} else {
		spokei_hessian_put_byte(&writer->put, 'O');
		spokei_hessian_put_int(&writer->put, (int32_t)number);
	}
}

/* --- objects
 *
 * Finds the fields and the class of a map that is an object. Values inside the map are passed
 * over, not looked at. */

/* Passes a value of a map, and counts the bytes of a container. Each map that lies in another one
 * is passed once for each, so the sum is bounded: see PASSES. */
static bool pass_value(struct spokei_hessian_writer *writer, struct spoke_value value)
{
	if (spokei_shapes[*value.data].each == 0)
		return true;
	if (value.len > writer->passes) {
		spokei_hessian_put_fail(&writer->put, SPOKE_EDEPTH);
		return false;
	}
	writer->passes -= value.len;
	return true;
}

/* Reads the pairs of a map. Returns false unless all keys are str and all pairs are there. Writes
 * the last pair, if there is one. */
static bool read_fields(struct spokei_hessian_writer *writer, struct spoke_cursor *pairs,
			struct spokei_hessian_class *class, struct spoke_value *ret_key,
			struct spoke_value *ret_value)
{
	size_t count = (size_t)pairs->left / 2;
	struct spoke_span name;
	size_t i = 0;

	class->pairs = spoke_cursor_rest(pairs);
	for (; spoke_cursor_next_pair(pairs, ret_key, ret_value); i++) {
		if (!spokei_plain_str(*ret_key, &name) || !pass_value(writer, *ret_value))
			return false;
		spokei_hessian_keep_key(class, i, ret_key->data);
	}
	return i == count;
}

bool spokei_hessian_find_fields(struct spokei_hessian_writer *writer,
				struct spokei_hessian_object *ret)
{
	struct spoke_cursor pairs;
	struct spoke_value value;
	struct spoke_value key;

	if (spokei_hessian_type(writer) != SPOKE_VALUE_MAP ||
	    spoke_cursor_map(spokei_hessian_peek(writer), &pairs) != 0)
		return false;
	ret->class.renamed = false;
	ret->class.fields = (size_t)pairs.left / 2;
	if (!read_fields(writer, &pairs, &ret->class, &key, &value))
		return false;
	ret->end = pairs.at;
	return true;
}

/* Returns whether a generic call has objects of this class, as Java does for numbers, dates and
 * times. Of other classes it has maps with the field "class". */
static bool stays_object(struct spoke_span class)
{
	static const char *const packages[] = { "java.", "com.alibaba.com.caucho.hessian." };

	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(packages[i]);

		if (class.len > len && memcmp(class.data, packages[i], len) == 0)
			return true;
	}
	return false;
}

bool spokei_hessian_find_object(struct spokei_hessian_writer *writer, bool any,
				struct spokei_hessian_object *ret)
{
	enum spokei_objects objects = any ? SPOKEI_OBJECTS_ANY : SPOKEI_OBJECTS_NAMED;
	struct spoke_value map = spokei_hessian_peek(writer);
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	if (spokei_hessian_type(writer) != SPOKE_VALUE_MAP ||
	    !spokei_may_be_object(objects, *map.data) || spoke_cursor_map(map, &pairs) != 0 ||
	    pairs.left == 0)
		return false;
	ret->class.renamed = false;
	ret->class.fields = (size_t)pairs.left / 2 - 1;
	if (!read_fields(writer, &pairs, &ret->class, &key, &value) ||
	    !spokei_is_object(objects, map, key, value, &name) ||
	    (writer->generic && !any && !stays_object(name)))
		return false;
	ret->class.name = spokei_hessian_name_of(name);
	ret->end = pairs.at;
	return true;
}

/* --- values */

/* --- reading */

void spokei_hessian_writer_start(struct spokei_hessian_writer *writer, struct spoke_span values,
				 struct spokei_buffer *out)
{
	spokei_hessian_put_start(&writer->put, out, values.len + values.len / 8 + 16);
	writer->at = values.data;
	writer->end = writer->at ? writer->at + values.len : NULL;
	writer->generic = false;
	writer->passes = PASSES_MIN + PASSES * values.len;
	writer->depth = 0;
	spokei_hessian_tables_init(&writer->tables, values.len);
}

size_t spokei_hessian_open_next(struct spokei_hessian_writer *writer)
{
	struct spoke_value value = spokei_hessian_peek(writer);
	struct spoke_cursor cursor;

	if ((spokei_hessian_type(writer) == SPOKE_VALUE_ARRAY
		     ? spoke_cursor_array(value, &cursor)
		     : spoke_cursor_map(value, &cursor)) != 0) {
		spokei_hessian_refuse(writer);
		return 0;
	}
	writer->at = cursor.at;
	return (size_t)cursor.left;
}

/* --- containers */

/* Enters a container or ext; the number is that of a container. */
static bool enter(struct spokei_hessian_writer *writer, uint32_t number)
{
	if (writer->depth == SPOKEI_HESSIAN_DEPTH) {
		spokei_hessian_refuse(writer);
		return false;
	}
	writer->open[writer->depth++] = number;
	return true;
}

bool spokei_hessian_open(struct spokei_hessian_writer *writer, const unsigned char *value)
{
	return enter(writer, spokei_hessian_begin(&writer->tables, value));
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_items(struct spokei_hessian_writer *writer, size_t count)
{
	for (; count > 0 && writer->put.error == 0; count--)
		spokei_hessian_write_value(writer);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_container(struct spokei_hessian_writer *writer,
				    const unsigned char *value,
				    const struct spokei_hessian_name *name)
{
	bool list = spokei_hessian_type(writer) == SPOKE_VALUE_ARRAY;
	size_t count = spokei_hessian_open_next(writer);

	if (!spokei_hessian_open(writer, value))
		return;
	if (list)
		spokei_hessian_list_head(writer, name, count);
	else
		map_head(writer, name);
	write_items(writer, count);
	if (!list)
		map_end(writer);
	spokei_hessian_close(writer);
}

/* --- objects */

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_object(struct spokei_hessian_writer *writer,
				 const struct spokei_hessian_object *object)
{
	struct spoke_value key;

	if (!spokei_hessian_open(writer, writer->at))
		return;
	spokei_hessian_object_head(writer, &object->class);
	writer->at = object->class.pairs.data;
	for (size_t i = 0; i < object->class.fields && writer->put.error == 0; i++)
		if (spokei_hessian_take(writer, &key))
			spokei_hessian_write_value(writer);
	writer->at = object->end;
	spokei_hessian_close(writer);
}

/* --- exts */

/* Writes a timestamp of msgpack: 32 bits of seconds, 30 bits of nanoseconds and 34 of seconds, or
 * 32 bits of nanoseconds and 64 of seconds. */
static void write_date(struct spokei_hessian_writer *writer, struct spoke_span time)
{
	const unsigned char *at = time.data;
	uint64_t number = time.len == 4 || time.len == 8 ? spokei_number(at, (unsigned)time.len)
							 : 0;
	uint64_t nanos = time.len == 8 ? number >> 34 : 0;
	int64_t seconds = (int64_t)(number & UINT64_C(0x3ffffffff));
	int64_t part;
	int64_t ms;

	if (time.len == 12) {
		nanos = spokei_number(at, 4);
		number = spokei_number(at + 4, 8);
		memcpy(&seconds, &number, sizeof(seconds));
	} else if (time.len != 4 && time.len != 8) {
		spokei_hessian_refuse(writer);
		return;
	}
	part = (int64_t)(nanos / 1000000);
	if (seconds < 0) { /* rounding down is the same, and the sum stays in range */
		seconds++;
		part -= 1000;
	}
	if (nanos > 999999999 || __builtin_mul_overflow(seconds, 1000, &ms) ||
	    __builtin_add_overflow(ms, part, &ms))
		spokei_hessian_refuse(writer);
	else
		spokei_hessian_put_date(&writer->put, ms);
}

/* Writes a list or map with a type: a str and an array or map. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_typed(struct spokei_hessian_writer *writer, const unsigned char *value)
{
	struct spokei_hessian_name name;
	struct spoke_value text;
	struct spoke_span span;
	unsigned type;

	if (!spokei_hessian_take(writer, &text))
		return;
	type = spokei_hessian_type(writer);
	if (!spokei_plain_str(text, &span) ||
	    (type != SPOKE_VALUE_ARRAY && type != SPOKE_VALUE_MAP)) {
		spokei_hessian_refuse(writer);
		return;
	}
	name = spokei_hessian_name_of(span);
	spokei_hessian_write_container(writer, value, &name);
}

/* Writes a reference to a container that is open: a cycle. Without that container, the value is
 * null, as it reads. */
static void write_cycle(struct spokei_hessian_writer *writer, uint64_t distance)
{
	uint32_t number = (uint32_t)(writer->tables.containers - distance);

	for (uint32_t i = 0; i < writer->depth; i++) {
		if (distance <= writer->tables.containers && writer->open[i] == number) {
			spokei_hessian_reference(writer, number);
			return;
		}
	}
	spokei_hessian_put_byte(&writer->put, 'N');
}

/* Writes a reference: a distance, and a copy of the target, which ends at `end`. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_ref(struct spokei_hessian_writer *writer, const unsigned char *end)
{
	struct spoke_span copy;
	struct spoke_value value;
	uint64_t distance;

	if (!spokei_hessian_take(writer, &value))
		return;
	if (spokei_shapes[*value.data].type != SPOKE_VALUE_INT ||
	    spoke_value_u64(value, &distance) != 0 || distance == 0 || writer->at >= end) {
		spokei_hessian_refuse(writer);
		return;
	}
	copy = (struct spoke_span){ writer->at, (size_t)(end - writer->at) };
	if (*writer->at == 0xc0) {
		writer->at++;
		write_cycle(writer, distance);
	} else if (spokei_hessian_is_target(&writer->tables, distance, copy, writer->end)) {
		writer->at = end;
		spokei_hessian_reference(writer, (uint32_t)(writer->tables.containers - distance));
	} else {
		spokei_hessian_write_value(writer);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_ext(struct spokei_hessian_writer *writer)
{
	const unsigned char *value = writer->at;
	struct spoke_value ext;
	const unsigned char *content;

	if (!spokei_hessian_take(writer, &ext) || !enter(writer, UINT32_MAX))
		return;
	content = value + 1 + spokei_shapes[*value].width;
	if (*content == 0xff) {
		write_date(writer,
			   (struct spoke_span){ content + 1, (size_t)(writer->at - content) - 1 });
	} else {
		const unsigned char *end = writer->at;

		writer->at = content + 1;
		if (*content == SPOKE_EXT_TYPED)
			write_typed(writer, value);
		else if (*content == SPOKE_EXT_REF)
			write_ref(writer, end);
		else
			spokei_hessian_refuse(writer);
		if (writer->at != end)
			spokei_hessian_refuse(writer);
	}
	spokei_hessian_close(writer);
}

/* --- values */

static void write_int(struct spokei_hessian_writer *writer, struct spoke_value value)
{
	int64_t number;

	if (spoke_value_i64(value, &number) != 0)
		spokei_hessian_refuse(writer);
	else if (value.len == 9 || number < INT32_MIN || number > INT32_MAX)
		spokei_hessian_put_long(&writer->put, number);
	else
		spokei_hessian_put_int(&writer->put, (int32_t)number);
}

static void write_double(struct spokei_hessian_writer *writer, struct spoke_value value)
{
	double number = 0;

	(void)!spoke_value_double(value, &number);
	if (*value.data == 0xca)
		spokei_hessian_put_float(&writer->put, (float)number);
	else
		spokei_hessian_put_double(&writer->put, number);
}

static void write_scalar(struct spokei_hessian_writer *writer, unsigned type)
{
	struct spoke_span bytes = { 0 };
	struct spoke_value value;

	if (!spokei_hessian_take(writer, &value))
		return;
	if (type == SPOKE_VALUE_STR) {
		(void)!spoke_value_str(value, &bytes);
		spokei_hessian_put_string(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_INT) {
		write_int(writer, value);
	} else if (type == SPOKE_VALUE_DOUBLE) {
		write_double(writer, value);
	} else if (type == SPOKE_VALUE_BIN) {
		(void)!spoke_value_bin(value, &bytes);
		spokei_hessian_put_binary(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_BOOL) {
		spokei_hessian_put_byte(&writer->put, *value.data == 0xc3 ? 'T' : 'F');
	} else {
		spokei_hessian_put_byte(&writer->put, 'N');
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_value(struct spokei_hessian_writer *writer)
{
	struct spokei_hessian_object object;
	unsigned type = spokei_hessian_type(writer);

	if (type == SPOKE_VALUE_EXT)
		write_ext(writer);
	else if (type == SPOKE_VALUE_MAP && spokei_hessian_find_object(writer, false, &object))
		spokei_hessian_write_object(writer, &object);
	else if (type == SPOKE_VALUE_MAP || type == SPOKE_VALUE_ARRAY)
		spokei_hessian_write_container(writer, writer->at, NULL);
	else
		write_scalar(writer, type);
}
