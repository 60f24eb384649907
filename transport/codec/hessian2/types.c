/* SPDX-License-Identifier: Apache-2.0 */
/* Writes values as classes and types of Java. */
#include "transport/codec/hessian2/writer.h"

#include <spoke/value.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- scalars that are objects
 *
 * Scalars that Java declares as a class of its own: constants of an enum, BigDecimal, BigInteger.
 * A value that the class does not fit is written as without a type. Owned by one function call;
 * any thread.
 *
 * Writes scalars as the objects that Java's writer makes of some classes. The fields are those of
 * the class in Java. */

/* Returns a name of the codec's own. */
static inline struct spokei_hessian_name literal(const char *text)
{
	return (struct spokei_hessian_name){ text, strlen(text), 0, true };
}

static bool take_str(struct spokei_hessian_writer *writer, struct spoke_span *ret)
{
	struct spoke_value value = spokei_hessian_peek(writer);

	return spokei_hessian_type(writer) == SPOKE_VALUE_STR && spoke_value_str(value, ret) == 0 &&
	       spokei_hessian_take(writer, &value);
}

/* Opens an object whose one field is called "value", and which follows. Returns false if it is too
 * deep; else the caller closes it. */
static bool open_holder(struct spokei_hessian_writer *writer, struct spokei_hessian_name name)
{
	static const char *const fields[] = { "value" };

	return spokei_hessian_open_made(writer, &name, fields, 1);
}

/* Writes the next value, a text, as the constant of an enum. */
static void write_enum(struct spokei_hessian_writer *writer,
		       const struct spokei_hessian_name *class)
{
	static const char *const fields[] = { "name" };

	if (!spokei_hessian_open_made(writer, class, fields, 1))
		return;
	spokei_hessian_write_value(writer);
	spokei_hessian_close(writer);
}

/* Prints the shortest text that names a double, with a point in any locale. */
static size_t print_double(double number, char *text, size_t size)
{
	int len = 0;

	for (int digits = 1; digits <= 17; digits++) {
		double read;

		len = snprintf(text, size, "%.*g", digits, number);
		read = strtod(text, NULL);
		if (!(read < number || read > number))
			break;
	}
	for (int i = 0; i < len; i++)
		if (strchr("0123456789+-e", text[i]) == NULL)
			text[i] = '.';
	return (size_t)len;
}

/* Prints a number as a decimal text. Returns 0 if the value is not a finite number. */
static size_t print_number(struct spoke_value value, unsigned type, char *text, size_t size)
{
	int64_t number;
	uint64_t large;
	double wide = 0;

	if (type == SPOKE_VALUE_INT && spoke_value_i64(value, &number) == 0)
		return (size_t)snprintf(text, size, "%" PRId64, number);
	if (type == SPOKE_VALUE_INT && spoke_value_u64(value, &large) == 0)
		return (size_t)snprintf(text, size, "%" PRIu64, large);
	if (type != SPOKE_VALUE_DOUBLE || spoke_value_double(value, &wide) != 0 || !isfinite(wide))
		return 0;
	return print_double(wide, text, size);
}

/* Writes the next value, a number or a decimal text, as a BigDecimal. */
static void write_decimal(struct spokei_hessian_writer *writer)
{
	unsigned type = spokei_hessian_type(writer);
	struct spoke_value value = spokei_hessian_peek(writer);
	struct spoke_span given = { 0 };
	char text[40];
	size_t len = print_number(value, type, text, sizeof(text));

	if (len == 0 && type != SPOKE_VALUE_STR) {
		spokei_hessian_write_value(writer);
		return;
	}
	if (!open_holder(writer, literal("java.math.BigDecimal")))
		return;
	if (len > 0 && spokei_hessian_take(writer, &value))
		spokei_hessian_put_string(&writer->put, text, len);
	else if (take_str(writer, &given))
		spokei_hessian_put_string(&writer->put, given.data, given.len);
	spokei_hessian_close(writer);
}

/* Reads a decimal text as a sign and at most 64 bits. */
static bool read_digits(struct spoke_span text, bool *ret_negative, uint64_t *ret)
{
	const char *at = text.data;
	const char *end = at + text.len;

	*ret_negative = text.len > 0 && *at == '-';
	*ret = 0;
	if (text.len > 0 && (*at == '-' || *at == '+'))
		at++;
	if (at == end)
		return false;
	for (; at < end; at++)
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, (uint64_t)(*at - '0'), ret))
			return false;
	return true;
}

/* Writes the next value, an integer or a decimal text of at most 64 bits, as a BigInteger: its
 * sign, and the words of the magnitude. Java derives the other fields. */
static void write_big(struct spokei_hessian_writer *writer)
{
	static const char *const fields[] = { "signum", "mag" };
	struct spokei_hessian_name name = literal("java.math.BigInteger");
	struct spokei_hessian_name words = { "int", 3, 1, true };
	struct spoke_value value = spokei_hessian_peek(writer);
	unsigned type = spokei_hessian_type(writer);
	struct spoke_span text;
	bool negative = false;
	uint64_t size = 0;
	int64_t number;

	if (type == SPOKE_VALUE_INT && spoke_value_i64(value, &number) == 0) {
		negative = number < 0;
		size = negative ? 0 - (uint64_t)number : (uint64_t)number;
	} else if (!(type == SPOKE_VALUE_INT && spoke_value_u64(value, &size) == 0) &&
		   !(type == SPOKE_VALUE_STR && spoke_value_str(value, &text) == 0 &&
		     read_digits(text, &negative, &size))) {
		spokei_hessian_write_value(writer);
		return;
	}
	if (!spokei_hessian_take(writer, &value) ||
	    !spokei_hessian_open_made(writer, &name, fields, 2))
		return;
	spokei_hessian_put_int(&writer->put, size == 0 ? 0 : negative ? -1 : 1);
	if (spokei_hessian_open(writer, NULL)) {
		spokei_hessian_list_head(writer, &words, size >> 32 ? 2 : size > 0);
		for (unsigned shift = 64; shift > 0; shift -= 32)
			if (size >> (shift - 32))
				spokei_hessian_put_int(&writer->put,
						       (int32_t)(uint32_t)(size >> (shift - 32)));
		spokei_hessian_close(writer);
	}
	spokei_hessian_close(writer);
}

/* --- exceptions
 *
 * Writes an exception as an object of its class. The first field "message" becomes
 * "detailMessage", unless there is one; a cause that is null becomes the exception itself, which
 * is how Java says that there is none; a cause that is a map with a class becomes an exception,
 * too. */

/* Returns whether a field of the map has this name. */
static bool has_field(const struct spokei_hessian_object *object, const char *name)
{
	struct spoke_cursor pairs = { object->pairs, object->end, 2 * (uint64_t)object->fields };
	size_t len = strlen(name);
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span text;

	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (spoke_value_str(key, &text) == 0 && text.len == len &&
		    memcmp(text.data, name, len) == 0)
			return true;
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
static void write_exception(struct spokei_hessian_writer *writer,
			    struct spokei_hessian_object *object)
{
	uint32_t number = writer->containers;
	struct spokei_hessian_object cause;
	struct spoke_value key;
	uint32_t class;

	object->renamed = !has_field(object, "detailMessage");
	if (!spokei_hessian_open_object(writer, object, &class))
		return;
	for (size_t i = 0; i < object->fields && writer->put.error == 0; i++) {
		if (!spokei_hessian_take(writer, &key))
			return;
		if (is_cause(key) && writer->at < writer->end && *writer->at == 0xc0) {
			writer->at++;
			spokei_hessian_reference(writer, number);
		} else if (is_cause(key) && spokei_hessian_find_object(writer, true, &cause)) {
			write_exception(writer, &cause);
		} else {
			spokei_hessian_write_value(writer);
		}
	}
	writer->at = object->end;
	spokei_hessian_close(writer);
}

void spokei_hessian_write_throwable(struct spokei_hessian_writer *writer, struct spoke_span values)
{
	struct spokei_hessian_object object;
	struct spoke_value class;
	struct spoke_span name;

	spokei_hessian_turn_to(writer, values);
	if (!spokei_hessian_take(writer, &class))
		return;
	if (!spokei_plain_str(class, &name) || !spokei_hessian_find_fields(writer, &object)) {
		spokei_hessian_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
		return;
	}
	object.name = (struct spokei_hessian_name){ name.data, name.len, 0, false };
	write_exception(writer, &object);
}

/* --- declared types
 *
 * Writes values as their descriptors demand. Java reads an argument as its declared type, but
 * takes the class of an Object, of a list's element or of a set from the bytes. */

/* --- descriptors */

bool spokei_hessian_next_type(struct spoke_span *types, struct spokei_hessian_type *ret)
{
	const char *at = types->data;
	const char *end = at ? at + types->len : NULL;
	const char *name;

	*ret = (struct spokei_hessian_type){ 0 };
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
static bool take_i64(struct spokei_hessian_writer *writer, int64_t *ret)
{
	struct spoke_value value = spokei_hessian_peek(writer);

	return spokei_hessian_type(writer) == SPOKE_VALUE_INT && spoke_value_i64(value, ret) == 0 &&
	       spokei_hessian_take(writer, &value);
}

/* --- scalars */

static void write_int(struct spokei_hessian_writer *writer)
{
	struct spoke_value value = spokei_hessian_peek(writer);
	int32_t number;

	if (spokei_hessian_type(writer) == SPOKE_VALUE_INT &&
	    spoke_value_i32(value, &number) == 0 && spokei_hessian_take(writer, &value))
		spokei_hessian_put_int(&writer->put, number);
	else
		spokei_hessian_write_value(writer);
}

static void write_long(struct spokei_hessian_writer *writer)
{
	int64_t number;

	if (take_i64(writer, &number))
		spokei_hessian_put_long(&writer->put, number);
	else
		spokei_hessian_write_value(writer);
}

/* Java converts an integer to the nearest double, too. */
static void write_double(struct spokei_hessian_writer *writer)
{
	int64_t number;

	if (take_i64(writer, &number))
		spokei_hessian_put_double(&writer->put, (double)number);
	else
		spokei_hessian_write_value(writer);
}

/* A char is a text of one unit; an integer is the number of the unit. */
static void write_char(struct spokei_hessian_writer *writer)
{
	unsigned char text[3];
	size_t len = 1;
	uint32_t unit;
	int64_t number;

	if (!take_i64(writer, &number)) {
		spokei_hessian_write_value(writer);
		return;
	}
	if (number < 0 || number > 0xffff) {
		spokei_hessian_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
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
	spokei_hessian_put_string(&writer->put, text, len);
}

/* An integer is a number of milliseconds. */
static void write_date(struct spokei_hessian_writer *writer)
{
	int64_t ms;

	if (take_i64(writer, &ms))
		spokei_hessian_put_date(&writer->put, ms);
	else
		spokei_hessian_write_value(writer);
}

/* Writes an object of java.sql, which holds a date. */
static void write_sql(struct spokei_hessian_writer *writer, struct spokei_hessian_name class)
{
	unsigned type = spokei_hessian_type(writer);

	if ((type != SPOKE_VALUE_INT &&
	     (type != SPOKE_VALUE_EXT ||
	      spoke_value_type(spokei_hessian_peek(writer)) != SPOKE_VALUE_EXT))) {
		spokei_hessian_write_value(writer);
		return;
	}
	if (!open_holder(writer, class))
		return;
	write_date(writer);
	spokei_hessian_close(writer);
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
static bool write_declared(struct spokei_hessian_writer *writer,
			   const struct spokei_hessian_name *class)
{
	struct spokei_hessian_object object;

	if (!spokei_hessian_find_fields(writer, &object))
		return false;
	object.name = *class;
	(void)spokei_hessian_write_object(writer, &object);
	return true;
}

/* Writes the next value as an instance of a class. */
static void write_instance(struct spokei_hessian_writer *writer,
			   const struct spokei_hessian_name *class)
{
	struct spokei_hessian_object object;
	unsigned type = spokei_hessian_type(writer);

	if (type == SPOKE_VALUE_STR)
		write_enum(writer, class);
	else if (type == SPOKE_VALUE_MAP && spokei_hessian_write_planned(writer))
		return;
	else if (spokei_hessian_find_object(writer, true, &object))
		spokei_hessian_write_found(writer, &object);
	else if (type != SPOKE_VALUE_MAP || !write_declared(writer, class))
		spokei_hessian_write_value(writer);
}

/* Writes the next value, an array or map, as an instance of a class of java.util. Java decodes only
 * its maps from a map. */
static void write_util(struct spokei_hessian_writer *writer, struct spoke_span declared)
{
	struct spokei_hessian_name name = { declared.data, declared.len, 0, true };
	const struct spokei_hessian_name *written = &name;

	for (size_t i = 0; i < sizeof(utils) / sizeof(utils[0]); i++) {
		if (is_name(declared, utils[i].declared)) {
			name = literal(utils[i].written ? utils[i].written : "");
			written = utils[i].written ? &name : NULL;
			break;
		}
	}
	if (spokei_hessian_type(writer) == SPOKE_VALUE_ARRAY || written == NULL ||
	    ends(declared, "Map") || ends(declared, "Properties") || ends(declared, "Hashtable"))
		spokei_hessian_write_container(writer, writer->at, written);
	else
		write_instance(writer, written);
}

static void write_class(struct spokei_hessian_writer *writer, struct spoke_span name)
{
	struct spokei_hessian_name class = { name.data, name.len, 0, true };
	unsigned type = spokei_hessian_type(writer);

	if (!begins(name, "java/"))
		write_instance(writer, &class);
	else if (is_name(name, "java/util/Date"))
		write_date(writer);
	else if (begins(name, "java/util/") &&
		 (type == SPOKE_VALUE_ARRAY || type == SPOKE_VALUE_MAP))
		write_util(writer, name);
	else if (is_name(name, "java/math/BigDecimal"))
		write_decimal(writer);
	else if (is_name(name, "java/math/BigInteger"))
		write_big(writer);
	else if (begins(name, "java/sql/"))
		write_sql(writer, class);
	else
		spokei_hessian_write_value(writer);
}

/* --- arrays */

/* Returns the name of the type of an array, as Java's writer forms it. */
static struct spokei_hessian_name array_name(const struct spokei_hessian_type *type)
{
	static const char *const primitive[] = {
		['B'] = "byte", ['C'] = "char", ['D'] = "double", ['F'] = "float",
		['I'] = "int",  ['J'] = "long", ['S'] = "short",  ['Z'] = "boolean",
	};
	struct spokei_hessian_name name = { type->name.data, type->name.len, 0, true };

	if (type->kind != 'L')
		name = literal(primitive[(unsigned char)type->kind]);
	else if (is_name(type->name, "java/lang/String"))
		name = literal("string");
	else if (is_name(type->name, "java/lang/Object"))
		name = literal("object");
	else if (is_name(type->name, "java/util/Date"))
		name = literal("date");
	name.dims = type->dims;
	return name;
}

/* Writes the next value, an array of bytes, as a binary. */
static void write_bytes(struct spokei_hessian_writer *writer)
{
	size_t left = spokei_hessian_open_next(writer);
	struct spoke_cursor cursor = { writer->at, writer->end, left };
	struct spoke_value item;
	size_t len;
	int32_t byte;

	do {
		unsigned char *at = spokei_hessian_put_chunk(&writer->put, left, &len);

		if (at == NULL)
			return;
		for (size_t i = 0; i < len; i++) {
			if (!spoke_cursor_next(&cursor, &item) ||
			    spoke_value_i32(item, &byte) != 0 || byte < -128 || byte > 255) {
				spokei_hessian_refuse(writer);
				return;
			}
			at[i] = (unsigned char)byte;
		}
		left -= len;
	} while (left > 0);
	writer->at = cursor.at;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_array(struct spokei_hessian_writer *writer,
			const struct spokei_hessian_type *type)
{
	struct spokei_hessian_name name = array_name(type);
	struct spokei_hessian_type item = *type;
	const unsigned char *value = writer->at;
	size_t count;

	if (spokei_hessian_type(writer) != SPOKE_VALUE_ARRAY ||
	    (type->dims == 1 && type->kind == 'C')) { /* Java writes char[] as a string */
		spokei_hessian_write_value(writer);
		return;
	}
	if (type->dims == 1 && type->kind == 'B') {
		write_bytes(writer);
		return;
	}
	item.dims--;
	count = spokei_hessian_open_next(writer);
	if (!spokei_hessian_open(writer, value))
		return;
	spokei_hessian_list_head(writer, &name, count);
	for (; count > 0 && writer->put.error == 0; count--)
		spokei_hessian_write_as(writer, &item);
	spokei_hessian_close(writer);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_as(struct spokei_hessian_writer *writer,
			     const struct spokei_hessian_type *type)
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
		spokei_hessian_write_value(writer);
}
