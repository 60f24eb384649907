/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values: the memory of a reader, its tables, and the containers. */
#include "transport/codec/hessian2/reader.h"

#include "core/memory/buffer.h"
#include "core/value/java.h"
#include "core/value/validator.h"

#include <spoke/value.h>

/* --- memory
 *
 * The memory of a reader. The table of references lies at the end of the memory in use and moves
 * when the scratch grows; its entry N lies N + 1 entries before the end. */

#define NUMBER_MAX SPOKEI_HESSIAN_NUMBER_MAX
#define FIELDS_MAX 65534u /* fields of a class; a map of 16 bits takes one more */

enum container {
	LIST, /* of a known length */
	OPEN_LIST,
	PLAIN_MAP,
	OBJECT,
};

/* Notes that the next value has this many levels of containers and exts. Returns 0 or
 * SPOKE_EDEPTH. */
SPOKE_MUST_USE static inline int deepen(struct spokei_hessian_reader *reader, uint32_t levels)
{
	uint32_t *deepest = reader->open > 0 ? &reader->frames[reader->open - 1].deepest : NULL;

	if (reader->depth_max - reader->depth < levels)
		return SPOKE_EDEPTH;
	if (deepest && *deepest < reader->depth + levels)
		*deepest = reader->depth + levels;
	return 0;
}

/* Writes an unsigned number in the fewest bytes. There is room for five bytes. */
static inline void emit_number(struct spokei_hessian_reader *reader, uint32_t number)
{
	if (number < 0x80)
		*reader->out++ = (unsigned char)number;
	else if (number <= UINT8_MAX)
		spokei_hessian_emit(reader, 0xcc, number, 1);
	else if (number <= UINT16_MAX)
		spokei_hessian_emit(reader, 0xcd, number, 2);
	else
		spokei_hessian_emit(reader, 0xce, number, 4);
}

#define ENTRY sizeof(struct spokei_hessian_entry)

static void settle(struct spokei_hessian_reader *reader)
{
	size_t held = reader->scratch->capacity;

	reader->capacity = held < reader->capacity_max ? held : reader->capacity_max;
}

int spokei_hessian_grow(struct spokei_hessian_reader *reader, size_t len)
{
	struct spokei_buffer *scratch = reader->scratch;
	size_t written = spokei_hessian_written(reader);
	size_t tables = ENTRY * reader->begun;
	size_t before = reader->capacity;
	size_t need = written + tables + len;

	reader->swollen |= need > reader->capacity_max;
	if (written > reader->bytes_max || reader->swollen)
		return SPOKE_ETOOLARGE;
	/* All bytes count as content, so that the buffer preserves them. */
	spokei_buffer_commit(scratch, before - scratch->end);
	if (spokei_buffer_reserve(scratch, need - before) == NULL)
		return SPOKE_ENOMEM;
	settle(reader);
	memmove(scratch->bytes + reader->capacity - tables, scratch->bytes + before - tables,
		tables);
	reader->out = scratch->bytes + written;
	reader->out_end = scratch->bytes + reader->capacity - tables;
	return 0;
}

/* Enters a container, which begins at the next byte of the output, into the table of references. */
static int enter(struct spokei_hessian_reader *reader, uint32_t *ret_number)
{
	int error = spokei_hessian_room(reader, ENTRY);
	struct spokei_hessian_entry entry = { 0 };

	if (error)
		return error;
	entry.at = spokei_hessian_written(reader);
	reader->out_end -= ENTRY;
	memcpy(reader->out_end, &entry, ENTRY);
	*ret_number = reader->begun++;
	return 0;
}

/* The table has the alignment of the scratch's end, which is any. */
static unsigned char *place_of(const struct spokei_hessian_reader *reader, uint32_t number)
{
	return reader->scratch->bytes + reader->capacity - ENTRY * ((size_t)number + 1);
}

static struct spokei_hessian_entry entry_of(const struct spokei_hessian_reader *reader,
					    uint32_t number)
{
	struct spokei_hessian_entry entry;

	memcpy(&entry, place_of(reader, number), ENTRY);
	return entry;
}

/* Completes the entry of a container that ends with the output. */
static void leave(struct spokei_hessian_reader *reader, uint32_t number, uint32_t items,
		  uint32_t levels)
{
	struct spokei_hessian_entry entry = entry_of(reader, number);

	entry.len = spokei_hessian_written(reader) - entry.at;
	entry.items = items;
	entry.levels = levels;
	memcpy(place_of(reader, number), &entry, ENTRY);
}

/* --- references */

/* Writes the head of an ext REF with a payload of `len` bytes, and makes room for the payload. */
static int put_reference(struct spokei_hessian_reader *reader, size_t len)
{
	int error = spokei_hessian_room(reader, 6 + len);

	if (error)
		return error;
	if (len == 2 || len == 4 || len == 8 || len == 16) {
		unsigned head = len == 2 ? 0xd5 : len == 4 ? 0xd6 : len == 8 ? 0xd7 : 0xd8;

		*reader->out++ = (unsigned char)head;
	} else if (len <= UINT8_MAX) {
		spokei_hessian_emit(reader, 0xc7, len, 1);
	} else if (len <= UINT16_MAX) {
		spokei_hessian_emit(reader, 0xc8, len, 2);
	} else {
		spokei_hessian_emit(reader, 0xc9, len, 4);
	}
	*reader->out++ = SPOKE_EXT_REF;
	return 0;
}

static unsigned number_len(uint32_t number)
{
	return number < 0x80 ? 1 : number <= UINT8_MAX ? 2 : number <= UINT16_MAX ? 3 : 5;
}

/* Writes a reference to a container that is still open. */
static int put_cycle(struct spokei_hessian_reader *reader, uint32_t distance)
{
	int error = put_reference(reader, number_len(distance) + 1);

	if (error)
		return error;
	emit_number(reader, distance);
	*reader->out++ = 0xc0;
	return 0;
}

/* Writes a reference with a copy of its target. */
static int put_copy(struct spokei_hessian_reader *reader, const struct spokei_hessian_entry *entry,
		    uint32_t distance)
{
	int error = spokei_hessian_count(reader, entry->items);

	reader->swollen |= entry->items > reader->copies;
	if (reader->swollen)
		return SPOKE_ETOOLARGE;
	reader->copies -= entry->items;
	if (error == 0)
		error = put_reference(reader, number_len(distance) + entry->len);
	if (error)
		return error;
	emit_number(reader, distance);
	memcpy(reader->out, reader->scratch->bytes + entry->at, entry->len);
	reader->out += entry->len;
	return 0;
}

/* Reads a reference, and writes it with a copy of its target. `own` is the number of the object if
 * the reference is its field `cause`, which may refer to the object; otherwise UINT32_MAX. */
static int read_reference(struct spokei_hessian_reader *reader, uint32_t own)
{
	struct spokei_hessian_entry entry;
	int32_t read;
	uint32_t number;
	int error;

	reader->at++;
	error = spokei_hessian_read_int(reader, &read);
	if (error)
		return error;
	number = (uint32_t)read;
	if (number >= reader->begun)
		return SPOKE_ECORRUPT;
	entry = entry_of(reader, number);
	error = deepen(reader, 1 + entry.levels); /* one of the ext */
	if (error == 0)
		error = spokei_hessian_count(reader, 2); /* the distance, and the copy or nil */
	if (error)
		return error;
	if (entry.len > 0)
		return put_copy(reader, &entry, reader->begun - number);
	if (!reader->cycles && number != own)
		return SPOKE_ECYCLE;
	return put_cycle(reader, reader->begun - number);
}

/* --- classes and types */

/* Reads any text, most of them fast. */
static inline int read_text(struct spokei_hessian_reader *reader)
{
	return spokei_hessian_take_text(reader) ? 0 : spokei_hessian_read_text(reader);
}

/* Reads a string that lies at another position of the body. Writes the position after it. */
static inline int read_text_at(struct spokei_hessian_reader *reader, uint32_t position,
			       uint32_t *ret_after)
{
	const unsigned char *here = reader->at;
	int error;

	reader->at = reader->body + position;
	error = read_text(reader);
	*ret_after = (uint32_t)(reader->at - reader->body);
	reader->at = here;
	return error;
}

/* Reads a name that is only checked: each object contains it. Clears `plain` unless it is ASCII of
 * less than 32 bytes. */
static inline int check_name(struct spokei_hessian_reader *reader, bool *plain)
{
	uint32_t start = spokei_hessian_written(reader);
	int error = 0;

	*plain &= *reader->at < 32;
	if (!spokei_hessian_take_text(reader)) {
		*plain = false;
		error = spokei_hessian_read_name(reader);
	}
	reader->out = reader->scratch->bytes + start;
	return error;
}

/* Reads a class definition into the table. */
static int define(struct spokei_hessian_reader *reader)
{
	struct spokei_hessian_definition *made = &reader->classes[reader->class_count];
	int32_t count;
	int error;

	if (reader->class_count == SPOKEI_HESSIAN_CLASSES_MAX)
		return SPOKE_ETOOLARGE;
	if (spokei_hessian_left(reader) < 2)
		return SPOKE_ETRUNCATED;
	made->name = (uint32_t)(reader->at - reader->body) + 1;
	reader->at++;
	made->plain = true;
	error = check_name(reader, &made->plain);
	if (error == 0)
		error = spokei_hessian_read_int(reader, &count);
	if (error)
		return error;
	if (count < 0)
		return SPOKE_ECORRUPT;
	if ((uint32_t)count > FIELDS_MAX)
		return SPOKE_ETOOLARGE;
	if ((uint32_t)count > spokei_hessian_left(reader))
		return SPOKE_ETRUNCATED;
	made->count = (uint32_t)count;
	made->names = (uint32_t)(reader->at - reader->body);
	reader->class_count++;
	while (error == 0 && count-- > 0) {
		if (spokei_hessian_left(reader) == 0)
			return SPOKE_ETRUNCATED;
		error = check_name(reader, &made->plain);
	}
	return error;
}

static bool is_text(unsigned tag)
{
	return tag < 0x20 || (tag >= 0x30 && tag < 0x34) || tag == 'R' || tag == 'S';
}

/* Reads the type of a list or map, which is a name or a number in the table, and writes its name.
 */
static int read_type(struct spokei_hessian_reader *reader)
{
	uint32_t after;
	int32_t number;
	int error;

	if (spokei_hessian_left(reader) == 0)
		return SPOKE_ETRUNCATED;
	if (is_text(*reader->at)) {
		if (reader->type_count == SPOKEI_HESSIAN_TYPES_MAX)
			return SPOKE_ETOOLARGE;
		reader->types[reader->type_count++] = (uint32_t)(reader->at - reader->body);
		return spokei_hessian_read_name(reader);
	}
	error = spokei_hessian_read_int(reader, &number);
	if (error)
		return error;
	if ((uint32_t)number >= reader->type_count)
		return SPOKE_ECORRUPT;
	return read_text_at(reader, reader->types[number], &after);
}

/* --- values
 *
 * Reads values. Containers that are open lie on a stack of frames, so nothing recurses; each step
 * reads the next value of the innermost container. The head of a container is written when it
 * begins, and completed when it ends if the body does not announce the count. */

#define TYPED_HEAD 6u /* bytes before the payload of an ext whose length takes four bytes */
#define VALUE_ROOM 16u

static struct spokei_hessian_frame *innermost(struct spokei_hessian_reader *reader)
{
	return &reader->frames[reader->open - 1];
}

/* Returns 0 if the body can hold this number of values, else an error: each takes at least a byte.
 */
static int check_count(const struct spokei_hessian_reader *reader, int32_t count)
{
	if (count < 0)
		return SPOKE_ECORRUPT;
	return (uint32_t)count > spokei_hessian_left(reader) ? SPOKE_ETRUNCATED : 0;
}

/* --- containers */

/* Opens a frame, and the ext around it if the container has a type. */
static int push(struct spokei_hessian_reader *reader, enum container kind, bool typed)
{
	struct spokei_hessian_frame *frame = &reader->frames[reader->open];
	unsigned levels = typed ? 2 : 1;
	int error;

	error = deepen(reader, levels);
	if (error == 0)
		error = enter(reader, &frame->number);
	if (error == 0)
		error = spokei_hessian_room(reader, TYPED_HEAD);
	if (error)
		return error;
	frame->at = spokei_hessian_written(reader);
	frame->kind = (uint8_t)kind;
	frame->levels = (uint8_t)levels;
	frame->left = 0;
	reader->depth += levels;
	frame->deepest = reader->depth;
	frame->items = reader->items;
	reader->open++;
	if (!typed)
		return 0;
	spokei_hessian_emit(reader, 0xc9, 0, 4);
	*reader->out++ = SPOKE_EXT_TYPED;
	error = spokei_hessian_count(reader, 2); /* the name and the container */
	return error ? error : read_type(reader);
}

static void put_count(unsigned char *at, uint64_t count, unsigned width)
{
	while (width-- > 0)
		*at++ = (unsigned char)(count >> 8 * width);
}

static void pop(struct spokei_hessian_reader *reader)
{
	const struct spokei_hessian_frame *frame = innermost(reader);
	unsigned char *at = reader->scratch->bytes + frame->at;
	unsigned char *head = reader->scratch->bytes + frame->head;

	if (frame->kind == OPEN_LIST)
		put_count(head + 1, frame->left, 4);
	else if (frame->kind == PLAIN_MAP)
		put_count(head + 1, frame->left / 2, 4);
	if (frame->levels == 2)
		put_count(at + 1, (uint64_t)(reader->out - at) - TYPED_HEAD, 4);
	reader->depth -= frame->levels;
	reader->open--;
	leave(reader, frame->number, frame->items - reader->items, frame->deepest - reader->depth);
	if (reader->open > 0 && innermost(reader)->deepest < frame->deepest)
		innermost(reader)->deepest = frame->deepest;
}

/* Writes the head of an array in the fewest bytes. */
static void put_array(struct spokei_hessian_reader *reader, uint32_t count)
{
	if (count < 16)
		*reader->out++ = (unsigned char)(0x90 | count);
	else if (count <= UINT16_MAX)
		spokei_hessian_emit(reader, 0xdc, count, 2);
	else
		spokei_hessian_emit(reader, 0xdd, count, 4);
}

static int begin_list(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	bool open = tag == 0x55 || tag == 0x57;
	bool typed = tag == 0x55 || tag == 0x56 || (tag & 0xf8) == 0x70;
	int32_t count = (int32_t)(tag & 7);
	int error = push(reader, open ? OPEN_LIST : LIST, typed);

	if (error == 0 && (tag == 0x56 || tag == 0x58))
		error = spokei_hessian_read_int(reader, &count);
	if (error == 0 && !open)
		error = check_count(reader, count);
	if (error == 0 && !open)
		error = spokei_hessian_count(reader, (uint32_t)count);
	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	if (error)
		return error;
	innermost(reader)->head = spokei_hessian_written(reader);
	if (open) {
		spokei_hessian_emit(reader, 0xdd, 0, 4);
		return 0;
	}
	innermost(reader)->left = (uint32_t)count;
	put_array(reader, (uint32_t)count);
	return 0;
}

static int begin_map(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	int error = push(reader, PLAIN_MAP, tag == 'M');

	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	if (error)
		return error;
	innermost(reader)->head = spokei_hessian_written(reader);
	spokei_hessian_emit(reader, 0xdf, 0, 4);
	return 0;
}

/* --- values */

enum {
	ONE,
	INT,
	NUM,
	TXT,
	BAD,
	BIN,
	LST,
	MAP,
	OBJ,
	DEF,
	REF
};

/* Maps the tag to the kind of value. */
static const uint8_t kinds[256] = {
	/* clang-format off */
	TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, /* 00 */
	TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT,
	BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, /* 20 */
	TXT, TXT, TXT, TXT, BIN, BIN, BIN, BIN, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM,
	BAD, BIN, BIN, DEF, NUM, BAD, ONE, BAD, MAP, NUM, NUM, NUM, NUM, MAP, ONE, OBJ, /* 40 */
	BAD, REF, TXT, TXT, ONE, LST, LST, LST, LST, NUM, BAD, NUM, NUM, NUM, NUM, NUM,
	OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, /* 60 */
	LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST,
	INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, /* 80 */
	INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT,
	INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, /* a0 */
	INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT, INT,
	NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, /* c0 */
	NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM,
	NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, /* e0 */
	NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM, NUM,
	/* clang-format on */
};

/* Reads a short text of ASCII, null, a bool or a number. Returns the byte after it, or NULL if it
 * is another value. There is room for it. */
static inline const unsigned char *take_scalar(const unsigned char *at, const unsigned char *end,
					       unsigned char **to)
{
	size_t left = (size_t)(end - at) - 1;
	unsigned char *out = *to;
	size_t len = *at++;

	if (SPOKEI_LIKELY(len == 0x30 && left > 0)) {
		len = *at++;
		left--;
	} else if (len >= 0x90 && len < 0xc0) {
		*(*to)++ = (unsigned char)(len - 0x90);
		return at;
	} else if (len >= 0x20) {
		return kinds[len] > NUM ? NULL : spokei_hessian_take_number(at - 1, end, to);
	}
	if (len > left)
		return NULL;
	if (len >= 32)
		*out++ = 0xd9;
	*out = (unsigned char)(len < 32 ? 0xa0 | len : len);
	*to = out + 1 + len;
	return SPOKEI_LIKELY(spokei_hessian_copy_ascii(out + 1, at, len)) ? at + len : NULL;
}

/* --- objects
 *
 * An object of scalars, as most are, is read in one pass. */

/* The largest length of a scalar that take_scalar() reads. */
#define SCALAR_MAX (3 + 255)

/* Copies a name of less than 32 bytes, and returns the byte after it. */
static inline const unsigned char *take_name(const unsigned char *at, unsigned char **to)
{
	size_t len = *at++;

	*(*to)++ = (unsigned char)(0xa0 | len);
	(void)spokei_hessian_copy_ascii(*to, at, len);
	*to += len;
	return at + len;
}

/* Reads the fields of an object whose names are plain, if all of them are scalars and there is
 * enough room. Returns the end of the values, or NULL. */
static const unsigned char *take_fields(const struct spokei_hessian_reader *reader,
					const struct spokei_hessian_definition *class,
					unsigned char **to)
{
	const unsigned char *name = reader->body + class->names;
	const unsigned char *at = reader->at;

	for (uint32_t i = 0; i < class->count; i++) {
		if (at == reader->end || reader->out_end - *to < 32 + SCALAR_MAX)
			return NULL;
		name = take_name(name, to);
		at = take_scalar(at, reader->end, to);
		if (at == NULL)
			return NULL;
	}
	return at;
}

/* Reads such an object. Returns false for any other, with nothing read. */
static bool read_plain(struct spokei_hessian_reader *reader,
		       const struct spokei_hessian_definition *class)
{
	struct spokei_hessian_entry entry = { .items = 2 * class->count + 2, .levels = 1 };
	unsigned char *to = reader->out;
	const unsigned char *at;

	if (!class->plain || class->count >= SPOKEI_OBJECT_SHORT || entry.items > reader->items ||
	    reader->out_end - to < 3 + 32 + SCALAR_MAX)
		return false;
	*to++ = SPOKEI_OBJECT_HEAD;
	*to++ = 0;
	*to++ = (unsigned char)(class->count + 1);
	at = take_fields(reader, class, &to);
	if (at == NULL || reader->out_end - to < (ptrdiff_t)(8 + 32 + ENTRY) ||
	    deepen(reader, 1) != 0)
		return false;
	memcpy(to, SPOKEI_CLASS_KEY, sizeof(SPOKEI_CLASS_KEY) - 1);
	to += sizeof(SPOKEI_CLASS_KEY) - 1;
	(void)take_name(reader->body + class->name, &to);
	entry.at = spokei_hessian_written(reader);
	entry.len = (uint32_t)(to - reader->out);
	reader->out_end -= ENTRY;
	memcpy(reader->out_end, &entry, ENTRY);
	reader->begun++;
	reader->items -= entry.items;
	reader->at = at;
	reader->out = to;
	return true;
}

static int begin_object(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	int32_t number = (int32_t)(tag & 15);
	const struct spokei_hessian_definition *class;
	int error = tag == 'O' ? spokei_hessian_read_int(reader, &number) : 0;

	if (error == 0 && (uint32_t)number >= reader->class_count)
		error = SPOKE_ECORRUPT;
	if (error)
		return error;
	class = &reader->classes[number];
	if (SPOKEI_LIKELY(read_plain(reader, class)))
		return 0;
	error = check_count(reader, (int32_t) class->count);
	if (error == 0)
		error = push(reader, OBJECT, false);
	if (error == 0)
		error = spokei_hessian_count(reader, 2 * class->count + 2);
	if (error)
		return error;
	innermost(reader)->left = class->count;
	innermost(reader)->names = class->names;
	innermost(reader)->class = (uint16_t)number;
	spokei_hessian_emit(reader, SPOKEI_OBJECT_HEAD, class->count + 1, 2);
	return 0;
}

/* --- any value */

/* Reads a value of one byte: null, a bool or a small int. */
static int read_byte(struct spokei_hessian_reader *reader)
{
	int error = spokei_hessian_room(reader, 1);
	unsigned tag;

	if (error)
		return error;
	tag = *reader->at++;
	*reader->out++ = (unsigned char)(tag == 'N'   ? 0xc0
					 : tag == 'F' ? 0xc2
					 : tag == 'T' ? 0xc3
						      : tag - 0x90);
	return 0;
}

/* Reads a value, or begins the container that the value is. `own` is as in read_reference(). */
static inline int begin_value(struct spokei_hessian_reader *reader, uint32_t own)
{
	int error = 0;

	while (error == 0) {
		if (SPOKEI_UNLIKELY(reader->at == reader->end))
			return SPOKE_ETRUNCATED;
		switch (kinds[*reader->at]) {
		case ONE:
		case INT:
			return read_byte(reader);
		case TXT:
			return read_text(reader);
		case NUM:
			return spokei_hessian_read_number(reader);
		case OBJ:
			return begin_object(reader);
		case LST:
			return begin_list(reader);
		case MAP:
			return begin_map(reader);
		case BIN:
			return spokei_hessian_read_binary(reader);
		case REF:
			return read_reference(reader, own);
		case DEF:
			error = define(reader);
			break;
		default:
			return SPOKE_ECORRUPT;
		}
	}
	return error;
}

/* Reads the values of a list until one of them is a container. */
static int step_list(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && frame->left > 0 && reader->open == open) {
		frame->left--;
		error = begin_value(reader, UINT32_MAX);
	}
	if (error == 0 && reader->open == open)
		pop(reader);
	return error;
}

/* Reads the values of a list or map whose end is marked, until one of them is a container. */
static int step_marked(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && reader->open == open) {
		if (reader->at == reader->end)
			return SPOKE_ETRUNCATED;
		if (*reader->at == 'Z') {
			reader->at++;
			if (frame->kind == PLAIN_MAP && frame->left % 2 != 0)
				return SPOKE_ECORRUPT;
			pop(reader);
			return 0;
		}
		error = spokei_hessian_count(reader, 1);
		if (error)
			return error;
		frame->left++;
		error = begin_value(reader, UINT32_MAX);
	}
	return error;
}

/* Ends an object by its class. */
static int end_object(struct spokei_hessian_reader *reader,
		      const struct spokei_hessian_frame *frame)
{
	const struct spokei_hessian_definition *class = &reader->classes[frame->class];
	bool few = class->count < SPOKEI_OBJECT_SHORT; /* `class` is one more pair */
	size_t len = few ? sizeof(SPOKEI_CLASS_KEY) - 1 : sizeof(SPOKEI_CLASS_KEY_LONG) - 1;
	int error = spokei_hessian_room(reader, len);
	uint32_t after;

	if (error)
		return error;
	memcpy(reader->out, few ? SPOKEI_CLASS_KEY : SPOKEI_CLASS_KEY_LONG, len);
	reader->out += len;
	error = read_text_at(reader, class->name, &after);
	if (error == 0)
		pop(reader);
	return error;
}

/* Returns whether the name at this position of the body is `cause`, which Java writes as one short
 * string. */
static bool is_cause(const struct spokei_hessian_reader *reader, uint32_t at, uint32_t after)
{
	return after - at == 6 && memcmp(reader->body + at, "\005cause", 6) == 0;
}

/* Reads the fields of an object until one of them is a container. */
static int step_object(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && frame->left > 0 && reader->open == open) {
		uint32_t name = frame->names;

		frame->left--;
		error = read_text_at(reader, name, &frame->names);
		if (error)
			return error;
		error = begin_value(reader, is_cause(reader, name, frame->names) ? frame->number
										 : UINT32_MAX);
	}
	return error || reader->open != open ? error : end_object(reader, frame);
}

/* Reads the rest of the containers that are open. */
static int read_open(struct spokei_hessian_reader *reader)
{
	int error = 0;

	while (error == 0 && reader->open > 0) {
		struct spokei_hessian_frame *frame = innermost(reader);

		if (frame->kind == OBJECT)
			error = step_object(reader, frame);
		else if (frame->kind == LIST)
			error = step_list(reader, frame);
		else
			error = step_marked(reader, frame);
	}
	return error;
}

/* --- bodies */

/* Returns how many values references may copy. */
static uint32_t copies_of(size_t max)
{
	size_t copies = max / SPOKEI_CODEC_VALUE;

	return copies < UINT32_MAX ? (uint32_t)copies : UINT32_MAX;
}

/* Applies the limits, less the values that are counted already. Returns 0, SPOKE_ETOOLARGE or
 * SPOKE_EINVAL. */
static inline int start_limits(struct spokei_hessian_reader *reader,
			       const struct spoke_value_limits *limits,
			       const struct spokei_codec_values *ret)
{
	struct spoke_value_limits settled;
	uint32_t items;

	if (SPOKEI_UNLIKELY(limits == NULL || !spokei_limits_are_settled(limits))) {
		int error = spokei_limits_settle(limits, &settled);

		if (error)
			return error;
		limits = &settled;
	}
	items = spokei_limits_items(limits);
	if (ret->items_before > items || ret->bytes_before > limits->bytes_max)
		return SPOKE_ETOOLARGE;
	reader->items = items - ret->items_before;
	reader->bytes_max = limits->bytes_max < UINT32_MAX ? (uint32_t)limits->bytes_max
							   : UINT32_MAX;
	reader->bytes_max -= ret->bytes_before;
	reader->depth_max = limits->depth_max;
	reader->cycles = limits->cycles;
	return 0;
}

/* Begins a body. The values are written at the start of the scratch, whose maximum bounds them. */
static inline int start(struct spokei_hessian_reader *reader, struct spoke_span body,
			struct spokei_buffer *scratch)
{
	size_t max = scratch->max;
	unsigned char *out;

	if (body.len > UINT32_MAX)
		return SPOKE_ETOOLARGE;
	spokei_buffer_clear(scratch);
	out = spokei_buffer_reserve(scratch, body.len < max ? body.len : max);
	if (out == NULL)
		return SPOKE_ENOMEM;
	reader->body = body.data;
	reader->at = reader->body;
	reader->end = reader->body + body.len;
	reader->scratch = scratch;
	reader->out = out;
	reader->capacity_max = max;
	settle(reader);
	reader->out_end = out + reader->capacity;
	reader->copies = copies_of(max);
	reader->swollen = false;
	reader->depth = 0;
	reader->open = 0;
	reader->begun = 0;
	reader->class_count = 0;
	reader->type_count = 0;
	return 0;
}

/* Notes where the next value begins. */
static inline void note_place(const struct spokei_hessian_reader *reader,
			      struct spokei_codec_values *ret)
{
	uint32_t body_at = (uint32_t)(reader->at - reader->body);

	ret->last = spokei_hessian_written(reader);
	if (ret->count <= SPOKEI_CODEC_TEXTS)
		ret->first[ret->count] = ret->last;
	if (ret->count == SPOKEI_CODEC_TEXTS && reader->class_count == 0)
		ret->body_args = body_at;
	/* The same bytes of an untyped map mean the same, unless it contains objects or
	 * references. */
	ret->body_last = *reader->at == 'H' ? body_at : SPOKEI_CODEC_NOWHERE;
}

unsigned char *spokei_hessian_take_scalars(struct spoke_span body, unsigned char *to,
					   uint32_t *ret_count)
{
	const unsigned char *at = body.data;
	const unsigned char *end = at + body.len;
	uint32_t count = 0;

	for (; at < end; count++) {
		if (count == SPOKEI_CODEC_SCALARS)
			return NULL;
		at = take_scalar(at, end, &to);
		if (at == NULL)
			return NULL;
	}
	*ret_count = count;
	return to;
}

_Static_assert(SPOKEI_CODEC_ROOM >= SPOKEI_CODEC_SCALARS * NUMBER_MAX, "room for numbers");

int spokei_hessian_read(struct spokei_hessian_reader *reader,
			const struct spoke_value_limits *limits, struct spoke_span body,
			struct spokei_buffer *scratch, struct spokei_codec_values *ret)
{
	int error = start_limits(reader, limits, ret);

	ret->count = 0;
	ret->body_args = ret->body_last = SPOKEI_CODEC_NOWHERE;
	reader->body = NULL;
	if (error == 0)
		error = start(reader, body, scratch);
	if (error)
		return error;
	for (; error == 0 && reader->at < reader->end; ret->count++) {
		note_place(reader, ret);
		error = spokei_hessian_count(reader, 1);
		if (error == 0)
			error = begin_value(reader, UINT32_MAX);
		if (error == 0 && reader->open > 0)
			error = read_open(reader);
	}
	return error;
}
