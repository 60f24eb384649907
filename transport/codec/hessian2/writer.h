/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes msgpack values as Hessian 2, one after another: untyped, as classes of Java, or as
 * declared types demand. Owned by one function call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITER_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_WRITER_H

#include "core/value/java.h"
#include "transport/codec/codec.h"
#include "transport/codec/hessian2/put.h"

#include <spoke/value.h>

#include <string.h>

/* --- tables
 *
 * The memory of the writer about a body: the names of types and the definitions of classes, which
 * later values refer to by number, and the containers, which references name. Names and definitions
 * are kept as places in the output and compared as bytes. Each table lies in the writer and holds
 * the last ones only. An older type or class is written in full again, and so is the target of a
 * reference; a reader sees the same values. */

#define SPOKEI_HESSIAN_KNOWN 128u   /* names of types, and definitions, that are remembered */
#define SPOKEI_HESSIAN_RECENT 1024u /* ... containers */

/* Containers and exts inside each other; a declared type adds two to those of the values. */
#define SPOKEI_HESSIAN_DEPTH (SPOKE_VALUE_DEPTH_MAX + 8u)

/* Searches may compare this many times the length of all values, and as many bytes in any case.
 * After that a type or class that would have to be compared is written in full again. */
#define SPOKEI_HESSIAN_COMPARES 16u
#define SPOKEI_HESSIAN_COMPARES_MIN ((size_t)1 << 20)

/* This many times the length of all values may be passed, and as many bytes in any case. The last
 * pair of a map tells whether it is an object, so a value is passed once for each map around it. */
#define SPOKEI_HESSIAN_PASSES 32u
#define SPOKEI_HESSIAN_PASSES_MIN ((size_t)32 << 20)

/* Names or definitions. That of a number is found at the number, modulo the size. */
struct spokei_hessian_table {
	uint32_t count; /* written so far */
	struct {
		size_t at; /* from the start of the buffer */
		size_t len;
	} entry[SPOKEI_HESSIAN_KNOWN];
};

/* --- the writer
 *
 * The state of the writer: the output, the next value, and the types, classes and containers that
 * the body has so far. */

struct spokei_hessian_writer {
	struct spokei_hessian_put put;
	const struct spokei_codec_body *body;
	const unsigned char *at;             /* the next value */
	const unsigned char *end;            /* the end of the values of this part */
	bool generic;                        /* objects become maps with "class" */
	struct spokei_buffer *plans;         /* may be NULL */
	const unsigned char *plan;           /* of the last object; NULL: none */
	uint32_t number;                     /* ... and the number of its class */
	size_t passes;                       /* bytes inside maps that may still be passed */
	size_t compares;                     /* ... that searches may still compare */
	uint32_t depth;                      /* number of open containers and exts */
	uint32_t containers;                 /* lists, maps and objects begun so far */
	uint32_t open[SPOKEI_HESSIAN_DEPTH]; /* numbers of the open containers */
	struct spokei_hessian_table types;
	struct spokei_hessian_table classes;
	const unsigned char *recent[SPOKEI_HESSIAN_RECENT];
};

/* Begins a body, without touching the memory of the tables. */
static inline void spokei_hessian_writer_start(struct spokei_hessian_writer *writer,
					       const struct spokei_codec_body *body,
					       struct spokei_buffer *out)
{
	size_t len = body->first.len + body->values.len + body->pairs[0].len + body->pairs[1].len;

	spokei_hessian_put_start(&writer->put, out,
				 body->room + body->prefix.len + len + len / 8 + 64);
	writer->body = body;
	writer->generic = body->generic;
	writer->plans = body->plans;
	writer->plan = NULL;
	writer->passes = SPOKEI_HESSIAN_PASSES_MIN + SPOKEI_HESSIAN_PASSES * len;
	writer->compares = SPOKEI_HESSIAN_COMPARES_MIN + SPOKEI_HESSIAN_COMPARES * len;
	writer->depth = 0;
	writer->containers = 0;
	writer->types.count = 0;
	writer->classes.count = 0;
}

/* Goes on with the values of the next part. */
static inline void spokei_hessian_turn_to(struct spokei_hessian_writer *writer,
					  struct spoke_span values)
{
	writer->at = values.data;
	writer->end = writer->at ? writer->at + values.len : NULL;
}

/* Reports that the values cannot be expressed. */
static inline void spokei_hessian_refuse(struct spokei_hessian_writer *writer)
{
	spokei_hessian_put_fail(&writer->put, SPOKE_EUNSUPPORTED);
}

/* Returns whether there is another value, and no error. */
static inline bool spokei_hessian_more(const struct spokei_hessian_writer *writer)
{
	return writer->at < writer->end && writer->put.error == 0;
}

/* Returns the type of the next value by its first byte: an ext is an ext with any content. */
static inline unsigned spokei_hessian_type(const struct spokei_hessian_writer *writer)
{
	return writer->at < writer->end ? spokei_shapes[*writer->at].type : SPOKE_VALUE_NONE;
}

/* Returns the next value and leaves it to be written. The view reaches to the end of the part. */
static inline struct spoke_value spokei_hessian_peek(const struct spokei_hessian_writer *writer)
{
	return (struct spoke_value){ writer->at, (size_t)(writer->end - writer->at) };
}

/* Takes the next value without writing it. Returns false after an error. */
SPOKE_MUST_USE bool spokei_hessian_take(struct spokei_hessian_writer *writer,
					struct spoke_value *ret);

/* Looks up the bytes that were written since the buffer had this length. If they are remembered,
 * takes them back, writes their number and returns true. If they are not, or no more bytes may be
 * compared, numbers and remembers them. */
bool spokei_hessian_know(struct spokei_hessian_writer *writer, struct spokei_hessian_table *table,
			 size_t since, uint32_t *ret_number);

/* Counts a container whose value begins at `value`, and returns its number. */
static inline uint32_t spokei_hessian_begin(struct spokei_hessian_writer *writer,
					    const unsigned char *value)
{
	writer->recent[writer->containers % SPOKEI_HESSIAN_RECENT] = value;
	return writer->containers++;
}

/* Returns whether the container `distance` before the next one is remembered and has these bytes.
 */
bool spokei_hessian_is_target(const struct spokei_hessian_writer *writer, uint64_t distance,
			      struct spoke_span copy);

/* --- heads
 *
 * The heads of lists, objects and references. The content follows. */

/* The name of a type or class. */
struct spokei_hessian_name {
	const char *text;
	size_t len;
	unsigned dims; /* brackets before the text */
	bool declared; /* the text is of a descriptor: a slash stands for a dot */
};

/* Writes the head of a list; without a name it is untyped. The values follow. */
void spokei_hessian_list_head(struct spokei_hessian_writer *writer,
			      const struct spokei_hessian_name *name, size_t count);

/* Begins an object whose class has these fields, whose values follow. Returns false if it is too
 * deep; else the caller closes it. */
SPOKE_MUST_USE bool spokei_hessian_open_made(struct spokei_hessian_writer *writer,
					     const struct spokei_hessian_name *name,
					     const char *const *fields, size_t count);

/* Writes a reference to the container with this number. */
void spokei_hessian_reference(struct spokei_hessian_writer *writer, uint32_t number);

/* --- objects
 *
 * Maps that are objects of Java: their last pair names the class, and the others are the fields. */

#define SPOKEI_HESSIAN_KEYS 16u /* names of fields that are found without a search */

/* A map that a program or a reader made of an object. */
struct spokei_hessian_object {
	struct spokei_hessian_name name;
	const unsigned char *pairs; /* the first pair */
	const unsigned char *end;   /* the end of the map */
	size_t fields;
	bool renamed; /* the field "message" is called "detailMessage" */
	bool flat;    /* all values are scalars */
	/* The first keys. */
	const unsigned char *key[SPOKEI_HESSIAN_KEYS];
};

/* Reads the next value as an object without a class, whose fields are all pairs. Returns false
 * unless it is a map, and all keys are str. */
SPOKE_MUST_USE bool spokei_hessian_find_fields(struct spokei_hessian_writer *writer,
					       struct spokei_hessian_object *ret);

/*
 * Returns whether the next value is a map whose last pair names its class. `any`: the class may
 * have any name, else it must look like one of Java unless a reader made the map; see
 * transport/HESSIAN.md.
 */
SPOKE_MUST_USE bool spokei_hessian_find_object(struct spokei_hessian_writer *writer, bool any,
					       struct spokei_hessian_object *ret);

/* Opens the next value, a map, as an object, and writes the number of its class. The pairs of its
 * fields follow. Returns false if it is too deep; else the caller goes on at its end and closes it.
 */
SPOKE_MUST_USE bool spokei_hessian_open_object(struct spokei_hessian_writer *writer,
					       const struct spokei_hessian_object *object,
					       uint32_t *ret_number);

/* Writes the next value in one pass, if it is a map of scalars of which there is a plan. Returns
 * false for any other value, with nothing written. */
SPOKE_MUST_USE bool spokei_hessian_write_planned(struct spokei_hessian_writer *writer);

/* Writes the next value, of which spokei_hessian_find_object() has found the class, as an object,
 * and keeps a plan. */
void spokei_hessian_write_found(struct spokei_hessian_writer *writer,
				const struct spokei_hessian_object *object);

/* Writes the next value, a map, as an object, and returns the number of its class. */
uint32_t spokei_hessian_write_object(struct spokei_hessian_writer *writer,
				     const struct spokei_hessian_object *object);

/* --- values */

/* Writes scalars, as in struct spokei_codec. */
unsigned char *spokei_hessian_put_scalars(unsigned char *to, const unsigned char *limit,
					  struct spoke_span values);

/* Writes the next value, with all values inside. */
void spokei_hessian_write_value(struct spokei_hessian_writer *writer);

/* Writes the next values, at most `count`. Returns how many are missing at the end of the part. */
size_t spokei_hessian_write_values(struct spokei_hessian_writer *writer, size_t count);

/* Writes the next value, an array or map, as a list or map of a type; NULL: untyped. `value` is
 * where references to it point: the next value, or an ext around it. */
void spokei_hessian_write_container(struct spokei_hessian_writer *writer,
				    const unsigned char *value,
				    const struct spokei_hessian_name *name);

/* Returns the number of values in the array or map that comes next, and moves to the first one. */
size_t spokei_hessian_open_next(struct spokei_hessian_writer *writer);

/* Opens a container whose value begins at `value`. Returns false if it is too deep. Each one that
 * was opened is closed after its last value. */
SPOKE_MUST_USE bool spokei_hessian_open(struct spokei_hessian_writer *writer,
					const unsigned char *value);

static inline void spokei_hessian_close(struct spokei_hessian_writer *writer)
{
	writer->depth--;
}

/* --- exceptions
 *
 * Writes exceptions. In a reply, an exception is its class and a map of its fields, in which
 * Throwable's field "detailMessage" is called "message". */

/* Writes the two values, the class and the map of the fields, as an exception. */
void spokei_hessian_write_throwable(struct spokei_hessian_writer *writer, struct spoke_span values);

/* --- declared types
 *
 * Writes arguments as the declared types of a method demand: an integer as int, long or double, an
 * array as an array, list or set, a map as a map or an object of a class. A value that the type
 * does not fit is written as without a type. */

/* The type of an argument, as its descriptor declares it. */
struct spokei_hessian_type {
	unsigned dims;          /* dimensions of an array; 0: none */
	char kind;              /* the letter of a primitive type, or 'L' */
	struct spoke_span name; /* of a class, with slashes */
};

/* Cuts the first descriptor off the text of the types. Returns false at the end, and if the text is
 * no descriptor; then `types` is empty. */
SPOKE_MUST_USE bool spokei_hessian_next_type(struct spoke_span *types,
					     struct spokei_hessian_type *ret);

/* Writes the next value as this type. */
void spokei_hessian_write_as(struct spokei_hessian_writer *writer,
			     const struct spokei_hessian_type *type);

#endif
