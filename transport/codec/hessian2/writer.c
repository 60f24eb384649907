/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes values as Hessian 2, in the forms that Java's writer chooses. Recursion is bounded by
 * SPOKEI_HESSIAN_DEPTH. Exts that are not of the codec's forms cannot be expressed.
 */
#include "transport/codec/hessian2/writer.h"

#include "core/value/java.h"
#include "transport/codec/hessian2/put.h"

#include <limits.h>
#include <string.h>

/* --- tables
 *
 * Finds types, classes and containers that were already written. Types and classes are searched
 * from the last one back, because the elements of a list tend to have the same class. The sum of
 * all comparisons is bounded by the length of the values. */

#define ENTRY_PRICE 8u /* of a comparison, in addition to the bytes */

bool spokei_hessian_know(struct spokei_hessian_writer *writer, struct spokei_hessian_table *table,
			 size_t since, uint32_t *ret_number)
{
	uint32_t first = table->count > SPOKEI_HESSIAN_KNOWN ? table->count - SPOKEI_HESSIAN_KNOWN
							     : 0;
	const unsigned char *bytes = spokei_buffer_data(writer->put.out);
	size_t len = spokei_hessian_put_len(&writer->put) - since;
	uint32_t number = table->count;

	*ret_number = number;
	if (writer->put.error)
		return true;
	while (number-- > first) {
		size_t at = table->entry[number % SPOKEI_HESSIAN_KNOWN].at;

		if (table->entry[number % SPOKEI_HESSIAN_KNOWN].len != len)
			continue;
		if (writer->compares < ENTRY_PRICE + len) {
			writer->compares = 0;
			break;
		}
		writer->compares -= ENTRY_PRICE + len;
		if (memcmp(bytes + at, bytes + since, len) == 0) {
			spokei_hessian_put_back(&writer->put, len);
			*ret_number = number;
			return true;
		}
	}
	table->entry[table->count % SPOKEI_HESSIAN_KNOWN].at = since;
	table->entry[table->count % SPOKEI_HESSIAN_KNOWN].len = len;
	table->count++;
	return false;
}

/* Returns how many bytes of these values are there from `at` on; 0: it is elsewhere. */
static size_t rest_of(struct spoke_span values, const unsigned char *at)
{
	uintptr_t before = (uintptr_t)at - (uintptr_t)values.data;

	return before < values.len ? values.len - before : 0;
}

bool spokei_hessian_is_target(const struct spokei_hessian_writer *writer, uint64_t distance,
			      struct spoke_span copy)
{
	const unsigned char *value;

	if (distance == 0 || distance > writer->containers || distance > SPOKEI_HESSIAN_RECENT)
		return false;
	value = writer->recent[(writer->containers - distance) % SPOKEI_HESSIAN_RECENT];
	return (copy.len <= rest_of(writer->body->values, value) ||
		copy.len <= rest_of(writer->body->pairs[0], value)) &&
	       memcmp(value, copy.data, copy.len) == 0;
}

/* --- reading
 *
 * The values are checked, but no length is trusted. */

bool spokei_hessian_take(struct spokei_hessian_writer *writer, struct spoke_value *ret)
{
	size_t len = writer->at < writer->end ? spokei_shape_len(writer->at, writer->end) : 0;
	const unsigned char *next = writer->at + len;

	if (SPOKEI_UNLIKELY(len == 0))
		next = writer->at < writer->end ? spokei_shape_skip(writer->at, writer->end) : NULL;
	if (SPOKEI_UNLIKELY(next == NULL)) {
		spokei_hessian_refuse(writer);
		return false;
	}
	*ret = (struct spoke_value){ writer->at, (size_t)(next - writer->at) };
	writer->at = next;
	return true;
}

/* Returns the content of a str whose head is complete. */
static struct spoke_span content_of(const unsigned char *str)
{
	const struct spokei_shape *shape = &spokei_shapes[*str];

	return (struct spoke_span){ str + 1 + shape->width,
				    (size_t)spokei_shape_number(shape, str) };
}

size_t spokei_hessian_open_next(struct spokei_hessian_writer *writer)
{
	const unsigned char *at = writer->at;
	const struct spokei_shape *shape = &spokei_shapes[*at];

	if ((size_t)(writer->end - at) <= shape->width) {
		spokei_hessian_refuse(writer);
		return 0;
	}
	writer->at = at + 1 + shape->width;
	return (size_t)spokei_shape_number(shape, at) * shape->each;
}

/* --- heads
 *
 * Writes the heads of containers: tags, lengths, types and definitions of classes. */

#define NAME_MAX 1024u /* bytes of a name that is made of a descriptor */

static void put_name(struct spokei_hessian_put *put, const struct spokei_hessian_name *name)
{
	char text[NAME_MAX];

	if (!name->declared) {
		spokei_hessian_put_string(put, name->text, name->len);
		return;
	}
	if (name->len > NAME_MAX || name->dims > NAME_MAX - name->len) {
		spokei_hessian_put_fail(put, SPOKE_EUNSUPPORTED);
		return;
	}
	memset(text, '[', name->dims);
	for (size_t i = 0; i < name->len; i++)
		text[name->dims + i] = (char)(name->text[i] == '/' ? '.' : name->text[i]);
	spokei_hessian_put_string(put, text, name->dims + name->len);
}

/* Appends the name of a type, or its number from the second time on. */
static void put_type(struct spokei_hessian_writer *writer, const struct spokei_hessian_name *name)
{
	size_t since = spokei_hessian_put_len(&writer->put);
	uint32_t number;

	put_name(&writer->put, name);
	if (spokei_hessian_know(writer, &writer->types, since, &number))
		spokei_hessian_put_int(&writer->put, (int32_t)number);
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

void spokei_hessian_reference(struct spokei_hessian_writer *writer, uint32_t number)
{
	spokei_hessian_put_byte(&writer->put, 'Q');
	spokei_hessian_put_int(&writer->put, (int32_t)number);
}

/* Begins the definition of a class. The names of its fields follow. */
static void begin_class(struct spokei_hessian_put *put, const struct spokei_hessian_name *name,
			size_t fields)
{
	spokei_hessian_put_byte(put, 'C');
	put_name(put, name);
	spokei_hessian_put_int(put, (int32_t)fields);
}

/* Ends a definition, which is taken back if the class is known, and writes the head of an object.
 * Returns the number of the class. */
static uint32_t end_class(struct spokei_hessian_writer *writer, size_t since)
{
	uint32_t number;

	(void)spokei_hessian_know(writer, &writer->classes, since, &number);
	writer->plan = NULL;
	if (number <= 0xf) {
		spokei_hessian_put_byte(&writer->put, 0x60 + number);
	} else {
		spokei_hessian_put_byte(&writer->put, 'O');
		spokei_hessian_put_int(&writer->put, (int32_t)number);
	}
	return number;
}

bool spokei_hessian_open_made(struct spokei_hessian_writer *writer,
			      const struct spokei_hessian_name *name, const char *const *fields,
			      size_t count)
{
	size_t since = spokei_hessian_put_len(&writer->put);

	if (!spokei_hessian_open(writer, NULL))
		return false;
	begin_class(&writer->put, name, count);
	for (size_t i = 0; i < count; i++)
		spokei_hessian_put_string(&writer->put, fields[i], strlen(fields[i]));
	(void)end_class(writer, since);
	return true;
}

/* --- scalars
 *
 * Null, bools, numbers and short texts of ASCII need no state. */

typedef struct spokei_hessian_step step;

/* Writes a float, or a double. */
static SPOKEI_NOINLINE step put_double(const unsigned char *at, unsigned char *to)
{
	unsigned width = *at == 0xca ? 4 : 8;
	uint32_t bits = (uint32_t)spokei_number_32(at + 1);
	uint64_t wide = spokei_number(at + 1, width);
	double number;
	float narrow;

	memcpy(&number, &wide, sizeof(number));
	memcpy(&narrow, &bits, sizeof(narrow));
	to = width == 4 ? spokei_hessian_float(to, narrow) : spokei_hessian_double(to, number);
	return (step){ at + 1 + width, to };
}

/* Writes a binary that fits into one chunk, whose head has one or two bytes of the length. */
static step put_binary(const unsigned char *at, const unsigned char *end, unsigned char *to,
		       const unsigned char *limit)
{
	size_t head = *at == 0xc4 ? 2 : 3;
	size_t left = (size_t)(end - at);
	size_t len = left < head ? SIZE_MAX : (size_t)spokei_number(at + 1, (unsigned)head - 1);

	if (*at == 0xc6 || len > SPOKEI_HESSIAN_CHUNK_MAX || len > left - head ||
	    len + 3 > (size_t)(limit - to))
		return (step){ NULL, to };
	at += head;
	to = len <= 15 ? spokei_hessian_wide(to, 0x20 | (unsigned)len, 0, 0)
	     : len <= SPOKEI_HESSIAN_SHORT_MAX
		     ? spokei_hessian_wide(to, 0x34 | (unsigned)(len >> 8), len, 1)
		     : spokei_hessian_wide(to, 'B', len, 2);
	memcpy(to, at, len);
	return (step){ at + len, to + len };
}

/* Writes another scalar than a text. */
static SPOKEI_NOINLINE step put_other(const unsigned char *at, const unsigned char *end,
				      unsigned char *to, const unsigned char *limit)
{
	size_t len = spokei_shape_lens[*at];
	int64_t number;

	if (*at >= 0xc4 && *at <= 0xc6)
		return put_binary(at, end, to, limit);
	if (len > (size_t)(end - at) || limit - to < (ptrdiff_t)SPOKEI_HESSIAN_NUMBER_MAX)
		return (step){ NULL, to };
	switch (*at) {
	case 0xc0:
	case 0xc2:
	case 0xc3:
		*to = *at == 0xc0 ? 'N' : *at == 0xc3 ? 'T' : 'F';
		return (step){ at + 1, to + 1 };
	case 0xca:
	case 0xcb:
		return put_double(at, to);
	case 0xcc:
		number = at[1];
		break;
	case 0xcd:
		number = (int64_t)spokei_number(at + 1, 2);
		break;
	case 0xce:
		number = (int64_t)spokei_number_32(at + 1);
		break;
	case 0xd0:
		number = (at[1] ^ 0x80) - 0x80;
		break;
	case 0xd1:
		number = (int16_t)spokei_number(at + 1, 2);
		break;
	case 0xd2:
		number = (int32_t)spokei_number_32(at + 1);
		break;
	case 0xcf:
	case 0xd3:
		number = (int64_t)spokei_number_64(at + 1);
		break;
	default:
		if (*at >= 0x80 && *at < 0xe0)
			return (step){ NULL, to };
		number = (*at ^ 0x80) - 0x80;
		break;
	}
	if (*at == 0xcf && number < 0)
		return (step){ NULL, to };
	if (len == 9 || number > INT32_MAX)
		return (step){ at + len, spokei_hessian_long(to, number) };
	return (step){ at + len, spokei_hessian_int(to, number) };
}

/* Writes one scalar. `at` is NULL in the result if the value is another one, or there is too little
 * room. */
static inline step put_scalar(const unsigned char *at, const unsigned char *end, unsigned char *to,
			      const unsigned char *limit)
{
	size_t left = (size_t)(end - at) - 1;
	size_t len = (size_t)*at - 0xa0;

	if (SPOKEI_LIKELY(*at == 0xd9 && left > 0)) {
		len = *++at;
		left--;
	} else if (*at < 0x30 && to < limit) {
		*to = (unsigned char)(0x90 + *at);
		return (step){ at + 1, to + 1 };
	} else if (len >= 32) {
		return *at >= 0x80 && *at < 0xa0 ? (step){ NULL, to }
						 : put_other(at, end, to, limit);
	}
	if (len > left || len + 2 > (size_t)(limit - to))
		return (step){ NULL, to };
	if (len >= 32)
		*to++ = 0x30;
	*to++ = (unsigned char)len;
	at++;
	if (SPOKEI_UNLIKELY(!spokei_hessian_copy_ascii(to, at, len)))
		return (step){ NULL, to };
	return (step){ at + len, to + len };
}

unsigned char *spokei_hessian_put_scalars(unsigned char *to, const unsigned char *limit,
					  struct spoke_span values)
{
	step next = { values.data, to };
	const unsigned char *end = next.at + values.len;

	while (next.at < end) {
		next = put_scalar(next.at, end, next.out, limit);
		if (next.at == NULL)
			return NULL;
	}
	return next.out;
}

/* Writes scalars that come next, at most `count`, and returns how many. */
static inline size_t write_scalars(struct spokei_hessian_writer *writer, size_t count)
{
	step next = { writer->at, writer->put.at };
	size_t done = 0;

	while (done < count && next.at < writer->end) {
		step after = put_scalar(next.at, writer->end, next.out, writer->put.end);

		if (SPOKEI_UNLIKELY(after.at == NULL))
			break;
		next = after;
		done++;
	}
	writer->at = next.at;
	writer->put.at = next.out;
	return done;
}

/* Writes a scalar of any length, for which there may be no room. */
static void write_scalar(struct spokei_hessian_writer *writer, unsigned type)
{
	unsigned char bytes[SPOKEI_HESSIAN_NUMBER_MAX];
	struct spoke_span content = { 0 };
	struct spoke_value value;
	step made;

	if (!spokei_hessian_take(writer, &value))
		return;
	if (type == SPOKE_VALUE_STR) {
		content = content_of(value.data);
		spokei_hessian_put_string(&writer->put, content.data, content.len);
	} else if (type == SPOKE_VALUE_BIN) {
		(void)!spoke_value_bin(value, &content);
		spokei_hessian_put_binary(&writer->put, content.data, content.len);
	} else {
		made = put_other(value.data, writer->at, bytes, bytes + sizeof(bytes));
		if (made.at)
			spokei_hessian_put_raw(&writer->put, bytes, (size_t)(made.out - bytes));
		else
			spokei_hessian_refuse(writer);
	}
}

/* --- objects
 *
 * Finds the fields and the class of a map that is an object. Values inside the map are passed
 * over, not looked at. */

/* Passes a value of a map, and counts the bytes of a container. Each map that lies in another one
 * is passed once for each, so the sum is bounded. Returns NULL after an error. */
static inline const unsigned char *pass_value(struct spokei_hessian_writer *writer,
					      const unsigned char *at)
{
	size_t len = at < writer->end ? spokei_shape_len(at, writer->end) : 0;
	const unsigned char *next;

	if (SPOKEI_LIKELY(len > 0))
		return at + len;
	next = at < writer->end ? spokei_shape_skip(at, writer->end) : NULL;
	if (next && (size_t)(next - at) > writer->passes) {
		spokei_hessian_put_fail(&writer->put, SPOKE_EDEPTH);
		return NULL;
	}
	if (next)
		writer->passes -= (size_t)(next - at);
	return next;
}

/* Reads the pairs of the next value. Returns false unless it is a map, all keys are str and all
 * pairs are there. Writes the last pair, if there is one. */
static bool read_pairs(struct spokei_hessian_writer *writer, struct spokei_hessian_object *ret,
		       const unsigned char **ret_key, const unsigned char **ret_value)
{
	const unsigned char *head = writer->at;
	const unsigned char *at;

	if (spokei_hessian_type(writer) != SPOKE_VALUE_MAP)
		return false;
	ret->fields = spokei_hessian_open_next(writer) / 2;
	at = ret->pairs = writer->at;
	writer->at = head;
	ret->renamed = false;
	ret->flat = true;
	for (size_t i = 0; i < ret->fields; i++) {
		if (at >= writer->end || spokei_shapes[*at].type != SPOKE_VALUE_STR)
			return false;
		if (i < SPOKEI_HESSIAN_KEYS)
			ret->key[i] = at;
		*ret_key = at;
		*ret_value = at = pass_value(writer, at);
		if (at == NULL || at >= writer->end)
			return false;
		ret->flat = ret->flat && spokei_shapes[*at].each == 0 &&
			    spokei_shapes[*at].type != SPOKE_VALUE_EXT;
		at = pass_value(writer, at);
		if (at == NULL)
			return false;
	}
	ret->end = at;
	return true;
}

bool spokei_hessian_find_fields(struct spokei_hessian_writer *writer,
				struct spokei_hessian_object *ret)
{
	const unsigned char *key;
	const unsigned char *value;

	return read_pairs(writer, ret, &key, &value);
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
	const unsigned char *key;
	const unsigned char *value;
	struct spoke_span name;

	if (spokei_hessian_type(writer) != SPOKE_VALUE_MAP ||
	    !spokei_may_be_object(objects, *map.data) || !read_pairs(writer, ret, &key, &value) ||
	    ret->fields == 0 ||
	    !spokei_is_object(objects, map, (struct spoke_value){ key, (size_t)(value - key) },
			      (struct spoke_value){ value, (size_t)(ret->end - value) }, &name) ||
	    (writer->generic && !any && !stays_object(name)))
		return false;
	ret->fields--;
	ret->name = (struct spokei_hessian_name){ name.data, name.len, 0, false };
	return true;
}

static bool is_message(struct spoke_span text)
{
	return text.len == 7 && memcmp(text.data, "message", 7) == 0;
}

/* Appends the names of the fields. */
static void put_fields(struct spokei_hessian_writer *writer,
		       const struct spokei_hessian_object *object)
{
	struct spokei_hessian_put *put = &writer->put;
	bool rename = object->renamed;
	const unsigned char *at = object->pairs;

	for (size_t i = 0; i < object->fields; i++) {
		struct spoke_span name = content_of(i < SPOKEI_HESSIAN_KEYS ? object->key[i] : at);

		if (rename && is_message(name)) {
			spokei_hessian_put_string(put, "detailMessage", 13);
			rename = false;
		} else {
			spokei_hessian_put_string(put, name.data, name.len);
		}
		if (object->fields > SPOKEI_HESSIAN_KEYS)
			at = pass_value(writer, pass_value(writer, at));
		if (at == NULL)
			return;
	}
}

bool spokei_hessian_open_object(struct spokei_hessian_writer *writer,
				const struct spokei_hessian_object *object, uint32_t *ret_number)
{
	size_t since = spokei_hessian_put_len(&writer->put);

	if (!spokei_hessian_open(writer, writer->at))
		return false;
	begin_class(&writer->put, &object->name, object->fields);
	put_fields(writer, object);
	*ret_number = end_class(writer, since);
	writer->at = object->pairs;
	return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
uint32_t spokei_hessian_write_object(struct spokei_hessian_writer *writer,
				     const struct spokei_hessian_object *object)
{
	struct spoke_value key;
	uint32_t number;

	if (!spokei_hessian_open_object(writer, object, &number))
		return UINT32_MAX;
	for (size_t i = 0; i < object->fields && writer->put.error == 0; i++)
		if (spokei_hessian_take(writer, &key) && spokei_hessian_write_values(writer, 1) > 0)
			spokei_hessian_refuse(writer);
	writer->at = object->end;
	spokei_hessian_close(writer);
	return number;
}

/* --- plans
 *
 * The definition that was written of a class is the plan of its next objects: if a map has the same
 * keys, its values are written in one pass over it. All names of a plan are of less than 32 bytes
 * of ASCII, and there are few fields. */

/* Returns where a text with a head below 32 ends if the str at `at` is the same, else NULL. */
static inline const unsigned char *pass_same(const unsigned char *at, const unsigned char *end,
					     const unsigned char *text)
{
	size_t len = *text;

	if (len >= (size_t)(end - at) || *at != (0xa0 | len) ||
	    !spokei_hessian_same(at + 1, text + 1, len))
		return NULL;
	return at + 1 + len;
}

/* Returns the name of the class, which is followed by the number of fields and their names. */
static inline const unsigned char *name_of(const unsigned char *plan)
{
	return plan + 2; /* after the length and the tag */
}

static inline const unsigned char *fields_of(const unsigned char *plan)
{
	return name_of(plan) + 1 + *name_of(plan);
}

/* Returns whether a map of these pairs may be an object of the plan, by its first key. */
static inline bool may_be(const unsigned char *plan, size_t pairs, const unsigned char *at,
			  const unsigned char *end)
{
	const unsigned char *fields = fields_of(plan);

	return *fields == 0x90 + pairs - 1 && (pairs == 1 || pass_same(at, end, fields + 1));
}

static const unsigned char *find_plan(const struct spokei_buffer *plans, size_t pairs,
				      const unsigned char *at, const unsigned char *end)
{
	const unsigned char *plan = spokei_buffer_data(plans);
	const unsigned char *last = plan ? plan + spokei_buffer_len(plans) : NULL;

	for (; plan < last; plan += 1 + *plan)
		if (may_be(plan, pairs, at, end))
			return plan;
	return NULL;
}

/* Writes the head of an object, and the values of the pairs from `at` on, the last of which is the
 * class. Returns false if the map is of another class, or a value is no scalar. */
static inline bool put_pairs(struct spokei_hessian_writer *writer, const unsigned char *at,
			     const unsigned char *plan, uint32_t number)
{
	static const char key[] = SPOKEI_CLASS_KEY;
	const unsigned char *end = writer->end;
	const unsigned char *limit = writer->put.end;
	const unsigned char *name = fields_of(plan);
	step next = { at, writer->put.at };

	if (next.out == limit)
		return false;
	*next.out++ = (unsigned char)(0x60 + number);
	for (size_t fields = (size_t)*name++ - 0x90; fields > 0; fields--) {
		at = next.at < end ? pass_same(next.at, end, name) : NULL;
		if (at == NULL || at == end)
			return false;
		next = put_scalar(at, end, next.out, limit);
		if (next.at == NULL)
			return false;
		name += 1 + *name;
	}
	at = next.at + sizeof(key) - 1;
	if ((size_t)(end - next.at) < sizeof(key) || memcmp(next.at, key, sizeof(key) - 1) != 0)
		return false;
	at = pass_same(at, end, name_of(plan));
	if (at == NULL)
		return false;
	(void)spokei_hessian_begin(writer, writer->at);
	writer->put.at = next.out;
	writer->at = at;
	return true;
}

/* Does the same for the first object of a class in a body. */
static bool put_first(struct spokei_hessian_writer *writer, const unsigned char *at,
		      const unsigned char *plan)
{
	size_t since = spokei_hessian_put_len(&writer->put);
	uint32_t number;
	bool known;

	if (writer->classes.count > 0xf) /* so that the search replaces no entry */
		return false;
	spokei_hessian_put_raw(&writer->put, plan + 1, *plan);
	known = spokei_hessian_know(writer, &writer->classes, since, &number);
	if (writer->put.error)
		return false;
	if (put_pairs(writer, at, plan, number)) {
		writer->plan = plan;
		writer->number = number;
		return true;
	}
	if (!known) {
		spokei_hessian_put_back(&writer->put, *plan);
		writer->classes.count--;
	}
	return false;
}

bool spokei_hessian_write_planned(struct spokei_hessian_writer *writer)
{
	const unsigned char *at = writer->at;
	const unsigned char *plan = writer->plan;
	size_t pairs = (size_t)*at - 0x80;

	if (pairs < 16)
		at++;
	else if (*at == SPOKEI_OBJECT_HEAD && writer->end - at > 2)
		pairs = (size_t)spokei_number(at + 1, 2), at += 3;
	if (pairs - 1 >= SPOKEI_OBJECT_SHORT || writer->plans == NULL || writer->generic ||
	    writer->depth == SPOKEI_HESSIAN_DEPTH || at == writer->end)
		return false;
	if (SPOKEI_LIKELY(plan && may_be(plan, pairs, at, writer->end)))
		return put_pairs(writer, at, plan, writer->number);
	plan = find_plan(writer->plans, pairs, at, writer->end);
	return plan && put_first(writer, at, plan);
}

/* Returns whether the names of a definition have the form that plans need. `len`: of all of it. */
static bool is_plain(const unsigned char *definition, size_t len)
{
	const unsigned char *end = definition + len;
	const unsigned char *name = definition + 1; /* after the tag */
	const unsigned char *fields = name + 1 + *name;
	unsigned count = *name < 32 && fields < end ? *fields - 0x90u : UINT_MAX;

	if (len > UINT8_MAX || count >= SPOKEI_OBJECT_SHORT ||
	    !spokei_hessian_is_ascii(name, (size_t)(fields - name)) ||
	    !spokei_hessian_is_ascii(fields + 1, (size_t)(end - fields) - 1))
		return false;
	for (name = fields + 1; count > 0 && *name < 32; count--)
		name += 1 + *name;
	return count == 0;
}

/* Adds a plan, unless it is there. NULL: there is no memory. */
static const unsigned char *add_plan(struct spokei_buffer *plans, const unsigned char *definition,
				     size_t len)
{
	unsigned char *plan = spokei_buffer_data(plans);
	const unsigned char *last = plan ? plan + spokei_buffer_len(plans) : NULL;

	for (; plan < last; plan += 1 + *plan)
		if (*plan == len && memcmp(plan + 1, definition, len) == 0)
			return plan;
	if (1 + len > plans->max - spokei_buffer_len(plans))
		spokei_buffer_clear(plans);
	plan = spokei_buffer_reserve(plans, 1 + len);
	if (plan) {
		*plan = (unsigned char)len;
		memcpy(plan + 1, definition, len);
		spokei_buffer_commit(plans, 1 + len);
	}
	return plan;
}

/* Keeps the definition of the class of an object, which its map names, as a plan. */
static void keep_plan(struct spokei_hessian_writer *writer, uint32_t number,
		      const struct spokei_hessian_object *object)
{
	const unsigned char *bytes = spokei_buffer_data(writer->put.out);
	struct spoke_span name = { object->name.text, object->name.len };
	size_t len;

	writer->plan = NULL;
	if (writer->plans == NULL || writer->put.error || writer->generic || number > 0xf ||
	    !object->flat || writer->classes.count > SPOKEI_HESSIAN_KNOWN ||
	    spokei_java_identifiers(name) < 2)
		return;
	bytes += writer->classes.entry[number].at;
	len = writer->classes.entry[number].len;
	if (!is_plain(bytes, len))
		return;
	writer->plan = add_plan(writer->plans, bytes, len);
	writer->number = number;
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
	return enter(writer, spokei_hessian_begin(writer, value));
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
		spokei_hessian_put_byte(&writer->put, name ? 'M' : 'H');
	if (!list && name)
		put_type(writer, name);
	if (spokei_hessian_write_values(writer, count) > 0)
		spokei_hessian_refuse(writer);
	if (!list)
		spokei_hessian_put_byte(&writer->put, 'Z');
	spokei_hessian_close(writer);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian_write_found(struct spokei_hessian_writer *writer,
				const struct spokei_hessian_object *object)
{
	keep_plan(writer, spokei_hessian_write_object(writer, object), object);
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
	name = (struct spokei_hessian_name){ span.data, span.len, 0, false };
	spokei_hessian_write_container(writer, value, &name);
}

/* Writes a reference to a container that is open: a cycle. Without that container, the value is
 * null, as it reads. */
static void write_cycle(struct spokei_hessian_writer *writer, uint64_t distance)
{
	uint32_t number = (uint32_t)(writer->containers - distance);

	for (uint32_t i = 0; i < writer->depth; i++) {
		if (distance <= writer->containers && writer->open[i] == number) {
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
		spokei_hessian_reference(writer, (uint32_t)(writer->containers - distance));
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

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_map(struct spokei_hessian_writer *writer)
{
	struct spokei_hessian_object object;

	if (spokei_hessian_write_planned(writer))
		return;
	if (spokei_hessian_find_object(writer, false, &object))
		spokei_hessian_write_found(writer, &object);
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

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
size_t spokei_hessian_write_values(struct spokei_hessian_writer *writer, size_t count)
{
	while (count > 0 && spokei_hessian_more(writer)) {
		count -= write_scalars(writer, count);
		if (count > 0 && writer->at < writer->end) {
			spokei_hessian_write_value(writer);
			count--;
		}
	}
	return count;
}
