/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the writer about a body: the names of types and the classes, which later values
 * refer to by number, and the containers, which references name. Each table lies in the writer and
 * holds the last ones only. An older type or class is written in full again, and so is the target
 * of a reference; a reader sees the same values. Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_TABLES_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_TABLES_H

#include <spoke/value.h>

#include <string.h>

#define SPOKEI_HESSIAN2_TYPES 128u   /* names of types that are remembered; a power of two */
#define SPOKEI_HESSIAN2_CLASSES 128u /* ... classes */
#define SPOKEI_HESSIAN2_RECENT 1024u /* ... containers */
/* Containers and exts inside each other; steering adds two to those of the values. */
#define SPOKEI_HESSIAN2_DEPTH (SPOKE_VALUE_DEPTH_MAX + 8u)

#define SPOKEI_HESSIAN2_KEYS 16u /* names of fields that are found without a search */

/* Lookups may compare this many times the length of all values, and as many bytes in any case.
 * After that a type or class that would have to be compared is written in full again. */
#define SPOKEI_HESSIAN2_COMPARES 16u
#define SPOKEI_HESSIAN2_COMPARES_MIN ((size_t)1 << 20)

/* The name of a type or class: `dims` brackets, then the text. */
struct spokei_hessian2_name {
	const char *text;
	size_t len;
	unsigned dims;
	bool steered; /* the text is of a descriptor: a slash stands for a dot */
};

/* A class: its name, and its fields as keys of the pairs of a map. */
struct spokei_hessian2_class {
	struct spokei_hessian2_name name;
	struct spoke_span pairs; /* begins with the first pair; may be longer */
	size_t fields;
	bool renamed; /* the field "message" is called "detailMessage" */
	/* The first keys; those of a class with more fields are found in the pairs. */
	const unsigned char *key[SPOKEI_HESSIAN2_KEYS];
};

/* The tables. The entry of a number is found at that number, modulo the size. */
struct spokei_hessian2_tables {
	uint32_t types;      /* names written so far */
	uint32_t classes;    /* definitions written so far */
	uint32_t containers; /* lists, maps and objects begun so far */
	size_t compares;     /* bytes that lookups may still compare */
	struct spokei_hessian2_name type[SPOKEI_HESSIAN2_TYPES];
	struct spokei_hessian2_class class[SPOKEI_HESSIAN2_CLASSES];
	const unsigned char *recent[SPOKEI_HESSIAN2_RECENT];
};

/* Makes the tables empty, without touching the memory of the entries. The values have `len` bytes.
 */
static inline void spokei_hessian2_tables_init(struct spokei_hessian2_tables *tables, size_t len)
{
	tables->types = 0;
	tables->classes = 0;
	tables->containers = 0;
	tables->compares = SPOKEI_HESSIAN2_COMPARES_MIN + SPOKEI_HESSIAN2_COMPARES * len;
}

/* Returns a name of the codec's own. */
static inline struct spokei_hessian2_name spokei_hessian2_literal(const char *text)
{
	return (struct spokei_hessian2_name){ text, strlen(text), 0, true };
}

/* Returns the name in a str of a value; it may begin with brackets. */
struct spokei_hessian2_name spokei_hessian2_name_of(struct spoke_span text);

/* Remembers a key of the pairs, which are given one after another. */
static inline void spokei_hessian2_keep_key(struct spokei_hessian2_class *class, size_t i,
					    const unsigned char *key)
{
	if (i < SPOKEI_HESSIAN2_KEYS)
		class->key[i] = key;
}

/* Reads the key of field `i`. Begins with a cursor over the pairs and `i` 0, in order. */
SPOKE_MUST_USE bool spokei_hessian2_next_key(const struct spokei_hessian2_class *class, size_t i,
					     struct spoke_cursor *pairs, struct spoke_value *ret);

/* Looks a name or class up, and writes its number. If it is not remembered, or no more bytes may be
 * compared, numbers and remembers it, and returns false. */
bool spokei_hessian2_find_type(struct spokei_hessian2_tables *tables,
			       const struct spokei_hessian2_name *name, uint32_t *ret_number);
bool spokei_hessian2_find_class(struct spokei_hessian2_tables *tables,
				const struct spokei_hessian2_class *class, uint32_t *ret_number);

/* Counts a container whose value begins at `value`, and returns its number. */
static inline uint32_t spokei_hessian2_begin(struct spokei_hessian2_tables *tables,
					     const unsigned char *value)
{
	tables->recent[tables->containers % SPOKEI_HESSIAN2_RECENT] = value;
	return tables->containers++;
}

/* Returns whether the container `distance` before the next one is remembered and has these bytes.
 * `end` is the end of all values. */
bool spokei_hessian2_is_target(const struct spokei_hessian2_tables *tables, uint64_t distance,
			       struct spoke_span copy, const unsigned char *end);

#endif
