/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of Hessian 2 and its three tables: classes, type names and references. The values grow
 * from the start of the scratch. The table of references, an entry for each container, grows from
 * the end of the scratch downwards. Classes and types are kept as positions in the body. All sizes
 * are bounded: the scratch by its maximum, the other tables by the numbers below.
 *
 * Used by the files read*.c only. A reader lives on the stack for one body.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_READER_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_READER_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#define SPOKEI_HESSIAN_CLASSES_MAX 2048u /* class definitions in a body */
#define SPOKEI_HESSIAN_TYPES_MAX 2048u   /* type names in a body */

#define SPOKEI_HESSIAN_FIELDS_MAX 65534u /* fields of a class; a map of 16 bits takes one more */

/* An entry of the table of references. It tells what a copy of the container takes, so that a
 * reference costs a copy of bytes and no look at them. */
struct spokei_hessian_entry {
	uint32_t at;     /* position of the value in the output */
	uint32_t len;    /* its bytes; 0: it is still being read */
	uint32_t items;  /* values inside */
	uint32_t levels; /* of containers and exts, its own included */
};

/* A definition: the class name, and the names of its fields one after another. */
struct spokei_hessian_class {
	uint32_t name;  /* position in the body */
	uint32_t names; /* ... of the first field's name */
	uint32_t count;
};

enum spokei_hessian_kind {
	SPOKEI_HESSIAN_LIST, /* of a known length */
	SPOKEI_HESSIAN_OPEN_LIST,
	SPOKEI_HESSIAN_MAP,
	SPOKEI_HESSIAN_OBJECT,
};

/* A container that is being read. */
struct spokei_hessian_frame {
	uint32_t at;      /* position of the value in the output */
	uint32_t head;    /* ... of the head of the array or map */
	uint32_t left;    /* list and object: values still to read; otherwise: values read */
	uint32_t number;  /* in the table of references */
	uint32_t items;   /* values that could still be read when it began */
	uint32_t deepest; /* the depth of the values inside */
	uint32_t names;   /* object: position of the next field's name in the body */
	uint16_t class;
	uint8_t kind;
	uint8_t levels; /* 2: the container lies in an ext with its type; else 1 */
};

struct spokei_hessian_reader {
	const unsigned char *body;
	const unsigned char *at; /* the next byte to read */
	const unsigned char *end;
	unsigned char *out;     /* the next byte to write */
	unsigned char *out_end; /* the first byte after the free ones: the table of references */
	struct spokei_buffer *scratch;
	size_t capacity; /* bytes of the scratch in use; the table of references ends there */
	size_t capacity_max;
	uint32_t copies; /* values that references may still copy */
	bool swollen;    /* the maximum of the scratch was too low */
	uint32_t bytes_max;
	uint32_t items; /* values that may still be read */
	uint32_t depth_max;
	uint32_t depth; /* levels of containers and exts around the next value */
	uint32_t open;  /* frames in use */
	uint32_t begun; /* containers so far: the length of the table of references */
	uint32_t class_count;
	uint32_t type_count;
	bool cycles;
	struct spokei_hessian_frame frames[SPOKE_VALUE_DEPTH_MAX];
	struct spokei_hessian_class classes[SPOKEI_HESSIAN_CLASSES_MAX];
	uint32_t types[SPOKEI_HESSIAN_TYPES_MAX]; /* positions of the names in the body */
};

/* Returns the number of bytes that are left in the body. */
static inline size_t spokei_hessian_left(const struct spokei_hessian_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* Returns the number of bytes written, which is the position of the next value. */
static inline uint32_t spokei_hessian_written(const struct spokei_hessian_reader *reader)
{
	return (uint32_t)(reader->out - reader->scratch->bytes);
}

/* Uses the memory of the scratch, up to the maximum. */
void spokei_hessian_settle(struct spokei_hessian_reader *reader);

/* The slow path of spokei_hessian_room(). */
SPOKE_MUST_USE int spokei_hessian_grow(struct spokei_hessian_reader *reader, size_t len);

/* Makes sure that `len` more bytes can be written. Moves the output; positions stay valid. Returns
 * 0, SPOKE_ETOOLARGE or SPOKE_ENOMEM. */
SPOKE_MUST_USE static inline int spokei_hessian_room(struct spokei_hessian_reader *reader,
						     size_t len)
{
	if (SPOKEI_LIKELY((size_t)(reader->out_end - reader->out) >= len))
		return 0;
	return spokei_hessian_grow(reader, len);
}

/* Enters a container, which begins at the next byte of the output, into the table of references. */
SPOKE_MUST_USE int spokei_hessian_enter(struct spokei_hessian_reader *reader, uint32_t *ret_number);

/* Completes the entry of a container that ends with the output. */
void spokei_hessian_leave(struct spokei_hessian_reader *reader, uint32_t number, uint32_t items,
			  uint32_t levels);

/* Returns the entry of a container. */
struct spokei_hessian_entry spokei_hessian_entry(const struct spokei_hessian_reader *reader,
						 uint32_t number);

/* Counts values against the limit. Returns 0 or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE static inline int spokei_hessian_take(struct spokei_hessian_reader *reader,
						     uint32_t items)
{
	if (items > reader->items)
		return SPOKE_ETOOLARGE;
	reader->items -= items;
	return 0;
}

/* Notes that the next value has this many levels of containers and exts. Returns 0 or
 * SPOKE_EDEPTH. */
SPOKE_MUST_USE static inline int spokei_hessian_deepen(struct spokei_hessian_reader *reader,
						       uint32_t levels)
{
	uint32_t *deepest = reader->open > 0 ? &reader->frames[reader->open - 1].deepest : NULL;

	if (reader->depth_max - reader->depth < levels)
		return SPOKE_EDEPTH;
	if (deepest && *deepest < reader->depth + levels)
		*deepest = reader->depth + levels;
	return 0;
}

/* Writes a byte and `width` bytes of a number in big-endian order. There is room. */
static inline void spokei_hessian_put(struct spokei_hessian_reader *reader, unsigned first,
				      uint64_t number, unsigned width)
{
	*reader->out++ = (unsigned char)first;
	for (unsigned i = width; i-- > 0;)
		*reader->out++ = (unsigned char)(number >> 8 * i);
}

/* Writes an unsigned number in the fewest bytes. There is room for five bytes. */
static inline void spokei_hessian_put_number(struct spokei_hessian_reader *reader, uint32_t number)
{
	if (number < 0x80)
		*reader->out++ = (unsigned char)number;
	else if (number <= UINT8_MAX)
		spokei_hessian_put(reader, 0xcc, number, 1);
	else if (number <= UINT16_MAX)
		spokei_hessian_put(reader, 0xcd, number, 2);
	else
		spokei_hessian_put(reader, 0xce, number, 4);
}

/* --- the functions below begin at the tag, of which at least one byte is there, and return 0 or an
 * error of struct spokei_codec. Those that write a value make room for it. */

/* Reads a string in UTF-8, all its chunks as one. SPOKE_ECORRUPT: no string. */
SPOKE_MUST_USE int spokei_hessian_read_text(struct spokei_hessian_reader *reader);

/* Reads the name of a class, field or type. Objects read names again and again, so short chunks
 * before the last are SPOKE_ECORRUPT: they take time and add few bytes. Java splits longer texts
 * only. */
SPOKE_MUST_USE int spokei_hessian_read_name(struct spokei_hessian_reader *reader);

/* Reads a string that lies at another position of the body. Writes the position after it. */
SPOKE_MUST_USE int spokei_hessian_read_text_at(struct spokei_hessian_reader *reader,
					       uint32_t position, uint32_t *ret_after);

/* Reads a binary, all its chunks as one. SPOKE_ECORRUPT: no binary. */
SPOKE_MUST_USE int spokei_hessian_read_binary(struct spokei_hessian_reader *reader);

/* Reads an integer that is not a value of its own. SPOKE_ECORRUPT: no int. */
SPOKE_MUST_USE int spokei_hessian_read_int(struct spokei_hessian_reader *reader, int32_t *ret);

/* Reads a long, a double or a date. */
SPOKE_MUST_USE int spokei_hessian_read_number(struct spokei_hessian_reader *reader);

/* Reads a class definition into the table. */
SPOKE_MUST_USE int spokei_hessian_define(struct spokei_hessian_reader *reader);

/* Reads the type of a list or map, which is a name or a number in the table, and writes its name.
 */
SPOKE_MUST_USE int spokei_hessian_read_type(struct spokei_hessian_reader *reader);

/* Reads a reference, and writes it with a copy of its target. `own` is the number of the object if
 * the reference is its field `cause`, which may refer to the object; otherwise UINT32_MAX. */
SPOKE_MUST_USE int spokei_hessian_read_reference(struct spokei_hessian_reader *reader,
						 uint32_t own);

/* Reads a value with all values inside. */
SPOKE_MUST_USE int spokei_hessian_read_value(struct spokei_hessian_reader *reader);

#endif
