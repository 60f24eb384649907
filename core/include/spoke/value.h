/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values: the arguments and results of calls. A value is msgpack in memory. It is checked once and
 * then read in place, without copies, object trees or allocation. Views are small, passed by value,
 * and point into the checked bytes; they are valid as long as these bytes.
 *
 * The reading functions are safe on unchecked bytes: they may find fewer values, but never read
 * outside the view. Stateless; any thread. A builder belongs to one thread at a time.
 */
#ifndef SPOKE_VALUE_H
#define SPOKE_VALUE_H

#include <spoke/env.h>

SPOKE_BEGIN_DECLS

struct spokei_buffer;

/* Borrowed bytes. */
struct spoke_span {
	const void *data;
	size_t len;
};

/* Types of values. */
enum spoke_value_type {
	SPOKE_VALUE_NONE, /* no value, or an unreadable one */
	SPOKE_VALUE_NIL,
	SPOKE_VALUE_BOOL,
	SPOKE_VALUE_INT,    /* -2^63 to 2^64 - 1 */
	SPOKE_VALUE_DOUBLE, /* packed in 4 or 8 bytes */
	SPOKE_VALUE_STR,    /* should be UTF-8, but is not validated */
	SPOKE_VALUE_BIN,
	SPOKE_VALUE_ARRAY,
	SPOKE_VALUE_MAP,
	SPOKE_VALUE_EXT,
};

/* A view of one value. { 0 } is no value: its type is NONE, and every getter returns SPOKE_ETYPE.
 */
struct spoke_value {
	const unsigned char *data; /* the first byte */
	size_t len;                /* bytes, with all values inside */
};

#define SPOKE_VALUE_DEPTH_MAX 128u              /* nested arrays, maps, and the exts below */
#define SPOKE_VALUE_ITEMS_MAX 4194304u          /* values in all, keys and containers included */
#define SPOKE_VALUE_OBJECT_BYTES_MAX 100663296u /* bytes of all values as a tree of objects */
#define SPOKE_VALUE_OBJECT_BYTES 24u            /* ... counted for each value */
#define SPOKE_VALUE_BYTES_MAX 8388608u          /* packed bytes */

/* Limits for checking and building. 0 in a field selects the macro above. */
struct spoke_value_limits {
	uint32_t depth_max;      /* at most SPOKE_VALUE_DEPTH_MAX */
	uint32_t items_max;      /* beyond: SPOKE_ETOOLARGE */
	size_t object_bytes_max; /* beyond: SPOKE_ETOOLARGE */
	size_t bytes_max;        /* beyond: SPOKE_ETOOLARGE */
	bool cycles;             /* accept Java objects that contain a reference to themselves */
};

/*
 * Two types of ext express features that hessian2 has and msgpack lacks. The payload of TYPED is a
 * str, the name of a Java type, and an array or a map. The payload of REF is an unsigned integer of
 * at least 1, the distance to an earlier container in numbers of containers, and a copy of that
 * container, or nil if the distance leads to a container that is still open.
 */
#define SPOKE_EXT_TYPED 72 /* 'H' */
#define SPOKE_EXT_REF 82   /* 'R' */

/*
 * Checks that the bytes are exactly one value within the limits (NULL: all defaults), and writes a
 * view of the value. Allocates nothing; a header that announces more than the bytes contain costs
 * only the header. Returns 0, SPOKE_ETRUNCATED, SPOKE_ETRAILING, SPOKE_ECORRUPT, SPOKE_EDEPTH,
 * SPOKE_ETOOLARGE, or SPOKE_EINVAL (impossible limits).
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_check(const void *bytes, size_t len,
					       const struct spoke_value_limits *limits,
					       struct spoke_value *ret_value);

/* A position in a sequence of values: of an array, a map (key, value, key, value), or bytes. */
struct spoke_cursor {
	const unsigned char *at;
	const unsigned char *end;
	uint64_t left; /* values not yet read; UINT64_MAX for bytes */
};

/* Like spoke_value_check(), for a sequence of zero or more values. `ret_count` may be NULL. */
SPOKE_API SPOKE_MUST_USE int spoke_values_check(const void *bytes, size_t len,
						const struct spoke_value_limits *limits,
						struct spoke_cursor *ret_values, size_t *ret_count);

/* --- reading one value: the functions return 0 or SPOKE_ETYPE, and SPOKE_ERANGE if their comment
 * says so; after an error *ret is unchanged */

/* Returns the type of a value. The functions below look through SPOKE_EXT_TYPED and SPOKE_EXT_REF:
 * a typed array is an array, and a reference is the value that it refers to. */
SPOKE_API enum spoke_value_type spoke_value_type(struct spoke_value value);

/* Returns the name of a type, e.g. "map"; never NULL. */
SPOKE_API const char *spoke_value_type_name(enum spoke_value_type type);

/* Returns whether the value is nil. */
SPOKE_API bool spoke_value_is_nil(struct spoke_value value);

/* Reads a bool. */
SPOKE_API SPOKE_MUST_USE int spoke_value_bool(struct spoke_value value, bool *ret);

/* Read an integer packed in any width; SPOKE_ERANGE: it does not fit. A double is no integer, not
 * even 1.0. */
SPOKE_API SPOKE_MUST_USE int spoke_value_i64(struct spoke_value value, int64_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_u64(struct spoke_value value, uint64_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_i32(struct spoke_value value, int32_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_u32(struct spoke_value value, uint32_t *ret);

/* Reads a double, NaN and infinities included, or an integer that a double can represent exactly;
 * SPOKE_ERANGE for other integers. */
SPOKE_API SPOKE_MUST_USE int spoke_value_double(struct spoke_value value, double *ret);

/* Read the content in place. It does not end with a NUL, may contain NULs, and need not be UTF-8.
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_str(struct spoke_value value, struct spoke_span *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_bin(struct spoke_value value, struct spoke_span *ret);

/* Reads a str or a bin, because peers older than the type bin send str for both. */
SPOKE_API SPOKE_MUST_USE int spoke_value_bytes(struct spoke_value value, struct spoke_span *ret);

/* Reads the type and the content of an ext, in place; also of the two types that the other
 * functions look through. */
SPOKE_API SPOKE_MUST_USE int spoke_value_ext(struct spoke_value value, int8_t *ret_type,
					     struct spoke_span *ret);

/* Read the number of values of an array, or of pairs of a map. */
SPOKE_API SPOKE_MUST_USE int spoke_value_array_len(struct spoke_value value, size_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_map_len(struct spoke_value value, size_t *ret);

/*
 * Reads the name of a Java type: of a typed array or map, or the class of an object. An object is a
 * map whose last pair is "class" and the name; spoke_pack_class() describes which maps are objects.
 * Returns 0, SPOKE_ETYPE (no array and no map) or SPOKE_ENOENT (untyped).
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_class(struct spoke_value value, struct spoke_span *ret);

/* Reads a timestamp, an ext of type -1, as seconds and nanoseconds since 1970 in UTC. A Java date
 * is a timestamp in whole milliseconds. SPOKE_ERANGE: the nanoseconds are not below 10^9. */
SPOKE_API SPOKE_MUST_USE int spoke_value_time(struct spoke_value value, int64_t *ret_seconds,
					      uint32_t *ret_ns);

/* Returns whether two values have the same bytes. Equal numbers packed in different widths are not
 * equal, and neither are the same pairs behind heads of different widths. A map that was read from
 * Hessian 2 has a head of 32 bits, which no packed map of fewer than 65,536 pairs has: compare it
 * with one that was read, or pair by pair. */
SPOKE_API bool spoke_value_equal(struct spoke_value a, struct spoke_value b);

/*
 * Finds the first pair of a map whose key is this str, by linear search, and writes its value.
 * Returns 0, SPOKE_ETYPE (no map) or SPOKE_ENOENT. `key` is borrowed for the call.
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_get(struct spoke_value map, const char *key,
					     struct spoke_value *ret);

/* --- reading many */

/* Make a cursor over the values of an array, or the keys and values of a map. Return 0 or
 * SPOKE_ETYPE. */
SPOKE_API SPOKE_MUST_USE int spoke_cursor_array(struct spoke_value array, struct spoke_cursor *ret);
SPOKE_API SPOKE_MUST_USE int spoke_cursor_map(struct spoke_value map, struct spoke_cursor *ret);

/* Returns a cursor over bytes that contain a sequence of values. */
SPOKE_API struct spoke_cursor spoke_cursor_bytes(struct spoke_span bytes);

/* Reads the next value. Returns false at the end, and if unchecked bytes are not readable. */
SPOKE_API SPOKE_MUST_USE bool spoke_cursor_next(struct spoke_cursor *cursor,
						struct spoke_value *ret);

/* Reads the next pair of a map. Returns false at the end. */
SPOKE_API SPOKE_MUST_USE bool spoke_cursor_next_pair(struct spoke_cursor *cursor,
						     struct spoke_value *ret_key,
						     struct spoke_value *ret_value);

/* Returns the bytes that the cursor has not read yet. */
SPOKE_API struct spoke_span spoke_cursor_rest(const struct spoke_cursor *cursor);

/*
 * Writes the value for a log, on one line in a form like JSON. The text is cut with "..." if `size`
 * (with the NUL) or the depth does not suffice. Bytes that are not printable text appear as \xff.
 * Returns the length of the written text.
 */
SPOKE_API size_t spoke_value_print(struct spoke_value value, char *text, size_t size);

/* --- building */

/*
 * Packs a sequence of values, each in the fewest bytes. Errors are sticky: later functions do
 * nothing, and finishing reports the first error. All fields are the builder's. Between init and
 * fini it must not be copied.
 */
struct spoke_builder {
	unsigned char *bytes; /* the packed values; NULL while there is no memory */
	size_t len;
	size_t capacity;
	size_t max;                   /* greatest length in bytes */
	const struct spoke_env *env;  /* allocates the memory; NULL: memory of caller or buffer */
	struct spokei_buffer *buffer; /* the buffer to append to; NULL: none */
	size_t start;                 /* ... length of the buffer before the first value */
	size_t committed;             /* ... length that the buffer has recorded */
	size_t count;                 /* finished values on the top level */
	int error;
	uint32_t items;                       /* values left under the limit */
	uint32_t depth;                       /* open arrays and maps */
	uint32_t left;                        /* values still missing in the innermost one */
	uint32_t open[SPOKE_VALUE_DEPTH_MAX]; /* `left` of the enclosing ones */
	uint32_t typed_depth;                 /* `depth` in the innermost typed value; 0: none */
	size_t typed_at;                      /* ... and its first byte */
	struct spoke_value_limits limits;
};

/* Initialises a builder whose memory comes from the environment and grows as needed. `env` is
 * borrowed while the builder is used; `limits` for the call (NULL: all defaults). Undo with
 * spoke_builder_fini(). */
SPOKE_API void spoke_builder_init(struct spoke_builder *builder, const struct spoke_env *env,
				  const struct spoke_value_limits *limits);

/* Initialises a builder in memory of the caller, which is borrowed while the builder or its values
 * are used. Values that do not fit are SPOKE_ETOOLARGE. Nothing to undo. */
SPOKE_API void spoke_builder_init_fixed(struct spoke_builder *builder, void *memory, size_t size,
					const struct spoke_value_limits *limits);

/* Discards the packed values and the error; keeps memory and limits. */
SPOKE_API void spoke_builder_reset(struct spoke_builder *builder);

/* Frees the memory of a builder. */
SPOKE_API void spoke_builder_fini(struct spoke_builder *builder);

/*
 * Writes a view of the packed values, zero or more. The bytes stay the builder's until reset or
 * fini. Nothing may be packed afterwards. Returns 0 or the first error: SPOKE_ENOMEM, SPOKE_EDEPTH,
 * SPOKE_ETOOLARGE (items or bytes), SPOKE_ETRUNCATED (an array or map has fewer values than
 * announced), SPOKE_EINVAL (the limits, or NULL for bytes), or an error of spoke_pack_raw().
 */
SPOKE_API SPOKE_MUST_USE int spoke_builder_finish(struct spoke_builder *builder,
						  struct spoke_span *ret_values);

/* Like spoke_builder_finish(), for exactly one value. SPOKE_ETRUNCATED: there is none;
 * SPOKE_ETRAILING: there are more, e.g. because an array got more values than announced. */
SPOKE_API SPOKE_MUST_USE int spoke_builder_finish_value(struct spoke_builder *builder,
							struct spoke_value *ret_value);

/* Append one value. Text and bytes are copied. */
SPOKE_API void spoke_pack_nil(struct spoke_builder *builder);
SPOKE_API void spoke_pack_bool(struct spoke_builder *builder, bool value);
SPOKE_API void spoke_pack_i64(struct spoke_builder *builder, int64_t value);
SPOKE_API void spoke_pack_u64(struct spoke_builder *builder, uint64_t value);
SPOKE_API void spoke_pack_double(struct spoke_builder *builder, double value);
SPOKE_API void spoke_pack_float(struct spoke_builder *builder, float value);
SPOKE_API void spoke_pack_str(struct spoke_builder *builder, const char *text, size_t len);

/* Appends a str that ends with a NUL, which is not packed. */
SPOKE_API void spoke_pack_text(struct spoke_builder *builder, const char *text);

/* Append a bin or an ext; the bytes are copied. */
SPOKE_API void spoke_pack_bin(struct spoke_builder *builder, const void *bytes, size_t len);
SPOKE_API void spoke_pack_ext(struct spoke_builder *builder, int8_t type, const void *bytes,
			      size_t len);

/* Begin an array of `count` values, or a map of `count` pairs; exactly this many must follow. */
SPOKE_API void spoke_pack_array(struct spoke_builder *builder, size_t count);
SPOKE_API void spoke_pack_map(struct spoke_builder *builder, size_t count);

/* Appends an integer in eight bytes, which hessian2 sends as a long; other integers that fit are
 * sent as an int. */
SPOKE_API void spoke_pack_long(struct spoke_builder *builder, int64_t value);

/* Appends a timestamp in seconds and nanoseconds since 1970 in UTC, e.g. a Java date. */
SPOKE_API void spoke_pack_time(struct spoke_builder *builder, int64_t seconds, uint32_t ns);

/* Begins an array or a map with the name of a Java type, e.g. "java.util.HashSet" or "[int". The
 * array or map must follow. */
SPOKE_API void spoke_pack_typed(struct spoke_builder *builder, const char *type);

/*
 * Begins an object of a Java class with `count` fields. The fields must follow, each a text and a
 * value, and then spoke_pack_class():
 *
 *     spoke_pack_object(builder, 1);
 *     spoke_pack_text(builder, "x");
 *     spoke_pack_i64(builder, 3);
 *     spoke_pack_class(builder, "it.Point");
 *
 * A map from spoke_pack_map() is an object, too, if its last pair is "class" and a qualified name,
 * i.e. identifiers joined by dots.
 */
SPOKE_API void spoke_pack_object(struct spoke_builder *builder, size_t count);
SPOKE_API void spoke_pack_class(struct spoke_builder *builder, const char *name);

/* Append an enum constant, e.g. "it.Color" and "RED"; and a java.math.BigDecimal, e.g. "1.50". */
SPOKE_API void spoke_pack_enum(struct spoke_builder *builder, const char *type, const char *name);
SPOKE_API void spoke_pack_decimal(struct spoke_builder *builder, const char *digits);

/* Appends a sequence of packed values, which are checked under the builder's limits. More values
 * than the enclosing array or map still lacks are SPOKE_ETRAILING. */
SPOKE_API void spoke_pack_raw(struct spoke_builder *builder, struct spoke_span values);

SPOKE_END_DECLS

#endif
