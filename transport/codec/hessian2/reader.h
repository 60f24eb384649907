/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of Hessian 2 and its three tables: classes, type names and references. The values grow
 * from the start of the scratch. The table of references, an entry for each container, grows from
 * the end of the scratch downwards. Classes and types are kept as positions in the body. All sizes
 * are bounded: the scratch by its maximum, the other tables by the numbers below.
 *
 * A reader lives on the stack for one body.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_READER_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_READER_H

#include "transport/codec/codec.h"
#include "transport/codec/hessian2/ascii.h"

#define SPOKEI_HESSIAN_CLASSES_MAX 2048u /* class definitions in a body */
#define SPOKEI_HESSIAN_TYPES_MAX 2048u   /* type names in a body */

/* The kind of a value, by its tag. The low bits are the bytes of a number after the tag; kinds up
 * to the last date are scalars of a bounded length. */
enum {
	SPOKEI_HESSIAN_WIDTH = 0xf, /* the low bits */
	SPOKEI_HESSIAN_ONE = 0,     /* null, true or false */
	SPOKEI_HESSIAN_INT = 0x10,
	SPOKEI_HESSIAN_INT_1,
	SPOKEI_HESSIAN_INT_2,
	SPOKEI_HESSIAN_INT_4 = 0x14,
	SPOKEI_HESSIAN_LONG = 0x20,
	SPOKEI_HESSIAN_LONG_1,
	SPOKEI_HESSIAN_LONG_2,
	SPOKEI_HESSIAN_LONG_4 = 0x24,
	SPOKEI_HESSIAN_LONG_8 = 0x28,
	SPOKEI_HESSIAN_DOUBLE = 0x30,
	SPOKEI_HESSIAN_DOUBLE_1,
	SPOKEI_HESSIAN_DOUBLE_2,
	SPOKEI_HESSIAN_DOUBLE_4 = 0x34, /* thousandths */
	SPOKEI_HESSIAN_DOUBLE_8 = 0x38,
	SPOKEI_HESSIAN_DATE_4 = 0x44, /* minutes */
	SPOKEI_HESSIAN_DATE_8 = 0x48,
	SPOKEI_HESSIAN_TEXT = 0x50,
	SPOKEI_HESSIAN_BINARY = 0x60,
	SPOKEI_HESSIAN_LIST = 0x70,
	SPOKEI_HESSIAN_MAP = 0x80,
	SPOKEI_HESSIAN_OBJECT = 0x90,
	SPOKEI_HESSIAN_DEFINITION = 0xa0,
	SPOKEI_HESSIAN_REFERENCE = 0xb0,
	SPOKEI_HESSIAN_BAD = 0xc0,
};

extern const uint8_t spokei_hessian_kinds[256];

/* An entry of the table of references. It tells what a copy of the container takes, so that
 * a reference costs a copy of bytes and no look at them. */
struct spokei_hessian_entry {
	uint32_t at;     /* position of the value in the output */
	uint32_t len;    /* its bytes; 0: it is still being read */
	uint32_t items;  /* values inside */
	uint32_t levels; /* of containers and exts, its own included */
};

/* A definition: the class name, and the names of its fields one after another. */
struct spokei_hessian_definition {
	uint32_t name;  /* position in the body */
	uint32_t names; /* ... of the first field's name */
	uint32_t count;
	bool plain; /* all names are ASCII of less than 32 bytes */
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
	struct spokei_hessian_definition classes[SPOKEI_HESSIAN_CLASSES_MAX];
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

/* Counts values against the limit. Returns 0 or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE static inline int spokei_hessian_count(struct spokei_hessian_reader *reader,
						      uint32_t items)
{
	if (items > reader->items)
		return SPOKE_ETOOLARGE;
	reader->items -= items;
	return 0;
}

/* Writes a byte and `width` bytes of a number in big-endian order. There is room. */
static inline void spokei_hessian_emit(struct spokei_hessian_reader *reader, unsigned first,
				       uint64_t number, unsigned width)
{
	unsigned char *out = reader->out;

	*out++ = (unsigned char)first;
	for (unsigned i = width; i-- > 0;)
		*out++ = (unsigned char)(number >> 8 * i);
	reader->out = out;
}

/* Reads a text of at most 1,023 bytes of ASCII, which is one chunk. Returns false for any other,
 * and if there is no room. */
static inline bool spokei_hessian_take_text(struct spokei_hessian_reader *reader)
{
	const unsigned char *at = reader->at;
	unsigned char *out = reader->out;
	size_t left = (size_t)(reader->end - at);
	size_t len = *at++;

	if (len >= 0x20) {
		if (len < 0x30 || len > 0x33 || left < 2)
			return false;
		len = (len & 3) << 8 | *at++;
		left--;
	}
	if (len >= left || len + 3 > (size_t)(reader->out_end - out))
		return false;
	if (len < 32) {
		*out++ = (unsigned char)(0xa0 | len);
	} else if (len <= UINT8_MAX) {
		*out++ = 0xd9;
		*out++ = (unsigned char)len;
	} else {
		*out++ = 0xda;
		*out++ = (unsigned char)(len >> 8);
		*out++ = (unsigned char)len;
	}
	if (!spokei_hessian_copy_ascii(out, at, len))
		return false;
	reader->out = out + len;
	reader->at = at + len;
	return true;
}

/* --- the functions below begin at the tag, of which at least one byte is there, and return 0 or an
 * error of struct spokei_codec. Those that write a value make room for it. */

/* Reads a string in UTF-8, all its chunks as one. SPOKE_ECORRUPT: no string. */
SPOKE_MUST_USE int spokei_hessian_read_text(struct spokei_hessian_reader *reader);

/* Reads the name of a class, field or type. Objects read names again and again, so short chunks
 * before the last are SPOKE_ECORRUPT: they take time and add few bytes. Java splits longer texts
 * only. */
SPOKE_MUST_USE int spokei_hessian_read_name(struct spokei_hessian_reader *reader);

/* Reads a binary, all its chunks as one. SPOKE_ECORRUPT: no binary. */
SPOKE_MUST_USE int spokei_hessian_read_binary(struct spokei_hessian_reader *reader);

/* Reads an integer that is not a value of its own. SPOKE_ECORRUPT: no int. */
SPOKE_MUST_USE int spokei_hessian_read_int(struct spokei_hessian_reader *reader, int32_t *ret);

/* Reads a long, a double or a date. */
SPOKE_MUST_USE int spokei_hessian_read_number(struct spokei_hessian_reader *reader);

/* Reads a number, a date, null, a bool or a binary of one chunk without a reader. `at` is NULL in
 * the result if it is another value, or there is too little room. */
struct spokei_hessian_step spokei_hessian_take_other(const unsigned char *at,
						     const unsigned char *end, unsigned char *out,
						     const unsigned char *limit);

/* --- bodies */

/* Reads scalars, as in struct spokei_codec. */
unsigned char *spokei_hessian_take_scalars(struct spoke_span body, unsigned char *to,
					   uint32_t *ret_count);

/* Reads all values of a body, which are written at the start of the scratch. Its maximum bounds
 * them. `ret` receives all but the values. After an error, the reader is valid unless nothing was
 * read: `body` is NULL then. */
SPOKE_MUST_USE int spokei_hessian_read(struct spokei_hessian_reader *reader,
				       const struct spoke_value_limits *limits,
				       struct spoke_span body, struct spokei_buffer *scratch,
				       struct spokei_codec_values *ret);

#endif
