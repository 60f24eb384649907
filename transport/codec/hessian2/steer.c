/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes values as their descriptors demand. Java reads an argument as its declared type, but takes
 * the class of an Object, of a list's element or of a set from the bytes.
 */
#include "transport/codec/hessian2/steer.h"

#include "transport/codec/hessian2/heads.h"
#include "transport/codec/hessian2/made.h"

#include <string.h>

/* --- descriptors */

bool spokei_hessian2_next_type(struct spoke_span *types, struct spokei_hessian2_type *ret)
{
	const char *at = types->data;
	const char *end = at ? at + types->len : NULL;
	const char *name;

	*ret = (struct spokei_hessian2_type){ 0 };
	for (; at < end && *at == '['; at++)
		ret->dims++;
	if (at == end || strchr("BCDFIJSZL", *at) == NULL || *at == '\0') {
		types->len = 0;
		return false;
	}
	ret->kind = *at++;
	if (ret->kind == 'L') {
		name = at;
		at = memchr(name, ';', (size_t)(end - name));
		if (at == NULL) {
			types->len = 0;
			return false;
		}
		ret->name = (struct spoke_span){ name, (size_t)(at - name) };
		at++;
	}
	*types = (struct spoke_span){ at, (size_t)(end - at) };
	return true;
}

static bool is_name(struct spoke_span name, const char *text)
{
	size_t len = strlen(text);

	return name.len == len && memcmp(name.data, text, len) == 0;
}

static bool begins(struct spoke_span name, const char *text)
{
	size_t len = strlen(text);

	return name.len > len && memcmp(name.data, text, len) == 0;
}

static bool ends(struct spoke_span name, const char *text)
{
	size_t len = strlen(text);

	return name.len > len && memcmp((const char *)name.data + name.len - len, text, len) == 0;
}

/* Returns the letter of the primitive type that a class of java.lang wraps, or 0. */
static char unwrapped(struct spoke_span name)
{
	static const struct {
		const char *name;
		char kind;
	} rows[] = {
		{ "java/lang/Integer", 'I' },   { "java/lang/Long", 'J' },
		{ "java/lang/Double", 'D' },    { "java/lang/Float", 'F' },
		{ "java/lang/Short", 'S' },     { "java/lang/Byte", 'B' },
		{ "java/lang/Character", 'C' },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_name(name, rows[i].name))
			return rows[i].kind;
	return 0;
}

/* --- looking at the next value */

/* Reads the next value if it is an integer of 64 bits. */
static bool take_i64(struct spokei_hessian2_writer *writer, int64_t *ret)
{
	struct spoke_value value = spokei_hessian2_peek(writer);

	return spokei_hessian2_type(writer) == SPOKE_VALUE_INT &&
	       spoke_value_i64(value, ret) == 0 && spokei_hessian2_take(writer, &value);
}

/* --- scalars */

static void write_int(struct spokei_hessian2_writer *writer)
{
	struct spoke_value value = spokei_hessian2_peek(writer);
	int32_t number;

	if (spokei_hessian2_type(writer) == SPOKE_VALUE_INT &&
	    spoke_value_i32(value, &number) == 0 && spokei_hessian2_take(writer, &value))
		spokei_hessian2_put_int(&writer->put, number);
	else
		spokei_hessian2_write_value(writer);
}

static void write_long(struct spokei_hessian2_writer *writer)
{
	int64_t number;

	if (take_i64(writer, &number))
		spokei_hessian2_put_long(&writer->put, number);
	else
		spokei_hessian2_write_value(writer);
}

/* Java converts an integer to the nearest double, too. */
static void write_double(struct spokei_hessian2_writer *writer)
{
	int64_t number;

	if (take_i64(writer, &number))
		spokei_hessian2_put_double(&writer->put, (double)number);
	else
		spokei_hessian2_write_value(writer);
}

/* A char is a text of one unit; an integer is the number of the unit. */
static void write_char(struct spokei_hessian2_writer *writer)
{
	unsigned char text[3];
	size_t len = 1;
	uint32_t unit;
	int64_t number;

	if (!take_i64(writer, &number)) {
		spokei_hessian2_write_value(writer);
		return;
	}
	if (number < 0 || number > 0xffff) {
		spokei_hessian2_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
		return;
	}
	unit = (uint32_t)number;
	text[0] = (unsigned char)unit;
	if (unit >= 0x80) {
		len = unit < 0x800 ? 2 : 3;
		text[0] = (unsigned char)(unit < 0x800 ? 0xc0 | unit >> 6 : 0xe0 | unit >> 12);
		text[1] = (unsigned char)(0x80 | (unit >> (unit < 0x800 ? 0 : 6) & 0x3f));
		text[2] = (unsigned char)(0x80 | (unit & 0x3f));
	}
	spokei_hessian2_put_string(&writer->put, text, len);
}

/* An integer is a number of milliseconds. */
static void write_date(struct spokei_hessian2_writer *writer)
{
	int64_t ms;

	if (take_i64(writer, &ms))
		spokei_hessian2_put_date(&writer->put, ms);
	else
		spokei_hessian2_write_value(writer);
}

/* Writes an object of java.sql, which holds a date. */
static void write_sql(struct spokei_hessian2_writer *writer, struct spokei_hessian2_name class)
{
	unsigned type = spokei_hessian2_type(writer);

	if ((type != SPOKE_VALUE_INT &&
	     (type != SPOKE_VALUE_EXT ||
	      spoke_value_type(spokei_hessian2_peek(writer)) != SPOKE_VALUE_EXT))) {
		spokei_hessian2_write_value(writer);
		return;
	}
	if (!spokei_hessian2_open_holder(writer, class))
		return;
	write_date(writer);
	spokei_hessian2_close(writer);
}

/* --- lists, maps and objects */

/* A class that stands for one of Java's. */
#define HANDLE(name) "com.alibaba.com.caucho.hessian.io." name "Handle"

/* How a class of java.util is written: a row for each one that is not written by its own name. No
 * name: untyped. */
static const struct {
	const char *declared;
	const char *written;
} utils[] = {
	{ "java/util/List", NULL },
	{ "java/util/ArrayList", NULL },
	{ "java/util/Collection", NULL },
	{ "java/util/AbstractList", NULL },
	{ "java/util/AbstractCollection", NULL },
	{ "java/util/Map", NULL },
	{ "java/util/HashMap", NULL },
	{ "java/util/AbstractMap", NULL },
	{ "java/util/Set", "java.util.HashSet" },
	{ "java/util/AbstractSet", "java.util.HashSet" },
	{ "java/util/SortedSet", "java.util.TreeSet" },
	{ "java/util/NavigableSet", "java.util.TreeSet" },
	{ "java/util/SortedMap", "java.util.TreeMap" },
	{ "java/util/NavigableMap", "java.util.TreeMap" },
	{ "java/util/Queue", "java.util.LinkedList" },
	{ "java/util/Deque", "java.util.LinkedList" },
	{ "java/util/concurrent/ConcurrentMap", "java.util.concurrent.ConcurrentHashMap" },
	{ "java/util/Locale", HANDLE("Locale") },
	{ "java/util/Calendar", HANDLE("Calendar") },
	{ "java/util/GregorianCalendar", HANDLE("Calendar") },
	{ "java/util/BitSet", HANDLE("BitSet") },
};

/* Writes the next value, a map, as an object of the declared class. Returns false if it cannot be
 * one, because a key is not a text. */
static bool write_declared(struct spokei_hessian2_writer *writer,
			   const struct spokei_hessian2_name *class)
{
	struct spokei_hessian2_object object;

	if (!spokei_hessian2_find_fields(writer, &object))
		return false;
	object.class.name = *class;
	spokei_hessian2_write_object(writer, &object);
	return true;
}

/* Writes the next value as an instance of a class. */
static void write_instance(struct spokei_hessian2_writer *writer,
			   const struct spokei_hessian2_name *class)
{
	struct spokei_hessian2_object object;
	unsigned type = spokei_hessian2_type(writer);

	if (type == SPOKE_VALUE_STR)
		spokei_hessian2_write_enum(writer, class);
	else if (spokei_hessian2_find_object(writer, true, &object))
		spokei_hessian2_write_object(writer, &object);
	else if (type != SPOKE_VALUE_MAP || !write_declared(writer, class))
		spokei_hessian2_write_value(writer);
}

/* Writes the next value, an array or map, as an instance of a class of java.util. Java decodes only
 * its maps from a map. */
static void write_util(struct spokei_hessian2_writer *writer, struct spoke_span declared)
{
	struct spokei_hessian2_name name = { declared.data, declared.len, 0, true };
	const struct spokei_hessian2_name *written = &name;

	for (size_t i = 0; i < sizeof(utils) / sizeof(utils[0]); i++) {
		if (is_name(declared, utils[i].declared)) {
			name = spokei_hessian2_literal(utils[i].written ? utils[i].written : "");
			written = utils[i].written ? &name : NULL;
			break;
		}
	}
	if (spokei_hessian2_type(writer) == SPOKE_VALUE_ARRAY || written == NULL ||
	    ends(declared, "Map") || ends(declared, "Properties") || ends(declared, "Hashtable"))
		spokei_hessian2_write_container(writer, writer->at, written);
	else
		write_instance(writer, written);
}

static void write_class(struct spokei_hessian2_writer *writer, struct spoke_span name)
{
	struct spokei_hessian2_name class = { name.data, name.len, 0, true };
	unsigned type = spokei_hessian2_type(writer);

	if (!begins(name, "java/"))
		write_instance(writer, &class);
	else if (is_name(name, "java/util/Date"))
		write_date(writer);
	else if (begins(name, "java/util/") &&
		 (type == SPOKE_VALUE_ARRAY || type == SPOKE_VALUE_MAP))
		write_util(writer, name);
	else if (is_name(name, "java/math/BigDecimal"))
		spokei_hessian2_write_decimal(writer);
	else if (is_name(name, "java/math/BigInteger"))
		spokei_hessian2_write_big(writer);
	else if (begins(name, "java/sql/"))
		write_sql(writer, class);
	else
		spokei_hessian2_write_value(writer);
}

/* --- arrays */

/* Returns the name of the type of an array, as Java's writer forms it. */
static struct spokei_hessian2_name array_name(const struct spokei_hessian2_type *type)
{
	static const char *const primitive[] = {
		['B'] = "byte", ['C'] = "char", ['D'] = "double", ['F'] = "float",
		['I'] = "int",  ['J'] = "long", ['S'] = "short",  ['Z'] = "boolean",
	};
	struct spokei_hessian2_name name = { type->name.data, type->name.len, 0, true };

	if (type->kind != 'L')
		name = spokei_hessian2_literal(primitive[(unsigned char)type->kind]);
	else if (is_name(type->name, "java/lang/String"))
		name = spokei_hessian2_literal("string");
	else if (is_name(type->name, "java/lang/Object"))
		name = spokei_hessian2_literal("object");
	else if (is_name(type->name, "java/util/Date"))
		name = spokei_hessian2_literal("date");
	name.dims = type->dims;
	return name;
}

/* Writes the next value, an array of bytes, as a binary. */
static void write_bytes(struct spokei_hessian2_writer *writer)
{
	size_t left = spokei_hessian2_open_next(writer);
	struct spoke_cursor cursor = { writer->at, writer->end, left };
	struct spoke_value item;
	size_t len;
	int32_t byte;

	do {
		unsigned char *at = spokei_hessian2_put_chunk(&writer->put, left, &len);

		if (at == NULL)
			return;
		for (size_t i = 0; i < len; i++) {
			if (!spoke_cursor_next(&cursor, &item) ||
			    spoke_value_i32(item, &byte) != 0 || byte < -128 || byte > 255) {
				spokei_hessian2_refuse(writer);
				return;
			}
			at[i] = (unsigned char)byte;
		}
		left -= len;
	} while (left > 0);
	writer->at = cursor.at;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_array(struct spokei_hessian2_writer *writer,
			const struct spokei_hessian2_type *type)
{
	struct spokei_hessian2_name name = array_name(type);
	struct spokei_hessian2_type item = *type;
	const unsigned char *value = writer->at;
	size_t count;

	if (spokei_hessian2_type(writer) != SPOKE_VALUE_ARRAY ||
	    (type->dims == 1 && type->kind == 'C')) { /* Java writes char[] as a string */
		spokei_hessian2_write_value(writer);
		return;
	}
	if (type->dims == 1 && type->kind == 'B') {
		write_bytes(writer);
		return;
	}
	item.dims--;
	count = spokei_hessian2_open_next(writer);
	if (!spokei_hessian2_open(writer, value))
		return;
	spokei_hessian2_list_head(writer, &name, count);
	for (; count > 0 && writer->put.error == 0; count--)
		spokei_hessian2_write_as(writer, &item);
	spokei_hessian2_close(writer);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian2_write_as(struct spokei_hessian2_writer *writer,
			      const struct spokei_hessian2_type *type)
{
	char kind = type->kind;

	if (type->dims > 0) {
		write_array(writer, type);
		return;
	}
	if (kind == 'L' && begins(type->name, "java/lang/"))
		kind = unwrapped(type->name);
	if (kind == 'I' || kind == 'S' || kind == 'B')
		write_int(writer);
	else if (kind == 'J')
		write_long(writer);
	else if (kind == 'D' || kind == 'F')
		write_double(writer);
	else if (kind == 'C')
		write_char(writer);
	else if (kind == 'L')
		write_class(writer, type->name);
	else
		spokei_hessian2_write_value(writer);
}
