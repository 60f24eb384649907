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

/* Reads a name that is only checked, because each object contains it. */
static int check_name(struct spokei_hessian_reader *reader)
{
	uint32_t start = spokei_hessian_written(reader);
	int error = spokei_hessian_left(reader) > 0 ? spokei_hessian_read_name(reader)
						    : SPOKE_ETRUNCATED;

	reader->out = reader->scratch->bytes + start;
	return error;
}

/* Passes names of less than 32 bytes of ASCII. Returns false if there are others. */
static bool pass_plain_names(struct spokei_hessian_reader *reader, uint32_t count)
{
	const unsigned char *at = reader->at;

	for (; count > 0; count--) {
		if (at >= reader->end || *at >= 32)
			return false;
		at += 1 + *at;
	}
	if (at > reader->end || !spokei_hessian_is_ascii(reader->at, (size_t)(at - reader->at)))
		return false;
	reader->at = at;
	return true;
}

/* Reads names. Clears `plain` if there are others than those above. */
static int check_names(struct spokei_hessian_reader *reader, uint32_t count, bool *plain)
{
	int error = 0;

	if (SPOKEI_LIKELY(pass_plain_names(reader, count)))
		return 0;
	*plain = false;
	for (; error == 0 && count > 0; count--)
		error = check_name(reader);
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
	reader->at++;
	made->name = (uint32_t)(reader->at - reader->body);
	made->plain = true;
	error = check_names(reader, 1, &made->plain);
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
	return check_names(reader, made->count, &made->plain);
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
	if (spokei_hessian_kinds[*reader->at] == SPOKEI_HESSIAN_TEXT) {
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

/* Enters a container into the table of references; the length of one that is open is 0. There is
 * room. */
static inline uint32_t enter(struct spokei_hessian_reader *reader,
			     struct spokei_hessian_entry entry)
{
	reader->out_end -= ENTRY;
	memcpy(reader->out_end, &entry, ENTRY);
	return reader->begun++;
}

/* Opens a frame for a container, which begins at the position `at` of the output. There is room for
 * VALUE_ROOM bytes then. `levels`: of the container, and the ext around it. */
static inline int push(struct spokei_hessian_reader *reader, enum container kind, unsigned levels,
		       uint32_t at)
{
	int error = reader->depth_max - reader->depth < levels
			    ? SPOKE_EDEPTH
			    : spokei_hessian_room(reader, ENTRY + VALUE_ROOM);
	struct spokei_hessian_frame *frame = &reader->frames[reader->open];

	if (SPOKEI_UNLIKELY(error))
		return error;
	reader->depth += levels;
	reader->open++;
	frame->at = frame->head = at;
	frame->left = 0;
	frame->number = enter(reader, (struct spokei_hessian_entry){ .at = at });
	frame->items = reader->items;
	frame->deepest = reader->depth;
	frame->kind = (uint8_t)kind;
	frame->levels = (uint8_t)levels;
	return 0;
}

/* Does the same for a list or map, and opens the ext around it if it has a type. */
static int push_any(struct spokei_hessian_reader *reader, enum container kind, bool typed)
{
	int error = push(reader, kind, typed ? 2 : 1, spokei_hessian_written(reader));

	if (error || !typed)
		return error;
	spokei_hessian_emit(reader, 0xc9, 0, 4);
	*reader->out++ = SPOKE_EXT_TYPED;
	error = spokei_hessian_count(reader, 2); /* the name and the container */
	if (error == 0)
		error = read_type(reader);
	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	innermost(reader)->head = spokei_hessian_written(reader);
	return error;
}

static void put_count(unsigned char *at, uint64_t count, unsigned width)
{
	while (width-- > 0)
		*at++ = (unsigned char)(count >> 8 * width);
}

/* Closes the innermost frame, and completes its entry in the table of references. */
static inline void pop(struct spokei_hessian_reader *reader)
{
	const struct spokei_hessian_frame *frame = innermost(reader);
	struct spokei_hessian_entry entry = {
		.at = frame->at,
		.len = spokei_hessian_written(reader) - frame->at,
		.items = frame->items - reader->items,
		.levels = frame->deepest - reader->depth + frame->levels,
	};
	uint32_t deepest = frame->deepest;

	memcpy(place_of(reader, frame->number), &entry, ENTRY);
	reader->depth -= frame->levels;
	reader->open--;
	if (reader->open > 0 && innermost(reader)->deepest < deepest)
		innermost(reader)->deepest = deepest;
}

/* Does the same for a list or map, and completes its head, and that of the ext around it. */
static void pop_any(struct spokei_hessian_reader *reader)
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
	pop(reader);
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
	int error = push_any(reader, open ? OPEN_LIST : LIST, typed);

	if (error == 0 && (tag == 0x56 || tag == 0x58))
		error = spokei_hessian_read_int(reader, &count);
	if (error == 0 && !open)
		error = check_count(reader, count);
	if (error == 0 && !open)
		error = spokei_hessian_count(reader, (uint32_t)count);
	if (error)
		return error;
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
	int error = push_any(reader, PLAIN_MAP, tag == 'M');

	if (error == 0)
		spokei_hessian_emit(reader, 0xdf, 0, 4);
	return error;
}

/* --- values */

typedef struct spokei_hessian_step step;

/* Reads a short text of ASCII, a binary of one chunk, null, a bool or a number. `at` is NULL in the
 * result if it is another value, or there is too little room. */
static inline step take_scalar(const unsigned char *at, const unsigned char *end,
			       unsigned char *out, const unsigned char *limit)
{
	size_t left = (size_t)(end - at) - 1;
	size_t len = *at;

	if (SPOKEI_LIKELY(len == 0x30 && left > 0)) {
		len = *++at;
		left--;
	} else if (len >= 0x90 && len < 0xc0 && out < limit) {
		*out = (unsigned char)(len - 0x90);
		return (step){ at + 1, out + 1 };
	} else if (len >= 0x20) {
		return len >= 0x60 && len < 0x80 ? (step){ NULL, out }
						 : spokei_hessian_take_other(at, end, out, limit);
	}
	at++;
	if (len > left || len + 2 > (size_t)(limit - out))
		return (step){ NULL, out };
	if (len >= 32)
		*out++ = 0xd9;
	*out++ = (unsigned char)(len < 32 ? 0xa0 | len : len);
	if (SPOKEI_UNLIKELY(!spokei_hessian_copy_ascii(out, at, len)))
		return (step){ NULL, out };
	return (step){ at + len, out + len };
}

/* Reads such values, at most `max`. Returns how many there are before another value. */
static inline uint32_t take_scalars(struct spokei_hessian_reader *reader, uint32_t max)
{
	step next = { reader->at, reader->out };
	uint32_t count = 0;

	while (count < max && next.at < reader->end) {
		step after = take_scalar(next.at, reader->end, next.out, reader->out_end);

		if (after.at == NULL)
			break;
		next = after;
		count++;
	}
	reader->at = next.at;
	reader->out = next.out;
	return count;
}

/* --- objects */

#define NAME_ROOM 33 /* bytes that take_name() writes */

/* Copies a name of a plain class. There is room for NAME_ROOM bytes. */
static inline step take_name(const unsigned char *at, const unsigned char *end, unsigned char *out)
{
	size_t len = *at++;

	*out++ = (unsigned char)(0xa0 | len);
	if (SPOKEI_LIKELY(end - at >= 32))
		memcpy(out, at, 32);
	else
		memcpy(out, at, len);
	return (step){ at + len, out + len };
}

/* The fields of an object that are still to come. */
struct fields {
	const unsigned char *name; /* in the definition */
	uint32_t left;
};

/* Reads the fields of an object of a plain class, up to one that is no scalar. */
static inline struct fields take_fields(struct spokei_hessian_reader *reader, struct fields fields)
{
	const unsigned char *end = reader->end;
	step value = { reader->at, reader->out };

	while (fields.left > 0 && value.at < end && reader->out_end - value.out >= NAME_ROOM) {
		step name = take_name(fields.name, end, value.out);
		step after = take_scalar(value.at, end, name.out, reader->out_end);

		if (after.at == NULL)
			break;
		fields.name = name.at;
		fields.left--;
		value = after;
	}
	reader->at = value.at;
	reader->out = value.out;
	return fields;
}

/* Ends the pairs of an object by its class. */
static inline int put_class(struct spokei_hessian_reader *reader,
			    const struct spokei_hessian_definition *class)
{
	bool few = class->count < SPOKEI_OBJECT_SHORT; /* `class` is one more pair */
	size_t len = few ? sizeof(SPOKEI_CLASS_KEY) - 1 : sizeof(SPOKEI_CLASS_KEY_LONG) - 1;
	int error = spokei_hessian_room(reader, sizeof(SPOKEI_CLASS_KEY_LONG) + NAME_ROOM + ENTRY);
	uint32_t after;

	if (error)
		return error;
	memcpy(reader->out, few ? SPOKEI_CLASS_KEY : SPOKEI_CLASS_KEY_LONG, len);
	reader->out += len;
	if (SPOKEI_UNLIKELY(!class->plain))
		return read_text_at(reader, class->name, &after);
	reader->out = take_name(reader->body + class->name, reader->end, reader->out).out;
	return 0;
}

/* Ends an object of a plain class and of scalars alone, which needs no frame. */
static inline int end_plain(struct spokei_hessian_reader *reader,
			    const struct spokei_hessian_definition *class, uint32_t at)
{
	struct spokei_hessian_entry entry = { at, 0, 2 * class->count + 2, 1 };
	int error = deepen(reader, 1);

	if (error == 0)
		error = put_class(reader, class);
	if (error)
		return error;
	entry.len = spokei_hessian_written(reader) - at;
	(void)enter(reader, entry);
	return 0;
}

static int begin_object(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	int32_t number = (int32_t)(tag & 15);
	const struct spokei_hessian_definition *class;
	struct spokei_hessian_frame *frame;
	struct fields fields;
	uint32_t at = spokei_hessian_written(reader);
	int error = tag == 'O' ? spokei_hessian_read_int(reader, &number) : 0;

	if (error == 0 && (uint32_t)number >= reader->class_count)
		error = SPOKE_ECORRUPT;
	if (error)
		return error;
	class = &reader->classes[number];
	error = check_count(reader, (int32_t) class->count);
	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	if (error == 0)
		error = spokei_hessian_count(reader, 2 * class->count + 2);
	if (error)
		return error;
	fields = (struct fields){ reader->body + class->names, class->count };
	spokei_hessian_emit(reader, SPOKEI_OBJECT_HEAD, class->count + 1, 2);
	if (SPOKEI_LIKELY(class->plain)) {
		fields = take_fields(reader, fields);
		if (fields.left == 0)
			return end_plain(reader, class, at);
	}
	error = push(reader, OBJECT, 1, at);
	if (error)
		return error;
	frame = innermost(reader);
	frame->items += 2 * class->count + 2;
	frame->left = fields.left;
	frame->names = (uint32_t)(fields.name - reader->body);
	frame->class = (uint16_t)number;
	return 0;
}

/* --- any value */

/* Reads a value, or begins the container that the value is. `own` is as in read_reference(). */
static inline int begin_value(struct spokei_hessian_reader *reader, uint32_t own)
{
	int error = 0;

	while (error == 0) {
		if (SPOKEI_UNLIKELY(reader->at == reader->end))
			return SPOKE_ETRUNCATED;
		switch (spokei_hessian_kinds[*reader->at]) {
		case SPOKEI_HESSIAN_TEXT:
			return read_text(reader);
		case SPOKEI_HESSIAN_OBJECT:
			return begin_object(reader);
		case SPOKEI_HESSIAN_LIST:
			return begin_list(reader);
		case SPOKEI_HESSIAN_MAP:
			return begin_map(reader);
		case SPOKEI_HESSIAN_BINARY:
			return spokei_hessian_read_binary(reader);
		case SPOKEI_HESSIAN_REFERENCE:
			return read_reference(reader, own);
		case SPOKEI_HESSIAN_DEFINITION:
			error = define(reader);
			break;
		case SPOKEI_HESSIAN_BAD:
			return SPOKE_ECORRUPT;
		default:
			return spokei_hessian_read_number(reader);
		}
	}
	return error;
}

/* Reads the values of a list until one of them is a container. */
static int step_list(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && reader->open == open) {
		frame->left -= take_scalars(reader, frame->left);
		if (frame->left == 0) {
			pop_any(reader);
			return 0;
		}
		frame->left--;
		error = begin_value(reader, UINT32_MAX);
	}
	return error;
}

/* Reads the values of a list or map whose end is marked, until one of them is a container. */
static int step_marked(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && reader->open == open) {
		uint32_t count = take_scalars(reader, reader->items);

		frame->left += count;
		reader->items -= count;
		if (reader->at == reader->end)
			return SPOKE_ETRUNCATED;
		if (*reader->at == 'Z') {
			reader->at++;
			if (frame->kind == PLAIN_MAP && frame->left % 2 != 0)
				return SPOKE_ECORRUPT;
			pop_any(reader);
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

/* Returns whether the name at this position of the body is `cause`, which Java writes as one short
 * string. */
static bool is_cause(const struct spokei_hessian_reader *reader, uint32_t at, uint32_t after)
{
	return after - at == 6 && memcmp(reader->body + at, "\005cause", 6) == 0;
}

/* Reads the fields of an object until one of them is a container. */
static int step_object(struct spokei_hessian_reader *reader, struct spokei_hessian_frame *frame)
{
	const struct spokei_hessian_definition *class = &reader->classes[frame->class];
	uint32_t open = reader->open;
	int error = 0;

	while (error == 0 && reader->open == open) {
		uint32_t name = frame->names;

		if (frame->left == 0) {
			error = put_class(reader, class);
			if (error == 0)
				pop(reader);
			return error;
		}
		frame->left--;
		error = read_text_at(reader, name, &frame->names);
		if (error)
			return error;
		error = begin_value(reader, is_cause(reader, name, frame->names) ? frame->number
										 : UINT32_MAX);
		if (error == 0 && reader->open == open && class->plain) {
			struct fields fields = { reader->body + frame->names, frame->left };

			fields = take_fields(reader, fields);
			frame->left = fields.left;
			frame->names = (uint32_t)(fields.name - reader->body);
		}
	}
	return error;
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
	step next = { body.data, to };
	const unsigned char *end = next.at + body.len;
	const unsigned char *limit = to + body.len + SPOKEI_CODEC_ROOM;
	uint32_t count = 0;

	for (; next.at < end; count++) {
		if (count == SPOKEI_CODEC_SCALARS)
			return NULL;
		next = take_scalar(next.at, end, next.out, limit);
		if (next.at == NULL)
			return NULL;
	}
	*ret_count = count;
	return next.out;
}

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
