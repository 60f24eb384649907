/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values. Containers that are open lie on a stack of frames, so nothing recurses; each step
 * reads the next value of the innermost container. The head of a container is written when it
 * begins, and completed when it ends if the body does not announce the count.
 */
#include "core/value/java.h"
#include "transport/codec/hessian2/reader.h"

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
static int push(struct spokei_hessian_reader *reader, enum spokei_hessian_kind kind, bool typed)
{
	struct spokei_hessian_frame *frame = &reader->frames[reader->open];
	unsigned levels = typed ? 2 : 1;
	int error;

	error = spokei_hessian_deepen(reader, levels);
	if (error == 0)
		error = spokei_hessian_enter(reader, &frame->number);
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
	spokei_hessian_put(reader, 0xc9, 0, 4);
	*reader->out++ = SPOKE_EXT_TYPED;
	error = spokei_hessian_take(reader, 2); /* the name and the container */
	return error ? error : spokei_hessian_read_type(reader);
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

	if (frame->kind == SPOKEI_HESSIAN_OPEN_LIST)
		put_count(head + 1, frame->left, 4);
	else if (frame->kind == SPOKEI_HESSIAN_MAP)
		put_count(head + 1, frame->left / 2, 4);
	if (frame->levels == 2)
		put_count(at + 1, (uint64_t)(reader->out - at) - TYPED_HEAD, 4);
	reader->depth -= frame->levels;
	reader->open--;
	spokei_hessian_leave(reader, frame->number, frame->items - reader->items,
			     frame->deepest - reader->depth);
	if (reader->open > 0 && innermost(reader)->deepest < frame->deepest)
		innermost(reader)->deepest = frame->deepest;
}

/* Writes the head of an array in the fewest bytes. */
static void put_array(struct spokei_hessian_reader *reader, uint32_t count)
{
	if (count < 16)
		*reader->out++ = (unsigned char)(0x90 | count);
	else if (count <= UINT16_MAX)
		spokei_hessian_put(reader, 0xdc, count, 2);
	else
		spokei_hessian_put(reader, 0xdd, count, 4);
}

static int begin_list(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	bool open = tag == 0x55 || tag == 0x57;
	bool typed = tag == 0x55 || tag == 0x56 || (tag & 0xf8) == 0x70;
	int32_t count = (int32_t)(tag & 7);
	int error = push(reader, open ? SPOKEI_HESSIAN_OPEN_LIST : SPOKEI_HESSIAN_LIST, typed);

	if (error == 0 && (tag == 0x56 || tag == 0x58))
		error = spokei_hessian_read_int(reader, &count);
	if (error == 0 && !open)
		error = check_count(reader, count);
	if (error == 0 && !open)
		error = spokei_hessian_take(reader, (uint32_t)count);
	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	if (error)
		return error;
	innermost(reader)->head = spokei_hessian_written(reader);
	if (open) {
		spokei_hessian_put(reader, 0xdd, 0, 4);
		return 0;
	}
	innermost(reader)->left = (uint32_t)count;
	put_array(reader, (uint32_t)count);
	return 0;
}

static int begin_map(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	int error = push(reader, SPOKEI_HESSIAN_MAP, tag == 'M');

	if (error == 0)
		error = spokei_hessian_room(reader, VALUE_ROOM);
	if (error)
		return error;
	innermost(reader)->head = spokei_hessian_written(reader);
	spokei_hessian_put(reader, 0xdf, 0, 4);
	return 0;
}

static int begin_object(struct spokei_hessian_reader *reader)
{
	unsigned tag = *reader->at++;
	int32_t number = (int32_t)(tag & 15);
	const struct spokei_hessian_class *class;
	int error = tag == 'O' ? spokei_hessian_read_int(reader, &number) : 0;

	if (error == 0 && (uint32_t)number >= reader->class_count)
		error = SPOKE_ECORRUPT;
	if (error)
		return error;
	class = &reader->classes[number];
	error = check_count(reader, (int32_t) class->count);
	if (error == 0)
		error = push(reader, SPOKEI_HESSIAN_OBJECT, false);
	if (error == 0)
		error = spokei_hessian_take(reader, 2 * class->count + 2);
	if (error)
		return error;
	innermost(reader)->left = class->count;
	innermost(reader)->names = class->names;
	innermost(reader)->class = (uint16_t)number;
	spokei_hessian_put(reader, SPOKEI_OBJECT_HEAD, class->count + 1, 2);
	return 0;
}

/* --- values */

enum {
	BAD,
	ONE,
	INT,
	NUM,
	TXT,
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
			return spokei_hessian_read_text(reader);
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
			return spokei_hessian_read_reference(reader, own);
		case DEF:
			error = spokei_hessian_define(reader);
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
			if (frame->kind == SPOKEI_HESSIAN_MAP && frame->left % 2 != 0)
				return SPOKE_ECORRUPT;
			pop(reader);
			return 0;
		}
		error = spokei_hessian_take(reader, 1);
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
	const struct spokei_hessian_class *class = &reader->classes[frame->class];
	bool few = class->count < SPOKEI_OBJECT_SHORT; /* `class` is one more pair */
	size_t len = few ? sizeof(SPOKEI_CLASS_KEY) - 1 : sizeof(SPOKEI_CLASS_KEY_LONG) - 1;
	int error = spokei_hessian_room(reader, len);
	uint32_t after;

	if (error)
		return error;
	memcpy(reader->out, few ? SPOKEI_CLASS_KEY : SPOKEI_CLASS_KEY_LONG, len);
	reader->out += len;
	error = spokei_hessian_read_text_at(reader, class->name, &after);
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
		error = spokei_hessian_read_text_at(reader, name, &frame->names);
		if (error)
			return error;
		error = begin_value(reader, is_cause(reader, name, frame->names) ? frame->number
										 : UINT32_MAX);
	}
	return error || reader->open != open ? error : end_object(reader, frame);
}

int spokei_hessian_read_value(struct spokei_hessian_reader *reader)
{
	int error = begin_value(reader, UINT32_MAX);

	while (error == 0 && reader->open > 0) {
		struct spokei_hessian_frame *frame = innermost(reader);

		if (frame->kind == SPOKEI_HESSIAN_OBJECT)
			error = step_object(reader, frame);
		else if (frame->kind == SPOKEI_HESSIAN_LIST)
			error = step_list(reader, frame);
		else
			error = step_marked(reader, frame);
	}
	return error;
}
