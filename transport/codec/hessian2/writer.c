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
	const unsigned char *key;
	struct spoke_value value;

	if (class->fields > SPOKEI_HESSIAN_KEYS)
		return spoke_cursor_next_pair(pairs, ret, &value);
	key = class->key[i];
	*ret = (struct spoke_value){ key, spokei_shape_len(key, pairs->end) };
	return ret->len > 0;
}

/* Returns the length of a str with a head of one byte, else 0. */
static size_t short_key(const unsigned char *key)
{
	return (*key & 0xe0) == 0xa0 ? 1 + (size_t)(*key & 0x1f) : 0;
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

	if (SPOKEI_LIKELY(a->fields <= SPOKEI_HESSIAN_KEYS)) {
		size_t len = short_key(a->key[i]);

		if (len > 0 && *a->key[i] == *b->key[i])
			return pay(tables, KEY_PRICE + len) &&
			       memcmp(a->key[i], b->key[i], len) == 0;
	}
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

/* Returns how many bytes of these values are there from `at` on; 0: it is elsewhere. */
static size_t rest_of(struct spoke_span values, const unsigned char *at)
{
	uintptr_t before = (uintptr_t)at - (uintptr_t)values.data;

	return before < values.len ? values.len - before : 0;
}

bool spokei_hessian_is_target(const struct spokei_hessian_writer *writer, uint64_t distance,
			      struct spoke_span copy)
{
	const struct spokei_hessian_tables *tables = &writer->tables;
	const unsigned char *value;

	if (distance == 0 || distance > tables->containers || distance > SPOKEI_HESSIAN_RECENT)
		return false;
	value = tables->recent[(tables->containers - distance) % SPOKEI_HESSIAN_RECENT];
	return (copy.len <= rest_of(writer->body->values, value) ||
		copy.len <= rest_of(writer->body->pairs[0], value)) &&
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
		if (!spokei_hessian_next_key(class, i, &pairs, &key)) {
			spokei_hessian_put_fail(put, SPOKE_EUNSUPPORTED);
			return;
		}
		text = spokei_hessian_str(key);
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

/* --- scalars
 *
 * Null, bools, numbers and short texts of ASCII need no state. */

#define NUMBER_MAX 16u /* bytes of a number, and more than those of any other scalar's head */

/* Reads an integer. Returns false if it is above 2^63 - 1. */
static bool read_int(struct spoke_value value, int64_t *ret)
{
	unsigned width = (unsigned)value.len - 1;
	uint64_t sign = width > 0 ? UINT64_C(1) << (8 * width - 1) : 0;
	uint64_t number = spokei_number(value.data + 1, width);

	if (width == 0)
		*ret = *value.data < 0x80 ? *value.data : *value.data - 256;
	else if (*value.data >= 0xd0)
		*ret = (int64_t)((number ^ sign) - sign);
	else
		*ret = (int64_t)number;
	return *value.data != 0xcf || number <= INT64_MAX;
}

static void write_int(struct spokei_hessian_put *put, struct spoke_value value)
{
	int64_t number;

	if (!read_int(value, &number))
		spokei_hessian_put_fail(put, SPOKE_EUNSUPPORTED);
	else if (value.len == 9 || number < INT32_MIN || number > INT32_MAX)
		spokei_hessian_put_long(put, number);
	else
		spokei_hessian_put_int(put, (int32_t)number);
}

static void write_double(struct spokei_hessian_put *put, struct spoke_value value)
{
	double number = 0;

	(void)!spoke_value_double(value, &number);
	if (*value.data == 0xca)
		spokei_hessian_put_float(put, (float)number);
	else
		spokei_hessian_put_double(put, number);
}

/* Writes an integer or a double. There is room for NUMBER_MAX bytes. */
static unsigned char *put_number(unsigned char *to, struct spoke_value value)
{
	struct spokei_hessian_put put = { .at = to, .end = to + NUMBER_MAX };

	if (spokei_shapes[*value.data].type == SPOKE_VALUE_DOUBLE)
		write_double(&put, value);
	else
		write_int(&put, value);
	return put.error ? NULL : put.at;
}

/* Writes another scalar than a text. Returns the next byte, or NULL as below. */
static SPOKEI_NOINLINE unsigned char *put_other(unsigned char *to, const unsigned char *limit,
						const unsigned char **from,
						const unsigned char *end)
{
	const unsigned char *at = *from;
	size_t len = spokei_shape_len_short(at, end);

	if (len == 0 || (size_t)(limit - to) < NUMBER_MAX)
		return NULL;
	*from = at + len;
	if (*at == 0xc0 || (*at & 0xfe) == 0xc2) {
		*to = *at == 0xc0 ? 'N' : *at == 0xc3 ? 'T' : 'F';
		return to + 1;
	}
	if (spokei_shapes[*at].type == SPOKE_VALUE_INT || *at == 0xcb)
		return put_number(to, (struct spoke_value){ at, len });
	return NULL;
}

/* Writes one scalar. Returns the next byte, or NULL if the value is another one, or there is too
 * little room. `from`: the value, and then the one after it. */
static inline unsigned char *put_scalar(unsigned char *to, const unsigned char *limit,
					const unsigned char **from, const unsigned char *end)
{
	const unsigned char *at = *from + 1;
	size_t left = (size_t)(end - at);
	size_t len = at[-1] & 0x1f;

	if (SPOKEI_LIKELY(at[-1] == 0xd9 && left > 0)) {
		len = *at++;
		left--;
	} else if (at[-1] < 0x30 && to < limit) {
		*from = at;
		*to = (unsigned char)(0x90 + at[-1]);
		return to + 1;
	} else if ((at[-1] & 0xe0) != 0xa0) {
		return put_other(to, limit, from, end);
	}
	if (len > left || len + 2 > (size_t)(limit - to))
		return NULL;
	if (len >= 32)
		*to++ = 0x30;
	*to++ = (unsigned char)len;
	*from = at + len;
	return SPOKEI_LIKELY(spokei_hessian_copy_ascii(to, at, len)) ? to + len : NULL;
}

/* --- objects
 *
 * Finds the fields and the class of a map that is an object. Values inside the map are passed
 * over, not looked at. */

/* Passes the next value of a map, and counts the bytes of a container. Each map that lies in
 * another one is passed once for each, so the sum is bounded. Returns false after an error. */
static inline bool pass_value(struct spokei_hessian_writer *writer, struct spoke_cursor *pairs,
			      struct spoke_value *ret)
{
	size_t len = pairs->at < pairs->end ? spokei_shape_len(pairs->at, pairs->end) : 0;

	if (SPOKEI_UNLIKELY(len == 0)) {
		if (!spoke_cursor_next(pairs, ret))
			return false;
		if (spokei_shapes[*ret->data].each == 0)
			return true;
		if (ret->len > writer->passes) {
			spokei_hessian_put_fail(&writer->put, SPOKE_EDEPTH);
			return false;
		}
		writer->passes -= ret->len;
		return true;
	}
	*ret = (struct spoke_value){ pairs->at, len };
	pairs->at += len;
	pairs->left--;
	return true;
}

/* Reads the pairs of a map. Returns false unless all keys are str and all pairs are there. Writes
 * the last pair, if there is one. */
static bool read_fields(struct spokei_hessian_writer *writer, struct spoke_cursor *pairs,
			struct spokei_hessian_class *class, struct spoke_value *ret_key,
			struct spoke_value *ret_value)
{
	size_t count = (size_t)pairs->left / 2;

	class->pairs = spoke_cursor_rest(pairs);
	for (size_t i = 0; i < count; i++) {
		if (!pass_value(writer, pairs, ret_key) ||
		    spokei_shapes[*ret_key->data].type != SPOKE_VALUE_STR ||
		    !pass_value(writer, pairs, ret_value))
			return false;
		spokei_hessian_keep_key(class, i, ret_key->data);
	}
	return true;
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

/* Does the same as spokei_is_object(), fast for a name that was decided before. */
static bool is_object(struct spokei_hessian_writer *writer, enum spokei_objects objects,
		      struct spoke_value map, struct spoke_value key, struct spoke_value value,
		      struct spoke_span *ret_class)
{
	struct spoke_span *known = &writer->qualified;

	if (known->len == value.len && *map.data != 0xdf &&
	    key.len == sizeof(SPOKEI_CLASS_KEY) - 1 &&
	    memcmp(key.data, SPOKEI_CLASS_KEY, key.len) == 0 &&
	    memcmp(value.data, known->data, value.len) == 0) {
		*ret_class = spokei_hessian_str(value);
		return true;
	}
	if (!spokei_is_object(objects, map, key, value, ret_class))
		return false;
	if (spokei_java_identifiers(*ret_class) > 1)
		*known = (struct spoke_span){ value.data, value.len };
	return true;
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
	    !is_object(writer, objects, map, key, value, &name) ||
	    (writer->generic && !any && !stays_object(name)))
		return false;
	ret->class.name = spokei_hessian_name_of(name);
	ret->end = pairs.at;
	return true;
}

/* --- values */

/* --- reading */

bool spokei_hessian_take_any(struct spokei_hessian_writer *writer, struct spoke_value *ret)
{
	struct spoke_cursor cursor = { writer->at, writer->end, UINT64_MAX };

	if (!spoke_cursor_next(&cursor, ret)) {
		spokei_hessian_refuse(writer);
		return false;
	}
	writer->at = cursor.at;
	return true;
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
	if (spokei_hessian_write_values(writer, count) > 0)
		spokei_hessian_refuse(writer);
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
		if (spokei_hessian_take(writer, &key) && spokei_hessian_write_values(writer, 1) > 0)
			spokei_hessian_refuse(writer);
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
	} else if (spokei_hessian_is_target(writer, distance, copy)) {
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

static inline void write_scalar(struct spokei_hessian_writer *writer, unsigned type)
{
	struct spoke_span bytes = { 0 };
	struct spoke_value value;

	if (!spokei_hessian_take(writer, &value))
		return;
	if (SPOKEI_LIKELY(type == SPOKE_VALUE_STR)) {
		bytes = spokei_hessian_str(value);
		spokei_hessian_put_string(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_INT) {
		write_int(&writer->put, value);
	} else if (type == SPOKE_VALUE_DOUBLE) {
		write_double(&writer->put, value);
	} else if (type == SPOKE_VALUE_BIN) {
		(void)!spoke_value_bin(value, &bytes);
		spokei_hessian_put_binary(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_BOOL) {
		spokei_hessian_put_byte(&writer->put, *value.data == 0xc3 ? 'T' : 'F');
	} else {
		spokei_hessian_put_byte(&writer->put, 'N');
	}
}

static inline bool same_bytes(const unsigned char *a, const unsigned char *b, size_t len)
{
	for (; len >= 8; len -= 8, a += 8, b += 8)
		if (memcmp(a, b, 8) != 0)
			return false;
	for (; len > 0; len--)
		if (*a++ != *b++)
			return false;
	return true;
}

/* Returns the last class that was written, if the map that comes next may be of it, else NULL. */
static const struct spokei_hessian_class *class_again(const struct spokei_hessian_writer *writer)
{
	uint32_t number = writer->tables.classes - 1;
	const struct spokei_hessian_class *class;

	if (number > 0xf || writer->generic || writer->depth == SPOKEI_HESSIAN_DEPTH)
		return NULL;
	class = &writer->tables.class[number];
	if (class->renamed || class->name.declared || class->name.dims > 0 ||
	    class->fields >= SPOKEI_OBJECT_SHORT || writer->qualified.len != class->name.len + 1 ||
	    memcmp((const char *)writer->qualified.data + 1, class->name.text, class->name.len) !=
		    0)
		return NULL;
	return class;
}

/* Writes a map of scalars that is an object of the same class as the last one, in one pass. Returns
 * false for any other value, with nothing written. */
static bool write_again(struct spokei_hessian_writer *writer)
{
	static const char key[] = SPOKEI_CLASS_KEY;
	const struct spokei_hessian_class *class = class_again(writer);
	const unsigned char *at = writer->at;
	const unsigned char *end = writer->end;
	unsigned char *to = writer->put.at;
	size_t last = sizeof(key) - 1 + writer->qualified.len;

	if (class == NULL || to == writer->put.end)
		return false;
	if (*at == (0x80 | (class->fields + 1)))
		at++;
	else if (*at == SPOKEI_OBJECT_HEAD && end - at > 2 &&
		 spokei_number(at + 1, 2) == class->fields + 1)
		at += 3;
	else
		return false;
	*to++ = (unsigned char)(0x60 + writer->tables.classes - 1);
	for (size_t i = 0; i < class->fields; i++) {
		size_t len = short_key(class->key[i]);

		if (len == 0 || len >= (size_t)(end - at) || !same_bytes(at, class->key[i], len))
			return false;
		at += len;
		to = put_scalar(to, writer->put.end, &at, end);
		if (to == NULL)
			return false;
	}
	if (last > (size_t)(end - at) || memcmp(at, key, sizeof(key) - 1) != 0 ||
	    memcmp(at + sizeof(key) - 1, writer->qualified.data, writer->qualified.len) != 0)
		return false;
	(void)spokei_hessian_begin(&writer->tables, writer->at);
	writer->put.at = to;
	writer->at = at + last;
	return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_map(struct spokei_hessian_writer *writer)
{
	struct spokei_hessian_object object;

	if (write_again(writer))
		return;
	if (spokei_hessian_find_object(writer, false, &object))
		spokei_hessian_write_object(writer, &object);
	else
		spokei_hessian_write_container(writer, writer->at, NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_value(struct spokei_hessian_writer *writer)
{
	unsigned type = spokei_hessian_type(writer);

	if (type == SPOKE_VALUE_EXT)
		write_ext(writer);
	else if (type == SPOKE_VALUE_MAP)
		write_map(writer);
	else if (type == SPOKE_VALUE_ARRAY)
		spokei_hessian_write_container(writer, writer->at, NULL);
	else
		write_scalar(writer, type);
}

/* --- sequences of values */

unsigned char *spokei_hessian_put_scalars(unsigned char *to, const unsigned char *limit,
					  struct spoke_span values)
{
	const unsigned char *from = values.data;
	const unsigned char *end = from + values.len;

	while (from < end) {
		to = put_scalar(to, limit, &from, end);
		if (to == NULL)
			return NULL;
	}
	return to;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
size_t spokei_hessian_write_values(struct spokei_hessian_writer *writer, size_t count)
{
	for (; count > 0 && spokei_hessian_more(writer); count--) {
		const unsigned char *from = writer->at;
		unsigned char *to = put_scalar(writer->put.at, writer->put.end, &from, writer->end);

		if (SPOKEI_LIKELY(to != NULL)) {
			writer->put.at = to;
			writer->at = from;
		} else {
			spokei_hessian_write_value(writer);
		}
	}
	return count;
}
